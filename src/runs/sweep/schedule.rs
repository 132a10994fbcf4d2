//! From steps and repeats to an order of runs.

use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

use crate::class::Class;
use crate::error::{Error, Result};
use crate::settings::change::TargetIdentity;
use crate::settings::profile::sweep::{Order, Sweep, SweepStep};
use crate::settings::{Profile, Settings};

/// The version of `sweep.json`; a reader refuses newer ones.
pub const SCHEMA: u32 = 1;
/// The longest part of a label in a folder's name, in characters.
const FOLDER_LABEL_CHARS_MAX: usize = 40;

/// The content of `sweep.json`: what is run, and in which order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    /// The layout's version.
    pub schema: u32,
    /// stacktune's version.
    pub stacktune: String,
    /// When it began, in seconds since 1970.
    pub started_unix_s: u64,
    /// The profile's name.
    pub profile: String,
    /// Whether nothing was opened for writing.
    pub read_only: bool,
    /// `shuffled` or `as-written`.
    pub order: String,
    /// The seed that shuffled them.
    pub seed: u64,
    /// Whether runs on the same stack are kept together, since rebuilding it for each was not requested.
    pub kept_together: bool,
    /// The steps, in the order of tables.
    pub steps: Vec<StepShown>,
    /// The runs, in their order.
    pub runs: Vec<ScheduledRun>,
}

/// A step, for scripts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepShown {
    /// Its name.
    pub label: String,
    /// The knobs that it turns, with their values as profiles write them.
    pub turns: Vec<(String, String)>,
    /// Seconds measured in each run.
    pub for_s: f64,
    /// Seconds of warm-up.
    pub warmup_s: f64,
    /// How often it is run.
    pub repeat: u32,
}

/// A run of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduledRun {
    /// Its folder within the sweep's.
    pub dir: String,
    /// Its step, from 0.
    pub step: usize,
    /// The number of the repeat, from 1.
    pub repeat: u32,
    /// The number of its target, from 0: runs with the same number share a stack.
    pub target: usize,
}

/// Writes of the runs, as far as they are known in advance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Writes {
    /// Bytes written by the load of all runs.
    pub bytes: u64,
    /// Whether some class writes as fast as it can: its bytes are not counted.
    pub unlimited: bool,
}

/// The settings of each step, by its number.
pub fn run_settings(base: &Settings, steps: &[SweepStep]) -> Vec<Settings> {
    steps.iter().map(|step| step.settings(base)).collect()
}

impl Schedule {
    /// The schedule of a profile's steps.
    ///
    /// # Errors
    /// Input if it has none.
    pub fn of(profile: &Profile, read_only: bool, started_unix_s: u64) -> Result<Self> {
        let base = &profile.settings;
        let Some(sweep) = &profile.sweep else {
            return Err(Error::input(format!("profile `{}` has no steps", base.name)));
        };
        let steps = sweep.all_steps();
        let settings = run_settings(base, &steps);
        let targets = targets(&settings);
        let kept_together = !sweep.between.rebuild && takes_rebuilding(&settings, &targets);
        let ordered = order(sweep, &steps, &targets, kept_together);
        let run = |(step, repeat): (usize, u32)| ScheduledRun {
            dir: dir(step, steps.len(), &steps[step].label, repeat),
            step,
            repeat,
            target: targets[step],
        };
        Ok(Self {
            schema: SCHEMA,
            stacktune: env!("CARGO_PKG_VERSION").to_owned(),
            started_unix_s,
            profile: base.name.clone(),
            read_only,
            order: sweep.order.name().to_owned(),
            seed: sweep.seed,
            kept_together,
            runs: ordered.into_iter().map(run).collect(),
            steps: steps.iter().map(StepShown::of).collect(),
        })
    }

