//! Compares what was read from an extent with what should be there: stamps sector by sector, acknowledged
//! writes page by page.

use super::opened::EPOCH_SHIFT;
use super::region::Region;
use super::report::{FaultPlace, Faults, VerifyReport};
use super::stamp::{Fault, SECTOR_BYTES, check};
use super::write_map::{DAMAGED, Expected, OLDER, Table, UnderWay};

/// Without a map, faults are counted by pages of that size.
const PAGE_BYTES: u64 = 4096;

/// An extent to verify.
pub(super) struct Extent<'a> {
    pub region: &'a Region,
    pub index: u32,
    /// The member's name.
    pub member: &'a str,
    /// What its pages should hold, where that is known.
    pub map: Option<&'a RegionMap>,
}

/// A region's table, and the writes that were in flight.
pub(super) struct RegionMap {
    pub table: Table,
    pub under_way: UnderWay,
}

impl Extent<'_> {
    /// Describes a place for the report.
    pub fn place(&self, offset_bytes: u64, detail: Option<String>) -> FaultPlace {
        let region = if self.region.id == Region::WAL { "wal" } else { "data" };
        FaultPlace { member: self.member.to_owned(), offset_bytes, region, detail }
    }

    /// Bytes of a page, as faults are counted.
    pub fn page_bytes(&self) -> u64 {
        self.map.map_or(PAGE_BYTES, |map| map.table.granule_bytes())
    }

    fn expected(&self, offset_bytes: u64) -> (Expected, &[u64]) {
        let Some(map) = self.map else { return (Expected::Unknown, &[]) };
        let (expected, word) = map.table.expected(self.index, offset_bytes);
        let under_way = word.and_then(|word| map.under_way.get(&word));
        (expected, under_way.map_or(&[], Vec::as_slice))
    }

    /// Checks the bytes from offset `first` on, and adds what it finds to the report.
    pub fn compare(&self, report: &mut VerifyReport, bytes: &[u8], first: u64) {
        let page_bytes = self.page_bytes().min(bytes.len() as u64);
        let mut written: Option<Written> = None;
        for (page, at) in bytes.chunks(page_bytes as usize).zip((first..).step_by(page_bytes as usize)) {
            let (expected, under_way) = self.expected(at);
            // Neighbouring granules of the same write form one page.
            if written.as_ref().is_none_or(|last| !last.continues(expected, under_way)) {
                written.take().inspect(|last| last.report(self, report));
            }
            let written = written.get_or_insert_with(|| Written::new(expected, under_way, at));
            self.look(report, written, page, at);
        }
        written.inspect(|last| last.report(self, report));
    }

    /// Checks the sectors of a page.
    fn look(&self, report: &mut VerifyReport, written: &mut Written, page: &[u8], at: u64) {
        let mut faults: Vec<Fault> = Vec::new();
        for (sector, place) in page.chunks_exact(SECTOR_BYTES).zip((at..).step_by(SECTOR_BYTES)) {
            match check(sector, self.region.set, self.region.id, self.index, place) {
                Ok(stamp) => written.add(stamp.sequence, place),
                Err(fault) => {
                    let pages = u64::from(!faults.contains(&fault));
                    faults.push(fault);
                    report.of(fault).note((pages, 1), || self.place(place, None));
                }
            }
        }
        written.faults |= !faults.is_empty();
    }
}

/// Counts a page's valid sectors by the write that they came from.
struct Written<'a> {
    expected: Expected,
    under_way: &'a [u64],
    /// Where it begins.
    at: u64,
    /// Sectors of the acknowledged write.
    acknowledged: u64,
    /// Sectors of writes in flight.
    unacknowledged: u64,
    /// Sectors of other writes.
    others: u64,
    /// The newest of these, and where the first is.
    newest: u64,
    first: Option<u64>,
    /// Whether any sector is invalid.
    faults: bool,
}

