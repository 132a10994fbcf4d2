//! The first line: the profile, what it is doing and what it has written; for a recording, the position.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::frame::{put, span};
use crate::class::Class;
use crate::meter::whole_run::steady_state::SteadyState;
use crate::runs::session::message::{Phase, Status};
use crate::settings::{Named, Rocksdb};
use crate::ui::report::stack_properties;
use crate::ui::text::{NONE, count, fit, width};
use crate::ui::tui::replay::Replay;
use crate::ui::tui::state::State;
use crate::ui::tui::writers;
use crate::units::{approx_size, approx_span, format_size};

/// A part of the line; where not all fits, the least needed is dropped first.
#[derive(Default)]
struct Part {
    text: String,
    style: Style,
    need: u8,
    /// A shorter form, which is never dropped.
    short: Option<String>,
}

/// Always shown.
const ALWAYS: u8 = 9;
/// The write limit, which is dropped before the profile's name and anything that says something is wrong.
const WRITTEN: u8 = 5;

/// Draws the line.
pub fn render(state: &State, buf: &mut Buffer, area: Rect) {
    let theme = &state.theme;
    let mut parts = vec![Part { text: "stacktune".into(), style: theme.dim, need: 1, ..Part::default() }];
    if let Some(name) = state.profile() {
        let changed = if state.is_changed() { "*" } else { "" };
        let name = fit(name, 24) + changed;
        parts.push(Part { text: name, style: theme.strong, need: 7, ..Part::default() });
    }
    parts.extend(if let Some(replay) = &state.replay { read(state, replay) } else { doing(state) });
    if let Some(many) = state.turned_since_mark() {
        let text = match many {
            0 => "◆ marked".to_owned(),
            1 => "◆ 1 knob from the mark".to_owned(),
            many => format!("◆ {many} knobs from the mark"),
        };
        parts.push(Part { text, style: theme.accent, need: 6, ..Part::default() });
    }
    if let Some(status) = state.status_shown() {
        parts.push(Part { text: way(status), style: theme.plain, need: 3, ..Part::default() });
        // Figures under other settings than the profile's must be recognizable.
        if !status.fallbacks.is_empty() {
            let many = status.fallbacks.len();
            let text = format!("{many} fallback{}", if many == 1 { "" } else { "s" });
            parts.push(Part { text, style: theme.warn, need: 8, ..Part::default() });
        }
    }
    if let Some(window) = &state.figures().window {
        if let [first, others @ ..] = &window.flags[..] {
            let more = if others.is_empty() { String::new() } else { format!(" +{}", others.len()) };
            // That there are flags is always shown.
            let short = Some(format!("⚑{}", window.flags.len()));
            parts.push(Part { text: format!("⚑ {}{more}", first.text), style: theme.warn, need: 5, short });
        }
        if state.replay.is_none() {
            let elapsed = approx_span((window.start_ns + window.duration_ns) as f64 / 1e9);
            parts.push(Part { text: elapsed, style: theme.plain, need: 4, ..Part::default() });
        }
    }
    parts.extend(steadiness(state));
    if let Some(status) = &state.status {
        let (text, short) = written(state, status);
        let (need, short) = if state.replay.is_some() { (1, None) } else { (WRITTEN, Some(short)) };
        parts.push(match writers::end_in_s(state).filter(|left_s| *left_s < WRITERS_END_S) {
            Some(left_s) => {
                let text = format!("writers stop in {}", approx_span(left_s));
                Part { text, style: theme.warn, need: ALWAYS, short: None }
            }
            None => Part { text, style: theme.plain, need, short },
        });
    }
    let errors = state.live.errors();
    if errors > 0 {
        let text = format!("{} I/O error{}", count(errors as f64), if errors == 1 { "" } else { "s" });
        parts.push(Part { text, style: theme.bad, need: 8, ..Part::default() });
    }
    if let Some(text) = state.status.as_ref().and_then(|status| survives(status)) {
        parts.push(Part { text, style: theme.plain, need: 0, ..Part::default() });
    }
    let host = state.status.as_ref().map(|status| &status.facts.hostname).filter(|_| state.replay.is_none());
    if let Some(host) = host {
        parts.push(Part {
            text: format!("on {}", fit(host, 20)),
            style: theme.dim,
            need: 2,
            ..Part::default()
        });
    }
    put(buf, area.x, area.y, area.width, &fitted(parts, usize::from(area.width)));
}

/// Whether the figures are steady: `not yet steady`, `steady since 2m`, `changed at 5m`.
fn steadiness(state: &State) -> Option<Part> {
    let theme = &state.theme;
    let steadiness = &state.figures().totals.as_ref()?.steadiness;
    // For a past window, leave out what came after it.
    let shown_s = state.frozen.as_ref().and_then(|of| of.shown_end_ns()).map(|ns| ns as f64 / 1e9);
    if steadiness.at_s.zip(shown_s).is_some_and(|(at_s, shown_s)| at_s > shown_s) {
        return None;
    }
    let style = match steadiness.state {
        SteadyState::Warming => theme.dim,
        SteadyState::Steady => theme.good,
        SteadyState::Changed => theme.warn,
    };
    steadiness.is_known().then(|| Part { text: steadiness.to_string(), style, need: 8, ..Part::default() })
}

