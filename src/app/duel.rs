//! `record --duel`: two values of a knob, in one run or on storage that is built for each block.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rand::RngExt as _;
use serde::Serialize;

use super::inputs::options;
use super::output::{eprint_line, print, print_json};
use super::signals::Interrupts;
use super::watcher::{Around, Watcher, verify};
use crate::error::{Error, Result};
use crate::host::Facts;
use crate::printable;
use crate::runs::build_duel::{self, BlockContext, BuildDuel, DuelEnd};
use crate::runs::duel::{Begins, DuelSpec, Report};
use crate::runs::session::{Attendant as _, Duel, Event, Options, PlanShown, Session, Sides};
use crate::settings::Settings;
use crate::settings::knobs;
use crate::ui::cli::{DuelArgs, DuelRules, RunArgs, parse_set};
use crate::ui::report::{self, PlanFile};

/// A duel that the command line asks for.
#[derive(Debug)]
pub(super) enum Asked {
    /// In one run, whose settings begin with the first value.
    InRun(Box<Duel>),
    /// On storage that is built for each block.
    Builds(Box<(DuelSpec, Sides)>),
}

/// The duel that the command line asks for, if any; a single run's settings then begin with its first value.
pub(super) fn asked(args: &DuelArgs, settings: &mut Settings) -> Result<Option<Asked>> {
    let Some(asked) = &args.duel else { return Ok(None) };
    let (knob, values) = knob_and_values(asked)?;
    let (margin, seed) = margin_and_seed(&args.rules);
    let spec = DuelSpec { knob, values, figure: args.duel_figure.clone(), margin, seed };
    of_spec(spec, asked, settings).map(Some)
}

/// The duel of a specification, which the command line gives as `asked`.
pub(super) fn of_spec(spec: DuelSpec, asked: &str, settings: &mut Settings) -> Result<Asked> {
    let asked = printable::line(asked);
    let named = |error: Error| Error { what: format!("--duel {asked}: {}", error.what), ..error };
    let sides = Sides::of(&spec, settings).map_err(named)?;
    if sides.begins == Begins::Built {
        return Ok(Asked::Builds(Box::new((spec, sides))));
    }
    let duel = Duel::new(spec, settings).map_err(named)?;
    let (knob, first) = duel.first();
    knob.set(settings, first.clone());
    Ok(Asked::InRun(Box::new(duel)))
}

/// The fraction below which differences don't matter, and the seed for the order of the pairs.
pub(super) fn margin_and_seed(rules: &DuelRules) -> (f64, u64) {
    let seed = rules.duel_seed.unwrap_or_else(|| rand::rng().random_range(0..1 << 32));
    (f64::from(rules.duel_margin) / 100.0, seed)
}

/// The path and the two values of `KNOB=A,B`.
pub(super) fn knob_and_values(asked: &str) -> Result<(String, [String; 2])> {
    let wrong = |what: &str| {
        let error = Error::input(format!("--duel {}: {what}", printable::line(asked)));
        error.hint("write a knob and two values, such as io.interface=libaio,io_uring")
    };
    let (path, texts) = asked.split_once('=').ok_or_else(|| wrong("there are no values"))?;
    let (one, other) = texts.split_once(',').ok_or_else(|| wrong("there is one value only"))?;
    let value = |text: &str| parse_set(&format!("{path}={text}"));
    let ((index, first), (_, second)) = (value(one)?, value(other)?);
    Ok((knobs::all()[index].path.clone(), [first, second].map(|value| value.to_string())))
}

/// Writes a duel's report beside its recording, and prints it.
pub(super) fn finish(found: &Report, out: &Path, json: bool) -> Result<()> {
    found.write(out)?;
    if json { print_json(found) } else { print(&report::duel(found)) }
}

/// What `--dry-run --json` prints of a duel that builds.
#[derive(Debug, Serialize)]
struct OutlookFile<'a> {
    /// The plan for each value.
    plans: [PlanFile<'a>; 2],
    builds_min: usize,
    builds_max: usize,
    /// For the fewest builds, without the load's writes; null if unknown.
    writes_bytes: Option<u64>,
    /// For the fewest builds, estimated from the last time; null if unknown.
    estimated_build_s: Option<f64>,
    load_s: f64,
    wear: Vec<String>,
}

