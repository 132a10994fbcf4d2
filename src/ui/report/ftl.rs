//! What a modelled drive did, as text, JSON and comma-separated values.

use std::fmt::Write;

use serde_json::{Value, json};

use super::cells::{WIDTH, left, paragraph, percent, right};
use crate::ftl::{CAUSES, Cause, Counts, ENTRY_BYTES, FlashSpec, Mapping, Sizes};
use crate::ui::text::NONE;
use crate::units::{approx_size, format_latency, format_size, grouped, three_digits};

const NAME: usize = 34;
const VALUE: usize = 16;
const INDENT: &str = "  ";

/// A modelled drive, and what it was given.
#[derive(Debug)]
pub struct Simulated<'a> {
    /// The trace's name.
    pub trace: String,
    /// Its form.
    pub form: &'static str,
    /// I/Os in the space, in one run of the trace.
    pub ios: usize,
    /// I/Os outside of it.
    pub others: u64,
    /// Events that the trace lost, except completions.
    pub lost: u64,
    /// Whether the capacity is only known to reach to the furthest I/O.
    pub capacity_is_assumed: bool,
    /// Whether the drive began with every page written.
    pub was_full: bool,
    /// How many times the trace was run.
    pub times: u64,
    /// What was asked for.
    pub spec: &'a FlashSpec,
    /// The sizes that followed from it.
    pub sizes: &'a Sizes,
    /// What the drive did.
    pub counts: &'a Counts,
    /// Erases of each block.
    pub erases: &'a [u32],
    /// Its latencies, if the drive had a clock.
    pub latencies: Option<SimulatedLatencies>,
}

/// The latencies of a drive with a clock.
#[derive(Debug)]
pub struct SimulatedLatencies {
    /// Median, 99th percentile and largest of reads; none without any.
    pub reads_ns: Option<[u64; 3]>,
    /// The same of writes.
    pub writes_ns: Option<[u64; 3]>,
    /// From the first I/O to the end of the last, including what flash did for it.
    pub span_ns: u64,
    /// How long a die was busy, on average.
    pub busy_ns: u64,
}

/// A figure.
struct Figure {
    key: &'static str,
    name: &'static str,
    /// None if it is not known.
    value: Option<f64>,
    unit: &'static str,
    means: &'static str,
}

/// All figures of a drive, in at most 80 columns.
pub fn ftl(of: &Simulated) -> String {
    let mut out = String::new();
    for line in heading(of).into_iter().chain(notes(of)) {
        let _ = writeln!(out, "{}", paragraph(&line, WIDTH, INDENT));
    }
    let _ = writeln!(out, "\n{}{}  unit", left("figure, by model", NAME), right("value", VALUE));
    for figure in figures(of) {
        let value = figure.value.map_or_else(|| NONE.to_owned(), |value| shown(value, figure.unit));
        // A latency has its unit with it.
        let unit = if figure.unit == "ns" { "" } else { figure.unit };
        let line = format!("{}{}  {unit}", left(figure.name, NAME), right(&value, VALUE));
        let _ = writeln!(out, "{}", line.trim_end());
        let _ = writeln!(out, "{}", paragraph(&format!("{INDENT}{}", figure.means), WIDTH, INDENT));
    }
    out
}

fn shown(value: f64, unit: &str) -> String {
    match unit {
        "of lookups" | "of the time" => percent(value),
        "ns" => format_latency(value as u64),
        "ratio" | "times" => three_digits(value),
        "erases" if value.fract() != 0.0 => three_digits(value),
        "bytes" => approx_size(value as u64),
        _ => grouped(value as u64),
    }
}

fn heading(of: &Simulated) -> Vec<String> {
    let (ios, sizes) = (grouped(of.ios as u64), of.sizes);
    let times = if of.times == 1 { String::new() } else { format!(", run {} times", grouped(of.times)) };
    let reaches =
        if of.capacity_is_assumed { ", up to the furthest I/O (--capacity gives another)" } else { "" };
    let began = if of.was_full { "every page written" } else { "nothing written" };
    let mapping = match of.spec.mapping {
        Mapping::Page => "mapping by pages, the whole map in memory".to_owned(),
        Mapping::OnDemand { .. } => {
            let room = sizes.cached.unwrap_or_default();
            let share = f64::from(room) / f64::from(sizes.translation_pages);
            let bytes = u64::from(room) * u64::from(sizes.entries) * ENTRY_BYTES;
            format!(
                "mapping by pages on demand, a cache of {} ({} of the map)",
                format_size(bytes),
                percent(share)
            )
        }
        Mapping::Hybrid => {
            format!("hybrid mapping, at most {} log blocks", grouped(u64::from(sizes.log_blocks)))
        }
    };
    vec![
        format!("{}: {ios} I/Os, from {}{times}", of.trace, of.form),
        format!(
            "a drive by model, which began with {began}: {mapping}; {}{reaches}; flash for {} more; pages of {}, blocks \
             of {}, {} dies",
            approx_size(of.spec.capacity_bytes),
            percent(sizes.spare_share()),
            format_size(of.spec.page_bytes),
            format_size(of.spec.block_bytes),
            sizes.dies,
        ),
    ]
}

