//! Commits: which writes wait for which flush (Haas et al. 2020, sections 3.2 and 4.2).
//!
//! A commit runs from the start of a write to the end of the flush that covers it. The flush waits for
//! outstanding writes, then syncs in parallel all files written since the last flush.

/// A write that is complete but not yet durable.
#[derive(Debug, Clone, Copy)]
pub struct Written {
    /// When it was handed to the kernel.
    pub start_ns: u64,
    /// When it was intended, for a class with a rate.
    pub intended_ns: Option<u64>,
}

/// The state of commits with separate flushes.
#[derive(Debug)]
pub struct Commits {
    every: u32,
    /// Writes submitted since the last flush.
    issued: u32,
    written: Vec<Written>,
    dirty: Vec<bool>,
    flush: Option<Flush>,
}

#[derive(Debug)]
struct Flush {
    started_ns: u64,
    handed_over: bool,
    left: u32,
    failed: bool,
}

/// A flush that ended.
#[derive(Debug, PartialEq, Eq)]
pub struct Flushed {
    /// When it was handed to the kernel.
    pub started_ns: u64,
    /// Whether every file was synced.
    pub durable: bool,
}

impl Commits {
    /// One flush per `every` writes, over `files` files.
    pub fn new(every: u64, files: usize) -> Self {
        let every = every.max(1) as u32;
        Self {
            every,
            issued: 0,
            written: Vec::with_capacity(every as usize),
            dirty: vec![false; files],
            flush: None,
        }
    }

    /// How many more writes may be submitted before a flush.
    pub fn room(&self) -> u32 {
        if self.flush.is_some() { 0 } else { self.every - self.issued }
    }

    /// Records that a write was submitted.
    pub fn issued(&mut self) {
        self.issued += 1;
    }

    /// Records that a write to `file` has completed.
    pub fn written(&mut self, file: u32, write: Written) {
        self.dirty[file as usize] = true;
        self.written.push(write);
    }

    /// How many completed writes are waiting for a flush.
    pub fn waiting(&self) -> usize {
        self.written.len()
    }

    /// Whether to flush once nothing is outstanding. At the end of the run, a single write is enough.
    pub fn is_due(&self, ending: bool) -> bool {
        self.flush.is_none() && self.issued > 0 && (ending || self.issued == self.every)
    }

    /// Begins a flush and returns the files to sync; none, and nothing to wait for, if all writes failed.
    pub fn begin(&mut self, now_ns: u64) -> impl Iterator<Item = u32> {
        let left = self.dirty.iter().filter(|dirty| **dirty).count() as u32;
        self.issued = 0;
        self.flush =
            (left > 0).then_some(Flush { started_ns: now_ns, handed_over: false, left, failed: false });
        self.dirty
            .iter_mut()
            .enumerate()
            .filter_map(|(file, dirty)| std::mem::take(dirty).then_some(file as u32))
    }

    /// Marks the flush as submitted. A worker that wakes before it ends calls this again, which has no
    /// effect.
    pub fn handed_over(&mut self, now_ns: u64) {
        if let Some(flush) = self.flush.as_mut().filter(|flush| !flush.handed_over) {
            flush.started_ns = now_ns;
            flush.handed_over = true;
        }
    }

    /// When the flush that is under way was submitted.
    pub fn flush_started_ns(&self) -> Option<u64> {
        self.flush.as_ref().map(|flush| flush.started_ns)
    }

    /// How many files are still being synced.
    pub fn flushing(&self) -> u32 {
        self.flush.as_ref().map_or(0, |flush| flush.left)
    }

    /// Records that a file's sync ended. Returns the flush if it was the last one.
    pub fn synced(&mut self, durable: bool) -> Option<Flushed> {
        let flush = self.flush.as_mut()?;
        flush.failed |= !durable;
        flush.left -= 1;
        if flush.left > 0 {
            return None;
        }
        let ended = Flushed { started_ns: flush.started_ns, durable: !flush.failed };
        self.flush = None;
        Some(ended)
    }

    /// Takes the writes that the flush covered.
    pub fn take_written(&mut self) -> impl Iterator<Item = Written> {
        self.written.drain(..)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(commits: &mut Commits, file: u32, start_ns: u64) {
        commits.issued();
        commits.written(file, Written { start_ns, intended_ns: None });
    }

    #[test]
    fn a_flush_covers_only_the_files_written_since_the_last() {
        let mut commits = Commits::new(2, 4);
        write(&mut commits, 1, 10);
        assert!(!commits.is_due(false));
        assert!(commits.is_due(true), "at the end whatever was written is made durable");
        write(&mut commits, 3, 20);
        assert!(commits.is_due(false));
        assert_eq!(commits.begin(30).collect::<Vec<_>>(), [1, 3]);
        assert_eq!(commits.room(), 0);
        assert_eq!(commits.synced(true), None);
        assert_eq!(commits.synced(true), Some(Flushed { started_ns: 30, durable: true }));
        assert_eq!(commits.take_written().count(), 2);
        assert_eq!(commits.room(), 2);
    }

    #[test]
    fn a_flush_starts_when_it_is_first_handed_over() {
        let mut commits = Commits::new(1, 1);
        write(&mut commits, 0, 1);
        assert_eq!(commits.begin(3).count(), 1);
        commits.handed_over(5);
        commits.handed_over(900);
        assert_eq!(commits.synced(true), Some(Flushed { started_ns: 5, durable: true }));
    }

    #[test]
    fn a_failed_sync_of_one_file_leaves_the_commit_not_durable() {
        let mut commits = Commits::new(2, 2);
        write(&mut commits, 0, 1);
        write(&mut commits, 1, 2);
        assert_eq!(commits.begin(3).count(), 2);
        assert_eq!(commits.synced(false), None);
        assert!(!commits.synced(true).unwrap().durable);
    }

    #[test]
    fn writes_that_all_failed_need_no_flush() {
        let mut commits = Commits::new(1, 2);
        commits.issued();
        assert!(commits.is_due(false));
        assert_eq!(commits.begin(3).count(), 0);
        assert_eq!((commits.flushing(), commits.room()), (0, 1));
    }
}
