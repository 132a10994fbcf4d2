//! The five rules of the contract with drives, as JSON and as files of comma-separated values.

use std::fmt::Write;

use serde_json::{Value, json};

use super::contract::{RULES, advice, rule_figures};
use crate::runs::record::TRACE;
use crate::trace::contract::{Five, Rule, Scores, Zombies};
use crate::trace::{Op, PLACED, Trace, Traced, Watched, scored};

/// The version of what [`contract_kept`] makes.
const SCHEMA: u32 = 1;

/// What a recording keeps of its trace: each drive's scores, or why it has none. `file_bytes` is what the
/// application's files hold; it only counts if there is a single drive.
pub fn contract_kept(traced: &Traced, drives: &[Watched], file_bytes: Option<u64>) -> Value {
    let file_bytes = file_bytes.filter(|_| drives.len() == 1);
    let of = |drive: &Watched| {
        let mut kept = match scored(&traced.trace, drive, file_bytes) {
            Ok(scores) => contract_json(TRACE, &traced.trace, &scores),
            Err(why) => json!({ "why": why }),
        };
        kept["name"] = json!(drive.name);
        kept
    };
    json!({
        "schema": SCHEMA,
        "lost": traced.trace.lost.all,
        "lost_completions": traced.trace.lost.completions,
        "is_cut": traced.is_cut,
        "drives": drives.iter().map(of).collect::<Vec<_>>(),
    })
}

/// All scores; unknown ones are null.
pub fn contract_json(name: &str, trace: &Trace, scores: &Scores) -> Value {
    let [one, segmented] = &scores.zombies;
    let lifetime = &scores.lifetime;
    let mut all = json!({
        "trace": name,
        "form": trace.form.name(),
        "drive": scores.drive.to_string(),
        "ios": scores.ios,
        "others": scores.others,
        "open": trace.open(),
        "unpaired": trace.unpaired,
        "requeued": trace.requeued,
        "notes": trace.notes.iter().map(|note| json!({ "at_ns": note.at_ns, "text": note.text })).collect::<Vec<_>>(),
        "lost": scores.lost.all,
        "lost_completions": scores.lost.completions,
        "space_bytes": scores.space_bytes,
        "space_is_assumed": scores.space_is_assumed,
        "page_bytes": scores.page_bytes,
        "pages_written_in_part": scores.rewritten_in_part,
        "rules": rules(scores),
        "request_scale": request_scale(scores),
        "locality": locality(scores),
        "alignment": alignment(scores),
        "grouping": { "one_segment": zombies(one), "segmented": zombies(segmented) },
        "lifetime": {
            "pages": lifetime.pages(),
            "page_writes": lifetime.writes(),
            "times_written": scores.traffic(),
            "max_to_mean": lifetime.max_to_mean(),
            "p99_to_p50": lifetime.p99_to_p50(),
            "gini": lifetime.gini(),
            "written_share_by_quarter": lifetime.written_shares(),
        },
    });
    let parts = ["request_scale", "locality", "alignment", "grouping", "lifetime"];
    for (part, rule) in parts.iter().zip(Rule::ALL) {
        if !scores.rules.contains(&rule) {
            all[part] = Value::Null;
        }
    }
    all
}

fn rules(scores: &Scores) -> Vec<Value> {
    let lines =
        RULES.iter().zip(scores.lights()).zip(rule_figures(scores)).zip(advice(scores)).zip(Rule::ALL);
    lines
        .filter(|(_, rule)| scores.rules.contains(rule))
        .map(|(((((rule, matters), light), figure), turn), _)| {
            json!({
                "rule": rule,
                "is_kept": light.name(),
                "figure": figure,
                "matters_with": matters,
                "turn": turn,
            })
        })
        .collect()
}

fn locality(scores: &Scores) -> Vec<Value> {
    scores
        .misses
        .iter()
        .map(|miss| {
            json!({
                "coverage_percent": miss.coverage_percent,
                "cached_translation_pages": miss.cached,
                "lookups": miss.lookups,
                "misses": miss.misses,
                "entry_misses": miss.entry_misses,
                "ratio": miss.ratio(),
            })
        })
        .collect()
}

fn alignment(scores: &Scores) -> Vec<Value> {
    scores
        .alignment
        .iter()
        .map(|of| {
            json!({
                "block_bytes": of.block_bytes,
                "valid_bytes": of.valid_bytes,
                "unaligned_bytes": of.unaligned_bytes,
                "merged_bytes": of.merged_bytes,
                "file_bytes": of.file_bytes,
                "ghost_bytes": of.ghost_bytes(),
                "ratio": of.ratio(),
                "share_of_valid": of.share(),
            })
        })
        .collect()
}

