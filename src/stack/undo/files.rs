//! Removing folders, files, loop devices and mounts.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use rustix::fs::{AtFlags, CWD, FileType, Mode, StatxFlags};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::filesystems::refuse_others;
use super::others::{is_lost, others_left_in};
use super::undoer::{Undoer, persist, refuse_used};
use crate::error::{Error, Result};
use crate::host::mounted_at;
use crate::printable::{self, Shown as _};
use crate::stack::devices::{self, BlockDevice};
use crate::stack::guard::holders;
use crate::stack::runner::{LOSETUP, UMOUNT, failure, quoted};

impl Undoer<'_> {
    /// Whether it is a parent folder made for the stack's own folder: the operator chose its name.
    pub(super) fn is_above(&self, dir: &Path) -> bool {
        let in_it = |folder: &&PathBuf| folder.starts_with(dir) && self.own(folder).is_ok();
        self.own(dir).is_err() && self.folders.iter().any(|folder| in_it(&folder))
    }

    /// Removes such a parent, unless others have put something there meanwhile. A folder that is older than
    /// the stack, or open to others, was not made for it, whatever the journal says.
    pub(super) fn remove_above(&self, dir: &Path) -> Result<()> {
        /// The kernel's clock for files lags a little.
        const SLACK_S: u64 = 2;
        const OTHERS: Mode = Mode::RWXG.union(Mode::RWXO);
        let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
        if let Ok(found) = rustix::fs::statx(CWD, dir, AtFlags::SYMLINK_NOFOLLOW, wanted) {
            let is_private = Mode::from_raw_mode(found.stx_mode.into()).intersection(OTHERS).is_empty();
            let is_ours = found.stx_uid == geteuid().as_raw() && is_private;
            // Not every file system records the time of creation.
            let is_older = found.stx_mask & StatxFlags::BTIME.bits() != 0
                && found.stx_btime.tv_sec.saturating_add_unsigned(SLACK_S) < self.since_unix_s as i64;
            if !is_ours || is_older {
                return Ok(());
            }
        }
        match fs::remove_dir(dir) {
            // A name that is too long was never made.
            Err(error) if error.raw_os_error() == Some(libc::ENAMETOOLONG) => Ok(()),
            Err(error) if [ErrorKind::NotFound, ErrorKind::DirectoryNotEmpty].contains(&error.kind()) => {
                Ok(())
            }
            outcome => outcome.map_err(|error| Error::os("cannot remove", dir, error)),
        }
    }

    pub(super) fn remove_file(&self, file: &Path) -> Result<()> {
        let Some(entry) = self.own_entry(file)? else { return Ok(()) };
        if entry.kind != FileType::RegularFile {
            return Err(Error::refused(format!("{} is not the file that was made there", file.shown())));
        }
        self.wait_until_detached(file)?;
        if self.may_hold_others() {
            self.refuse_unseen(file)?;
            // Looking into it attached it once more.
            self.wait_until_detached(file)?;
        } else if self.scrutiny.is_some() {
            // If it never left our hands, it needs no look, nor a tool, which may not start without threads.
            let is_it = |device: &BlockDevice| matches!(device, BlockDevice::Loop { file: of } if of == file);
            self.refuse_foreign_below(file, is_it)?;
        }
        entry.remove(AtFlags::empty()).map_err(|error| Error::os("cannot remove", file, error))
    }

    /// A loop device that somebody else detached goes away only once the last program that probes it closes it.
    fn wait_until_detached(&self, file: &Path) -> Result<()> {
        persist(|| match devices::loops_over(self.runner, file)?.first() {
            None => Ok(()),
            Some(node) => {
                Err(Error::failed(format!("{} is still attached to {}", file.shown(), node.shown())))
            }
        })
    }

    pub(super) fn remove_folder(&self, dir: &Path) -> Result<()> {
        let Some(entry) = self.own_entry(dir)? else { return Ok(()) };
        match entry.remove(AtFlags::REMOVEDIR) {
            Err(Errno::NOENT) => Ok(()),
            Err(Errno::NOTEMPTY) => {
                let entries = fs::read_dir(dir).into_iter().flatten().flatten();
                let names: Vec<_> =
                    entries.take(3).map(|entry| printable::path(Path::new(&entry.file_name()))).collect();
                Err(Error::refused(format!("{} is not empty: it holds {}", dir.shown(), names.join(", ")))
                    .hint("stacktune did not put that there: move it elsewhere"))
            }
            outcome => outcome.map_err(|error| Error::os("cannot remove", dir, error)),
        }
    }

    /// Refuses a file with others' content: if its loop device is gone, as after a reboot, no node leads to
    /// that content.
    pub(super) fn refuse_unseen(&self, file: &Path) -> Result<()> {
        self.refuse_foreign(file)?;
        match self.probe(file, "TYPE")?.as_deref() {
            None => Ok(()),
            // The array of a run that died was examined earlier.
            Some("linux_raid_member") if !self.retained => Ok(()),
            Some("linux_raid_member") => {
                let what = format!(
                    "{} belongs to an array that is not running, so its content is unknown",
                    file.shown()
                );
                let file = quoted(file.as_os_str());
                Err(Error::refused(what).hint(format!(
                    "attach it and the array's other files (`losetup --find {file}`), start the array \
                     (`mdadm --assemble --scan`) and clean up again, or discard it with `wipefs --all {file}`"
                )))
            }
            Some(_) => self.look_inside(file),
        }
    }

    pub(super) fn detach_loops(&self, file: &Path) -> Result<()> {
        // Whatever is at the path now, the loop device is over the file that was made.
        if file.symlink_metadata().is_ok_and(|found| !found.is_file()) {
            return Err(Error::refused(format!("{} is not the file that was made there", file.shown())));
        }
        for node in devices::loops_over(self.runner, file)? {
            // For a device in use, the kernel would report success and detach it only later.
            refuse_used(&node)?;
            self.tool(LOSETUP, &["--detach".as_ref(), node.as_os_str()])?;
        }
        persist(|| match devices::loops_over(self.runner, file)?.first() {
            None => Ok(()),
            Some(node) => {
                let holders = holders::in_words(node);
                Err(Error::failed(format!("{} is still held{holders}", node.shown())))
            }
        })
    }

    pub(super) fn unmount(&self, dir: &Path) -> Result<()> {
        // The kernel lists mount points with links resolved; the folder itself may no longer respond.
        let dir = &devices::canonical_parent(dir);
        let mounted = || {
            mounted_at(dir)
                .map_err(|error| Error::os("cannot read", Path::new("/proc/self/mountinfo"), error))
        };
        let sources = mounted()?;
        if sources.len() > 1 {
            let what = format!("{} is mounted over {}", printable::line(&sources[1]), dir.shown());
            return Err(Error::refused(what).hint("unmount that first: it is not part of the stack"));
        }
        if sources.is_empty() {
            return Ok(());
        }
        refuse_others_files(dir, self.retained)?;
        let arguments = ["--no-canonicalize".as_ref(), dir.as_os_str()];
        persist(|| {
            let answer = self.runner.run(UMOUNT, &arguments)?;
            if answer.status == 0 || mounted()?.is_empty() {
                self.unmounted.store(true, Ordering::Relaxed);
                return Ok(());
            }
            let error = failure(UMOUNT, &arguments, &answer);
            Err(match holders::in_words(dir).as_str() {
                "" => error.hint("see `fuser -vm` and `lsof` for what uses it"),
                holders => error.hint(format!("it is held{holders}: stop that program, or leave the folder")),
            })
        })
    }
}

/// Refuses a file system with files other than the data set's, which would be lost. If it no longer responds,
/// there is nothing left to save.
fn refuse_others_files(dir: &Path, retained: bool) -> Result<()> {
    let others = match others_left_in(dir, retained) {
        Err(error) if !is_lost(&error) => {
            return Err(Error::os("cannot look for others' files in", dir, error));
        }
        others => others.unwrap_or_default(),
    };
    refuse_others(&dir.shown(), &others)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_does_not_count_as_empty() {
        let dir = tempfile::tempdir().unwrap();
        assert!(refuse_others_files(dir.path(), false).is_ok());
        let unreadable = dir.path().join("unreadable");
        fs::write(&unreadable, "").unwrap();
        let error = refuse_others_files(&unreadable, false).unwrap_err();
        assert!(error.what.starts_with("cannot look for others' files in"), "{error}");
    }
}
