//! Past windows: the latest as they are, earlier ones packed until they are viewed.

use std::collections::VecDeque;
use std::io::Read;
use std::ops::Range;
use std::sync::Arc;

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use serde::{Deserialize, Serialize};

use super::heat::{TailOf, Tails};
use crate::class::Class;
use crate::meter::latencies::latency::p99_ns;
use crate::meter::latencies::pooled::{PooledLatencies, PooledLatency};
use crate::meter::window::{Latency, Window};

/// Windows left unpacked: more than the widest screen shows, or a turn is compared with.
const UNPACKED_MIN: usize = 1024;
/// Windows packed together.
const PACK: usize = 128;
/// Memory for packed windows, small beside a load that needs its own: a window of the demo takes some 1.3 KB, so
/// this holds fourteen hours of one-second windows.
const PACKED_BYTES_MAX: usize = 64 << 20;
/// Windows unpacked before and after the one viewed: what a screen shows around it.
const BEFORE: usize = 256;
const AFTER: usize = 768;

/// What to search the windows for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peak {
    /// The longest I/O.
    LongestIo,
    /// The highest p99 of a window.
    P99,
}

impl Peak {
    /// Each of them.
    const EACH: [Self; 2] = [Self::LongestIo, Self::P99];
}

/// What the charts need from a window.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Point {
    /// The window's end, from the run's start.
    pub end_ns: u64,
    /// MB/s by class.
    pub mb_per_s: [f64; 4],
    /// p99 of the service time by class; of the last windows together where one has too few I/Os.
    pub service_p99_ns: [Option<u64>; 4],
    /// p99 of the response time by class, likewise.
    pub response_p99_ns: [Option<u64>; 4],
}

impl Point {
    /// The point of a past window.
    pub fn of(PastWindow { window, pooled, .. }: &PastWindow) -> Self {
        let p99 = |latency: &Option<Latency>, pooled: PooledLatency| {
            let own = latency.as_ref().and_then(|latency| latency.p99);
            own.or(pooled.p99.map(|p99| p99.ns))
        };
        Self {
            end_ns: window.start_ns + window.duration_ns,
            mb_per_s: Class::ALL.map(|class| window.class(class).mb_per_s),
            service_p99_ns: Class::ALL
                .map(|class| p99(&window.class(class).latencies.service_ns, pooled[class.index()].service)),
            response_p99_ns: Class::ALL.map(|class| {
                let (figures, pooled) = (window.class(class), pooled[class.index()].response);
                if figures.not_held { None } else { p99(&figures.latencies.response_ns, pooled) }
            }),
        }
    }
}

/// A window without its histograms, and what the screen derived from them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PastWindow {
    /// Its figures.
    pub window: Arc<Window>,
    /// Percentiles for which it has too few I/Os, pooled over the last windows.
    pub pooled: [PooledLatencies; 4],
    /// Its latencies.
    pub tails: Tails,
    /// The p99 of all classes' service times together, if there are enough.
    pub p99_of_all_ns: Option<u64>,
}

impl PastWindow {
    /// From a window that still has its histograms.
    pub fn of(window: &Window, pooled: &[PooledLatencies; 4], tails: Tails) -> Self {
        let bare = Window { histograms: Arc::default(), ..window.clone() };
        Self { p99_of_all_ns: p99_of_all(window), window: Arc::new(bare), pooled: *pooled, tails }
    }

    /// Its service time, in ns, that a search for the peak compares.
    pub fn peak_ns(&self, peak: Peak, of: TailOf) -> Option<u64> {
        let latency = |class| self.window.class(class).latencies.service_ns.as_ref();
        match (peak, of) {
            (Peak::LongestIo, TailOf::Class(class)) => latency(class)?.max,
            (Peak::LongestIo, TailOf::All) => {
                Class::ALL.into_iter().filter_map(|class| latency(class)?.max).max()
            }
            (Peak::P99, TailOf::Class(class)) => latency(class)?.p99,
            (Peak::P99, TailOf::All) => self.p99_of_all_ns,
        }
    }
}

/// The p99 of all classes' service times.
fn p99_of_all(window: &Window) -> Option<u64> {
    let mut of_classes = window.histograms.iter().filter_map(|class| class.service.as_ref());
    let mut all = of_classes.next()?.clone();
    for other in of_classes {
        all.add(other).ok()?;
    }
    p99_ns(&all)
}

/// Windows that follow one another, packed.
#[derive(Debug)]
struct Pack {
    /// As JSON, compressed.
    bytes: Vec<u8>,
    /// Its peaks of each kind, for each class and all together: in ns, and which of its windows has it.
    peaks: [[Option<(u64, usize)>; 5]; 2],
}

