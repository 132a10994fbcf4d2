//! Profiles as earlier versions wrote them: each opens, and means the same.

use std::path::PathBuf;

use super::*;
use crate::settings::knobs;
use crate::settings::values::Settings;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/profiles")
}

fn read(name: &str) -> (String, Profile) {
    let text = std::fs::read_to_string(folder().join(name)).unwrap();
    let profile = parse(&text, name).unwrap_or_else(|error| panic!("{error}"));
    (text, profile)
}

#[test]
fn the_built_in_profiles_of_the_first_version_open_and_round_trip() {
    let names = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name());
    for name in names {
        let (_, profile) = read(name.to_str().unwrap());
        assert_eq!(parse(&to_toml(&profile), "again.toml").as_ref(), Ok(&profile), "{}", name.display());
    }
}

#[test]
fn a_profile_with_every_key_set_keeps_every_value() {
    let keys = ["all-on-drives.toml", "all-on-files.toml"].map(|name| {
        let (text, profile) = read(name);
        let root: toml::Table = text.parse().unwrap();
        let given = knobs::all().iter().filter(|knob| {
            let value = knob
                .path
                .split('.')
                .try_fold(toml::Value::Table(root.clone()), |table, key| table.get(key).cloned());
            let Some(value) = value else { return false };
            let written = toml_value::to_value(&knob.get(&profile.settings));
            assert_eq!(written, value, "{name}: {}", knob.path);
            assert_ne!(knob.get(&profile.settings), knob.get(&Settings::default()), "{name}: {}", knob.path);
            true
        });
        given.map(|knob| knob.path.as_str()).collect::<Vec<_>>()
    });
    let missing: Vec<_> = knobs::all().iter().map(|knob| knob.path.as_str()).collect();
    let missing: Vec<_> = missing.into_iter().filter(|path| !keys.concat().contains(path)).collect();
    assert_eq!(missing, [""; 0], "a new key: add it to one of the two files");
}
