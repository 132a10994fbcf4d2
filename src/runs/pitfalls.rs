//! Can I believe it? The seven pitfalls of measuring tree-based stores on flash (Didona et al. 2021, section
//! 4), and how this run avoids each. Recordings keep the sentences as `why`.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::class::Class;
use crate::host::{LevelDrive, Levels};
use crate::meter::whole_run::steady_state::{CAPACITIES, Steadiness, SteadyState};
use crate::meter::written::Written;
use crate::settings::{Buffering, DriveState, Named, Settings};
use crate::units::{approx_size, approx_span, three_digits};

/// Data read through the page cache must be this many times as large as memory.
const MEMORY_TIMES: f64 = 2.0;
/// The share of the drives that the smallest data set of Didona et al. 2021 took (4.4).
const DRIVE_SHARE: f64 = 0.25;

/// The circumstances of a run that affect whether its figures can be believed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Circumstances {
    /// The drives at the bottom; none for runs that do not touch storage.
    pub drives: Vec<LevelDrive>,
    /// Whether only the target uses the drives, or their parts.
    pub own: bool,
    /// The drives' preparation before anything was built on them: `stack.state`.
    pub state: String,
    /// What was last written to them before the load.
    #[serde(default)]
    pub last: Prepared,
    /// The share of each drive that is used: `stack.use`, in percent.
    pub use_percent: u64,
    /// Bytes of the data.
    pub data_bytes: u64,
    /// Bytes of memory available to the page cache.
    pub memory_bytes: u64,
    /// Whether a class reads through the page cache.
    pub cached: bool,
    /// Whether the data is in files.
    pub files: bool,
    /// Bytes of a storage engine's own cache; 0 for pages.
    #[serde(default)]
    pub block_cache_bytes: u64,
}

/// What was last written to a target before its load.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Prepared {
    /// Not recorded: versions that did not record it filled the target sequentially, after everything else.
    #[default]
    Unknown,
    /// Nothing in this run: the data is an earlier run's.
    Earlier,
    /// All pages, sequentially.
    InOrder,
    /// Pages at random, after the fill.
    AtRandom,
    /// Pairs, by RocksDB.
    Loaded,
    /// A program's own data, by the program.
    ByProgram,
}

impl Prepared {
    /// In words, with the state before.
    fn after(self, state: &str) -> String {
        match self {
            Self::Unknown | Self::Earlier => state.to_owned(),
            Self::InOrder => format!("{state}, then filled in order"),
            Self::AtRandom => format!("{state}, filled, then random pages"),
            Self::Loaded => format!("{state}, then loaded with pairs"),
            Self::ByProgram => format!("{state}, then written by the program"),
        }
    }
}

/// How well a pitfall was avoided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Light {
    /// Avoided.
    Good,
    /// Partly, or not for long enough.
    Doubt,
    /// Not avoided.
    Bad,
}

impl Light {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Doubt => "doubt",
            Self::Bad => "bad",
        }
    }
}

/// A pitfall.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Pitfall {
    /// Its name: `run length`, `WA-D`, `drive state`, `data set`, `space`, `over-provisioning`, `drive types`.
    pub name: String,
    /// How well it was avoided.
    pub light: Light,
    /// The figure behind the light, in words.
    pub figure: String,
    /// The meaning or what to do, as a sentence; empty if all is well.
    pub advice: String,
}

impl Circumstances {
    /// The circumstances of a run with these settings on these devices.
    pub fn of(settings: &Settings, levels: &Levels, data_bytes: u64, memory_bytes: u64) -> Self {
        let cached = Class::ALL.into_iter().any(|class| {
            let reads =
                !class.writes() || settings.is_keyed() && class == Class::Background && gets(settings);
            // An engine's background class reads in the same way as its gets.
            let as_class = if class.writes() { Class::Point } else { class };
            settings.classes[class.index()].enabled
                && reads
                && settings.buffering_of(as_class) != Buffering::Direct
        });
        let built = settings.stack.is_built();
        let is_drive = |name: &str| levels.drives.iter().any(|drive| drive.name == name);
        // The part of a drive that the stack leaves unused is trimmed; space next to others' partitions is unknown.
        let whole = settings.stack.use_percent < 100 || levels.bottom.iter().all(|of| is_drive(&of.name));
        Self {
            drives: levels.drives.clone(),
            own: whole && (built || !settings.target.devices.is_empty()),
            state: settings.stack.state.name().to_owned(),
            last: Prepared::Earlier,
            use_percent: settings.stack.use_percent,
            data_bytes,
            memory_bytes,
            cached,
            files: if built {
                settings.stack.filesystem != crate::settings::Filesystem::None
            } else {
                settings.target.devices.is_empty()
            },
            block_cache_bytes: if settings.is_keyed() { settings.kv.rocksdb.block_cache_bytes } else { 0 },
        }
    }

