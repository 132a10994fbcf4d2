//! `stacktune reproduce`: an experiment of the paper, run as a sweep and shown beside the paper's figures.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::inputs::facts_with_versions;
use super::outlook;
use super::output::{print, print_json};
use super::program;
use super::signals::Interrupts;
use super::trace;
use super::watcher::{Around, Watcher};
use crate::error::{Error, Result};
use crate::host::{Facts, Trusting, make_own_folder};
use crate::json;
use crate::printable::{self, Shown as _};
use crate::regular_file;
use crate::runs::paper::{self, Bed, Beside, Experiment, Hardware, Planned, RowResult, Storage};
use crate::runs::record::Recording;
use crate::runs::session::{Options, for_program};
use crate::runs::sweep::{self, Folder, Schedule, State, is_sweep, planned_writes, run_settings};
use crate::settings::knobs::nearest_of;
use crate::settings::profile::Sweep;
use crate::settings::profile::sweep::{Between, Order};
use crate::settings::{Filesystem, Profile, Settings};
use crate::stack::system_folder::refuse_system_folder;
use crate::ui::cli::{ReproduceArgs, apply_sets};
use crate::ui::report::{self, Reproduction, SweepShown};
use crate::units::{approx_size, approx_span};

/// What is known about a reproduction besides its sweep: a file in its folder.
const NOTE: &str = "reproduce.json";
/// Larger than any such file.
const NOTE_BYTES_MAX: u64 = 1 << 20;
/// More reproductions than a table has room for.
const BESIDE_MAX: usize = 16;
const SCHEMA: u32 = 1;
/// The default rest before each run on drives.
const IDLE: Duration = Duration::from_secs(30);
const COOL_TO_C: f64 = 50.0;
const COOL_WITHIN: Duration = Duration::from_mins(5);
/// The levels of hardware RAID in the paper.
const LEVELS: [&str; 3] = ["0", "5", "10"];

/// The content of `reproduce.json`.
#[derive(Debug, Serialize, Deserialize)]
struct Note {
    schema: u32,
    /// The experiment's name.
    experiment: String,
    /// Rows that were not run, by label, with the reason.
    left_out: Vec<(String, String)>,
    /// The knobs that the operator gave.
    sets: Vec<String>,
    /// Why the page cache has no budget, if it has none.
    no_cache_limit: Option<String>,
    /// The folders of the recordings to show beside it.
    #[serde(default)]
    beside: Vec<PathBuf>,
}

/// Runs the command.
pub fn run(args: &ReproduceArgs) -> Result<()> {
    let Some(name) = args.name.as_deref().filter(|_| !args.list) else {
        return print(&report::reproduce::list(&paper::all()));
    };
    let experiment = find(name)?;
    trace::look(experiment.is_traced() && !args.dry_run)?;
    let facts = facts_with_versions();
    let bed = bed(args, &experiment, &facts)?;
    let (profile, left_out) = profile(args, &experiment, &bed, &facts)?;
    let destroy = args.destroy.iter().map(|path| path.display().to_string()).collect();
    let of_program = |of| program::around(args.user.as_deref(), of, experiment.is_traced());
    let around = profile.settings.program.as_ref().map(of_program).transpose()?;
    let options = Options { destroy, program: around.is_some(), ..Options::default() };
    if args.dry_run {
        return outlook::dry_run((&profile, &left_out), &options, &facts, args.output.json);
    }
    if args.beside.len() > BESIDE_MAX {
        let what = format!("--beside is given {} times, and {BESIDE_MAX} are shown", args.beside.len());
        return Err(Error::input(what).hint("give fewer"));
    }
    // Before anything runs.
    args.beside.iter().try_for_each(|dir| beside(dir, &experiment).map(drop))?;
    let with =
        args.beside.iter().map(|dir| std::path::absolute(dir).map_err(|e| Error::os("cannot find", dir, e)));
    let note = Note {
        schema: SCHEMA,
        experiment: experiment.name.into(),
        left_out,
        sets: args.sets.set.clone(),
        no_cache_limit: bed.no_cache_limit,
        beside: with.collect::<Result<_>>()?,
    };
    let dir = args.out.clone().unwrap_or_else(|| PathBuf::from(format!("reproduce-{}", experiment.name)));
    let around = around.or_else(|| trace::each_run(experiment.is_traced()));
    let (folder, ended) = sweep_through(&dir, (&profile, around), &options, &facts, &note)?;
    show(&dir, args.output.json)?;
    ended?;
    SweepShown::of(&folder).failure().map_or(Ok(()), Err)
}

