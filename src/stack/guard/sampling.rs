//! Whether a device holds data without a known signature: it is read in full if that is quick, else sampled.
//!
//! Finding nothing only means that nothing is at the sampled places. The operator is not asked about a drive
//! that looks blank all the same, since nobody would read a question that comes with every new drive.

use std::collections::BTreeSet;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rand::{RngExt as _, SeedableRng as _};
use rustix::fs::{Advice, fadvise};

use super::content::{Edges, OwnData, PAGE_BYTES, crc, edges, read};
use super::written;
use crate::direct::{AlignedBuffer, reopen};
use crate::error::{Error, Result};
use crate::host::Device;
use crate::threads;
use crate::units::{GIB, KIB};

/// Bytes read at each of the first places; a drive reads these as fast as a single page.
const PLACE_BYTES: u64 = 64 * KIB;
/// Number of evenly spread first places, and of random ones; read however long it takes.
const PLACES: u64 = 128;
/// If no more than this may have been written, all of it is read.
const WHOLE_BYTES_MAX: u64 = 4 * GIB;
const WHOLE_CHUNK_BYTES: u64 = 256 * KIB;
/// Pages sampled if there is more: dense enough to hit every stretch of 1/65536.
const PAGES: u64 = 70_001;
/// Time limit for that. Hard disks manage a few hundred pages.
const TIME: Duration = Duration::from_secs(2);
/// Reads in flight; flash drives are slow with just one.
const READERS: usize = 16;

/// What the places that were read hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Samples {
    /// Whether the header is a valid stacktune header, and all pages that it lists as filled are.
    pub(super) fill: bool,
    /// The data set that the header belongs to.
    pub(super) set: Option<u64>,
    /// Number of pages checked.
    pub(super) pages: u64,
    /// Offsets of pages that are neither zero nor stacktune's own.
    pub(super) foreign: Vec<u64>,
    /// Checksum of the first and the last MiB.
    pub(super) edges_crc: u32,
}

/// Checks the first and the last MiB, then evenly spread and random places. If these hold nothing foreign, it
/// also checks all that may have been written, or enough places that no large file fits between them.
pub(super) fn sample(file: &File, device: &Device, own_data: &dyn OwnData) -> Result<Samples> {
    let size = device.size_bytes;
    let failed = |error| Error::os("cannot read", &device.path, error);
    // Read-ahead would only slow this down.
    let _ = fadvise(file, 0, None, Advice::Random);
    let Edges { head, tail_at, tail } = edges(file, device)?;
    let judge = Judge { file, own_data, head: &head };
    let mut tally = Tally::default();
    judge.all(0, &head, &mut tally);
    judge.all(tail_at, &tail, &mut tally);
    for offset in places(size) {
        let bytes = read(file, offset, PLACE_BYTES.min(size - offset)).map_err(failed)?;
        judge.all(offset, &bytes, &mut tally);
    }
    if tally.foreign.is_empty() {
        let ranges = written::ranges(file, device, PAGE_BYTES);
        let search = Search::of(ranges, WHOLE_BYTES_MAX);
        tally.add(search.run(&judge, Instant::now() + TIME).map_err(failed)?);
    }
    tally.foreign.sort_unstable();
    tally.foreign.dedup();
    Ok(Samples {
        fill: own_data.header(&head) && !tally.damaged,
        set: own_data.set(&head),
        pages: tally.pages,
        foreign: tally.foreign,
        edges_crc: crc(&head, &tail),
    })
}

/// What was found so far.
#[derive(Debug, Default)]
struct Tally {
    pages: u64,
    foreign: Vec<u64>,
    /// Whether a foreign page is one that the header lists as filled.
    damaged: bool,
}

impl Tally {
    fn add(&mut self, more: Self) {
        self.pages += more.pages;
        self.foreign.extend(more.foreign);
        self.damaged |= more.damaged;
    }
}

