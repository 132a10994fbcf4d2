//! Tracks in one word which writes of a page are in flight together, and so how old its last write may be.
//!
//! A completed write rules out all writes that were complete when it was queued. It can't rule out those in
//! flight then, so when it is queued it takes a lower bound of them along. If writes never pause, a bound
//! that only falls would never rule out anything. So the writes in flight form two groups: the older one
//! admits no more writes, and once it is empty, the younger becomes the older and its own bound counts.
//!
//! | bits | what |
//! |---|---|
//! | 0..38 | a lower bound of the numbers in both groups |
//! | 38 | the parity of the older group's number, which tells a completing write its group |
//! | 39..48 | 0 while the younger group is empty, else 1 plus how far above the bound it begins |
//! | 48..56 | number of writes in the older group |
//! | 56..64 | number of writes in the younger group |
//!
//! The distance is rounded down, to 5 significant bits. A group that reaches 255 is full, and stays so until
//! its class is restarted: its bound stays too, and rules out less.

/// The low bits of sequence numbers, which differ within a run.
const LOW_BITS: u32 = 38;
pub(super) const LOW: u64 = (1 << LOW_BITS) - 1;
const PARITY: u64 = 1 << LOW_BITS;
/// A flag in what a write takes along: nothing was in flight when it was queued.
pub(super) const FIRST: u64 = 1 << 63;
const GAP_SHIFT: u32 = LOW_BITS + 1;
const OLDER_SHIFT: u32 = 48;
const YOUNGER_SHIFT: u32 = 56;
const FULL: u64 = 255;
/// Significant bits of a gap, besides the leading one.
const GAP_BITS: u32 = 4;
const GAP_MAX: u64 = (1 << (OLDER_SHIFT - GAP_SHIFT)) - 2;

/// Queues a write with those low bits of its sequence number. Returns the new cell, and what the write takes
/// along.
#[inline]
pub(super) fn queued(cell: u64, sequence: u64) -> (u64, u64) {
    if cell == 0 {
        return (1 << OLDER_SHIFT | sequence, FIRST | sequence);
    }
    // A worker may take its number first but queue last.
    let low = sequence.min(cell & LOW);
    let begins = 1 + rounded(sequence - low);
    let begins = match gap(cell) {
        0 => begins,
        others => others.min(begins),
    };
    let counts = cell >> OLDER_SHIFT << OLDER_SHIFT;
    let counts = if counts >> YOUNGER_SHIFT == FULL { counts } else { counts + (1 << YOUNGER_SHIFT) };
    (counts | begins << GAP_SHIFT | cell & PARITY | low, !cell & PARITY | low)
}

/// Completes a write; returns the new cell.
#[inline]
pub(super) fn completed(cell: u64, taken: u64) -> u64 {
    let older = (cell ^ taken) & PARITY == 0;
    let shift = if older { OLDER_SHIFT } else { YOUNGER_SHIFT };
    let left = if cell >> shift & FULL == FULL { cell } else { cell - (1 << shift) };
    let younger = left >> YOUNGER_SHIFT;
    match left >> OLDER_SHIFT & FULL {
        0 if younger == 0 => 0,
        0 => {
            let low = (left & LOW) + exact(gap(left).saturating_sub(1));
            younger << OLDER_SHIFT | !left & PARITY | low & LOW
        }
        _ => left,
    }
}

/// Whether any write overlaps with the first one, which is still in flight.
#[inline]
pub(super) fn is_overlapped(cell: u64) -> bool {
    gap(cell) != 0
}

/// The low bits of the oldest write that may be last once this one, which took `taken` along, has completed.
#[inline]
pub(super) fn oldest(cell: u64, taken: u64) -> u64 {
    // A write queued later, with a lower number, has lowered the cell's bound.
    (cell & LOW).min(taken & LOW)
}

#[inline]
fn gap(cell: u64) -> u64 {
    cell >> GAP_SHIFT & (GAP_MAX + 1)
}

/// Encodes a distance: rounded down, and at most the largest that fits.
#[inline]
fn rounded(numbers: u64) -> u64 {
    let shift = (numbers | 1).ilog2().saturating_sub(GAP_BITS);
    ((u64::from(shift) << GAP_BITS) + (numbers >> shift)).min(GAP_MAX)
}

/// Decodes such a distance.
#[inline]
fn exact(kept: u64) -> u64 {
    let shift = (kept >> GAP_BITS).saturating_sub(1);
    (kept - (shift << GAP_BITS)) << shift
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_rounded_down_by_a_sixteenth_at_most() {
        for shift in 0..LOW_BITS {
            for numbers in [0, 1, 2, 3, 5, 7].map(|more: u64| (1 << shift) + (more << shift >> 3)) {
                let kept = exact(rounded(numbers));
                assert!(kept <= numbers, "{numbers} {kept}");
                assert!(kept * 17 >= numbers * 16 || numbers > 1 << 34, "{numbers} {kept}");
            }
        }
        assert_eq!((0..32).map(|n| exact(rounded(n))).collect::<Vec<_>>(), (0..32).collect::<Vec<_>>());
        assert!((0..GAP_MAX).all(|kept| rounded(exact(kept)) == kept));
    }

    #[test]
    fn a_group_that_was_full_keeps_its_bound() {
        let (mut cell, mut taken) = (0, Vec::new());
        for sequence in 10..900 {
            let (after, took) = queued(cell, sequence);
            cell = after;
            taken.push(took);
        }
        for took in taken {
            assert_eq!(oldest(cell, took), 10);
            cell = completed(cell, took);
        }
        let (cell, took) = queued(cell, 1000);
        assert!(took & FIRST == 0 && oldest(cell, took) <= 11);
        assert_eq!(queued(completed(cell, took), 1001).1 & LOW, cell & LOW);
    }
}
