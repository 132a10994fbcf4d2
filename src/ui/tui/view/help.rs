//! The help: the chosen knob, all keys, what the figures mean, every note, every knob.

use ratatui::style::Style;

use super::{hints, notes};
use crate::settings::knobs::value::Kind;
use crate::settings::knobs::{self, Knob};
use crate::ui::text::{left, wrap};
use crate::ui::tui::glyphs::Glyphs;
use crate::ui::tui::keys::{Context, LEDGER_SECTION, MAP, SECTIONS};
use crate::ui::tui::state::{Focus, State};

/// The meaning of each figure.
const FIGURES: &[(&str, &str)] = &[
    ("MB/s", "Completed bytes a second; 1 MB is 10⁶ bytes. Sizes are binary: 1 KiB is 1024 bytes."),
    ("target", "The class's rate, where it has one."),
    ("IOPS", "Completed I/Os a second; flushes do not count."),
    (
        "p50 … max",
        "Percentiles and the largest time in this window (c: in the whole run). – means fewer than ten samples beyond that percentile.",
    ),
    (
        "service",
        "From the start of an I/O to its completion. For the WAL: the commit, from the start of a write to the end of the flush that covers it.",
    ),
    (
        "response",
        "From the intended start to the completion: what a client would have waited. Only classes with a rate have one.",
    ),
    (
        "not held",
        "More than 1% of the intended starts were over a second late and were dropped (missed); response times are meaningless then.",
    ),
    ("cores", "CPU time of the whole system that was neither idle nor waiting for I/O, and what is left."),
    (
        "cycles",
        "The whole system's CPU cycles over all bytes of the four classes (Haas et al. 2020, 3.2); ≈ where estimated as busy time × clock frequency.",
    ),
    (
        "not yet steady",
        "The levels of each class's MB/s, WA-A and WA-D have not lasted for thirty spans (a second each in the first ten minutes). Later: steady since, or changed at, a time of the run. B shows what is missing.",
    ),
    (
        "WA-A, WA-D",
        "Bytes that reached the drives for each byte that the application wrote, and bytes written to flash for each that reached the drive, since the measurement began (page B).",
    ),
    (
        "needs",
        "The cores that an array of run.drives drives at run.drive_rate would need at this many cycles per byte (Haas et al. 2020, 4.3).",
    ),
    (
        "own",
        "The cores that stacktune itself uses, including its I/O in the kernel; screen and meters are shown separately.",
    ),
    (
        "stack",
        "Each layer with its setting; MB/s that pass it; the mean time that it adds (application: from the intended start to the hand-over, of classes that hold a rate); WA: bytes written below it per byte above it. – is not measured. While T traces, the drives have the p99 of their reads and writes, from issue to completion (p99T, traced). What is chosen there lists its knobs.",
    ),
    (
        "latency",
        "Each column is a window, upwards is slower, and colour or shade says what share of the I/Os took that long; p50 and p99 lie over it. z chooses the class, Z the whole run, , and . an earlier or a later window.",
    ),
    (
        "verdict",
        "In a word, of a turn's clear changes: better, worse, different (no direction is better), trade-off (some better, some worse, or less durable), no clear change, or can't be judged.",
    ),
    (
        "ledger",
        "Means of the windows before a change and after it has settled. A change is clear only where it is more than chance, by how much the windows vary, and over 3%. No verdict while flags forbid it; ⚑ counts flags.",
    ),
    (
        "duel",
        "Blocks of windows with each of two values, in pairs whose order a coin decides; the evidence says how surely they differ: it reaches 40 by chance in at most one duel of 40. Each dot is a pair, and the bar is the interval of the change.",
    ),
];

/// The whole help.
pub fn text(state: &State, cells: usize) -> Vec<(String, Style)> {
    let theme = &state.theme;
    let is_ascii = state.glyphs == Glyphs::Ascii;
    let mut out = chosen(state, cells);
    let notes = notes::gather(state);
    if !notes.is_empty() {
        heading(&mut out, state, "Notes");
        for (note, style) in notes {
            entry(&mut out, "·", 1, &note, cells, style);
        }
    }
    for (title, context) in SECTIONS {
        heading(&mut out, state, title);
        for row in MAP.iter().filter(|row| row.context == context && !row.label.is_empty()) {
            let label = if is_ascii { in_ascii(row.label) } else { row.label.to_owned() };
            entry(&mut out, &label, if is_ascii { 9 } else { 8 }, row.help, cells, theme.plain);
        }
    }
    lists(&mut out, state, cells);
    heading(&mut out, state, "Mouse");
    let mouse = "chooses a knob, and one on ◂ ▸ turns it; the wheel only scrolls.";
    entry(&mut out, "click", 8, mouse, cells, theme.plain);
    heading(&mut out, state, "What the figures mean");
    for (name, meaning) in FIGURES {
        entry(&mut out, name, 10, meaning, cells, theme.plain);
    }
    heading(&mut out, state, "All knobs, and what the papers found");
    for (names, knob) in grouped() {
        out.push((names, theme.strong));
        entry(&mut out, "", 1, knob.spec.help, cells, theme.plain);
        if let Some(paper) = knob.spec.paper {
            entry(&mut out, "", 1, &format!("Paper: {paper}"), cells, theme.dim);
        }
    }
    out
}