/// What the parallel readers have found.
#[derive(Debug, Default)]
struct Found {
    clean: Tally,
    /// The first place that holds something foreign, with its number.
    foreign: Option<(u64, Tally)>,
}

impl Found {
    fn place(&mut self, number: u64, place: Tally) {
        if place.foreign.is_empty() {
            self.clean.add(place);
        } else if self.foreign.as_ref().is_none_or(|(first, _)| number < *first) {
            self.foreign = Some((number, place));
        }
    }

    fn add(&mut self, more: Self) {
        self.clean.add(more.clean);
        if let Some((number, place)) = more.foreign {
            self.place(number, place);
        }
    }
}

/// Distinguishes foreign pages from others.
struct Judge<'a> {
    file: &'a File,
    own_data: &'a dyn OwnData,
    /// The first MiB.
    head: &'a [u8],
}

impl Judge<'_> {
    fn all(&self, offset: u64, bytes: &[u8], tally: &mut Tally) {
        const ZEROS: [u8; PAGE_BYTES as usize] = [0; PAGE_BYTES as usize];
        for (page, at) in bytes.chunks(ZEROS.len()).zip((offset..).step_by(ZEROS.len())) {
            tally.pages += 1;
            if *page != ZEROS[..page.len()] && !self.own_data.page(self.file, at, page) {
                tally.damaged |= self.own_data.says_filled(self.head, at);
                tally.foreign.push(at);
            }
        }
    }
}

/// Offsets, half of them evenly spread and half random; the same every time for a given size.
fn places(size: u64) -> BTreeSet<u64> {
    let last = size.saturating_sub(PLACE_BYTES) / PAGE_BYTES;
    let mut random = rand::rngs::StdRng::seed_from_u64(size);
    let even = (0..PLACES).map(|at| (u128::from(last) * u128::from(at) / u128::from(PLACES)) as u64);
    let all = even.chain((0..PLACES).map(|_| random.random_range(0..=last)));
    all.map(|page| page * PAGE_BYTES).collect()
}

/// Places in ranges of a device, read in parallel, in an order that is evenly spread wherever it stops.
struct Search {
    /// Ranges in order, each with the total bytes of those before it.
    ranges: Vec<(u64, Range<u64>)>,
    bytes: u64,
    places: u64,
    place_bytes: u64,
    /// The stride from one place to the next, coprime with the number of places.
    step: u64,
}

impl Search {
    fn of(ranges: Vec<Range<u64>>, whole_bytes_max: u64) -> Self {
        let mut bytes = 0;
        let with_bytes = ranges.into_iter().map(|range| {
            let before = bytes;
            bytes += range.end - range.start;
            (before, range)
        });
        let ranges = with_bytes.collect();
        let (places, place_bytes) = if bytes <= whole_bytes_max {
            (bytes.div_ceil(WHOLE_CHUNK_BYTES), WHOLE_CHUNK_BYTES)
        } else {
            (PAGES, PAGE_BYTES)
        };
        // The golden ratio: each new place falls into one of the widest gaps.
        let golden = (places as f64 * 0.618_034) as u64;
        let step = (golden.max(1)..=places).find(|step| divisor(*step, places) <= 1).unwrap_or(1);
        Self { ranges, bytes, places, place_bytes, step }
    }

