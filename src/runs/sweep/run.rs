//! Running the remaining runs of a sweep.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use super::cool;
use super::folder::{Folder, NotRun, State, is_sweep};
use super::schedule::{ScheduledRun, run_settings};
use crate::error::{Error, Kind, Result};
use crate::host::Facts;
use crate::meter::devices::member::Member;
use crate::printable::Shown as _;
use crate::runs::record::Summary;
use crate::runs::session::{
    Advance, Attendant, Event, Options, OursCheck, PlanShown, Progress, RetainedStack, Session, Wanted,
    destroy_of, headless, names_of, refuse_stray_consent,
};
use crate::settings::change::TargetIdentity;
use crate::settings::profile::sweep::Between;
use crate::settings::profile::{Sweep, SweepStep, by_identity};
use crate::settings::{Profile, Settings};
use crate::stack::paths::state_dir;
use crate::stack::runner::Runner;
use crate::stack::undo::{self, StackState as Left};

/// What a sweep reports while it runs.
#[derive(Debug)]
pub enum SweepEvent<'a> {
    /// A run begins.
    Begins {
        /// The run.
        run: &'a ScheduledRun,
        /// Its step's label.
        label: &'a str,
        /// Its number among the sweep's runs, from 1.
        number: usize,
        /// The number of runs.
        of: usize,
        /// How long its load runs.
        time: Duration,
    },
    /// A run is complete.
    Done,
    /// A run has no figures.
    NotRun(&'a NotRun),
    /// A run makes progress.
    Event(Event),
}

/// Watches a sweep.
pub trait SweepWatcher: Attendant {
    /// Reports what happens.
    fn on_event(&mut self, event: SweepEvent);
    /// The sweep is waiting for something. Returns whether to continue.
    fn waits(&mut self, what: &str) -> bool;
    /// A run's target is open, and its recording begins when this returns; its load will run for that time.
    ///
    /// # Errors
    /// Why it can't be recorded; the run then counts as failed.
    fn opened(&mut self, session: &mut Session, time: Duration) -> Result<()> {
        let _ = (session, time);
        Ok(())
    }
    /// A run was recorded in that folder, and its target is still open.
    ///
    /// # Errors
    /// What is wrong with the written data; the run then counts as failed.
    fn recorded(&mut self, session: &mut Session, dir: &Path) -> Result<()>;
}

/// How a sweep ended.
#[derive(Debug, Default)]
pub struct SweepEnd {
    /// The number of runs left to do.
    pub left: usize,
    /// Whether a signal ended it.
    pub interrupted: bool,
    /// The commands that remove a retained stack.
    pub kept: Vec<String>,
}

/// Begins the sweep of a profile in a new folder, or continues an existing one: a stack left by an earlier
/// process of that sweep is torn down.
///
/// # Errors
/// Input if the folder holds something else, or a device given to be destroyed does not belong to any step's
/// target; refused (3) if the steps destroy what the operator did not allow: then nothing was begun.
pub fn prepare(
    dir: &Path,
    profile: &Profile,
    options: &Options,
    facts: &dyn Fn() -> Arc<Facts>,
    watcher: &mut dyn SweepWatcher,
) -> Result<Folder> {
    if is_sweep(dir) {
        let folder = Folder::begin(dir, profile, options.read_only)?;
        take_away_left(&folder, watcher)?;
        refuse_unallowed(profile, options, &facts())?;
        return Ok(folder);
    }
    refuse_unallowed(profile, options, &facts())?;
    Folder::begin(dir, profile, options.read_only)
}

fn refuse_unallowed(profile: &Profile, options: &Options, facts: &Facts) -> Result<()> {
    let all = settings_of(profile, facts);
    let names: Vec<_> =
        all.iter().flat_map(|settings| names_of(&settings.target, &settings.wal, facts)).collect();
    // Naming a device that does not exist is a mistake, whichever step it was meant for.
    options.destroy.iter().try_for_each(|name| facts.find(name).map(drop))?;
    refuse_stray_consent(&options.destroy, &names, facts)?;
    let mut seen: Vec<TargetIdentity> = Vec::new();
    for settings in &all {
        let target = TargetIdentity::of(settings);
        if !seen.iter().any(|before| before.is_same(&target)) {
            crate::runs::session::refuse_unallowed(settings, options, facts)?;
            seen.push(target);
        }
    }
    Ok(())
}

/// The settings of each step, with devices by their identity.
fn settings_of(profile: &Profile, facts: &Facts) -> Vec<Settings> {
    let steps = profile.sweep.as_ref().map(Sweep::all_steps).unwrap_or_default();
    run_settings(&profile.settings, &steps).iter().map(|settings| by_identity(settings, facts)).collect()
}

