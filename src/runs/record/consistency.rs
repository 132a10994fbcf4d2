//! Whether the figures of a recording agree with each other. Those of a run do; if others don't, they were
//! damaged or edited, and can't be trusted.

use hdrhistogram::Histogram;

use super::buckets::Buckets;
use super::derived::{self, differs};
use super::hlog::{Logged, Sums};
use super::numbers;
use super::rebuild::{self, KINDS};
use super::summary::{FlagNote, Frame, Summary};
use crate::class::Class;
use crate::meter::flag::{FlagKind, stem};
use crate::meter::window::{Change, Flag, Latency, LedgerLine, Window};

/// Further contradictions are only counted.
const SHOWN_MAX: usize = 5;

/// The contradictions, as clauses. `frame` is everything in the recording besides its windows; a summary that
/// is not `written` was just made from the windows.
pub fn contradictions(
    (summary, written): (&Summary, bool),
    windows: &[Window],
    ledger: &[LedgerLine],
    log: &Logged,
    frame: Frame,
) -> Vec<String> {
    let order = windows.windows(2).filter_map(|pair| gap(&pair[0], &pair[1]));
    let mut found: Vec<_> = order.chain(windows.iter().flat_map(of_window)).collect();
    found.extend(windows.iter().flat_map(derived::flags_of));
    let mut totals = of_summary(summary);
    let counted: Vec<_> = windows.iter().filter(|window| rebuild::counts(window)).collect();
    if written {
        let again = Summary::of(&rebuild::totals(&counted, &log.sums), frame);
        totals.extend(against_windows(summary, windows));
        totals.extend(against_sums(summary, &again));
        if totals.is_empty() {
            // Otherwise it would repeat the same.
            totals.extend(numbers::against(summary, &again));
        }
        found.append(&mut totals);
        found.extend(derived::against(summary, &again));
        found.extend(missing_flags(summary, &again, &counted));
    }
    found.append(&mut totals);
    let lines = if log.repeated == 1 { "1 line".to_owned() } else { format!("{} lines", log.repeated) };
    found.extend((log.repeated > 0).then(|| format!("latency.hlog repeats {lines}, counted only once")));
    found.extend(log.misfits.iter().cloned());
    if log.is_whole {
        found.extend(of_log(&log.sums, &counted));
        if written {
            found.extend(misfits(summary, &log.sums));
        }
    }
    found.extend(ledger.iter().flat_map(of_turn));
    found
}

/// Contradictions between the log and the windows it belongs to.
fn of_log(logged: &Sums, windows: &[&Window]) -> Vec<String> {
    let mut found = Vec::new();
    for class in Class::ALL {
        for (suffix, of) in KINDS {
            let of_windows = || windows.iter().filter_map(|window| of(&window.class(class).latencies));
            let count = of_windows().fold(0, |sum: u64, latency| sum.saturating_add(latency.count));
            let tag = format!("{class}{suffix}");
            let of_log = logged.get(&tag).map_or(0, Histogram::len);
            // Response times of a window whose rate was not held are logged, but not reported as figures.
            if of_log < count || of_log > count && suffix != ".response" {
                found.push(format!(
                    "latency.hlog has {of_log} samples of `{tag}`, but the windows have {count}"
                ));
            }
        }
    }
    found
}

/// Reports the findings as notes, and flags the run.
pub fn report(found: &[String], summary: &mut Summary, notes: &mut Vec<String>) {
    if found.is_empty() {
        return;
    }
    notes.extend(found.iter().take(SHOWN_MAX).map(|what| format!("Inconsistent: {what}.")));
    if found.len() > SHOWN_MAX {
        notes.push(format!("Inconsistent: {} more contradictions like these.", found.len() - SHOWN_MAX));
    }
    let flag = FlagKind::Inconsistent
        .flag("Its figures contradict each other: it was damaged, or changed after the run.");
    let note = FlagNote { why: flag.why, forbids_verdict: flag.forbids_verdict, ..FlagNote::default() };
    summary.flag_notes.insert(flag.text.clone(), note);
    if !summary.flags.contains(&flag.text) {
        summary.flags.push(flag.text);
    }
}

