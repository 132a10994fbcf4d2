//! The layers of the stack, and which of them a knob belongs to.

use super::knob::Knob;

/// A layer of the storage stack, from the application down to the drives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum StackLayer {
    /// The load: its classes, their rates, the run.
    #[default]
    Application,
    /// How an I/O enters the kernel or bypasses it; the storage engine, if one does the I/O.
    Interface,
    /// The page cache.
    PageCache,
    /// The file system.
    FileSystem,
    /// The array that joins drives.
    Raid,
    /// Drives, or the files in their place.
    Drives,
}

impl StackLayer {
    /// All of them, from top to bottom.
    pub const ALL: [Self; 6] =
        [Self::Application, Self::Interface, Self::PageCache, Self::FileSystem, Self::Raid, Self::Drives];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Application => "application",
            Self::Interface => "interface",
            Self::PageCache => "page cache",
            Self::FileSystem => "file system",
            Self::Raid => "RAID",
            Self::Drives => "drives",
        }
    }

    /// The layer this many below, or above if negative; at most the last one in that direction.
    pub fn below(self, by: isize) -> Self {
        let at = (self as usize).saturating_add_signed(by).min(Self::ALL.len() - 1);
        Self::ALL[at]
    }
}

impl Knob {
    /// The layer that it belongs to.
    pub fn layer(&self) -> StackLayer {
        let (table, key) = self.path.split_once('.').unwrap_or((&self.path, ""));
        match (table, key) {
            ("io", "buffering") | ("run", "cache_limit") | ("rocksdb", "direct_reads" | "direct_flush") => {
                StackLayer::PageCache
            }
            ("io" | "rocksdb", _) => StackLayer::Interface,
            ("md", _) | ("stack", "raid" | "chunk" | "assume_clean" | "bitmap") => StackLayer::Raid,
            ("stack", "filesystem" | "copy_on_write" | "mkfs_options" | "mount_options" | "data" | "wal") => {
                StackLayer::FileSystem
            }
            ("stack" | "target" | "queue" | "sim", _) => StackLayer::Drives,
            _ => StackLayer::Application,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{all, find};
    use super::*;

    #[test]
    fn every_layer_has_knobs_and_each_knob_its_layer() {
        for layer in StackLayer::ALL {
            assert!(all().iter().any(|knob| knob.layer() == layer), "{}", layer.name());
        }
        let layer = |path: &str| find(path).unwrap().layer();
        assert_eq!(layer("io.interface"), StackLayer::Interface);
        assert_eq!(layer("io.buffering"), StackLayer::PageCache);
        assert_eq!(layer("stack.filesystem"), StackLayer::FileSystem);
        assert_eq!(layer("md.array"), StackLayer::Raid);
        assert_eq!(layer("target.files.dir"), StackLayer::Drives);
        assert_eq!(layer("scan.depth"), StackLayer::Application);
        assert_eq!(StackLayer::Drives.below(1), StackLayer::Drives);
        assert_eq!(StackLayer::Application.below(-1), StackLayer::Application);
    }
}
