//! What commands begin with: the profile, the options of a run, and the host's facts.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::host::Facts;
use crate::runs::session::Options;
use crate::settings::profile::{ProfileFolder, builtin};
use crate::settings::{Profile, Settings};
use crate::ui::cli::{self, RunArgs};

/// The profile that is opened without a name.
const DEMO: &str = "demo";

/// A profile with the command line's turns applied, and whether it is the built-in demo.
pub fn profile(name: Option<&str>, sets: &[String]) -> Result<(Profile, bool)> {
    let store = ProfileFolder::of_user();
    let (mut profile, demo) = match name {
        None => (builtin(DEMO).ok_or_else(|| Error::failed("the demo is missing"))?, true),
        Some(name) => {
            let profile = store
                .load(name)
                .map_err(|error| if store.knows(name) { error } else { hint_at_command(name, error) })?;
            let demo = name == DEMO && builtin(DEMO).as_ref() == Some(&profile);
            (profile, demo)
        }
    };
    cli::apply_sets(&mut profile.settings, sets)?;
    Ok((profile, demo))
}

/// A mistyped command looks like the name of a profile.
fn hint_at_command(name: &str, error: Error) -> Error {
    match cli::nearest_command(name) {
        Some(command) => {
            let hint = error.hint.as_deref().map_or(String::new(), |hint| format!("{hint}\n  "));
            error.hint(format!("{hint}or the command `stacktune {command}`?"))
        }
        None => error,
    }
}

/// The options for running a profile that all commands share.
pub fn options(run: &RunArgs, settings: &Settings, demo: bool) -> Options {
    Options {
        read_only: run.read_only,
        destroy: run.destroy.iter().map(|path| path.display().to_string()).collect(),
        commands: if run.allow_commands { settings.stack.by_commands.clone() } else { Vec::new() },
        fallbacks: demo,
        warmup: Duration::ZERO,
        written_bytes: Arc::default(),
        typed: Vec::new(),
        agreed: None,
        anew: false,
        uncached: false,
        unused_steps: 0,
        program: false,
        operated: None,
    }
}

/// What is known of this host.
pub fn facts() -> Arc<Facts> {
    Arc::new(Facts::read(Path::new("/")))
}

/// The same with the tools' versions, for recordings.
pub fn facts_with_versions() -> Arc<Facts> {
    Arc::new(Facts::read(Path::new("/")).with_tool_versions())
}
