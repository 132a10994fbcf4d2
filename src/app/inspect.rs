//! Commands that inspect and run nothing.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::inputs::{facts, facts_with_versions};
use super::output::{print, print_json};
use crate::error::{Error, Result};
use crate::host::{Facts, OtherLoad, Trusting, make_own_folder};
use crate::load::calibrate as calibration;
use crate::printable;
use crate::runs::build_duel::is_duel_of_builds;
use crate::runs::record::Recording;
use crate::runs::session::preflight;
use crate::runs::session::{Preflight, layers_noted};
use crate::runs::sweep::{Folder, is_sweep};
use crate::settings::Settings;
use crate::settings::knobs::Conditions;
use crate::settings::profile::{ProfileFolder, Source, Sweep};
use crate::ui::report::{self, Shown, SweepShown, profiles::ProfileRow};

/// How long each kind of load is measured.
const CALIBRATION_TIME: Duration = Duration::from_millis(500);
/// How many turns worker and bare loop take.
const PAIRS_ROUNDS: usize = 151;
/// The length of a turn: short, so that both see the same speed of a shared processor, and the same flush or merge.
const PAIRS_TIME: Duration = Duration::from_millis(50);

/// `stacktune show`.
pub fn show(dir: &Path, json: bool) -> Result<()> {
    #[cfg(feature = "proofs")]
    if super::reproduce::is_reproduction(dir) {
        return super::reproduce::show(dir, json);
    }
    if is_sweep(dir) {
        let shown = SweepShown::of(&Folder::read(dir)?);
        return if json { print_json(&shown) } else { print(&report::sweep(&shown)) };
    }
    let recording = single(dir)?;
    if json { print_json(&Shown::of(&recording)) } else { print(&report::show(&recording)) }
}

/// `stacktune show --over-time`.
pub fn show_over_time(dir: &Path, json: bool) -> Result<()> {
    let over_time = report::OverTime::of(&single(dir)?)?;
    if json { print_json(&over_time) } else { print(&over_time.to_string()) }
}

/// Opens a single recording; a sweep has many, and so has a duel that built the storage for each block.
pub fn single(dir: &Path) -> Result<Recording> {
    let is_duel = is_duel_of_builds(dir);
    if !is_sweep(dir) && !is_duel {
        return Recording::open(dir);
    }
    let runs = std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    let first = runs.filter(|path| path.is_dir()).min();
    let such = first.map_or_else(String::new, |run| format!(", such as {}", printable::path(&run)));
    let (dir, blocks) = (printable::path(dir), "give the recording of one of its blocks");
    if is_duel {
        let what = format!("{dir} holds a duel: duel.json has its verdict and all pairs");
        return Err(Error::input(what).hint(format!("{blocks}{such}")));
    }
    Err(Error::input(format!("{dir} holds a sweep")).hint(format!("give one of its runs{such}")))
}

/// `stacktune compare`.
pub fn compare(dirs: &[PathBuf], json: bool) -> Result<()> {
    let recordings: Vec<_> = dirs.iter().map(|dir| single(dir)).collect::<Result<_>>()?;
    let comparison = report::compare(&recordings)?;
    if json { print_json(&comparison) } else { print(&comparison.to_string()) }
}

/// `stacktune cost`.
pub fn cost(
    dirs: &[PathBuf],
    data_bytes: Option<u64>,
    rate_bytes_per_s: Option<u64>,
    json: bool,
) -> Result<()> {
    let [a, b] = dirs else {
        return Err(Error::input("the map needs exactly two recordings").hint("stacktune cost DIR DIR"));
    };
    let recordings = [single(a)?, single(b)?];
    let mb_per_s = rate_bytes_per_s.map(|rate| rate as f64 / 1e6);
    let map = report::CostMap::of([&recordings[0], &recordings[1]], data_bytes, mb_per_s)?;
    if json { print_json(&map) } else { print(&map.to_string()) }
}

/// `stacktune knobs`.
pub fn knobs(json: bool) -> Result<()> {
    let facts = facts();
    let rows = report::knobs::rows(Conditions { facts: &facts, target: None });
    if json { print_json(&rows) } else { print(&report::knobs::text(&rows)) }
}

/// `stacktune profiles`.
pub fn profiles(json: bool) -> Result<()> {
    let row = |entry: crate::settings::profile::Entry| ProfileRow {
        steps: entry.steps,
        about: entry.error.map_or(entry.about, |error| format!("broken: {error}")),
        name: entry.name,
        from: match entry.source {
            Source::BuiltIn => report::profiles::BUILT_IN.into(),
            Source::File(path) => printable::path(&path),
        },
    };
    let rows: Vec<_> = ProfileFolder::of_user().list()?.into_iter().map(row).collect();
    if json { print_json(&rows) } else { print(&report::profiles::text(&rows)) }
}

/// `stacktune host`.
pub fn host(json: bool) -> Result<()> {
    let facts = facts_with_versions();
    if json {
        print_json(&*facts)
    } else {
        print(&report::host::describe(&facts, OtherLoad::measure().as_ref()))
    }
}

