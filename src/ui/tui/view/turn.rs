//! What a turn did, in words and colours: its verdict, and what it changed.

use ratatui::style::Style;
use ratatui::text::Span;

use super::frame::span;
use crate::meter::flag::FlagKind;
use crate::meter::turns::outcome::{self, TurnOutcome};
use crate::meter::window::{Change, FigureUnit, LedgerFigure, LedgerLine};
use crate::ui::text::{clear_change, interval, signed_percent};
use crate::ui::tui::state::State;

/// The verdict in a word, what speaks against it, and the number of flags.
pub fn verdict(state: &State, line: &LedgerLine) -> Vec<Span<'static>> {
    uncounted_verdict(state, line).into_iter().chain(flag_count(state, line)).collect()
}

/// The same without the number of flags.
pub fn uncounted_verdict(state: &State, line: &LedgerLine) -> Vec<Span<'static>> {
    let theme = &state.theme;
    let outcome = line.outcome();
    let style = match outcome {
        TurnOutcome::Better => theme.good.patch(theme.title),
        TurnOutcome::Worse => theme.bad,
        TurnOutcome::TradeOff | TurnOutcome::Different => theme.warn,
        TurnOutcome::Gathering | TurnOutcome::Duel => theme.accent,
        TurnOutcome::NotJudged | TurnOutcome::NoClearChange => theme.dim,
    };
    let mut spans = vec![match (outcome, line.windows.1) {
        (TurnOutcome::Gathering, 0) if state.replay.is_none() => span("settling", style),
        (TurnOutcome::Gathering, windows) => span(format!("{} {windows}", outcome.word()), style),
        _ => span(outcome.word(), style),
    }];
    let less = if line.less_durable { Some(FlagKind::LessDurable.text().to_owned()) } else { None };
    for words in less.into_iter().chain(line.survives_less.iter().cloned()) {
        spans.push(span(format!("  {words}"), theme.warn));
    }
    if line.more_durable {
        spans.push(span("  more durable", theme.plain));
    }
    if line.is_of_other_sizes() {
        spans.push(span("  I/Os of another size", theme.plain));
    }
    spans
}

fn flag_count(state: &State, line: &LedgerLine) -> Option<Span<'static>> {
    let flags = line.flags.iter().filter(|flag| !is_of_survival(line, flag)).count();
    (flags > 0).then(|| span(format!("  ⚑{flags}"), state.theme.warn))
}

/// Whether [`verdict`] puts this flag in words.
pub fn is_of_survival(line: &LedgerLine, flag: &str) -> bool {
    flag == FlagKind::LessDurable.text() || line.survives_less.iter().any(|less| less == flag)
}

/// The rate or median that changed most, as the one most likely to decide: of the knob's class, if it has one. A p99
/// of few windows says nothing yet.
fn most_changed(line: &LedgerLine) -> Option<(LedgerFigure, &Change)> {
    let class = line.knob.split('.').next().unwrap_or_default();
    let is_of_class = |figure: &LedgerFigure| figure.name.to_lowercase().starts_with(class);
    let settles = |figure: &LedgerFigure| figure.unit == FigureUnit::MbPerS || figure.name.ends_with("p50");
    let known = line.changes().into_iter().filter(|(figure, _)| settles(figure));
    let known: Vec<_> =
        known.filter_map(|(figure, of)| Some((figure, of, of.relative()?.ln_1p().abs()))).collect();
    let most = |of_class: bool| {
        let among = known.iter().filter(|(figure, ..)| !of_class || is_of_class(figure));
        among.max_by(|one, other| one.2.total_cmp(&other.2))
    };
    most(true).or_else(|| most(false)).map(|(figure, change, _)| (*figure, *change))
}

/// The figure that a line is about: the program's own if that is the load, else the one that changed most.
pub fn foremost<'a>(state: &State, line: &'a LedgerLine) -> Option<(String, &'a Change)> {
    if state.is_of_program() {
        let (name, change) = line.metrics.iter().find(|(_, change)| change.relative().is_some())?;
        return Some((crate::printable::line(name).into_owned(), change));
    }
    most_changed(line).map(|(figure, change)| (figure.to_string(), change))
}

