//! How near a load comes to the trace that it was fitted to, as text and as JSON.

use std::fmt::Write;

use serde_json::{Value, json};

use super::cells::{NONE, WIDTH, left, paragraph, right};
use crate::trace::mimic::{Likeness, MimicLoad, PagesDrawn, is_alike};
use crate::units::{approx_size, approx_span, format_size, grouped, three_digits};

const INDENT: &str = "  ";
const CLASS: usize = 12;
const QUANTITY: usize = 21;
const FIGURE: usize = 9;

/// The settings of each class, and each figure beside its value in the half that was not used for fitting.
pub fn mimic(name: &str, load: &MimicLoad) -> String {
    let mut out = String::new();
    for line in heading(name, load).into_iter().chain(notes(load)) {
        let _ = writeln!(out, "{}", paragraph(&line, WIDTH, INDENT));
    }
    let is_replayed = load.likenesses.iter().any(|one| one.replayed.is_some());
    let head = |word: &str| right(word, FIGURE);
    let replayed = if is_replayed { [head("replayed"), head("off by")].concat() } else { String::new() };
    let labels = [left("class", CLASS), left("figure", QUANTITY)].concat();
    let _ = writeln!(out, "\n{labels}{}{}{}{replayed}", head("fitted"), head("held out"), head("off by"));
    for one in &load.likenesses {
        let [quantity, unit] = one.quantity.name();
        let quantity = if unit.is_empty() { quantity.to_owned() } else { format!("{quantity}, {unit}") };
        let shown =
            |figure: Option<f64>| right(&figure.map_or_else(|| NONE.to_owned(), three_digits), FIGURE);
        let mut cells = vec![shown(Some(one.fitted)), shown(one.held_out), off_by(one.difference())];
        if is_replayed {
            cells.extend([shown(one.replayed), off_by(one.replayed_difference())]);
        }
        let labels = [left(one.class.name(), CLASS), left(&quantity, QUANTITY)].concat();
        let _ = writeln!(out, "{labels}{}", cells.concat());
    }
    let _ = writeln!(out, "\n{}", paragraph(&verdict(load), WIDTH, INDENT));
    out
}

/// How far a figure is off, with a mark if that is too far.
fn off_by(difference: Option<f64>) -> String {
    let Some(difference) = difference else { return right(NONE, FIGURE) };
    let mark = if is_alike(difference) { "" } else { "!" };
    let percent =
        if difference.is_finite() { format!("{:+.1}%", 100.0 * difference) } else { "from 0".into() };
    right(&format!("{mark}{percent}"), FIGURE)
}

fn heading(name: &str, load: &MimicLoad) -> Vec<String> {
    let half = approx_span(load.half_seconds);
    let space = approx_size(load.space_bytes);
    let mut lines = vec![format!(
        "{name}: fitted to its first half, {half}, and checked on the second; a space of {space}"
    )];
    lines.extend(load.classes.iter().map(|fit| {
        let pages = match fit.pages {
            PagesDrawn::InOrder => "in order".to_owned(),
            PagesDrawn::Uniform => "every page equally often".to_owned(),
            PagesDrawn::Zipf(theta) => format!("hot pages, Zipf {theta}"),
            PagesDrawn::Runs(jumps) => format!("in runs, {:.1}% jump", 100.0 * jumps),
        };
        let flushes =
            fit.writes_a_flush.map_or_else(String::new, |writes| format!(", a flush for each {writes}"));
        let starts = if fit.is_random { "at random" } else { "evenly" };
        format!(
            "{}: pages of {} at {} MB/s, {starts}, depth {} at most, {pages}{flushes}",
            fit.class.name(),
            format_size(fit.page_bytes),
            three_digits(fit.rate_bytes_per_s as f64 / 1e6),
            fit.depth,
        )
    }));
    lines
}

fn notes(load: &MimicLoad) -> Vec<String> {
    let mut notes: Vec<String> = load
        .left_out
        .iter()
        .map(|(class, ios)| format!("{} is left out: it has too few I/Os, {}", class.name(), grouped(*ios)))
        .collect();
    let counted = [(load.discards, "discards"), (load.flushes, "flushes of no log")];
    let counted = counted.into_iter().filter(|(count, _)| *count > 0);
    notes.extend(
        counted
            .map(|(count, what)| format!("{what} are left out, which no class issues: {}", grouped(count))),
    );
    if load.classes.iter().any(|fit| fit.mean_depth.is_none()) {
        notes.push("nothing is known of depth, as completions are missing".to_owned());
    }
    notes
}

/// Whether all figures are within a tenth.
fn verdict(load: &MimicLoad) -> String {
    let off = |difference: fn(&Likeness) -> Option<f64>| {
        let known = || load.likenesses.iter().filter_map(difference);
        (known().filter(|by| !is_alike(*by)).count(), known().count())
    };
    let in_words = |what: &str, (off, all): (usize, usize)| match off {
        0 => format!("All {all} figures of {what} are within 10% of the second half."),
        _ => format!("{off} of {all} figures of {what} are not within 10% of the second half (!)."),
    };
    let mut text = in_words("the fit", off(Likeness::difference));
    let replayed = off(Likeness::replayed_difference);
    if replayed.1 > 0 {
        text = format!("{text} {}", in_words("the replay", replayed));
    }
    text + " Mean depth is no setting: it follows from the drive."
}

/// The same for programs.
pub fn mimic_json(name: &str, load: &MimicLoad) -> Value {
    let likeness = |one: &Likeness| {
        let [quantity, unit] = one.quantity.name();
        json!({
            "class": one.class.name(),
            "figure": quantity,
            "unit": unit,
            "fitted": one.fitted,
            "held_out": one.held_out,
            "difference": one.difference().filter(|by| by.is_finite()),
            "is_alike": one.difference().map(is_alike),
            "replayed": one.replayed,
            "replayed_difference": one.replayed_difference().filter(|by| by.is_finite()),
            "replayed_is_alike": one.replayed_difference().map(is_alike),
        })
    };
    let left_out = |(class, ios): &(crate::class::Class, u64)| json!({ "class": class.name(), "ios": ios });
    json!({
        "trace": name,
        "space_bytes": load.space_bytes,
        "half_seconds": load.half_seconds,
        "figures": load.likenesses.iter().map(likeness).collect::<Vec<_>>(),
        "left_out": load.left_out.iter().map(left_out).collect::<Vec<_>>(),
        "discards": load.discards,
        "flushes_of_no_log": load.flushes,
    })
}
