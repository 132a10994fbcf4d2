//! What a verification found.

use std::fmt;

use serde::Serialize;

use super::stamp::{Fault, SECTOR_BYTES};
use crate::units::approx_size;

/// How many faults of each kind are named.
const NAMED_MAX: usize = 5;

/// Where a fault is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FaultPlace {
    /// The member's name.
    pub member: String,
    /// Offset on the member.
    pub offset_bytes: u64,
    /// `data` or `wal`.
    pub region: &'static str,
    /// Details, such as the error of a read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// Faults of one kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Faults {
    /// The number of pages. Lost, stale and torn pages are those of the writes; others are of the smallest
    /// size that the set was written with, or of 4 KiB if that is unknown.
    pub pages: u64,
    /// The number of sectors.
    pub sectors: u64,
    /// The first few.
    pub first: Vec<FaultPlace>,
}

/// What the pages were compared with.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Whether there was a usable write map of the set.
    pub compared: bool,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The share of the data's pages that it holds.
    pub share: f64,
    /// The share of the WAL's pages that it holds.
    pub wal_share: f64,
}

impl Comparison {
    /// No map, or none that can be trusted, for this reason.
    pub(super) fn none(why: String) -> Self {
        Self { compared: false, why: Some(why), share: 0.0, wal_share: 0.0 }
    }
}

impl Default for Comparison {
    fn default() -> Self {
        Self { compared: true, why: None, share: 1.0, wal_share: 1.0 }
    }
}

const NOTHING_SINCE: &str = "no run wrote there since the write map began";

/// What a verification found, in sectors of 512 bytes.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct VerifyReport {
    /// Sectors that hold the last write to them.
    pub sectors_ok: u64,
    /// Sectors that hold some write to them; whether it was the last is unknown.
    pub sectors_unchecked: u64,
    /// What the pages were compared with.
    pub write_map: Comparison,
    /// Sectors that are all zeros.
    pub never_written: Faults,
    /// Sectors that this set did not write.
    pub foreign: Faults,
    /// Valid sectors of this set that belong elsewhere.
    pub misplaced: Faults,
    /// Sectors of this set whose bytes are not those that were written.
    pub damaged: Faults,
    /// Pages that hold nothing of the last run that wrote to them, only what was there before.
    pub lost: Faults,
    /// Pages that hold an earlier write of that run than the last acknowledged one.
    pub stale: Faults,
    /// Pages of which only a part is as written.
    pub torn: Faults,
    /// Sectors that could not be read.
    pub unreadable: Faults,
    /// Whether everything was checked; otherwise it was stopped.
    pub complete: bool,
    /// Why the map can't be trusted, judging by the pages.
    #[serde(skip)]
    pub doubt: Option<&'static str>,
}

impl VerifyReport {
    /// Whether everything was read and nothing is wrong. Without a write map, lost writes go unnoticed.
    pub fn is_clean(&self) -> bool {
        self.complete && self.kinds().iter().all(|(_, faults)| faults.sectors == 0)
    }