fn notes(of: &Simulated) -> Vec<String> {
    let mut notes = Vec::new();
    if of.others > 0 {
        notes.push(format!("I/Os outside of the space, which are left out: {}", grouped(of.others)));
    }
    if of.lost > 0 {
        let lost = grouped(of.lost);
        notes.push(format!("{lost} events are missing from the trace: the figures cover only the others"));
    }
    if sum(&of.counts.programs) > 0 && of.counts.erases == [0; 6] {
        notes.push(
            "Nothing was erased: the flash was never used up, and WA-D is that of a new drive. Begin with a full one \
             (--full), and run the trace more often (--repeat)"
                .to_owned(),
        );
    }
    if of.sizes.is_least {
        notes.push(format!(
            "{} of over-provisioning would not hold the blocks that are open or kept free: the drive has more",
            percent(of.spec.over_provision)
        ));
    }
    notes
}

fn sum(of: &[u64; 6]) -> u64 {
    of.iter().sum()
}

/// The figures that the drive's mapping has.
fn figures(of: &Simulated) -> Vec<Figure> {
    let counts = of.counts;
    let count =
        |key, name, value: u64, unit, means| Figure { key, name, value: Some(value as f64), unit, means };
    let by = |of: &[u64; 6], cause: Cause| of[cause as usize];
    let mut figures = vec![
        Figure {
            key: "wa_d",
            name: "WA-D",
            value: counts.amplification(of.spec.page_bytes),
            unit: "ratio",
            means: "bytes written to flash by bytes that the host wrote",
        },
        count(
            "host_written_bytes",
            "written by the host",
            counts.host_written_bytes,
            "bytes",
            "what its writes say",
        ),
        count(
            "flash_written_bytes",
            "written to flash",
            sum(&counts.programs) * of.spec.page_bytes,
            "bytes",
            "whole pages, whatever for",
        ),
        Figure {
            key: "times_written",
            name: "capacity written",
            value: Some(counts.host_written_bytes as f64 / of.spec.capacity_bytes as f64),
            unit: "times",
            means: "bytes that the host wrote by the drive's capacity",
        },
        count(
            "pages_read_for_parts",
            "read for pages written in part",
            by(&counts.reads, Cause::Part),
            "pages",
            "old content of pages of which the host wrote a part",
        ),
    ];
    match of.spec.mapping {
        Mapping::Hybrid => figures.extend(of_merges(counts)),
        Mapping::Page => figures.extend(of_collection(counts)),
        Mapping::OnDemand { .. } => {
            figures.extend(of_cache(counts));
            figures.extend(of_collection(counts));
        }
    }
    figures.extend(of_wear(of));
    if let Some(latencies) = &of.latencies {
        figures.extend(of_latencies(latencies));
    }
    figures
}

fn of_latencies(of: &SimulatedLatencies) -> [Figure; 8] {
    let figure = |key, name, ns: Option<u64>, means| Figure {
        key,
        name,
        value: ns.map(|ns| ns as f64),
        unit: "ns",
        means,
    };
    let [reads, writes] = [of.reads_ns, of.writes_ns].map(|of| of.map_or([None; 3], |of| of.map(Some)));
    let wait = "from the issue to the end of its last page";
    let buffered = "from the issue until all of it is in the drive's buffer";
    [
        figure("read_p50_ns", "reads, median", reads[0], wait),
        figure("read_p99_ns", "reads, 99th percentile", reads[1], "as above"),
        figure("read_max_ns", "reads, slowest", reads[2], "as above"),
        figure("write_p50_ns", "writes, median", writes[0], buffered),
        figure("write_p99_ns", "writes, 99th percentile", writes[1], "as above"),
        figure("write_max_ns", "writes, slowest", writes[2], "as above"),
        figure(
            "span_ns",
            "time of the trace",
            Some(of.span_ns),
            "from the first issue until flash is idle again",
        ),
        Figure {
            key: "dies_busy",
            name: "dies busy",
            value: (of.span_ns > 0).then(|| of.busy_ns as f64 / of.span_ns as f64),
            unit: "of the time",
            means: "how long a die had something to do, on average: near 100%, the drive falls behind the trace",
        },
    ]
}

fn of_cache(counts: &Counts) -> [Figure; 4] {
    let mapping = Cause::Mapping as usize;
    [
        Figure {
            key: "miss_ratio",
            name: "misses of the mapping's cache",
            value: counts.miss_ratio(),
            unit: "of lookups",
            means: "each page that is read, written or discarded is looked up once; a miss is one whose translation page is \
                    not in the cache",
        },
        Figure {
            key: "misses",
            name: "misses",
            value: Some(counts.misses as f64),
            unit: "pages",
            means: "each reads a translation page, if flash has it",
        },
        Figure {
            key: "write_backs",
            name: "written back",
            value: Some(counts.write_backs as f64),
            unit: "pages",
            means: "translation pages that had changed when they left the cache",
        },
        Figure {
            key: "mapping_pages_written",
            name: "written for the mapping",
            value: Some(counts.programs[mapping] as f64),
            unit: "pages",
            means: "those, those of pages that collection moved, and those moved themselves",
        },
    ]
}

