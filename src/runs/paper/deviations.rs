//! How the setup here differs from the paper's, in sentences.

use std::time::Duration;

use serde_json::Value as Json;

use crate::meter::window::CyclesSource;
use crate::runs::record::Recording;
use crate::settings::profile::{self, Sweep};
use crate::settings::{Buffering, Settings};
use crate::units::{approx_size, format_duration};

use super::experiment::{Experiment, Setup, Shape};
use super::place::{CACHE_BYTES, DATA_BYTES, data_bytes_of};
use super::result::RowResult;
use super::systems;

/// How an experiment was run, beyond what its recordings contain.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    /// The experiment.
    pub experiment: &'a Experiment,
    /// Its sweep: times, repeats, order and preparation.
    pub sweep: &'a Sweep,
    /// The knobs that the operator gave.
    pub sets: &'a [String],
    /// Why the page cache has no budget, if it has none.
    pub no_cache_limit: Option<&'a str>,
}

/// A gigabyte, decimal or binary.
const PARTITION_BYTES: std::ops::RangeInclusive<u64> = 950_000_000..=1_100_000_000;

/// The host of a recording in one line.
pub fn host(recording: &Recording) -> String {
    let text = |path: &str| recording.host.pointer(path).and_then(Json::as_str);
    let cpus = recording.host.pointer("/cpu/online").and_then(Json::as_array).map_or(0, Vec::len);
    let cpu = text("/cpu/model").map(|model| format!("{model} ({cpus} CPUs)"));
    let memory = memory_bytes(recording).map(approx_size);
    let kernel = text("/kernel").map(|kernel| format!("Linux {kernel}"));
    let program = format!("stacktune {}", recording.summary.stacktune);
    [cpu, memory, kernel, Some(program)].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Every known deviation.
pub fn deviations(run: &Run, rows: &[RowResult]) -> Vec<String> {
    let recordings: Vec<_> = rows.iter().filter_map(|row| row.runs.first()).collect();
    let parsed = |recording: &&&Recording| {
        profile::parse(&recording.profile_toml, "profile.toml").ok().map(|profile| profile.settings)
    };
    let settings: Vec<_> = recordings.iter().filter_map(|r| parsed(&r)).collect();
    let (is_traced, is_program) =
        (run.experiment.is_traced(), matches!(run.experiment.shape, Shape::Program(_)));
    let mut deviations = Vec::new();
    if let Some((first, settings)) = recordings.first().zip(settings.first()) {
        deviations.extend(medium(run.experiment, first, settings));
        if is_traced {
            deviations.extend(space(&recordings));
        } else if !is_program && !settings.is_simulated() {
            deviations.extend(data(&recordings));
        }
    }
    deviations.extend(others(rows, &settings));
    // The experiment itself describes the load of a traced program.
    if is_program && !is_traced {
        let ran = rows.iter().filter(|row| !row.runs.is_empty()).map(|row| row.label.as_str());
        deviations.extend(systems::deviations(&ran.zip(&settings).collect::<Vec<_>>()));
    } else if !is_traced {
        deviations.extend(cache(run, &recordings, &settings));
    }
    let estimated = |r: &&Recording| r.summary.total.cycles_source == CyclesSource::Estimate;
    if !is_traced && !is_program && recordings.iter().any(estimated) {
        deviations
            .push("cycles are estimated from busy CPU time and clock (≈); the paper counted them".into());
    }
    deviations.extend(care(run, settings.first()));
    if !run.sets.is_empty() {
        deviations.push(format!("given for every row: {}", run.sets.join(", ")));
    }
    deviations
}

fn memory_bytes(recording: &Recording) -> Option<u64> {
    recording.host.get("memory_bytes").and_then(Json::as_u64)
}

/// The medium that the rows run on.
fn medium(experiment: &Experiment, recording: &Recording, settings: &Settings) -> Vec<String> {
    let target = |key: &str| recording.host.get("target").and_then(|t| t.get(key)).and_then(Json::as_str);
    let wanted = if matches!(experiment.setup, Setup::Optane | Setup::Sata) { 1 } else { 4 };
    let mut deviations = Vec::new();
    if settings.is_simulated() {
        return vec!["simulated devices on a virtual clock: no storage was touched".into()];
    }
    let devices = settings.target.devices.len();
    if devices > 0 {
        if devices != wanted {
            let noun = if devices == 1 { "drive" } else { "drives" };
            deviations.push(format!("{devices} {noun}; the paper had {wanted}"));
        }
        let names = drives(recording, settings).into_iter().map(|(name, _)| name);
        deviations.push(format!("drives: {}", counted(names)));
    } else if settings.stack.is_built() {
        deviations
            .push("loop devices over files instead of drives; their file system is below each row".into());
    } else {
        let (count, medium) = (settings.target.count, target("medium").unwrap_or("a file system"));
        deviations.push(format!(
            "{count} files on {medium}, over which pages are interleaved, instead of {} with RAID 0{}",
            if wanted == 1 { "a drive".into() } else { format!("{wanted} drives") },
            if experiment.shape == Shape::OverTime { ", 90% full" } else { "" }
        ));
    }
    if devices == 0 {
        deviations.push("nothing was trimmed: the storage below the files is as it was".into());
    }
    if let Some(model) = target("emulated") {
        deviations.push(format!("emulated drives ({model}): the figures say nothing about real ones"));
    }
    deviations
}

/// The devices of rows that run elsewhere than the first row: hardware RAIDs.
fn others(rows: &[RowResult], settings: &[Settings]) -> Vec<String> {
    let ran = rows.iter().filter_map(|row| Some((&row.label, row.runs.first()?)));
    let own = ran.zip(settings).filter(|((_, _), of)| of.target.devices != settings[0].target.devices);
    own.map(|((label, recording), of)| {
        format!("row {label} is on {}", counted(drives(recording, of).into_iter().map(|(name, _)| name)))
    })
    .collect()
}

/// Each name once, with its count.
fn counted(names: impl Iterator<Item = String>) -> String {
    let mut counts: Vec<(String, usize)> = Vec::new();
    for name in names {
        match counts.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => counts.push((name, 1)),
        }
    }
    counts.iter().map(|(name, count)| format!("{count} {name}")).collect::<Vec<_>>().join(", ")
}

