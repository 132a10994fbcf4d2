//! Whether entries in a target's folder are stacktune's: by name, type and content. In doubt, they are others'.

use std::fs::{self, DirEntry, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use crate::marks;

/// The names in a target's folder that are not stacktune's, in order; those in its subfolders with their path.
///
/// # Errors
/// If the folder can't be read.
pub fn others_in(dir: &Path) -> io::Result<Vec<String>> {
    let entries = fs::read_dir(dir)?.collect::<io::Result<Vec<_>>>()?;
    let mut others = Vec::new();
    for entry in &entries {
        let name = entry.file_name();
        match (name.to_str(), is_folder(entry)) {
            // Made by mkfs, for files that a check may recover.
            (Some("lost+found"), true) => others.extend(all_but(entry, |_| false)?),
            // Whatever a program made there for the run.
            (Some(marks::PROGRAM_NAME), true) => {}
            (Some(marks::DATABASE_NAME), true) if is_pairs_marker(&dir.join(marks::PAIRS_NAME)) => {
                others.extend(all_but(entry, is_rocksdbs)?);
            }
            (Some(name), false) if is_ours(&entry.path(), name) => {}
            _ => others.push(name.to_string_lossy().into_owned()),
        }
    }
    others.sort();
    Ok(others)
}

/// The same for a file system to be removed; in a retained one, a program's files may be somebody's by now.
///
/// # Errors
/// If the folder can't be read.
pub(super) fn others_left_in(dir: &Path, retained: bool) -> io::Result<Vec<String>> {
    let mut others = others_in(dir)?;
    let may_hold_any = || match fs::read_dir(dir.join(marks::PROGRAM_NAME)) {
        Ok(mut entries) => entries.next().is_some(),
        Err(error) => ![ErrorKind::NotFound, ErrorKind::NotADirectory].contains(&error.kind()),
    };
    if retained && may_hold_any() {
        others.push(marks::PROGRAM_NAME.to_owned());
    }
    Ok(others)
}

fn is_folder(entry: &DirEntry) -> bool {
    entry.file_type().is_ok_and(|found| found.is_dir())
}

/// The entries of a folder, except regular files whose names are ours.
fn all_but(folder: &DirEntry, is_ours: impl Fn(&str) -> bool) -> io::Result<Vec<String>> {
    let above = folder.file_name();
    let mut others = Vec::new();
    let entries = match fs::read_dir(folder.path()) {
        Err(error) if is_lost(&error) => return Ok(others),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let is_file = entry.file_type().is_ok_and(|found| found.is_file());
        if !(is_file && entry.file_name().to_str().is_some_and(&is_ours)) {
            others.push(Path::new(&above).join(entry.file_name()).to_string_lossy().into_owned());
        }
    }
    Ok(others)
}

/// Whether a file's content matches what stacktune writes under that name.
fn is_ours(path: &Path, name: &str) -> bool {
    let begins: &[fn(&Start) -> bool] = match name {
        marks::WAL_NAME => &[Start::is_member],
        marks::LOCK_NAME => &[Start::is_lock],
        marks::PAIRS_NAME => &[Start::is_pairs_marker],
        marks::SETUP_NAME => &[Start::is_setup],
        _ if is_data_name(name) => &[Start::is_member],
        // A file that was not yet renamed into place.
        _ if is_new_name(name) => {
            &[Start::is_member, Start::is_lock, Start::is_pairs_marker, Start::is_setup]
        }
        _ => return false,
    };
    match Start::read(path) {
        Ok(start) => start.is_empty() || begins.iter().any(|is_so| is_so(&start)),
        Err(error) => is_lost(&error),
    }
}

/// Whether an error means that the drive is gone: nobody can read the file then, so its name alone counts.
pub fn is_lost(error: &io::Error) -> bool {
    let lost = [libc::EIO, libc::EUCLEAN, libc::ENODEV, libc::ENXIO, libc::ESHUTDOWN];
    error.raw_os_error().is_some_and(|error| lost.contains(&error))
}

fn is_pairs_marker(path: &Path) -> bool {
    Start::read(path).is_ok_and(|start| start.is_pairs_marker())
}

fn is_data_name(name: &str) -> bool {
    let index = name.strip_prefix("data-").and_then(|index| index.parse().ok());
    index.is_some_and(|index| marks::data_name(index) == name)
}

fn is_new_name(name: &str) -> bool {
    let random = name.strip_prefix(marks::NEW_PREFIX);
    random.is_some_and(|random| random.len() == 6 && random.bytes().all(|b| b.is_ascii_alphanumeric()))
}

/// Whether RocksDB gives a database's files such names.
fn is_rocksdbs(name: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let kinds = ["sst", "ldb", "log", "blob", "dbtmp"];
    let numbered = |name: &str| {
        let parts = name.rsplit_once('.');
        parts.is_some_and(|(number, kind)| digits(number) && number.len() >= 6 && kinds.contains(&kind))
    };
    let of_kind = |kind: &str| name.strip_prefix(kind).is_some_and(digits);
    let options = name.strip_suffix(".dbtmp").unwrap_or(name).strip_prefix("OPTIONS-").is_some_and(digits);
    ["CURRENT", "IDENTITY", "LOCK", "LOG"].contains(&name)
        || numbered(name)
        || options
        || of_kind("MANIFEST-")
        || of_kind("LOG.old.")
}

/// The beginning of a regular file, and the place where a header's second copy would be.
struct Start {
    bytes: u64,
    first: Vec<u8>,
    second: Vec<u8>,
}

impl Start {
    /// Enough for any of the marks.
    const BYTES: usize = 128;

    fn read(path: &Path) -> io::Result<Self> {
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
        // Opening anything but a regular file could block or have side effects.
        if !path.symlink_metadata()?.is_file() {
            return Err(ErrorKind::InvalidInput.into());
        }
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
        let found = file.metadata()?;
        if !found.is_file() {
            return Err(ErrorKind::InvalidInput.into());
        }
        let [first, second] = marks::VOLUME_AT.map(|at| read_at(&file, at));
        Ok(Self { bytes: found.len(), first: first?, second: second? })
    }

    /// Killed before anything was written: there is nothing to lose.
    fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// A member gets its name only once its header is written.
    fn is_member(&self) -> bool {
        [&self.first, &self.second].into_iter().any(|copy| copy.starts_with(marks::VOLUME))
    }

    fn is_lock(&self) -> bool {
        marks::LOCK_TEXT.starts_with(&self.first) && self.bytes == self.first.len() as u64
    }

    /// Whether it begins as the marker does, or is a truncated marker.
    fn is_pairs_marker(&self) -> bool {
        let begins = format!("{{\n  \"what\": \"{}\"", marks::PAIRS_WHAT).into_bytes();
        self.first.starts_with(&begins) || begins.starts_with(&self.first)
    }
}

impl Start {
    /// Whether it begins like the file that records a program's setup, or is a truncated one.
    fn is_setup(&self) -> bool {
        let begins = marks::SETUP_BEGINS.as_bytes();
        self.first.starts_with(begins) || begins.starts_with(&self.first)
    }
}

fn read_at(file: &File, at: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; Start::BYTES];
    let mut read = 0;
    while read < bytes.len() {
        match file.read_at(&mut bytes[read..], at + read as u64) {
            Ok(0) => break,
            Ok(more) => read += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(read);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::fs::{create_dir, write};
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;

    use super::*;

    /// A folder as a run leaves it, of pages or of pairs.
    fn target(pairs: bool) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        write(at("stacktune-set"), marks::LOCK_TEXT).unwrap();
        create_dir(at("lost+found")).unwrap();
        if pairs {
            let marker = format!("{{\n  \"what\": \"{}\",\n  \"schema\": 1\n}}\n", marks::PAIRS_WHAT);
            write(at("stacktune-pairs.json"), marker).unwrap();
            create_dir(at("rocksdb")).unwrap();
            let names = ["000123.sst", "000124.log", "000125.dbtmp", "MANIFEST-000004", "OPTIONS-000007"];
            let others = ["CURRENT", "IDENTITY", "LOCK", "LOG", "LOG.old.1700000000", "OPTIONS-000009.dbtmp"];
            names.iter().chain(&others).for_each(|name| write(at("rocksdb").join(name), "any").unwrap());
            return dir;
        }
        for name in ["data-0", "data-11", "wal", ".stacktune-a1B2c3"] {
            write(at(name), marks::VOLUME).unwrap();
        }
        // The first copy of the header was torn; the second is whole.
        let torn = File::create(at("data-1")).unwrap();
        torn.write_all_at(&[7; 512], 0).unwrap();
        torn.write_all_at(marks::VOLUME, marks::VOLUME_AT[1]).unwrap();
        write(at("stacktune-setup"), format!("{}true", marks::SETUP_BEGINS)).unwrap();
        // Files that a kill left before they were renamed into place.
        write(at(".stacktune-empty0"), "").unwrap();
        write(at(".stacktune-marker"), "{\n  \"what\": \"a da").unwrap();
        dir
    }

    #[test]
    fn what_runs_leave_is_ours() {
        for pairs in [false, true] {
            assert!(others_in(target(pairs).path()).unwrap().is_empty(), "{pairs}");
        }
    }

    #[test]
    fn a_folder_or_a_file_that_only_has_our_name_is_others() {
        let others = |make: &dyn Fn(&Path), pairs: bool| {
            let dir = target(pairs);
            make(dir.path());
            others_in(dir.path()).unwrap()
        };
        let of_pages = |make: &dyn Fn(&Path)| others(make, false);
        let folder = |name: &'static str| {
            move |dir: &Path| {
                let _ = fs::remove_file(dir.join(name));
                let _ = create_dir(dir.join(name));
                write(dir.join(name).join("precious"), "a").unwrap();
            }
        };
        for name in ["data-7", "wal", "stacktune-set", "stacktune-setup", ".stacktune-a1B2c3", "rocksdb"] {
            assert_eq!(of_pages(&folder(name)), [name]);
        }
        assert_eq!(of_pages(&folder("lost+found")), ["lost+found/precious"]);
        assert_eq!(others(&folder("rocksdb"), true), ["rocksdb/precious"]);
        let inner = |dir: &Path| create_dir(dir.join("rocksdb/000009.sst")).unwrap();
        assert_eq!(others(&inner, true), ["rocksdb/000009.sst"]);
        let file = |name: &'static str| move |dir: &Path| write(dir.join(name), "a").unwrap();
        for name in
            ["data-9", "data-009", "data-", "wal", "stacktune-set", ".stacktune-a1B2c4", "data-9\nwal"]
        {
            assert_eq!(of_pages(&file(name)), [name]);
        }
        let no_text = |dir: &Path| write(dir.join(OsStr::from_bytes(b"data-\xff")), "a").unwrap();
        assert_eq!(of_pages(&no_text), ["data-\u{fffd}"]);
        let zeros = |dir: &Path| write(dir.join("data-9"), vec![0; 1 << 20]).unwrap();
        assert_eq!(of_pages(&zeros), ["data-9"], "what begins with zeros may be an image");
        let link = |dir: &Path| symlink("data-0", dir.join("data-9")).unwrap();
        assert_eq!(of_pages(&link), ["data-9"]);
    }
}
