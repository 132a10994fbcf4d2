//! What the demo does where a system forbids something: fall back, and say so.
//!
//! Outside the demo nothing falls back: it is refused with the reason.

use crate::error::Result;
use crate::load::volume::affordable_size;
use crate::settings::Settings;
use crate::settings::knobs::{self, Ground, Value};
use crate::settings::profile::store::expand_home;

/// What to try instead, in this order.
const INSTEAD: &[(&str, &[&str])] = &[
    ("io.interface", &["libaio", "sync"]),
    ("io.registered_buffers", &["off"]),
    ("io.buffering", &["cached"]),
    ("io.page_size", &["16KiB", "64KiB"]),
];

/// Replaces what this host or target can't do by what it can, as far as there is something.
pub fn fall_back(settings: &mut Settings, ground: Ground, notes: &mut Vec<String>) {
    for (path, candidates) in INSTEAD {
        let Some(knob) = knobs::find(path) else { continue };
        let Some(reason) = knob.unavailable(&knob.get(settings), settings, ground) else { continue };
        let from = knob.get(settings);
        let parse = |text: &&str| knob.parse(text).ok();
        let works = |value: &Value| knob.unavailable(value, settings, ground).is_none();
        if let Some(value) = candidates.iter().filter_map(parse).find(works) {
            notes.push(format!("{path} is {value} instead of {from}: {reason}"));
            knob.set(settings, value);
        }
    }
}

/// Makes the files smaller where the disk is short of four times what they take.
pub fn files(settings: &mut Settings, notes: &mut Vec<String>) -> Result<()> {
    if !settings.target.devices.is_empty() || !settings.touches_storage() {
        return Ok(());
    }
    let dir = expand_home(&settings.target.dir)?;
    let (size_bytes, note) = affordable_size(&dir, settings.target.count, settings.target.size_bytes)?;
    settings.target.size_bytes = size_bytes;
    notes.extend(note);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::testing::capable_host;

    /// The notes and the interface under such a limit of locked memory.
    fn limited(limit_bytes: u64, kernel: &str) -> (Vec<String>, String, bool) {
        let mut facts = capable_host();
        (facts.memlock_bytes, facts.kernel) = (Some(limit_bytes), kernel.into());
        let (mut settings, mut notes) = (Settings::default(), Vec::new());
        fall_back(&mut settings, Ground { facts: &facts, target: None }, &mut notes);
        let interface = knobs::find("io.interface").unwrap().get(&settings).to_string();
        (notes, interface, settings.io.registered_buffers)
    }

    #[test]
    fn too_little_locked_memory_takes_the_registered_buffers_then_the_rings() {
        let (notes, interface, registered) = limited(8 << 20, "6.18.0");
        assert_eq!((notes.len(), interface.as_str(), registered), (0, "io_uring", true), "{notes:?}");
        let (notes, interface, registered) = limited(64 << 10, "6.18.0");
        assert_eq!((notes.len(), interface.as_str(), registered), (1, "io_uring", false), "{notes:?}");
        let (notes, interface, _) = limited(16 << 10, "6.18.0");
        assert_eq!(interface, "libaio", "{notes:?}");
        assert!(notes[0].contains("rings take 40KiB and RLIMIT_MEMLOCK is 16KiB"), "{notes:?}");
        assert_eq!(limited(16 << 10, "6.1.0").1, "io_uring", "this kernel does not count rings");
    }
}
