//! The limit of writes: `run.max_writes`, over all runs of this process.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};
use crate::units::{approx_size, format_size};

/// The limit of writes, and the writes so far.
#[derive(Debug, Clone)]
pub(in crate::runs::session) struct WriteBudget {
    /// `run.max_writes`.
    pub limit_bytes: Option<u64>,
    /// Bytes that this process has written, over all its sessions.
    written_bytes: Arc<AtomicU64>,
}

impl WriteBudget {
    /// A limit on the process's writes, with the count of its writes so far.
    pub fn new(limit_bytes: Option<u64>, written_bytes: Arc<AtomicU64>) -> Self {
        Self { limit_bytes, written_bytes }
    }

    /// For a process that has written nothing.
    pub fn untouched(limit_bytes: Option<u64>) -> Self {
        Self::new(limit_bytes, Arc::default())
    }

    /// The same count with another limit.
    pub fn with_limit(&self, limit_bytes: Option<u64>) -> Self {
        Self::new(limit_bytes, self.written_bytes.clone())
    }

    /// Bytes written so far.
    pub fn written_bytes(&self) -> u64 {
        self.written_bytes.load(Ordering::Relaxed)
    }

    /// Counts bytes as written.
    pub fn add(&self, bytes: u64) {
        self.written_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// The counter itself, for writers.
    pub fn count(&self) -> Arc<AtomicU64> {
        self.written_bytes.clone()
    }

    /// Bytes that may still be written.
    pub fn left_bytes(&self) -> u64 {
        self.limit_bytes.unwrap_or(u64::MAX).saturating_sub(self.written_bytes())
    }

    /// Refuses to fill more than is left.
    ///
    /// # Errors
    /// Input, with the limit.
    pub fn refuse(&self, bytes: u64) -> Result<()> {
        let (limit, written_bytes) = match self.limit_bytes {
            Some(limit) if bytes > 0 && bytes > self.left_bytes() => (limit, self.written_bytes()),
            _ => return Ok(()),
        };
        let (needs, limit) = (approx_size(bytes), format_size(limit));
        let written = match written_bytes {
            0 => String::new(),
            bytes => format!(", with {} already written", approx_size(bytes)),
        };
        let what = format!("filling the target takes {needs}, but run.max_writes is {limit}{written}");
        Err(Error::input(what).hint("use a smaller target, or raise the limit: --set run.max_writes=…"))
    }
}
