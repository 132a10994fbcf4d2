//! A limit on the time that idle CPUs take to wake up.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use crate::error::{Error, Result};

const FILE: &str = "/dev/cpu_dma_latency";

/// A request to the kernel that is in force while the file is open: it ends with this process, however that
/// ends, so it is not journaled.
#[derive(Debug, Default)]
pub struct CpuLatency(Option<File>);

impl CpuLatency {
    /// Requests that limit, or withdraws the request.
    ///
    /// # Errors
    /// If the kernel refuses it; the earlier request then stays.
    pub fn set(&mut self, limit: Option<Duration>) -> Result<()> {
        let Some(limit) = limit else {
            self.0 = None;
            return Ok(());
        };
        let cannot = |error| Error::os("cannot write", Path::new(FILE), error);
        let limit_us = i32::try_from(limit.as_micros()).unwrap_or(i32::MAX);
        if self.0.is_none() {
            self.0 = Some(OpenOptions::new().write(true).open(FILE).map_err(cannot)?);
        }
        self.0.iter_mut().try_for_each(|file| file.write_all(&limit_us.to_ne_bytes())).map_err(cannot)
    }
}