/// Makes every run of the folder's schedule that is not complete. Runs that this host can't do, or that fail,
/// are recorded, and do not end the sweep. `interrupts` counts the signals so far: the first ends it cleanly,
/// a second one immediately.
///
/// # Errors
/// If the folder can't be written, or the stack can't be torn down; the rest can be continued later.
pub fn run(
    folder: &Folder,
    options: &Options,
    facts: &dyn Fn() -> Arc<Facts>,
    keep: bool,
    interrupts: &dyn Fn() -> usize,
    watcher: &mut dyn SweepWatcher,
) -> Result<SweepEnd> {
    let profile = folder.profile()?;
    let Some(sweep) = profile.sweep.clone() else {
        return Err(Error::failed(format!("{} has a profile without steps", folder.dir().shown())));
    };
    let steps = sweep.all_steps();
    let settings = settings_of(&profile, &facts());
    let kept = RetainedStack::default();
    let mut sweeper = Sweeper { folder, options, facts, interrupts, steps, settings, sweep, kept, watcher };
    let ran = sweeper.run_all();
    if interrupts() > 1 {
        // The operator no longer waits: `stacktune cleanup`, or continuing the sweep, tears it down.
        return ran;
    }
    let ended = if keep { sweeper.kept.keep() } else { sweeper.tear_down().map(|()| Vec::new()) };
    match (ran, ended) {
        (Ok(ran), Ok(kept)) => Ok(SweepEnd { kept, ..ran }),
        (Ok(_), Err(error)) | (Err(error), Ok(_)) => Err(error),
        (Err(error), Err(left)) => Err(error.and_then(&left)),
    }
}

/// Tears down the stack that an earlier process of this sweep left when it died.
fn take_away_left(folder: &Folder, watcher: &mut dyn SweepWatcher) -> Result<()> {
    let steps = &folder.schedule.steps;
    let names: Vec<_> =
        steps.iter().map(|step| format!("{}: {}", folder.schedule.profile, step.label)).collect();
    let ours = |left: &undo::Leftover| {
        let by = |process: &super::folder::Process| {
            process.pid == left.pid && process.started_unix_s <= left.since_unix_s
        };
        matches!(left.state, Left::Dead | Left::Ending)
            && names.contains(&left.profile)
            && folder.before.iter().any(by)
    };
    let ids: Vec<_> =
        undo::leftovers(&state_dir())?.into_iter().filter(|left| ours(left)).map(|left| left.id).collect();
    if ids.is_empty() {
        return Ok(());
    }
    watcher.notice(&format!("removing the stack that the sweep left behind: {}", ids.join(", ")));
    let wanted = undo::CleanupRequest { ids, ..undo::CleanupRequest::default() };
    let mut step = |advance: &Advance| {
        watcher.step(advance);
        true
    };
    let cleaned = undo::cleanup(&state_dir(), &wanted, (&Runner::default(), &OursCheck), &mut step)?;
    match cleaned.into_iter().find_map(|one| one.problem) {
        Some(problem) => Err(Error::failed(problem)),
        None => Ok(()),
    }
}

struct Sweeper<'a> {
    folder: &'a Folder,
    options: &'a Options,
    facts: &'a dyn Fn() -> Arc<Facts>,
    interrupts: &'a dyn Fn() -> usize,
    steps: Vec<SweepStep>,
    settings: Vec<Settings>,
    sweep: Sweep,
    /// The stack kept between two runs.
    kept: RetainedStack,
    watcher: &'a mut dyn SweepWatcher,
}

