//! Opens a volume read-only, whatever is there: writes no lock file, no header and no other byte.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::files::{self, WAL_NAME};
use super::header::{Found, Header, Role};
use super::layout::floor_mib;
use super::lock::{self, Share};
use super::member::{Member, MemberSource};
use super::opened::{NO_MAP, Volume, assemble, whole_region};
use super::request::Request;
use super::settle::name_of;
use super::{Region, probe};
use crate::error::{Error, Result};
use crate::printable::Shown as _;

/// A member as found.
struct Opened {
    member: Member,
    size_bytes: u64,
}

pub(super) fn open(request: Request) -> Result<Volume> {
    let Request { data, wal, mounted, .. } = request;
    let dir = match &data[0] {
        MemberSource::File { path } => Some(files::folder_of(path).to_owned()),
        MemberSource::Device { .. } => None,
    };
    let mut locks = Vec::new();
    if let Some(dir) = &dir {
        locks.extend(files::lock_folder(dir, Share::ReadOnly)?);
    }
    let opened = data.into_iter().map(open_member).collect::<Result<Vec<_>>>()?;
    if !is_one_set(&opened) {
        return whole(opened, locks, mounted);
    }
    let unfilled: Vec<String> = opened.iter().filter_map(|opened| unfilled_note(&opened.member)).collect();
    let mut members: Vec<Member> = opened.into_iter().map(|opened| opened.member).collect();
    let data_count = members.len();
    // The WAL is only verified, so a missing one is no reason to refuse.
    let wal = wal.or_else(|| {
        Some(dir?.join(WAL_NAME)).filter(|wal| wal.exists()).map(|path| MemberSource::File { path })
    });
    let wal = wal.map(open_member).transpose()?.map(|wal| wal.member);
    members.extend(wal.filter(|wal| wal.header.as_ref().is_some_and(|header| header.role == Role::Wal)));
    let mut volume = assemble(members, data_count, locks, true, mounted);
    volume.notes = unfilled;
    Ok(volume)
}

fn open_member(source: MemberSource) -> Result<Opened> {
    let (path, file, device) = match source {
        MemberSource::Device { path, file, .. } => (path, file, true),
        MemberSource::File { path } => {
            let file = open_file(&path)?;
            (path, file, false)
        }
    };
    lock::take(&file, &path, Share::ReadOnly)?;
    let size = rustix::fs::seek(&file, rustix::fs::SeekFrom::End(0));
    let size_bytes = size.map_err(|error| Error::os("cannot determine the size of", &path, error))?;
    let found = Found::read(&file).map_err(|error| Error::os("cannot read", &path, error))?;
    let header = match found {
        Found::Valid(header) if header.parts.member_bytes() <= size_bytes => Some(header),
        _ => None,
    };
    Ok(Opened { member: Member { name: name_of(&path), path, device, file, header }, size_bytes })
}

fn open_file(path: &Path) -> Result<File> {
    // Non-blocking, so that opening a pipe does not block.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
    let file = file.map_err(|error| Error::os("cannot open", path, error))?;
    let metadata = file.metadata().map_err(|error| Error::os("cannot examine", path, error))?;
    if metadata.is_file() {
        Ok(file)
    } else {
        Err(Error::input(format!("{} is not a regular file", path.shown())))
    }
}

fn is_one_set(opened: &[Opened]) -> bool {
    let headers: Option<Vec<&Header>> = opened.iter().map(|opened| opened.member.header.as_ref()).collect();
    let Some(headers) = headers else { return false };
    let alike = |header: &&Header| {
        let first = headers[0];
        (header.set, header.parts, header.role) == (first.set, first.parts, first.role)
            && header.members as usize == headers.len()
            && header.parts.data_bytes > 0
    };
    let mut indexes: Vec<u32> = headers.iter().map(|header| header.index).collect();
    indexes.sort_unstable();
    headers.iter().all(alike) && indexes.iter().copied().eq(0..headers.len() as u32)
}

/// Why the members are not one set of ours.
fn why_not_ours(opened: &[Opened]) -> String {
    let (ours, others): (Vec<_>, Vec<_>) = opened.iter().partition(|opened| opened.member.header.is_some());
    let named = |of: Vec<&Opened>| {
        of.into_iter().map(|opened| opened.member.name.as_str()).collect::<Vec<_>>().join(", ")
    };
    match (ours.is_empty(), others.is_empty()) {
        (true, _) => "not filled by stacktune".into(),
        (false, false) => format!("{} has no stacktune header, or a damaged one", named(others)),
        (false, true) => format!("{} do not all belong to one set", named(ours)),
    }
}

fn unfilled_note(member: &Member) -> Option<String> {
    let header = member.header.as_ref()?;
    let missing = header.parts.data_bytes - header.data_filled_bytes;
    (missing > 0).then(|| {
        let missing = crate::units::approx_size(missing);
        format!(
            "{missing} of {} were never written: reading them says nothing about the storage",
            member.name
        )
    })
}

/// For members that are not one set of ours: the data region covers all of each.
fn whole(opened: Vec<Opened>, locks: Vec<File>, mounted: Option<String>) -> Result<Volume> {
    let smallest = opened.iter().map(|opened| opened.size_bytes).min().unwrap_or_default();
    let not_ours = why_not_ours(&opened);
    let members: Vec<Member> =
        opened.into_iter().map(|opened| Member { header: None, ..opened.member }).collect();
    if floor_mib(smallest) == 0 {
        return Err(Error::input(format!("{} has less than 1 MiB to read", members[0].path.shown())));
    }
    let data = whole_region(&members, smallest);
    let wal = Region { id: Region::WAL, set: 0, extents: Vec::new(), extent_bytes: 0 };
    let each: Vec<(&File, bool)> = members.iter().map(|member| (&member.file, member.device)).collect();
    let facts = probe::examine(&each, true, mounted);
    let notes = vec![format!("{not_ours}: what was never written may be read without I/O")];
    let map = Err(NO_MAP.to_owned());
    Ok(Volume { set: 0, data, wal, members, facts, notes, read_only: true, map, _locks: locks })
}
