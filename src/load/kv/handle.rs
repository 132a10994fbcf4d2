//! The calls of a worker: gets, puts and range reads, each a single `RocksDB` call.

use std::sync::Arc;

use rocksdb::{DB, DBRawIterator, Error, ReadOptions, WriteOptions};

/// An open database, for one worker.
pub struct Handle {
    db: Arc<DB>,
    reads: ReadOptions,
    synced: WriteOptions,
    unsynced: WriteOptions,
}

impl Handle {
    pub(super) fn new(db: Arc<DB>) -> Self {
        let mut synced = WriteOptions::default();
        synced.set_sync(true);
        Self { db, reads: ReadOptions::default(), synced, unsynced: WriteOptions::default() }
    }

    /// Bytes of a key's value; `None` if the key is missing.
    ///
    /// # Errors
    /// An errno.
    #[inline]
    pub fn get(&self, key: &[u8]) -> Result<Option<usize>, i32> {
        match self.db.get_pinned_opt(key, &self.reads) {
            Ok(value) => Ok(value.map(|value| value.len())),
            Err(error) => Err(errno(&error)),
        }
    }

    /// Puts a pair; returns once it is in the log, and with `sync` once the log is on the medium.
    ///
    /// # Errors
    /// An errno.
    #[inline]
    pub fn put(&self, key: &[u8], value: &[u8], sync: bool) -> Result<(), i32> {
        let options = if sync { &self.synced } else { &self.unsynced };
        self.db.put_opt(key, value, options).map_err(|error| errno(&error))
    }

    /// Returns once the log is on the medium.
    ///
    /// # Errors
    /// An errno.
    pub fn sync(&self) -> Result<(), i32> {
        self.db.flush_wal(true).map_err(|error| errno(&error))
    }

    /// Reads ranges.
    pub fn scanner(&self) -> Scanner<'_> {
        Scanner { db: &self.db, begun: false, iterator: None }
    }
}

/// Reads ranges of one database.
pub struct Scanner<'a> {
    db: &'a DB,
    begun: bool,
    /// Where the last range ended, for continued ranges.
    iterator: Option<DBRawIterator<'a>>,
}

impl Scanner<'_> {
    /// Reads up to that many pairs from a key on; returns pairs and bytes.
    ///
    /// # Errors
    /// An errno.
    #[inline]
    pub fn range(&mut self, first: &[u8], pairs: u64) -> Result<(u64, u64), i32> {
        // A new iterator each time, as an application would: it sees the current content.
        let mut iterator = self.db.raw_iterator_opt(ReadOptions::default());
        iterator.seek(first);
        read(&mut iterator, pairs)
    }

    /// The same, but from where the last range ended: starts at `begin`, and wraps to the first key after the
    /// last pair.
    ///
    /// # Errors
    /// An errno.
    #[inline]
    pub fn go_on(&mut self, begin: &[u8], pairs: u64) -> Result<(u64, u64), i32> {
        let mut iterator = if let Some(iterator) = self.iterator.take() {
            iterator
        } else {
            let mut iterator = self.db.raw_iterator_opt(ReadOptions::default());
            if std::mem::replace(&mut self.begun, true) {
                iterator.seek_to_first();
            } else {
                iterator.seek(begin);
            }
            iterator
        };
        let outcome = read(&mut iterator, pairs);
        if iterator.valid() {
            self.iterator = Some(iterator);
        }
        outcome
    }
}

#[inline]
fn read(iterator: &mut DBRawIterator<'_>, pairs: u64) -> Result<(u64, u64), i32> {
    let (mut count, mut bytes) = (0, 0);
    while count < pairs {
        let Some((key, value)) = iterator.item() else { break };
        bytes += (key.len() + value.len()) as u64;
        count += 1;
        iterator.next();
    }
    if iterator.valid() {
        return Ok((count, bytes));
    }
    iterator.status().map(|()| (count, bytes)).map_err(|error| errno(&error))
}

/// The errno behind `RocksDB`'s message, which has the system's text but not the number.
#[cold]
pub(super) fn errno(error: &Error) -> i32 {
    const WORDS: [(&str, i32); 5] = [
        ("No space left on device", libc::ENOSPC),
        ("Disk quota exceeded", libc::EDQUOT),
        ("Too many open files", libc::EMFILE),
        ("Read-only file system", libc::EROFS),
        ("Corruption", libc::EBADMSG),
    ];
    let text: &str = error.as_ref();
    WORDS.iter().find(|(words, _)| text.contains(words)).map_or(libc::EIO, |(_, errno)| *errno)
}

/// A read error, with `RocksDB`'s message.
pub(super) fn unreadable(error: Error) -> crate::error::Error {
    crate::error::Error::failed(format!("RocksDB can't read the pairs back: {}", error.into_string()))
}
