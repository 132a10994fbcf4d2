//! A journal file, held by this process.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{FlockOperation, flock};
use rustix::io::{Errno, FdFlags, fcntl_setfd};

use super::exposed::{self, Replaced};
use super::folder::{NEW, SUFFIX, folder};
use super::record::{DATA_SET, FORMAT, JournalEntry, JournalHeader, Line, Record, parse};
use super::undo::Undo;
use crate::error::{Error, Result};
use crate::json;
use crate::printable::{self, Shown as _};
use crate::stack::devices::Drive;
use crate::stack::id::StackId;
use crate::stack::state::StateFolder;

/// The kernel's id of this boot.
pub fn boot_id() -> Result<String> {
    let path = Path::new("/proc/sys/kernel/random/boot_id");
    let text = fs::read_to_string(path).map_err(|error| Error::os("cannot read", path, error))?;
    Ok(text.trim().to_owned())
}

/// A stack's journal, held by this process.
#[derive(Debug)]
pub struct Journal {
    folder: StateFolder,
    name: String,
    file: File,
    record: Record,
}

/// The outcome of opening a journal.
#[derive(Debug)]
pub enum Opened {
    /// Nobody held it; now this process does.
    Free(Journal),
    /// Another process holds it, or a tool that it started.
    Held(Record),
    /// It no longer exists.
    Gone,
}

impl Journal {
    /// Begins a journal, durably; nothing may be done to the host before that.
    pub fn begin(state_dir: &Path, id: &StackId, profile: &str, drives: &[Drive]) -> Result<Self> {
        let header = JournalHeader {
            format: FORMAT,
            id: id.clone(),
            boot: boot_id()?,
            pid: std::process::id(),
            profile: profile.to_owned(),
            started_unix_s: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
            drives: drives.to_vec(),
        };
        let dir = folder(state_dir);
        let (folder, name) = (StateFolder::make(&dir)?, format!("{}.{SUFFIX}", id.0));
        let path = folder.join(&name);
        let cannot = |error: std::io::Error| Error::os("cannot write", &path, error);
        // It is renamed into place once its first line is complete and its lock held, so that it is never
        // mistaken for a dead process's.
        let mut new = tempfile::Builder::new().prefix(NEW).tempfile_in(&dir).map_err(cannot)?;
        flock(new.as_file(), FlockOperation::NonBlockingLockExclusive).map_err(|e| cannot(e.into()))?;
        let line = json::line(&header)?;
        new.write_all(&line).and_then(|()| new.as_file().sync_all()).map_err(cannot)?;
        let file = new.persist_noclobber(&path).map_err(|error| cannot(error.error))?;
        folder.sync()?;
        let record = Record { header, entries: Vec::new(), retained: false, whole_bytes: line.len() as u64 };
        Ok(Self { folder, name, file, record })
    }

    /// Opens an existing journal, and takes it over if no process holds it.
    ///
    /// # Errors
    /// If it can't be read, or is damaged before its last line. Refused if others could have written it.
    pub fn open(path: &Path) -> Result<Opened> {
        let cannot = |error: std::io::Error| Error::os("cannot open", path, error);
        let (Some(dir), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
            return Ok(Opened::Gone);
        };
        let Some(folder) = StateFolder::open(dir)? else { return Ok(Opened::Gone) };
        let Some(mut file) = folder.file(name)? else { return Ok(Opened::Gone) };
        let mut free = match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => true,
            Err(Errno::WOULDBLOCK) => false,
            Err(error) => return Err(cannot(error.into())),
        };
        if exposed::is_exposed(&file) {
            match exposed::replace(&folder, name, &file, free) {
                Ok(Replaced::By(copy)) => (file, free) = (copy, true),
                Ok(Replaced::Already) => return Self::open(path),
                // If it can't be replaced, its lock still counts.
                Ok(Replaced::Not) | Err(_) => {}
            }
        }
        // Its holder may have finished and removed it in the meantime.
        if file.metadata().map_err(cannot)?.nlink() == 0 {
            return Ok(Opened::Gone);
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(cannot)?;
        let record = parse(&bytes).map_err(|why| {
            let (journal, why) = (path.shown(), printable::line(&why));
            Error::failed(format!("the journal {journal} can't be read: {why}")).hint(
                "what it lists may still exist: compare it with `lsblk` and /proc/mounts, then remove the journal",
            )
        })?;
        if !free {
            return Ok(Opened::Held(record));
        }
        // The next line must not follow a torn one.
        if record.whole_bytes < bytes.len() as u64 {
            file.set_len(record.whole_bytes).map_err(cannot)?;
        }
        file.seek(SeekFrom::End(0)).map_err(cannot)?;
        Ok(Opened::Free(Self { folder, name: name.to_owned(), file, record }))
    }