/// For a turn without a clear change: how much the figure that changed most may have changed.
pub fn unclear_change(state: &State, line: &LedgerLine) -> Option<(String, String, Style)> {
    if line.outcome() != TurnOutcome::NoClearChange {
        return None;
    }
    let (name, change) = foremost(state, line)?;
    change.interval?;
    Some((name, signed_percent(change.relative()?) + &interval(change), state.theme.plain))
}

/// The figures that changed clearly, a program's first: name, change and colour.
pub fn clear_changes(state: &State, line: &LedgerLine) -> Vec<(String, String, Style)> {
    let figures = line.changes().into_iter().filter_map(|(figure, change)| {
        let (text, style) = by(state, line, figure, change)?;
        Some((figure.to_string(), text, style))
    });
    let of_program = line.metrics.iter().filter_map(|(name, change)| {
        Some((crate::printable::line(name).into_owned(), clear(change)?, own_style(state, line, change)))
    });
    of_program.chain(figures).collect()
}

/// The same; for a trade-off, the largest loss and gain come first, of the load's own figures if they are among them.
pub fn both_sides(state: &State, line: &LedgerLine) -> Vec<(String, String, Style)> {
    let mut all = clear_changes(state, line);
    all.extend(unclear_change(state, line));
    if line.outcome() != TurnOutcome::TradeOff {
        return all;
    }
    let first = [false, true].map(|is_gain| largest(line, is_gain).map(|figure| figure.to_string()));
    all.sort_by_key(|(name, ..)| {
        first.iter().position(|of| of.as_ref() == Some(name)).unwrap_or(first.len())
    });
    all
}

/// The figure of the largest clear gain or loss: a rate or a latency before cycles and missed starts.
fn largest(line: &LedgerLine, is_gain: bool) -> Option<LedgerFigure> {
    let of_load = |figure: LedgerFigure| matches!(figure.unit, FigureUnit::MbPerS | FigureUnit::LatencyNs);
    let sized = line.changes().into_iter().filter_map(|(figure, change)| {
        let is_of_side = outcome::is_gain(figure, change)? == is_gain;
        is_of_side.then_some((figure, change.relative()?.ln_1p().abs()))
    });
    let most = sized.max_by(|(one, by), (other, other_by)| {
        of_load(*one).cmp(&of_load(*other)).then(by.total_cmp(other_by))
    });
    most.map(|(figure, _)| figure)
}

/// A clear change in per cent, with its interval: `−25% (−29 to −21%)`.
fn by(state: &State, line: &LedgerLine, figure: LedgerFigure, change: &Change) -> Option<(String, Style)> {
    Some((clear_change(figure, change)?, style(state, line, figure, change)))
}

/// A stack that survives less is never shown as a gain, nor coloured as one.
pub fn style(state: &State, line: &LedgerLine, figure: LedgerFigure, change: &Change) -> Style {
    gain_style(state, outcome::is_gain(figure, change).filter(|_| !line.is_of_other_sizes()), line)
}

fn gain_style(state: &State, is_gain: Option<bool>, line: &LedgerLine) -> Style {
    let theme = &state.theme;
    match (is_gain, line.is_less_safe()) {
        (None, _) | (Some(true), true) => theme.plain,
        (Some(true), false) => theme.good,
        (Some(false), _) => theme.bad,
    }
}

/// By how much a program's figure changed clearly.
pub fn clear(change: &Change) -> Option<String> {
    let percent = change.relative().filter(|_| change.verdict.is_clear())?;
    Some(format!("{}{}", signed_percent(percent), interval(change)))
}

/// Coloured if its profile says which way is better.
pub fn own_style(state: &State, line: &LedgerLine, change: &Change) -> Style {
    gain_style(state, change.is_gain(), line)
}
