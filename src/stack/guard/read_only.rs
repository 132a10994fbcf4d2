//! Devices that are only read.

use super::claim::is_held;
use super::uses::whole_device;
use crate::error::Result;
use crate::host::{Device, Facts, Usage};

/// A device that is only read; it may be in use.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadOnly {
    /// The device.
    pub device: Device,
    /// Its uses, in words, to be shown with every figure.
    pub flags: Vec<String>,
    /// A file system or swap on it is in use: go easy on its bandwidth.
    pub mounted: bool,
}

/// Examines a device that is only read: uses are reported instead of refused.
pub fn examine_read_only(named: &str, facts: &Facts) -> Result<ReadOnly> {
    let device = whole_device(named, facts)?;
    let in_use = |usage: &Usage| matches!(usage, Usage::Mounted(_) | Usage::System(_) | Usage::Swap(_));
    let mut flags: Vec<String> = device.usage.iter().map(ToString::to_string).collect();
    // A mount in another mount namespace is not listed, but it holds the device.
    let held = flags.is_empty() && is_held(&device.path);
    flags.extend(held.then(|| {
        "held exclusively by another program, perhaps a mount in another mount namespace".to_owned()
    }));
    Ok(ReadOnly { flags, mounted: held || device.usage.iter().any(in_use), device: device.clone() })
}
