//! Where the load's I/O goes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::host::Levels;
use crate::load::volume::{Extent, Region, Volume};
use crate::meter::Member;
use crate::meter::devices::layers;
use crate::units::MIB;

/// The regions and members of a target, and things to know about it.
pub struct Layout {
    /// The region that scan, point and background share.
    pub data: Arc<Region>,
    /// The WAL's region.
    pub wal: Arc<Region>,
    /// The members as the meters know them.
    pub members: Vec<Member>,
    /// The block devices below the members, from before any left the kernel.
    pub levels: Levels,
    /// Things to know about it, as sentences.
    pub notes: Vec<String>,
}

impl Layout {
    /// The layout of an open volume.
    pub fn of_volume(volume: &Volume) -> Self {
        let members = volume.members.iter().map(|member| Member {
            name: member.name.clone(),
            device: member.device.then(|| device_number(&member.path)).flatten(),
            path: Some(member.path.clone()),
        });
        let members: Vec<Member> = members.collect();
        Self {
            data: Arc::new(volume.data.clone()),
            wal: Arc::new(volume.wal.clone()),
            levels: layers::levels(&members),
            members,
            notes: [volume.notes.clone(), emulated(volume.facts.emulated.as_ref())].concat(),
        }
    }

    /// The layout of a data set of pairs: the region stands for its database's folder.
    pub fn of_pairs(region: Region, path: PathBuf, notes: Vec<String>) -> Self {
        let region = Arc::new(region);
        let members = vec![Member { name: "rocksdb".into(), device: None, path: Some(path) }];
        Self { data: region.clone(), wal: region, levels: layers::levels(&members), members, notes }
    }

    /// A layout without storage, as large as the files would be.
    pub fn imagined(count: u32, size_bytes: u64, is_simulated: bool) -> Self {
        let region = |id, offset_bytes, extent_bytes: u64| {
            let extent = |member| Extent { path: PathBuf::new(), identity: None, member, offset_bytes };
            Arc::new(Region { id, set: 0, extents: (0..count).map(extent).collect(), extent_bytes })
        };
        let figures = if is_simulated { "of simulated devices" } else { "of the generator alone" };
        Self {
            data: region(Region::DATA, 0, size_bytes),
            wal: region(Region::WAL, size_bytes, (size_bytes / 4).next_multiple_of(MIB)),
            members: (0..count)
                .map(|i| Member { name: format!("imagined-{i}"), device: None, path: None })
                .collect(),
            levels: Levels::default(),
            notes: vec![format!("nothing touches storage: the figures are {figures}")],
        }
    }

    /// The places of data and WAL: files, devices, or folders of files.
    pub fn paths(&self) -> Vec<PathBuf> {
        [paths_of(&self.data), paths_of(&self.wal)].concat()
    }

    /// Bytes of data and WAL.
    pub fn bytes(&self) -> u64 {
        self.data.bytes() + self.wal.bytes()
    }
}

/// The places of a region.
pub fn paths_of(region: &Region) -> Vec<PathBuf> {
    region.extents.iter().map(|extent| extent.path.clone()).collect()
}

/// The note that figures from emulated drives need.
pub fn emulated(model: Option<&String>) -> Vec<String> {
    let note = |model| format!("emulated drives ({model}): the figures say nothing about real ones");
    model.map(note).into_iter().collect()
}

fn device_number(path: &Path) -> Option<(u32, u32)> {
    use std::os::unix::fs::MetadataExt;
    let number = std::fs::metadata(path).ok()?.rdev();
    Some((rustix::fs::major(number), rustix::fs::minor(number)))
}
