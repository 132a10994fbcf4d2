//! The parts of a recording that follow from its windows beyond sums: members, steadiness, variability,
//! pitfalls, cost, and the flags that figures raise. Whoever edits a figure has to edit these, too.

use std::fmt::Display;

use super::summary::{Cost, Summary};
use crate::class::Class;
use crate::meter::flag::{Flag, FlagKind};
use crate::meter::flags::{implied_of_class, implied_of_window};
use crate::meter::whole_run::steady_state::{Mean, Steadiness};
use crate::meter::whole_run::variability::Variability;
use crate::meter::window::{MemberFigures, Window};

/// How far a figure may be off, as a share of itself: it was rounded.
const ROUNDING: f64 = 1e-3;

/// Whether two figures differ.
pub(super) fn differs(a: f64, b: f64) -> bool {
    (a - b).abs() > a.abs().max(b.abs()) * ROUNDING
}

/// Whether just one of them is known, or both are and differ.
fn differ(a: Option<f64>, b: Option<f64>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => differs(a, b),
        (a, b) => a.is_some() != b.is_some(),
    }
}

/// Parts of the summary that differ from `again`, which is made from its windows.
pub(super) fn against(summary: &Summary, again: &Summary) -> Vec<String> {
    let mut found = members(&summary.members, &again.members);
    found.extend(steadiness(&summary.steady, &again.steady));
    found.extend(variability(&summary.variability, &again.variability));
    found.extend(pitfalls(summary, again));
    found.extend(cost(summary.cost.as_ref(), again.cost.as_ref()));
    if summary.program != again.program {
        found.push("the summary's program does not match its windows".to_owned());
    }
    found
}

fn members(has: &[MemberFigures], again: &[MemberFigures]) -> Vec<String> {
    if has.len() != again.len() {
        return vec![format!("the summary has {} members, windows.jsonl {}", has.len(), again.len())];
    }
    let mut found = Vec::new();
    for (member, again) in has.iter().zip(again) {
        let name = &member.name;
        found.extend(unlike("the name of", name, Some(&member.name), Some(&again.name)));
        for (what, one, other) in [
            ("bytes read from", Some(member.read_bytes), Some(again.read_bytes)),
            ("bytes written to", Some(member.written_bytes), Some(again.written_bytes)),
            ("the block layer's bytes read from", member.block_read_bytes, again.block_read_bytes),
            ("the block layer's bytes written to", member.block_written_bytes, again.block_written_bytes),
        ] {
            found.extend(unlike(what, name, one.as_ref(), other.as_ref()));
        }
        if differ(member.temperature_c, again.temperature_c) {
            found.extend(unlike(
                "the temperature of",
                name,
                member.temperature_c.as_ref(),
                again.temperature_c.as_ref(),
            ));
        }
        let throttling = [member, again].map(|of| of.throttling.map(|how| format!("{how:?}").to_lowercase()));
        found.extend(unlike("the throttling of", name, throttling[0].as_ref(), throttling[1].as_ref()));
    }
    found
}

/// The clause for a value that differs in the windows.
fn unlike<T: PartialEq + Display>(
    what: &str,
    of: &str,
    has: Option<&T>,
    again: Option<&T>,
) -> Option<String> {
    let shown = |value: Option<&T>| value.map_or_else(|| "unknown".to_owned(), T::to_string);
    (has != again)
        .then(|| format!("{what} {of}: {} in the summary, but {} by windows.jsonl", shown(has), shown(again)))
}

fn steadiness(has: &Steadiness, again: &Steadiness) -> Option<String> {
    // Earlier recordings lack it, and show none.
    if *has == Steadiness::default() {
        return None;
    }
    let spans = [has.at_s.zip(again.at_s), has.level_since_s.zip(again.level_since_s)];
    let same_times = has.at_s.is_some() == again.at_s.is_some()
        && has.level_since_s.is_some() == again.level_since_s.is_some()
        && !spans.into_iter().flatten().any(|(a, b)| differs(a, b));
    if has.state != again.state || has.figures != again.figures || !same_times {
        return Some(format!("the summary's run is {has}, but by its windows {again}"));
    }
    // Earlier versions used a single number of capacities needed.
    let needed = has.capacities_needed.is_some() && differ(has.capacities_needed, again.capacities_needed);
    if needed || differ(has.capacities_written, again.capacities_written) {
        return Some("the summary's capacities written do not match its windows".to_owned());
    }
    let means = [(&has.burst, &again.burst, "burst"), (&has.steady, &again.steady, "steady")];
    means
        .into_iter()
        .find(|(one, other, _)| !same_mean(one.as_ref(), other.as_ref()))
        .map(|(.., which)| format!("the summary's {which} figures do not match its windows"))
}