fn find(name: &str) -> Result<Experiment> {
    paper::find(name).ok_or_else(|| {
        let all = paper::all();
        let near = nearest_of(name, all.iter().map(|experiment| experiment.name));
        let meant = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        Error::input(format!("there is no experiment `{}`{meant}", printable::line(name)))
            .hint("`stacktune reproduce --list` lists them")
    })
}

/// The drives or files to run on, as given.
fn bed(args: &ReproduceArgs, experiment: &Experiment, facts: &Facts) -> Result<Bed> {
    let storage = match (&args.devices[..], &args.files) {
        ([], None) => {
            return Err(Error::input(format!("{} needs drives or a folder", experiment.name)).hint(
                "give drives, which are destroyed (--devices /dev/nvme0n1,…), or a folder (--files DIR)",
            ));
        }
        ([], Some(dir)) => Storage::Files(absolute(dir)?),
        (devices, _) => Storage::Devices(devices.to_vec()),
    };
    let drives_bytes = match &storage {
        Storage::Devices(names) => facts.find_all(names)?.iter().map(|device| device.size_bytes).collect(),
        Storage::Files(_) => Vec::new(),
    };
    let hardware = args.hardware_raid.iter();
    let hardware =
        hardware.map(|given| self::hardware(given, &args.devices, facts)).collect::<Result<_>>()?;
    Ok(Bed {
        storage,
        drives_bytes,
        hardware,
        no_cache_limit: facts.cgroup_memory.limit.reason().map(str::to_owned),
        root: rustix::process::geteuid().is_root(),
        memory_bytes: facts.memory_bytes,
    })
}

fn absolute(dir: &Path) -> Result<String> {
    let path = std::path::absolute(dir).map_err(|e| Error::os("cannot find", dir, e))?;
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| Error::input(format!("{} is not UTF-8 text, which a profile needs", path.shown())))
}

fn hardware(given: &str, drives: &[String], facts: &Facts) -> Result<Hardware> {
    let wrong = |what: &str| {
        Error::input(format!("--hardware-raid {given}: {what}"))
            .hint("write LEVEL=DEVICE with 0, 5 or 10, as in 5=/dev/sdb")
    };
    let (level, device) = given.split_once('=').ok_or_else(|| wrong("a device is missing"))?;
    let level = level.trim().trim_start_matches("raid");
    if !LEVELS.contains(&level) {
        return Err(wrong("the paper has no such level"));
    }
    let found = facts.find(device)?;
    if facts.find_all(drives)?.iter().any(|drive| drive.number == found.number) {
        return Err(wrong("that is one of the drives with which it is compared"));
    }
    Ok(Hardware { level: level.into(), device: device.into(), bytes: found.size_bytes })
}

type LeftOut = Vec<(String, String)>;