/// Model and bytes of the drives that the settings name, as the recording's host has them.
fn drives(recording: &Recording, settings: &Settings) -> Vec<(String, u64)> {
    let known = recording.host.get("devices").and_then(Json::as_array).cloned().unwrap_or_default();
    let is = |device: &Json, name: &str| {
        let by_id = device["by_id"].as_array().into_iter().flatten().filter_map(Json::as_str);
        device["path"].as_str() == Some(name) || by_id.into_iter().any(|id| id == name)
    };
    let drive = |name: &String| {
        let device = known.iter().find(|device| is(device, name))?;
        let bytes = device["size_bytes"].as_u64().unwrap_or(0);
        let model = device["model"].as_str().unwrap_or("of unknown model");
        Some((format!("{model} of {}", approx_size(bytes)), bytes))
    };
    settings.target.devices.iter().filter_map(drive).collect()
}

fn data_bytes(recording: &Recording, settings: &Settings) -> u64 {
    let sizes: Vec<_> = drives(recording, settings).into_iter().map(|(_, bytes)| bytes).collect();
    data_bytes_of(settings, &sizes)
}

/// How much data the rows have, if it differs from the paper's.
fn data(recordings: &[&Recording]) -> Option<String> {
    let of = |recording: &&Recording| {
        let settings = profile::parse(&recording.profile_toml, "profile.toml").ok()?.settings;
        Some(data_bytes(recording, &settings))
    };
    let sizes: Vec<u64> = recordings.iter().filter_map(of).collect();
    let (least, most) = (*sizes.iter().min()?, *sizes.iter().max()?);
    let papers = DATA_BYTES / 100 * 95..=DATA_BYTES / 100 * 105;
    if papers.contains(&least) && papers.contains(&most) {
        return None;
    }
    let (least, most) = (approx_size(least), approx_size(most));
    let range = if least == most { least } else { format!("{least} to {most}") };
    Some(format!(
        "about {range} of data{}; the paper had 400 GB",
        if range.contains(" to ") { ", by row" } else { "" }
    ))
}

/// The size of the traced rows' space, if it differs from the paper's.
fn space(recordings: &[&Recording]) -> Option<String> {
    let of = |recording: &&Recording| {
        let drives = recording.contract.as_ref().map_or(&[][..], |contract| &contract.drives);
        drives.first().and_then(|drive| drive.number("/space_bytes")).map(|bytes| bytes as u64)
    };
    let sizes: Vec<u64> = recordings.iter().filter_map(of).collect();
    let (least, most) = (*sizes.iter().min()?, *sizes.iter().max()?);
    if PARTITION_BYTES.contains(&least) && PARTITION_BYTES.contains(&most) {
        return None;
    }
    let (least, most) = (approx_size(least), approx_size(most));
    let range = if least == most { least } else { format!("{least} to {most}") };
    Some(format!("a space of {range}; the paper had a partition of 1 GB"))
}

/// The page cache relative to the data, if any row uses it.
fn cache(run: &Run, recordings: &[&Recording], settings: &[Settings]) -> Option<String> {
    let at = settings.iter().position(|s| s.io.buffering == Buffering::Cached && !s.is_simulated())?;
    let (recording, settings) = (recordings.get(at)?, &settings[at]);
    let of = |bytes: u64| bytes as f64 / data_bytes(recording, settings).max(1) as f64 * 100.0;
    let papers = CACHE_BYTES as f64 / DATA_BYTES as f64 * 100.0;
    let the_papers = format!("the paper had 10 GB, {papers:.1}%");
    if let Some(bytes) = settings.run.cache_limit_bytes {
        let (size, share) = (approx_size(bytes), of(bytes));
        return Some(format!("page cache of {size}, {share:.1}% of the data; {the_papers}"));
    }
    let bytes = memory_bytes(recording)?;
    let why = run.no_cache_limit.map_or(String::new(), |why| format!(" ({why})"));
    let (size, share) = (approx_size(bytes), of(bytes));
    Some(format!(
        "no budget for the page cache{why}: {size} of memory, {share:.0}% of the data; {the_papers}"
    ))
}

