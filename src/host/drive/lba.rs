//! The LBA formats of an `NVMe` drive's namespace: the sizes of logical blocks that it can be formatted with.

use std::fs::File;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::nvme::{self, IDENTITY_BYTES};
use crate::error::{Error, Result, describe};
use crate::printable::Shown as _;

/// A format that a namespace can have (NVM command set specification 1.0, figure 98).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LbaFormat {
    /// Its number.
    pub index: u8,
    /// Bytes of a logical block.
    pub block_bytes: u64,
    /// Bytes of metadata with each block.
    pub metadata_bytes: u16,
    /// Its performance relative to the others, by the drive: 0 is best, 3 degraded.
    pub performance: u8,
}

/// The formats that a namespace can have, and how it can be formatted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LbaFormats {
    /// The namespace's number.
    pub namespace: u32,
    /// The number of its current format.
    pub current: u8,
    /// All formats that it can have.
    pub formats: Vec<LbaFormat>,
    /// Whether the controller supports Format NVM.
    pub can_format: bool,
    /// Other namespaces that formatting this one formats too, as the controller formats all at once.
    pub formatted_along: Vec<u32>,
    /// Whether blocks have end-to-end protection that the drive checks.
    pub is_protected: bool,
}

/// Format NVM, of the optional admin commands (OACS, bytes 256 and 257 of Identify Controller): bit 1.
const OACS_FORMAT: u8 = 1 << 1;
/// Format NVM attributes (FNA, byte 524): bit 0, a format applies to all namespaces.
const FNA_ALL: u8 = 1;

impl LbaFormats {
    /// The formats of the namespace of a controller (`nvme0`) behind a block device; none if it does not
    /// report them, or this process may not ask (which requires root).
    pub(in crate::host) fn read(controller: &str, device: &Path) -> Option<Self> {
        let file = File::open(controller_node(controller)).ok()?;
        let namespace = nvme::name_space(&File::open(device).ok()?)?;
        let identity = nvme::identify_controller(&file)?;
        let mut formats = Self::decode(namespace, &nvme::identify_name_space(&file, namespace)?, &identity);
        if identity[524] & FNA_ALL != 0 {
            // Without the list, it is unknown what else would be formatted: then no format can be chosen.
            let active = nvme::active_name_spaces(&file)?;
            formats.formatted_along = active.into_iter().filter(|id| *id != namespace).collect();
        }
        Some(formats)
    }

    fn decode(namespace: u32, answer: &[u8; IDENTITY_BYTES], controller: &[u8; IDENTITY_BYTES]) -> Self {
        // NLBAF counts from zero.
        let count = answer[25].saturating_add(1).min(64);
        let format = |index: u8| {
            let at = &answer[128 + 4 * usize::from(index)..][..4];
            let shift = u32::from(at[2]);
            (9..=16).contains(&shift).then(|| LbaFormat {
                index,
                block_bytes: 1 << shift,
                metadata_bytes: u16::from_le_bytes([at[0], at[1]]),
                performance: at[3] & 3,
            })
        };
        Self {
            namespace,
            // FLBAS: bits 3:0 and, above them, 6:5.
            current: answer[26] & 0xf | answer[26] >> 1 & 0x30,
            formats: (0..count).filter_map(format).collect(),
            can_format: controller[256] & OACS_FORMAT != 0,
            formatted_along: Vec::new(),
            is_protected: answer[29] & 7 != 0,
        }
    }

    /// The format of that number.
    pub fn of(&self, index: u8) -> Option<LbaFormat> {
        self.formats.iter().copied().find(|format| format.index == index)
    }

    /// The fastest format with blocks of that size and without metadata.
    pub fn with_blocks_of(&self, block_bytes: u64) -> Option<LbaFormat> {
        let fits = |format: &&LbaFormat| format.block_bytes == block_bytes && format.metadata_bytes == 0;
        self.formats.iter().filter(fits).min_by_key(|format| format.performance).copied()
    }
}

fn controller_node(controller: &str) -> PathBuf {
    Path::new("/dev").join(controller)
}

/// Formats a namespace: everything on it is lost. Returns once the drive is done, and the kernel has read the
/// namespace anew. The caller must hold the guard's claim.
///
/// # Errors
/// With the drive's status, or the kernel's reason.
pub(crate) fn format_namespace(controller: &str, namespace: u32, index: u8) -> Result<()> {
    let node = controller_node(controller);
    let file = File::open(&node).map_err(|error| Error::os("cannot open", &node, error))?;
    match nvme::format(&file, namespace, index) {
        Ok(0) => {}
        Ok(status) => {
            let what = format!("{} would not format namespace {namespace}", node.shown());
            return Err(Error::failed(format!("{what}: NVMe status {status:#x}")));
        }
        Err(error) => {
            let what = format!("{} did not format namespace {namespace}", node.shown());
            return Err(Error::failed(format!("{what}: {}", describe(&error))));
        }
    }
    read_anew(controller)
}

/// Has the kernel read a controller's namespaces anew: its idea of a format may be outdated.
pub(crate) fn read_anew(controller: &str) -> Result<()> {
    let node = controller_node(controller);
    let failed = |error| Error::os("cannot have the kernel rescan", &node, error);
    nvme::rescan(&File::open(&node).map_err(failed)?).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_read_as_a_namespace_lists_them() {
        let (mut answer, mut controller) = ([0; IDENTITY_BYTES], [0; IDENTITY_BYTES]);
        // The formats of QEMU's drives, and an unused one.
        answer[25] = 4;
        answer[26] = 2;
        for (index, format) in
            [[0, 0, 9, 2], [8, 0, 9, 0], [0, 0, 12, 1], [0, 0, 12, 0], [0, 0, 0, 0]].iter().enumerate()
        {
            answer[128 + 4 * index..][..4].copy_from_slice(format);
        }
        controller[256] = 0b1010;
        let formats = LbaFormats::decode(7, &answer, &controller);
        assert_eq!((formats.namespace, formats.current, formats.formats.len()), (7, 2, 4));
        assert!(formats.can_format && !formats.is_protected && formats.formatted_along.is_empty());
        assert_eq!(formats.of(1).map(|format| format.metadata_bytes), Some(8));
        let best = |bytes| formats.with_blocks_of(bytes).map(|format| format.index);
        assert_eq!([best(512), best(4096), best(8192)], [Some(0), Some(3), None]);
        // FLBAS keeps its upper bits apart.
        answer[26] = 0b0100_0001;
        assert_eq!(LbaFormats::decode(7, &answer, &[0; IDENTITY_BYTES]).current, 33);
    }
}
