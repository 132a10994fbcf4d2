//! Integrity, and figures known in other ways: by hand, from a small model of their own, or in closed form.

use super::counts::Cause;
use super::drive::FlashDrive;
use super::sizes::{FlashSpec, Mapping};
use super::timed::Timed;

const PAGE: u64 = 2048;
const BLOCK: u64 = 64 * PAGE;

fn spec(pages: u64, over_provision: f64, mapping: Mapping) -> FlashSpec {
    FlashSpec {
        capacity_bytes: pages * PAGE,
        page_bytes: PAGE,
        block_bytes: BLOCK,
        dies: 1,
        over_provision,
        mapping,
        streams: 1,
        wear_spread: None,
    }
}

fn drive(spec: &FlashSpec) -> FlashDrive {
    FlashDrive::new(spec).unwrap()
}

/// Pseudo-random numbers from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// A drive, and what each of its pages should hold.
struct Kept {
    drive: FlashDrive,
    newest: Vec<u64>,
    writes: u64,
}

impl Kept {
    fn new(spec: &FlashSpec) -> Self {
        let drive = drive(spec);
        let newest = vec![0; drive.sizes().pages as usize];
        Self { drive, newest, writes: 0 }
    }

    fn write(&mut self, page: u64) {
        self.drive.write(page * PAGE, PAGE);
        self.writes += 1;
        self.newest[page as usize] = self.writes;
        let place = self.drive.place(page as u32).unwrap() as usize;
        self.drive.flash_mut().stamps[place] = self.writes;
    }

    fn discard(&mut self, page: u64) {
        self.drive.discard(page * PAGE, PAGE);
        self.newest[page as usize] = 0;
    }

    fn read(&mut self, page: u64) {
        self.drive.read(page * PAGE, PAGE);
        self.holds(page);
    }

    fn holds(&self, page: u64) {
        let flash = self.drive.flash();
        let held = self.drive.place(page as u32).map_or(0, |place| {
            assert_eq!(flash.owners[place as usize], page as u32, "page {page}");
            flash.stamps[place as usize]
        });
        assert_eq!(held, self.newest[page as usize], "page {page}");
    }

    fn holds_all(&self, mapped_elsewhere: usize) {
        (0..self.newest.len() as u64).for_each(|page| self.holds(page));
        let [by_block, by_owner] = self.drive.flash().valid_pages();
        let mapped = self.newest.iter().filter(|stamp| **stamp > 0).count();
        assert_eq!((by_block, by_owner), (mapped + mapped_elsewhere, mapped + mapped_elsewhere));
    }
}

/// A million operations, most of them writes; some places are hit much more often than others.
fn holds_what_was_written(spec: &FlashSpec, seed: u64) -> FlashDrive {
    let mut kept = Kept::new(spec);
    let pages = u64::from(kept.drive.sizes().pages);
    let mut random = Random(seed);
    for operation in 0..1_000_000_u64 {
        let within = if random.below(4) > 0 { pages / 8 } else { pages };
        let page = random.below(within);
        match random.below(16) {
            0..3 => kept.read(page),
            3 => kept.discard(page),
            4 if operation % 16 == 0 => (page..(page + 40).min(pages)).for_each(|page| kept.write(page)),
            _ => kept.write(page),
        }
        if operation % 200_000 == 0 {
            kept.holds_all(kept.drive.translation_pages_on_flash());
        }
    }
    kept.holds_all(kept.drive.translation_pages_on_flash());
    let counts = kept.drive.counts();
    assert!(counts.erases.iter().sum::<u64>() > 10_000, "seed {seed}: {counts:?}");
    kept.drive
}

#[test]
fn by_pages_the_newest_is_read() {
    let of = spec(4096, 0.07, Mapping::Page);
    holds_what_was_written(&of, 1);
    holds_what_was_written(&FlashSpec { dies: 4, streams: 3, wear_spread: Some(4), ..of }, 2);
}

#[test]
fn on_demand_the_newest_is_read() {
    let of = spec(16_384, 0.07, Mapping::OnDemand { cache_bytes: 3 * PAGE });
    let drive = holds_what_was_written(&of, 3);
    let counts = drive.counts();
    assert!(counts.misses > 100_000 && counts.write_backs > 10_000, "{counts:?}");
    holds_what_was_written(&FlashSpec { dies: 4, streams: 2, wear_spread: Some(4), ..of }, 4);
}