/// The flaw between two consecutive windows of the file.
fn gap(before: &Window, window: &Window) -> Option<String> {
    let (last, next) = (before.index, window.index);
    let end_ns = before.start_ns.saturating_add(before.duration_ns);
    Some(match next.checked_sub(last) {
        None => format!("window {next} comes after window {last}"),
        Some(0) => format!("window {next} is there twice"),
        Some(1) if window.start_ns == end_ns => return None,
        Some(1) => format!("window {next} does not begin where window {last} ends"),
        Some(2) => format!("window {} is missing", last + 1),
        Some(_) => format!("windows {} to {} are missing", last + 1, next - 1),
    })
}

fn of_window(window: &Window) -> Vec<String> {
    let at = window.index;
    let seconds = window.duration_ns as f64 / 1e9;
    let mut found = Vec::new();
    let mut bytes: u64 = 0;
    for class in Class::ALL {
        let figures = window.class(class);
        bytes = bytes.saturating_add(figures.bytes);
        let what = format!("{class} in window {at}");
        found.extend(rate(&what, figures.bytes, figures.mb_per_s, seconds));
        let latencies = KINDS.iter().filter_map(|(_, of)| of(&figures.latencies));
        found.extend(latencies.filter_map(|latency| disorder(&what, latency)));
    }
    if window.total.bytes != bytes {
        found.push(format!(
            "the classes in window {at} have {bytes} B, but its total is {}",
            window.total.bytes
        ));
    }
    found.extend(rate(
        &format!("the total in window {at}"),
        window.total.bytes,
        window.total.mb_per_s,
        seconds,
    ));
    found
}

fn of_summary(summary: &Summary) -> Vec<String> {
    let mut found = Vec::new();
    let (wal, seconds) = (&summary.classes.wal, summary.duration_s);
    for class in Class::ALL {
        let figures = summary.class(class);
        let what = class.to_string();
        found.extend(rate(&what, figures.bytes, figures.mb_per_s, seconds));
        let of_wal = [&wal.write_ns, &wal.flush_ns].into_iter().filter(|_| class == Class::Wal);
        let latencies = [&figures.service_ns, &figures.response_ns].into_iter().chain(of_wal).flatten();
        found.extend(latencies.filter_map(|latency| disorder(&what, latency)));
    }
    found.extend(rate("the total", summary.total.bytes, summary.total.mb_per_s, seconds));
    found
}

/// Totals that the windows do not add up to.
fn against_windows(summary: &Summary, windows: &[Window]) -> Vec<String> {
    let counted: Vec<_> = windows.iter().filter(|window| rebuild::counts(window)).collect();
    let sum = |of: &dyn Fn(&Window) -> u64| {
        counted.iter().fold(0, |sum: u64, window| sum.saturating_add(of(window)))
    };
    let mut pairs = vec![
        ("windows".to_owned(), summary.windows, counted.len() as u64),
        ("windows of warm-up".into(), summary.warmup_windows, (windows.len() - counted.len()) as u64),
        ("bytes of all classes".into(), summary.total.bytes, sum(&|window| window.total.bytes)),
    ];
    for class in Class::ALL {
        let figures = summary.class(class);
        pairs.extend([
            (format!("bytes of {class}"), figures.bytes, sum(&|window| window.class(class).bytes)),
            (format!("I/Os of {class}"), figures.ios, sum(&|window| window.class(class).ios)),
            (format!("errors of {class}"), figures.errors, sum(&|window| window.class(class).errors)),
            (format!("slow I/Os of {class}"), figures.slow_ios, sum(&|window| window.class(class).slow_ios)),
            (format!("missed starts of {class}"), figures.missed, sum(&|window| window.class(class).missed)),
        ]);
    }
    let mut found: Vec<_> = pairs
        .into_iter()
        .filter(|(_, total, sum)| total != sum)
        .map(|(what, total, sum)| format!("the summary has {total} {what}, windows.jsonl {sum}"))
        .collect();
    let seconds = sum(&|window| window.duration_ns) as f64 / 1e9;
    if differs(summary.duration_s, seconds) {
        found.push(format!(
            "the summary covers {:.3} s, but windows.jsonl covers {seconds:.3} s",
            summary.duration_s
        ));
    }
    found
}

