//! Everything that the screen shows. Only [`update`](super::update) changes it.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

use ratatui::layout::Rect;

use super::beside::Beside;
use super::dialog::Dialog;
use super::figures::Figures;
use super::glyphs::Glyphs;
use super::heat::TailOf;
use super::keys::Context;
use super::layout::{self, View};
use super::mark::Mark;
use super::replay::Replay;
use super::theme::Theme;
use super::tracing::Tracing;
use super::typed::Typed;
use crate::error::Error;
use crate::host::Device;
use crate::runs::session::message::{Advance, DuelShown, Phase, Progress, Status};
use crate::settings::knobs::{self, Conditions, Knob, Scope, StackLayer, Value};
use crate::settings::{Settings, change};
use crate::ui::report::ran::Ran;

/// Former settings kept for past windows: several times what an hour of duels produces.
const FORMER_STATES_MAX: usize = 4096;
/// Number of notices kept for the notes.
const NOTICES_MAX: usize = 50;
/// The knob chosen first when the classes are the load: turning it always has a visible effect.
pub const FIRST_KNOB: &str = "io.buffering";
/// The knob chosen first when the classes run on RocksDB.
pub const FIRST_OF_PAIRS: &str = "rocksdb.block_cache";

/// What has the focus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Focus {
    /// The knobs.
    #[default]
    Knobs,
    /// The ledger.
    Ledger,
}

/// A value that was stepped onto but is not available.
#[derive(Debug, Clone, PartialEq)]
pub struct Passing {
    /// The value that is shown instead of the one in force.
    pub value: Value,
    /// Why it is not available.
    pub reason: String,
    /// For how many windows it has been shown.
    pub windows: u32,
}

/// The last message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Message {
    /// Its text.
    pub text: String,
    /// Whether something went wrong.
    pub wrong: bool,
    /// Whether it is about something that lasts only until the load runs.
    pub until_running: bool,
}

