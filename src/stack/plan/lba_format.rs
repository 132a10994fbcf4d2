//! Formatting drives to another logical block size before anything is built on them.

use super::model::Plan;
use super::spec::StackSpec;
use super::step::Step;
use crate::error::{Error, Result};
use crate::host::{Device, Facts, LbaFormat, LbaFormats};
use crate::printable::Shown as _;
use crate::stack::devices::Drive;
use crate::units::format_size;

/// The steps that format the drives to the requested block size, if they have another.
///
/// # Errors
/// Input if a drive can't have it, with what it can have.
pub(super) fn format_steps(spec: &StackSpec, facts: &Facts, standing: Option<&Plan>) -> Result<Vec<Step>> {
    let Some(block_bytes) = spec.layers.lba_size.bytes() else { return Ok(Vec::new()) };
    let mut steps = Vec::new();
    for device in facts.find_all(&spec.target.devices)? {
        let formats = device.read_lba_formats().ok_or_else(|| not_asked(device))?;
        let drive = Drive::of(device);
        // The current stack is taken down first, and its format with it.
        let standing = standing.iter().flat_map(|plan| &plan.steps).find_map(|step| match step {
            Step::Format { drive: formatted, old, .. } if *formatted == drive => Some(*old),
            _ => None,
        });
        let old = match standing {
            Some(old) => old,
            None => formats.of(formats.current).ok_or_else(|| not_asked(device))?,
        };
        if old.block_bytes == block_bytes && old.metadata_bytes == 0 {
            continue;
        }
        let new = suited(device, &formats, old, block_bytes)?;
        steps.push(Step::Format { drive, namespace: formats.namespace, old, new });
    }
    Ok(steps)
}

fn not_asked(device: &Device) -> Error {
    let what = format!(
        "{} does not report LBA formats: the kernel does not drive it as an NVMe drive",
        device.path.shown()
    );
    Error::input(what).hint("set stack.lba_size to keep")
}

/// The format for a drive that has another block size.
fn suited(device: &Device, formats: &LbaFormats, old: LbaFormat, block_bytes: u64) -> Result<LbaFormat> {
    let size = format_size(block_bytes);
    let zoned = format!("/sys/block/{}/queue/zoned", device.name);
    let is_zoned = std::fs::read_to_string(zoned).is_ok_and(|text| text.trim() != "none");
    let why = if !formats.can_format {
        "its controller does not support Format NVM (OACS)".to_owned()
    } else if let Some(other) = formats.formatted_along.first() {
        format!("its controller formats all namespaces at once (FNA), and has namespace {other} too")
    } else if old.metadata_bytes > 0 || formats.is_protected {
        "its blocks have metadata or protection, which a format back would not restore".to_owned()
    } else if is_zoned {
        "it is zoned".to_owned()
    } else {
        match formats.with_blocks_of(block_bytes) {
            Some(format) => return Ok(format),
            None => format!("it has no such format without metadata: {}", listed(&formats.formats)),
        }
    };
    Err(Error::input(format!("{} can't be formatted to blocks of {size}: {why}", device.path.shown()))
        .hint("set stack.lba_size to keep, or choose another drive"))
}

/// `512B, 512B with 8 B of metadata, 4KiB`.
fn listed(formats: &[LbaFormat]) -> String {
    let text = |format: &LbaFormat| match format.metadata_bytes {
        0 => format_size(format.block_bytes),
        metadata => format!("{} with {metadata} B of metadata", format_size(format.block_bytes)),
    };
    formats.iter().map(text).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::testing::capable_host;

    fn formats() -> LbaFormats {
        let format = |index, block_bytes, metadata_bytes| LbaFormat {
            index,
            block_bytes,
            metadata_bytes,
            performance: 0,
        };
        LbaFormats {
            namespace: 1,
            current: 0,
            formats: vec![format(0, 512, 0), format(1, 4096, 8), format(2, 4096, 0)],
            can_format: true,
            formatted_along: Vec::new(),
            is_protected: false,
        }
    }

    #[test]
    fn what_can_not_be_formatted_back_or_alone_is_refused_with_the_reason() {
        let device = capable_host().devices.remove(0);
        let suited = |formats: &LbaFormats, bytes| {
            let old = formats.of(formats.current).unwrap();
            suited(&device, formats, old, bytes).map(|format| format.index).map_err(|error| error.what)
        };
        assert_eq!(suited(&formats(), 4096), Ok(2));
        let with = |change: &dyn Fn(&mut LbaFormats)| {
            let mut changed = formats();
            change(&mut changed);
            suited(&changed, 4096).unwrap_err()
        };
        assert!(with(&|formats| formats.can_format = false).contains("OACS"));
        assert!(with(&|formats| formats.formatted_along = vec![2]).contains("namespace 2 too"));
        assert!(with(&|formats| formats.is_protected = true).contains("metadata or protection"));
        assert!(with(&|formats| formats.current = 1).contains("metadata or protection"));
        let none = with(&|formats| formats.formats.truncate(2));
        assert!(none.ends_with("without metadata: 512B, 4KiB with 8 B of metadata"), "{none}");
    }
}
