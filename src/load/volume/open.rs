//! Opening a volume: lock, find or make the members, and learn what the target can do.

use std::fs::File;
use std::path::{Path, PathBuf};

use super::files::{self, WAL_NAME};
use super::header::{Found, Header, Role};
use super::layout::{HEADER_BYTES, Parts, floor_mib};
use super::lock::{self, Share};
use super::settle::{Candidate, settle};
use super::stamp::SEQUENCE_BITS;
use super::{Extent, Identity, Region, probe, read_only};
use crate::error::{Error, Result};
use crate::host::TargetFacts;

// 262,144 runs of 2.7e11 writes each before sequence numbers begin again.
const EPOCH_SHIFT: u32 = 38;

/// A member that may be used.
#[derive(Debug)]
pub enum MemberSource {
    /// A regular file that stacktune makes, or has made.
    File {
        /// Its path.
        path: PathBuf,
    },
    /// A block device that the guard has permitted.
    Device {
        /// Its node.
        path: PathBuf,
        /// Open, and held exclusively where it is written.
        file: File,
        /// Bytes.
        size_bytes: u64,
    },
}

impl MemberSource {
    /// The file's or the device's path.
    pub fn path(&self) -> &Path {
        match self {
            Self::File { path } | Self::Device { path, .. } => path,
        }
    }

    fn is_device(&self) -> bool {
        matches!(self, Self::Device { .. })
    }

    /// The same once more.
    pub(super) fn try_clone(&self) -> Result<Self> {
        Ok(match self {
            Self::File { path } => Self::File { path: path.clone() },
            Self::Device { path, file, size_bytes } => {
                let file = file.try_clone().map_err(|error| Error::os("cannot hold", path, error))?;
                Self::Device { path: path.clone(), file, size_bytes: *size_bytes }
            }
        })
    }
}

/// What is to be opened.
#[derive(Debug)]
pub struct Request {
    /// The members: all files of one folder, or all devices.
    pub data: Vec<MemberSource>,
    /// Bytes of each data file, header included; not used for devices.
    pub file_bytes: u64,
    /// The WAL's own file or device. Without one it lies in the file `wal` beside the data files,
    /// or in the region that each device reserves for it.
    pub wal: Option<MemberSource>,
    /// Bytes of the WAL's own file; none is a quarter of the data.
    pub wal_bytes: Option<u64>,
    /// Open nothing for writing.
    pub read_only: bool,
    /// What uses the members, in words, if the guard has found any use (read-only).
    pub mounted: Option<String>,
    /// The lock of the data files' folder, where it was taken before ([`Request::take_lock`]).
    pub lock: Option<File>,
}

impl Request {
    /// Makes and locks the folder of the data files, so that no other run's files are found in use only
    /// after something was destroyed for this one.
    ///
    /// # Errors
    /// Refused where another run uses them, or the WAL's own file.
    pub fn take_lock(&mut self) -> Result<()> {
        if self.data.first().is_some_and(|source| !source.is_device()) {
            let dir = one_folder(&self.data)?;
            refuse_in_the_way(&self.data, self.wal.is_some())?;
            files::make_folder(&dir)?;
            self.lock = files::lock_folder(&dir, Share::Exclusive)?;
        }
        self.refuse_locked_wal()
    }

    /// Sees whether another run uses the files, and makes nothing.
    ///
    /// # Errors
    /// Refused where one does.
    pub fn refuse_locked(&self) -> Result<()> {
        let data = self.data.first().filter(|source| !source.is_device());
        data.map_or(Ok(()), |source| files::refuse_locked(files::folder_of(source.path())))?;
        self.refuse_locked_wal()
    }

    fn refuse_locked_wal(&self) -> Result<()> {
        let Some(MemberSource::File { path }) = &self.wal else { return Ok(()) };
        match files::open_ours(path, false)? {
            Some(ours) => lock::refuse_held(&ours.file, path),
            None => Ok(()),
        }
    }

    /// `count` data files of `size_bytes` in a folder.
    pub fn of_files(dir: &Path, count: u64, size_bytes: u64) -> Self {
        let data = (0..count).map(|index| MemberSource::File { path: files::data_path(dir, index) });
        Self {
            data: data.collect(),
            file_bytes: size_bytes,
            wal: None,
            wal_bytes: None,
            read_only: false,
            mounted: None,
            lock: None,
        }
    }

    /// These devices ([`MemberSource::Device`]).
    pub fn of_devices(devices: Vec<MemberSource>) -> Self {
        Self {
            data: devices,
            file_bytes: 0,
            wal: None,
            wal_bytes: None,
            read_only: false,
            mounted: None,
            lock: None,
        }
    }
}

