//! Rows that an experiment borrows from another one: those of programs that it does not run itself.

use super::deviations::host;
use super::experiment::Experiment;
use super::result::{Beside, RowResult};
use crate::runs::record::Recording;
use crate::settings::profile;

/// Rows that an experiment can't run, borrowed from reproductions next to it that ran them on the same host,
/// and on the same drives or in the same folder: each with the name of its reproduction. A row that ran in none
/// of them comes without runs, with the reason, from one that ran others of its rows here.
pub fn lent<'a>(
    experiment: &Experiment,
    rows: &[RowResult],
    beside: &'a [Beside],
) -> Vec<(&'a str, &'a RowResult)> {
    let here = rows.iter().find_map(|row| place(row.runs.first()?));
    let ran_here = |rows: &[RowResult]| {
        let mut places = rows.iter().flat_map(|row| &row.runs).map(place).peekable();
        here.is_some() && places.peek().is_some() && places.all(|place| place == here)
    };
    let find = |label: &str| {
        let others = beside.iter().filter(|other| !other.same);
        let row = |other: &'a Beside| Some((other, other.rows.iter().find(|row| row.label == label)?));
        let found: Vec<_> = others.filter_map(row).collect();
        let ran = found.iter().find(|(_, row)| ran_here(std::slice::from_ref(row)));
        let says_why = |row: &RowResult| row.runs.is_empty() && row.reason.is_some();
        let could_not = || found.iter().find(|(other, row)| says_why(row) && ran_here(&other.rows));
        ran.or_else(could_not).map(|(other, row)| (other.name.as_str(), *row))
    };
    experiment.rows.iter().filter(|row| row.lacking.is_some()).filter_map(|row| find(&row.label)).collect()
}

/// Where a run was made: the host by its name and its summary line, and the drives or folder of files it used.
fn place(run: &Recording) -> Option<[String; 4]> {
    let target = profile::parse(&run.profile_toml, "profile.toml").ok()?.settings.target;
    let folder = if target.devices.is_empty() { target.dir } else { String::new() };
    Some([run.host["hostname"].to_string(), host(run), target.devices.join(","), folder])
}
