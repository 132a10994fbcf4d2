//! The five rules of the contract with drives, as text.

use std::fmt::Write;

use super::cells::{NONE, WIDTH, left, paragraph, percent, right};
use crate::trace::contract::{Five, Light, OpLatency, Rule, Scores, TRAFFIC_MIN, Unaligned, Why};
use crate::trace::{Op, PLACED, Trace};
use crate::units::{approx_size, approx_span, format_latency, format_size, grouped, three_digits};

const RULE: usize = 24;
const LIGHT: usize = 16;
const INDENT: &str = "  ";

/// A rule: its name, and which mapping of a drive makes it matter, and when (He et al. 2017, Table 1).
pub const RULES: [(&str, &str); 5] = [
    ("request scale", "mapping by pages or hybrid: at once, and in the long run"),
    ("locality", "mapping by pages: at once, and in the long run"),
    ("alignment", "hybrid mapping: in the long run"),
    ("grouping by death time", "mapping by pages: in the long run"),
    ("uniform data lifetime", "mapping by pages or hybrid: in the long run"),
];

/// The scores of a trace, in at most 80 columns.
pub fn contract(name: &str, trace: &Trace, scores: &Scores) -> String {
    let mut out = paragraph(&heading(name, trace, scores), WIDTH, INDENT);
    out.push('\n');
    for note in notes(trace, scores) {
        let _ = writeln!(out, "{}", paragraph(&note, WIDTH, INDENT));
    }
    let _ = writeln!(out, "\n{}{}figure", left("rule", RULE), left("is kept", LIGHT));
    let is_asked = |rule: &Rule| scores.rules.contains(rule);
    let lines = RULES.iter().zip(scores.lights()).zip(rule_figures(scores)).zip(Rule::ALL);
    for ((((rule, _), light), figure), _) in lines.filter(|(_, rule)| is_asked(rule)) {
        let indent = " ".repeat(RULE + LIGHT);
        let figure = paragraph(&format!("{indent}{figure}"), WIDTH, &indent);
        let labels = [left(rule, RULE), left(light.name(), LIGHT)].concat();
        let _ = writeln!(out, "{labels}{}", figure.trim_start());
    }
    if is_asked(&Rule::RequestScale) {
        out.push_str(&size_table(scores));
    }
    out.push('\n');
    let lines = RULES.iter().zip(advice(scores)).zip(Rule::ALL);
    for (((rule, matters), what), _) in lines.filter(|(_, rule)| is_asked(rule)) {
        let text = format!("{rule} – {what}. It matters with {matters}.");
        let _ = writeln!(out, "{}", paragraph(&text, WIDTH, INDENT));
    }
    out
}

fn heading(name: &str, trace: &Trace, scores: &Scores) -> String {
    let ios = grouped(scores.ios as u64);
    let time = match scores.requests.duration_ns {
        0 => String::new(),
        ns => format!(" in {}", approx_span(ns as f64 / 1e9)),
    };
    format!("{name}: {ios} I/Os of drive {}{time}, from {}", scores.drive, trace.form.name())
}

/// What to know about the trace and the space.
fn notes(trace: &Trace, scores: &Scores) -> Vec<String> {
    let space = approx_size(scores.space_bytes);
    let reaches =
        if scores.space_is_assumed { ", up to the furthest I/O (--logical gives another)" } else { "" };
    let mut notes = vec![format!("a space of {space}{reaches}; pages of {}", format_size(scores.page_bytes))];
    let first_ns = trace.phases().map(|(_, at_ns)| at_ns).min().unwrap_or(0);
    let began = |(name, at_ns): (&str, u64)| {
        format!("{name} from {} on", approx_span(at_ns.saturating_sub(first_ns) as f64 / 1e9))
    };
    let phases: Vec<_> = trace.phases().map(began).collect();
    if !phases.is_empty() {
        notes.push(format!("phases, of which --phase scores one: {}", phases.join(", ")));
    }
    let counted = [
        (scores.others, "I/Os outside of it, which are left out"),
        (scores.rewritten_in_part, "pages written in part, whose old content has to be read"),
        (trace.open(), "I/Os open at the end, which count as open from their issue on"),
        (trace.unpaired, "completions of nothing that was issued in the trace"),
        (trace.requeued, "I/Os handed back by the drive's driver, which count when they were issued again"),
    ];
    let counted = counted.into_iter().filter(|(count, _)| *count > 0);
    notes.extend(counted.map(|(count, what)| format!("{what}: {}", grouped(count))));
    if let Some(bytes) = scores.alignment.first().and_then(Unaligned::ghost_bytes).filter(|bytes| *bytes > 0)
    {
        notes.push(format!("ghost data, valid on the drive and in no file: {}", approx_size(bytes)));
    }
    match (scores.lost.all, scores.lost.others()) {
        (0, _) => {}
        (completions, 0) => notes.push(format!(
            "{} completions are missing: nothing is known of depth, and the rules are judged by what was issued",
            grouped(completions)
        )),
        (all, _) => notes.push(format!(
            "{} events are missing by their numbers: lost, or left out by a filter of blkparse's. Nothing is judged by \
             what is left: trace again with larger buffers (blktrace -b, -n)",
            grouped(all)
        )),
    }
    notes
}

