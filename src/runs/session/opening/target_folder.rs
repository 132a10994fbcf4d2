//! The folders of the target's files: whether files can safely be put there, and what else is in them.

use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use super::consent::{OwnWal, own_wal};
use crate::error::{Error, Result};
use crate::host::{Facts, Trusting, refuse_exchangeable};
use crate::load::kv::acks;
use crate::load::kv::dataset::DatabaseFolder;
use crate::printable::{self, Shown as _};
use crate::settings::Settings;
use crate::settings::paths::absolute;
use crate::stack::id::StackId;
use crate::stack::system_folder::refuse_system_folder;
use crate::stack::undo::others_in;

/// The most that is added to the folder's path: names of files, of a stack's folder, of RocksDB's files.
const ADDED_BYTES_MAX: usize = 255;
const NAME_BYTES_MAX: usize = 255;
const WAL_ACKS: &str = "wal.acks";
/// How many names a note lists.
const NAMED: usize = 3;

/// Refuses folders of the target's files in which files can't safely be put.
///
/// # Errors
/// Input for the system's folders and for paths that can't be folders; refused if others could replace it.
pub(in crate::runs::session) fn refuse_unsafe_folders(settings: &Settings, facts: &Facts) -> Result<()> {
    if let Some(dir) = folder(settings)? {
        let by_name = settings.stack.is_built() || settings.is_keyed();
        let trusting = if by_name { Trusting::Root } else { Trusting::Caller };
        refuse_unsafe("target.files.dir", &dir, trusting)?;
        if by_name {
            refuse_closed(&dir)?;
        }
        if settings.is_keyed() && !settings.stack.is_built() {
            DatabaseFolder::new(&dir).refuse_others()?;
        }
    }
    if let Some(dir) = log_folder(settings)? {
        // Next to a stack, the folder's content is removed with the stack: others must not choose that content.
        let trusting = if settings.stack.is_built() { Trusting::Root } else { Trusting::Caller };
        refuse_unsafe("wal.target", &dir, trusting)?;
        // Made now, it would be on the parent file system if a drive is not mounted.
        if !dir.is_dir() {
            return Err(Error::input(format!("wal.target: there is no folder {}", dir.shown()))
                .hint("mount the file system for the program's log, and create the folder"));
        }
        let real = |dir: &Path| dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
        if folder(settings)?.is_some_and(|data| real(&data) == real(&dir)) {
            let what = format!("wal.target: {} is the folder of the data", dir.shown());
            return Err(Error::input(what).hint("name another one, or leave it out"));
        }
    }
    for (what, file) in files_elsewhere(settings, facts)? {
        let dir = file.parent().unwrap_or(Path::new("/"));
        refuse_unsafe(what, dir, Trusting::Caller)?;
        refuse_long(what, &file)?;
        if !dir.is_dir() {
            return Err(Error::input(format!("{what}: there is no folder {}", dir.shown()))
                .hint("make it, or choose another file"));
        }
    }
    Ok(())
}

fn refuse_unsafe(what: &str, dir: &Path, trusting: Trusting) -> Result<()> {
    refuse_long(what, dir)?;
    refuse_system_folder(what, dir)?;
    let there = nearest(dir);
    if !there.is_dir() {
        let leads = if there.is_symlink() { "is a link that leads to no folder" } else { "is not a folder" };
        return Err(Error::input(format!("{what}: {} {leads}", there.shown())).hint("choose another folder"));
    }
    refuse_exchangeable(dir, trusting)
}

/// Refuses a folder that does not permit new entries, for example because it is immutable, or its file system
/// is read-only.
fn refuse_closed(dir: &Path) -> Result<()> {
    let there = nearest(dir);
    access(there, Access::WRITE_OK | Access::EXEC_OK)
        .map_err(|error| Error::os("cannot create files in", there, error))
}

/// The existing part of a path: the path itself, or its nearest parent.
fn nearest(dir: &Path) -> &Path {
    dir.ancestors().find(|at| at.symlink_metadata().is_ok()).unwrap_or(Path::new("/"))
}

/// Refuses a path that is too long for the files to be put there: nothing may be begun that can't be undone.
fn refuse_long(what: &str, path: &Path) -> Result<()> {
    let limit_bytes = libc::PATH_MAX as usize - 1 - ADDED_BYTES_MAX;
    let too_long = if path.iter().any(|name| name.len() > NAME_BYTES_MAX) {
        format!("a name of more than {NAME_BYTES_MAX} bytes")
    } else if path.as_os_str().len() > limit_bytes {
        format!("a path of more than {limit_bytes} bytes")
    } else {
        return Ok(());
    };
    Err(Error::input(format!("{what}: {too_long}")).hint("choose a shorter one"))
}