/// A file or device of a volume.
#[derive(Debug)]
pub struct Member {
    /// A short name: the file's, or the kernel's for a device.
    pub name: String,
    /// Its path.
    pub path: PathBuf,
    /// Whether it is a block device.
    pub device: bool,
    pub(super) file: File,
    /// None for what was not made by stacktune, which is only read.
    pub(super) header: Option<Header>,
}

/// An open, locked volume.
#[derive(Debug)]
pub struct Volume {
    /// The set of the data; 0 where the members are not stacktune's.
    pub set: u64,
    /// What scan, point and background share.
    pub data: Region,
    /// The WAL's region. Its extents are empty where a read-only volume has none.
    pub wal: Region,
    /// The members; [`Extent::member`] is an index here. The WAL's own comes last.
    pub members: Vec<Member>,
    /// What the target can do.
    pub facts: TargetFacts,
    /// What to know about this target, as sentences.
    pub notes: Vec<String>,
    pub(super) read_only: bool,
    /// Held as long as the volume is open.
    pub(super) _locks: Vec<File>,
}

impl Volume {
    /// Opens a volume. Files that are missing are made; members that are not of one set get new
    /// headers and are filled again ([`Volume::missing_fill`]).
    ///
    /// # Errors
    /// Refused where another run uses the target, where something is in the way that stacktune did
    /// not make, or where the disk has no room.
    pub fn open(request: Request) -> Result<Self> {
        let devices = request.data.first().is_some_and(MemberSource::is_device);
        if request.data.is_empty() || request.data.iter().any(|source| source.is_device() != devices) {
            return Err(Error::input("a target is at least one file or device, and not both kinds"));
        }
        if request.read_only { read_only::open(request) } else { open_to_write(request, devices) }
    }

    /// The first sequence number of a new run that writes: greater than those of all runs before.
    pub fn next_sequence_base(&mut self) -> Result<u64> {
        self.writable()?;
        let epoch = self.members.iter().filter_map(|member| member.header.as_ref()).map(|h| h.epoch).max();
        let epoch = epoch.unwrap_or_default() + 1;
        for member in &mut self.members {
            let Some(header) = &mut member.header else { continue };
            header.epoch = epoch;
            let written = header.write(&member.file);
            written.map_err(|error| Error::os("cannot write the header of", &member.path, error))?;
        }
        Ok((epoch << EPOCH_SHIFT) & ((1 << SEQUENCE_BITS) - 1))
    }

    /// Removes the files of this volume, which stacktune made.
    ///
    /// # Errors
    /// Where members are devices, nothing is removed.
    pub fn remove(self) -> Result<()> {
        self.writable()?;
        if let Some(device) = self.members.iter().find(|member| member.device) {
            return Err(Error::input(format!("{} is a device: there is no file to remove", device.name)));
        }
        for member in &self.members {
            // What lies under the name now must still be ours.
            if files::open_ours(&member.path, false)?.is_some() {
                let removed = std::fs::remove_file(&member.path);
                removed.map_err(|error| files::removal_failed(&member.path, &error))?;
            }
        }
        let dir = files::folder_of(&self.members[0].path);
        files::remove_surplus(dir, 0);
        files::remove_lock(dir).map_err(|error| files::removal_failed(dir, &error))
    }

    pub(super) fn writable(&self) -> Result<()> {
        if self.read_only {
            return Err(Error::refused("the target is open read-only: nothing is written to it"));
        }
        Ok(())
    }

    /// The regions of a member with their extent's index: `(region, index)`.
    pub(super) fn extents_of(&self, member: usize) -> impl Iterator<Item = (&Region, u32)> {
        [&self.wal, &self.data].into_iter().flat_map(move |region| {
            let extents = (0..).zip(&region.extents);
            extents.filter(move |(_, extent)| extent.member as usize == member).map(move |(n, _)| (region, n))
        })
    }
}

