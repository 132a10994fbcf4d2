//! Opens a volume: locks, finds or makes the members, and learns what the target can do.

use std::path::Path;

use super::files::{self, WAL_NAME};
use super::header::{Found, Role};
use super::layout::Parts;
use super::lock::{self, Share};
use super::member::MemberSource;
use super::opened::{Volume, assemble};
use super::read_only;
use super::request::{Request, one_folder, refuse_in_the_way};
use super::settle::{Candidate, settle};
use crate::error::{Error, Result};
use crate::host::{Trusting, make_own_folder};
use crate::printable::Shown as _;

impl Volume {
    /// Opens a volume. Creates missing files; members outside the set that is kept get new headers and are
    /// refilled ([`Volume::missing_fill`]).
    ///
    /// # Errors
    /// Refused if another run uses the target, something is in the way that stacktune did not make, or the
    /// disk has no room.
    pub fn open(request: Request) -> Result<Self> {
        let devices = request.data.first().is_some_and(MemberSource::is_device);
        if request.data.is_empty() || request.data.iter().any(|source| source.is_device() != devices) {
            return Err(Error::input("a target is one or more files, or one or more devices"));
        }
        if request.read_only { read_only::open(request) } else { open_to_write(request, devices) }
    }
}

fn open_to_write(request: Request, devices: bool) -> Result<Volume> {
    let Request { data, file_bytes, wal, wal_bytes, mounted, lock, .. } = request;
    let mut locks = Vec::new();
    if !devices {
        let dir = one_folder(&data)?;
        refuse_in_the_way(&data, wal.is_some())?;
        make_own_folder(&dir, Trusting::Caller)?;
        locks.extend(match lock {
            Some(lock) => Some(lock),
            None => files::lock_folder(&dir, Share::Exclusive)?,
        });
    }
    let gathered = Gathered::of(data, (wal, wal_bytes), file_bytes)?;
    for candidate in gathered.data.iter().filter(|_| devices).chain(&gathered.wal) {
        if let Some(file) = &candidate.file {
            lock::take(file, &candidate.path, Share::Exclusive)?;
        }
    }
    let Gathered { data, wal, data_parts, wal_parts, role, .. } = gathered;
    let mut members = settle(data, data_parts, role)?;
    let data_count = members.len();
    if !devices {
        files::remove_surplus(files::folder_of(&members[0].path), data_count as u64);
    }
    if let Some((wal, parts)) = wal.zip(wal_parts) {
        let made_now = wal.file.is_none();
        members.extend(settle(vec![wal], parts, Role::Wal)?);
        let wal = &members[data_count];
        if made_now {
            lock::take(&wal.file, &wal.path, Share::Exclusive)?;
        }
    }
    Ok(assemble(members, data_count, locks, false, mounted))
}

/// The future members as found, and their parts. Nothing has been written to them yet.
#[derive(Debug)]
pub(super) struct Gathered {
    pub devices: bool,
    pub data: Vec<Candidate>,
    pub data_parts: Parts,
    pub role: Role,
    pub wal: Option<Candidate>,
    pub wal_parts: Option<Parts>,
}

impl Gathered {
    /// Examines every member.
    ///
    /// # Errors
    /// Refused if something is in the way that stacktune did not make, or the disk has no room.
    pub fn of(
        data: Vec<MemberSource>,
        (wal, wal_bytes): (Option<MemberSource>, Option<u64>),
        file_bytes: u64,
    ) -> Result<Self> {
        let devices = data.first().is_some_and(MemberSource::is_device);
        let wal = match wal {
            None if !devices => Some(MemberSource::File { path: one_folder(&data)?.join(WAL_NAME) }),
            wal => wal,
        };
        if let Some(path) = wal.as_ref().map(MemberSource::path) {
            let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
            if data.iter().any(|source| real(source.path()) == real(path)) {
                return Err(Error::input(format!(
                    "{} can't be both a data member and the WAL's own",
                    path.shown()
                )));
            }
        }
        let data = data.into_iter().map(Candidate::of).collect::<Result<Vec<_>>>()?;
        let wal = wal.map(Candidate::of).transpose()?;
        if let Some(wal) = &wal {
            refuse_others_data(wal)?;
        }
        let (data_parts, role) = if devices {
            let smallest = data.iter().map(|candidate| candidate.size_bytes).min().unwrap_or_default();
            (Parts::of_device(smallest)?, Role::Both)
        } else {
            (Parts::of_data_file(file_bytes)?, Role::Data)
        };
        let wal_parts = wal.as_ref().map(|wal| wal_parts(wal, wal_bytes, &data, data_parts)).transpose()?;
        check_room(&data, data_parts, wal.as_ref().zip(wal_parts))?;
        Ok(Self { devices, data, data_parts, role, wal, wal_parts })
    }

    /// The WAL's own member with its parts and role, if it has one.
    pub fn own_wal(&self) -> Option<(&Candidate, Parts, Role)> {
        let (wal, parts) = self.wal.as_ref().zip(self.wal_parts)?;
        Some((wal, parts, Role::Wal))
    }
}

/// Refuses to turn a file that holds a set's data, perhaps another target's, into a WAL.
fn refuse_others_data(wal: &Candidate) -> Result<()> {
    match &wal.found {
        Found::Valid(header) if !wal.device && header.role != Role::Wal => {
            let path = wal.path.shown();
            Err(Error::refused(format!("{path} holds the data of a stacktune set: it can't be a WAL"))
                .hint("choose another file for `wal.target`"))
        }
        _ => Ok(()),
    }
}

/// The parts of the WAL's own member: a whole device; or a file of `wal_bytes`, by default 20% of everything.
fn wal_parts(
    wal: &Candidate,
    wal_bytes: Option<u64>,
    data: &[Candidate],
    data_parts: Parts,
) -> Result<Parts> {
    if wal.device {
        return Parts::of_wal_device(wal.size_bytes);
    }
    if let Some(bytes) = wal_bytes {
        return Parts::of_wal_device(bytes);
    }
    let devices = data.iter().any(|candidate| candidate.device);
    let each = if devices { data_parts.data_bytes } else { data_parts.member_bytes() };
    Ok(Parts::of_wal_file(each * data.len() as u64))
}

/// Checks that there is room for the files to be created: the data's, and the WAL's, which may be elsewhere.
fn check_room(data: &[Candidate], parts: Parts, wal: Option<(&Candidate, Parts)>) -> Result<()> {
    let data_bytes: u64 = data.iter().map(|candidate| candidate.wanted_bytes(parts)).sum();
    let wal_bytes = wal.map_or(0, |(wal, parts)| wal.wanted_bytes(parts));
    let data_dir = files::folder_of(&data[0].path);
    match wal.map(|(wal, _)| files::folder_of(&wal.path)).filter(|dir| *dir != data_dir) {
        Some(wal_dir) => {
            files::check_room(wal_dir, wal_bytes)?;
            if data_bytes > 0 { files::check_room(data_dir, data_bytes) } else { Ok(()) }
        }
        None if data_bytes + wal_bytes > 0 => files::check_room(data_dir, data_bytes + wal_bytes),
        None => Ok(()),
    }
}