    /// Its content.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// Makes a change to the host that `undo` reverts: the undo is durable before `act` is called. If `act`
    /// fails, the change may be half made, and remains to be undone.
    pub fn act<T>(
        &mut self,
        command: &str,
        undo: Option<Undo>,
        act: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let number = self.record.entries.len() as u64;
        self.write(&Line::Intend { number, command: command.to_owned(), undo: undo.clone() })?;
        let entry = JournalEntry { number, command: command.to_owned(), undo, done: false, undone: false };
        self.record.entries.push(entry);
        let made = self.shared_with_tools(act)?;
        self.write(&Line::Done { number })?;
        self.record.entries[number as usize].done = true;
        Ok(made)
    }

    /// Records that a data set is about to be filled on the stack: only recorded data sets go with it.
    pub fn fills(&mut self, set: u64) -> Result<()> {
        if self.record.data_sets().any(|known| known == set) {
            return Ok(());
        }
        self.act(&format!("{DATA_SET}{set:016x}"), None, || Ok(()))
    }

    /// Records that something was undone.
    pub(crate) fn undone(&mut self, number: u64) {
        // A step that could not be recorded was never taken.
        let Some(entry) = self.record.entries.get_mut(number as usize) else { return };
        entry.undone = true;
        // If this is not recorded, it is undone again later, which does nothing.
        let _ = self.write(&Line::Undone { number });
    }

    /// Records that the stack is retained, and releases it.
    pub fn keep(mut self) -> Result<()> {
        self.write(&Line::Retained)
    }

    /// Removes the journal once everything is undone.
    pub(crate) fn end(self) -> Result<()> {
        debug_assert!(self.record.entries.iter().all(|entry| entry.to_undo().is_none()));
        self.folder.remove(&self.name)?;
        self.folder.sync()
    }

    /// Makes the tools that `run` starts hold the journal too, until they exit.
    pub(crate) fn shared_with_tools<T>(&self, run: impl FnOnce() -> T) -> T {
        // If this fails, cleanup does not wait for a tool that outlives a kill; nothing else changes.
        let _ = fcntl_setfd(&self.file, FdFlags::empty());
        let outcome = run();
        let _ = fcntl_setfd(&self.file, FdFlags::CLOEXEC);
        outcome
    }

    fn path(&self) -> PathBuf {
        self.folder.join(&self.name)
    }

    fn write(&mut self, line: &Line) -> Result<()> {
        let bytes = json::line(line)?;
        let written = self.file.write_all(&bytes).and_then(|()| self.file.sync_all());
        if let Err(error) = written {
            // A partial line would corrupt the next one; at the end of the file, readers ignore it.
            let _ = self.file.set_len(self.record.whole_bytes);
            let _ = self.file.seek(SeekFrom::End(0));
            return Err(Error::os("cannot write", &self.path(), error));
        }
        self.record.whole_bytes += bytes.len() as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};

    use super::super::folder::{all, sweep};
    use super::*;

    const ID: &str = "00112233aabbccdd";

    fn id() -> StackId {
        StackId(ID.into())
    }

    fn undo(name: &str) -> Undo {
        Undo::RemoveFolder { dir: PathBuf::from("/state").join(ID).join(name), above: None }
    }

    /// A journal with one step done and one only begun.
    fn with_two(dir: &Path) -> PathBuf {
        let mut journal = Journal::begin(dir, &id(), "mine", &[]).unwrap();
        journal.act("mkdir a", Some(undo("a")), || Ok(())).unwrap();
        journal.act("mkdir b", Some(undo("b")), || Err::<(), _>(Error::failed("no"))).unwrap_err();
        journal.path()
    }

    fn opened(path: &Path) -> Journal {
        for _ in 0..1000 {
            match Journal::open(path).unwrap() {
                Opened::Free(journal) => return journal,
                // A child process that another test has just started holds it too, until it exits.
                Opened::Held(_) => std::thread::sleep(std::time::Duration::from_millis(5)),
                Opened::Gone => panic!("it is gone"),
            }
        }
        panic!("it is held")
    }

    #[test]
    fn a_data_set_is_named_once() {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = Journal::begin(dir.path(), &id(), "mine", &[]).unwrap();
        journal.act("data set of others", Some(undo("a")), || Ok(())).unwrap();
        [0x1f, 7, 0x1f].iter().for_each(|set| journal.fills(*set).unwrap());
        let record = parse(&fs::read(journal.path()).unwrap()).unwrap();
        assert_eq!(record.data_sets().collect::<Vec<_>>(), [0x1f, 7]);
        assert_eq!(record.entries.len(), 3);
    }

    #[test]
    fn the_undo_is_in_the_file_before_the_step_acts() {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = Journal::begin(dir.path(), &id(), "mine", &[]).unwrap();
        let path = journal.path();
        journal
            .act("mkdir a", Some(undo("a")), || {
                let record = parse(&fs::read(&path).unwrap()).unwrap();
                assert_eq!(record.entries[0].to_undo(), Some(&undo("a")));
                assert!(!record.entries[0].done);
                Ok(())
            })
            .unwrap();
        let record = parse(&fs::read(&path).unwrap()).unwrap();
        assert!(record.entries[0].done);
        assert_eq!(record, *journal.record());
        assert_eq!((record.header.pid, record.header.boot), (std::process::id(), boot_id().unwrap()));
    }