/// The figure of each rule.
pub fn rule_figures(scores: &Scores) -> [String; 5] {
    let [one, segmented] = &scores.zombies;
    let shown = |figure: Option<f64>| figure.map_or_else(|| NONE.to_owned(), three_digits);
    let misses: Vec<_> = scores
        .misses
        .iter()
        .filter_map(|miss| Some(format!("{} at {}%", percent(miss.ratio()?), miss.coverage_percent)))
        .collect();
    let unaligned = |figure: fn(&Unaligned) -> Option<f64>| {
        let of =
            |of: &Unaligned| format!("{} in blocks of {}", shown(figure(of)), format_size(of.block_bytes));
        scores.alignment.iter().map(of).collect::<Vec<_>>().join(", ")
    };
    let has_files = scores.alignment.iter().any(|of| of.file_bytes.is_some());
    let of_files =
        if has_files { format!("; of the files: {}", unaligned(Unaligned::ratio)) } else { String::new() };
    let lifetime = &scores.lifetime;
    [
        busiest(scores),
        format!("misses of a cache that covers a share: {}", misses.join(", ")),
        format!("unaligned: {}{of_files}", unaligned(Unaligned::share)),
        format!(
            "zombies: {}; {} in segments of {}",
            one.zombie_share().map_or_else(|| NONE.to_owned(), percent),
            segmented.zombie_share().map_or_else(|| NONE.to_owned(), percent),
            format_size(segmented.segment_bytes.unwrap_or_default())
        ),
        format!(
            "writes of pages: p99 ÷ p50 {}, max ÷ mean {}, Gini {}; the space written {} times, of {TRAFFIC_MIN}",
            shown(lifetime.p99_to_p50()),
            shown(lifetime.max_to_mean()),
            shown(lifetime.gini()),
            three_digits(scores.traffic()),
        ),
    ]
}

/// The most frequent kind, as its place in [`PLACED`].
fn most(scores: &Scores) -> Option<usize> {
    let count = |kind: &usize| scores.requests.sizes[*kind].map_or(0, |five| five.count);
    (0..PLACED.len()).filter(|kind| count(kind) > 0).max_by_key(count)
}

fn busiest(scores: &Scores) -> String {
    let Some((kind, sizes)) = most(scores).and_then(|kind| Some((kind, scores.requests.sizes[kind]?))) else {
        return NONE.to_owned();
    };
    let depth =
        scores.requests.depth[kind].map_or_else(String::new, |depth| format!(" at depth {}", depth.median()));
    let in_flight = scores.requests.in_flight_bytes;
    let in_flight = in_flight.map_or_else(String::new, |five| format!("; in flight {}", size(five.median())));
    format!("median {} {}{depth}{in_flight}", PLACED[kind].name(), size(sizes.median()))
}

fn size(bytes: f64) -> String {
    approx_size(bytes as u64)
}

