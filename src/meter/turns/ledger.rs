//! The ledger: what each turn of a knob did, from windows before and after it.
//!
//! It compares clean windows past their settling time: before the turn, the last ten of the old setting; after
//! it, the first five of the new one, or up to twenty if a p99 would otherwise have too few I/Os. A verdict
//! needs three on each side, and no flag that forbids it (what others use forbids only the verdict on cycles).
//! Whether a change is clear depends on how much the windows vary, up to sixty of them ([`super::estimate`],
//! [`super::turn_figures`]), and on what the run does while no knob is turned ([`super::wander`]).
//!
//! A turn that comes before its predecessor can be judged overtakes it: the windows before the first such turn
//! are then compared with those after the last, and the last one's line says so. A turn back to the value
//! before the first is not judged, because both sides have the same setting.
//!
//! All turns of a duel are one line, without figures: a duel judges its own windows.

use std::collections::{BTreeMap, VecDeque};

pub use super::estimate::WINDOWS_MIN;
pub use super::turn_figures::BEFORE_WINDOWS;
use super::turn_figures::{self, GAP_WINDOWS, Measured};
use super::wander::Wander;
use crate::class::Class;
use crate::meter::duel_outcome::DuelOutcome;
use crate::meter::flag::{FlagKind, stem};
use crate::meter::window::{Change, Flag, LedgerLine, Window};
use crate::settings::values::program::KNOBS_MAX;

/// The most windows that are used to tell how much they vary.
const HISTORY_WINDOWS: usize = 60;
/// A line is closed after this many windows,
pub const AFTER_WINDOWS: usize = 5;
/// or this many, if a percentile needs them.
const AFTER_WINDOWS_MAX: usize = 20;
/// A pseudo-turn takes this many windows: on each side as many as a line has after its turn.
const PSEUDO_WINDOWS: usize = AFTER_WINDOWS + GAP_WINDOWS + AFTER_WINDOWS;

/// A turn of a knob.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Turn {
    /// When, on the run's clock.
    pub at_ns: u64,
    /// The knob's path.
    pub knob: String,
    /// The value before, as it is written in a profile.
    pub from: String,
    /// The value after, likewise.
    pub to: String,
    /// Whether it undoes the last turn.
    pub undo: bool,
    /// The values of the duel that the turn is part of; none if it is part of none.
    pub duel: Option<[String; 2]>,
    /// What the setting survives before and after the turn.
    pub survives: (Survival, Survival),
}

/// What a setting survives; in each respect, more is better.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Survival {
    /// How durable commits are by the WAL's own setting.
    pub commits: u8,
    /// What survives under each of the program's own knobs, by index; only comparable within a knob.
    pub own: [u8; KNOBS_MAX],
    /// Whether commits survive a power cut.
    pub power_cut: PowerCut,
    /// How many drives, whichever they are, may be lost without losing data.
    pub drives_lost: u64,
}

/// Whether commits survive a power cut; the later the better.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum PowerCut {
    /// They do not.
    No,
    /// Unknown.
    #[default]
    Unknown,
    /// They do.
    Yes,
}

impl Survival {
    /// Whether less is survived in any respect.
    pub fn is_less_than(self, before: Self) -> bool {
        self.is_less_durable_than(before) || !self.less_than(before).is_empty()
    }

    /// Whether more is survived in any respect, as far as both are known.
    fn is_more_than(self, before: Self) -> bool {
        before.is_less_durable_than(self)
            || self.drives_lost > before.drives_lost
            || (before.power_cut, self.power_cut) == (PowerCut::No, PowerCut::Yes)
    }

    /// Whether commits are less durable, by the WAL's setting or by a knob of the program's.
    fn is_less_durable_than(self, before: Self) -> bool {
        self.commits < before.commits || self.own.iter().zip(before.own).any(|(now, before)| *now < before)
    }

    /// What is no longer survived, in words; except commits, which have their own mark.
    fn less_than(self, before: Self) -> Vec<String> {
        let word = |cut| match cut {
            PowerCut::No => "no",
            PowerCut::Unknown => "unknown",
            PowerCut::Yes => "yes",
        };
        let mut less = Vec::new();
        // Commits that are not flushed are lost in a power cut: that is reported once, not twice.
        if self.power_cut < before.power_cut && self.commits >= before.commits {
            let (from, to) = (word(before.power_cut), word(self.power_cut));
            less.push(FlagKind::Survives.text_with(format_args!("a power cut: {from} → {to}")));
        }
        if self.drives_lost < before.drives_lost {
            let (from, to) = (before.drives_lost, self.drives_lost);
            less.push(FlagKind::Survives.text_with(format_args!("the loss of drives: {from} → {to}")));
        }
        less
    }
}

