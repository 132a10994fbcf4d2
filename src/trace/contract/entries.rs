//! Locality under another policy: a mapping cache of single entries, as in the authors' simulator.
//!
//! A page that misses brings in all entries of its translation page: its own as the newest, the others as the
//! oldest, of which those of the highest pages go first. Room is made beforehand by evicting the oldest
//! entries of other translation pages. Changed entries are treated like those that were only read.

use super::space::Space;
use crate::trace::io::TracedIo;

/// Entries that the list can hold, at 8 B each, and pages that are looked up: more would take too long.
const ENTRIES_MAX: usize = 1 << 24;
const LOOKUPS_MAX: u64 = 1 << 24;
/// An entry that is not in the cache.
const NONE: u32 = u32::MAX;

/// Misses of a cache of `entries`, or at least one translation page; `None` if there is too much to look up.
pub fn misses(ios: &[TracedIo], space: &Space, entries: u64) -> Option<u64> {
    let lookups: u64 = ios.iter().map(|io| space.pages(io)).map(|(first, behind)| behind - first).sum();
    let all = space.touched_len * space.translated as usize;
    if all > ENTRIES_MAX || lookups > LOOKUPS_MAX {
        return None;
    }
    let mut cache = Cache::new(all, space.translated as usize, entries);
    let mut misses = 0;
    for io in ios {
        space.parts(io, &mut |part| {
            let first = u64::from(part.touched) * space.translated + part.first_page % space.translated;
            for entry in first..first + part.pages {
                misses += u64::from(!cache.access(entry as usize));
            }
        });
    }
    Some(misses)
}

/// Entries from newest to oldest, in a ring that begins and ends at its root.
struct Cache {
    translated: usize,
    capacity: usize,
    len: usize,
    /// For each entry, the next older and the next newer one; the root follows them all.
    links: Vec<[u32; 2]>,
}

const OLDER: usize = 0;
const NEWER: usize = 1;

impl Cache {
    fn new(all: usize, translated: usize, entries: u64) -> Self {
        let capacity = usize::try_from(entries).unwrap_or(usize::MAX).max(translated);
        let mut links = vec![[NONE; 2]; all + 1];
        links[all] = [all as u32; 2];
        Self { translated, capacity, len: 0, links }
    }

    fn root(&self) -> usize {
        self.links.len() - 1
    }

    fn holds(&self, entry: usize) -> bool {
        self.links[entry][OLDER] != NONE
    }

    /// Looks up an entry; returns whether it was there.
    fn access(&mut self, entry: usize) -> bool {
        let was_there = self.holds(entry);
        if was_there {
            self.take_out(entry);
        } else {
            self.make_room(entry);
        }
        self.put_in(entry, self.root());
        if !was_there {
            let first = entry / self.translated * self.translated;
            for other in first..first + self.translated {
                if !self.holds(other) {
                    self.put_in(other, self.links[self.root()][NEWER] as usize);
                }
            }
        }
        was_there
    }

    /// Makes room for the missing entries of the entry's translation page.
    fn make_room(&mut self, entry: usize) {
        let page = entry / self.translated;
        let first = page * self.translated;
        let missing = (first..first + self.translated).filter(|other| !self.holds(*other)).count();
        let mut at = self.links[self.root()][NEWER] as usize;
        while self.len + missing > self.capacity && at != self.root() {
            let newer = self.links[at][NEWER] as usize;
            if at / self.translated != page {
                self.take_out(at);
            }
            at = newer;
        }
    }

    /// Inserts one after another, as the next older one.
    fn put_in(&mut self, entry: usize, behind: usize) {
        let older = self.links[behind][OLDER];
        self.links[entry] = [older, behind as u32];
        self.links[behind][OLDER] = entry as u32;
        self.links[older as usize][NEWER] = entry as u32;
        self.len += 1;
    }

    fn take_out(&mut self, entry: usize) {
        let [older, newer] = std::mem::replace(&mut self.links[entry], [NONE; 2]);
        self.links[older as usize][NEWER] = newer;
        self.links[newer as usize][OLDER] = older;
        self.len -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a plain list that is searched would do.
    fn naive(accesses: &[usize], translated: usize, capacity: usize) -> Vec<bool> {
        let mut list: Vec<usize> = Vec::new(); // from the oldest to the newest
        let mut access = |entry: usize| {
            if let Some(at) = list.iter().position(|one| *one == entry) {
                list.remove(at);
                list.push(entry);
                return true;
            }
            let page = entry / translated;
            let own = page * translated..(page + 1) * translated;
            let missing: Vec<usize> = own.filter(|one| !list.contains(one)).collect();
            let mut excess = (list.len() + missing.len()).saturating_sub(capacity);
            list.retain(|one| {
                let goes = excess > 0 && one / translated != page;
                excess -= usize::from(goes);
                !goes
            });
            list.push(entry);
            missing.into_iter().filter(|one| *one != entry).for_each(|one| list.insert(0, one));
            false
        };
        accesses.iter().map(|entry| access(*entry)).collect()
    }

    #[test]
    fn it_does_what_a_list_does_that_is_searched() {
        let mut state = 5_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize
        };
        for capacity in [8, 11, 24, 40] {
            let accesses: Vec<usize> = (0..2000).map(|_| next() % 40).collect();
            let mut cache = Cache::new(40, 8, capacity as u64);
            let found: Vec<bool> = accesses.iter().map(|entry| cache.access(*entry)).collect();
            assert_eq!(found, naive(&accesses, 8, capacity), "{capacity}");
            assert!(cache.len <= capacity);
        }
    }
}
