//! Examines a target before anything of it is created or written, so that any obstacle is known first.

use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, Mode, OFlags};

use super::member::MemberSource;
use super::open::Gathered;
use super::request::Request;
use super::settle::{Candidate, reconcile};
use super::{Region, files, probe};
use crate::error::{Error, Result};
use crate::host::TargetFacts;
use crate::printable::Shown as _;
use crate::units::MIB;

/// The future target, as far as it is known before it is opened for writing.
#[derive(Debug)]
pub struct Survey {
    /// What it supports; `None` if its folder can't be tested.
    pub facts: Option<TargetFacts>,
    /// Its members in the order they were named, the WAL's own last.
    pub members: Vec<Surveyed>,
}

/// A member of a survey.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Surveyed {
    /// Its path.
    pub path: PathBuf,
    /// Bytes to fill if nothing is kept.
    pub whole_bytes: u64,
    /// Bytes to fill, given what is already filled.
    pub missing_bytes: u64,
}

impl Survey {
    /// Examines what a request to write would do. Creates and writes nothing.
    ///
    /// # Errors
    /// As [`Volume::open`](super::Volume::open), except for conflicts that only its locks can find.
    pub fn of(request: &Request) -> Result<Self> {
        let copies = request.data.iter().map(MemberSource::try_clone).collect::<Result<_>>()?;
        let wal = request.wal.as_ref().map(MemberSource::try_clone).transpose()?;
        let gathered = Gathered::of(copies, (wal, request.wal_bytes), request.file_bytes)?;
        refuse_homeless_wal(&gathered)?;
        refuse_closed_folders(&gathered)?;
        Ok(Self { facts: facts(&gathered), members: members(&gathered) })
    }
}

/// Refuses a WAL whose own folder is missing: the data's folder is created, the WAL's is not.
fn refuse_homeless_wal(gathered: &Gathered) -> Result<()> {
    let Some(wal) = gathered.wal.as_ref().filter(|wal| wal.file.is_none()) else { return Ok(()) };
    let folder = files::folder_of(&wal.path);
    if folder.is_dir() || (!gathered.devices && folder == files::folder_of(&gathered.data[0].path)) {
        return Ok(());
    }
    Err(Error::input(format!("there is no folder {} for the WAL", folder.shown()))
        .hint("create it, or choose another file or a device for `wal.target`"))
}

/// Refuses to create files in a folder that does not permit it.
fn refuse_closed_folders(gathered: &Gathered) -> Result<()> {
    let missing = gathered.data.iter().chain(&gathered.wal).filter(|candidate| candidate.file.is_none());
    for candidate in missing {
        let there = files::nearest_folder(files::folder_of(&candidate.path));
        rustix::fs::access(there, Access::WRITE_OK | Access::EXEC_OK)
            .map_err(|error| Error::os("cannot create files in", there, std::io::Error::from(error)))?;
    }
    Ok(())
}

fn members(gathered: &Gathered) -> Vec<Surveyed> {
    let headers = reconcile(&gathered.data, gathered.data_parts, gathered.role);
    let own_wal = gathered.own_wal();
    let data = headers.iter().zip(&gathered.data).map(|((header, _), candidate)| {
        let mut bytes = [(header.parts.data_bytes, header.filled_bytes(Region::DATA)); 2];
        bytes[1] = match own_wal {
            Some(_) => (0, 0),
            None => (header.parts.wal_bytes, header.filled_bytes(Region::WAL)),
        };
        surveyed(&candidate.path, &bytes)
    });
    let wal = own_wal.map(|(wal, parts, role)| {
        let (header, _) = &reconcile(std::slice::from_ref(wal), parts, role)[0];
        surveyed(&wal.path, &[(parts.wal_bytes, header.filled_bytes(Region::WAL))])
    });
    data.chain(wal).collect()
}

fn surveyed(path: &Path, regions: &[(u64, u64)]) -> Surveyed {
    Surveyed {
        path: path.to_owned(),
        whole_bytes: regions.iter().map(|(whole, _)| whole).sum(),
        missing_bytes: regions.iter().map(|(whole, filled)| whole.saturating_sub(*filled)).sum(),
    }
}

/// What the members support. An unnamed file, which vanishes when it is closed, stands in for files that
/// don't exist yet.
fn facts(gathered: &Gathered) -> Option<TargetFacts> {
    let candidates: Vec<&Candidate> = gathered.data.iter().chain(&gathered.wal).collect();
    let mut folders: Vec<&Path> = candidates
        .iter()
        .filter(|candidate| candidate.file.is_none())
        .map(|candidate| files::folder_of(&candidate.path))
        .collect();
    folders.dedup();
    let stand_ins: Vec<File> = folders.into_iter().filter_map(stand_in).collect();
    let there = candidates.iter().filter_map(|candidate| Some((candidate.file.as_ref()?, candidate.device)));
    let all: Vec<(&File, bool)> = there.chain(stand_ins.iter().map(|file| (file, false))).collect();
    (!all.is_empty()).then(|| probe::examine(&all, false, None))
}

/// An unnamed file in a folder or, if that does not exist yet, in its nearest existing parent.
fn stand_in(folder: &Path) -> Option<File> {
    let there = files::nearest_folder(folder);
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(there, flags, Mode::RUSR | Mode::WUSR).ok()?);
    file.set_len(MIB).ok()?;
    Some(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::volume::Volume;

    #[test]
    fn a_survey_describes_the_volume_and_creates_nothing() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let target = dir.path().join("deep/target");
        let request = || Request::of_files(&target, 2, 9 * MIB);
        let survey = Survey::of(&request()).unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);

        let mut volume = Volume::open(request()).unwrap();
        let whole: u64 = survey.members.iter().map(|member| member.whole_bytes).sum();
        assert_eq!(survey.members.len(), volume.members.len());
        assert_eq!(volume.missing_fill().unwrap().bytes, whole);
        if let Some(facts) = survey.facts {
            assert_eq!(facts, volume.facts);
        }
        volume.fill(&mut |_| {}, &false.into()).unwrap();
        drop(volume);
        let again = Survey::of(&request()).unwrap();
        assert!(again.members.iter().all(|member| member.missing_bytes == 0), "{again:?}");
    }

    #[test]
    fn a_wal_whose_folder_is_missing_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let mut request = Request::of_files(&dir.path().join("target"), 1, 9 * MIB);
        request.wal = Some(MemberSource::File { path: dir.path().join("none/wal") });
        assert!(Survey::of(&request).unwrap_err().what.contains("there is no folder"));
    }
}