impl Pack {
    fn of(windows: &[Arc<PastWindow>]) -> Self {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
        // Neither serializing figures nor writing to memory fails.
        let written = serde_json::to_writer(&mut encoder, windows);
        let bytes = written.ok().and_then(|()| encoder.finish().ok()).unwrap_or_default();
        let peaks = Peak::EACH.map(|by| TailOf::EACH.map(|of| peak(windows.iter(), by, of)));
        Self { bytes, peaks }
    }

    fn unpack(&self) -> Vec<Arc<PastWindow>> {
        let mut text = Vec::new();
        let read = DeflateDecoder::new(&self.bytes[..]).read_to_end(&mut text);
        read.ok().and_then(|_| serde_json::from_slice(&text).ok()).unwrap_or_default()
    }
}

/// The peak among windows in ns, and which of them has it.
fn peak<'a>(
    windows: impl Iterator<Item = &'a Arc<PastWindow>>,
    by: Peak,
    of: TailOf,
) -> Option<(u64, usize)> {
    windows.enumerate().filter_map(|(at, past)| Some((past.peak_ns(by, of)?, at))).max()
}

/// The windows of a run that can be viewed. Places count from the oldest one kept.
#[derive(Debug, Clone, Default)]
pub struct Past {
    /// [`PACK`] windows each, the oldest first; shared with what freezing keeps.
    packs: VecDeque<Arc<Pack>>,
    /// The windows after those.
    last: VecDeque<Arc<PastWindow>>,
    /// The unpacked windows of some packs, by the pack's number.
    open: Vec<(usize, Vec<Arc<PastWindow>>)>,
    /// When each window ended.
    ends_ns: VecDeque<u64>,
    /// How many windows are no longer kept.
    forgotten: usize,
}

impl Past {
    /// Takes the next window.
    pub fn push(&mut self, past: PastWindow) {
        self.ends_ns.push_back(past.window.start_ns + past.window.duration_ns);
        self.last.push_back(Arc::new(past));
        if self.last.len() < UNPACKED_MIN + PACK {
            return;
        }
        let oldest: Vec<_> = self.last.drain(..PACK).collect();
        self.packs.push_back(Arc::new(Pack::of(&oldest)));
        if self.packs.iter().map(|pack| pack.bytes.len()).sum::<usize>() > PACKED_BYTES_MAX {
            self.forget();
        }
    }

    /// Forgets the oldest pack.
    pub fn forget(&mut self) {
        self.packs.pop_front();
        self.ends_ns.drain(..PACK);
        self.forgotten += PACK;
        self.open.clear();
    }

    /// How many are kept.
    pub fn len(&self) -> usize {
        self.ends_ns.len()
    }

    /// How many are no longer kept.
    pub fn forgotten(&self) -> usize {
        self.forgotten
    }

    /// When the oldest and the newest window kept ended.
    pub fn ends_ns(&self) -> Option<[u64; 2]> {
        Some([*self.ends_ns.front()?, *self.ends_ns.back()?])
    }

    /// The place of the first window that ended at that time or later.
    pub fn place_of(&self, ns: u64) -> usize {
        self.ends_ns.partition_point(|end_ns| *end_ns < ns)
    }

    /// Unpacks the windows at that place and around it, and no others.
    pub fn look_at(&mut self, at: usize) {
        let first = at.saturating_sub(BEFORE) / PACK;
        let end = ((at + AFTER) / PACK + 1).min(self.packs.len());
        self.open.retain(|(pack, _)| (first..end).contains(pack));
        for pack in first..end {
            if self.open.iter().all(|(open, _)| *open != pack) {
                self.open.push((pack, self.packs[pack].unpack()));
            }
        }
    }

    /// The window at a place; none if there is none, or if it is packed.
    pub fn get(&self, at: usize) -> Option<&Arc<PastWindow>> {
        if let Some(at) = at.checked_sub(self.packs.len() * PACK) {
            return self.last.get(at);
        }
        let (_, windows) = self.open.iter().find(|(pack, _)| *pack == at / PACK)?;
        windows.get(at % PACK)
    }

    /// The windows at these places.
    pub fn range(&self, places: Range<usize>) -> impl Iterator<Item = (usize, &Arc<PastWindow>)> {
        places.filter_map(|at| Some((at, self.get(at)?)))
    }

    /// The latest windows, which are not packed, newest first.
    pub fn newest(&self) -> impl Iterator<Item = &Window> {
        self.last.iter().rev().map(|past| &*past.window)
    }