    fn capacity_bytes(&self) -> u64 {
        self.drives.iter().map(|drive| drive.size_bytes).sum()
    }

    /// The models of the real drives, each listed once.
    pub fn types(&self) -> Vec<&str> {
        let mut models: Vec<&str> = self
            .drives
            .iter()
            .filter(|drive| drive.real)
            .filter_map(|drive| drive.model.as_deref())
            .collect();
        models.sort_unstable();
        models.dedup();
        models
    }
}

/// Whether the background class on pairs also gets.
fn gets(settings: &Settings) -> bool {
    settings.kv.read_percent > 0
}

/// The seven pitfalls, in the order of Didona et al. 2021, for a run of that length.
pub fn pitfalls(
    of: &Circumstances,
    duration_s: f64,
    steadiness: &Steadiness,
    written: &Written,
) -> Vec<Pitfall> {
    vec![
        run_length(duration_s, steadiness),
        wa_d(of, written),
        drive_state(of, steadiness),
        data_set(of),
        space(of, written),
        over_provisioning(of),
        drive_types(of.types().len(), &of.types().join(", ")),
    ]
}

fn pitfall(name: &str, light: Light, figure: impl Into<String>, advice: impl Into<String>) -> Pitfall {
    Pitfall { name: name.into(), light, figure: figure.into(), advice: advice.into() }
}

fn run_length(duration_s: f64, steadiness: &Steadiness) -> Pitfall {
    let figure = format!("{steadiness}, measured for {}", approx_span(duration_s));
    let (light, advice) = match (steadiness.state, steadiness.waits_for()) {
        (SteadyState::Steady, _) => (Light::Good, String::new()),
        (_, Some(waits)) => (
            if steadiness.level_since_s.is_some() { Light::Doubt } else { Light::Bad },
            format!("{waits}. What a short run shows is the burst, not what lasts."),
        ),
        (SteadyState::Changed, _) => {
            (Light::Doubt, "It has left a level and not reached another: run it for longer.".into())
        }
        (SteadyState::Warming, _) => {
            (Light::Bad, "No level has lasted yet: run it for longer, or `record --until-steady`.".into())
        }
    };
    pitfall("run length", light, figure, advice)
}

fn wa_d(of: &Circumstances, written: &Written) -> Pitfall {
    let name = "WA-D";
    if let Some((wa_d, share)) = written.wa_d().zip(written.others()) {
        let figure = format!("{}, {:.0}% of it by others", three_digits(wa_d), share * 100.0);
        let advice =
            "The drives also took what others wrote: it covers both, so there is no end-to-end figure.";
        return pitfall(name, Light::Doubt, figure, advice);
    }
    if let Some(wa_d) = written.wa_d() {
        return pitfall(name, Light::Good, three_digits(wa_d), "");
    }
    if written.application_bytes == 0 {
        return pitfall(name, Light::Good, "nothing is written", "");
    }
    if written.flash_bytes.is_some() {
        let advice = "The drive's counters advance in steps: more must be written first.";
        return pitfall(name, Light::Doubt, "too little written yet", advice);
    }
    let (figure, advice) = if of.drives.is_empty() {
        ("no drive below", "Drive wear cannot be measured here.")
    } else {
        (
            "not reported by this drive",
            "What it writes to flash is unknown; as root, drives with a known log page report it.",
        )
    };
    pitfall(name, Light::Bad, figure, advice)
}

fn drive_state(of: &Circumstances, steadiness: &Steadiness) -> Pitfall {
    let name = "drive state";
    let capacities = steadiness.capacities_written.filter(|written| *written >= CAPACITIES);
    if of.drives.is_empty() {
        return pitfall(name, Light::Bad, "no drive below", "The figures say nothing about a drive.");
    }
    if of.own && of.state == DriveState::Preconditioned.name() {
        let figure = of.last.after("preconditioned");
        let advice = match of.last {
            Prepared::InOrder => "The sequential fill afterwards overwrote the random writes.",
            Prepared::Unknown => {
                "Recorded by a version that filled the target in order after that, which undoes it for pages."
            }
            Prepared::Earlier | Prepared::AtRandom | Prepared::Loaded | Prepared::ByProgram => "",
        };
        return pitfall(name, if advice.is_empty() { Light::Good } else { Light::Doubt }, figure, advice);
    }
    if let Some(capacities) = capacities {
        return pitfall(name, Light::Good, format!("written {capacities:.1} times over"), "");
    }
    if of.own && of.state == DriveState::Trimmed.name() {
        let advice = "A fresh drive is faster than one in use: show both, with stack.state = preconditioned.";
        return pitfall(name, Light::Doubt, of.last.after("trimmed"), advice);
    }
    let advice = "What was written before decides what the drive does now: set stack.state.";
    pitfall(name, Light::Bad, "as found", advice)
}