    /// Each kind of fault with its name.
    pub fn kinds(&self) -> [(&'static str, &Faults); 8] {
        [
            (Fault::NeverWritten.name(), &self.never_written),
            (Fault::Foreign.name(), &self.foreign),
            (Fault::Misplaced.name(), &self.misplaced),
            (Fault::Damaged.name(), &self.damaged),
            ("lost", &self.lost),
            ("stale", &self.stale),
            ("torn", &self.torn),
            ("unreadable", &self.unreadable),
        ]
    }

    pub(super) fn of(&mut self, fault: Fault) -> &mut Faults {
        match fault {
            Fault::NeverWritten => &mut self.never_written,
            Fault::Foreign => &mut self.foreign,
            Fault::Misplaced => &mut self.misplaced,
            Fault::Damaged => &mut self.damaged,
        }
    }

    pub(super) fn add(&mut self, other: Self) {
        self.sectors_ok += other.sectors_ok;
        self.sectors_unchecked += other.sectors_unchecked;
        self.complete &= other.complete;
        self.doubt = self.doubt.or(other.doubt);
        self.never_written.add(other.never_written);
        self.foreign.add(other.foreign);
        self.misplaced.add(other.misplaced);
        self.damaged.add(other.damaged);
        self.lost.add(other.lost);
        self.stale.add(other.stale);
        self.torn.add(other.torn);
        self.unreadable.add(other.unreadable);
    }

    /// Why nothing was compared with the last writes; `None` if something was, or if nothing was ever written.
    pub fn not_compared(&self) -> Option<&str> {
        match &self.write_map {
            Comparison { compared: false, why, .. } => Some(why.as_deref().unwrap_or_default()),
            _ if self.checked_sectors() == 0 && self.sectors_unchecked > 0 => Some(NOTHING_SINCE),
            _ => None,
        }
    }

    fn checked_sectors(&self) -> u64 {
        self.sectors_ok + self.lost.sectors + self.stale.sectors + self.torn.sectors
    }

    /// Of the valid sectors, the share that was compared with the map; rounded down.
    fn share_checked(&self) -> String {
        let checked = u128::from(self.checked_sectors());
        let all = checked + u128::from(self.sectors_unchecked);
        match checked * 1000 / all.max(1) {
            0 => "under 0.1%".to_owned(),
            thousandths => format!("{}.{}%", thousandths / 10, thousandths % 10),
        }
    }

    /// What was checked, and what was not.
    fn checked(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = |sectors: u64| approx_size(sectors * SECTOR_BYTES as u64);
        let Comparison { share, wal_share, .. } = &self.write_map;
        if let Some(why) = self.not_compared() {
            let unchecked = size(self.sectors_unchecked);
            return write!(
                f,
                "lost writes: not checked: {why}\n{unchecked} hold something that was written there"
            );
        }
        if self.sectors_unchecked > 0 {
            write!(f, "{} checked for lost writes: ", self.share_checked())?;
        }
        write!(f, "{} verified as written", size(self.sectors_ok))?;
        for (share, of) in
            [(share, "data"), (wal_share, "WAL")].into_iter().filter(|(share, _)| **share < 1.0)
        {
            write!(f, "\nthe write map holds a sample: one of {} pages of the {of}", (1.0 / share).round())?;
        }
        if self.sectors_unchecked > 0 {
            let unchecked = size(self.sectors_unchecked);
            write!(
                f,
                "\n{unchecked} not checked for lost writes: {NOTHING_SINCE}, a write failed, or it is not in the sample"
            )?;
        }
        Ok(())
    }
}

impl Faults {
    fn add(&mut self, other: Self) {
        self.pages += other.pages;
        self.sectors += other.sectors;
        let room = NAMED_MAX.saturating_sub(self.first.len());
        self.first.extend(other.first.into_iter().take(room));
    }

    /// Counts pages and sectors, and names a place for each page.
    pub(super) fn note(&mut self, (pages, sectors): (u64, u64), place: impl FnOnce() -> FaultPlace) {
        self.pages += pages;
        self.sectors += sectors;
        if pages > 0 && self.first.len() < NAMED_MAX {
            self.first.push(place());
        }
    }
}

impl fmt::Display for VerifyReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.checked(f)?;
        for (name, faults) in self.kinds().into_iter().filter(|(_, faults)| faults.sectors > 0) {
            let Faults { pages, sectors, first } = faults;
            let size = approx_size(sectors * SECTOR_BYTES as u64);
            let s = if *pages == 1 { "" } else { "s" };
            write!(f, "\n{pages} page{s} {name} ({size}), first at")?;
            for (n, place) in first.iter().enumerate() {
                let comma = if n == 0 { "" } else { "," };
                write!(f, "{comma} {} + {} ({})", place.member, place.offset_bytes, place.region)?;
                if let Some(detail) = &place.detail {
                    write!(f, ": {detail}")?;
                }
            }
        }
        if !self.complete {
            write!(f, "\nstopped before the end")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_words_say_what_share_was_checked_where_that_is_not_all() {
        let said = |sectors_ok, sectors_unchecked, stale| {
            let stale = Faults { sectors: stale, ..Faults::default() };
            let report =
                VerifyReport { sectors_ok, sectors_unchecked, stale, complete: true, ..Default::default() };
            report.to_string().lines().next().unwrap().to_owned()
        };
        assert_eq!(said(2048, 0, 0), "1.00 MiB verified as written");
        for (ok, unchecked, stale, words) in [
            (2048, 680_619, 0, "0.2% checked for lost writes: 1.00 MiB verified as written"),
            (2048, 680_618, 0, "0.3% checked for lost writes: 1.00 MiB verified as written"),
            (2048, 1, 0, "99.9% checked for lost writes: 1.00 MiB verified as written"),
            (2, 1 << 40, 0, "under 0.1% checked for lost writes: 1.00 KiB verified as written"),
            (0, 8, 0, "lost writes: not checked: no run wrote there since the write map began"),
            (0, 8, 8, "50.0% checked for lost writes: 0 B verified as written"),
        ] {
            assert_eq!(said(ok, unchecked, stale), words);
        }
    }
}