/// The lines so far, and the windows that the next one is compared with.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    lines: Vec<LedgerLine>,
    /// Steady windows since the last turn.
    steady: VecDeque<Sample>,
    /// How many of the last ones no pseudo-turn has used yet.
    unused: usize,
    wander: Wander,
    /// The last line, while it collects windows.
    open: Option<Open>,
    turned_at_ns: u64,
}

/// A line that is collecting windows.
#[derive(Debug, Clone)]
struct Open {
    began: Beginning,
    before: Vec<Sample>,
    after: Vec<Sample>,
    /// Classes that have failed since, and what others have changed: windows after that can't be compared.
    forbidding: Vec<String>,
}

/// The setting that a line's windows before were measured under: the one before its turn, or before the first
/// of several turns that came too quickly to be judged one by one.
#[derive(Debug, Clone)]
struct Beginning {
    /// The number of that turn.
    number: u64,
    /// The only knob turned since, and its value before that; none if several were turned.
    knob: Option<(String, String)>,
    survives: Survival,
}

/// The parts of a window that a line needs.
#[derive(Debug, Clone, Default)]
struct Sample {
    measured: Measured,
    forbidding: Vec<String>,
    drifting: Vec<String>,
    /// Flags worth noting that forbid nothing.
    noted: Vec<String>,
}

impl Ledger {
    /// Writes a line for a turn; the previous line is closed as it is. Returns the lines that
    /// changed, the new one last.
    pub fn turn(&mut self, mut turn: Turn) -> Vec<LedgerLine> {
        if let Some(values) = turn.duel.take() {
            return self.turn_in_duel(turn, values);
        }
        let duel = self.close_duel(None);
        let number = self.lines.len() as u64 + 1;
        let steady = self.take_steady();
        let (overtaken, judged): (Option<Open>, _) = match self.open.take() {
            Some(open) if open.is_early() && !open.before.is_empty() => (Some(open), None),
            judged => (None, judged),
        };
        let closed = match &overtaken {
            Some(_) => self.close_with(Some(FlagKind::Overtaken.text_with(number))),
            None => judged
                .and_then(|open| self.close_with(open.is_early().then(|| FlagKind::TooShort.text().into()))),
        };
        let own = Beginning {
            number,
            knob: Some((turn.knob.clone(), turn.from.clone())),
            survives: turn.survives.0,
        };
        let open = match overtaken {
            Some(open) => Open { began: open.began.and(own), after: Vec::new(), ..open },
            None if steady.len() < WINDOWS_MIN => Open::new(own, Vec::new()),
            None => Open::new(own, steady),
        };
        self.turned_at_ns = turn.at_ns;
        let mut line = LedgerLine {
            number,
            at_ns: turn.at_ns,
            from: open.began.value_before(&turn.to).unwrap_or(turn.from),
            knob: turn.knob,
            to: turn.to,
            undo: turn.undo,
            less_durable: turn.survives.1.is_less_durable_than(open.began.survives),
            more_durable: turn.survives.1.is_more_than(open.began.survives),
            survives_less: turn.survives.1.less_than(open.began.survives),
            open: true,
            ..LedgerLine::default()
        };
        compare(&mut line, &open, &self.wander);
        self.open = Some(open);
        self.lines.push(line.clone());
        duel.into_iter().chain(closed).chain([line]).collect()
    }

    /// Adds a turn to the line of its duel; the first turn starts that line.
    fn turn_in_duel(&mut self, turn: Turn, [from, to]: [String; 2]) -> Vec<LedgerLine> {
        let closed = if self.open.is_some() { self.close() } else { None };
        self.take_steady();
        self.turned_at_ns = turn.at_ns;
        if !self.lines.last().is_some_and(is_open_duel) {
            let (number, at_ns, knob) = (self.lines.len() as u64 + 1, turn.at_ns, turn.knob);
            self.lines.push(LedgerLine {
                number,
                at_ns,
                knob,
                from,
                to,
                open: true,
                ..LedgerLine::default()
            });
        }
        let changed = self.lines.last_mut().map(|line| add_to_duel(line, (turn.at_ns, turn.to)));
        closed.into_iter().chain(changed).collect()
    }

