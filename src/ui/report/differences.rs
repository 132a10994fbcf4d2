//! What differs between the hosts and between the settings of recordings.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value as Json;

use crate::class::Class;
use crate::printable::Shown as _;
use crate::runs::record::{PROFILE, Recording};
use crate::settings::knobs::{self, Value};
use crate::settings::profile;
use crate::settings::{Layer, Program, Settings, Sync};
use crate::stack::plan::{StackSpec, drives_to_lose, without_barriers};
use crate::units::approx_size;

/// Something that is not the same in all recordings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// A fact about the host, or a setting's key.
    pub what: String,
    /// Its value in each recording; none if the recording does not say.
    pub values: Vec<Option<String>>,
}

/// A knob's effective value.
struct Setting {
    value: String,
    /// Whether it is inherited from the `[io]` table.
    inherited: bool,
}

/// All differences: the hosts first, then the settings.
pub fn differences(recordings: &[Recording]) -> Vec<Difference> {
    let hosts: Vec<_> = recordings.iter().map(host_facts).collect();
    let settings: Vec<_> = recordings.iter().map(settings).collect();
    let order = hosts.iter().flatten().map(|(what, _)| *what).fold(Vec::new(), |mut order, what| {
        if !order.contains(&what) {
            order.push(what);
        }
        order
    });
    // What all classes inherit from `[io]` is listed once.
    let keys: BTreeSet<_> =
        settings.iter().flatten().filter(|(_, s)| !s.inherited).map(|(key, _)| key).collect();
    let of_hosts = order.into_iter().map(|what| Difference {
        what: what.to_owned(),
        values: hosts.iter().map(|host| find(host, what)).collect(),
    });
    let of_settings = keys.into_iter().map(|key| Difference {
        values: settings.iter().map(|settings| Some(settings.get(key)?.value.clone())).collect(),
        what: key.clone(),
    });
    of_hosts.chain(of_settings).filter(|d| d.values.iter().any(|value| *value != d.values[0])).collect()
}

fn find(host: &[(&str, Option<String>)], what: &str) -> Option<String> {
    host.iter().find(|(name, _)| *name == what).and_then(|(_, value)| value.clone())
}

/// The facts about a host that affect the figures.
pub fn host_facts(recording: &Recording) -> Vec<(&'static str, Option<String>)> {
    let at = |path: &str| recording.host.pointer(path).filter(|value| !value.is_null());
    let text = |path: &str| at(path).and_then(Json::as_str).map(String::from);
    let mitigations = at("/cpu/mitigations").and_then(Json::as_object).map(|all| {
        let all = all.iter().map(|(name, value)| format!("{name}: {}", value.as_str().unwrap_or("?")));
        all.collect::<Vec<_>>().join("; ")
    });
    vec![
        ("stacktune", Some(recording.summary.stacktune.clone())),
        ("host", text("/hostname")),
        ("distribution", text("/distribution")),
        ("kernel", text("/kernel")),
        ("virtualization", text("/virtualization")),
        ("CPU", text("/cpu/model")),
        ("CPUs online", at("/cpu/online").and_then(Json::as_array).map(|cpus| cpus.len().to_string())),
        ("governor", text("/cpu/governor")),
        ("mitigations", mitigations),
        ("clock source", text("/cpu/clocksource")),
        ("memory", at("/memory_bytes").and_then(Json::as_u64).map(approx_size)),
        ("drives", at("/devices").and_then(Json::as_array).map(|drives| drives_text(drives))),
        ("medium", text("/target/medium")),
    ]
}

/// The host's drives. Loop devices are left out: others' come and go, and the settings say what our own are for.
fn drives_text(drives: &[Json]) -> String {
    let is_drive = |drive: &&Json| !drive["name"].as_str().is_some_and(|name| name.starts_with("loop"));
    let drive = |drive: &Json| {
        let parts = ["name", "model", "firmware"].map(|key| drive[key].as_str());
        parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
    };
    drives.iter().filter(is_drive).map(drive).collect::<Vec<_>>().join("; ")
}

/// Every knob's effective value, and the command layers; empty if the profile can't be read.
fn settings(recording: &Recording) -> BTreeMap<String, Setting> {
    let Some(settings) = parsed(recording) else { return BTreeMap::new() };
    let devices = !settings.target.devices.is_empty();
    knobs::all()
        .iter()
        .map(|knob| {
            let idle =
                knob.inactive(&settings).is_some() || (devices && knob.path.starts_with("target.files."));
            let value = if idle { "(no effect)".into() } else { knob.effective(&settings).to_string() };
            (knob.path.clone(), Setting { value, inherited: knob.get(&settings) == Value::Inherit })
        })
        .chain([("stack.layer".to_owned(), Setting { value: layers(&settings), inherited: false })])
        .chain(settings.program.iter().flat_map(of_program))
        .collect()
}

