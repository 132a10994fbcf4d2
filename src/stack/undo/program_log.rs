//! Removing the folder of a program's log, with what the program left in it.

use std::fs;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, fstat};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::filesystems::refuse_others;
use super::others::others_left_in;
use super::undoer::Undoer;
use crate::error::{Error, Result};
use crate::host::{mounted_at, mounted_below};
use crate::marks::PROGRAM_NAME;
use crate::printable::Shown as _;

impl Undoer<'_> {
    /// Removes it from someone else's file system, which was mounted there.
    pub(super) fn remove_log(&self, dir: &Path, mount: &Path) -> Result<()> {
        let Some(entry) = self.own_entry(dir)? else { return self.refuse_unmounted(dir, mount) };
        let exchanged = || Error::refused(format!("{} is not the folder that was made there", dir.shown()));
        if entry.kind != FileType::Directory {
            return Err(exchanged());
        }
        let failed = |error: Errno| Error::os("cannot examine", dir, error);
        let folder = entry.open().map_err(failed)?;
        let found = fstat(&folder).map_err(failed)?;
        let is_private = !Mode::from_raw_mode(found.st_mode).intersects(Mode::RWXG | Mode::RWXO);
        if found.st_uid != geteuid().as_raw() || !is_private {
            return Err(exchanged());
        }
        // Through the descriptor: nobody can swap a folder above.
        let held = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd()));
        let others = others_left_in(&held, self.retained)
            .map_err(|error| Error::os("cannot look for others' files in", dir, error))?;
        refuse_others(&dir.shown(), &others)?;
        let here = fs::read_link(&held).map_err(|error| Error::os("cannot examine", dir, error))?;
        let below = mounted_below(&here).map_err(unreadable)?;
        if let Some(point) = below {
            let what = format!("something is mounted at {}", point.shown());
            return Err(Error::refused(what).hint("unmount that first: it is not part of the stack"));
        }
        // Follows no links.
        match fs::remove_dir_all(held.join(PROGRAM_NAME)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::os("cannot remove", &dir.join(PROGRAM_NAME), error));
            }
            _ => {}
        }
        self.remove_folder(dir)
    }

    /// Refuses to treat a folder as gone while its file system is not mounted, as after a reboot.
    fn refuse_unmounted(&self, dir: &Path, mount: &Path) -> Result<()> {
        if self.forget_missing || !mounted_at(mount).map_err(unreadable)?.is_empty() {
            return Ok(());
        }
        let (dir, mount, id) = (dir.shown(), mount.shown(), &self.id.0);
        let what = format!("{dir} is on a file system that is no longer mounted at {mount}");
        Err(Error::failed(what).hint(format!(
            "mount it and run `stacktune cleanup {id}`, or give the folder up: \
             `stacktune cleanup --forget-missing {id}`"
        )))
    }
}

fn unreadable(error: std::io::Error) -> Error {
    Error::os("cannot read", Path::new("/proc/self/mountinfo"), error)
}

#[cfg(test)]
mod tests {
    use std::fs::{DirBuilder, Permissions};
    use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};

    use super::*;
    use crate::stack::id::StackId;
    use crate::stack::journal::{Journal, Undo, all};
    use crate::stack::runner::Runner;
    use crate::stack::undo::undo_all;

    const ID: &str = "00112233aabbccdd";

    /// What undoing reports if `make` put something in the folder's place, and whether the path then leads nowhere.
    fn undone(name: &str, make: impl FnOnce(&Path)) -> (Result<()>, bool) {
        undone_on("/", name, make)
    }

    fn undone_on(mount: &str, name: &str, make: impl FnOnce(&Path)) -> (Result<()>, bool) {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join(name);
        let mut journal =
            Journal::begin(&dir.path().join("state"), &StackId(ID.into()), "mine", &[]).unwrap();
        journal
            .act("mkdir", Some(Undo::RemoveLog { dir: folder.clone(), mount: mount.into() }), || Ok(()))
            .unwrap();
        make(&folder);
        let outcome = undo_all(journal, &Runner::default(), &mut |_| true);
        let left = all(&dir.path().join("state")).unwrap().len();
        assert_eq!(left, usize::from(outcome.is_err()), "its journal stays where it could not be removed");
        (outcome, folder.symlink_metadata().is_err())
    }

    fn private(folder: &Path) {
        DirBuilder::new().mode(0o700).create(folder).unwrap();
    }

    #[test]
    fn the_log_goes_and_what_its_links_lead_to_stays() {
        let others = tempfile::tempdir().unwrap();
        let precious = others.path().join("precious");
        fs::write(&precious, "a").unwrap();
        let name = format!("stack-{ID}");
        let (outcome, gone) = undone(&name, |folder| {
            private(folder);
            let program = folder.join(PROGRAM_NAME);
            fs::create_dir_all(program.join("deep/deeper")).unwrap();
            fs::write(program.join("deep/deeper/log"), "any").unwrap();
            symlink(others.path(), program.join("deep/link")).unwrap();
        });
        assert!(outcome.is_ok() && gone, "{outcome:?}");
        assert!(precious.exists());
        let (outcome, gone) = undone(&name, private);
        assert!(outcome.is_ok() && gone, "killed before anything was in it: {outcome:?}");
        assert!(undone(&name, |_| ()).0.is_ok(), "killed before it was made");
        let (outcome, _) = undone_on("/nowhere/mounted", &name, |_| ());
        let why = outcome.unwrap_err().to_string();
        assert!(why.contains("no longer mounted at /nowhere/mounted"), "{why}");
    }

    #[test]
    fn what_is_not_the_folder_that_was_made_stays() {
        let others = tempfile::tempdir().unwrap();
        private(&others.path().join(PROGRAM_NAME));
        let name = format!("stack-{ID}");
        let open = |folder: &Path| {
            private(folder);
            fs::set_permissions(folder, Permissions::from_mode(0o755)).unwrap();
        };
        let link = |folder: &Path| symlink(others.path(), folder).unwrap();
        let file = |folder: &Path| fs::write(folder, "a").unwrap();
        let kinds: [&dyn Fn(&Path); 3] = [&open, &link, &file];
        for make in kinds {
            let (outcome, gone) = undone(&name, make);
            let why = outcome.unwrap_err().to_string();
            assert!(!gone && why.contains("is not the folder that was made there"), "{why}");
        }
        assert!(others.path().join(PROGRAM_NAME).exists());
        let (outcome, gone) = undone(&name, |folder| {
            private(folder);
            fs::write(folder.join("theirs"), "a").unwrap();
        });
        assert!(
            !gone
                && outcome
                    .unwrap_err()
                    .to_string()
                    .contains("holds theirs, which stacktune did not put there")
        );
        let (outcome, gone) = undone("of-nobody", private);
        assert!(!gone && outcome.unwrap_err().to_string().contains("is not in a folder of stack"));
    }
}