#[test]
fn hybrid_the_newest_is_read() {
    let of = spec(4096 + 7, 0.2, Mapping::Hybrid);
    let drive = holds_what_was_written(&of, 5);
    assert!(drive.counts().merges.iter().sum::<u64>() > 1000, "{:?}", drive.counts());
    holds_what_was_written(&FlashSpec { capacity_bytes: 40_000 * PAGE, dies: 4, ..of }, 6);
}

/// The same garbage collection on the plainest model: a list of blocks, each a list of pages.
#[test]
fn collection_counts_as_a_plain_model_does() {
    let (pages, bound) = (640_u64, 640 + 6 * 64);
    let mut drive = drive(&spec(pages, 0.6, Mapping::Page));
    assert_eq!(u64::from(drive.sizes().data_blocks) * 64, bound);
    let mut plain = Plain { free: 16, place: vec![None; 640], ..Plain::default() };
    let mut random = Random(7);
    for _ in 0..20_000 {
        let page = random.below(random_end(&mut Random(random.0), pages));
        drive.write(page * PAGE, PAGE);
        plain.host_writes(page as usize);
        let counts = drive.counts();
        let programs = counts.programs[Cause::Collection as usize];
        assert_eq!((programs, counts.erases[Cause::Collection as usize]), (plain.moves, plain.erases));
    }
    assert!(plain.moves > 1000, "{}", plain.moves);
}

/// Half of the writes go to an eighth of the pages.
fn random_end(random: &mut Random, pages: u64) -> u64 {
    if random.below(2) == 0 { pages / 8 } else { pages }
}

#[derive(Default)]
struct Plain {
    free: usize,
    /// Closed blocks: their pages, and when their count of valid pages last changed.
    closed: Vec<(Vec<Option<usize>>, u64)>,
    /// The open block of the host, and the one for moved pages.
    open: [Vec<Option<usize>>; 2],
    /// For each page, whether it is in open block 0 or 1, or in a closed block.
    place: Vec<Option<()>>,
    now: u64,
    moves: u64,
    erases: u64,
}

impl Plain {
    fn host_writes(&mut self, page: usize) {
        while self.free <= 2 && self.collect() {}
        self.forget(page);
        self.append(0, page);
    }

    fn forget(&mut self, page: usize) {
        self.now += 1;
        for (pages, since) in &mut self.closed {
            if let Some(held) = pages.iter_mut().find(|held| **held == Some(page)) {
                *held = None;
                *since = self.now;
            }
        }
        for held in self.open.iter_mut().flatten().filter(|held| **held == Some(page)) {
            *held = None;
        }
    }

    fn append(&mut self, which: usize, page: usize) {
        self.now += 1;
        self.place[page] = Some(());
        if self.open[which].is_empty() {
            self.free -= 1;
        }
        self.open[which].push(Some(page));
        if self.open[which].len() == 64 {
            let full = std::mem::take(&mut self.open[which]);
            self.closed.push((full, self.now));
        }
    }

    fn collect(&mut self) -> bool {
        let valid = |pages: &[Option<usize>]| pages.iter().flatten().count();
        let by = |at: &usize| (valid(&self.closed[*at].0), self.closed[*at].1);
        let Some(at) = (0..self.closed.len()).min_by_key(by) else { return false };
        if valid(&self.closed[at].0) == 64 {
            return false;
        }
        let (pages, _) = self.closed.remove(at);
        for page in pages.into_iter().flatten() {
            self.moves += 1;
            self.append(1, page);
        }
        self.free += 1;
        self.erases += 1;
        true
    }
}

/// Write amplification during the sixth random overwrite of a full drive of 1024 blocks.
fn uniform(over_provision: f64) -> f64 {
    let blocks = (1024.0 / (1.0 + over_provision)).round() as u64;
    let pages = blocks * 64;
    let mut drive = drive(&spec(pages, over_provision, Mapping::Page));
    let mut random = Random(11);
    drive.fill();
    for _ in 0..5 * pages {
        drive.write(random.below(pages) * PAGE, PAGE);
    }
    drive.forget();
    for _ in 0..pages {
        drive.write(random.below(pages) * PAGE, PAGE);
    }
    drive.counts().amplification(PAGE).unwrap()
}