    #[test]
    fn a_step_that_cannot_be_recorded_does_not_act() {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = Journal::begin(dir.path(), &id(), "mine", &[]).unwrap();
        journal.file = File::open(journal.path()).unwrap();
        let error =
            journal.act("mkdir a", Some(undo("a")), || -> Result<()> { panic!("it acted") }).unwrap_err();
        assert!(error.what.contains("cannot write"), "{error}");
        assert!(journal.record().entries.is_empty());
    }

    #[test]
    fn a_torn_last_line_is_ignored() {
        let dir = tempfile::tempdir().unwrap();
        let path = with_two(dir.path());
        let whole = fs::read(&path).unwrap();
        let two = parse(&whole).unwrap();
        let last_line = whole[..whole.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
        for torn in last_line..whole.len() {
            let record = parse(&whole[..torn]).unwrap();
            assert_eq!(record.entries, two.entries[..1], "torn at {torn}");
            assert_eq!(record.whole_bytes, last_line as u64);
        }
        // The line has its full length, but not its bytes.
        let mut zeros = whole[..last_line].to_vec();
        zeros.extend_from_slice(&[0, 0, 0, b'\n']);
        fs::write(&path, &zeros).unwrap();
        let mut journal = opened(&path);
        journal.undone(0);
        let record = parse(&fs::read(&path).unwrap()).unwrap();
        assert_eq!((record.entries.len(), record.entries[0].undone), (1, true));
    }

    #[test]
    fn damage_in_the_middle_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = with_two(dir.path());
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replacen("\"intend\"", r#""in\nline""#, 1)).unwrap();
        let error = Journal::open(&path).unwrap_err();
        assert!(error.what.contains("line 2") && !error.what.contains('\n'), "{error}");
        fs::write(&path, text.replacen("\"format\":1", "\"format\":2", 1)).unwrap();
        assert!(Journal::open(&path).unwrap_err().what.contains("its format is 2"));
    }

    #[test]
    fn a_living_process_holds_it_and_a_dead_one_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::begin(dir.path(), &id(), "mine", &[]).unwrap();
        let path = journal.path();
        assert!(matches!(Journal::open(&path).unwrap(), Opened::Held(_)));
        // A tool that outlives it is still working on the stack.
        let mut tool = journal.shared_with_tools(|| {
            std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap()
        });
        drop(journal);
        assert!(matches!(Journal::open(&path).unwrap(), Opened::Held(_)));
        drop(tool.stdin.take());
        tool.wait().unwrap();
        opened(&path).keep().unwrap();
        let journal = opened(&path);
        assert!(journal.record().retained);
        journal.end().unwrap();
        assert!(matches!(Journal::open(&path).unwrap(), Opened::Gone));
        assert!(all(dir.path()).unwrap().is_empty());
        assert_eq!(fs::read_dir(folder(dir.path())).unwrap().count(), 0);
    }

    #[test]
    fn an_unfinished_journal_is_removed_unless_it_is_being_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = with_two(dir.path());
        let left = folder(dir.path()).join(".new-a");
        let held = folder(dir.path()).join(".new-b");
        let make =
            |path: &Path| OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).unwrap();
        drop(make(&left));
        let file = make(&held);
        flock(&file, FlockOperation::NonBlockingLockExclusive).unwrap();
        sweep(dir.path());
        assert_eq!((left.exists(), held.exists(), path.exists()), (false, true, true));
    }

    #[test]
    fn one_id_has_one_journal() {
        let dir = tempfile::tempdir().unwrap();
        let path = with_two(dir.path());
        assert!(Journal::begin(dir.path(), &id(), "other", &[]).is_err());
        assert_eq!(all(dir.path()).unwrap(), [path]);
        assert!(all(&dir.path().join("none")).unwrap().is_empty());
    }

    #[test]
    fn it_is_for_its_owner_alone_and_not_believed_otherwise() {
        let dir = tempfile::tempdir().unwrap();
        let path = with_two(dir.path());
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(&folder(dir.path()))), (0o600, 0o700));
        let set = |path: &Path, bits| fs::set_permissions(path, fs::Permissions::from_mode(bits)).unwrap();
        let refused = |what: &str| {
            let error = Journal::open(&path).unwrap_err();
            assert!(error.exit_status() == 3 && error.what.contains(what), "{what}: {error}");
        };
        set(&path, 0o602);
        refused("a file that others may write to");
        set(&path, 0o600);
        set(&folder(dir.path()), 0o703);
        refused("others may write to");
        assert_eq!(all(dir.path()).unwrap_err().exit_status(), 3);
        assert_eq!(Journal::begin(dir.path(), &StackId::random(), "mine", &[]).unwrap_err().exit_status(), 3);
        // Earlier versions left read permission to the umask.
        set(&folder(dir.path()), 0o755);
        Journal::begin(dir.path(), &StackId::random(), "mine", &[]).unwrap();
        assert_eq!(mode(&folder(dir.path())), 0o700);
        fs::rename(&path, dir.path().join("elsewhere")).unwrap();
        symlink(dir.path().join("elsewhere"), &path).unwrap();
        refused("a symbolic link");
        fs::remove_file(&path).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        refused("not a regular file");
    }
}
