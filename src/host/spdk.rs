//! Whether the operator's SPDK can drive drives here.

use serde::Serialize;

use super::platform::Hugepages;
use super::root::Root;
use super::{Feature, Platform};

/// What this program was built with: `SPDK v24.01, DPDK 23.11.0`; none where it was built without.
pub const BUILT: Option<&str> = option_env!("STACKTUNE_SPDK");

/// How to get a program with SPDK.
pub const HOW_TO_GET: &str = "this stacktune was built without SPDK: install SPDK 22.09 or later, and build with \
                              `cargo build --release --features spdk`";

/// What this program and this host have for SPDK.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Spdk {
    /// The SPDK and DPDK that this program was built against; none where it was built without.
    pub built: Option<String>,
    /// Whether they can be used; VFIO, which a run loads itself, apart.
    pub usable: Feature,
}

impl Default for Spdk {
    /// As of a program that was built without.
    fn default() -> Self {
        Self { built: None, usable: Feature::Missing(HOW_TO_GET.to_owned()) }
    }
}

pub(super) fn read(root: &Root, pages: &Hugepages) -> Spdk {
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
    let mounts = root.text("proc/self/mounts").unwrap_or_default();
    if !mounts.lines().any(|line| line.split(' ').nth(2) == Some("hugetlbfs")) {
        missing.push(
            "no hugetlbfs is mounted (`mkdir -p /dev/hugepages && mount -t hugetlbfs none /dev/hugepages`)"
                .to_owned(),
        );
    }
    if !is_root {
        missing.push("handing drives over takes root".to_owned());
    }
    if missing.is_empty() { Feature::Present } else { Feature::Missing(missing.join("; ")) }
}

/// The facts in words: what it was built with, and what is missing.
pub(super) fn in_words(platform: &Platform) -> String {
    let Spdk { built, usable } = &platform.spdk;
    let Some(built) = built else { return format!("no: {}", usable.reason().unwrap_or(HOW_TO_GET)) };
    let missing: Vec<&str> = [usable, &platform.vfio].into_iter().filter_map(Feature::reason).collect();
    match missing.as_slice() {
        [] => format!("yes: {built}"),
        missing => format!("{built}; not usable yet: {}", missing.join("; ")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::root::faked;
    use super::*;

    #[test]
    fn all_that_is_missing_is_named_with_what_to_do() {
        let (_dir, bare) = faked(&[]);
        let none = usable(&bare, &Hugepages::default(), false);
        let why = none.reason().unwrap();
        for word in ["vm.nr_hugepages", "mount -t hugetlbfs", "takes root"] {
            assert!(why.contains(word), "{word}: {why}");
        }
        let mounts = ("proc/self/mounts", "hugetlbfs /dev/hugepages hugetlbfs rw 0 0\n");
        let (_dir, ready) = faked(&[mounts]);
        let pages = |free| Hugepages { total: 8, free, size_bytes: 2 << 20 };
        assert_eq!(usable(&ready, &pages(8), true), Feature::Present);
        assert!(usable(&ready, &pages(0), true).reason().unwrap().contains("all 8 huge pages"));
    }

    #[test]
    fn a_program_without_it_says_how_to_get_it_and_one_with_it_what_it_is() {
        let mut platform = Platform::default();
        assert!(in_words(&platform).contains("--features spdk"));
        platform.spdk =
            Spdk { built: Some("SPDK v24.01, DPDK 23.11.0".to_owned()), usable: Feature::Present };
        let words = in_words(&platform);
        assert!(
            words.starts_with("SPDK v24.01, DPDK 23.11.0; not usable yet: ")
                && words.contains("not looked for")
        );
        platform.vfio = Feature::Present;
        assert_eq!(in_words(&platform), "yes: SPDK v24.01, DPDK 23.11.0");
    }
}