/// The folder of a program's log; none if the log is with the rest.
fn log_folder(settings: &Settings) -> Result<Option<PathBuf>> {
    let wal = settings.wal.target.as_ref().filter(|_| settings.program.is_some());
    wal.map(|wal| absolute("wal.target", wal)).transpose()
}

/// Files with a place of their own, each with its setting.
fn files_elsewhere(settings: &Settings, facts: &Facts) -> Result<Vec<(&'static str, PathBuf)>> {
    let named = |what, file: &String| Ok((what, absolute(what, file)?));
    if !settings.touches_storage() || settings.program.is_some() {
        return Ok(Vec::new());
    }
    if settings.is_keyed() {
        let acks = settings.kv.acks.iter();
        return acks.map(|acks| named(WAL_ACKS, acks)).collect();
    }
    // Problems with a device are found when it is examined.
    let is_file = |wal: &&String| matches!(own_wal(wal, facts), Ok(OwnWal::File(_)));
    settings.wal.target.iter().filter(is_file).map(|wal| named("wal.target", wal)).collect()
}

/// Notes on what a run does with files that have a place of their own.
///
/// # Errors
/// Refused if something else is there.
pub(in crate::runs::session) fn files_elsewhere_noted(
    settings: &Settings,
    facts: &Facts,
) -> Result<Vec<String>> {
    let noted = |(what, file): (&str, PathBuf)| {
        let text = match what {
            WAL_ACKS => acks::outlook(&file)?,
            _ if file.exists() => format!("use {} for the WAL ({what})", file.shown()),
            _ => format!("create {} for the WAL ({what})", file.shown()),
        };
        Ok(format!("a run would {text}"))
    };
    files_elsewhere(settings, facts)?.into_iter().map(noted).collect()
}

/// Others' files in the folder, as a note; none if there are none.
pub fn others_in_folder(settings: &Settings) -> Option<String> {
    let dir = folder(settings).ok()??;
    let is_stack =
        |name: &str| name.strip_prefix("stack-").is_some_and(|id| StackId(id.to_owned()).is_sound());
    let mut others = others_in(&dir).ok()?;
    others.retain(|name| !is_stack(name));
    if others.is_empty() {
        return None;
    }
    let more = match others.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let named: Vec<_> = others.iter().take(NAMED).map(|name| printable::line(name)).collect();
    let named = named.join(", ");
    Some(format!("{} holds {named}{more}, which stacktune did not put there: it stays as it is", dir.shown()))
}

/// The folder of the files; none if the target is devices or nothing.
fn folder(settings: &Settings) -> Result<Option<PathBuf>> {
    if !settings.target.devices.is_empty() || !settings.touches_storage() {
        return Ok(None);
    }
    absolute("target.files.dir", &settings.target.dir).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_are_too_long_for_what_is_put_there_are_refused() {
        let refused = |dir: &Path| refuse_long("target.files.dir", dir).err().map(|error| error.what);
        assert_eq!(refused(&Path::new("/srv").join("x".repeat(255))), None);
        let named = refused(&Path::new("/srv").join("x".repeat(256)).join("y")).unwrap();
        assert_eq!(named, "target.files.dir: a name of more than 255 bytes");
        assert_eq!(refused(Path::new(&"/x".repeat(1920))), None);
        let long = refused(Path::new(&"/x".repeat(1921))).unwrap();
        assert_eq!(long, "target.files.dir: a path of more than 3840 bytes");
    }

    #[test]
    fn what_is_no_folder_or_is_not_written_to_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("file"), "").unwrap();
        std::os::unix::fs::symlink(at("none"), at("link")).unwrap();
        for (name, why) in [("file/x", "file is not a folder"), ("link", "leads to no folder")] {
            let error = refuse_unsafe("target.files.dir", &at(name), Trusting::Root).unwrap_err();
            assert!(error.what.contains(why), "{error}");
        }
        refuse_unsafe("target.files.dir", &at("none/x"), Trusting::Root).unwrap();
        refuse_closed(&at("none/x")).unwrap();
    }

    #[test]
    fn what_others_have_in_the_folder_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let mut settings = Settings::default();
        settings.target.dir = dir.path().display().to_string();
        for ours in ["data-0", "wal", "stacktune-set", "stack-0123456789abcdef"] {
            std::fs::write(dir.path().join(ours), "").unwrap();
        }
        assert_eq!(others_in_folder(&settings), None);
        for theirs in ["a", "b", "stack-of-books"] {
            std::fs::write(dir.path().join(theirs), "").unwrap();
        }
        let note = others_in_folder(&settings).unwrap();
        assert!(note.contains(" holds a, b, stack-of-books, which"), "{note}");
        std::fs::write(dir.path().join("aa"), "").unwrap();
        assert!(others_in_folder(&settings).unwrap().contains(" holds a, aa, b and 1 more, which"));
        settings.target.devices = vec!["/dev/sda".into()];
        assert_eq!(others_in_folder(&settings), None);
    }
}
