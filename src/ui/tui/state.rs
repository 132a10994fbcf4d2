//! Everything that the screen shows. Only [`update`](super::update) changes it.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use ratatui::layout::Rect;

use super::dialog::Dialog;
use super::figures::Figures;
use super::keys::Context;
use super::layout::{self, View};
use super::theme::Theme;
use crate::error::Error;
use crate::runs::session::message::{Advance, DuelShown, Phase, Progress, Status};
use crate::settings::knobs::{self, Conditions, Knob, Scope, Value};
use crate::settings::{LoadEngine, Settings};

/// Number of notices kept for the notes.
const NOTICES_MAX: usize = 50;
/// The tables in the order of the screen: live knobs first.
const TABLES: [&str; 14] = [
    "io",
    "scan",
    "point",
    "wal",
    "background",
    "queue",
    "md",
    "run",
    "rocksdb",
    "load",
    "kv",
    "target",
    "stack",
    "sim",
];

/// A row in the list of knobs.
#[derive(Debug, Clone, Copy)]
pub enum ListRow {
    /// The name of a table.
    Heading(&'static str),
    /// A knob.
    Knob(&'static Knob),
}

/// The knobs that apply to an engine.
pub fn rows(engine: LoadEngine) -> &'static [ListRow] {
    static PAGES: OnceLock<Vec<ListRow>> = OnceLock::new();
    static PAIRS: OnceLock<Vec<ListRow>> = OnceLock::new();
    let rows = if engine == LoadEngine::Pages { &PAGES } else { &PAIRS };
    rows.get_or_init(|| {
        let mut settings = Settings::default();
        settings.kv.engine = engine;
        let mut rows = Vec::new();
        for table in TABLES {
            let of_table = |knob: &&Knob| {
                knob.path.split('.').next() == Some(table) && !knob.is_of_another_engine(&settings)
            };
            let mut knobs = knobs::all().iter().filter(of_table).map(ListRow::Knob).peekable();
            rows.extend(knobs.peek().is_some().then_some(ListRow::Heading(table)));
            rows.extend(knobs);
        }
        rows
    })
}

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
}

/// The last message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Its text.
    pub text: String,
    /// Whether something went wrong.
    pub wrong: bool,
}

/// Everything that the screen shows.
#[derive(Debug)]
pub struct State {
    /// The palette.
    pub theme: Theme,
    /// Lists the knobs of an engine: [`rows`], except in tests about something else.
    pub listed: fn(LoadEngine) -> &'static [ListRow],
    /// The terminal's size.
    pub screen: Rect,
    /// The run's state, once known.
    pub status: Option<Arc<Status>>,
    /// The progress of a fill.
    pub progress: Option<Progress>,
    /// The figures as they come.
    pub live: Figures,
    /// The figures as they were when frozen.
    pub frozen: Option<Box<Figures>>,
    /// The chosen row of [`State::rows`]; always a knob.
    pub chosen: usize,
    /// The load's engine whose knobs are listed.
    pub engine: LoadEngine,
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
    /// The duel that goes on, and the ledger's line that it is about.
    pub duel: Option<(u64, Arc<DuelShown>)>,
    /// The line that a duel was asked for and has not yet begun.
    pub duel_asked: u64,
    /// How former duels ended, by the ledger's line.
    pub duels: BTreeMap<u64, String>,
    /// What has the focus.
    pub focus: Focus,
    /// The panel shown if not all fit.
    pub view: View,
    /// The chosen ledger line, counted from the newest.
    pub ledger_chosen: usize,
    /// Totals instead of the last window.
    pub cumulative: bool,
    /// Response instead of service times.
    pub response: bool,
    /// The open dialog.
    pub dialog: Option<Dialog>,
    /// The last message.
    pub message: Option<Message>,
    /// The run's notices, newest last.
    pub notices: VecDeque<String>,
    /// The folder of the current recording.
    pub recording: Option<PathBuf>,
    /// Whether the operator has asked to quit.
    pub quitting: bool,
    /// How the run ended.
    pub ended: Option<Result<(), Error>>,
}

impl State {
    /// The initial screen.
    pub fn new(theme: Theme, columns: u16, lines: u16) -> Self {
        let first = |row: &ListRow| matches!(row, ListRow::Knob(_));
        Self {
            theme,
            listed: rows,
            screen: Rect::new(0, 0, columns, lines),
            status: None,
            progress: None,
            live: Figures::default(),
            frozen: None,
            chosen: rows(LoadEngine::Pages).iter().position(first).unwrap_or(0),
            engine: LoadEngine::Pages,
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
            focus: Focus::default(),
            view: View::default(),
            ledger_chosen: 0,
            cumulative: false,
            response: false,
            dialog: None,
            message: None,
            notices: VecDeque::new(),
            recording: None,
            quitting: false,
            ended: None,
        }
    }

    /// The figures to draw: the frozen ones, if any.
    pub fn figures(&self) -> &Figures {
        self.frozen.as_deref().unwrap_or(&self.live)
    }

    /// The chosen knob.
    pub fn knob(&self) -> &'static Knob {
        match self.rows().get(self.chosen) {
            Some(ListRow::Knob(knob)) => knob,
            _ => &knobs::all()[0],
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
        for knob in knobs::all() {
            if let Some(value) = value(knob) {
                knob.set(&mut settings, value.clone());
            }
        }
        Some(settings)
    }

