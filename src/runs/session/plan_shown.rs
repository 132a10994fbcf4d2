//! What opening a target takes, as the operator sees it before it is done.

use std::path::Path;

use super::consent::wanted_of;
use super::data_set::outlook;
use super::message::{PlanShown, Wanted};
use crate::load::volume::layout::files_bytes;
use crate::settings::Settings;
use crate::stack::paths::state_dir;
use crate::stack::plan::durations::last_times;
use crate::stack::plan::{Destroyed, Plan};
use crate::units::approx_size;

/// The plan as the operator sees it.
pub fn shown(plan: &Plan, number: u64, turns: Vec<(String, String, String)>) -> PlanShown {
    let wanted = |destroyed: &Destroyed| wanted_of(&destroyed.drive, destroyed.content.clone());
    let times = last_times(&state_dir(), plan);
    PlanShown {
        number,
        opens: None,
        turns,
        takes_down: Vec::new(),
        lines: plan.lines(),
        destroys: plan.destroys.iter().map(wanted).collect(),
        writes_bytes: plan.writes_bytes,
        wear: plan.wear(),
        properties: Some(plan.properties.clone()),
        last_time: times.all,
        times: times.each,
    }
}

/// What opening the target takes where nothing is built for it. `handed_over` are the steps by which
/// drives leave the kernel, `destroys` the devices that the operator has to agree to; without them what
/// they hold is asked when it is opened. `held` is the folder of the target that is closed first.
pub fn plain(
    settings: &Settings,
    handed_over: &[String],
    number: u64,
    turns: Vec<(String, String, String)>,
    destroys: Option<Vec<Wanted>>,
    held: Option<&Path>,
) -> PlanShown {
    let target = &settings.target;
    let line = if !settings.touches_storage() {
        "open nothing: no class touches storage".to_owned()
    } else if settings.is_keyed() {
        outlook(settings, held).unwrap_or_else(|error| error.one_line())
    } else if target.devices.is_empty() {
        let bytes = files_bytes(target.count, target.size_bytes);
        format!("open {} files in {}, {} with the WAL", target.count, target.dir, approx_size(bytes))
    } else {
        let later =
            if destroys.is_some() { "" } else { "; what they hold is asked for before it is destroyed" };
        format!("open {}{later}", target.devices.join(", "))
    };
    let mut lines = vec![line];
    if !settings.is_keyed() {
        lines.push("fill what is not filled".to_owned());
    }
    lines.extend_from_slice(handed_over);
    PlanShown {
        number,
        opens: None,
        turns,
        takes_down: Vec::new(),
        lines,
        destroys: destroys.unwrap_or_default(),
        writes_bytes: 0,
        wear: Vec::new(),
        properties: None,
        times: Vec::new(),
        last_time: None,
    }
}