    /// How long the load of all runs and the idle time before each take, in seconds. Building, filling and
    /// cooling are extra.
    pub fn seconds(&self, idle_s: f64) -> f64 {
        let of = |step: &StepShown| f64::from(step.repeat) * (step.for_s + step.warmup_s + idle_s);
        self.steps.iter().map(of).sum()
    }

    /// How often a target is opened after a different one, or first; a stack is then built.
    pub fn openings(&self, target: usize, rebuild: bool) -> usize {
        let begins = |at: &usize| rebuild || *at == 0 || self.runs[*at - 1].target != target;
        (0..self.runs.len()).filter(|at| self.runs[*at].target == target).filter(begins).count()
    }
}

impl StepShown {
    fn of(step: &SweepStep) -> Self {
        let seconds = |time: Option<std::time::Duration>| time.map_or(0.0, |time| time.as_secs_f64());
        Self {
            label: step.label.clone(),
            turns: step.turned(),
            for_s: seconds(step.time),
            warmup_s: seconds(step.warmup),
            repeat: step.repeat.unwrap_or(1),
        }
    }
}

/// The number of each step's target: steps with the same number open the same one.
fn targets(settings: &[Settings]) -> Vec<usize> {
    let mut firsts: Vec<TargetIdentity> = Vec::new();
    let number = |of| {
        let of = TargetIdentity::of(of);
        let known = firsts.iter().position(|first| first.is_same(&of));
        known.unwrap_or_else(|| {
            firsts.push(of);
            firsts.len() - 1
        })
    };
    settings.iter().map(number).collect()
}

/// Whether switching between targets destroys or refills anything. It does if any of them is built, or two
/// share a device or a folder; otherwise each keeps its own fill.
fn takes_rebuilding(settings: &[Settings], targets: &[usize]) -> bool {
    let first = |number: usize| &settings[targets.iter().position(|&of| of == number).unwrap_or(0)];
    let count = targets.iter().max().map_or(0, |last| last + 1);
    let places: Vec<_> = (0..count).flat_map(|number| places(first(number))).collect();
    let shared = (1..places.len()).any(|at| places[..at].contains(&places[at]));
    count > 1 && (shared || (0..count).any(|number| first(number).stack.is_built()))
}

/// The places of the target's data.
fn places(settings: &Settings) -> Vec<&str> {
    let target = &settings.target;
    let data: Vec<_> = if target.devices.is_empty() {
        vec![target.dir.as_str()]
    } else {
        target.devices.iter().map(String::as_str).collect()
    };
    data.into_iter().chain(settings.wal.target.as_deref()).collect()
}

/// The runs, one per step and repeat. Repeats come in rounds, each with every step once, so that changes over
/// time affect all steps alike.
fn order(sweep: &Sweep, steps: &[SweepStep], targets: &[usize], kept_together: bool) -> Vec<(usize, u32)> {
    let all: Vec<usize> = (0..steps.len()).collect();
    let repeat = |step: usize| steps[step].repeat.unwrap_or(1);
    if sweep.order == Order::AsWritten {
        return all.into_iter().flat_map(|step| (1..=repeat(step)).map(move |k| (step, k))).collect();
    }
    let mut rng = SmallRng::seed_from_u64(sweep.seed);
    let mut groups: Vec<Vec<usize>> = if kept_together {
        let count = targets.iter().max().map_or(0, |last| last + 1);
        (0..count)
            .map(|target| all.iter().copied().filter(|&step| targets[step] == target).collect())
            .collect()
    } else {
        vec![all]
    };
    groups.shuffle(&mut rng);
    let mut runs = Vec::new();
    for group in &groups {
        let rounds = group.iter().map(|&step| repeat(step)).max().unwrap_or(0);
        for round in 1..=rounds {
            let mut once: Vec<_> = group.iter().copied().filter(|&step| repeat(step) >= round).collect();
            once.shuffle(&mut rng);
            runs.extend(once.into_iter().map(|step| (step, round)));
        }
    }
    runs
}