    /// The settings from which a turn of the knob starts: for a live one those in force, for one that needs a rebuild
    /// or has a collected change those with all collected changes.
    pub fn settings_for(&self, knob: &Knob) -> Option<Settings> {
        let collected = self.collected.contains_key(knob.path.as_str());
        self.settings_of(if collected { Scope::Rebuild } else { knob.spec.scope })
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
        knob.unavailable(value, &self.settings_of(scope)?, conditions(status, scope))
    }

    /// Whether a stack is in place, or is being built or torn down.
    pub fn is_standing(&self) -> bool {
        self.status.as_ref().is_some_and(|status| status.standing) || self.step.is_some()
    }

    /// What the run is doing; opening, before anything is known.
    pub fn phase(&self) -> Phase {
        self.status.as_ref().map_or(Phase::Opening, |status| status.phase)
    }

    /// Where keys go.
    pub fn contexts(&self) -> &'static [Context] {
        match (&self.dialog, self.focus) {
            (Some(Dialog::Edit { .. } | Dialog::Save { .. } | Dialog::Consent(_)), _) => &[Context::Text],
            (Some(Dialog::Plan(asked)), _) if asked.destroys() => &[Context::Text],
            (Some(Dialog::Plan(_)), _) => &[Context::Plan],
            (Some(Dialog::Failed { .. }), _) => &[Context::Failed],
            (Some(Dialog::Leave), _) => &[Context::Leaving],
            (Some(Dialog::Replace { .. }), _) => &[Context::Question],
            (Some(Dialog::Open { .. }), _) => &[Context::Open],
            (Some(Dialog::Duel { .. }), _) => &[Context::Duel],
            (Some(Dialog::Help { .. } | Dialog::Host { .. } | Dialog::Believe { .. }), _) => &[Context::Help],
            (None, Focus::Knobs) => &[Context::Knobs, Context::Main],
            (None, Focus::Ledger) => &[Context::Ledger, Context::Main],
        }
    }

    /// Shows a message.
    pub fn say(&mut self, text: impl Into<String>) {
        self.message = Some(Message { text: text.into(), wrong: false });
    }

    /// Shows a message about something that went wrong.
    pub fn complain(&mut self, text: impl Into<String>) {
        self.message = Some(Message { text: text.into(), wrong: true });
    }

    /// Keeps a notice.
    pub fn notice(&mut self, text: String) {
        if self.notices.len() == NOTICES_MAX {
            self.notices.pop_front();
        }
        self.notices.push_back(text);
    }

    /// Scrolls the list of knobs to the chosen row.
    pub fn scroll_to_chosen(&mut self) {
        let Some(areas) = layout::areas(self.screen, self.view) else { return };
        let height = usize::from(areas.knobs.height.saturating_sub(1)).max(1);
        // The table's heading comes into view with its first knob.
        let first = if self.chosen == 1 { 0 } else { self.chosen };
        self.top = self.top.min(first).max((self.chosen + 1).saturating_sub(height));
        self.top = self.top.min(self.rows().len().saturating_sub(height));
    }

    /// The list of knobs.
    pub fn rows(&self) -> &'static [ListRow] {
        (self.listed)(self.engine)
    }

    /// Lists the knobs of the requested engine; the chosen knob stays chosen if it is among them.
    pub fn list_knobs(&mut self) {
        let asked = self.settings_asked().map_or(self.engine, |settings| settings.kv.engine);
        if asked == self.engine {
            return;
        }
        let chosen = self.knob().path.as_str();
        self.engine = asked;
        let row_of = |path: &str| {
            self.rows().iter().position(|row| matches!(row, ListRow::Knob(knob) if knob.path == path))
        };
        self.chosen = row_of(chosen).or_else(|| row_of("load.engine")).unwrap_or(1);
        self.scroll_to_chosen();
    }
}

/// What decides whether a value can be chosen, given when it takes effect: the current target says nothing about one
/// that is yet to be built.
pub fn conditions(status: &Status, scope: Scope) -> Conditions<'_> {
    let target = status.target.as_ref().filter(|_| scope != Scope::Rebuild);
    Conditions { facts: &status.facts, target }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_knob_has_a_row() {
        let listed: Vec<_> = [LoadEngine::Pages, LoadEngine::Rocksdb].into_iter().flat_map(rows).collect();
        for knob in knobs::all() {
            assert!(
                listed.iter().any(|row| matches!(row, ListRow::Knob(row) if row.path == knob.path)),
                "{}",
                knob.path
            );
        }
        let headed = |table| {
            rows(LoadEngine::Pages).iter().any(|row| matches!(row, ListRow::Heading(of) if *of == table))
        };
        assert!(headed("io") && headed("load") && !headed("rocksdb"));
    }

    #[test]
    fn the_chosen_row_is_always_on_the_screen() {
        let mut state = State::new(Theme::mono(), 80, 24);
        for chosen in (1..rows(LoadEngine::Pages).len()).chain((1..rows(LoadEngine::Pages).len()).rev()) {
            state.chosen = chosen;
            state.scroll_to_chosen();
            let height = layout::areas(state.screen, state.view).unwrap().knobs.height as usize - 1;
            assert!((state.top..state.top + height).contains(&chosen), "{chosen} {}", state.top);
        }
    }
}