/// What a program ran, as whom and with how much memory.
fn of_program(program: &Program) -> Vec<(String, Setting)> {
    let own = |key: &str, value: String| (format!("command.{key}"), Setting { value, inherited: false });
    let phases = program.phases().into_iter().filter(|(_, words)| !words.is_empty());
    let memory = program.memory_max_bytes.map_or_else(|| "none".to_owned(), approx_size);
    let variables =
        program.environment.iter().map(|(name, value)| own(&format!("environment.{name}"), value.clone()));
    phases
        .map(|(phase, words)| own(phase, words.join(" ")))
        .chain([own("memory_max", memory)])
        .chain(program.user.iter().map(|user| own("user", user.clone())))
        .chain(variables)
        .collect()
}

/// The layers with the commands that make them.
fn layers(settings: &Settings) -> String {
    let layer = |layer: &Layer| {
        let commands: Vec<_> = layer.up.iter().map(|words| words.join(" ")).collect();
        format!("{}: {}", layer.name, commands.join("; "))
    };
    let layers: Vec<_> = settings.stack.by_commands.iter().map(layer).collect();
    if layers.is_empty() { "none".to_owned() } else { layers.join(" | ") }
}

/// The settings as run.
pub fn parsed(recording: &Recording) -> Option<Settings> {
    profile::parse(&recording.profile_toml, &recording.dir.join(PROFILE).shown())
        .ok()
        .map(|profile| profile.settings)
}

/// Why the settings of a recording can't be compared, if they can't be read.
pub fn unreadable_settings(recording: &Recording) -> Option<String> {
    let error = profile::parse(&recording.profile_toml, &recording.dir.join(PROFILE).shown()).err()?;
    Some(format!("its settings can't be read, and are not compared: {}.", error.what))
}

/// A recording's settings, and the host on which they were run.
pub struct AsRun<'a> {
    /// The settings.
    pub settings: Settings,
    host: &'a Json,
}

impl<'a> AsRun<'a> {
    /// Those of a recording; none if its settings can't be read.
    pub fn of(recording: &'a Recording) -> Option<Self> {
        parsed(recording).map(|settings| Self { settings, host: &recording.host })
    }

    /// The mount option that keeps flushes from its drives' caches, if there is one and they may lose what they hold.
    fn keeps_flushes(&self) -> Option<&str> {
        let option = without_flushes(&self.settings)?;
        let devices = self.host["devices"].as_array();
        let is = |device: &&Json, name: &str| {
            let by_id = device["by_id"].as_array().into_iter().flatten();
            by_id.chain([&device["path"], &device["name"]]).any(|of| of == name)
        };
        let found = |name: &String| devices.into_iter().flatten().find(|device| is(device, name));
        let names = &self.settings.target.devices;
        let lasts = |name: &String| found(name).is_some_and(|device| device["volatile_write_cache"] == false);
        (names.is_empty() || !names.iter().all(lasts)).then_some(option)
    }
}

/// The mount option by which a stack's file system does not flush its drives, if it has one.
fn without_flushes(settings: &Settings) -> Option<&str> {
    if settings.stack.is_built() { without_barriers(&settings.stack) } else { None }
}

/// What makes data less durable as it was run than with other settings: knobs with their values, and how many drives
/// may be lost.
pub fn less_durable_by(run: &AsRun, others: &Settings) -> Vec<String> {
    let settings = &run.settings;
    let is_not = |of: &Settings| of.classes[Class::Wal.index()].enabled && of.wal.sync == Sync::None;
    let mut less = Vec::new();
    // What lies below a target that is not built, or in layers of others' making, is unknown.
    let to_lose = |of: &Settings| {
        let is_known = of.builds_stack() && of.stack.by_commands.is_empty();
        is_known.then(|| drives_to_lose(&StackSpec::of(of)))
    };
    if let (Some(here), Some(there)) = (to_lose(settings), to_lose(others))
        && here < there
    {
        less.push(format!("survives the loss of drives: {there} → {here}"));
    }
    if is_not(settings) && !is_not(others) {
        less.push("wal.sync none".to_owned());
    }
    let option = run.keeps_flushes().filter(|_| without_flushes(others).is_none());
    less.extend(option.map(|option| format!("stack.mount_options {option}")));
    let known = others.program.iter().flat_map(|program| &program.knobs);
    let known: BTreeMap<&str, _> = known.map(|knob| (knob.name.as_str(), knob)).collect();
    for knob in settings.program.iter().flat_map(|program| &program.knobs) {
        // Nothing is known in comparison with another program's knobs.
        let same = known.get(knob.name.as_str()).filter(|other| other.less_durable == knob.less_durable);
        if same.is_some_and(|other| knob.durability() < other.durability()) {
            less.push(format!("command.{} {}", knob.name, knob.value));
        }
    }
    less
}