/// Desnoyers 2012 (Analytic modeling of SSD write performance): greedy collection under uniform writes, with Lambert's
/// W; blocks of 64 pages, `spare` = flash ÷ capacity.
fn greedy(spare: f64) -> f64 {
    let block = 64.0_f64;
    let by = 1.0 + 1.0 / (2.0 * block);
    let argument = -by * spare * (-by * spare).exp();
    let mut w = 0.0_f64;
    for _ in 0..200 {
        w -= (w * w.exp() - argument) / (w.exp() * (w + 1.0));
    }
    let fewest = 0.5 - block / spare * w;
    block / (block - (fewest - 1.0))
}

#[test]
fn uniform_writes_amplify_as_in_closed_form() {
    for (over_provision, upper) in [(0.07, 7.82), (0.15, 4.02), (0.25, 2.69), (0.5, 1.72)] {
        // Three of 1024 blocks are free at any time.
        let spare = (1.0 + over_provision) * (1.0 - 3.0 / 1024.0);
        let (measured, known) = (uniform(over_provision), greedy(spare));
        assert!((measured / known - 1.0).abs() < 0.02, "{over_provision}: {measured} for {known}");
        assert!(measured < upper, "{over_provision}: {measured} for at most {upper}");
    }
}

#[test]
fn sequential_overwrites_move_nothing() {
    for dies in [1, 16] {
        let mut drive = drive(&FlashSpec { dies, ..spec(65_536, 0.07, Mapping::Page) });
        for _ in 0..4 {
            drive.fill();
        }
        let programs = drive.counts().programs;
        assert_eq!(programs[Cause::Host as usize], 4 * 65_536);
        let all: u64 = programs.iter().sum();
        assert!(all as f64 <= 1.01 * 4.0 * 65_536.0, "{dies}: {programs:?}");
    }
}

/// 64 translation pages, and a cache for 16 of them.
#[test]
fn the_cache_misses_as_often_as_it_must() {
    let pages = 64 * 512;
    let of = spec(pages, 0.07, Mapping::OnDemand { cache_bytes: 16 * PAGE });
    let mut drive = drive(&of);
    drive.fill();
    drive.forget();
    let mut random = Random(13);
    for _ in 0..200_000 {
        drive.read(random.below(pages) * PAGE, PAGE);
    }
    let uniform = drive.counts().miss_ratio().unwrap();
    assert!((uniform - (1.0 - 16.0 / 64.0)).abs() < 0.01, "{uniform}");
    let counts = drive.counts();
    // The fill left 16 changed translation pages in the cache; reads change none.
    assert_eq!((counts.reads[Cause::Mapping as usize], counts.write_backs), (counts.misses, 16));
    drive.forget();
    (0..pages).for_each(|page| drive.read(page * PAGE, PAGE));
    let sequential = drive.counts().miss_ratio().unwrap();
    assert!((sequential * 512.0 - 1.0).abs() < 0.3, "{sequential}");
    assert_eq!(drive.counts().programs, [0; 6]);
}

/// Two translation pages take turns in a cache of one; the figures are worked out by hand.
#[test]
fn what_leaves_the_cache_is_written_back_once() {
    let mut drive = drive(&spec(1024, 0.07, Mapping::OnDemand { cache_bytes: PAGE }));
    for page in [0, 1, 2, 600, 3, 700] {
        drive.write(page * PAGE, PAGE);
    }
    drive.read(0, PAGE);
    let counts = drive.counts();
    // Misses: 0, 600, 3, 700, and the read. Each evicts the other, changed; from its second time on it is on flash.
    assert_eq!((counts.lookups, counts.misses, counts.write_backs), (7, 5, 4));
    let mapping = Cause::Mapping as usize;
    assert_eq!((counts.reads[mapping], counts.programs[mapping], counts.programs[0]), (3, 4, 6));
    assert!((counts.amplification(PAGE).unwrap() - 10.0 / 6.0).abs() < 1e-9);
}