    /// Reads the places until the deadline, or until something foreign is found. The result does not depend
    /// on how the readers interleave: the first foreign place in the order, and all places before it.
    fn run(&self, judge: &Judge, deadline: Instant) -> std::io::Result<Tally> {
        let (next, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        let reader = Reader { judge, direct: reopen(judge.file, false, true).ok() };
        let outcome = Mutex::new(Ok(Found::default()));
        let work = || {
            let mut found = Found::default();
            let mut failed = None;
            let mut buffer = AlignedBuffer::new(self.place_bytes as usize);
            // A place that was taken is read to its end, so none before a foreign place is left out.
            while !stop.load(Ordering::Relaxed) && Instant::now() < deadline {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= self.places {
                    break;
                }
                let mut place = Tally::default();
                failed = self
                    .pieces(number)
                    .try_for_each(|piece| reader.look_at(piece, &mut buffer, &mut place))
                    .err();
                if failed.is_some() || !place.foreign.is_empty() {
                    stop.store(true, Ordering::Relaxed);
                }
                found.place(number, place);
            }
            let Ok(mut outcome) = outcome.lock() else { return };
            match (&mut *outcome, failed) {
                (_, Some(error)) => *outcome = Err(error),
                (Ok(all), None) => all.add(found),
                (Err(_), None) => {}
            }
        };
        let readers = READERS.min(self.places as usize);
        let shared = std::thread::scope(|scope| threads::share(scope, (readers, "examine a device"), work));
        if shared.is_err() {
            work();
        }
        let found = outcome.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)?;
        let Some((number, tally)) = found.foreign else { return Ok(found.clean) };
        let before = (0..number).flat_map(|number| self.pieces(number));
        let pages: u64 = before.map(|piece| (piece.end - piece.start).div_ceil(PAGE_BYTES)).sum();
        Ok(Tally { pages: pages + tally.pages, ..tally })
    }

    /// The byte ranges of the place of that number: it may span several ranges of the device.
    fn pieces(&self, number: u64) -> impl Iterator<Item = Range<u64>> + '_ {
        let place = (u128::from(number) * u128::from(self.step) % u128::from(self.places)) as u64;
        let start = if self.place_bytes == WHOLE_CHUNK_BYTES {
            place * WHOLE_CHUNK_BYTES
        } else {
            let even = u128::from(place) * u128::from(self.bytes) / u128::from(self.places);
            even as u64 / PAGE_BYTES * PAGE_BYTES
        };
        let end = (start + self.place_bytes).min(self.bytes);
        let first = self.ranges.partition_point(|(before, _)| *before <= start).saturating_sub(1);
        self.ranges[first..].iter().take_while(move |(before, _)| *before < end).map(
            move |(before, range)| {
                let within = |at: u64| range.start + at.saturating_sub(*before);
                within(start).min(range.end)..within(end).min(range.end)
            },
        )
    }
}

struct Reader<'a> {
    judge: &'a Judge<'a>,
    /// The device opened past the page cache, which is faster and does not evict others' pages.
    direct: Option<File>,
}

impl Reader<'_> {
    fn look_at(
        &self,
        piece: Range<u64>,
        buffer: &mut AlignedBuffer,
        tally: &mut Tally,
    ) -> std::io::Result<()> {
        let bytes = &mut buffer.bytes_mut()[..(piece.end - piece.start) as usize];
        let read = |file: &File, bytes: &mut [u8]| file.read_exact_at(bytes, piece.start);
        match &self.direct {
            Some(direct) if read(direct, bytes).is_ok() => {}
            _ => read(self.judge.file, bytes)?,
        }
        self.judge.all(piece.start, bytes, tally);
        Ok(())
    }
}