/// A profile with the rows as steps, and the rows that can't be steps.
fn profile(
    args: &ReproduceArgs,
    experiment: &Experiment,
    bed: &Bed,
    facts: &Facts,
) -> Result<(Profile, LeftOut)> {
    let mut base = bed.base(experiment);
    apply_sets(&mut base, &args.sets.set)?;
    let is_program = base.program.is_some();
    if is_program {
        if base.stack.filesystem == Filesystem::None {
            // Bare drives have none, but each row has.
            base.stack.filesystem = Filesystem::Ext4;
        }
        base = for_program(paper::with_values_of_rows(&base, experiment, bed))?;
    }
    let path = |set: &String| set.split_once('=').map_or("", |(path, _)| path.trim()).to_owned();
    let given: Vec<String> = args.sets.set.iter().map(path).collect();
    let given: Vec<&str> = given.iter().map(String::as_str).collect();
    let (mut steps, mut left_out) = (Vec::new(), Vec::new());
    for Planned { label, step } in paper::steps(experiment, bed, &base, &given) {
        match step {
            Ok(step) => steps.push(step),
            Err(why) => left_out.push((label, why)),
        }
    }
    if steps.is_empty() {
        let (label, why) = left_out.first().cloned().unwrap_or_default();
        return Err(Error::input(format!(
            "no row of {} can be run here; row {label}: {why}",
            experiment.name
        )));
    }
    let on_drives = matches!(bed.storage, Storage::Devices(_));
    let sweep = Sweep {
        steps,
        product: Vec::new(),
        program: Vec::new(),
        time: args.duration.unwrap_or(experiment.time),
        warmup: args.warmup.unwrap_or(experiment.warmup),
        repeat: args.repeat.unwrap_or(experiment.repeat),
        order: Order::Shuffled,
        seed: 1,
        between: Between {
            idle: args.idle.unwrap_or(if on_drives { IDLE } else { Duration::ZERO }),
            cool_to_c: args.cool_to.or(on_drives.then_some(COOL_TO_C)),
            cool_within: COOL_WITHIN,
            // Otherwise the repeats of a stack run back to back, and changes over time look like its effect.
            rebuild: !is_program || experiment.is_traced(),
        },
    };
    refuse_less_writes(&base, &sweep, experiment)?;
    let profile = Profile { settings: base, sweep: Some(sweep) };
    Ok((profile.by_identity(facts), left_out))
}

/// Refuses a write limit that would stop a row early.
fn refuse_less_writes(base: &Settings, sweep: &Sweep, experiment: &Experiment) -> Result<()> {
    let Some(limit) = base.run.max_writes_bytes else { return Ok(()) };
    let seconds = (sweep.time + sweep.warmup).as_secs_f64();
    for step in &sweep.steps {
        let settings = step.settings(base);
        let Some(rate) = paper::write_rate_bytes_per_s(&settings) else { continue };
        let wanted = (rate as f64 * seconds) as u64;
        if wanted > limit {
            let what = format!(
                "row {} of {} writes {} in {}, but run.max_writes allows {}",
                step.label,
                experiment.name,
                approx_size(wanted),
                approx_span(seconds),
                approx_size(limit)
            );
            return Err(Error::input(what).hint("raise run.max_writes, or measure for less time (--for)"));
        }
    }
    Ok(())
}

/// Begins the sweep in its folder or continues it; its outcome is returned separately, so that the results so far
/// can be shown first.
fn sweep_through(
    dir: &Path,
    (profile, around): (&Profile, Option<Box<dyn Around>>),
    options: &Options,
    facts: &Arc<Facts>,
    note: &Note,
) -> Result<(Folder, Result<()>)> {
    if is_sweep(dir) {
        let is_same = read_note(dir).is_some_and(|known| known.experiment == note.experiment);
        if !is_same {
            return Err(Error::input(format!("{} contains another sweep", printable::path(dir)))
                .hint("choose a new folder with --out"));
        }
    }
    let settings = &profile.settings;
    if settings.target.devices.is_empty() && !settings.is_simulated() {
        // The operator's own folder: it is not part of what a stack removes.
        let folder = Path::new(&settings.target.dir);
        refuse_system_folder("target.files.dir", folder)?;
        make_own_folder(folder, Trusting::Root)?;
    }
    let interrupts = Interrupts::watch()?;
    let mut watcher = Watcher { around, ..Watcher::new(None, &interrupts) };
    // Only what uses a drive changes from stack to stack.
    let look = || Arc::new(Facts { devices: Facts::read_devices(), ..(**facts).clone() });
    let folder = sweep::prepare(dir, profile, options, &look, &mut watcher)?;
    folder.replace(NOTE, &json::lines(note)?)?;
    announce(&folder.schedule, profile, dir);
    let ran = sweep::run(&folder, options, &look, false, &|| interrupts.count(), &mut watcher);
    watcher.progress.done();
    let ended = ran.and_then(|ended| {
        if !ended.interrupted {
            return Ok(());
        }
        let what = format!("interrupted: {} runs are left", ended.left);
        Err(Error::interrupted(what).hint("the same command continues with them"))
    });
    Ok((folder, ended))
}