fn of_collection(counts: &Counts) -> [Figure; 2] {
    let collection = Cause::Collection as usize;
    [
        Figure {
            key: "pages_moved",
            name: "moved by garbage collection",
            value: Some(counts.programs[collection] as f64),
            unit: "pages",
            means: "still valid in the blocks that were emptied, those with the fewest valid pages first",
        },
        Figure {
            key: "pages_moved_for_wear",
            name: "moved to level wear",
            value: Some(counts.programs[Cause::Levelling as usize] as f64),
            unit: "pages",
            means: "valid in blocks that were erased much less than others (--level-wear)",
        },
    ]
}

fn of_merges(counts: &Counts) -> [Figure; 4] {
    let [switches, partial, full] = counts.merges.map(|merges| Some(merges as f64));
    let merge = |key, name, value, means| Figure { key, name, value, unit: "merges", means };
    [
        merge("merges_switch", "switch merges", switches, "a log block becomes the data block as it is"),
        merge("merges_partial", "partial merges", partial, "it does after the rest was copied to its end"),
        merge("merges_full", "full merges", full, "a block's pages are all copied to a new one"),
        Figure {
            key: "pages_merged",
            name: "copied by merges",
            value: Some(counts.programs[Cause::Merge as usize] as f64),
            unit: "pages",
            means: "what partial and full merges write",
        },
    ]
}

fn of_wear(of: &Simulated) -> [Figure; 4] {
    let total: u64 = of.erases.iter().map(|erases| u64::from(*erases)).sum();
    let least = of.erases.iter().min().map(|erases| f64::from(*erases));
    let most = of.erases.iter().max().map(|erases| f64::from(*erases));
    let mean = total as f64 / of.erases.len().max(1) as f64;
    let figure = |key, name, value, unit, means| Figure { key, name, value, unit, means };
    [
        figure("erases", "erased", Some(total as f64), "blocks", "how often a block was erased, in all"),
        figure("block_erases_min", "least-erased block", least, "erases", "of all blocks of flash"),
        figure("block_erases_mean", "mean of blocks", Some(mean), "erases", "as above"),
        figure(
            "block_erases_max",
            "most-erased block",
            most,
            "erases",
            "as above: the one that wears out first",
        ),
    ]
}

/// All figures with their units and what they mean, and flash's reads, writes and erases by cause.
pub fn ftl_json(of: &Simulated) -> Value {
    let mut all = json!({});
    for figure in figures(of) {
        all[figure.key] = json!({ "value": figure.value, "unit": figure.unit, "means": figure.means });
    }
    let by_cause = |counts: &[u64; 6]| {
        let mut by = json!({});
        for (cause, name) in CAUSES {
            by[name] = counts[cause as usize].into();
        }
        by
    };
    let (spec, sizes) = (of.spec, of.sizes);
    let cache_bytes = sizes.cached.map(|room| u64::from(room) * u64::from(sizes.entries) * ENTRY_BYTES);
    json!({
        "by_model": true,
        "trace": of.trace,
        "form": of.form,
        "ios": of.ios,
        "others": of.others,
        "lost": of.lost,
        "times": of.times,
        "drive": {
            "ftl": name_of(spec.mapping),
            "capacity_bytes": spec.capacity_bytes,
            "capacity_is_assumed": of.capacity_is_assumed,
            "began_full": of.was_full,
            "page_bytes": spec.page_bytes,
            "block_bytes": spec.block_bytes,
            "dies": spec.dies,
            "streams": spec.streams,
            "over_provision": sizes.spare_share(),
            "over_provision_asked": spec.over_provision,
            "data_blocks": sizes.data_blocks,
            "log_blocks": sizes.log_blocks,
            "mapping_blocks": sizes.mapping_blocks,
            "cache_bytes": cache_bytes,
            "level_wear_erases": spec.wear_spread,
        },
        "figures": all,
        "notes": notes(of),
        "flash": {
            "pages_read": by_cause(&of.counts.reads),
            "pages_written": by_cause(&of.counts.programs),
            "blocks_erased": by_cause(&of.counts.erases),
            "empty_reads": of.counts.empty_reads,
            "lookups": of.counts.lookups,
        },
    })
}

fn name_of(mapping: Mapping) -> &'static str {
    match mapping {
        Mapping::Page => "page",
        Mapping::OnDemand { .. } => "dftl",
        Mapping::Hybrid => "hybrid",
    }
}

/// All figures as comma-separated values.
pub fn ftl_csv(of: &Simulated) -> String {
    let mut out = String::from("figure,value,unit,by\n");
    for figure in figures(of) {
        let value = figure.value.map_or_else(String::new, |value| value.to_string());
        let _ = writeln!(out, "{},{value},{},model", figure.key, figure.unit);
    }
    out
}