/// The greatest common divisor.
fn divisor(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { divisor(other, one % other) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::MIB;

    struct Nothing;

    impl OwnData for Nothing {
        fn header(&self, _: &[u8]) -> bool {
            false
        }

        fn page(&self, _: &File, _: u64, _: &[u8]) -> bool {
            false
        }
    }

    const SIZE: u64 = 64 * GIB;

    fn sparse() -> File {
        let file = tempfile::tempfile_in("/var/tmp").unwrap();
        file.set_len(SIZE).unwrap();
        file
    }

    fn found(file: &File, search: &Search) -> Tally {
        let judge = Judge { file, own_data: &Nothing, head: &[] };
        search.run(&judge, Instant::now() + Duration::from_mins(10)).unwrap()
    }

    #[test]
    fn places_are_repeatable_and_cover_the_whole_device() {
        let size = 100 * GIB;
        let offsets = places(size);
        assert_eq!(offsets, places(size));
        assert!(offsets.len() as u64 > 2 * PLACES - 10);
        assert!(offsets.iter().all(|at| at + PLACE_BYTES <= size && at.is_multiple_of(PAGE_BYTES)));
        let widest = offsets.iter().zip(offsets.iter().skip(1)).map(|(a, b)| b - a).max().unwrap();
        assert!(widest <= size / PLACES + PAGE_BYTES);
        assert_eq!(places(PAGE_BYTES).into_iter().collect::<Vec<_>>(), [0]);
    }

    #[test]
    fn a_page_anywhere_in_what_is_read_in_full_is_found() {
        let file = sparse();
        let ranges = [7 * MIB..9 * MIB, GIB..GIB + 12_288, 63 * GIB..63 * GIB + 300 * KIB];
        let search = Search::of(ranges.to_vec(), WHOLE_BYTES_MAX);
        assert_eq!(found(&file, &search).pages, (2 * MIB + 12_288 + 300 * KIB) / PAGE_BYTES);
        for at in [7 * MIB, 9 * MIB - 1, GIB + 4096, GIB + 12_287, 63 * GIB + 300 * KIB - 1] {
            file.write_all_at(&[1], at).unwrap();
            assert_eq!(found(&file, &search).foreign, [at / PAGE_BYTES * PAGE_BYTES]);
            file.write_all_at(&[0], at).unwrap();
        }
        assert_eq!(found(&file, &Search::of(Vec::new(), WHOLE_BYTES_MAX)).pages, 0);
    }

    #[test]
    fn a_stretch_of_a_65536th_of_a_large_drive_holds_a_place() {
        for size in [WHOLE_BYTES_MAX + 512, 100 * GIB, 8192 * GIB] {
            let search = Search::of(std::iter::once(0..size).collect(), WHOLE_BYTES_MAX);
            let starts = |number| search.pieces(number).next().unwrap();
            let places: BTreeSet<u64> = (0..search.places).map(|number| starts(number).start).collect();
            assert_eq!(places.len() as u64, PAGES);
            let ends = places.iter().skip(1).copied().chain([size]);
            let widest = places.iter().zip(ends).map(|(place, next)| next - place - PAGE_BYTES).max();
            assert!(widest.unwrap() < size / 65_536, "{size}: {widest:?}");
            // Halfway through, the gaps are at most about four times that.
            let half: BTreeSet<u64> = (0..PAGES / 2).map(|number| starts(number).start).collect();
            let widest = half.iter().zip(half.iter().skip(1)).map(|(place, next)| next - place).max();
            assert!(widest.unwrap() < size / 16_000, "{size}: {widest:?}");
        }
    }

    #[test]
    fn the_same_is_found_each_time_however_the_readers_take_turns() {
        let file = sparse();
        let search = Search::of(std::iter::once(0..2 * GIB).collect(), WHOLE_BYTES_MAX);
        for at in (5..8).map(|n| n * 207 * MIB) {
            file.write_all_at(&vec![1; 40 * MIB as usize], at).unwrap();
        }
        let first = found(&file, &search);
        assert!(!first.foreign.is_empty());
        for _ in 0..100 {
            let again = found(&file, &search);
            assert_eq!((again.pages, again.foreign), (first.pages, first.foreign.clone()));
        }
    }

    #[test]
    fn a_large_drive_is_searched_and_a_search_ends_in_time() {
        let file = sparse();
        let search = Search::of(std::iter::once(0..SIZE).collect(), WHOLE_BYTES_MAX);
        let late = Judge { file: &file, own_data: &Nothing, head: &[] };
        assert_eq!(search.run(&late, Instant::now()).unwrap().pages, 0);
        file.write_all_at(&vec![1; MIB as usize], 809 * MIB).unwrap();
        let foreign = found(&file, &search).foreign;
        assert!(foreign.iter().all(|at| (809 * MIB..810 * MIB).contains(at)) && !foreign.is_empty());
    }
}