    /// Adds a turn to the line of its duel, which was closed before: a program's knob is back at its old
    /// value only once its command has ended.
    pub fn turn_after_duel(&mut self, mut turn: Turn) -> Vec<LedgerLine> {
        let values = turn.duel.take().unwrap_or_default();
        let of_duel = |line: &LedgerLine| {
            !line.open
                && !line.duel.is_empty()
                && line.knob == turn.knob
                && [&line.from, &line.to] == values.each_ref()
        };
        let Some(at) = self.lines.iter().rposition(of_duel) else {
            // The duel ended before its first turn: what is measured from here on is of another setting all the same.
            let mut changed = self.turn_in_duel(turn, values);
            changed.extend(self.close_duel(None));
            return changed;
        };
        let closed = if self.open.is_some() { self.close() } else { None };
        self.take_steady();
        self.turned_at_ns = turn.at_ns;
        let changed = add_to_duel(&mut self.lines[at], (turn.at_ns, turn.to));
        closed.into_iter().chain([changed]).collect()
    }

    /// Closes the line of a duel in progress, with the duel's outcome. Returns it, if there was one.
    pub fn close_duel(&mut self, outcome: Option<DuelOutcome>) -> Option<LedgerLine> {
        let line = self.lines.last_mut().filter(|line| is_open_duel(line))?;
        line.duel_outcome = outcome;
        self.close_with(None)
    }

    /// The lines so far.
    pub fn lines(&self) -> &[LedgerLine] {
        &self.lines
    }

    /// Takes a window; returns the lines that changed.
    pub fn window(&mut self, window: &Window) -> Vec<LedgerLine> {
        let changed = window.flags.iter().filter(|flag| flag.is(FlagKind::OthersChanged));
        let changed: Vec<String> = changed.map(|flag| flag.text.clone()).collect();
        if !changed.is_empty() {
            return self.forbid(changed).into_iter().collect();
        }
        let settled = !window.flags.iter().any(|flag| flag.is(FlagKind::Settling));
        if !window.is_clean() || !settled || window.start_ns < self.turned_at_ns {
            return Vec::new();
        }
        let sample = Sample::of(window);
        if self.steady.len() == HISTORY_WINDOWS {
            self.steady.pop_front();
        }
        self.steady.push_back(sample.clone());
        self.pseudo_turn();
        let (Some(open), Some(line)) = (&mut self.open, self.lines.last_mut()) else {
            return Vec::new();
        };
        open.after.push(sample);
        compare(line, open, &self.wander);
        line.open = open.waits();
        if !line.open {
            self.open = None;
        }
        vec![line.clone()]
    }

    /// Makes a pseudo-turn once enough windows have come since the last one, or since a turn.
    fn pseudo_turn(&mut self) {
        self.unused += 1;
        if self.unused < PSEUDO_WINDOWS {
            return;
        }
        // The second side becomes the first side of the next one.
        self.unused = AFTER_WINDOWS;
        let windows = self.steady.range(self.steady.len() - PSEUDO_WINDOWS..);
        if windows.clone().any(|sample| !(sample.forbidding.is_empty() && sample.drifting.is_empty())) {
            return;
        }
        let flags = once(windows.clone().flat_map(|sample| &sample.noted));
        let windows = measured(windows);
        let sides = (&windows[..AFTER_WINDOWS], &windows[AFTER_WINDOWS + GAP_WINDOWS..]);
        let mut line = LedgerLine { flags, ..LedgerLine::default() };
        turn_figures::compare(&mut line, sides, (false, false), &self.wander);
        if line.cycles_not_judged().is_some() {
            line.cycles_per_byte = Change::default();
        }
        self.wander.take(&line);
    }

    fn take_steady(&mut self) -> Vec<Sample> {
        self.unused = 0;
        self.steady.drain(..).collect()
    }

    /// A class has failed: nothing is compared across that, even if it is restarted. Returns the line that
    /// changed.
    pub fn class_failed(&mut self, class: Class) -> Option<LedgerLine> {
        self.forbid(vec![format!("{class} {}", FlagKind::Failed.text())])
    }

    /// Nothing is compared across this moment, because of those flags.
    fn forbid(&mut self, flags: Vec<String>) -> Option<LedgerLine> {
        self.take_steady();
        let (open, line) = (self.open.as_mut()?, self.lines.last_mut()?);
        open.forbidding.extend(flags);
        compare(line, open, &self.wander);
        Some(line.clone())
    }

    /// Closes the open line, as at the end of a run. Returns it, if there was one.
    pub fn close(&mut self) -> Option<LedgerLine> {
        let Some(open) = self.open.take() else { return self.close_duel(None) };
        self.close_with(open.is_early().then(|| FlagKind::TooShort.text().into()))
    }

    fn close_with(&mut self, flag: Option<String>) -> Option<LedgerLine> {
        let line = self.lines.last_mut()?;
        line.open = false;
        line.flags.extend(flag);
        Some(line.clone())
    }
}