fn same_mean(one: Option<&Mean>, other: Option<&Mean>) -> bool {
    let (Some(one), Some(other)) = (one, other) else { return one.is_some() == other.is_some() };
    let rates = |of: &Mean| [of.from_s, of.to_s, of.mb_per_s, of.iops].map(Some);
    let all = |of: &Mean| rates(of).into_iter().chain([of.wa_a, of.wa_d, of.reported]).collect::<Vec<_>>();
    !all(one).into_iter().zip(all(other)).any(|(one, other)| differ(one, other))
}

fn variability(has: &Variability, again: &Variability) -> Option<String> {
    if *has == Variability::default() {
        return None;
    }
    let stalled =
        |of: &Variability| [of.stalled_s].into_iter().chain(of.classes_stalled_s).collect::<Vec<_>>();
    let same = has.of_s == again.of_s
        && has.spans == again.spans
        && !differ(has.swing, again.swing)
        && !differ(has.deviation, again.deviation)
        && !stalled(has).into_iter().zip(stalled(again)).any(|(one, other)| differs(one, other));
    (!same).then(|| "the summary's variability does not match its windows".to_owned())
}

/// Pitfalls, if the run is of this version: others may weigh them differently.
fn pitfalls(summary: &Summary, again: &Summary) -> Vec<String> {
    if summary.stacktune != again.stacktune {
        return Vec::new();
    }
    let wrong = again.pitfalls.iter().filter_map(|again| {
        let has = summary.pitfalls.iter().find(|has| has.name == again.name);
        let shown = has.map_or("missing", |has| has.light.word());
        let same =
            has.is_some_and(|has| has.light == again.light && numbers(&has.figure) == numbers(&again.figure));
        let (name, light, figure) = (&again.name, again.light.word(), &again.figure);
        (!same).then(|| format!("the pitfall `{name}` is {shown}, but by the windows {light} ({figure})"))
    });
    wrong.collect()
}

/// The numbers in a text: the words around them may be from another build.
fn numbers(text: &str) -> Vec<&str> {
    text.split(|c: char| !c.is_ascii_digit()).filter(|number| !number.is_empty()).collect()
}

fn cost(has: Option<&Cost>, again: Option<&Cost>) -> Option<String> {
    // Without a price, or from before there were prices.
    let (has, again) = (has?, again?);
    let figures = |of: &Cost| [Some(of.price), of.per_usable_tb, of.per_scan_gb_per_s];
    let same = has.usable_bytes == again.usable_bytes
        && !figures(has).into_iter().zip(figures(again)).any(|(one, other)| differ(one, other));
    (!same).then(|| "the summary's cost does not match its price and windows".to_owned())
}

/// Flags that a window lacks although its own figures raise them.
pub(super) fn flags_of(window: &Window) -> Vec<String> {
    let at = window.index;
    let lacks = |has: &[Flag], implied: Vec<FlagKind>| {
        let missing = implied.into_iter().filter(|kind| !has.iter().any(|flag| flag.is(*kind)));
        missing.map(FlagKind::text).collect::<Vec<_>>()
    };
    let mut found: Vec<String> = lacks(&window.flags, implied_of_window(window))
        .into_iter()
        .map(|text| format!("window {at} is not flagged `{text}`, although its figures raise it"))
        .collect();
    for class in Class::ALL {
        let figures = window.class(class);
        let missing = lacks(&figures.flags, implied_of_class(figures)).into_iter();
        found.extend(missing.map(|text| {
            format!("{class} in window {at} is not flagged `{text}`, although its figures raise it")
        }));
    }
    found
}