#[test]
fn a_page_that_is_written_in_part_is_read_before() {
    let mut drive = drive(&spec(64, 0.07, Mapping::Page));
    drive.write(512, 1024);
    assert_eq!(drive.counts().reads, [0; 6], "nothing is there yet");
    // The end of the first page, the whole second, and the beginning of the third, which holds nothing.
    drive.write(1024, 2 * PAGE);
    drive.discard(1024, 2 * PAGE);
    drive.read(PAGE - 1, 2);
    let counts = drive.counts();
    assert_eq!((counts.reads[Cause::Part as usize], counts.reads[0], counts.empty_reads), (1, 1, 1));
    assert_eq!((counts.programs[0], counts.host_written_bytes), (4, 1024 + 2 * PAGE));
    assert_eq!((counts.host_read_bytes, counts.host_discarded_bytes), (2, 2 * PAGE));
}

/// 128 pages in two logical blocks; one group has all the log blocks.
#[test]
fn merges_are_as_by_hand() {
    let whole = |drive: &mut FlashDrive, first: u64| {
        (first..first + 64).for_each(|page| drive.write(page * PAGE, PAGE));
    };
    // Eight flash blocks more than the two: six of them may be logs.
    let of = spec(128, 4.0, Mapping::Hybrid);
    let settled = |writes: &dyn Fn(&mut FlashDrive)| {
        let mut drive = drive(&of);
        writes(&mut drive);
        drive.settle();
        (drive.counts().merges, drive.counts().programs[Cause::Merge as usize])
    };
    // Whole and in order: a switch merge, then another over the old data block.
    assert_eq!(settled(&|drive| whole(drive, 0)), ([1, 0, 0], 0));
    assert_eq!(
        settled(&|drive| [0, 64, 0].into_iter().for_each(|first| whole(drive, first))),
        ([2, 0, 0], 0)
    );
    // 40 pages of the block are rewritten in order: the other 24 are copied after them.
    let in_order = |drive: &mut FlashDrive| {
        whole(drive, 0);
        drive.settle();
        (0..40).for_each(|page| drive.write(page * PAGE, PAGE));
    };
    assert_eq!(settled(&in_order), ([1, 1, 0], 24));
    // Starting at the second page: all are copied, the last one into the second block.
    let shifted = |drive: &mut FlashDrive| (1..65).for_each(|page| drive.write(page * PAGE, PAGE));
    assert_eq!(settled(&shifted), ([0, 0, 2], 64));
    // Shifted by half a block: no page is at its own place, and each block is merged in full.
    let half = |drive: &mut FlashDrive| (32..96).for_each(|page| drive.write(page * PAGE, PAGE));
    assert_eq!(settled(&half), ([0, 0, 2], 64));
}

#[test]
fn wear_is_levelled_if_asked_for() {
    let spread = |wear_spread: Option<u32>| {
        let mut drive = drive(&FlashSpec { wear_spread, ..spec(8192, 0.1, Mapping::Page) });
        drive.fill();
        drive.forget();
        let mut random = Random(17);
        // An eighth of the pages change, the rest never do.
        (0..400_000).for_each(|_| drive.write(random.below(1024) * PAGE, PAGE));
        let erases = drive.erases();
        (*erases.iter().max().unwrap() - *erases.iter().min().unwrap(), drive.counts().clone())
    };
    let (uneven, without) = spread(None);
    let (even, with) = spread(Some(8));
    assert!(uneven > 300 && even < 32, "{uneven} {even}");
    assert_eq!(without.erases[Cause::Levelling as usize], 0);
    assert!(with.erases[Cause::Levelling as usize] > 0);
}

#[test]
fn a_drive_that_cannot_be_is_refused() {
    let of = spec(1024, 0.07, Mapping::Page);
    for wrong in [
        FlashSpec { page_bytes: 0, ..of },
        FlashSpec { block_bytes: PAGE, ..of },
        FlashSpec { block_bytes: 3000, ..of },
        FlashSpec { dies: 0, ..of },
        FlashSpec { over_provision: -0.1, ..of },
        FlashSpec { over_provision: f64::NAN, ..of },
        FlashSpec { capacity_bytes: 1 << 60, ..of },
        FlashSpec { capacity_bytes: u64::MAX, over_provision: 1000.0, ..of },
    ] {
        assert!(FlashDrive::new(&wrong).is_err(), "{wrong:?}");
    }
    // The least that works: open blocks, those kept free, and one to empty.
    assert_eq!(
        drive(&FlashSpec { over_provision: 0.0, dies: 4, ..of }).sizes().data_blocks,
        16 + 2 * 4 + 2 + 1
    );
}