fn open_to_write(request: Request, devices: bool) -> Result<Volume> {
    let Request { data, file_bytes, wal, wal_bytes, mounted, lock, .. } = request;
    let mut locks = Vec::new();
    if !devices {
        let dir = one_folder(&data)?;
        refuse_in_the_way(&data, wal.is_some())?;
        files::make_folder(&dir)?;
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

/// Looks at all that lies where the files of a target go, before any of them is made: the data files,
/// the lock of their folder, and the WAL's file unless the WAL has a place of its own.
///
/// # Errors
/// Refused where something is there that stacktune did not make.
pub fn refuse_in_the_way(data: &[MemberSource], own_wal: bool) -> Result<()> {
    let files = data.iter().filter(|source| !source.is_device()).map(MemberSource::path);
    files.clone().try_for_each(files::refuse_foreign)?;
    let Some(dir) = files.map(files::folder_of).next() else { return Ok(()) };
    if !own_wal {
        files::refuse_foreign(&dir.join(WAL_NAME))?;
    }
    files::refuse_foreign_lock(dir)
}

/// The one folder in which the data files lie.
fn one_folder(data: &[MemberSource]) -> Result<PathBuf> {
    let dir = files::folder_of(data[0].path());
    if data.iter().any(|source| files::folder_of(source.path()) != dir) {
        return Err(Error::input("the data files of a target lie in one folder"));
    }
    Ok(dir.to_owned())
}

/// The members that are to be, as they are now, and their parts. Nothing of them is written yet.
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
    /// Looks at every member.
    ///
    /// # Errors
    /// Refused where something is in the way that stacktune did not make, or where the disk has no
    /// room.
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
                    "{} can't hold both data and the WAL alone",
                    path.display()
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

/// A file that holds the data of a set, maybe of another target, does not become a WAL.
fn refuse_others_data(wal: &Candidate) -> Result<()> {
    match &wal.found {
        Found::Valid(header) if !wal.device && header.role != Role::Wal => {
            let path = wal.path.display();
            Err(Error::refused(format!("{path} holds the data of a set of stacktune's: it can't be a WAL"))
                .hint("choose another file for `wal.target`"))
        }
        _ => Ok(()),
    }
}

/// The WAL's own member has 20% of everything if it is a file, and all of a device.
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

/// Sees that the files to be made have room: the data's, and the WAL's, which may be elsewhere.
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

/// Puts regions and facts to members that have headers: `data_count` of data, then maybe the
/// WAL's own.
pub(super) fn assemble(
    members: Vec<Member>,
    data_count: usize,
    locks: Vec<File>,
    read_only: bool,
    mounted: Option<String>,
) -> Volume {
    let (data_members, wal_members) = members.split_at(data_count);
    let data = region_of(Region::DATA, data_members, 0);
    let wal = match wal_members {
        [] => region_of(Region::WAL, data_members, 0),
        own => region_of(Region::WAL, own, data_count),
    };
    let opened: Vec<(&File, bool)> = members.iter().map(|member| (&member.file, member.device)).collect();
    let facts = probe::examine(&opened, read_only, mounted);
    let notes = Vec::new();
    Volume { set: data.set, data, wal, members, facts, notes, read_only, _locks: locks }
}

/// The region over those members, the first of which is number `first`: the extents are in the
/// order of the set, whatever order the members were named in.
fn region_of(id: u8, members: &[Member], first: usize) -> Region {
    let headers = (first as u32..).zip(members).filter_map(|(n, m)| m.header.as_ref().map(|h| (n, m, h)));
    let mut headers: Vec<(u32, &Member, &Header)> = headers.collect();
    headers.sort_by_key(|(.., header)| header.index);
    let place = |parts: Parts| match id {
        Region::WAL => (parts.wal_offset_bytes(), parts.wal_bytes),
        _ => (parts.data_offset_bytes(), parts.data_bytes),
    };
    let extent_bytes = headers.iter().map(|(.., header)| place(header.parts).1).min().unwrap_or_default();
    let extents = headers.iter().filter(|_| extent_bytes > 0).map(|(n, member, header)| Extent {
        path: member.path.clone(),
        identity: Identity::of(&member.file).ok(),
        member: *n,
        offset_bytes: place(header.parts).0,
    });
    let set = headers.first().map_or(0, |(.., header)| header.set);
    Region { id, set, extents: extents.collect(), extent_bytes }
}

/// The data region over members that are not stacktune's: all that is there.
pub(super) fn whole_region(members: &[Member], smallest_bytes: u64) -> Region {
    let extents = (0..).zip(members).map(|(n, member)| Extent {
        path: member.path.clone(),
        identity: Identity::of(&member.file).ok(),
        member: n,
        offset_bytes: 0,
    });
    let extent_bytes = floor_mib(smallest_bytes);
    Region { id: Region::DATA, set: 0, extents: extents.collect(), extent_bytes }
}

const _: () = assert!(HEADER_BYTES.is_multiple_of(4096) && EPOCH_SHIFT < SEQUENCE_BITS);
