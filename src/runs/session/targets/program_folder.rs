//! A folder for a program's files.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::layout::{Layout, emulated};
use crate::host::{TargetFacts, emulated_drive};
use crate::load::volume::{Region, examine_folder};
use crate::meter::Member;
use crate::meter::devices::layers;

/// A folder for a program's files, and one for its log if that is separate.
pub struct ProgramFolder {
    pub(super) layout: Layout,
    /// What its file system can do; none if that can't be tried there.
    pub(super) facts: Option<TargetFacts>,
}

impl ProgramFolder {
    /// The folder, which exists.
    pub(super) fn of(dir: PathBuf, wal: Option<PathBuf>) -> Self {
        // A log's folder may not exist yet: then the drive of the one above it counts.
        let exists = |wal: &Path| wal.ancestors().find(|dir| dir.is_dir()).map(Path::to_owned);
        let log_drive =
            wal.as_deref().and_then(exists).and_then(|dir| emulated_drive(&File::open(dir).ok()?));
        let facts = examine_folder(&dir).ok();
        let facts = facts.map(|facts| TargetFacts { emulated: facts.emulated.or(log_drive), ..facts });
        let unknown = || emulated_drive(&File::open(&dir).ok()?);
        let model = facts.as_ref().map_or_else(unknown, |facts| facts.emulated.clone());
        let notes = emulated(model.as_ref());
        Self { layout: layout(dir, wal, notes), facts }
    }
}

fn layout(dir: PathBuf, wal: Option<PathBuf>, notes: Vec<String>) -> Layout {
    let region = |id| Arc::new(Region { id, set: 0, extents: Vec::new(), extent_bytes: 0 });
    let member = |name: &str, path| Member { name: name.into(), device: None, path: Some(path) };
    let wal = wal.map(|wal| member("wal", wal));
    let members: Vec<Member> = [member("program", dir)].into_iter().chain(wal).collect();
    let levels = layers::levels(&members);
    Layout { data: region(Region::DATA), wal: region(Region::WAL), members, levels, notes }
}
