//! Block devices that are served to others, or that another program writes to.

use procfs_core::process::{Stat, StatFlags};

use super::device::PERHAPS;
use super::resolver::Resolver;
use crate::host::Usage;
use crate::host::nodes::{character_number, device_number};
use crate::host::root::{Root, last_part};
use crate::host::system::threads;

/// Programs that serve block devices over the network.
const SERVERS: [&str; 7] =
    ["nbd-server", "qemu-nbd", "nbdkit", "qemu-storage-da", "tgtd", "nvmf_tgt", "iscsi_tgt"];

/// Kernel names of devices, with how each is served or written to.
pub(in crate::host) fn read(resolver: &Resolver) -> Vec<(String, Usage)> {
    let mut found = nvme_targets(resolver);
    found.extend(scsi_targets(resolver));
    found.extend(writers(resolver));
    found
}

/// Marks all drives as possibly exported by something that is not visible. Loop devices, arrays and the like
/// are as safe as what they are built on.
fn perhaps_all(resolver: &Resolver, why: &str) -> Vec<(String, Usage)> {
    let is_built =
        |name: &str| ["loop", "md", "dm-", "zram", "ram"].iter().any(|kind| name.starts_with(kind));
    let all = resolver.root.names("sys/block").into_iter().filter(|name| !is_built(name));
    all.map(|name| (name, Usage::Exported(format!("{PERHAPS}{why}")))).collect()
}

/// Whether a module is loaded and in use.
fn is_used(root: &Root, module: &str) -> bool {
    root.text(&format!("sys/module/{module}/refcnt")).is_some_and(|count| count != "0")
}

/// `NVMe` over fabrics: the kernel's nvmet.
fn nvme_targets(resolver: &Resolver) -> Vec<(String, Usage)> {
    let root = resolver.root;
    let top = "sys/kernel/config/nvmet/subsystems";
    let mut found = Vec::new();
    if is_used(root, "nvmet") && !root.has(top) {
        return perhaps_all(resolver, "nvmet is loaded, but what it serves is unknown (mount configfs)");
    }
    for subsystem in root.names(top) {
        found.extend(
            whole_controllers(resolver, &format!("{top}/{subsystem}/passthru"))
                .map(|name| (name, Usage::Exported(format!("nvmet, subsystem {subsystem}, as a whole")))),
        );
        let folder = format!("{top}/{subsystem}/namespaces");
        for id in root.names(&folder) {
            let path = root.text(&format!("{folder}/{id}/device_path"));
            let Some(path) = path else { continue };
            let names = resolver.behind(&path);
            // If a node is missing, what it was can no longer be found out.
            let is_on = root.text(&format!("{folder}/{id}/enable")).is_some_and(|on| on == "1");
            if is_on && names.is_empty() && !root.at(&path).exists() {
                found.extend(perhaps_all(
                    resolver,
                    &format!("nvmet, subsystem {subsystem}, serves {path}, which is gone"),
                ));
            }
            for name in names {
                found.push((name, Usage::Exported(format!("nvmet, subsystem {subsystem}"))));
            }
        }
    }
    found
}

/// The namespaces of a controller that is served as a whole: `/dev/nvme0`.
fn whole_controllers(resolver: &Resolver, folder: &str) -> impl Iterator<Item = String> {
    let root = resolver.root;
    let is_on = root.text(&format!("{folder}/enable")).is_some_and(|on| on == "1");
    let path = root.text(&format!("{folder}/device_path")).filter(|_| is_on);
    let controller = path.and_then(|path| last_part(path.as_ref()));
    let first = controller.map(|controller| format!("{controller}n"));
    let names = root.names("sys/block").into_iter();
    names.filter(move |name| first.as_ref().is_some_and(|first| name.starts_with(first.as_str())))
}

