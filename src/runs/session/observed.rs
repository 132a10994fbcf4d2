//! The I/Os of a run's workers, one by one, for a trace where the kernel does not see them.

use std::path::Path;
use std::sync::Arc;

use super::run::Session;
use crate::class::Class;
use crate::error::{Error, Result};
use crate::load::workers::observer::Observer;

/// A file or device that the workers use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedPlace {
    /// Its name.
    pub name: String,
    /// Where data and WAL end on it.
    pub bytes: u64,
}

/// The I/Os of all workers from the start of the load on.
#[derive(Debug)]
pub struct Observed {
    /// Takes them.
    pub observer: Arc<Observer>,
    /// The files or devices.
    pub places: Vec<ObservedPlace>,
    /// For each region, by its id: the places of its files, by their index.
    pub files: [Vec<usize>; 2],
    /// The workers' clock when this began.
    pub start_ns: u64,
}

impl Drop for Observed {
    fn drop(&mut self) {
        // No worker on a virtual clock may wait for whoever took them, however that ended.
        self.observer.end();
    }
}

impl Session {
    /// Whether the I/O of some class reaches drives past the kernel's block layer.
    pub fn is_past_block_layer(&self) -> bool {
        self.resolved.settings.past_block_layer().is_some()
    }

    /// Observes the I/Os of all workers, which must not have been started yet.
    ///
    /// # Errors
    /// Input if no worker of this process does I/O.
    pub fn observe(&mut self) -> Result<Observed> {
        let settings = &self.resolved.settings;
        let none = |why: &str| Err(Error::input(format!("--trace: {why}")));
        let mut interfaces = Class::ALL.into_iter().map(|class| settings.interface_of(class));
        if !interfaces.any(|of| of.touches_storage() || of.is_simulated()) {
            return none("no class does I/O");
        }
        let observer = if settings.program.is_some() { None } else { self.classes.observe() };
        let Some(observer) = observer else {
            return none(
                "what does the I/O here can't be observed, and the kernel does not see it, or can't be asked",
            );
        };
        let (places, files) = self.places();
        Ok(Observed { observer, places, files, start_ns: self.classes.now_ns() })
    }

    /// The files and devices of data and WAL, which may share them.
    fn places(&self) -> (Vec<ObservedPlace>, [Vec<usize>; 2]) {
        let layout = self.target.layout();
        let mut places: Vec<ObservedPlace> = Vec::new();
        // Imagined files have no path, and differ by their member.
        let mut keys: Vec<(&Path, u32)> = Vec::new();
        let mut files = [Vec::new(), Vec::new()];
        for (region, files) in [&layout.data, &layout.wal].into_iter().zip(&mut files) {
            for extent in &region.extents {
                let key = (extent.path.as_path(), extent.member);
                let at = keys.iter().position(|known| *known == key).unwrap_or_else(|| {
                    let name = extent.path.file_name().map(|name| name.to_string_lossy().into_owned());
                    let of_member = || layout.members.get(extent.member as usize).map(|of| of.name.clone());
                    places
                        .push(ObservedPlace { name: name.or_else(of_member).unwrap_or_default(), bytes: 0 });
                    keys.push(key);
                    keys.len() - 1
                });
                places[at].bytes = places[at].bytes.max(extent.offset_bytes + region.extent_bytes);
                files.push(at);
            }
        }
        (places, files)
    }
}
