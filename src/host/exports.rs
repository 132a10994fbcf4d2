//! Block devices that are served to others, or that another program writes to.

use super::Usage;
use super::root::Root;
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
        let is_process = process.bytes().all(|byte| byte.is_ascii_digit());
        if !is_process || Some(&process) == own.as_ref() || is_kernels(root, &process) {
            continue;
        }
        let command = || root.text(&format!("proc/{process}/comm")).unwrap_or_default();
        for name in mapped(resolver, &process) {
            let text = format!("process {process}, {}, has mapped it for writing", command());
            found.push((name, Usage::Claimed(text)));
        }
        for fd in root.names(&format!("proc/{process}/fd")) {
            for name in registered(resolver, &process, &fd) {
                let text = format!("process {process}, {}, has it registered with io_uring", command());
                found.push((name, Usage::Claimed(text)));
            }
            let Some(name) = opened(resolver, &format!("proc/{process}/fd/{fd}")) else { continue };
            let served = command();
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

/// Whether it is a thread of the kernel's own, most of what runs on an idle host: without memory and
/// descriptors, and so without a program.
fn is_kernels(root: &Root, process: &str) -> bool {
    let program = std::fs::read_link(root.at(&format!("proc/{process}/exe")));
    root.is_running_host() && program.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
}

/// The devices that a process has mapped so that what it writes reaches them; its descriptors may be
/// closed since.
fn mapped(resolver: &Resolver, process: &str) -> Vec<String> {
    let maps = resolver.root.text(&format!("proc/{process}/maps")).unwrap_or_default();
    // "7f00-7f01 rw-s 00000000 00:05 320    /dev/nvme0n1"
    let device = |line: &str| {
        let mut words = line.split_whitespace();
        let is_shared = words.nth(1).is_some_and(|rights| rights.contains('w') && rights.ends_with('s'));
        let path = words.nth(3).filter(|path| is_shared && path.starts_with("/dev/"))?;
        resolver.node(path)
    };
    maps.lines().filter_map(device).collect()
}

/// The devices that a process has registered with a ring; their descriptors may be closed since. How they
/// were opened is not told.
fn registered(resolver: &Resolver, process: &str, fd: &str) -> Vec<String> {
    let root = resolver.root;
    let is_ring = |link: std::path::PathBuf| link.to_string_lossy().contains("[io_uring]");
    if !root.link(&format!("proc/{process}/fd/{fd}")).is_some_and(is_ring) {
        return Vec::new();
    }
    let told = root.text(&format!("proc/{process}/fdinfo/{fd}")).unwrap_or_default();
    // "UserFiles:\t2", then "    0: /dev/nvme0n1", by older kernels "    0: nvme0n1".
    let files = told.lines().skip_while(|line| !line.starts_with("UserFiles:")).skip(1);
    let files = files.map_while(|line| line.trim_start().split_once(": "));
    let files = files.take_while(|(number, _)| number.bytes().all(|byte| byte.is_ascii_digit()));
    files
        .filter_map(|(_, file)| {
            let file = file.trim();
            if file.starts_with('/') { resolver.node(file) } else { resolver.node(&format!("/dev/{file}")) }
        })
        .collect()
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