/// The table of sizes and depths.
pub fn size_table(scores: &Scores) -> String {
    let requests = &scores.requests;
    let head = ["I/Os", "bytes", "size p25", "median", "p75", "depth p25", "p50", "p75"];
    let widths = [10, 10, 10, 10, 10, 10, 6, 6];
    let row = |name: &str, cells: [String; 8]| {
        let cells = cells.iter().zip(widths).map(|(cell, width)| right(cell, width));
        format!("{}{}\n", left(name, 8), cells.collect::<Vec<_>>().concat())
    };
    let mut out = format!("\n{}", row("", head.map(str::to_owned)));
    for ((op, sizes), depth) in PLACED.iter().zip(&requests.sizes).zip(&requests.depth) {
        let Some(sizes) = sizes else { continue };
        let [low, median, high] = [1, 2, 3].map(|at| size(sizes.numbers[at]));
        let depths =
            depth.map_or([NONE; 3].map(str::to_owned), |of| [1, 2, 3].map(|at| of.numbers[at].to_string()));
        let [least, middle, large] = depths;
        let bytes = size(sizes.sum as f64);
        out.push_str(&row(op.name(), [grouped(sizes.count), bytes, low, median, high, least, middle, large]));
    }
    let median = |five: Option<Five>| five.map_or_else(|| NONE.to_owned(), |five| size(five.median()));
    let share = |share: Option<f64>| share.map_or_else(|| NONE.to_owned(), percent);
    let mean = requests.mean_depth.map_or_else(|| NONE.to_owned(), three_digits);
    let text = format!(
        "mean depth {mean}; nothing open for {} of the time; {} of requests are discards; medians: {} between moments \
         with nothing open, {} between {} flushes",
        share(requests.idle_share),
        share(requests.discard_ratio()),
        median(requests.between_drains_bytes),
        median(requests.between_flushes_bytes),
        grouped(requests.flushes),
    );
    let _ = writeln!(out, "{}", paragraph(&text, WIDTH, INDENT));
    out.push_str(&latency_table(scores));
    out
}

/// How long I/Os took at the drive; empty if that is unknown.
fn latency_table(scores: &Scores) -> String {
    let row = |name: &str, cells: [String; 6]| {
        let cells = cells.iter().map(|cell| right(cell, 12));
        format!("{}{}\n", left(name, 8), cells.collect::<Vec<_>>().concat())
    };
    let rows = Op::ALL.iter().zip(&scores.requests.latency).filter_map(|(op, latency)| {
        let OpLatency { count, p50_ns, p90_ns, p99_ns, p999_ns, max_ns } = (*latency)?;
        let times = [p50_ns, p90_ns, p99_ns, p999_ns, Some(max_ns)];
        let [p50, p90, p99, p999, max] = times.map(|ns| ns.map_or_else(|| NONE.to_owned(), format_latency));
        Some(row(op.name(), [grouped(count), p50, p90, p99, p999, max]))
    });
    let rows: String = rows.collect();
    if rows.is_empty() {
        return rows;
    }
    let head = ["completed", "p50", "p90", "p99", "p99.9", "longest"].map(str::to_owned);
    format!("\n  From issue to completion, at the drive:\n{}{rows}", row("", head))
}

/// What to turn, for each rule.
pub fn advice(scores: &Scores) -> [&'static str; 5] {
    let kind = most(scores);
    let median = |of: &[Option<Five>; 3]| kind.and_then(|kind| of[kind]).map(|five| five.median());
    let scale = match (median(&scores.requests.depth), median(&scores.requests.sizes)) {
        (Some(depth), _) if depth <= 1.0 => {
            "most requests are alone at the drive: raise `scan.depth`, `point.depth` or `threads`, or for cached reads \
             `queue.read_ahead_kb`"
        }
        (_, Some(bytes)) if bytes < 16_384.0 => {
            "most requests are small: raise `io.page_size`, let requests merge (`queue.nomerges` 0), or commit more at \
             once (`wal.sync_every`)"
        }
        _ => "if throughput is below the drive's, raise `io.page_size` or the classes' `depth`",
    };
    let turns = [
        scale,
        "keep to a part of the drive: a smaller data set or `stack.use`, or a file system that soon uses space again \
         (`stack.filesystem`)",
        "write larger pieces from the beginning of a block on (`background.page_size`, `wal.sync_every`), and let go of \
         what is deleted (`discard` in `stack.mount_options`)",
        "put apart what dies apart: the log on a target of its own (`wal.target`), and discards at once (`discard` in \
         `stack.mount_options`)",
        "the pages that are written most are often a journal's or a log's: put the log on a target of its own \
         (`wal.target`), or flush it less often (`wal.sync_every`)",
    ];
    let mut turns = turns.into_iter();
    scores.lights().map(|light| {
        let turn = turns.next().unwrap_or_default();
        match light {
            Light::Good => "kept: there is nothing to turn",
            Light::Doubt | Light::Poor | Light::Unjudged(Why::NoModel) => turn,
            Light::Unjudged(Why::Lost) => "not judged: events are missing from the trace",
            Light::Unjudged(Why::NotAsked) => {
                "not judged: it goes by 10% of the space, and by blocks of 128 KiB, which were not asked for"
            }
            Light::Unjudged(Why::NoIo | Why::NoWrites) => "not judged: there was nothing to judge by",
            Light::Unjudged(Why::NotStable) => "not judged yet: the curve still moves, trace for longer",
            Light::Unjudged(Why::TooShort) => "not judged yet: trace until the space was written 50 times",
        }
    })
}
