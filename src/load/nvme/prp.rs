//! Where a command's data is: PRP entries and lists (Base 4.1.1).
//!
//! The first entry may start anywhere in a page and covers the rest of that page. The second entry is the
//! next page if that is the last one; otherwise it points to a list of all further pages.

use super::dma::Dma;

/// Bytes of a memory page, as CC.MPS sets it.
pub const PAGE_BYTES: usize = 4096;
/// Bytes of an entry.
pub const ENTRY_BYTES: usize = 8;
/// The most that a command may move here, whatever its controller allows: as much as a list of one page
/// describes. Longer lists would have to be chained, and no page is larger than 1 MiB.
pub const TRANSFER_BYTES_MAX: usize = PAGE_BYTES / ENTRY_BYTES * PAGE_BYTES;

/// The data pointer of a command: PRP1 and PRP2.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Prp {
    /// PRP1: where the data begins.
    pub first: u64,
    /// PRP2: the second page, the list, or nothing.
    pub second: u64,
}

/// List entries that a transfer needs; 0 if PRP1 and PRP2 are enough.
pub fn list_entries(start: u64, bytes: usize) -> usize {
    let in_first = PAGE_BYTES - (start as usize & (PAGE_BYTES - 1));
    match bytes.saturating_sub(in_first).div_ceil(PAGE_BYTES) {
        0 | 1 => 0,
        pages => pages,
    }
}

/// Describes the bytes from `at` of a buffer. `list` is where to write a list, if one is needed: memory, and
/// an offset from which [`list_entries`] entries fit into one page.
///
/// # Panics
/// If the list would cross a page boundary: the caller must lay it out so that it does not.
pub fn describe(buffer: &Dma, (at, bytes): (usize, usize), list: (&Dma, usize)) -> Prp {
    let first = buffer.address(at);
    let in_first = PAGE_BYTES - (first as usize & (PAGE_BYTES - 1));
    if bytes <= in_first {
        return Prp { first, second: 0 };
    }
    let page = |n: usize| buffer.address(at + in_first + n * PAGE_BYTES);
    let entries = list_entries(first, bytes);
    if entries == 0 {
        return Prp { first, second: page(0) };
    }
    let (memory, list_at) = list;
    let second = memory.address(list_at);
    let in_page = second as usize & (PAGE_BYTES - 1);
    assert!(in_page + entries * ENTRY_BYTES <= PAGE_BYTES, "a list lies in one page");
    (0..entries).for_each(|n| memory.write_u64(list_at + n * ENTRY_BYTES, page(n)));
    Prp { first, second }
}

#[cfg(test)]
mod tests {
    use super::super::dma::ordinary;
    use super::*;

    fn pages_of(prp: Prp, list: &Dma, bytes: usize) -> Vec<u64> {
        let mut pages = vec![prp.first];
        match list_entries(prp.first, bytes) {
            0 if prp.second != 0 => pages.push(prp.second),
            entries => pages.extend((0..entries).map(|n| list.read_u64(n * ENTRY_BYTES))),
        }
        pages
    }

    #[test]
    fn up_to_two_pages_need_no_list() {
        let (buffer, list) = (ordinary(4 * PAGE_BYTES, 0x10_0000), ordinary(PAGE_BYTES, 0x20_0000));
        let of = |at, bytes| describe(&buffer, (at, bytes), (&list, 0));
        assert_eq!(of(0, 512), Prp { first: 0x10_0000, second: 0 });
        assert_eq!(of(0, 4096), Prp { first: 0x10_0000, second: 0 });
        assert_eq!(of(0, 8192), Prp { first: 0x10_0000, second: 0x10_1000 });
        assert_eq!(of(3584, 512), Prp { first: 0x10_0e00, second: 0 });
        assert_eq!(of(3584, 1024), Prp { first: 0x10_0e00, second: 0x10_1000 });
        assert_eq!(of(3584, 512 + 4096), Prp { first: 0x10_0e00, second: 0x10_1000 });
    }

    #[test]
    fn from_three_pages_on_the_second_entry_is_a_list_of_all_but_the_first() {
        let (buffer, list) = (ordinary(TRANSFER_BYTES_MAX + PAGE_BYTES, 0x10_0000), ordinary(PAGE_BYTES, 0));
        for (at, bytes) in [(0, 12288), (512, 8192 + 4096), (0, 1 << 20), (0, TRANSFER_BYTES_MAX)] {
            let pages = pages_of(describe(&buffer, (at, bytes), (&list, 0)), &list, bytes);
            let last = (at + bytes - 1) / PAGE_BYTES;
            assert_eq!(pages.len(), last + 1, "{bytes} from {at}");
            assert!(pages[1..].iter().enumerate().all(|(n, page)| *page == buffer.address((n + 1) * 4096)));
        }
    }

    #[test]
    #[should_panic(expected = "a list lies in one page")]
    fn a_list_does_not_cross_a_pages_border() {
        let (buffer, list) = (ordinary(1 << 20, 0), ordinary(2 * PAGE_BYTES, 0x20_0000));
        describe(&buffer, (0, 1 << 20), (&list, PAGE_BYTES - 8));
    }
}
