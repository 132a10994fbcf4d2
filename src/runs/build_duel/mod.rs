//! A duel whose values need different storage, which is built or opened anew for each block.
//!
//! Each block is its own session, and leaves an ordinary recording in the duel's folder. Its stack is taken down by
//! its journal before the next is built: if the process dies, `cleanup` takes down the current one, as after any run.
//!
//! Enters: a knob, its two values and a run's settings. Leaves: a recording of each block, and their joint report.

mod cost;

pub use cost::Cost;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::error::{Error, Kind, Result};
use crate::held_folder::HeldFolder;
use crate::host::Facts;
use crate::printable::Shown as _;
use crate::runs::duel::{Begins, Course, DuelMove, DuelSpec, PAIRS_MIN, Report, report};
use crate::runs::record::{PROFILE, Summary, make_folder, refuse_folder};
use crate::runs::session::plan_shown;
use crate::runs::session::{
    Attendant, Event, Options, PlanShown, Session, Sides, Wanted, course_of, destroy_of, headless, names_of,
    refuse_stray_consent, refuse_unallowed, survives_less,
};
use crate::settings::Settings;
use crate::settings::knobs::Conditions;
use crate::settings::profile::check;
use crate::units::{approx_size, approx_span, format_size};

/// The time limit of a block; one that takes longer loses its pair.
const BLOCK_MAX: Duration = Duration::from_hours(2);
/// A value is cut to this many characters in the name of a block's folder.
const NAME_MAX: usize = 24;

/// Whether the folder is that of such a duel.
pub fn is_duel_of_builds(dir: &Path) -> bool {
    dir.join(report::FILE).is_file() && !dir.join(PROFILE).exists()
}

/// Who watches such a duel.
pub trait BuildDuelWatcher: Attendant {
    /// A block begins, in words.
    fn block(&mut self, what: &str);
    /// A block's target is open, and its recording begins when this returns; its load may run for that time.
    ///
    /// # Errors
    /// Why it can't be recorded.
    fn opened(&mut self, session: &mut Session, time: Duration) -> Result<()>;
    /// The block's run makes progress.
    fn event(&mut self, event: &Event);
    /// A block's recording has ended, in that folder, and its target is still open; `is_whole` says whether it counts.
    ///
    /// # Errors
    /// What is wrong with the written data; the pair then does not count.
    fn recorded(&mut self, session: &mut Session, dir: &Path, is_whole: bool) -> Result<()>;
}

/// How a duel ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DuelEnd {
    /// By itself.
    Over,
    /// By a signal.
    Interrupted,
}

/// A duel that was checked, and may begin.
#[derive(Debug)]
pub struct BuildDuel {
    settings: [Settings; 2],
    course: Course,
    /// The plans for opening each value's target, as they were shown.
    plans: [PlanShown; 2],
    cost: Cost,
    /// How long the last build of each value took.
    took: [Option<Duration>; 2],
}

/// The surroundings in which a block runs.
pub struct BlockContext<'a> {
    /// How sessions are opened; only the devices in `destroy` are ever destroyed.
    pub options: &'a Options,
    /// The host as it is now.
    pub facts: &'a dyn Fn() -> Arc<Facts>,
    /// Signals so far.
    pub interrupts: &'a dyn Fn() -> usize,
}

impl BuildDuel {
    /// Checks what the duel takes. Changes nothing.
    ///
    /// # Errors
    /// Why either value can't be run on this host; input if the minimum builds write more than `run.max_writes`.
    pub fn new(spec: DuelSpec, sides: Sides, facts: &Facts) -> Result<Self> {
        let settings = sides.settings;
        let names = spec.values.clone();
        let plan = |side: usize| {
            let problems = check(&settings[side], Conditions { facts, target: None });
            let problem = problems.first().map(|problem| Error::input(problem.to_string()));
            let plan = problem.map_or_else(|| plan_shown(&settings[side], facts), Err);
            plan.map_err(|error| Error { what: format!("with {}: {}", names[side], error.what), ..error })
        };
        let plans = [plan(0)?, plan(1)?];
        let mut course = course_of(spec, Begins::Built, &settings)?;
        for (side, _) in survives_less(&settings, facts).into_iter().enumerate().filter(|(_, less)| *less) {
            course.survives_less(side);
        }
        let window = settings[0].run.window;
        let cost = Cost::of(&plans, window * course.pair_windows() as u32);
        if let (Some(limit), Some(bytes)) = (settings[0].run.max_writes_bytes, cost.writes_bytes)
            && bytes > limit
        {
            let (builds, bytes) = (cost.builds, approx_size(bytes));
            let what = format!(
                "the minimum of {builds} builds of this duel writes {bytes}, but run.max_writes is {}",
                format_size(limit)
            );
            return Err(
                Error::input(what).hint("use a smaller target, or raise the limit: --set run.max_writes=…")
            );
        }
        Ok(Self { settings, course, plans, cost, took: [None; 2] })
    }

