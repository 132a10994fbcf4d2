//! What the kernel lets this process do, found by trying it.

use std::io;

use crate::host::Feature;
use crate::host::root::Root;

/// The features of a host, and what limits them.
pub(in crate::host) struct Features {
    pub(in crate::host) io_uring: Feature,
    pub(in crate::host) libaio: Feature,
    pub(in crate::host) dontcache: Feature,
    pub(in crate::host) perf: Feature,
    pub(in crate::host) memlock_bytes: Option<u64>,
}

pub(in crate::host) fn read(root: &Root, kernel: &str, virtualization: Option<&str>) -> Features {
    // A system call asks the running kernel, never a copy of another host's files.
    let probe = |try_it: &dyn Fn() -> Feature| {
        if root.is_running_host() {
            try_it()
        } else {
            Feature::Missing("not tried: these files are from another host".to_owned())
        }
    };
    Features {
        io_uring: probe(&|| io_uring(root)),
        libaio: probe(&|| libaio(root)),
        dontcache: dontcache(kernel),
        perf: probe(&|| perf(root, virtualization)),
        memlock_bytes: memlock_bytes(root),
    }
}

fn missing(reason: impl Into<String>) -> Feature {
    Feature::Missing(reason.into())
}

fn io_uring(root: &Root) -> Feature {
    match io_uring::IoUring::new(4) {
        Ok(_) => Feature::Present,
        Err(error) => missing(io_uring_reason(&error, root)),
    }
}

fn io_uring_reason(error: &io::Error, root: &Root) -> String {
    let switch = root.number("proc/sys/kernel/io_uring_disabled");
    match (error.raw_os_error(), switch) {
        (Some(libc::ENOSYS), _) => "this kernel has no io_uring (or a container hides it)".to_owned(),
        (Some(libc::EPERM | libc::EACCES), Some(2)) => "kernel.io_uring_disabled=2 forbids it to everyone; \
             `sysctl kernel.io_uring_disabled=0` allows it"
            .to_owned(),
        (Some(libc::EPERM | libc::EACCES), Some(1)) => {
            "kernel.io_uring_disabled=1 allows it only to root and to the group in kernel.io_uring_group"
                .to_owned()
        }
        (Some(libc::EPERM | libc::EACCES), _) => {
            "a seccomp filter or security module forbids it, as containers do by default".to_owned()
        }
        (Some(libc::ENOMEM), _) => {
            "RLIMIT_MEMLOCK is too small for its rings; raise it with `ulimit -l`".to_owned()
        }
        _ => format!("the kernel refuses to set it up: {}", crate::error::describe(error)),
    }
}

fn libaio(root: &Root) -> Feature {
    match try_io_setup() {
        Ok(()) => Feature::Present,
        Err(error) => missing(match error.raw_os_error() {
            Some(libc::ENOSYS) => "this kernel has no asynchronous I/O system calls (CONFIG_AIO)".to_owned(),
            Some(libc::EAGAIN) => {
                let limit = root.number("proc/sys/fs/aio-max-nr").unwrap_or(0);
                format!("fs.aio-max-nr={limit} is used up; `sysctl fs.aio-max-nr=1048576` raises it")
            }
            Some(libc::EPERM | libc::EACCES) => "a seccomp filter forbids it".to_owned(),
            _ => format!("the kernel refuses to set it up: {}", crate::error::describe(&error)),
        }),
    }
}