fn announce(schedule: &Schedule, profile: &Profile, dir: &Path) {
    let sweep = profile.sweep.clone().unwrap_or_default();
    let writes = planned_writes(schedule, &run_settings(&profile.settings, &sweep.all_steps()));
    let unlimited = if writes.unlimited { ", and more where a class has no rate" } else { "" };
    super::output::eprint_line(&format!(
        "stacktune: {} runs into {}: {} of load and rest, with up to {} written{unlimited}; building and filling are extra",
        schedule.runs.len(),
        printable::path(dir),
        approx_span(schedule.seconds(sweep.between.idle.as_secs_f64())),
        approx_size(writes.bytes),
    ));
}

fn read_note(dir: &Path) -> Option<Note> {
    let text = regular_file::read(&dir.join(NOTE), NOTE_BYTES_MAX).ok()?;
    json::read_of_others(&text).ok()
}

/// Whether the folder is a reproduction's.
pub fn is_reproduction(dir: &Path) -> bool {
    is_sweep(dir) && read_note(dir).is_some()
}

/// `stacktune show` of a reproduction.
pub fn show(dir: &Path, json: bool) -> Result<()> {
    let shown = shown(dir)?;
    if json { print_json(&shown) } else { print(&report::reproduction(&shown)) }
}

/// What is shown of a reproduction.
///
/// # Errors
/// Failed if the folder is not one, or is damaged; input if it is of another version's experiment.
pub fn shown(dir: &Path) -> Result<Reproduction> {
    let note =
        read_note(dir).ok_or_else(|| Error::failed(format!("{} has no {NOTE}", printable::path(dir))))?;
    let experiment = find(&note.experiment)?;
    let folder = Folder::read(dir)?;
    let sweep = folder.profile()?.sweep.unwrap_or_default();
    let run = paper::Run {
        experiment: &experiment,
        sweep: &sweep,
        sets: &note.sets,
        no_cache_limit: note.no_cache_limit.as_deref(),
    };
    let mut others = Vec::new();
    // The list may come from others, so it is capped.
    if let Some(more) = note.beside.len().checked_sub(BESIDE_MAX).filter(|more| *more > 0) {
        super::output::eprint_line(&format!("stacktune: {more} more are not shown next to it"));
    }
    for dir in note.beside.iter().take(BESIDE_MAX) {
        match beside(dir, &experiment) {
            Ok(other) => others.push(other),
            // This host's results are shown all the same.
            Err(error) => {
                super::output::eprint_line(&format!("stacktune: not shown next to it: {}", error.one_line()));
            }
        }
    }
    Ok(Reproduction::of(&run, &results(&folder, &note), &others))
}

/// Each row's runs, or why there are none.
fn results(folder: &Folder, note: &Note) -> Vec<RowResult> {
    let mut rows: Vec<_> = note
        .left_out
        .iter()
        .map(|(label, why)| RowResult { label: label.clone(), runs: Vec::new(), reason: Some(why.clone()) })
        .collect();
    for (number, step) in folder.schedule.steps.iter().enumerate() {
        let mut row = RowResult { label: step.label.clone(), ..RowResult::default() };
        let mut runs: Vec<_> = folder.schedule.runs.iter().filter(|run| run.step == number).collect();
        runs.sort_by_key(|run| run.repeat);
        for run in runs {
            match folder.state(run) {
                State::Done(recording) => row.runs.push(*recording),
                State::NotRun(not_run) | State::Damaged(not_run) => row.reason = Some(not_run.why),
                State::Open | State::HalfDone => {
                    row.reason.get_or_insert_with(|| "not all of it has been run yet".into());
                }
            }
        }
        rows.push(row);
    }
    rows
}

/// Another host's reproduction, or a plain recording.
fn beside(dir: &Path, experiment: &Experiment) -> Result<Beside> {
    let name = printable::path(dir.file_name().map_or(dir, Path::new));
    if let Some(note) = read_note(dir).filter(|_| is_sweep(dir)) {
        let rows = results(&Folder::read(dir)?, &note);
        return Ok(Beside { name, rows, same: note.experiment == experiment.name });
    }
    let recording = Recording::open(dir)?;
    let label = format!("{} ({})", recording.name(), recording.summary.profile);
    let rows = vec![RowResult { label, runs: vec![recording], reason: None }];
    Ok(Beside { name, rows, same: false })
}