impl<'a> Written<'a> {
    fn new(expected: Expected, under_way: &'a [u64], at: u64) -> Self {
        let (acknowledged, unacknowledged, others, newest) = (0, 0, 0, 0);
        let (first, faults) = (None, false);
        Self { expected, under_way, at, acknowledged, unacknowledged, others, newest, first, faults }
    }

    fn continues(&self, expected: Expected, under_way: &[u64]) -> bool {
        matches!(expected, Expected::Exact(_)) && self.expected == expected && self.under_way == under_way
    }

    fn add(&mut self, sequence: u64, place: u64) {
        let acknowledged = match self.expected {
            Expected::Exact(last) => sequence == last,
            Expected::Floor(first) => sequence >= first,
            Expected::Unknown | Expected::Unsure | Expected::Damaged => true,
        };
        if acknowledged {
            self.acknowledged += 1;
        } else if self.under_way.contains(&sequence) {
            self.unacknowledged += 1;
        } else {
            self.others += 1;
            self.newest = self.newest.max(sequence);
            self.first.get_or_insert(place);
        }
    }

    fn report(&self, extent: &Extent, report: &mut VerifyReport) {
        let (Expected::Exact(last) | Expected::Floor(last)) = self.expected else {
            report.sectors_unchecked += self.acknowledged;
            if self.expected == Expected::Damaged {
                report.doubt.get_or_insert(DAMAGED);
            }
            return;
        };
        // Storage can't hold a write newer than the map's last one, unless the map is outdated.
        if self.newest > last {
            report.doubt.get_or_insert(OLDER);
        }
        let valid = self.acknowledged + self.unacknowledged;
        // A write that overlaps no other should arrive as a whole or not at all.
        let half = self.under_way.len() == 1
            && self.acknowledged.min(self.unacknowledged) > 0
            && matches!(self.expected, Expected::Exact(_));
        if half {
            let sectors = self.unacknowledged;
            report.torn.note((1, sectors), || extent.place(self.at, None));
        }
        report.sectors_ok += if half { self.acknowledged } else { valid };
        let Some(first) = self.first else { return };
        let faults: &mut Faults = if valid > 0 || self.faults {
            &mut report.torn
        } else if self.newest >> EPOCH_SHIFT == last >> EPOCH_SHIFT {
            &mut report.stale
        } else {
            &mut report.lost
        };
        faults.note((u64::from(!half), self.others), || extent.place(first, None));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page of eight sectors from these writes, where the last one acknowledged was `last`.
    fn page(last: u64, sequences: [u64; 8]) -> [u64; 3] {
        let region = Region { id: Region::DATA, set: 0, extents: Vec::new(), extent_bytes: 0 };
        let mut written = Written::new(Expected::Exact(last), &[], 0);
        sequences
            .into_iter()
            .zip((0..).step_by(SECTOR_BYTES))
            .for_each(|(sequence, at)| written.add(sequence, at));
        let mut report = VerifyReport::default();
        written.report(&Extent { region: &region, index: 0, member: "a", map: None }, &mut report);
        [report.lost.pages, report.stale.pages, report.torn.pages]
    }

    #[test]
    fn an_older_write_is_stale_if_it_is_of_the_last_ones_run_and_else_lost() {
        let of = |run: u64, number: u64| run << EPOCH_SHIFT | number;
        let (last, earlier, before) = (of(3, 9), of(3, 7), of(2, 70));
        assert_eq!(page(last, [last; 8]), [0, 0, 0]);
        assert_eq!(page(last, [before; 8]), [1, 0, 0]);
        assert_eq!(page(last, [earlier; 8]), [0, 1, 0]);
        let half = |one, other| std::array::from_fn(|at| if at < 4 { one } else { other });
        assert_eq!(page(last, half(earlier, before)), [0, 1, 0], "something of the run is there");
        assert_eq!(page(last, half(last, before)), [0, 0, 1]);
        assert_eq!(page(last, half(last, earlier)), [0, 0, 1]);
    }
}