/// How to fight a duel on storage that is built for each block.
pub(super) struct Builds<'a> {
    /// The options of every run.
    pub run: &'a RunArgs,
    /// The folder to write to.
    pub out: Option<&'a Path>,
    pub warmup: Option<Duration>,
    pub keep: bool,
    pub dry_run: bool,
    pub json: bool,
    /// Whether each target is read back.
    pub verifies: bool,
}

/// Fights the duel; `around` takes care of a program that is the load.
pub(super) fn build_and_fight(
    builds: &Builds,
    (spec, sides): (DuelSpec, Sides),
    facts: &Arc<Facts>,
    interrupts: &Interrupts,
    around: Option<Box<dyn Around>>,
) -> Result<()> {
    if builds.keep {
        let what = "--keep: a duel builds for each block, so that no stack stays";
        return Err(Error::input(what).hint("leave --keep out"));
    }
    let options = options(builds.run, &sides.settings[0], false);
    let mut duel = BuildDuel::new(spec, sides, facts)?;
    if builds.dry_run {
        return dry_run(&duel, builds.json);
    }
    let (warmup, program) = (builds.warmup.unwrap_or_default(), around.is_some());
    let options = Options { warmup, program, ..options };
    // Only what uses a drive changes from build to build.
    let look = || Arc::new(Facts { devices: Facts::read_devices(), ..(**facts).clone() });
    let out = builds.out.unwrap_or_else(|| Path::new(""));
    report::duel_cost(duel.cost()).lines().for_each(|line| eprint_line(&format!("stacktune: {line}")));
    let mut watcher = Watcher { verifies: builds.verifies, around, ..Watcher::new(None, interrupts) };
    let of_block = BlockContext { options: &options, facts: &look, interrupts: &|| interrupts.count() };
    let fought = duel.fight(out, &of_block, &mut watcher);
    watcher.progress.done();
    // Whatever was measured is kept; a refused duel has made no folder.
    let found = duel.report();
    if out.is_dir() && (fought.is_ok() || !found.pairs.is_empty()) {
        finish(&found, out, builds.json)?;
    }
    match fought? {
        DuelEnd::Over => Ok(()),
        DuelEnd::Interrupted => {
            Err(Error::interrupted("interrupted: duel.json has the pairs that were measured"))
        }
    }
}

/// Prints what both values' builds do and what the whole duel costs, and does nothing else.
fn dry_run(duel: &BuildDuel, json: bool) -> Result<()> {
    let (plans, cost, values) = (duel.plans(), duel.cost(), duel.report().values);
    if json {
        return print_json(&OutlookFile {
            plans: plans.each_ref().map(PlanFile::from),
            builds_min: cost.builds,
            builds_max: cost.builds_max,
            writes_bytes: cost.writes_bytes,
            estimated_build_s: cost.build_time.map(|time| time.as_secs_f64()),
            load_s: cost.load_time.as_secs_f64(),
            wear: report::wear(&cost.wear),
        });
    }
    let of = |(side, plan): (usize, &PlanShown)| {
        format!("{}, {}\n{}\n", ["A", "B"][side], values[side], report::plan(plan))
    };
    let texts: String = plans.iter().enumerate().map(of).collect();
    print(&format!("{texts}{}", report::duel_cost(cost)))
}

impl build_duel::BuildDuelWatcher for Watcher<'_> {
    fn block(&mut self, what: &str) {
        self.notice(what);
    }

    fn opened(&mut self, session: &mut Session, time: Duration) -> Result<()> {
        self.with_around(|around, watcher| around.opened(session, time, watcher))
    }

    fn event(&mut self, event: &Event) {
        self.watch(event);
    }

    fn recorded(&mut self, session: &mut Session, dir: &Path, is_whole: bool) -> Result<()> {
        self.with_around(|around, watcher| around.recorded(session, dir, watcher))?;
        if self.verifies && is_whole { verify(session, self) } else { Ok(()) }
    }
}