/// A label of keys in words.
fn in_ascii(label: &str) -> String {
    const WORDS: [(&str, &str); 7] = [
        ("⏎", "Enter"),
        ("⌫", "Bksp"),
        ("⇧", "S-"),
        ("←", "Left"),
        ("→", "Right"),
        ("↑", "Up"),
        ("↓", "Down"),
    ];
    WORDS.iter().fold(label.to_owned(), |label, (glyph, word)| label.replace(glyph, word))
}

/// The line where the help opens: the ledger's keys if the ledger has the focus, else the chosen knob.
pub fn begins_at(state: &State, cells: usize) -> usize {
    let text = (state.focus == Focus::Ledger).then(|| text(state, cells));
    text.and_then(|text| text.iter().position(|(line, _)| line == LEDGER_SECTION)).unwrap_or(0)
}

/// Everything about the chosen knob.
pub fn chosen(state: &State, cells: usize) -> Vec<(String, Style)> {
    let knob = state.knob();
    let mut out = vec![(format!("The chosen knob: {}", knob.path), state.theme.title)];
    describe(&mut out, state, knob, cells);
    out
}

/// The keys of lists, which need no sentence each.
fn lists(out: &mut Vec<(String, Style)>, state: &State, cells: usize) {
    heading(out, state, "Keys in other lists");
    for (list, context) in [
        ("values", Context::Pick),
        ("profiles", Context::Open),
        ("drives", Context::Drives),
        ("themes", Context::Themes),
    ] {
        let rows = MAP.iter().filter(|row| row.context == context && !row.hint.is_empty());
        let keys: Vec<_> = rows.map(|row| format!("{} {}", hints::label(state, row), row.hint)).collect();
        entry(out, list, 8, &keys.join(", "), cells, state.theme.plain);
    }
}

fn heading(out: &mut Vec<(String, Style)>, state: &State, title: &str) {
    out.push((String::new(), state.theme.plain));
    out.push((title.into(), state.theme.title));
}

fn entry(
    out: &mut Vec<(String, Style)>,
    name: &str,
    name_cells: usize,
    text: &str,
    cells: usize,
    style: Style,
) {
    for (i, part) in wrap(text, cells.saturating_sub(name_cells + 3)).into_iter().enumerate() {
        let name = if i == 0 { name } else { "" };
        out.push((format!(" {} {part}", left(name, name_cells)), style));
    }
}

/// Everything about a knob.
fn describe(out: &mut Vec<(String, Style)>, state: &State, knob: &Knob, cells: usize) {
    let theme = &state.theme;
    let mut row = |name: &str, text: &str| entry(out, name, 10, text, cells, theme.plain);
    row("does", knob.spec.help);
    let default = if knob.spec.inherits { ", or default (the [io] table's)" } else { "" };
    row("accepts", &format!("{}{default}", knob.spec.kind.expected()));
    if let Kind::Choice(choices) = knob.spec.kind {
        for (name, meaning) in choices.iter().filter(|(_, meaning)| !meaning.is_empty()) {
            row("", &format!("{name}: {meaning}"));
        }
    }
    row(
        "applies",
        match knob.spec.scope {
            knobs::Scope::Live if knob.spec.key == "interface" => {
                "immediately, while the load runs; to or from one outside the kernel by rebuild"
            }
            knobs::Scope::Live => "immediately, while the load runs",
            knobs::Scope::Reopen => {
                "without ending the run: the load drains, and RocksDB is closed and reopened"
            }
            knobs::Scope::Rebuild => "after a rebuild: changes are collected, and Enter shows the plan",
        },
    );
    if let Some(why) = state.status.as_ref().and_then(|status| knob.inactive(&status.settings)) {
        row("inactive", why);
    }
    if let Some(paper) = knob.spec.paper {
        row("paper", paper);
    }
}

/// Every definition once, with all the tables that have it.
fn grouped() -> Vec<(String, &'static Knob)> {
    let mut groups: Vec<(Vec<&str>, &'static Knob)> = Vec::new();
    for knob in knobs::all() {
        let table = knob.path.split('.').next().unwrap_or_default();
        match groups.iter_mut().find(|(_, known)| std::ptr::eq(known.spec, knob.spec)) {
            Some((tables, _)) => tables.push(table),
            None => groups.push((vec![table], knob)),
        }
    }
    let name = |(tables, knob): (Vec<&str>, &'static Knob)| {
        (format!("{} – {}", knob.spec.key, tables.join(", ")), knob)
    };
    groups.into_iter().map(name).collect()
}