/// Makes an asynchronous I/O context and destroys it.
#[allow(unsafe_code)] // neither libc nor rustix wraps these two calls
fn try_io_setup() -> io::Result<()> {
    let mut context: libc::c_ulong = 0;
    // SAFETY: io_setup writes one aio_context_t, an unsigned long, where the pointer says.
    let result = unsafe { libc::syscall(libc::SYS_io_setup, 1_u32, &raw mut context) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the context was just made, and nothing was submitted to it.
    unsafe { libc::syscall(libc::SYS_io_destroy, context) };
    Ok(())
}

/// The first two numbers of a kernel's release: `6.14.3-1-cloud` is 6 and 14.
pub fn kernel_version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

fn dontcache(kernel: &str) -> Feature {
    match kernel_version(kernel) {
        Some(version) if version >= (6, 14) => Feature::Present,
        _ => missing(format!("RWF_DONTCACHE needs Linux 6.14, this is {kernel}")),
    }
}

fn perf(root: &Root, virtualization: Option<&str>) -> Feature {
    let cycles = perf_event::events::Hardware::CPU_CYCLES;
    let opened = perf_event::Builder::new(cycles).any_pid().one_cpu(0).include_kernel().build();
    match opened {
        Ok(_) => Feature::Present,
        Err(error) => missing(perf_reason(&error, root, virtualization)),
    }
}

fn perf_reason(error: &io::Error, root: &Root, virtualization: Option<&str>) -> String {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP) => {
            let machine = if virtualization.is_some() { "virtual machine" } else { "machine" };
            format!("no performance-monitoring unit in this {machine}")
        }
        Some(libc::ENOSYS) => "this kernel has no perf events (CONFIG_PERF_EVENTS)".to_owned(),
        Some(libc::EACCES | libc::EPERM) => match root.text("proc/sys/kernel/perf_event_paranoid") {
            Some(level) if level.parse::<i32>().is_ok_and(|level| level > 0) => format!(
                "kernel.perf_event_paranoid={level} keeps it from users without CAP_PERFMON; \
                 `sysctl kernel.perf_event_paranoid=0` allows it"
            ),
            _ => "a seccomp filter or security module forbids it, as containers do by default".to_owned(),
        },
        _ => format!("the kernel refuses to open it: {}", crate::error::describe(error)),
    }
}

/// The soft limit of locked memory; none if unlimited, or lifted by `CAP_IPC_LOCK`. Parsed by hand:
/// procfs-core rejects either file if it lacks a line.
fn memlock_bytes(root: &Root) -> Option<u64> {
    const CAP_IPC_LOCK: u32 = 14;
    let status = root.text("proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0);
    if bits >> CAP_IPC_LOCK & 1 == 1 {
        return None;
    }
    let limits = root.text("proc/self/limits")?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max locked memory"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::root::faked as host;
    use std::path::Path;

    #[test]
    fn the_reason_names_the_switch_that_forbids_it() {
        let eperm = io::Error::from_raw_os_error(libc::EPERM);
        let (_dir, root) = host(&[
            ("proc/sys/kernel/io_uring_disabled", "2\n"),
            ("proc/sys/kernel/perf_event_paranoid", "3\n"),
        ]);
        assert!(io_uring_reason(&eperm, &root).contains("kernel.io_uring_disabled=2"));
        assert!(perf_reason(&eperm, &root, None).contains("kernel.perf_event_paranoid=3"));
        let (_dir, root) = host(&[("proc/sys/kernel/io_uring_disabled", "0\n")]);
        assert!(io_uring_reason(&eperm, &root).contains("seccomp"));
        let enoent = io::Error::from_raw_os_error(libc::ENOENT);
        assert_eq!(
            perf_reason(&enoent, &root, Some("KVM")),
            "no performance-monitoring unit in this virtual machine"
        );
    }

    #[test]
    fn uncached_buffering_came_with_6_14() {
        for new in ["6.14.0-rc1", "6.18.44-fc", "7.0"] {
            assert_eq!(dontcache(new), Feature::Present, "{new}");
        }
        for old in ["6.13.9", "5.15.0-105-generic", "?"] {
            assert!(dontcache(old).reason().unwrap().contains(old), "{old}");
        }
    }

    #[test]
    fn locked_memory_is_limited_only_without_the_capability() {
        let limits = "Limit  Soft Limit  Hard Limit  Units\nMax locked memory  8388608  unlimited  bytes\n";
        let (_dir, root) =
            host(&[("proc/self/limits", limits), ("proc/self/status", "CapEff:\t0000000000000000\n")]);
        assert_eq!(memlock_bytes(&root), Some(8_388_608));
        let (_dir, root) =
            host(&[("proc/self/limits", limits), ("proc/self/status", "CapEff:\t0000000000004000\n")]);
        assert_eq!(memlock_bytes(&root), None);
        let unlimited = limits.replace("8388608", "unlimited");
        let (_dir, root) = host(&[("proc/self/limits", &unlimited)]);
        assert_eq!(memlock_bytes(&root), None);
    }

    #[test]
    fn libaio_is_really_tried_here() {
        // The system call either works or gives a reason; where it works, it is repeatable.
        let root = Root::new(Path::new("/"));
        assert_eq!(libaio(&root), libaio(&root));
    }

    #[test]
    fn another_hosts_files_are_not_probed() {
        let (_dir, root) = host(&[]);
        let features = read(&root, "6.18", None);
        assert!(features.io_uring.reason().unwrap().contains("not tried"));
        assert!(features.libaio.reason().unwrap().contains("not tried"));
        assert!(features.perf.reason().unwrap().contains("not tried"));
    }
}