/// Latencies of the totals that do not match the log's samples.
fn misfits(summary: &Summary, logged: &Sums) -> Vec<String> {
    let mut found = Vec::new();
    for class in Class::ALL {
        for ((suffix, _), latency) in KINDS.iter().zip(latencies(summary, class)) {
            let tag = format!("{class}{suffix}");
            let samples = logged.get(&tag).map(Buckets::of).unwrap_or_default();
            let Some(latency) = latency else {
                // Response times of a rate that was not held are not reported as figures.
                let none = *suffix == ".response" && summary.class(class).response_not_held;
                if samples.samples() > 0 && !none {
                    found.push(format!(
                        "the summary has no latency of {tag}, and latency.hlog has its samples"
                    ));
                }
                continue;
            };
            if let Some(what) = samples.misfit(latency) {
                found.push(format!("the {what} of {tag} in the summary does not match latency.hlog"));
            }
        }
    }
    found
}

/// A class's latencies, in the order of their kinds.
fn latencies(summary: &Summary, class: Class) -> [Option<&Latency>; 4] {
    let (figures, wal) = (summary.class(class), &summary.classes.wal);
    let of_wal = [&wal.write_ns, &wal.flush_ns].map(|of| of.as_ref().filter(|_| class == Class::Wal));
    [figures.service_ns.as_ref(), figures.response_ns.as_ref(), of_wal[0], of_wal[1]]
}

/// Totals that differ from the windows' sums.
fn against_sums(summary: &Summary, again: &Summary) -> Vec<String> {
    let mut pairs = vec![
        ("cycles/byte".to_owned(), summary.total.cycles_per_byte, again.total.cycles_per_byte),
        (
            "cycles/byte without others".into(),
            summary.total.attributable_cycles_per_byte,
            again.total.attributable_cycles_per_byte,
        ),
        // Earlier recordings lack it.
        ("I/Os per second".into(), Some(summary.total.iops).filter(|x| *x != 0.0), Some(again.total.iops)),
    ];
    for class in Class::ALL {
        let [one, other] = [summary, again].map(|of| Some(of.class(class).iops));
        pairs.push((format!("I/Os per second of {class}"), one, other));
    }
    let written = &summary.written;
    let own = [
        ("write amplification of the stack", summary.wa_a, written.wa_a()),
        ("write amplification of the drives", summary.wa_d, written.wa_d()),
        ("write amplification end to end", summary.wa_total, written.wa_total()),
        ("space amplification", summary.space_amplification, written.space_amplification()),
        ("write amplification of the engine", summary.wa_a_parts.engine, written.parts().engine),
        (
            "write amplification of the file system",
            summary.wa_a_parts.file_system,
            written.parts().file_system,
        ),
        ("write amplification of the array", summary.wa_a_parts.raid, written.parts().raid),
    ];
    pairs.extend(own.into_iter().map(|(what, one, other)| (what.to_owned(), one, other)));
    let [one, other] = [summary, again].map(|of| {
        [&of.written.drives_bytes, &of.written.top_bytes].map(|bytes| bytes.map(|bytes| bytes as f64))
    });
    pairs.extend([
        ("bytes of the drives".to_owned(), one[0], other[0]),
        ("bytes of the devices".into(), one[1], other[1]),
    ]);
    let wrong = |one: &Option<f64>, other: &Option<f64>| match (one, other) {
        (Some(one), Some(other)) => differs(*one, *other),
        (Some(_), None) => true,
        (None, _) => false,
    };
    pairs
        .into_iter()
        .filter(|(_, one, other)| wrong(one, other))
        .map(|(what, one, other)| {
            let shown = |x: Option<f64>| x.map_or("unknown".to_owned(), |x| format!("{x:.3}"));
            format!("the summary's {what} is {}, but {} by its parts", shown(one), shown(other))
        })
        .collect()
}

