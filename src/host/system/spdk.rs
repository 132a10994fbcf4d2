//! Whether the operator's SPDK can drive drives here.

use serde::Serialize;

use super::hugepages::Hugepages;
use crate::host::root::Root;
use crate::host::{Feature, mounts};

/// The SPDK this program was built with: `SPDK v24.01, DPDK 23.11.0`; none if built without SPDK.
pub const BUILT: Option<&str> = option_env!("STACKTUNE_SPDK");

/// How to get a program with SPDK.
pub const HOW_TO_GET: &str = "this stacktune was built without SPDK: install SPDK 22.09 or later, and build with \
                              `cargo build --release --features spdk`";

/// SPDK support in this program and on this host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Spdk {
    /// The SPDK and DPDK that this program was built against; none if built without SPDK.
    pub built: Option<String>,
    /// Whether they can be used, apart from VFIO, which a run loads itself.
    pub usable: Feature,
}

impl Default for Spdk {
    /// For a program built without SPDK.
    fn default() -> Self {
        Self { built: None, usable: Feature::Missing(HOW_TO_GET.to_owned()) }
    }
}

pub(in crate::host) fn read(root: &Root, pages: &Hugepages) -> Spdk {
    let Some(built) = BUILT else { return Spdk::default() };
    let is_root = !root.is_running_host() || rustix::process::geteuid().is_root();
    Spdk { built: Some(built.to_owned()), usable: usable(root, pages, is_root) }
}

fn usable(root: &Root, pages: &Hugepages, is_root: bool) -> Feature {
    let mut missing = Vec::new();
    if pages.total == 0 {
        missing.push("no huge pages are set aside (`sysctl vm.nr_hugepages=1024`)".to_owned());
    } else if pages.free == 0 {
        missing
            .push(format!("all {} huge pages are in use (`sysctl vm.nr_hugepages` for more)", pages.total));
    }
    if !mounts::own(root).iter().any(|mount| mount.kind == "hugetlbfs") {
        missing.push(
            "no hugetlbfs is mounted (`mkdir -p /dev/hugepages && mount -t hugetlbfs none /dev/hugepages`)"
                .to_owned(),
        );
    }
    if !is_root {
        missing.push("handing drives over requires root".to_owned());
    }
    if missing.is_empty() { Feature::Present } else { Feature::Missing(missing.join("; ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::root::faked;

    #[test]
    fn all_that_is_missing_is_named_with_what_to_do() {
        let (_dir, bare) = faked(&[]);
        let none = usable(&bare, &Hugepages::default(), false);
        let why = none.reason().unwrap();
        for word in ["vm.nr_hugepages", "mount -t hugetlbfs", "requires root"] {
            assert!(why.contains(word), "{word}: {why}");
        }
        let mounts = ("proc/self/mountinfo", "30 22 0:27 / /dev/hugepages rw - hugetlbfs hugetlbfs rw\n");
        let (_dir, ready) = faked(&[mounts]);
        let pages = |free| Hugepages { total: 8, free, size_bytes: 2 << 20 };
        assert_eq!(usable(&ready, &pages(8), true), Feature::Present);
        assert!(usable(&ready, &pages(0), true).reason().unwrap().contains("all 8 huge pages"));
    }
}
