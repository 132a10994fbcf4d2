//! Rows that an experiment borrows from another one: those of programs that it does not run itself.

use super::deviations::host;
use super::experiment::Experiment;
use super::result::{Beside, RowResult};
use crate::runs::record::Recording;
use crate::settings::profile;

/// Rows that an experiment can't run, borrowed from reproductions next to it that ran them on the same host,
/// and on the same drives or in the same folder: each with the name of its reproduction.
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
            // A row that could not run there still says why.
            let ran = if row.runs.is_empty() { other.rows.as_slice() } else { std::slice::from_ref(row) };
            let places: Vec<_> = ran.iter().flat_map(|row| &row.runs).map(place).collect();
            let is_here = here.is_some() && !places.is_empty() && places.iter().all(|place| *place == here);
            (is_here && !(row.runs.is_empty() && row.reason.is_none())).then_some((other.name.as_str(), row))
        })
    };
    lacking.filter_map(|row| find(&row.label)).collect()
}

/// Where a run was made: the host by its name and its summary line, and the drives or folder of files it used.
fn place(run: &Recording) -> Option<[String; 4]> {
    let target = profile::parse(&run.profile_toml, "profile.toml").ok()?.settings.target;
    let folder = if target.devices.is_empty() { target.dir } else { String::new() };
    Some([run.host["hostname"].to_string(), host(run), target.devices.join(","), folder])
}