    /// The peak of all windows kept, in ns, and the place of its window; none if there is none.
    pub fn peak(&self, by: Peak, of: TailOf) -> Option<(u64, usize)> {
        let which = TailOf::EACH.iter().position(|each| *each == of)?;
        let which_peak = Peak::EACH.iter().position(|each| *each == by)?;
        let packed = self.packs.iter().enumerate().filter_map(|(pack, windows)| {
            let (ns, at) = windows.peaks[which_peak][which]?;
            Some((ns, pack * PACK + at))
        });
        let last = peak(self.last.iter(), by, of).map(|(ns, at)| (ns, self.packs.len() * PACK + at));
        packed.chain(last).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::tui::fixture;

    fn past(index: u64) -> PastWindow {
        let window = Window { index, start_ns: index * 10, duration_ns: 10, ..fixture::window(index) };
        PastWindow::of(&window, &Default::default(), Tails::of(&window))
    }

    #[test]
    fn every_window_is_as_it_was_once_it_is_looked_at() {
        let mut kept = Past::default();
        let many = UNPACKED_MIN + 5 * PACK + 3;
        (0..many as u64).for_each(|index| kept.push(past(index)));
        assert_eq!((kept.len(), kept.packs.len(), kept.forgotten()), (many, 5, 0));
        assert!(kept.get(0).is_none() && kept.get(many - 1).is_some() && kept.get(many).is_none());
        for at in [0, PACK - 1, PACK, 3 * PACK + 7, 5 * PACK - 1, 5 * PACK, many - 1] {
            kept.look_at(at);
            let found = kept.get(at).unwrap();
            let expected = past(at as u64);
            assert_eq!(found.window, expected.window);
            assert_eq!((Point::of(found), &found.tails), (Point::of(&expected), &expected.tails));
            let around: Vec<_> = kept.range(at.saturating_sub(200)..(at + 600).min(many)).collect();
            assert_eq!(around.len(), (at + 600).min(many) - at.saturating_sub(200));
            assert!(around.iter().all(|(place, past)| past.window.index == *place as u64));
        }
        assert!(kept.open.len() <= (BEFORE + AFTER) / PACK + 2);
        assert_eq!([0, 10, 11, u64::MAX].map(|ns| kept.place_of(ns)), [0, 0, 1, many]);
    }

    #[test]
    fn packed_windows_take_no_more_than_their_number_rests_on() {
        let windows: Vec<_> = (0..PACK as u64).map(|index| Arc::new(past(index))).collect();
        let bytes = Pack::of(&windows).bytes.len() / PACK;
        assert!(bytes < 1300, "{bytes} bytes a window");
    }

    #[test]
    fn peaks_are_found_among_packed_windows_too() {
        let mut kept = Past::default();
        let longest = |kept: &mut Past, index: u64, ns: u64| {
            let mut past = past(index);
            let window = Arc::make_mut(&mut past.window);
            for class in &mut window.classes {
                class.latencies = crate::meter::window::Latencies::default();
            }
            // The highest p99 is in another window.
            let p99 = Some(if index == 90 { 50 } else { ns / 20 });
            let latency = crate::meter::window::Latency { max: Some(ns), p99, ..Default::default() };
            window.classes[Class::Wal.index()].latencies.service_ns = Some(latency);
            kept.push(past);
        };
        let many = (UNPACKED_MIN + 3 * PACK) as u64;
        (0..many).for_each(|index| longest(&mut kept, index, if index == 77 { 900 } else { index % 50 }));
        for of in [TailOf::All, TailOf::Class(Class::Wal)] {
            assert_eq!(kept.peak(Peak::LongestIo, of), Some((900, 77)));
        }
        assert_eq!(kept.peak(Peak::P99, TailOf::Class(Class::Wal)), Some((50, 90)));
        for by in Peak::EACH {
            assert_eq!(kept.peak(by, TailOf::Class(Class::Scan)), None);
        }
        longest(&mut kept, many, 901);
        assert_eq!(kept.peak(Peak::LongestIo, TailOf::All), Some((901, many as usize)));
    }

    #[test]
    fn the_p99_of_all_is_that_of_their_latencies_together() {
        let mut window = Window::default();
        let of = |ns: u64, many: u64| {
            let mut histogram = hdrhistogram::Histogram::<u64>::new(3).unwrap();
            histogram.record_n(ns, many).unwrap();
            Some(histogram)
        };
        let histograms = Arc::make_mut(&mut window.histograms);
        histograms[Class::Point.index()].service = of(100, 9_900);
        histograms[Class::Wal.index()].service = of(1_000, 101);
        assert_eq!(p99_of_all(&window), Some(1_000));
        Arc::make_mut(&mut window.histograms)[Class::Scan.index()].service = of(100, 1_000);
        assert_eq!(p99_of_all(&window), Some(100));
        let few = Window { histograms: Arc::default(), ..window };
        assert_eq!(p99_of_all(&few), None);
    }

    #[test]
    fn what_is_forgotten_is_counted() {
        let mut kept = Past::default();
        (0..(UNPACKED_MIN + 3 * PACK) as u64).for_each(|index| kept.push(past(index)));
        kept.forget();
        assert_eq!((kept.forgotten(), kept.len()), (PACK, UNPACKED_MIN + 2 * PACK));
        kept.look_at(0);
        assert_eq!(kept.get(0).unwrap().window.index, PACK as u64);
    }
}
