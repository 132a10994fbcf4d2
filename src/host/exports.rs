//! Block devices that are served to others, or that another program writes to.

use super::Usage;
use super::usage::{Resolver, device_number};

/// Programs that serve block devices over the network.
const SERVERS: [&str; 7] =
    ["nbd-server", "qemu-nbd", "nbdkit", "qemu-storage-da", "tgtd", "nvmf_tgt", "iscsi_tgt"];

/// Kernel names of devices with how each is served or written to.
pub(super) fn read(resolver: &Resolver) -> Vec<(String, Usage)> {
    let mut found = nvme_targets(resolver);
    found.extend(scsi_targets(resolver));
    found.extend(writers(resolver));
    found
}

/// `NVMe` over fabrics: the kernel's nvmet.
fn nvme_targets(resolver: &Resolver) -> Vec<(String, Usage)> {
    let root = resolver.root;
    let top = "sys/kernel/config/nvmet/subsystems";
    let mut found = Vec::new();
    for subsystem in root.names(top) {
        let folder = format!("{top}/{subsystem}/namespaces");
        for id in root.names(&folder) {
            let path = root.text(&format!("{folder}/{id}/device_path"));
            for name in path.map(|path| resolver.behind(&path)).unwrap_or_default() {
                found.push((name, Usage::Exported(format!("nvmet, subsystem {subsystem}"))));
            }
        }
    }
    found
}

/// iSCSI and the like: the kernel's LIO.
fn scsi_targets(resolver: &Resolver) -> Vec<(String, Usage)> {
    let root = resolver.root;
    let top = "sys/kernel/config/target/core";
    let mut found = Vec::new();
    for adapter in root.names(top) {
        for store in root.names(&format!("{top}/{adapter}")) {
            let folder = format!("{top}/{adapter}/{store}");
            let told = root.text(&format!("{folder}/udev_path"));
            let info = root.text(&format!("{folder}/info")).unwrap_or_default();
            // "iBlock device: sda  UDEV PATH: /dev/sda", or "File: /dev/sda  Size: …".
            let mut words =
                info.split_whitespace().map(|word| match resolver.node(&format!("/dev/{word}")) {
                    Some(name) => vec![name],
                    None => resolver.behind(word),
                });
            let told = told.map(|path| resolver.behind(&path)).filter(|names| !names.is_empty());
            let names = told.or_else(|| words.find(|names| !names.is_empty()));
            for name in names.unwrap_or_default() {
                found.push((name, Usage::Exported(format!("LIO target, {adapter}/{store}"))));
            }
        }
    }
    found
}

/// Other processes that have a block device open for writing: a virtual machine, a server, a database.
fn writers(resolver: &Resolver) -> Vec<(String, Usage)> {
    let root = resolver.root;
    let own = root.link("proc/self").map(|link| link.to_string_lossy().into_owned());
    let mut found = Vec::new();
    for process in root.names("proc") {
        if !process.bytes().all(|byte| byte.is_ascii_digit()) || Some(&process) == own.as_ref() {
            continue;
        }
        for fd in root.names(&format!("proc/{process}/fd")) {
            let Some(name) = opened(resolver, &format!("proc/{process}/fd/{fd}")) else { continue };
            let served = root.text(&format!("proc/{process}/comm")).unwrap_or_default();
            if SERVERS.contains(&served.as_str()) {
                found.push((name, Usage::Exported(format!("{served}, process {process}"))));
            } else if writes(&root.text(&format!("proc/{process}/fdinfo/{fd}")).unwrap_or_default()) {
                let text = format!("process {process}, {served}, has it open for writing");
                found.push((name, Usage::Claimed(text)));
            }
        }
    }
    found
}

/// The device behind a process's descriptor, if it is one.
fn opened(resolver: &Resolver, fd: &str) -> Option<String> {
    let root = resolver.root;
    let path = root.link(fd)?.to_string_lossy().into_owned();
    // The descriptor itself tells the number, where the path may be of another name space.
    let number = if root.is_running_host() { device_number(&root.at(fd)) } else { None };
    let by_path = || path.starts_with("/dev/").then(|| resolver.node(&path))?;
    number.and_then(|number| resolver.by_number(&number)).or_else(by_path)
}

/// Whether the open flags in a process's `fdinfo` allow writing.
fn writes(fdinfo: &str) -> bool {
    let flags = fdinfo.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|octal| u32::from_str_radix(octal.trim(), 8).ok()).unwrap_or(0);
    flags & libc::O_ACCMODE as u32 != libc::O_RDONLY as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flags_of_an_open_file_tell_whether_it_is_written() {
        assert!(writes("pos:\t0\nflags:\t0100002\nmnt_id:\t9\n"));
        assert!(writes("flags:\t01"));
        assert!(!writes("pos:\t0\nflags:\t0100000\n"));
        assert!(!writes(""));
    }
}
