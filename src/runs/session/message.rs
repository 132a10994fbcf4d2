//! The two directions: commands from the operator, and events to the screen and the recorder.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::class::Class;
use crate::error::Error;
use crate::host::{Facts, TargetFacts};
pub use crate::load::volume::Progress;
use crate::meter::context::ByTrace;
use crate::meter::whole_run::totals::Totals;
use crate::meter::window::{LedgerLine, Window};
use crate::runs::duel::{Figure, Report};
use crate::runs::pitfalls::Circumstances;
use crate::settings::Settings;
use crate::settings::knobs::Value;
use crate::stack::plan::{DriveWear, Properties};
pub use crate::stack::supervise::Advance;

/// Takes a running trace's figures of a window, given the window's length in nanoseconds.
#[derive(Clone)]
pub struct Tap {
    take: Arc<TakeFn>,
    note: Option<Arc<NoteFn>>,
}

type TakeFn = dyn Fn(u64) -> ByTrace + Send + Sync;
type NoteFn = dyn Fn(u64, String) + Send + Sync;

impl Tap {
    /// A tap that takes them by this function.
    pub fn of(take: impl Fn(u64) -> ByTrace + Send + Sync + 'static) -> Self {
        Self { take: Arc::new(take), note: None }
    }

    /// The same, with notes on the run's moments, by the monotonic clock, for the trace.
    #[must_use]
    pub fn noting(self, note: impl Fn(u64, String) + Send + Sync + 'static) -> Self {
        Self { note: Some(Arc::new(note)), ..self }
    }

    /// Notes a moment.
    pub(super) fn note(&self, at_ns: u64, text: String) {
        if let Some(note) = &self.note {
            note(at_ns, text);
        }
    }

    /// Takes the figures since the last call.
    pub(super) fn take(&self, length_ns: u64) -> ByTrace {
        (self.take)(length_ns)
    }
}

impl PartialEq for Tap {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.take, &other.take)
    }
}

impl fmt::Debug for Tap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tap")
    }
}

/// A command of the operator.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// Turn a knob, by its path.
    Turn {
        /// The knob's path.
        knob: String,
        /// The value.
        value: Value,
    },
    /// Undo the last turn.
    Undo,
    /// Turn several knobs back to their earlier values, by path; through a plan if that builds the target anew.
    TurnBack(Vec<(String, Value)>),
    /// Pause everything, or resume.
    Pause(bool),
    /// Note that the drives are traced from now on, or no longer.
    Traced(Option<Tap>),
    /// Restart a class that was stopped by errors.
    Restart(Class),
    /// Report what it takes to build the target anew with these knobs turned: path and value.
    Plan(Vec<(String, Value)>),
    /// Carry out that plan, with what the operator typed for each device that is destroyed.
    Build {
        /// [`PlanShown::number`].
        plan: u64,
        /// The words.
        typed: Vec<String>,
    },
    /// Take all settings of a profile, opening its target. If a stack is in place, the plan is shown first,
    /// and waits for [`Command::Build`].
    Open {
        /// The settings.
        settings: Box<Settings>,
        /// Steps of the profile, none of which this run does ([`Options::unused_steps`](super::Options)).
        unused_steps: usize,
    },
    /// Start a recording in a new folder, of a profile of that name, or stop it.
    Record(Option<(PathBuf, String)>),
    /// Start a duel, or end the current one.
    Duel(Option<DuelAsked>),
    /// Allow a device's content to be destroyed: by its serial, or by its name if it has none.
    Consent(Vec<String>),
    /// Drain, take down what was built, and end.
    Quit,
    /// Drain and end; the stack stays.
    QuitKeeping,
}

/// A report of the run.
#[derive(Debug, Clone)]
pub enum Event {
    /// A run begins, with its own clock and ledger.
    Began,
    /// The run's state changed.
    Status(Arc<Status>),
    /// A fill or another long step makes progress.
    Progress(Progress),
    /// A window ended; totals so far.
    Window(Arc<Window>, Arc<Totals>),
    /// Bytes that this process has written so far, over all its sessions.
    Written(u64),
    /// A ledger line began, or has news (same number).
    Ledger(Arc<LedgerLine>),
    /// A turn was acknowledged (`in_force` once the old I/O has drained), or refused with the reason.
    Turned {
        /// The knob's path.
        knob: String,
        /// The outcome.
        outcome: Result<bool, String>,
    },
    /// A sentence for the operator.
    Notice(String),
    /// The last lines that a program printed, each after its phase.
    Printed(Vec<String>),
    /// A duel began, has another pair, or is over.
    Duel(Arc<DuelShown>),
    /// Devices hold data: ask the operator to type the words shown with it.
    ConsentWanted(Vec<Wanted>),
    /// The plan to build the target anew, or for a turn that destroys something; or why there is none. It
    /// waits for [`Command::Build`].
    Planned(Result<Arc<PlanShown>, String>),
    /// A step of building or tearing down makes progress.
    Step(Advance),
    /// The stack stays: the commands that remove it.
    Retained(Vec<String>),
    /// Building failed; the run is back to these settings, as before.
    Former(Box<Settings>),
    /// A recording began or ended, with its folder.
    Recording(Option<PathBuf>),
    /// The run can't continue (the screen stays), or has ended.
    Ended(Result<(), Error>),
}