/// A row in the list of knobs.
#[derive(Debug, Clone, Copy)]
pub enum ListRow {
    /// The name of a table, or of a layer.
    Heading(&'static str),
    /// A knob.
    Knob(&'static Knob),
}

/// What is listed.
#[derive(Debug, Clone, Default)]
pub struct Listing {
    /// The rows.
    pub rows: Vec<ListRow>,
    /// Knobs of the layer that are left out because they have no effect.
    pub inactive: usize,
}

/// Everything that the screen shows.
#[derive(Debug)]
pub struct State {
    /// The palette.
    pub theme: Theme,
    /// What the terminal can show.
    pub glyphs: Glyphs,
    /// Decides whether a knob can be listed: every one can, except in tests about something else.
    pub listed: fn(&Knob) -> bool,
    /// The terminal.
    pub terminal: Rect,
    /// The part that shows the run or the recording: all of it, or half with two recordings side by side.
    pub screen: Rect,
    /// The run's state, once known.
    pub status: Option<Arc<Status>>,
    /// Its earlier states with other settings, each with the time it lasted until; the oldest are dropped.
    pub former_states: VecDeque<(u64, Arc<Status>)>,
    /// The settings in the running profile, once it runs.
    pub of_profile: Option<Box<Settings>>,
    /// Whether `--set` changed the profile's values from the start.
    pub is_set_apart: bool,
    /// The name they were last saved under, if any.
    pub saved_as: Option<String>,
    /// The previous run's `of_profile`, until this one runs.
    pub of_former: Option<Box<Settings>>,
    /// The host's drives as they were when its page was opened, once they have been read.
    pub host: Option<Vec<Device>>,
    /// The progress of a fill.
    pub progress: Option<Progress>,
    /// The live figures.
    pub live: Figures,
    /// The recording that is shown instead of a run.
    pub replay: Option<Box<Replay>>,
    /// A second recording beside it.
    pub beside: Option<Box<Beside>>,
    /// Bytes that this process has written so far.
    pub written_bytes: u64,
    /// The figures as they were when frozen.
    pub frozen: Option<Box<Figures>>,
    /// The chosen layer, whose knobs are listed.
    pub layer: StackLayer,
    /// Whether knobs without effect are listed, too.
    pub show_inactive: bool,
    /// The listed knobs.
    pub listing: Listing,
    /// The chosen row of these; a knob, if there is one.
    pub chosen: usize,
    /// The first row shown.
    pub top: usize,
    /// A value that was stepped onto but is not available.
    pub passing: Option<Passing>,
    /// Turns requested and not yet in the reported settings, by path.
    pub asked: BTreeMap<&'static str, Value>,
    /// Changes collected for a rebuild, by path.
    pub collected: BTreeMap<&'static str, Value>,
    /// The step of building or tearing down in progress.
    pub step: Option<Advance>,
    /// The settings before building failed.
    pub former: Option<Box<Settings>>,
    /// The commands that remove the retained stack.
    pub kept: Vec<String>,
    /// The running duel, and the number of the ledger line it is about.
    pub duel: Option<(u64, Arc<DuelShown>)>,
    /// The ledger line for which a duel was asked that has not begun yet.
    pub duel_asked: u64,
    /// How earlier duels ended, by ledger line.
    pub duels: BTreeMap<u64, String>,
    /// The setting that the operator has marked.
    pub mark: Option<Mark>,
    /// What has the focus.
    pub focus: Focus,
    /// The panel shown if not all fit.
    pub view: View,
    /// The chosen ledger line, counted from the newest.
    pub ledger_chosen: usize,
    /// The first visible row of that line's details, while they are open.
    pub ledger_top: usize,
    /// Whose latencies the heat map shows.
    pub tail_of: TailOf,
    /// Whether it shows the whole run.
    pub whole_run: bool,
    /// Whether to stop the program once the load is paused or has stopped; the load goes on after that.
    pub suspending: bool,
    /// Show totals instead of the last window.
    pub cumulative: bool,
    /// Show response times instead of service times.
    pub response: bool,
    /// The open dialog.
    pub dialog: Option<Dialog>,
    /// The last message.
    pub message: Option<Message>,
    /// The run's notices, newest last.
    pub notices: VecDeque<String>,
    /// The last lines that the run's program printed.
    pub printed: Vec<String>,
    /// Whether the first steps are shown as long as nothing has been turned.
    pub first_steps: bool,
    /// Whether the last key was an Esc that left a list or similar.
    pub has_left: bool,
    /// What is remembered of this screen once it is gone.
    pub ran: Ran,
    /// The folder of the current recording.
    pub recording: Option<PathBuf>,
    /// When that began, from the run's start.
    pub recording_since_ns: Option<u64>,
    /// The trace of the target's drives.
    pub tracing: Tracing,
    /// Whether the operator has asked to quit.
    pub quitting: bool,
    /// How the run ended.
    pub ended: Option<Result<(), Error>>,
}

impl State {
    /// The initial screen.
    pub fn new(theme: Theme, columns: u16, lines: u16) -> Self {
        let mut state = Self {
            theme,
            glyphs: Glyphs::default(),
            listed: |_| true,
            terminal: Rect::new(0, 0, columns, lines),
            screen: Rect::new(0, 0, columns, lines),
            status: None,
            former_states: VecDeque::new(),
            of_profile: None,
            is_set_apart: false,
            saved_as: None,
            of_former: None,
            host: None,
            progress: None,
            live: Figures::default(),
            replay: None,
            beside: None,
            written_bytes: 0,
            frozen: None,
            layer: StackLayer::PageCache,
            show_inactive: false,
            listing: Listing::default(),
            chosen: 0,
            top: 0,
            passing: None,
            asked: BTreeMap::new(),
            collected: BTreeMap::new(),
            step: None,
            former: None,
            kept: Vec::new(),
            duel: None,
            duel_asked: 0,
            duels: BTreeMap::new(),
            mark: None,
            focus: Focus::default(),
            view: View::default(),
            ledger_chosen: 0,
            ledger_top: 0,
            tail_of: TailOf::All,
            whole_run: false,
            suspending: false,
            cumulative: false,
            response: false,
            dialog: None,
            message: None,
            notices: VecDeque::new(),
            printed: Vec::new(),
            first_steps: false,
            has_left: false,
            ran: Ran::default(),
            recording: None,
            recording_since_ns: None,
            tracing: Tracing::default(),
            quitting: false,
            ended: None,
        };
        state.list_knobs();
        state
    }

    /// The figures to draw: the frozen ones, if any.
    pub fn figures(&self) -> &Figures {
        self.frozen.as_deref().unwrap_or(&self.live)
    }

    /// The end of the window being viewed, unless that is just a run's newest.
    pub fn cursor_ns(&self) -> Option<u64> {
        let figures = self.figures();
        figures.shown_end_ns().filter(|_| self.replay.is_some() || figures.ago_ns().is_some())
    }

    /// The chosen knob.
    pub fn knob(&self) -> &'static Knob {
        match self.listing.rows.get(self.chosen) {
            Some(ListRow::Knob(knob)) => knob,
            _ => self.first_knob(),
        }
    }

    /// The run's state in the window shown: for a past window, with the settings of that time.
    pub fn status_shown(&self) -> Option<&Arc<Status>> {
        let shown_ns = self.frozen.as_ref().and_then(|figures| figures.shown_end_ns());
        let of_then = shown_ns.and_then(|ns| {
            let at = self.former_states.partition_point(|(until_ns, _)| *until_ns < ns);
            self.former_states.get(at).map(|(_, status)| status)
        });
        of_then.or(self.status.as_ref())
    }

    /// Keeps a state whose settings were replaced after the window that ended last.
    pub fn remember(&mut self, former: Arc<Status>) {
        let Some(until_ns) = self.live.shown_end_ns() else { return };
        if self.former_states.len() == FORMER_STATES_MAX {
            self.former_states.pop_front();
        }
        self.former_states.push_back((until_ns, former));
    }

    /// The words of the search in progress.
    pub fn search(&self) -> Option<&Typed> {
        match &self.dialog {
            Some(Dialog::Search { input, .. }) => Some(input),
            _ => None,
        }
    }

    /// The settings with all requested turns and collected changes.
    pub fn settings_asked(&self) -> Option<Settings> {
        self.settings_with(|knob| {
            self.collected.get(knob.path.as_str()).or_else(|| self.asked.get(knob.path.as_str()))
        })
    }

    fn settings_with<'a>(&self, value: impl Fn(&Knob) -> Option<&'a Value>) -> Option<Settings> {
        let mut settings = self.status.as_ref()?.settings.clone();
        let own = knobs::of_program(&settings);
        for knob in knobs::all().iter().chain(own) {
            if let Some(value) = value(knob) {
                knob.set(&mut settings, value.clone());
            }
        }
        Some(settings)
    }