/// `03-page_size=4KiB-r2`.
fn dir(step: usize, steps: usize, label: &str, repeat: u32) -> String {
    let width = steps.to_string().len().max(2);
    let plain = |c: char| if c.is_ascii_alphanumeric() || "=._+".contains(c) { c } else { '-' };
    let label: String = label.chars().map(plain).take(FOLDER_LABEL_CHARS_MAX).collect();
    format!("{:0width$}-{label}-r{repeat}", step + 1)
}

/// Writes of the runs' load: at each class's rate, and at most `run.max_writes` per run. Building and filling
/// are extra.
pub fn planned_writes(schedule: &Schedule, settings: &[Settings]) -> Writes {
    let mut writes = Writes { bytes: 0, unlimited: false };
    for run in &schedule.runs {
        let step = &schedule.steps[run.step];
        let of = &settings[run.step];
        let seconds = step.for_s + step.warmup_s;
        let writing = Class::ALL.into_iter().filter(|class| class.writes() && !schedule.read_only);
        let rates = writing.map(|class| &of.classes[class.index()]).filter(|class| class.enabled);
        let bytes: Option<Vec<f64>> =
            rates.map(|class| Some(class.rate_bytes_per_s? as f64 * seconds)).collect();
        match (bytes.map(|bytes| bytes.iter().sum::<f64>() as u64), of.run.max_writes_bytes) {
            (Some(bytes), limit) => writes.bytes += bytes.min(limit.unwrap_or(u64::MAX)),
            (None, Some(limit)) => writes.bytes += limit,
            (None, None) => writes.unlimited = true,
        }
    }
    writes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::profile::parse;

    fn schedule(text: &str) -> Schedule {
        Schedule::of(&parse(text, "s.toml").unwrap(), false, 0).unwrap()
    }

    fn shown(schedule: &Schedule) -> Vec<(usize, u32)> {
        schedule.runs.iter().map(|run| (run.step, run.repeat)).collect()
    }

    #[test]
    fn the_seed_alone_decides_the_order() {
        let text = |seed| {
            format!("[sweep]\nseed = {seed}\nrepeat = 3\n[sweep.product]\nscan.depth = [1, 2, 4, 8, 16]")
        };
        let (one, again, other) = (schedule(&text(1)), schedule(&text(1)), schedule(&text(2)));
        assert_eq!(one, again);
        assert_ne!(shown(&one), shown(&other));
    }

    #[test]
    fn each_round_has_every_step_with_that_many_repeats_once() {
        let text = "[sweep]\nrepeat = 2\n[[step]]\nlabel = \"a\"\n[[step]]\nlabel = \"b\"\nrepeat = 3\n[[step]]\nlabel = \"c\"";
        let runs = shown(&schedule(text));
        let round = |from: usize, to: usize| {
            let mut steps: Vec<_> = runs[from..to].to_vec();
            steps.sort_unstable();
            steps
        };
        assert_eq!(round(0, 3), [(0, 1), (1, 1), (2, 1)]);
        assert_eq!(round(3, 6), [(0, 2), (1, 2), (2, 2)]);
        assert_eq!(runs[6..], [(1, 3)]);
    }

    #[test]
    fn pairs_loaded_differently_are_another_target() {
        let engine = "[load]\nengine = \"rocksdb\"\n";
        let of = |engine: &str, axis: &str| {
            let schedule = schedule(&format!("{engine}[sweep]\nrepeat = 2\n[sweep.product]\n{axis}"));
            (
                schedule.kept_together,
                (0..3).map(|target| schedule.openings(target, false)).collect::<Vec<_>>(),
            )
        };
        assert_eq!(of(engine, "rocksdb.fanout = [4, 8, 10]"), (true, vec![1, 1, 1]));
        assert_eq!(of(engine, "rocksdb.bloom_bits = [0, 5, 10]"), (true, vec![1, 1, 1]));
        assert_eq!(of(engine, "rocksdb.compactions = [1, 2, 4]"), (false, vec![1, 0, 0]));
        assert_eq!(of("", "rocksdb.fanout = [4, 8, 10]"), (false, vec![1, 0, 0]));
    }

    #[test]
    fn as_written_means_step_by_step() {
        let text = "[sweep]\norder = \"as-written\"\nrepeat = 2\n[sweep.product]\nscan.depth = [1, 2]";
        assert_eq!(shown(&schedule(text)), [(0, 1), (0, 2), (1, 1), (1, 2)]);
    }

    const STACKS: &str =
        "[sweep.product]\nstack.filesystem = [\"ext4\", \"xfs\", \"f2fs\"]\nscan.depth = [1, 2, 4]";

    #[test]
    fn runs_on_one_stack_stay_together_and_stacks_are_shuffled() {
        let orders: Vec<Vec<usize>> = (0..20)
            .map(|seed| {
                let schedule = schedule(&format!("[sweep]\nrepeat = 2\nseed = {seed}\n{STACKS}"));
                assert!(schedule.kept_together);
                let mut targets: Vec<_> = schedule.runs.iter().map(|run| run.target).collect();
                assert_eq!(
                    (0..3).map(|target| schedule.openings(target, false)).collect::<Vec<_>>(),
                    [1, 1, 1]
                );
                targets.dedup();
                targets
            })
            .collect();
        assert!(orders.iter().all(|order| order.len() == 3), "{orders:?}");
        assert!(orders.iter().any(|order| order != &orders[0]), "{orders:?}");
    }

    #[test]
    fn with_a_rebuild_before_each_run_all_are_shuffled() {
        let schedule = schedule(&format!("[sweep]\nrepeat = 2\nrebuild = true\n{STACKS}"));
        assert!(!schedule.kept_together);
        assert_eq!((0..3).map(|target| schedule.openings(target, true)).collect::<Vec<_>>(), [6, 6, 6]);
        let mut targets: Vec<_> = schedule.runs.iter().map(|run| run.target).collect();
        targets.dedup();
        assert!(targets.len() > 3, "{targets:?}");
    }

    #[test]
    fn targets_in_different_places_keep_their_fill_and_are_mixed() {
        let apart = "[sweep.product]\ntarget.files.dir = [\"/a\", \"/b\"]";
        assert!(!schedule(apart).kept_together);
        let shared = "[sweep.product]\ntarget.files.count = [1, 2]";
        assert!(schedule(shared).kept_together, "the same folder, filled anew for each");
        assert!(!schedule("[sweep.product]\nscan.depth = [1, 2]").kept_together);
    }

    #[test]
    fn folders_are_named_after_number_label_and_repeat() {
        assert_eq!(dir(2, 12, "page_size=4KiB scan.depth=8", 2), "03-page_size=4KiB-scan.depth=8-r2");
        assert_eq!(dir(2, 1000, "a/../ä", 1), "0003-a-..---r1");
    }

    #[test]
    fn what_may_be_written_is_the_sum_over_the_runs() {
        let of = |text: &str| {
            let base = parse(text, "s.toml").unwrap();
            let steps = base.sweep.as_ref().unwrap().all_steps();
            planned_writes(&schedule(text), &run_settings(&base.settings, &steps))
        };
        let rates = "[wal]\nrate = \"1MB/s\"\n[background]\nrate = \"3MB/s\"\n";
        let steps = "[sweep]\nfor = \"8s\"\nwarmup = \"2s\"\nrepeat = 3\n[[step]]\n";
        assert_eq!(of(&format!("{rates}{steps}")), Writes { bytes: 120_000_000, unlimited: false });
        let limited = format!("[run]\nmax_writes = \"1MiB\"\n{rates}{steps}");
        assert_eq!(of(&limited), Writes { bytes: 3 << 20, unlimited: false });
        let free = format!("{steps}wal.rate = \"none\"");
        assert_eq!(of(&free), Writes { bytes: 0, unlimited: true });
    }
}