/// The preparation before each run, and its length.
fn care(run: &Run, settings: Option<&Settings>) -> Vec<String> {
    let (sweep, between) = (run.sweep, &run.sweep.between);
    let warmup = match sweep.warmup {
        Duration::ZERO => "without warm-up".to_owned(),
        time => format!("after {} of warm-up", format_duration(time)),
    };
    let mut deviations = vec![format!(
        "each row {} × {} {warmup}; the paper does not give its times",
        sweep.repeat,
        format_duration(sweep.time)
    )];
    let real = settings.is_some_and(|settings| !settings.is_simulated());
    if real && between.idle.is_zero() && between.cool_to_c.is_none() {
        deviations.push("no rest before a run; the paper let its drives cool down".into());
    }
    deviations
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::record::fixture::{self, Like};
    use crate::runs::record::{Header, Outcome, Writer};

    fn found(header: &Header, no_cache_limit: Option<&str>) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        let windows = fixture::windows(Like::default());
        let writer = Writer::create(&dir.path().join("run"), header).unwrap();
        writer.finish(&fixture::totals(&windows), &Outcome::Complete).unwrap();
        let runs = vec![Recording::open(&dir.path().join("run")).unwrap()];
        let rows = [RowResult { label: "1".into(), runs, reason: None }];
        let experiment = super::super::find("table2").unwrap();
        let sweep = Sweep::default();
        let sets = ["wal.rate=25MB/s".to_owned()];
        deviations(&Run { experiment: &experiment, sweep: &sweep, sets: &sets, no_cache_limit }, &rows)
    }

    fn header(toml: &str) -> Header {
        Header { profile_toml: toml.into(), ..fixture::header() }
    }

    #[test]
    fn files_are_described_with_their_size_and_the_relative_cache() {
        let toml =
            "[target]\nfiles = { dir = \"/d\", count = 2, size = \"1GiB\" }\n[io]\nbuffering = \"cached\"\n";
        assert_eq!(
            found(&header(toml), Some("needs root")),
            [
                "2 files on a file system, over which pages are interleaved, instead of 4 drives with RAID 0",
                "nothing was trimmed: the storage below the files is as it was",
                "about 2.00 GiB of data; the paper had 400 GB",
                "no budget for the page cache (needs root): 16.0 GiB of memory, 800% of the data; the paper had 10 GB, 2.5%",
                "cycles are estimated from busy CPU time and clock (≈); the paper counted them",
                "each row 1 × 30s without warm-up; the paper does not give its times",
                "no rest before a run; the paper let its drives cool down",
                "given for every row: wal.rate=25MB/s",
            ]
        );
        let limited = header(&format!("{toml}[run]\ncache_limit = \"256MiB\"\n"));
        let deviations = found(&limited, None);
        assert!(deviations[3].starts_with("page cache of 256 MiB, 12.5% of the data"), "{deviations:?}");
    }

    #[test]
    fn a_row_on_another_device_is_a_deviation() {
        let dir = tempfile::tempdir().unwrap();
        let row = |label: &str, device: &str| {
            let windows = fixture::windows(Like::default());
            let toml = format!("[target]\ndevices = [\"{device}\"]\n[stack]\nfilesystem = \"ext4\"\n");
            let writer = Writer::create(&dir.path().join(label), &header(&toml)).unwrap();
            writer.finish(&fixture::totals(&windows), &Outcome::Complete).unwrap();
            let runs = vec![Recording::open(&dir.path().join(label)).unwrap()];
            RowResult { label: label.into(), runs, reason: None }
        };
        let empty = RowResult { label: "5b".into(), runs: vec![], reason: None };
        let rows = [row("5", "/dev/nvme1n1"), empty, row("6b", "/dev/nvme0n1")];
        let settings: Vec<_> = [&rows[0], &rows[2]]
            .map(|row| profile::parse(&row.runs[0].profile_toml, "profile.toml").unwrap().settings)
            .into();
        assert_eq!(others(&rows, &settings), ["row 6b is on 1 Drive 1T of 1.00 TiB"]);
    }

    #[test]
    fn drives_are_described_with_their_number_and_models() {
        let toml =
            "[target]\ndevices = [\"/dev/nvme0n1\"]\n[stack]\nstate = \"trimmed\"\nfilesystem = \"ext4\"\n";
        let deviations = found(&header(toml), None);
        assert_eq!(deviations[0], "1 drive; the paper had 4");
        assert_eq!(deviations[1], "drives: 1 Drive 1T of 1.00 TiB");
        assert!(!deviations.iter().any(|line| line.contains("trimmed:")), "{deviations:?}");
    }
}
