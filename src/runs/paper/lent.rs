//! Rows that an experiment takes from another one: of programs that it does not run itself.

use super::deviations::host;
use super::experiment::Experiment;
use super::result::{Beside, RowResult};
use crate::runs::record::Recording;
use crate::settings::profile;

/// Rows that an experiment can't run, from reproductions beside it that have them and ran on the same host, on the same drives
/// or in the same folder: each with the name of its reproduction.
pub fn lent<'a>(
    experiment: &Experiment,
    rows: &[RowResult],
    beside: &'a [Beside],
) -> Vec<(&'a str, &'a RowResult)> {
    let here = rows.iter().find_map(|row| place(row.runs.first()?));
    let lacking = experiment.rows.iter().filter(|row| row.lacking.is_some());
    let find = |label: &str| {
        beside.iter().filter(|other| !other.same).find_map(|other| {
            let row = other.rows.iter().find(|row| row.label == label)?;
            let is_here = here.is_some() && row.runs.iter().all(|run| place(run) == here);
            (is_here && !row.runs.is_empty()).then_some((other.name.as_str(), row))
        })
    };
    lacking.filter_map(|row| find(&row.label)).collect()
}

/// Where a run was made: the host by its name and its line, and the drives, or the folder of the files, that it was on.
fn place(run: &Recording) -> Option<[String; 4]> {
    let target = profile::parse(&run.profile_toml, "profile.toml").ok()?.settings.target;
    let folder = if target.devices.is_empty() { target.dir } else { String::new() };
    Some([run.host["hostname"].to_string(), host(run), target.devices.join(","), folder])
}