/// A request to compare two values of a knob.
#[derive(Debug, Clone, PartialEq)]
pub struct DuelAsked {
    /// The knob's path.
    pub knob: String,
    /// The values, as in a profile.
    pub values: [String; 2],
    /// The deciding figure.
    pub figure: Figure,
}

/// The state of a duel.
#[derive(Debug, Clone, PartialEq)]
pub struct DuelShown {
    /// The pairs so far, and their evidence.
    pub report: Report,
    /// Whether the verdict is final.
    pub is_over: bool,
    /// The longest time of a pair.
    pub pair_ns: u64,
    /// The longest time that the duel may still take.
    pub left_ns_max: u64,
    /// The file that the result was written to, if there was a recording when it ended.
    pub kept: Option<PathBuf>,
}

/// The plan to build the target anew, as the operator sees it before it is carried out.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanShown {
    /// The plan's number.
    pub number: u64,
    /// The profile that it opens; none if knobs of the current one are turned.
    pub opens: Option<String>,
    /// Whether the load goes on meanwhile: a turn that destroys something, but builds nothing.
    pub live: bool,
    /// The knobs turned: path, value before, value after.
    pub turns: Vec<(String, String, String)>,
    /// The commands that take down the current stack, before the first step; none if there is no stack.
    pub takes_down: Vec<String>,
    /// The steps, one per line: exactly what is shown is run.
    pub lines: Vec<String>,
    /// The devices on which everything is destroyed.
    pub destroys: Vec<Wanted>,
    /// Total bytes written, the fill included; none if the fill is not known in advance, or the amount that a
    /// program writes.
    pub writes_bytes: Option<u64>,
    /// How much of each drive's life that uses.
    pub wear: Vec<DriveWear>,
    /// What the stack survives, holds and costs; none if nothing is built.
    pub properties: Option<Properties>,
    /// How long each of the lines took last time, if the same was done before; may be empty.
    pub times: Vec<Option<std::time::Duration>>,
    /// How long all of them took last time, if each is known.
    pub last_time: Option<std::time::Duration>,
}

/// A device whose content would be destroyed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The word to be typed in full: the serial, or the name if there is none.
    pub typed: String,
    /// The device's node.
    pub path: PathBuf,
    /// Its model, if known.
    pub model: Option<String>,
    /// Its serial, if known.
    pub serial: Option<String>,
    /// Bytes.
    pub size_bytes: u64,
    /// Its content, in words.
    pub content: Vec<String>,
}

/// A run's activity and settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Status {
    /// The settings in force.
    pub settings: Settings,
    /// The host.
    pub facts: Arc<Facts>,
    /// The target, once it is open.
    pub target: Option<TargetFacts>,
    /// Its phase.
    pub phase: Phase,
    /// Knobs that were turned and are not yet in force (old I/O drains), by path.
    pub draining: Vec<String>,
    /// How the run differs from the settings, and why (the demo's fallbacks).
    pub fallbacks: Vec<String>,
    /// Things to know about this target (the flush covers the whole device, …).
    pub notes: Vec<String>,
    /// Bytes that this process has written, including fills and earlier sessions.
    pub written_bytes: u64,
    /// The folder of the current recording.
    pub recording: Option<PathBuf>,
    /// The circumstances that affect whether the figures can be believed.
    pub circumstances: Circumstances,
    /// What the stack survives, holds and costs; none if nothing was built.
    pub properties: Option<Properties>,
    /// Whether a stack is in place.
    pub standing: bool,
    /// The drives below the target, or the parts of them that it uses, by their folders in sysfs.
    pub drives: Vec<PathBuf>,
    /// Whether a profile whose load is a program can be opened.
    pub runs_programs: bool,
}

/// The activity of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Opening and examining the target.
    Opening,
    /// Building the stack under the target.
    Building,
    /// Writing data and WAL before first use.
    Filling,
    /// The load runs.
    Running,
    /// Paused by the operator.
    Paused,
    /// Draining before the end.
    Ending,
}