/// A 64 MiB drive with a clock: pages of 4 KiB on 16 dies.
fn timed(over_provision: f64, mapped: f64) -> Timed {
    Timed::new(64 << 20, over_provision, mapped).unwrap()
}

const TIMED_PAGE: u64 = 4096;

#[test]
fn dies_work_beside_each_other() {
    let mut drive = timed(1.0, 1.0);
    assert_eq!(drive.read(0, 0, TIMED_PAGE), 30_000, "a command, and a page");
    // 32 pages in order are on all dies, two on each.
    let mut drive = timed(1.0, 1.0);
    assert_eq!(drive.read(0, 32 << 20, 32 * TIMED_PAGE), 50_000);
    // With a queue that never runs empty: 16 pages per 20 µs.
    let mut drive = timed(1.0, 1.0);
    let end_ns =
        (0..8192).map(|page| drive.read(0, (32 << 20) + page * TIMED_PAGE, TIMED_PAGE)).max().unwrap();
    let bytes_per_s = 8192.0 * TIMED_PAGE as f64 / end_ns as f64 * 1e9;
    assert!((bytes_per_s / 3_276.8e6 - 1.0).abs() < 0.01, "{bytes_per_s}");
    // Writes one after another: the buffer keeps all dies busy, 16 pages per 200 µs, and nothing is collected
    // yet. At the end, the buffer holds 16 pages per die.
    let (mut drive, mut now_ns) = (timed(1.0, 1.0), 0);
    for page in 0..8192 {
        now_ns = drive.write(now_ns, page * TIMED_PAGE, TIMED_PAGE);
    }
    let bytes_per_s = (8192.0 - 256.0) * TIMED_PAGE as f64 / now_ns as f64 * 1e9;
    assert!((bytes_per_s / 327.68e6 - 1.0).abs() < 0.01, "{bytes_per_s}");
    assert_eq!(drive.written_bytes(), [8192 * TIMED_PAGE; 2]);
    assert_eq!(Timed::flush(now_ns) - now_ns, 20_000);
}

/// Uniform reads, one at a time: a miss costs another flash read.
#[test]
fn a_miss_of_the_map_is_another_read() {
    // A quarter of the 16 translation pages is in memory.
    let mean = |mapped: f64| {
        let mut drive = timed(1.0, mapped);
        let (mut random, mut now_ns, mut sum_ns) = (Random(19), 1_000_000_000, 0);
        for read in 0..20_000 {
            let end_ns = drive.read(now_ns, random.below(16_384) * TIMED_PAGE, TIMED_PAGE);
            // The first ones still evict changes of the fill from the cache, which are written back.
            sum_ns += if read < 1000 { 0 } else { end_ns - now_ns };
            now_ns = end_ns;
        }
        sum_ns as f64 / 19_000.0
    };
    let (whole, quarter) = (mean(1.0), mean(0.25));
    assert!((whole - 30_000.0).abs() < 1.0, "{whole}");
    assert!(((quarter - whole) / (20_000.0 * 0.75) - 1.0).abs() < 0.03, "{quarter}");
}

/// Reads beside random writes at a rate that the drive can sustain.
#[test]
fn collection_is_the_tail_of_reads() {
    let slowest = |writes: u64| {
        let mut drive = timed(0.5, 1.0);
        let (mut random, mut times) = (Random(23), Vec::new());
        for at in 0..40_000 {
            let now_ns = at * 200_000;
            if at < writes {
                drive.write(now_ns, random.below(16_384) * TIMED_PAGE, TIMED_PAGE);
            }
            times.push(drive.read(now_ns, random.below(16_384) * TIMED_PAGE, TIMED_PAGE) - now_ns);
        }
        times.sort_unstable();
        (times[20_000], times[39_900], drive.written_bytes())
    };
    let (median, tail, [host, flash]) = slowest(40_000);
    assert!(flash > host + host / 4, "{host} {flash}");
    assert!(median < 100_000 && tail > 1_000_000, "{median} {tail}");
    let (median, tail, _) = slowest(0);
    assert_eq!((median, tail), (30_000, 30_000));
}