/// Flags that follow from the windows', but that the totals lack, or whose meaning was changed.
fn missing_flags(summary: &Summary, again: &Summary, counted: &[&Window]) -> Vec<String> {
    let mut found = Vec::new();
    let mut compare =
        |what: &str, has: &[String], wanted: &[String], windows: &dyn Fn(&Window) -> Vec<Flag>| {
            for flag in wanted {
                // These come from separate counters; if every window has one, so does the run.
                let own = [FlagKind::Cache, FlagKind::BlockLayerDiffers];
                let is_own = FlagKind::of(flag).is_some_and(|kind| own.contains(&kind));
                let same = |other: &str| stem(other) == stem(flag);
                let in_all = || counted.iter().all(|w| windows(w).iter().any(|of| same(&of.text)));
                if !has.iter().any(|of| same(of)) && (!is_own || in_all()) {
                    found.push(format!("the windows have {what} flagged `{flag}`, and the summary does not"));
                }
            }
        };
    compare("the run", &summary.flags, &again.flags, &|window| window.flags.clone());
    for class in Class::ALL {
        let (has, wanted) = (&summary.class(class).flags, &again.class(class).flags);
        compare(class.name(), has, wanted, &|window| window.class(class).flags.clone());
    }
    let all = Class::ALL.into_iter().flat_map(|class| &summary.class(class).flags).chain(&summary.flags);
    for flag in all {
        let forbids = |of: &Summary| of.flag_notes.get(flag).map(|note| note.forbids_verdict);
        match (forbids(summary), forbids(again)) {
            (None, _) => found.push(format!("the flag `{flag}` has no note")),
            (Some(false), Some(true)) => found.push(format!("the flag `{flag}` allows a verdict")),
            _ => {}
        }
    }
    found.sort();
    found.dedup();
    found
}

/// Means of a turn that are outside their own range.
fn of_turn(line: &LedgerLine) -> Vec<String> {
    let is_outside = |change: &Change| {
        let sides = [change.before.zip(change.before_range), change.after.zip(change.after_range)];
        sides.into_iter().flatten().any(|(mean, (low, high))| {
            (mean < low && differs(mean, low)) || (mean > high && differs(mean, high)) || low > high
        })
    };
    let outside = line.changes().into_iter().filter(|(_, change)| is_outside(change));
    outside
        .map(|(figure, _)| format!("{figure} of turn {} lies outside its own range", line.number))
        .collect()
}

/// Whether a rate does not match these bytes over that time.
fn rate(what: &str, bytes: u64, mb_per_s: f64, seconds: f64) -> Option<String> {
    let expected = bytes as f64 / 1e6 / seconds;
    (seconds > 0.0 && differs(mb_per_s, expected))
        .then(|| format!("{what} has {mb_per_s:.3} MB/s, but its bytes give {expected:.3}"))
}

/// Percentiles that are not in order.
fn disorder(what: &str, latency: &Latency) -> Option<String> {
    let Latency { mean, p50, p90, p99, p999, p9999, p99999, p999999, max, .. } = latency;
    let all = [
        ("p50", p50),
        ("p90", p90),
        ("p99", p99),
        ("p99.9", p999),
        ("p99.99", p9999),
        ("p99.999", p99999),
        ("p99.9999", p999999),
        ("its maximum", max),
    ];
    let known: Vec<_> = all.into_iter().filter_map(|(name, ns)| Some((name, (*ns)?))).collect();
    if let Some(pair) = known.windows(2).find(|pair| pair[0].1 > pair[1].1) {
        return Some(format!("a latency of {what} has {} below {}", pair[1].0, pair[0].0));
    }
    let (mean, max) = (*mean).zip(*max)?;
    (mean > max as f64).then(|| format!("a latency of {what} has a mean above its maximum"))
}