/// What the run is doing, in words.
fn doing(state: &State) -> Vec<Part> {
    let theme = &state.theme;
    let part = |text: &str, style| Part { text: text.into(), style, need: ALWAYS, ..Part::default() };
    let mut parts = Vec::new();
    parts.push(match (&state.ended, state.phase()) {
        (Some(Err(_)), _) => part("STOPPED", theme.bad),
        (Some(Ok(())), _) => part("ended", theme.plain),
        (None, _) if state.quitting => part("draining…", theme.warn),
        (None, Phase::Opening) => part("opening…", theme.accent),
        (None, Phase::Building) => part("building", theme.accent),
        (None, Phase::Filling) => part("filling", theme.accent),
        (None, Phase::Running) => part("running", theme.good),
        (None, Phase::Paused) => part("PAUSED", theme.warn),
        (None, Phase::Ending) => part("draining…", theme.warn),
    });
    if state.frozen.is_some() {
        parts.push(part("FROZEN", theme.warn));
    }
    if state.recording.is_some() {
        let since = state.recording_since_ns.zip(state.live.shown_end_ns());
        let lasts = since.map_or(0.0, |(from_ns, to_ns)| to_ns.saturating_sub(from_ns) as f64 / 1e9);
        let (text, short) = (format!("● REC {}", approx_span(lasts)), Some("● REC".into()));
        parts.push(Part { text, style: theme.bad, need: 5, short });
    }
    if state.tracing.is_on() {
        parts.push(part("TRACE", theme.accent));
    }
    parts
}

/// Says that this is a recording, the position in it, and when and where it was made.
fn read(state: &State, replay: &Replay) -> Vec<Part> {
    let theme = &state.theme;
    let plays = match (replay.plays, replay.times()) {
        (true, 1) => " ▶".to_owned(),
        (true, times) => format!(" ▶ {times}×"),
        (false, _) => String::new(),
    };
    let (letter, need) = match &state.beside {
        Some(beside) => (format!("{} ", beside.letter()), ALWAYS),
        None => (String::new(), 5),
    };
    let position = replay.position(state.live.shown_end_ns().unwrap_or(0));
    let mut parts = vec![
        Part { text: "RECORDING".into(), style: theme.warn, need: ALWAYS, ..Part::default() },
        Part { text: letter + &fit(&replay.name, 30), style: theme.strong, need, ..Part::default() },
        Part { text: position + &plays, style: theme.strong, need: ALWAYS, ..Part::default() },
    ];
    if let Some(began) = &replay.began {
        parts.push(Part { text: began.clone(), style: theme.plain, need: 7, ..Part::default() });
    }
    if !replay.host.is_empty() {
        parts.push(Part {
            text: format!("on {}", fit(&replay.host, 20)),
            style: theme.plain,
            need: 6,
            ..Part::default()
        });
    }
    parts
}

/// The interface and buffering of the classes that run.
fn way(status: &Status) -> String {
    let settings = &status.settings;
    let Rocksdb { direct_reads, direct_flush, .. } = settings.kv.rocksdb;
    if settings.is_keyed() {
        return match (direct_reads, direct_flush) {
            (true, true) => "RocksDB direct".into(),
            (false, false) => "RocksDB cached".into(),
            _ => "RocksDB".into(),
        };
    }
    let mut ways: Vec<String> = Class::ALL
        .iter()
        .filter(|class| settings.classes[class.index()].enabled)
        .map(|&class| {
            format!("{} {}", settings.interface_of(class).name(), settings.buffering_of(class).name())
        })
        .collect();
    ways.dedup();
    match ways.as_slice() {
        [one] => one.clone(),
        [] if settings.program.is_some() => "a program".into(),
        [] => "all off".into(),
        _ => "mixed interfaces".into(),
    }
}

/// What the stack survives, in brief; the reasons are in the notes.
fn survives(status: &Status) -> Option<String> {
    status.properties.as_ref().map(|stack| stack_properties::resilience(&stack.resilience))
}

/// From this many seconds before the write limit on, a warning is shown.
const WRITERS_END_S: f64 = 120.0;

/// What was written, with the limit (writing wears the drive) and without it.
fn written(state: &State, status: &Status) -> (String, String) {
    if status.settings.program.is_some() {
        let used = state.live.totals.as_ref().and_then(|totals| totals.program.as_ref());
        let bytes = used.and_then(|used| used.drives_written_bytes);
        let bytes = bytes.map_or_else(|| NONE.to_owned(), approx_size);
        // As the drives count it, whoever wrote.
        return (format!("{bytes} written to the drives"), format!("{bytes} written"));
    }
    if state.replay.is_some() || state.frozen.is_some() {
        // The windows' count: it leaves out fills, which do count against the limit.
        let bytes = state.figures().window.as_ref().map_or(0, |window| window.written_bytes_total);
        let bytes = approx_size(bytes);
        return (format!("load wrote {bytes}"), format!("{bytes} written"));
    }
    let bytes = approx_size(state.written_bytes);
    let short = format!("{bytes} written");
    match status.settings.run.max_writes_bytes {
        Some(limit) => (format!("{bytes} of {} written", format_size(limit)), short),
        None => (short.clone(), short),
    }
}

fn fitted(mut parts: Vec<Part>, cells: usize) -> Line<'static> {
    const GAP: usize = 2;
    let taken = |parts: &[Part]| 1 + parts.iter().map(|part| width(&part.text) + GAP).sum::<usize>() - GAP;
    while taken(&parts) > cells {
        let least = parts.iter().enumerate().filter(|(_, p)| p.need < ALWAYS).min_by_key(|(_, p)| p.need);
        let Some((at, _)) = least else { break };
        match parts[at].short.take() {
            Some(text) => parts[at] = Part { text, need: ALWAYS, style: parts[at].style, short: None },
            None => drop(parts.remove(at)),
        }
    }
    let mut spans = vec![Span::raw(" ")];
    for part in parts {
        spans.push(span(part.text, part.style));
        spans.push(Span::raw(" ".repeat(GAP)));
    }
    Line::from(spans)
}