    /// The settings that a turn of the knob starts from: those in force for a live knob; with all collected changes
    /// for one that needs a rebuild or already has a collected change.
    pub fn settings_for(&self, knob: &Knob) -> Option<Settings> {
        let collected = self.collected.contains_key(knob.path.as_str());
        self.settings_of(if collected { Scope::Rebuild } else { knob.spec.scope })
    }

    /// The settings in force, with all requested turns.
    pub fn settings_now(&self) -> Option<Settings> {
        self.settings_of(Scope::Live)
    }

    fn settings_of(&self, scope: Scope) -> Option<Settings> {
        match scope {
            Scope::Live | Scope::Reopen => self.settings_with(|knob| self.asked.get(knob.path.as_str())),
            Scope::Rebuild => self.settings_asked(),
        }
    }

    /// When a turn of the knob to the value would take effect.
    pub fn scope_of(&self, knob: &Knob, value: &Value) -> Scope {
        let status = self.status.as_ref();
        status.map_or(knob.spec.scope, |status| knob.scope_of(value, &status.settings))
    }

    /// Why a collected value conflicts with the others, or none if it does not.
    pub fn conflict(&self, knob: &Knob) -> Option<String> {
        self.unavailable(knob, self.collected.get(knob.path.as_str())?)
    }

    /// Why the knob can't have the value, or none if it can.
    pub fn unavailable(&self, knob: &Knob, value: &Value) -> Option<String> {
        let (status, scope) = (self.status.as_ref()?, self.scope_of(knob, value));
        let settings = self.settings_of(scope)?;
        knob.unavailable(value, &settings, conditions(status, scope)).or_else(|| {
            let mut turned = settings.clone();
            knob.set(&mut turned, value.clone());
            change::refused(&status.settings, &turned).map(str::to_owned)
        })
    }

    /// The profile's name: the one it was last saved under, or else opened by.
    pub fn profile(&self) -> Option<&str> {
        let opened = self.status.as_ref().map(|status| status.settings.name.as_str());
        self.saved_as.as_deref().filter(|_| opened.is_some()).or(opened)
    }

    /// Whether a program is the load.
    pub fn is_of_program(&self) -> bool {
        self.status.as_ref().is_some_and(|status| status.settings.program.is_some())
    }

    /// The two halves of the terminal, when two recordings are side by side.
    pub fn halves(&self) -> Option<[Rect; 2]> {
        layout::halves(self.terminal).filter(|_| self.beside.as_ref().is_some_and(|beside| beside.both))
    }

    /// Takes its place on the terminal; the first recording is on the left.
    pub fn take_place(&mut self) {
        let is_second = self.beside.as_ref().is_some_and(|beside| beside.is_first);
        self.screen = self.halves().map_or(self.terminal, |halves| halves[usize::from(is_second)]);
        self.scroll_to_chosen();
    }

    /// Whether the settings in force are not those of the profile.
    pub fn is_changed(&self) -> bool {
        let (status, profile) = (self.status.as_ref(), self.of_profile.as_ref());
        self.is_set_apart || status.zip(profile).is_some_and(|(status, profile)| status.settings != **profile)
    }

