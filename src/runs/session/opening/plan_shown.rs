//! What opening a target takes, as the operator sees it in advance.

use std::path::Path;

use super::consent::wanted_of;
use super::data_set::outlook;
use crate::load::kv::acks;
use crate::load::volume::layout::files_bytes;
use crate::marks::PROGRAM_NAME;
use crate::runs::session::message::{PlanShown, Wanted};
use crate::settings::paths::expand_home;
use crate::settings::{Kv, Settings, Target};
use crate::stack::paths::state_dir;
use crate::stack::plan::durations::last_times;
use crate::stack::plan::{Destroyed, Plan};
use crate::units::{approx_size, floor_mib};

/// The plan as the operator sees it, with the files of the pairs that go elsewhere.
pub fn shown(plan: &Plan, kv: Option<&Kv>, number: u64, turns: Vec<(String, String, String)>) -> PlanShown {
    let wanted = |destroyed: &Destroyed| wanted_of(&destroyed.drive, destroyed.content.clone());
    let times = last_times(&state_dir(), plan);
    PlanShown {
        number,
        opens: None,
        live: false,
        turns,
        takes_down: Vec::new(),
        lines: [plan.lines(), acks(kv)].concat(),
        destroys: plan.destroys.iter().map(wanted).collect(),
        writes_bytes: (!plan.is_for_program()).then_some(plan.writes_bytes),
        wear: plan.wear(),
        properties: Some(plan.properties.clone()),
        last_time: times.all,
        times: times.each,
    }
}

/// The data set of settings that use RocksDB.
pub fn keyed(settings: &Settings) -> Option<&Kv> {
    settings.is_keyed().then_some(&settings.kv)
}

/// The line for the file of acknowledged commits, if there will be one.
fn acks(kv: Option<&Kv>) -> Vec<String> {
    let line = kv
        .and_then(|kv| kv.acks.as_deref())
        .map(|file| expand_home(file).and_then(|path| acks::outlook(&path)));
    line.map(|line| line.unwrap_or_else(|error| error.one_line())).into_iter().collect()
}

/// What opening a target takes if nothing is built for it, as far as known in advance.
#[derive(Debug, Default)]
pub struct Taken {
    /// The steps by which drives leave the kernel.
    pub handed_over: Vec<String>,
    /// The devices that the operator has to agree to; if none, consent is asked when they are opened.
    pub destroys: Option<Vec<Wanted>>,
    /// Bytes that filling or loading writes.
    pub writes_bytes: Option<u64>,
}

fn files_line(settings: &Settings) -> String {
    let Target { count, dir, size_bytes, .. } = &settings.target;
    let files = if *count == 1 { "file" } else { "files" };
    let (bytes, wal) = if let Some(wal) = &settings.wal.target {
        (count.saturating_mul(floor_mib(*size_bytes)), format!(", and {wal} for the WAL"))
    } else {
        (files_bytes(*count, *size_bytes), " with the WAL".to_owned())
    };
    format!("open {count} {files} in {dir}, {}{wal}", approx_size(bytes))
}

/// The plan if nothing is built. `held` is the folder of the target that is closed first.
pub fn plain(
    settings: &Settings,
    taken: Taken,
    number: u64,
    turns: Vec<(String, String, String)>,
    held: Option<&Path>,
) -> PlanShown {
    let target = &settings.target;
    let line = if !settings.touches_storage() {
        "open nothing: no class touches storage".to_owned()
    } else if settings.program.is_some() {
        let wal = settings.wal.target.as_ref();
        let wal = wal.map_or_else(String::new, |wal| format!(", with its log in {wal}/{PROGRAM_NAME}"));
        format!("run the program in {}/{PROGRAM_NAME}{wal}", target.dir)
    } else if settings.is_keyed() {
        outlook(settings, held).map_or_else(|error| error.one_line(), |outlook| outlook.text)
    } else if target.devices.is_empty() {
        files_line(settings)
    } else {
        let later = if taken.destroys.is_some() {
            ""
        } else {
            "; you are asked before anything on them is destroyed"
        };
        let wal =
            settings.wal.target.as_ref().map_or_else(String::new, |wal| format!(", and {wal} for the WAL"));
        format!("open {}{wal}{later}", target.devices.join(", "))
    };
    let mut lines = vec![line];
    if !settings.is_keyed() && settings.program.is_none() {
        lines.push("fill what is not filled".to_owned());
    }
    lines.extend(acks(keyed(settings)));
    lines.extend(taken.handed_over);
    PlanShown {
        number,
        opens: None,
        live: false,
        turns,
        takes_down: Vec::new(),
        lines,
        destroys: taken.destroys.unwrap_or_default(),
        writes_bytes: taken.writes_bytes,
        wear: Vec::new(),
        properties: None,
        times: Vec::new(),
        last_time: None,
    }
}