impl Sweeper<'_> {
    fn run_all(&mut self) -> Result<SweepEnd> {
        let runs = &self.folder.schedule.runs;
        for (at, run) in runs.iter().enumerate() {
            match self.folder.state(run) {
                State::Done(_) => continue,
                State::Damaged(NotRun { why, .. }) => {
                    self.watcher.notice(&why);
                    continue;
                }
                State::Open | State::HalfDone | State::NotRun(_) => {}
            }
            if (self.interrupts)() > 0 {
                return Ok(self.interrupted(at));
            }
            self.folder.clear(run)?;
            let (step, settings) = (&self.steps[run.step], &self.settings[run.step]);
            let time = step.time.unwrap_or_default() + step.warmup.unwrap_or_default();
            let (label, number) = (&*step.label, at + 1);
            self.watcher.on_event(SweepEvent::Begins { run, label, number, of: runs.len(), time });
            if self.sweep.between.rebuild || self.kept.is_other_than(&TargetIdentity::of(settings)) {
                self.tear_down()?;
            }
            match self.run_one(run) {
                Ok(summary) if summary.interrupted => return Ok(self.interrupted(at)),
                Ok(_) => self.watcher.on_event(SweepEvent::Done),
                Err(Failure::Of(error)) if error.kind == Kind::Interrupted => return Ok(self.interrupted(at)),
                Err(Failure::Of(error)) if error.kind == Kind::Stopped => return Err(error),
                Err(Failure::Of(error)) => self.has_no_figures(run, &NotRun::of(&error))?,
                Err(Failure::Fatal(error)) => return Err(error),
            }
        }
        Ok(SweepEnd::default())
    }

    /// Records and reports why a run has no figures. If its folder became a link or is damaged, that is
    /// reported, and it is left alone.
    fn has_no_figures(&mut self, run: &ScheduledRun, not_run: &NotRun) -> Result<()> {
        let recorded = self.folder.not_run(run, not_run);
        self.watcher.on_event(SweepEvent::NotRun(not_run));
        match (recorded, self.folder.state(run)) {
            (Err(_), State::Damaged(NotRun { why, .. })) => self.watcher.notice(&why),
            (recorded, _) => recorded?,
        }
        Ok(())
    }

    fn interrupted(&self, at: usize) -> SweepEnd {
        let is_left =
            |run: &&ScheduledRun| !matches!(self.folder.state(run), State::Done(_) | State::Damaged(_));
        let left = self.folder.schedule.runs[at..].iter().filter(is_left).count();
        SweepEnd { left, interrupted: true, kept: Vec::new() }
    }

    /// Opens the target, waits as requested, and records.
    fn run_one(&mut self, run: &ScheduledRun) -> std::result::Result<Summary, Failure> {
        let (step, settings) = (&self.steps[run.step], &self.settings[run.step]);
        let facts = (self.facts)();
        let warmup = step.warmup.unwrap_or_default();
        let options = Options {
            warmup,
            destroy: destroy_of(&self.options.destroy, settings, &facts),
            // Each run has its own count, like an ordinary recording.
            written_bytes: Arc::new(AtomicU64::new(0)),
            uncached: true,
            anew: self.sweep.between.rebuild,
            ..self.options.clone()
        };
        let mut waiting = Waiting { watcher: &mut *self.watcher, between: &self.sweep.between };
        let mut session = Session::open_on(settings.clone(), options, facts, &mut waiting, &mut self.kept)
            .map_err(Failure::Of)?;
        let time = step.time.unwrap_or_default() + warmup;
        let opened = self.watcher.opened(&mut session, time);
        let mut on_event = |event| self.watcher.on_event(SweepEvent::Event(event));
        // Made only now, so that anything others put there during a rest is not followed.
        let recorded = opened
            .and_then(|()| self.folder.make_run_dir(run))
            .and_then(|folder| headless::record(&mut session, folder, time, self.interrupts, &mut on_event));
        if (self.interrupts)() > 1 {
            session.kill_program();
            std::mem::forget(session);
            return Err(Failure::Of(Error::interrupted("interrupted twice")));
        }
        let checked = recorded.and_then(|summary| {
            if !summary.interrupted {
                self.watcher.recorded(&mut session, &self.folder.run_dir(run))?;
            }
            Ok(summary)
        });
        session.close_onto(&mut self.kept).map_err(Failure::Fatal)?;
        checked.map_err(Failure::Of)
    }

    fn tear_down(&mut self) -> Result<()> {
        let watcher = &mut *self.watcher;
        self.kept.tear_down(&mut |advance| {
            watcher.step(advance);
            true
        })
    }
}

/// Why a run has no figures.
enum Failure {
    /// For a reason of its own: the others can still run.
    Of(Error),
    /// The host is not as it was, so nothing else can be measured on it.
    Fatal(Error),
}

/// The attendant while a run's target is opened; then waits as needed to keep the runs comparable.
struct Waiting<'a> {
    watcher: &'a mut dyn SweepWatcher,
    between: &'a Between,
}

impl Attendant for Waiting<'_> {
    fn progress(&mut self, progress: Progress) -> bool {
        self.watcher.progress(progress)
    }

    fn notice(&mut self, text: &str) {
        self.watcher.notice(text);
    }

    fn consent(&mut self, wanted: Vec<Wanted>) -> Option<Vec<String>> {
        self.watcher.consent(wanted)
    }

    fn plan(&mut self, plan: PlanShown) -> Option<Vec<String>> {
        self.watcher.plan(plan)
    }

    fn step(&mut self, advance: &Advance) -> bool {
        self.watcher.step(advance)
    }

    fn before_load(&mut self, members: &[Member]) -> Result<Vec<String>> {
        cool::wait(self.between, members, &mut |what| self.watcher.waits(what))
    }
}
