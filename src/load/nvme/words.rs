//! Words for what VFIO and iommufd refuse, with what to do.

use std::path::Path;

use iommufd_ioctls::IommufdError;
use rustix::process::{Resource, getrlimit};
use vfio_ioctls::VfioError;

use crate::error::{Error, describe_errno};
use crate::units::approx_size;

/// Why VFIO can't open a device, and what to do.
pub fn cannot_open(what: &str, error: &VfioError) -> Error {
    let os = |error: &std::io::Error| error.raw_os_error();
    match error {
        VfioError::OpenContainer(why) if os(why) == Some(libc::ENOENT) => {
            Error::input("this kernel has no VFIO: there is no /dev/vfio/vfio")
                .hint("run `modprobe vfio-pci`")
        }
        VfioError::OpenContainer(why) => Error::os("cannot open", Path::new("/dev/vfio/vfio"), errno(why))
            .hint("driving a drive from userspace needs root, or access to /dev/vfio"),
        VfioError::OpenGroup(why, group) => match os(why) {
            Some(libc::EBUSY) => Error::failed(format!("{what} is already driven by another program"))
                .hint(format!("`fuser -v /dev/vfio/{group}` shows which one")),
            Some(libc::ENOENT) => Error::input(format!("{what} is not bound to vfio-pci"))
                .hint("stacktune binds drives itself if they are targets of the interface `vfio`"),
            _ => Error::os("cannot open", &Path::new("/dev/vfio").join(group), errno(why)),
        },
        VfioError::OpenDeviceCdev(why) => {
            Error::os("cannot open", Path::new("/dev/vfio/devices"), errno(why))
                .hint("driving a drive from userspace needs root, or access to its file there")
        }
        VfioError::VfioDeviceBindIommufd(why) if [libc::EBUSY, libc::EINVAL].contains(&why.errno()) => {
            Error::failed(format!("{what} is already driven by another program"))
                .hint("`fuser -v /dev/vfio/devices/*` shows which one")
        }
        VfioError::InvalidVfioDev => Error::input(format!("{what} is not bound to vfio-pci"))
            .hint("stacktune binds drives itself if they are targets of the interface `vfio`"),
        VfioError::GroupViable => Error::refused(format!(
            "{what} shares its IOMMU group with devices that are not bound to vfio-pci"
        ))
        .hint("a group goes to a program as a whole; another slot may have a group of its own"),
        other => Error::failed(format!("VFIO cannot open {what}: {other}"))
            .hint("an IOMMU must be on in the firmware and the kernel; see the kernel's log (dmesg)"),
    }
}

fn errno(error: &std::io::Error) -> std::io::Error {
    std::io::Error::from_raw_os_error(error.raw_os_error().unwrap_or(libc::EIO))
}

/// Why memory can't be mapped for a controller: usually the limit on locked memory.
pub fn cannot_map(bytes: u64, error: &VfioError) -> Error {
    let size = approx_size(bytes);
    let errno = match error {
        VfioError::IommuDmaMap(why) | VfioError::IommufdIoctlError(IommufdError::IommuIoasMap(why)) => {
            why.errno()
        }
        other => return Error::failed(format!("cannot map {size} for the drive: {other}")),
    };
    let what = format!("cannot map {size} for the drive: {}", describe_errno(errno));
    match (errno, getrlimit(Resource::Memlock).current) {
        (libc::ENOMEM, Some(limit)) => Error::input(format!(
            "{size} more would exceed the limit of locked memory, {} (RLIMIT_MEMLOCK)",
            approx_size(limit)
        ))
        .hint("raise it: `ulimit -l unlimited` (LimitMEMLOCK= in a service), or use a smaller depth or page"),
        _ => Error::failed(what),
    }
}

#[cfg(test)]
mod tests {
    use vmm_sys_util::errno::Error as Errno;

    use super::*;

    #[test]
    fn what_vfio_says_becomes_what_to_do() {
        let io = std::io::Error::from_raw_os_error;
        let none = cannot_open("x", &VfioError::OpenContainer(io(libc::ENOENT)));
        assert_eq!(none.hint.as_deref(), Some("run `modprobe vfio-pci`"));
        let busy = cannot_open("x", &VfioError::OpenGroup(io(libc::EBUSY), "7".into()));
        assert_eq!((busy.exit_status(), busy.hint.unwrap().contains("/dev/vfio/7")), (1, true));
        let unbound = cannot_open("0000:01:00.0", &VfioError::OpenGroup(io(libc::ENOENT), "7".into()));
        assert!(unbound.what.contains("0000:01:00.0 is not bound to vfio-pci"));
        assert!(cannot_open("x", &VfioError::GroupViable).what.contains("IOMMU group"));
        let taken = cannot_open("x", &VfioError::VfioDeviceBindIommufd(Errno::new(libc::EBUSY)));
        assert!(taken.exit_status() == 1 && taken.what.contains("another program"), "{taken}");
    }

    #[test]
    fn memory_that_may_not_be_locked_names_the_limit_by_either_way() {
        let [container, space] = [
            VfioError::IommuDmaMap(Errno::new(libc::ENOMEM)),
            VfioError::IommufdIoctlError(IommufdError::IommuIoasMap(Errno::new(libc::ENOMEM))),
        ]
        .map(|error| cannot_map(8192, &error).what);
        assert_eq!(container, space);
        // Without a limit, that can't be the reason.
        assert!(container.contains("RLIMIT_MEMLOCK") || getrlimit(Resource::Memlock).current.is_none());
        let other = cannot_map(8192, &VfioError::IommuDmaMap(Errno::new(libc::EINVAL)));
        assert!(other.what.contains("cannot map 8.00 KiB"), "{other}");
    }
}