    /// The plans for opening each value's target.
    pub fn plans(&self) -> &[PlanShown; 2] {
        &self.plans
    }

    /// The cost of the whole duel.
    pub fn cost(&self) -> &Cost {
        &self.cost
    }

    /// Its result; a duel that was ended early is unclear.
    pub fn report(&self) -> Report {
        self.course.report()
    }

    /// Runs it, with the blocks' recordings in a new folder; [`Self::report`] has the result, whatever this returns.
    ///
    /// # Errors
    /// Refused (3), before anything is done, if the operator did not allow what either value destroys; why
    /// nothing more can be built, or a target could not be taken down.
    pub fn fight(
        &mut self,
        out: &Path,
        around: &BlockContext,
        watcher: &mut dyn BuildDuelWatcher,
    ) -> Result<DuelEnd> {
        self.refuse_unallowed(around.options, &(around.facts)())?;
        refuse_folder(out)?;
        make_folder(out)?;
        let folder = HeldFolder::open(out)?;
        for number in 1.. {
            if self.course.is_over() {
                break;
            }
            if (around.interrupts)() > 0 {
                return Ok(DuelEnd::Interrupted);
            }
            let value = self.course.begin_block();
            if let Some(why) = self.over_limit(value, around.options) {
                self.course.stop(why);
                break;
            }
            watcher.block(&self.outlook(number, value));
            let name = format!("{number:03}-{}", plain(&self.course.report().values[value]));
            match self.block(value, &(&folder, &name), around, watcher) {
                Ok(Some(DuelEnd::Interrupted)) => return Ok(DuelEnd::Interrupted),
                Ok(_) => {}
                Err(Lost::Block(error)) if error.kind == Kind::Interrupted => {
                    return Ok(DuelEnd::Interrupted);
                }
                // A build that never worked, or is refused now, would fail next time too.
                Err(Lost::Block(error)) if error.kind != Kind::Failed || self.took[value].is_none() => {
                    return Err(error);
                }
                Err(Lost::Block(error)) => {
                    watcher.notice(&format!("this pair does not count: {}", error.one_line()));
                    self.course.lose_block(error.what);
                }
                Err(Lost::Host(error)) => return Err(error),
            }
        }
        Ok(DuelEnd::Over)
    }

    /// Checks both values' targets before the first is touched.
    fn refuse_unallowed(&self, options: &Options, facts: &Facts) -> Result<()> {
        let names = self.settings.iter().flat_map(|of| names_of(&of.target, &of.wal, facts));
        let names: Vec<_> = names.collect();
        options.destroy.iter().try_for_each(|name| facts.find(name).map(drop))?;
        refuse_stray_consent(&options.destroy, &names, facts)?;
        self.settings.iter().try_for_each(|settings| refuse_unallowed(settings, options, facts))
    }

    /// Why the next build would exceed the limit of writes.
    fn over_limit(&self, value: usize, options: &Options) -> Option<String> {
        let limit = self.settings[value].run.max_writes_bytes?;
        let written_bytes = options.written_bytes.load(Ordering::Relaxed);
        let bytes = written_bytes.saturating_add(self.plans[value].writes_bytes.unwrap_or(0));
        let (limit_text, written) = (format_size(limit), approx_size(written_bytes));
        (bytes > limit).then(|| format!("run.max_writes is {limit_text}, with {written} already written"))
    }

    /// The next block, with the time that the minimum builds still take, as estimated from the last ones.
    fn outlook(&self, number: usize, value: usize) -> String {
        let (report, pair) = (self.course.report(), self.course.pairs() + 1);
        let text = format!("block {number}, of pair {pair}: {}{}", report.values[value], standing(&report));
        let left = (2 * PAIRS_MIN + 1).saturating_sub(number);
        let known = self.took[0].zip(self.took[1]).filter(|_| left > 0);
        known.map_or_else(
            || text.clone(),
            |(one, other)| {
                let load = self.cost.load_time / (2 * PAIRS_MIN) as u32;
                let s = ((one + other) / 2 + load).as_secs_f64() * left as f64;
                format!(
                    "{text}; the minimum of {} builds takes about {} more (estimated)",
                    2 * PAIRS_MIN,
                    approx_span(s)
                )
            },
        )
    }