/// iSCSI and the like: the kernel's LIO.
fn scsi_targets(resolver: &Resolver) -> Vec<(String, Usage)> {
    let root = resolver.root;
    let top = "sys/kernel/config/target/core";
    let mut found = Vec::new();
    if is_used(root, "target_core_mod") && !root.has(top) {
        return perhaps_all(
            resolver,
            "a SCSI target is loaded, but what it serves is unknown (mount configfs)",
        );
    }
    for adapter in root.names(top) {
        for store in root.names(&format!("{top}/{adapter}")) {
            let folder = format!("{top}/{adapter}/{store}");
            let udev_path = root.text(&format!("{folder}/udev_path"));
            let info = root.text(&format!("{folder}/info")).unwrap_or_default();
            // "iBlock device: sda  UDEV PATH: /dev/sda", or "File: /dev/sda  Size: …".
            let mut words =
                info.split_whitespace().map(|word| match resolver.node(&format!("/dev/{word}")) {
                    Some(name) => vec![name],
                    None => resolver.behind(word),
                });
            let behind = udev_path.map(|path| resolver.behind(&path)).filter(|names| !names.is_empty());
            let names = behind.or_else(|| words.find(|names| !names.is_empty()));
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
        for folder in tables(root, &process) {
            let used = root.names(&format!("{folder}/fd")).into_iter();
            let used = used.flat_map(|fd| uses(resolver, &folder, &fd));
            // Readers do not matter, except a server, which reads for others.
            let is_server = SERVERS.contains(&command().as_str());
            let counts = |how: &Use| is_server || !matches!(how, Use::Open { writes: false });
            let used = used.filter(|(_, how)| counts(how));
            found.extend(used.map(|(name, how)| (name, usage_of(&command(), &process, how))));
        }
    }
    found
}

/// How a process uses a device through a descriptor.
#[derive(Debug, Clone, Copy)]
enum Use {
    /// The device is open, for writing or not.
    Open { writes: bool },
    /// It accepts commands that bypass the block layer, whatever mode the descriptor was opened in.
    Commands,
    /// The device is registered with a ring.
    Registered,
}

fn uses(resolver: &Resolver, folder: &str, fd: &str) -> Vec<(String, Use)> {
    let path = format!("{folder}/fd/{fd}");
    let mut found: Vec<_> =
        registered(resolver, folder, fd).into_iter().map(|name| (name, Use::Registered)).collect();
    found.extend(commanded(resolver, &path).map(|name| (name, Use::Commands)));
    found.extend(opened(resolver, &path).map(|name| {
        let info = resolver.root.text(&format!("{folder}/fdinfo/{fd}")).unwrap_or_default();
        (name, Use::Open { writes: writes(&info) })
    }));
    found
}

fn usage_of(command: &str, process: &str, how: Use) -> Usage {
    match how {
        Use::Open { .. } if SERVERS.contains(&command) => {
            Usage::Exported(format!("{command}, process {process}"))
        }
        Use::Open { .. } => Usage::Claimed(format!("process {process}, {command}, has it open for writing")),
        Use::Commands => Usage::Claimed(format!(
            "process {process}, {command}, can give it commands that bypass the block layer"
        )),
        Use::Registered => {
            Usage::Claimed(format!("process {process}, {command}, has it registered with io_uring"))
        }
    }
}

/// The folders of a process's descriptor tables: its own, and those of threads with separate ones.
fn tables(root: &Root, process: &str) -> Vec<String> {
    let own = format!("proc/{process}");
    let (threads, is_bare) =
        (root.names(&format!("{own}/task")), root.names(&format!("{own}/fd")).is_empty());
    let others = threads::with_own_descriptors(root.is_running_host(), process, threads, is_bare);
    let others = others.into_iter().map(|thread| format!("{own}/task/{thread}"));
    std::iter::once(own.clone()).chain(others).collect()
}

/// Whether it is a kernel thread, as most are on an idle host: these have no memory and no
/// descriptors.
fn is_kernels(root: &Root, process: &str) -> bool {
    let stat = root.proc::<Stat>(&format!("proc/{process}/stat"));
    stat.is_some_and(|stat| stat.flags & StatFlags::PF_KTHREAD.bits() != 0)
}

/// The devices that a process has mapped for writing; its descriptors may have been closed since.
fn mapped(resolver: &Resolver, process: &str) -> Vec<String> {
    let root = resolver.root;
    let maps = root.text(&format!("proc/{process}/maps")).unwrap_or_default();
    let device = |(range, path): (&str, &str)| {
        // The node may be anywhere, or be gone.
        let file = root.at(&format!("proc/{process}/map_files/{range}"));
        let number = if root.is_running_host() { device_number(&file) } else { None };
        let by_path = || path.starts_with("/dev/").then(|| resolver.node(path))?;
        number.and_then(|number| resolver.by_number(&number)).or_else(by_path)
    };
    threads::shared_for_writing(&maps).filter_map(device).collect()
}

/// The namespace that accepts commands through a descriptor of its character device (`/dev/ng0n1`).
fn commanded(resolver: &Resolver, fd: &str) -> Option<String> {
    let path = resolver.root.link(fd)?;
    let name = last_part(&path).filter(|_| !resolver.root.is_running_host()).or_else(|| {
        let number = character_number(&resolver.root.at(fd))?;
        last_part(&resolver.root.link(&format!("sys/dev/char/{number}"))?)
    })?;
    resolver.node(&format!("/dev/nvme{}", name.strip_prefix("ng")?))
}

/// The devices that a process has registered with a ring; their descriptors may have been closed since. How
/// they were opened is unknown.
fn registered(resolver: &Resolver, folder: &str, fd: &str) -> Vec<String> {
    let root = resolver.root;
    let is_ring = |link: std::path::PathBuf| link.to_string_lossy().contains("[io_uring]");
    if !root.link(&format!("{folder}/fd/{fd}")).is_some_and(is_ring) {
        return Vec::new();
    }
    let info = root.text(&format!("{folder}/fdinfo/{fd}")).unwrap_or_default();
    // "UserFiles:\t2", then "    0: /dev/nvme0n1", on older kernels "    0: nvme0n1".
    let files = info.lines().skip_while(|line| !line.starts_with("UserFiles:")).skip(1);
    let files = files.map_while(|line| line.trim_start().split_once(": "));
    let files = files.take_while(|(number, _)| number.bytes().all(|byte| byte.is_ascii_digit()));
    files
        .filter_map(|(_, file)| {
            let file = file.trim();
            if file.starts_with('/') { resolver.node(file) } else { resolver.node(&format!("/dev/{file}")) }
        })
        .collect()
}

/// The block device that a process's descriptor has open, if it is one.
fn opened(resolver: &Resolver, fd: &str) -> Option<String> {
    let root = resolver.root;
    let path = root.link(fd)?.to_string_lossy().into_owned();
    // The descriptor itself has the number; the path may be from another namespace.
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
    fn the_flags_of_an_open_file_show_whether_it_is_written() {
        assert!(writes("pos:\t0\nflags:\t0100002\nmnt_id:\t9\n"));
        assert!(writes("flags:\t01"));
        assert!(!writes("pos:\t0\nflags:\t0100000\n"));
        assert!(!writes(""));
    }
}