fn data_set(of: &Circumstances) -> Pitfall {
    let name = "data set";
    let (data, memory, capacity) = (of.data_bytes as f64, of.memory_bytes as f64, of.capacity_bytes());
    let mut figure = approx_size(of.data_bytes);
    if of.memory_bytes > 0 {
        let _ = write!(figure, ", {} × memory", three_digits(data / memory));
    }
    if capacity == 0 {
        return pitfall(name, Light::Bad, figure, "There is no drive to compare it with.");
    }
    let share = data / capacity as f64;
    let _ = write!(figure, ", {:.0}% of the drives", share * 100.0);
    if of.cached && data < MEMORY_TIMES * memory {
        let advice = "Reads go through the page cache, which holds much of it: take twice the memory or more, \
                      a budget (run.cache_limit), or direct I/O.";
        return pitfall(name, Light::Bad, figure, advice);
    }
    if data < MEMORY_TIMES * of.block_cache_bytes as f64 {
        let advice = "RocksDB's own cache holds much of it: take twice that or more, or a smaller one \
                      (rocksdb.block_cache).";
        return pitfall(name, Light::Bad, figure, advice);
    }
    if share < DRIVE_SHARE {
        let advice = "A nearly empty drive behaves unlike a full one: use a quarter of it or more.";
        return pitfall(name, Light::Doubt, figure, advice);
    }
    pitfall(name, Light::Good, figure, "")
}

fn space(of: &Circumstances, written: &Written) -> Pitfall {
    let name = "space";
    match (written.space_amplification(), of.files) {
        (Some(space), _) => pitfall(name, Light::Good, format!("{space:.2} × the data set at most"), ""),
        (None, false) if !of.drives.is_empty() => {
            pitfall(name, Light::Good, "no file system: only the data", "")
        }
        (None, _) => {
            pitfall(name, Light::Bad, "not counted", "How much space the data set takes is unknown.")
        }
    }
}

fn over_provisioning(of: &Circumstances) -> Pitfall {
    let name = "over-provisioning";
    match (of.drives.is_empty(), of.own, of.use_percent) {
        (true, ..) => pitfall(name, Light::Bad, "no drive below", "There is nothing to leave free."),
        (_, true, 100) => pitfall(name, Light::Good, "none: all of each drive is used", ""),
        (_, true, percent) => {
            let figure = format!("{}% of each drive is left trimmed", 100 - percent.min(100));
            pitfall(name, Light::Good, figure, "")
        }
        (_, false, _) => {
            let advice = "The drive holds other things, and how much of it is free is unknown.";
            pitfall(name, Light::Bad, "unknown: the drive is shared", advice)
        }
    }
}