impl Open {
    fn new(began: Beginning, before: Vec<Sample>) -> Self {
        Self { began, before, after: Vec::new(), forbidding: Vec::new() }
    }

    /// Whether too few windows have come for a verdict.
    fn is_early(&self) -> bool {
        self.after.len() < WINDOWS_MIN
    }

    /// Whether it needs more windows.
    fn waits(&self) -> bool {
        let windows = self.after.len();
        windows < AFTER_WINDOWS
            || windows < AFTER_WINDOWS_MAX
                && turn_figures::waits_for_samples(&measured(&self.after), AFTER_WINDOWS_MAX)
    }
}

impl Beginning {
    /// The combined beginning, if `next` follows immediately.
    fn and(self, next: Self) -> Self {
        let one = self.knob.zip(next.knob).filter(|((knob, _), (next, _))| knob == next);
        Self { knob: one.map(|(first, _)| first), ..self }
    }

    /// The value before, unless the knob has it again.
    fn value_before(&self, now: &str) -> Option<String> {
        self.knob.as_ref().map(|(_, from)| from.clone()).filter(|from| from != now)
    }
}

/// Adds a turn to a duel's line, which is returned: the time, and the value after it.
fn add_to_duel(line: &mut LedgerLine, turn: (u64, String)) -> LedgerLine {
    line.duel.push(turn);
    let turns = if line.duel.len() == 1 { "turn" } else { "turns" };
    line.flags = vec![FlagKind::OfDuel.text_with(format_args!("{} {turns}", line.duel.len()))];
    line.clone()
}

/// Whether it is the line of a duel in progress.
fn is_open_duel(line: &LedgerLine) -> bool {
    line.open && !line.duel.is_empty()
}

impl Sample {
    fn of(window: &Window) -> Self {
        let mut sample = Self { measured: Measured::of(window), ..Self::default() };
        let of_classes = Class::ALL
            .into_iter()
            .flat_map(|class| window.class(class).flags.iter().map(move |flag| (Some(class), flag)));
        for (class, flag) in window.flags.iter().map(|flag| (None, flag)).chain(of_classes) {
            let text = class.map_or(flag.text.clone(), |class| format!("{class} {}", flag.text));
            match flag {
                _ if flag.is(FlagKind::Drifting) => sample.drifting.push(text),
                Flag { forbids_verdict: true, .. } => sample.forbidding.push(text),
                Flag { forbids_verdict: false, .. } => sample.noted.push(text),
            }
        }
        let failed = Class::ALL.into_iter().filter(|class| window.class(*class).errors > 0);
        sample.noted.extend(failed.map(|class| format!("{class} {}", FlagKind::Errors.text())));
        sample
    }
}

/// Fills in everything that a line says about the windows on both sides.
fn compare(line: &mut LedgerLine, open: &Open, wander: &Wander) {
    let Open { began, before: history, after, forbidding } = open;
    let before = turn_figures::counted(history);
    let both = || before.iter().chain(after);
    // A trend matters if it leads up to the turn, or continues at the end.
    let ends = [before.last(), after.last()].into_iter().flatten();
    let drifting = ends.flat_map(|sample| &sample.drifting);
    line.windows = (before.len() as u64, after.len() as u64);
    line.flags = once(both().flat_map(|sample| &sample.forbidding).chain(forbidding).chain(drifting));
    let is_several = began.number < line.number;
    let is_back = is_several && began.knob.as_ref().is_some_and(|(_, from)| *from == line.to);
    let judged = line.flags.is_empty() && !is_back;
    line.flags.extend(once(both().flat_map(|sample| &sample.noted)));
    if is_back {
        line.flags.push(FlagKind::BackBefore.text_with(began.number));
    } else if is_several {
        line.flags
            .push(FlagKind::Together.text_with(format_args!("{}–{} together", began.number, line.number)));
    }
    if line.less_durable {
        line.flags.push(FlagKind::LessDurable.text().into());
    }
    line.flags.extend(line.survives_less.iter().cloned());
    let cycles_judged = line.cycles_not_judged().is_none();
    turn_figures::compare(line, (&measured(history), &measured(after)), (judged, cycles_judged), wander);
}

fn measured<'a>(samples: impl IntoIterator<Item = &'a Sample>) -> Vec<&'a Measured> {
    samples.into_iter().map(|sample| &sample.measured).collect()
}

/// Each stem of a flag once, with the text of the last window that had it.
fn once<'a>(texts: impl Iterator<Item = &'a String>) -> Vec<String> {
    let by_kind: BTreeMap<_, _> = texts.map(|text| (stem(text), text)).collect();
    by_kind.into_values().cloned().collect()
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
