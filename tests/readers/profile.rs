//! Profiles.

use std::path::Path;
use std::sync::OnceLock;

use stacktune::testing::host::Facts;
use stacktune::testing::runs::sweep::Schedule;
use stacktune::testing::settings::jobs::jobs;
use stacktune::testing::settings::knobs::Conditions;
use stacktune::testing::settings::profile::{check, parse, parse_bytes, to_toml};
use stacktune::testing::ui::report;

use super::printed;

/// A profile file. An accepted profile survives writing and rereading, and can be planned.
pub fn profile(input: &[u8]) {
    let profile = match parse_bytes(input, "seed.toml") {
        Ok(profile) => profile,
        Err(error) => {
            assert_eq!(error.exit_status(), 2);
            printed(&error.to_string());
            return;
        }
    };
    let text = printed(&to_toml(&profile));
    let mut again = parse(&text, "seed.toml").unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(to_toml(&again), text);
    if !profile.settings.target.devices.is_empty() {
        // The files of a target of devices are not written.
        again.settings.target = profile.settings.target.clone();
    }
    assert_eq!(again, profile);
    jobs(&profile.settings);
    for problem in check::check(&profile.settings, Conditions { facts: bare_host(), target: None }) {
        printed(&format!("{problem:?}"));
    }
    if let Ok(schedule) = Schedule::of(&profile, false, 0) {
        super::report(&report::schedule(&schedule));
    }
}

/// A host about which nothing is known.
fn bare_host() -> &'static Facts {
    static FACTS: OnceLock<Facts> = OnceLock::new();
    FACTS.get_or_init(|| Facts::read(Path::new("/nonexistent")))
}