/// The pitfall for `count` types of drives with these names, for one or several recordings.
pub fn drive_types(count: usize, names: &str) -> Pitfall {
    let name = "drive types";
    match count {
        0 => pitfall(name, Light::Bad, "no real drive", "The figures say nothing about one."),
        1 => {
            let advice = "Another drive type may reverse the result: record it on others, and compare.";
            pitfall(name, Light::Doubt, format!("1: {names}"), advice)
        }
        more => pitfall(name, Light::Good, format!("{more}: {names}"), ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::LevelDevice;

    const GIB: u64 = 1 << 30;

    fn drive(model: &str, real: bool) -> LevelDrive {
        LevelDrive { name: "nvme0n1".into(), model: Some(model.into()), size_bytes: 100 * GIB, real }
    }

    fn good() -> (Circumstances, Steadiness, Written) {
        let circumstances = Circumstances {
            drives: vec![drive("A", true), drive("B", true)],
            own: true,
            state: "preconditioned".into(),
            last: Prepared::AtRandom,
            use_percent: 75,
            data_bytes: 100 * GIB,
            memory_bytes: 16 * GIB,
            cached: true,
            files: true,
            block_cache_bytes: GIB,
        };
        let steady = Steadiness { state: SteadyState::Steady, at_s: Some(700.0), ..Steadiness::default() };
        let written = Written {
            application_bytes: GIB,
            engine_bytes: GIB,
            top_bytes: Some(GIB),
            drives_bytes: Some(2 * GIB),
            host_bytes: Some(2 * GIB),
            flash_bytes: Some(3 * GIB),
            flash_unit_bytes: Some(512_000),
            data_set_bytes: 100 * GIB,
            used_bytes_max: Some(139 * GIB),
            ..Written::default()
        };
        (circumstances, steady, written)
    }

    fn lights(of: &Circumstances, steady: &Steadiness, written: &Written) -> Vec<Light> {
        pitfalls(of, 3600.0, steady, written).into_iter().map(|pitfall| pitfall.light).collect()
    }

    #[test]
    fn a_run_by_the_book_has_only_good_lights() {
        let (of, steady, written) = good();
        let all = pitfalls(&of, 3600.0, &steady, &written);
        assert!(all.iter().all(|p| p.light == Light::Good && p.advice.is_empty()), "{all:?}");
        let figures: Vec<_> = all.iter().map(|p| format!("{}: {}", p.name, p.figure)).collect();
        assert_eq!(
            figures,
            [
                "run length: steady since 11m 40s, measured for 1h 00m",
                "WA-D: 1.50",
                "drive state: preconditioned, filled, then random pages",
                "data set: 100 GiB, 6.25 × memory, 50% of the drives",
                "space: 1.39 × the data set at most",
                "over-provisioning: 25% of each drive is left trimmed",
                "drive types: 2: A, B",
            ]
        );
    }

    type Change = fn(&mut Circumstances, &mut Steadiness, &mut Written);

    #[test]
    fn each_pitfall_turns_its_own_light_alone() {
        use Light::{Bad, Doubt};
        let (of, steady, written) = good();
        let cases: [(usize, Light, Change); 15] = [
            (0, Bad, |_, steady, _| steady.state = SteadyState::Warming),
            (0, Doubt, |_, steady, _| steady.state = SteadyState::Changed),
            (1, Bad, |_, _, written| (written.host_bytes, written.flash_bytes) = (None, None)),
            (1, Doubt, |_, _, written| written.host_bytes = Some(1_000_000)),
            (2, Doubt, |of, _, _| of.state = "trimmed".into()),
            (2, Doubt, |of, _, _| of.last = Prepared::InOrder),
            (2, Doubt, |of, _, _| of.last = Prepared::Unknown),
            (2, Bad, |of, _, _| of.state = "as-is".into()),
            (3, Bad, |of, _, _| of.memory_bytes = 64 * GIB),
            (3, Doubt, |of, _, _| of.data_bytes = 49 * GIB),
            (3, Bad, |of, _, _| of.block_cache_bytes = 64 * GIB),
            (4, Bad, |_, _, written| written.used_bytes_max = None),
            (6, Doubt, |of, _, _| of.drives[1].model = Some("A".into())),
            (6, Bad, |of, _, _| of.drives.iter_mut().for_each(|drive| drive.real = false)),
            (1, Light::Good, |_, _, written| written.application_bytes = 0),
        ];
        for (number, (at, light, change)) in cases.into_iter().enumerate() {
            let (mut of, mut steady, mut written) = (of.clone(), steady.clone(), written.clone());
            change(&mut of, &mut steady, &mut written);
            let mut expected = vec![Light::Good; 7];
            expected[at] = light;
            assert_eq!(lights(&of, &steady, &written), expected, "case {number}");
        }
    }

    #[test]
    fn a_partition_beside_others_is_not_taken_for_the_whole_drive() {
        let device = |name: &str| LevelDevice { name: name.into(), stat: std::path::PathBuf::new() };
        let on = |name: &str, use_percent| {
            let mut settings = Settings::default();
            settings.target.devices = vec![format!("/dev/{name}")];
            settings.stack.use_percent = use_percent;
            let levels = Levels {
                top: vec![device(name)],
                bottom: vec![device(name)],
                drives: vec![drive("A", true)],
            };
            over_provisioning(&Circumstances::of(&settings, &levels, GIB, GIB)).figure
        };
        assert_eq!(on("nvme0n1", 100), "none: all of each drive is used");
        assert_eq!(on("nvme0n1p1", 100), "unknown: the drive is shared");
        assert_eq!(on("nvme0n1p1", 75), "25% of each drive is left trimmed");
    }

    #[test]
    fn runs_without_drives_say_nothing_about_drives() {
        let (of, steady, written) = good();
        let of = Circumstances { drives: Vec::new(), own: false, files: false, ..of };
        let written = Written { flash_bytes: None, host_bytes: None, used_bytes_max: None, ..written };
        let bad = lights(&of, &steady, &written).into_iter().filter(|light| *light == Light::Bad);
        assert_eq!(bad.count(), 6, "all but the run's length");
    }

    #[test]
    fn three_capacities_count_as_a_known_state() {
        let (mut of, mut steady, written) = good();
        of.state = "as-is".into();
        steady.capacities_written = Some(3.2);
        assert_eq!(lights(&of, &steady, &written)[2], Light::Good);
        (steady.capacities_written, steady.capacities_needed) = (Some(0.4), Some(3.0));
        (steady.state, steady.level_since_s) = (SteadyState::Warming, Some(20.0));
        let length = &pitfalls(&of, 90.0, &steady, &written)[0];
        assert_eq!(length.light, Light::Doubt);
        assert!(length.advice.starts_with("level since 20s, WA-D not reported, 0.4 of 3"), "{length:?}");
    }
}