/// `stacktune calibrate`.
pub fn calibrate(json: bool) -> Result<()> {
    let (dir, made) = calibration_folder()?;
    let costs = calibration::calibrate(&dir, CALIBRATION_TIME, &facts());
    // Only empty folders are removed: anything else in them stays.
    made.iter().take_while(|dir| std::fs::remove_dir(dir).is_ok()).for_each(drop);
    let costs = costs?;
    if json {
        return print_json(&costs);
    }
    let mut text = String::from(
        "CPU time of this process per I/O, on a file of 64 MiB in the page cache\n\n\
         interface  how                                 CPU ns  user ns  system ns      I/O/s  × unpaced\n",
    );
    let resolved =
        |ns: Option<f64>| ns.map_or_else(|| crate::ui::text::NONE.to_owned(), |ns| format!("{ns:.0}"));
    for cost in costs {
        let (cpu, user, system) = (cost.cpu_ns, resolved(cost.user_ns), resolved(cost.system_ns));
        let over = cost.over_unpaced.map_or_else(String::new, |over| format!(" {over:>10.2}"));
        let _ = writeln!(
            text,
            "{:<10} {:<33} {cpu:>7.0} {user:>8} {system:>10} {:>10.0}{over}",
            cost.interface, cost.how, cost.iops
        );
    }
    text.push_str(
        "\nA class with a rate adds a sleep to the intended starts that share one: 6 at 100,000 per second and\n\
         run.pace = 50us. A longer run.pace costs less, and adds up to its length to the response latency.\n",
    );
    print(&text)
}

/// `stacktune calibrate --pairs`.
pub fn calibrate_pairs(json: bool) -> Result<()> {
    let (dir, made) = calibration_folder()?;
    let costs = calibration::pairs::calibrate(&dir, PAIRS_TIME, PAIRS_ROUNDS);
    made.iter().take_while(|dir| std::fs::remove_dir(dir).is_ok()).for_each(drop);
    let costs = costs?;
    if json {
        return print_json(&costs);
    }
    let mut text = String::from(
        "CPU time of the calling thread per operation on RocksDB: 100,000 pairs of 16 + 400 B, nothing synced\n\n\
         class       worker ns   bare ns   ratio\n",
    );
    for cost in costs {
        let (worker, bare, (low, high)) = (cost.worker_ns, cost.bare_ns, cost.range);
        let _ = writeln!(
            text,
            "{:<10} {worker:>10.0} {bare:>9.0}   {:.3} [{low:.3}–{high:.3}]",
            cost.class, cost.ratio
        );
    }
    print(&text)
}

/// A folder on disk, in the user's cache, and the parents made for it, innermost first.
fn calibration_folder() -> Result<(PathBuf, Vec<PathBuf>)> {
    let dir = crate::settings::paths::expand_home("~/.cache/stacktune")?;
    let made = dir.ancestors().take_while(|dir| !dir.exists()).map(PathBuf::from).collect();
    make_own_folder(&dir, Trusting::Caller)?;
    Ok((dir, made))
}

/// `stacktune check`: also examines the target, and creates and writes nothing.
pub fn check(profile: &str, sets: &[String]) -> Result<()> {
    let (profile, demo) = super::inputs::profile(Some(profile), sets)?;
    let facts = facts();
    let settings = profile.settings;
    if let Some(sweep) = &profile.sweep {
        return check_steps(&settings, sweep, &facts);
    }
    let Preflight { problems, notes, .. } = preflight(&settings, demo, &facts);
    if problems.is_empty() {
        let mut text = format!("{}: this host can run all of it\n", settings.name);
        notes.iter().for_each(|note| _ = writeln!(text, "  note: {}", note.replace('\n', "\n    ")));
        return print(&text);
    }
    // Shown even to those who may not run them.
    let layers = layers_noted(&settings).into_iter().map(|note| format!("note: {note}"));
    let problems: Vec<_> =
        problems.into_iter().chain(layers).map(|problem| problem.replace('\n', "\n  ")).collect();
    Err(Error::input(format!("{} can't run here:\n  {}", settings.name, problems.join("\n  "))))
}

/// Checks each step; a problem of several is reported once, with their labels.
fn check_steps(base: &Settings, sweep: &Sweep, facts: &Facts) -> Result<()> {
    let steps = sweep.all_steps();
    let (mut problems, mut notes) = (BySteps::default(), BySteps::default());
    for step in &steps {
        let settings = step.settings(base);
        let found = preflight(&settings, false, facts);
        let idle = step.turns.iter().filter_map(|(path, _)| {
            let why = crate::settings::knobs::find(path)?.inactive(&settings)?;
            Some(format!("`{path}` has no effect: {why}"))
        });
        notes.add(&step.label, found.notes.into_iter().chain(idle));
        problems.add(&step.label, found.problems.into_iter());
    }
    let mut text = if problems.0.is_empty() {
        format!("{}: this host can run all {} steps\n", base.name, steps.len())
    } else {
        format!("{}: this host can't run all of its {} steps:\n", base.name, steps.len())
    };
    problems.write(&mut text, "", steps.len());
    notes.write(&mut text, "note: ", steps.len());
    if problems.0.is_empty() { print(&text) } else { Err(Error::input(text.trim_end())) }
}

/// Sentences, each with its steps.
#[derive(Default)]
struct BySteps(Vec<(String, Vec<String>)>);

impl BySteps {
    fn add(&mut self, label: &str, texts: impl Iterator<Item = String>) {
        for text in texts {
            match self.0.iter_mut().find(|(known, _)| *known == text) {
                Some((_, labels)) => labels.push(label.to_owned()),
                None => self.0.push((text, vec![label.to_owned()])),
            }
        }
    }

    fn write(&self, out: &mut String, prefix: &str, steps: usize) {
        for (text, labels) in &self.0 {
            let which = if labels.len() == steps { "all steps".to_owned() } else { labels.join(", ") };
            let _ = writeln!(out, "  {prefix}{which}: {}", text.replace('\n', "\n    "));
        }
    }
}