    /// How many knobs were turned since the mark; none if nothing is marked.
    pub fn turned_since_mark(&self) -> Option<usize> {
        Some(self.mark.as_ref()?.differences(&self.settings_now()?).len())
    }

    /// Whether the first steps are on the screen.
    pub fn shows_first_steps(&self) -> bool {
        self.first_steps && self.figures().ledger.is_empty()
    }

    /// Whether a stack is in place, or is being built or torn down.
    pub fn is_standing(&self) -> bool {
        self.status.as_ref().is_some_and(|status| status.standing) || self.step.is_some()
    }

    /// What the run is doing; opening, before anything is known.
    pub fn phase(&self) -> Phase {
        self.status.as_ref().map_or(Phase::Opening, |status| status.phase)
    }

    /// Whether a load runs or is paused, so that knobs can be turned.
    pub fn can_turn(&self) -> bool {
        let is_up = matches!(self.phase(), Phase::Running | Phase::Paused);
        is_up && self.ended.is_none() && !self.quitting && self.replay.is_none()
    }

    /// The contexts that keys are looked up in, in order.
    pub fn contexts(&self) -> &'static [Context] {
        match (&self.dialog, self.focus) {
            (Some(Dialog::Edit { .. } | Dialog::Save { .. } | Dialog::Consent(_)), _) => &[Context::Text],
            (Some(Dialog::Search { .. }), _) => &[Context::Search],
            (Some(Dialog::Palette { .. }), _) => &[Context::Palette],
            (Some(Dialog::Plan(asked)), _) if asked.destroys() => &[Context::Text],
            (Some(Dialog::Plan(_)), _) => &[Context::Plan],
            (Some(Dialog::Failed { .. }), _) => &[Context::Failed],
            (Some(Dialog::Leave), _) => &[Context::Leaving],
            (Some(Dialog::Replace { .. }), _) => &[Context::Question],
            (
                Some(
                    Dialog::Pick { filter, .. }
                    | Dialog::Open { filter, .. }
                    | Dialog::Drives { filter, .. }
                    | Dialog::Themes { filter, .. },
                ),
                _,
            ) if filter.is_typed() => &[Context::Filter],
            (Some(Dialog::Shelf(shelf)), _) if shelf.filter.is_typed() => &[Context::Filter],
            (Some(Dialog::Pick { .. }), _) => &[Context::Pick],
            (Some(Dialog::Drives { .. }), _) => &[Context::Drives],
            (Some(Dialog::Themes { .. }), _) => &[Context::Themes],
            (Some(Dialog::Open { .. }), _) => &[Context::Open],
            (Some(Dialog::Duel { .. }), _) => &[Context::Duel],
            (Some(Dialog::Shelf(_)), _) => &[Context::Shelf],
            (
                Some(
                    Dialog::Help { .. }
                    | Dialog::Host { .. }
                    | Dialog::Believe { .. }
                    | Dialog::Contract { .. }
                    | Dialog::Report { .. },
                ),
                _,
            ) => &[Context::Help],
            (None, Focus::Knobs) if self.replay.is_some() => {
                &[Context::Replay, Context::Knobs, Context::Main]
            }
            (None, Focus::Ledger) if self.replay.is_some() => {
                &[Context::Replay, Context::Ledger, Context::Main]
            }
            (None, Focus::Knobs) => &[Context::Knobs, Context::Main],
            (None, Focus::Ledger) => &[Context::Ledger, Context::Main],
        }
    }

    /// Shows a message.
    pub fn say(&mut self, text: impl Into<String>) {
        self.message = Some(Message { text: text.into(), ..Message::default() });
    }

    /// Shows a message about what is going on; it goes once the load runs.
    pub fn say_until_running(&mut self, text: impl Into<String>) {
        self.message = Some(Message { text: text.into(), until_running: true, ..Message::default() });
    }

    /// Shows a message about something that went wrong.
    pub fn complain(&mut self, text: impl Into<String>) {
        self.message = Some(Message { text: text.into(), wrong: true, ..Message::default() });
    }

    /// Keeps a notice.
    pub fn notice(&mut self, text: String) {
        if self.notices.len() == NOTICES_MAX {
            self.notices.pop_front();
        }
        self.notices.push_back(text);
    }
}

/// The conditions for choosing a value, given when it would take effect: the current target says nothing about one
/// still to be built.
pub fn conditions(status: &Status, scope: Scope) -> Conditions<'_> {
    let target = status.target.as_ref().filter(|_| scope != Scope::Rebuild);
    Conditions { facts: &status.facts, target }
}
