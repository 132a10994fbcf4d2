//! The writer, checked against the parser.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::settings::Cpus;
use crate::settings::knobs::Kind;
use crate::settings::profile::parse::parse;

/// Any value that the knob accepts.
fn any_value(knob: &'static Knob) -> BoxedStrategy<Value> {
    let own = match knob.spec.kind {
        Kind::Bool => any::<bool>().prop_map(Value::Bool).boxed(),
        Kind::Int { min, max, .. } => (min..=max).prop_map(Value::Int).boxed(),
        Kind::Percent { min, max, .. } => (min..=max).prop_map(Value::Percent).boxed(),
        Kind::Float { min, max, .. } => (min..=max).prop_map(Value::Float).boxed(),
        Kind::Size { min, max, multiple, power_of_two, optional, .. } => {
            let bytes = if power_of_two {
                (min.ilog2()..=max.ilog2()).prop_map(|log| 1_u64 << log).boxed()
            } else {
                (min / multiple..=max / multiple).prop_map(move |n| n * multiple).boxed()
            };
            let size = bytes.prop_map(|bytes| Value::Size(Some(bytes))).boxed();
            if optional { prop_oneof![size, Just(Value::Size(None))].boxed() } else { size }
        }
        // Rounded to what can be written.
        Kind::Rate { .. } => prop::option::of(1..9_000_000_000_000_000_u64).prop_map(Value::Rate).boxed(),
        Kind::Time { min, max, .. } => {
            let ns = min.as_nanos() as u64..=max.as_nanos() as u64;
            ns.prop_map(|ns| Value::Time(Duration::from_nanos(ns))).boxed()
        }
        Kind::Choice(choices) => {
            prop::sample::select(choices).prop_map(|(name, _)| Value::Choice(name)).boxed()
        }
        Kind::Cpus => prop_oneof![
            Just(Cpus::Any),
            (0..64_u32).prop_map(Cpus::Node),
            prop::collection::btree_set(0..64_u32, 1..9)
                .prop_map(|ids| Cpus::List(ids.into_iter().collect())),
        ]
        .prop_map(Value::Cpus)
        .boxed(),
        Kind::Text(_) => any_text().prop_map(Value::Text).boxed(),
        Kind::List(_) => prop::collection::vec(any_text(), 0..4).prop_map(Value::List).boxed(),
    };
    if knob.spec.inherits { prop_oneof![own, Just(Value::Inherit)].boxed() } else { own }
}

/// Lines of text, including those that mean something elsewhere.
fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>().prop_map(|text| text.replace(crate::printable::is_obeyed, "")),
        "[ -~]{0,20}",
        prop::sample::select(&["", "none", "default", " none ", "'", "\"\"\"", "\\n", "\\r", "a,b"][..])
            .prop_map(String::from),
    ]
}

/// Any settings that the knobs can express, with any name and description.
fn any_settings() -> impl Strategy<Value = Settings> {
    let values: Vec<_> = knobs::all().iter().map(any_value).collect();
    (values, "[^\\pC\\p{Zl}\\p{Zp}]{1,20}", "[^\\pC\\p{Zl}\\p{Zp}]{0,40}", any::<bool>()).prop_map(
        |(values, name, about, on_devices)| {
            let mut settings = Settings { name, about, ..Settings::default() };
            for (knob, value) in knobs::all().iter().zip(values) {
                let of_files = knob.path.starts_with("target.files.");
                if !knob.path.starts_with("target.") || of_files != on_devices {
                    knob.set(&mut settings, value);
                }
            }
            // Without devices there are files, and either each device has one serial or none has.
            if settings.target.devices.is_empty() {
                settings.target.serials.clear();
            } else if !settings.target.serials.is_empty() {
                settings.target.serials.resize(settings.target.devices.len(), "S".into());
            }
            settings
        },
    )
}

proptest! {
    #[test]
    fn written_profiles_parse_back(settings in any_settings()) {
        let profile = settings.into();
        let text = to_toml(&profile);
        prop_assert_eq!(parse(&text, "written.toml").map_err(|e| format!("{e}\n{text}")), Ok(profile));
    }
}

#[test]
fn the_defaults_are_written_readably() {
    insta::assert_snapshot!(to_toml(&Settings::default().into()));
}

#[test]
fn devices_are_one_per_line_and_the_files_are_left_out() {
    let mut settings = Settings::default();
    settings.target.dir = "/elsewhere".into();
    settings.target.devices = vec!["/dev/disk/by-id/nvme-a".into(), "/dev/disk/by-id/nvme-b".into()];
    settings.target.serials = vec!["A1".into(), "B2".into()];
    settings.wal.target = Some("/dev/disk/by-id/nvme-c".into());
    settings.classes[0].page_size_bytes = Some(64 << 10);
    let text = to_toml(&settings.clone().into());
    insta::assert_snapshot!(text);
    settings.target.dir = Settings::default().target.dir;
    assert_eq!(parse(&text, "x.toml").unwrap().settings, settings);
}
