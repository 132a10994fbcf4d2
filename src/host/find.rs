//! Finding the device that a name means.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use super::{Device, Facts, number_text};
use crate::error::{Error, Result};
use crate::printable::{self, Shown as _};

impl Facts {
    /// The device that `named` means: a kernel name, a node, any link to one, or a partition, which stands
    /// for the device it is on.
    pub fn find(&self, named: &str) -> Result<&Device> {
        find(&self.devices, named)
    }

    /// The partition that `named` means, by its kernel name; none if it is a whole device.
    pub fn partition_named(&self, named: &str) -> Option<String> {
        let device = self.find(named).ok()?;
        let parts: Vec<String> = names_of(named);
        parts.into_iter().find(|name| device.partitions.contains(name)).or_else(|| {
            // The node exists, but is not the device's own.
            let number = node_number(named)?;
            (number != device.number).then(|| last_name(named))
        })
    }

    /// Whether two names mean the same device.
    pub fn same_device(&self, one: &str, other: &str) -> Result<bool> {
        Ok(self.find(one)?.name == self.find(other)?.name)
    }

    /// The devices that the names mean, in that order; a device named twice is refused (2).
    pub fn find_all(&self, names: &[String]) -> Result<Vec<&Device>> {
        let mut found: Vec<&Device> = Vec::with_capacity(names.len());
        for name in names {
            let device = self.find(name)?;
            if let Some(at) = found.iter().position(|other| other.name == device.name) {
                let what = format!("{} and {name} are the same device, {}", names[at], device.path.shown());
                return Err(Error::input(what).hint("name each device once"));
            }
            found.push(device);
        }
        Ok(found)
    }
}

pub(super) fn find<'a>(devices: &'a [Device], named: &str) -> Result<&'a Device> {
    let names = names_of(named);
    let by_name = devices.iter().find(|device| {
        device.by_id.iter().any(|link| link == Path::new(named))
            || names.iter().any(|name| device.name == *name || device.partitions.contains(name))
    });
    // Any other link, or a node with a name of its own.
    by_name.or_else(|| by_node(devices, named)).ok_or_else(|| not_found(named))
}

/// The kernel names that a name may mean as written, without checking the file system.
fn names_of(named: &str) -> Vec<String> {
    let bare = named.strip_prefix("/dev/").unwrap_or(named);
    vec![bare.replace('/', "!")]
}

fn last_name(named: &str) -> String {
    Path::new(named).file_name().map_or_else(|| named.to_owned(), |name| name.to_string_lossy().into_owned())
}

/// Whether a name has a node that is a block device: this asks the file system, not the drive.
pub fn has_node(named: &str) -> bool {
    // In the kernel's own names `!` stands for `/`.
    let bare = if named.contains('/') { named.to_owned() } else { named.replace('!', "/") };
    Path::new("/dev").join(bare).to_str().is_some_and(|node| node_number(node).is_some())
}

fn node_number(named: &str) -> Option<String> {
    let metadata = std::fs::metadata(named).ok().filter(|found| found.file_type().is_block_device())?;
    Some(number_text(metadata.rdev()))
}

fn by_node<'a>(devices: &'a [Device], named: &str) -> Option<&'a Device> {
    if !named.contains('/') {
        return None;
    }
    let number = node_number(named)?;
    if let Some(device) = devices.iter().find(|device| device.number == number) {
        return Some(device);
    }
    // A partition's number: the last part of the target of sysfs's link is its kernel name.
    let link = std::fs::read_link(format!("/sys/dev/block/{number}")).ok()?;
    let name = link.file_name()?.to_string_lossy().into_owned();
    devices.iter().find(|device| device.partitions.contains(&name))
}

fn not_found(named: &str) -> Error {
    let found = std::fs::metadata(named);
    let named = printable::line(named);
    let error = match found {
        Ok(found) if found.file_type().is_block_device() => {
            Error::input(format!("{named} is an empty or hidden block device"))
        }
        Ok(_) => Error::input(format!("{named} is not a block device")),
        Err(_) => Error::input(format!("there is no block device {named} on this host")),
    };
    error.hint("`stacktune host` lists the devices and what uses them")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_a_node_if_that_is_a_block_device() {
        for none in ["null", "/dev/null", "nowhere", "cciss!c0d0", "/dev/disk/by-id/none", "/etc/passwd", ""]
        {
            assert!(!has_node(none), "{none}");
        }
        let names = std::fs::read_dir("/sys/class/block").into_iter().flatten().flatten();
        for name in names.filter_map(|entry| entry.file_name().into_string().ok()) {
            let node = format!("/dev/{}", name.replace('!', "/"));
            let is_there = Path::new(&node).exists();
            assert_eq!((has_node(&name), has_node(&node)), (is_there, is_there), "{name}");
        }
    }
}
