//! Request scale: how large requests are, and how many are open at once.

use super::boxes::Five;
use super::latency::OpLatency;
use crate::trace::io::{Form, LostEvents, Op, PLACED, TracedIo, edges};

/// Sizes and depth.
#[derive(Debug, Clone, PartialEq)]
pub struct Requests {
    /// Bytes of issued requests, in the order of [`PLACED`].
    pub sizes: [Option<Five>; 3],
    /// Open reads, writes and discards at each issue, including that one, in the order of [`PLACED`].
    pub depth: [Option<Five>; 3],
    /// How long they took, in the order of [`Op::ALL`].
    pub latency: [Option<OpLatency>; 4],
    /// Bytes of open reads and writes at each of their issues, including that one.
    pub in_flight_bytes: Option<Five>,
    /// Bytes of reads and writes issued between two moments at which nothing was open.
    pub between_drains_bytes: Option<Five>,
    /// Bytes of reads and writes issued between two flushes.
    pub between_flushes_bytes: Option<Five>,
    /// Flushes.
    pub flushes: u64,
    /// Time from the first event to the last.
    pub duration_ns: u64,
    /// The mean depth over that time.
    pub mean_depth: Option<f64>,
    /// The share of that time in which nothing was open.
    pub idle_share: Option<f64>,
}

impl Requests {
    /// Of one drive's I/Os. Depth and times are unknown without completions, or if any are lost, because open
    /// I/Os would never end.
    pub fn of(ios: &[TracedIo], form: Form, lost: LostEvents) -> Self {
        let of = |op: Op| ios.iter().filter(move |io| io.op == op);
        let sizes = PLACED.map(|op| Five::of(of(op).map(|io| u64::from(io.bytes)).collect()));
        let mut requests = Self {
            sizes,
            depth: [None; 3],
            latency: [None; 4],
            in_flight_bytes: None,
            between_drains_bytes: None,
            between_flushes_bytes: between_flushes(ios),
            flushes: of(Op::Flush).count() as u64,
            duration_ns: duration_ns(ios),
            mean_depth: None,
            idle_share: None,
        };
        if form.has_completions() && lost.all == 0 {
            requests.follow(ios);
            requests.latency = Op::ALL.map(|op| OpLatency::of(ios, op));
        }
        requests
    }

    /// Discards per read, write or discard; `None` if there are none of these.
    pub fn discard_ratio(&self) -> Option<f64> {
        let [reads, writes, discards] = self.sizes.map(|five| five.map_or(0, |five| five.count));
        let all = reads + writes + discards;
        (all > 0).then(|| discards as f64 / all as f64)
    }

    /// Mean bytes written per flush; `None` without flushes.
    pub fn written_a_flush(&self) -> Option<f64> {
        let [_, writes, _] = self.sizes;
        let written = writes.map_or(0.0, |five| five.sum as f64);
        (self.flushes > 0).then(|| written / self.flushes as f64)
    }

    /// Tracks the depth from event to event.
    fn follow(&mut self, ios: &[TracedIo]) {
        let (mut depths, mut in_flight, mut drained) = ([const { Vec::new() }; 3], Vec::new(), Vec::new());
        let (mut depth, mut open_bytes, mut since_drain) = (0_u64, 0_u64, 0_u64);
        let (mut last_ns, mut area, mut idle_ns) = (None, 0.0, 0);
        for edge in edges(ios) {
            let io = &ios[edge.io as usize];
            let passed = edge.at_ns - last_ns.unwrap_or(edge.at_ns);
            last_ns = Some(edge.at_ns);
            area += passed as f64 * depth as f64;
            idle_ns += if depth == 0 { passed } else { 0 };
            let Some(kind) = PLACED.iter().position(|op| *op == io.op) else { continue };
            let bytes = if io.op.moves_data() { u64::from(io.bytes) } else { 0 };
            if edge.is_issue() {
                depth += 1;
                open_bytes += bytes;
                since_drain += bytes;
                depths[kind].push(depth);
                if io.op.moves_data() {
                    in_flight.push(open_bytes);
                }
                continue;
            }
            depth -= 1;
            open_bytes -= bytes;
            if depth == 0 {
                drained.push(std::mem::take(&mut since_drain));
            }
        }
        self.depth = depths.map(Five::of);
        self.in_flight_bytes = Five::of(in_flight);
        self.between_drains_bytes = Five::of(drained);
        let of_time = |part: f64| (self.duration_ns > 0).then(|| part / self.duration_ns as f64);
        (self.mean_depth, self.idle_share) = (of_time(area), of_time(idle_ns as f64));
    }
}

fn duration_ns(ios: &[TracedIo]) -> u64 {
    let ends = ios.iter().map(|io| io.completed_ns.unwrap_or(io.issued_ns));
    let first = ios.iter().map(|io| io.issued_ns).min();
    ends.max().zip(first).map_or(0, |(end, first)| end - first)
}

/// Sums in order of issue.
fn between_flushes(ios: &[TracedIo]) -> Option<Five> {
    let (mut sums, mut since, mut is_first) = (Vec::new(), 0, true);
    for io in ios {
        match io.op {
            Op::Flush if std::mem::replace(&mut is_first, false) => since = 0,
            Op::Flush => sums.push(std::mem::take(&mut since)),
            Op::Read | Op::Write => since += u64::from(io.bytes),
            Op::Discard => {}
        }
    }
    Five::of(sums)
}
