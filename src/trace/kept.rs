//! A trace in a folder, and beside it the facts about it.

use std::io::{BufWriter, Write as _};
use std::path::Path;

use rustix::fs::OFlags;
use serde_json::{Value, json};

use super::forms::{WrittenForm, write};
use super::watch::Traced;
use super::watched::Watched;
use crate::error::{Error, Result};
use crate::held_folder::HeldFolder;
use crate::json;
use crate::regular_file;
use crate::units::grouped;

/// Enough for a few drives with their names.
const FACTS_BYTES_MAX: u64 = 1 << 16;

/// Writes a trace to two new files with these names: its events, and facts about it.
///
/// # Errors
/// If they can't be written.
pub fn keep(
    traced: &Traced,
    drives: &[Watched],
    folder: &HeldFolder,
    [events, facts]: [&str; 2],
) -> Result<()> {
    let mut file = BufWriter::new(folder.create(events, OFlags::empty())?);
    let written = write(&traced.trace, WrittenForm::Blktrace, &mut file).and_then(|()| file.flush());
    written.map_err(|error| Error::os("cannot write", &folder.path().join(events), error))?;
    let drives: Vec<Value> = drives.iter().map(Watched::to_json).collect();
    let about = json!({
        "drives": drives,
        "source": if traced.is_own { "workers" } else { "block layer" },
        "ios": traced.trace.ios.len(),
        "completed": traced.trace.completed(),
        "lost": traced.trace.lost.all,
        "lost_completions": traced.trace.lost.completions,
        "lost_for_lack_of_room": traced.overrun,
        "unpaired": traced.trace.unpaired,
        "requeued": traced.trace.requeued,
        "is_cut": traced.is_cut,
        "cpu_ns_per_io": traced.cpu_ns_per_io(),
    });
    folder.replace(facts, &json::lines(&about)?)
}

/// The traced drives, and how many I/Os were traced and how many of them completed, from a trace's facts; empty if
/// these are gone or unusable.
pub fn facts_by(facts: &Path) -> (Vec<Watched>, [Option<u64>; 2]) {
    let bytes = regular_file::read(facts, FACTS_BYTES_MAX).unwrap_or_default();
    let facts: Value = json::read_of_others(&bytes).unwrap_or_default();
    let drives = facts["drives"].as_array().into_iter().flatten();
    let counts = ["ios", "completed"].map(|key| facts[key].as_u64());
    (drives.filter_map(Watched::from_json).collect(), counts)
}

impl Traced {
    /// What was traced, and what that cost.
    pub fn in_words(&self) -> String {
        let (ios, lost) = (grouped(self.trace.ios.len() as u64), self.trace.lost.in_words());
        let cost = format!("{:.2} µs of CPU time for each", self.cpu_ns_per_io() / 1e3);
        let kept_back = match self.trace.lost.all.saturating_sub(self.overrun) {
            0 => String::new(),
            events => format!(
                " ({} of them kept back by the kernel: `stacktune help contract` says what helps)",
                grouped(events)
            ),
        };
        let cut =
            if self.is_cut { "; it stopped by itself at the maximum length that can be read" } else { "" };
        let what = if self.is_own { "I/Os as the workers submitted them" } else { "I/Os" };
        format!("traced {ios} {what}, {lost}{kept_back}, {cost}{cut}")
    }
}
