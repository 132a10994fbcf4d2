//! The PCI Express link of a drive, and the bandwidth that it allows.

use serde::Serialize;

use crate::host::root::Root;

/// A PCI Express link.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PcieLink {
    /// Gigatransfers per second per lane.
    pub speed_gt_per_s: f64,
    /// Lanes.
    pub width: u64,
    /// Bytes per second in each direction, after line coding and before packet headers.
    pub bandwidth_bytes_per_s: u64,
    /// The drive's maximum: gigatransfers per second per lane.
    pub max_speed_gt_per_s: Option<f64>,
    /// The drive's maximum: lanes.
    pub max_width: Option<u64>,
}

/// The link of the PCI function in that folder; none if it is not one, or does not report it.
pub(in crate::host) fn link(root: &Root, dir: &str) -> Option<PcieLink> {
    let speed = |name: &str| speed(&root.text(&format!("{dir}/{name}"))?);
    let width = |name: &str| root.number(&format!("{dir}/{name}")).filter(|width| (1..=32).contains(width));
    let (speed_gt_per_s, width_now) = (speed("current_link_speed")?, width("current_link_width")?);
    Some(PcieLink {
        speed_gt_per_s,
        width: width_now,
        bandwidth_bytes_per_s: bandwidth_bytes_per_s(speed_gt_per_s, width_now),
        max_speed_gt_per_s: speed("max_link_speed"),
        max_width: width("max_link_width"),
    })
}

/// The number of `16.0 GT/s PCIe`.
fn speed(text: &str) -> Option<f64> {
    text.split_whitespace().next()?.parse().ok().filter(|speed: &f64| *speed > 0.0)
}

/// The first two generations send 8 bits as 10, the next three 128 bits as 130; the sixth (64 GT/s)
/// carries 242 bytes of packets in every 256, the rest being checks.
fn bandwidth_bytes_per_s(speed_gt_per_s: f64, width: u64) -> u64 {
    let share = match speed_gt_per_s {
        slow if slow < 8.0 => 8.0 / 10.0,
        fast if fast < 64.0 => 128.0 / 130.0,
        _ => 242.0 / 256.0,
    };
    (speed_gt_per_s * 1e9 / 8.0 * share * width as f64) as u64
}

impl PcieLink {
    /// Whether the drive supports a faster link.
    pub fn is_reduced(&self) -> bool {
        self.max_speed_gt_per_s.is_some_and(|max| max > self.speed_gt_per_s)
            || self.max_width.is_some_and(|max| max > self.width)
    }
}

impl std::fmt::Display for PcieLink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bandwidth = self.bandwidth_bytes_per_s as f64 / 1e9;
        write!(f, "{} GT/s × {}, {bandwidth:.2} GB/s", self.speed_gt_per_s, self.width)?;
        if self.is_reduced() {
            let speed = self.max_speed_gt_per_s.unwrap_or(self.speed_gt_per_s);
            write!(f, "; the drive supports {speed} GT/s × {}", self.max_width.unwrap_or(self.width))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_links_bandwidth_is_that_of_its_coding() {
        assert_eq!(bandwidth_bytes_per_s(5.0, 4), 2_000_000_000);
        assert_eq!(bandwidth_bytes_per_s(16.0, 4) / 1_000_000, 7876);
        assert_eq!(bandwidth_bytes_per_s(32.0, 4) / 1_000_000, 15_753);
        assert_eq!(bandwidth_bytes_per_s(64.0, 4) / 1_000_000, 30_250);
    }

    #[test]
    fn an_unknown_speed_is_none() {
        assert_eq!(speed("16.0 GT/s PCIe"), Some(16.0));
        assert_eq!(speed("Unknown"), None);
    }
}
