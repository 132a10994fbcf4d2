//! `stacktune ftl`: a trace on a modelled drive.

use super::output::{print, print_json};
use super::privileges;
use crate::error::{Error, Result};
use crate::ftl::{ENTRY_BYTES, FlashDrive, FlashSpec, Mapping, Timed};
use crate::printable::Shown as _;
use crate::trace::{self, Op, Selected, TracedIo, nearest_rank};
use crate::ui::cli::{CacheSize, Ftl, FtlArgs};
use crate::ui::report::{self, Simulated, SimulatedLatencies};
use crate::units::grouped;

/// The most pages that the host may touch in all: some minutes of CPU time.
const STEPS_MAX: u64 = 1 << 30;
/// No trace is longer; the limit keeps additions to a time from overflowing.
const TIME_NS_MAX: u64 = 1 << 60;
/// Unless a capacity is given, the drive ends at a whole MiB.
const ROUNDED_TO: u64 = 1 << 20;

/// Runs `stacktune ftl`.
pub fn run(args: &FtlArgs) -> Result<()> {
    privileges::drop_to_reading();
    let trace = trace::read(&args.from)?;
    let Selected { ios, others, .. } = trace::select(&trace, args.drive, args.start, args.capacity)?;
    let spec = spec_of(args, &ios);
    let smaller = "take larger pages (--page), or a part of the drive (--start, --capacity)";
    let mut drive = FlashDrive::new(&spec).map_err(|what| Error::input(what).hint(smaller))?;
    let pages: u64 = ios.iter().map(|io| u64::from(io.bytes).div_ceil(spec.page_bytes) + 1).sum();
    if pages.saturating_mul(args.repeat) > STEPS_MAX {
        let what = format!("the trace goes over {} pages, more than is simulated", grouped(pages));
        return Err(Error::input(what).hint("take larger pages (--page), or run it less often (--repeat)"));
    }
    if args.full {
        drive.fill();
        drive.forget();
    }
    let mut drive = Timed::of(drive);
    let mut latencies = None;
    for time in 1..=args.repeat {
        latencies = replay(&mut drive, &ios, args.timed && time == args.repeat);
    }
    let drive = drive.drive();
    let of = Simulated {
        trace: args.from.first().map_or_else(String::new, |path| path.shown()),
        form: trace.form.name(),
        ios: ios.len(),
        others,
        lost: trace.lost.others(),
        capacity_is_assumed: args.capacity.is_none(),
        was_full: args.full,
        times: args.repeat,
        spec: &spec,
        sizes: drive.sizes(),
        counts: drive.counts(),
        erases: drive.erases(),
        latencies,
    };
    if args.output.json {
        print_json(&report::ftl_json(&of))
    } else if args.csv {
        print(&report::ftl_csv(&of))
    } else {
        print(&report::ftl(&of))
    }
}

/// The drive that is asked for.
fn spec_of(args: &FtlArgs, ios: &[TracedIo]) -> FlashSpec {
    let end = ios.iter().map(TracedIo::end_bytes).max().unwrap_or(0);
    let capacity_bytes = args.capacity.unwrap_or_else(|| end.next_multiple_of(ROUNDED_TO).max(ROUNDED_TO));
    let map_bytes = capacity_bytes.div_ceil(args.page) * ENTRY_BYTES;
    let cache_bytes = match args.cache {
        CacheSize::Share(share) => (map_bytes as f64 * share) as u64,
        CacheSize::Bytes(bytes) => bytes,
    };
    FlashSpec {
        capacity_bytes,
        page_bytes: args.page,
        block_bytes: args.block,
        dies: args.dies,
        over_provision: args.over_provision.0,
        mapping: match args.ftl {
            Ftl::Page => Mapping::Page,
            Ftl::Dftl => Mapping::OnDemand { cache_bytes },
            Ftl::Hybrid => Mapping::Hybrid,
        },
        streams: args.streams,
        wear_spread: args.level_wear,
    }
}

/// Replays the I/Os in the order in which they were issued; returns the latencies, if they are to be kept.
fn replay(drive: &mut Timed, ios: &[TracedIo], keeps: bool) -> Option<SimulatedLatencies> {
    drive.restart();
    let first_ns = ios.first()?.issued_ns;
    let has_times = ios.last()?.issued_ns > first_ns;
    let (mut end_ns, mut reads, mut writes) = (0, Vec::new(), Vec::new());
    for io in ios {
        // Without times, one I/O at a time.
        let now_ns = if has_times { (io.issued_ns - first_ns).min(TIME_NS_MAX) } else { end_ns };
        let (offset, bytes) = (io.offset_bytes, u64::from(io.bytes));
        let (done_ns, of_op) = match io.op {
            Op::Read => (drive.read(now_ns, offset, bytes), Some(&mut reads)),
            Op::Write => (drive.write(now_ns, offset, bytes), Some(&mut writes)),
            Op::Discard => (drive.discard(now_ns, offset, bytes), None),
            Op::Flush => (Timed::flush(now_ns), None),
        };
        end_ns = end_ns.max(done_ns);
        if let Some(times) = of_op.filter(|_| keeps) {
            times.push(done_ns - now_ns);
        }
    }
    keeps.then(|| SimulatedLatencies {
        reads_ns: percentiles(reads),
        writes_ns: percentiles(writes),
        span_ns: end_ns.max(drive.idle_from_ns()),
        busy_ns: drive.busy_ns() / u64::from(drive.drive().sizes().dies),
    })
}

/// The median, the 99th percentile and the largest: the smallest time that this share does not exceed, as in histograms.
fn percentiles(mut times: Vec<u64>) -> Option<[u64; 3]> {
    let mut of = |percent| nearest_rank(&mut times, percent);
    Some([of(50)?, of(99)?, of(100)?])
}

#[cfg(test)]
mod tests {
    use super::percentiles;

    #[test]
    fn percentiles_are_those_of_histograms() {
        for count in [1_u64, 2, 3, 50, 100, 101, 1000] {
            let mut histogram = hdrhistogram::Histogram::<u64>::new(3).unwrap();
            (1..=count).for_each(|ns| histogram.record(ns).unwrap());
            let expected = [0.5, 0.99, 1.0].map(|quantile| histogram.value_at_quantile(quantile));
            assert_eq!(percentiles((1..=count).rev().collect()), Some(expected), "{count}");
        }
        assert_eq!(percentiles(Vec::new()), None);
    }
}