    /// Builds and measures a block, and takes its stack down. Anything that makes half a pair invalid is an
    /// error: the course is then as it was before the block.
    fn block(
        &mut self,
        value: usize,
        (folder, name): &(&HeldFolder, &str),
        around: &BlockContext,
        watcher: &mut dyn BuildDuelWatcher,
    ) -> std::result::Result<Option<DuelEnd>, Lost> {
        let (settings, facts) = (&self.settings[value], (around.facts)());
        self.refuse_other(value, &facts).map_err(Lost::Block)?;
        let options = Options {
            destroy: destroy_of(&around.options.destroy, settings, &facts),
            anew: true,
            uncached: true,
            ..around.options.clone()
        };
        let began = Instant::now();
        let mut session = Session::open(settings.clone(), options, facts, watcher).map_err(Lost::Block)?;
        let opened = watcher.opened(&mut session, BLOCK_MAX);
        let took = began.elapsed();
        let mut course = self.course.clone();
        let mut measured = false;
        let mut watch = |_: &mut Session, event: &Event| {
            watcher.event(event);
            if let Event::Window(window, _) = event
                && !measured
            {
                measured = course.window(window) != DuelMove::Stay;
            }
            Ok(!measured)
        };
        let place = opened.and_then(|()| folder.empty_folder(name));
        let has_begun = place.is_ok();
        let recorded = place.and_then(|place| {
            headless::record_watched(&mut session, place, BLOCK_MAX, around.interrupts, &mut watch)
        });
        if (around.interrupts)() > 1 {
            // I/O that does not drain is abandoned; `stacktune cleanup` takes the stack down.
            session.kill_program();
            std::mem::forget(session);
            return Ok(Some(DuelEnd::Interrupted));
        }
        let ended = recorded.and_then(|summary| judged(&summary, measured));
        let is_whole = matches!(ended, Ok(DuelEnd::Over));
        let kept = if has_begun {
            watcher.recorded(&mut session, &folder.path().join(name), is_whole)
        } else {
            Ok(())
        };
        let valid = match kept {
            Err(error) if error.kind == Kind::Stopped => Err(error),
            kept => ended.and_then(|ended| kept.map(|()| ended)),
        };
        let down = session.dismantle(false, &mut |advance| {
            watcher.step(advance);
            true
        });
        let ended = whole(valid, down.map(drop))?;
        if ended == DuelEnd::Over {
            self.course = course;
            self.took[value] = Some(took);
        }
        Ok(Some(ended))
    }

    /// Refuses to destroy anything that was not shown: the drives may have changed.
    fn refuse_other(&self, value: usize, facts: &Facts) -> Result<()> {
        let plan = plan_shown(&self.settings[value], facts)?;
        let key = |wanted: &Wanted| (wanted.typed.clone(), wanted.serial.clone(), wanted.size_bytes);
        let shown: Vec<_> = self.plans[value].destroys.iter().map(key).collect();
        match plan.destroys.iter().find(|wanted| !shown.contains(&key(wanted))) {
            None => Ok(()),
            Some(other) => {
                let what =
                    format!("{} would now be destroyed, but the plan did not show it", other.path.shown());
                Err(Error::refused(what).hint("check the drives, then start the duel again"))
            }
        }
    }
}

/// The score after the first pair: `; so far 3 pairs, tps with B -5.4 to +1.5%, 1 left out: late`.
fn standing(report: &Report) -> String {
    let (pairs, out) = (report.pairs.len(), report.dropped.len());
    if pairs + out == 0 {
        return String::new();
    }
    let between = report.figures.first().and_then(|row| row.interval).map(|(low, high)| {
        format!("{} with B {:+.1} to {:+.1}%", report.figure.name(), low * 100.0, high * 100.0)
    });
    let left_out = report.dropped.last().map(|why| format!("{out} left out: {why}"));
    let many = if pairs == 1 { "so far 1 pair".to_owned() } else { format!("so far {pairs} pairs") };
    let parts: Vec<_> = [many].into_iter().chain(between).chain(left_out).collect();
    format!("; {}", parts.join(", "))
}

/// Why a block can't count.
enum Lost {
    /// For a reason of its own; others may still work.
    Block(Error),
    /// The host is not as it was, so nothing more can be built.
    Host(Error),
}

/// How a block ended, unless it is not valid, or what was built for it could not be taken down.
fn whole(valid: Result<DuelEnd>, down: Result<()>) -> std::result::Result<DuelEnd, Lost> {
    match (valid, down) {
        (Err(error), Err(left)) => {
            Err(Lost::Host(Error { what: format!("{}; and then {}", error.what, left.what), ..left }))
        }
        (Ok(_), Err(left)) => Err(Lost::Host(left)),
        (Err(error), Ok(())) => Err(Lost::Block(error)),
        (Ok(ended), Ok(())) => Ok(ended),
    }
}

/// Whether the block was properly measured.
fn judged(summary: &Summary, measured: bool) -> Result<DuelEnd> {
    if summary.interrupted {
        return Ok(DuelEnd::Interrupted);
    }
    if let Some(why) = summary.failure.clone().or_else(|| summary.errors_line()) {
        return Err(Error::failed(why));
    }
    if !measured {
        let s = summary.warmup_s + summary.duration_s;
        return Err(Error::failed(format!("a block ended after {}, before it was measured", approx_span(s))));
    }
    Ok(DuelEnd::Over)
}

/// A value as a part of a folder's name.
fn plain(value: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
    value.chars().take(NAME_MAX).map(plain).collect()
}