fn request_scale(scores: &Scores) -> Value {
    let requests = &scores.requests;
    let mut by_op = json!({});
    for ((op, sizes), depth) in PLACED.iter().zip(requests.sizes).zip(requests.depth) {
        by_op[op.name()] = json!({ "bytes": five(sizes), "depth": five(depth) });
    }
    let mut latency = json!({});
    for (op, of_op) in Op::ALL.iter().zip(&requests.latency) {
        latency[op.name()] = of_op.map_or(Value::Null, |of_op| {
            json!({
                "count": of_op.count,
                "p50_ns": of_op.p50_ns,
                "p90_ns": of_op.p90_ns,
                "p99_ns": of_op.p99_ns,
                "p999_ns": of_op.p999_ns,
                "max_ns": of_op.max_ns,
            })
        });
    }
    json!({
        "by_operation": by_op,
        "latency": latency,
        "in_flight_bytes": five(requests.in_flight_bytes),
        "between_drains_bytes": five(requests.between_drains_bytes),
        "between_flushes_bytes": five(requests.between_flushes_bytes),
        "flushes": requests.flushes,
        "written_bytes_a_flush": requests.written_a_flush(),
        "duration_ns": requests.duration_ns,
        "mean_depth": requests.mean_depth,
        "idle_share": requests.idle_share,
        "discard_ratio": requests.discard_ratio(),
    })
}

fn five(of: Option<Five>) -> Value {
    let Some(of) = of else { return Value::Null };
    let [min, lower_hinge, median, upper_hinge, max] = of.numbers;
    let [lower_whisker, upper_whisker] = of.whiskers;
    json!({
        "count": of.count,
        "sum": of.sum as f64,
        "min": min,
        "lower_whisker": lower_whisker,
        "lower_hinge": lower_hinge,
        "median": median,
        "upper_hinge": upper_hinge,
        "upper_whisker": upper_whisker,
        "max": max,
    })
}

fn zombies(of: &Zombies) -> Value {
    json!({
        "segment_bytes": of.segment_bytes,
        "channels": of.channels,
        "blocks": of.blocks.iter().sum::<u64>(),
        "live_blocks": of.live(),
        "valid_pages": of.valid(),
        "length": of.length(),
        "area": of.area(),
        "zombie_share": of.zombie_share(),
        "is_stable": of.is_stable,
    })
}

/// The curves of the rules that were asked for: file names and contents.
pub fn contract_files(scores: &Scores) -> Vec<(&'static str, String)> {
    let [one, segmented] = &scores.zombies;
    let files = [
        (Rule::RequestScale, "sizes.csv", boxes(&scores.requests.sizes)),
        (Rule::RequestScale, "depth.csv", boxes(&scores.requests.depth)),
        (Rule::Locality, "miss.csv", misses(scores)),
        (Rule::Alignment, "unaligned.csv", unaligned(scores)),
        (Rule::Grouping, "zombie-single.csv", curve(one)),
        (Rule::Grouping, "zombie-segmented.csv", curve(segmented)),
        (Rule::Lifetime, "lifetime.csv", lifetime(scores)),
    ];
    let asked = files.into_iter().filter(|(rule, _, _)| scores.rules.contains(rule));
    asked.map(|(_, name, text)| (name, text)).collect()
}

fn boxes(of: &[Option<Five>; 3]) -> String {
    let mut out = String::from(
        "operation,count,sum,min,lower_whisker,lower_hinge,median,upper_hinge,upper_whisker,max\n",
    );
    for (op, five) in PLACED.iter().zip(of) {
        let Some(five) = five else { continue };
        let ([min, low, median, high, max], [near, far]) = (five.numbers, five.whiskers);
        let (name, count, sum) = (op.name(), five.count, five.sum);
        let _ = writeln!(out, "{name},{count},{sum},{min},{near},{low},{median},{high},{far},{max}");
    }
    out
}

fn misses(scores: &Scores) -> String {
    let mut out = String::from("coverage_percent,cached_translation_pages,lookups,misses,entry_misses\n");
    for miss in &scores.misses {
        let entries = miss.entry_misses.map_or_else(String::new, |misses| misses.to_string());
        let (percent, cached) = (miss.coverage_percent, miss.cached);
        let _ = writeln!(out, "{percent},{cached},{},{},{entries}", miss.lookups, miss.misses);
    }
    out
}

fn unaligned(scores: &Scores) -> String {
    let mut out = String::from("block_bytes,valid_bytes,unaligned_bytes,merged_bytes\n");
    for of in &scores.alignment {
        let bytes = [of.block_bytes, of.valid_bytes, of.unaligned_bytes, of.merged_bytes];
        let _ = writeln!(out, "{}", bytes.map(|bytes| bytes.to_string()).join(","));
    }
    out
}

/// Blocks with equally many valid pages, fullest first: where they end, as a share of the space, and how full.
fn curve(of: &Zombies) -> String {
    let mut out = String::from("blocks,ends_at,valid_ratio\n");
    let (mut before, pages) = (0, of.block_pages());
    for (valid, blocks) in of.blocks.iter().enumerate().skip(1).rev().filter(|(_, blocks)| **blocks > 0) {
        before += blocks;
        let ends_at = (before * pages) as f64 / of.page_count.max(1) as f64;
        let _ = writeln!(out, "{blocks},{ends_at},{}", valid as f64 / pages as f64);
    }
    out
}

/// Pages written equally often, most often first: where they end as a share of all written pages.
fn lifetime(scores: &Scores) -> String {
    let mut out = String::from("pages,ends_at,writes\n");
    let (mut before, all) = (0, scores.lifetime.pages());
    for (writes, pages) in &scores.lifetime.curve {
        before += pages;
        let _ = writeln!(out, "{pages},{},{writes}", before as f64 / all as f64);
    }
    out
}
