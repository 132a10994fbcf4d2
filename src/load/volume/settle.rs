//! Makes one set of what is on the members: keeps what is intact, and starts over with the rest.

use std::fs::File;
use std::path::{Path, PathBuf};

use super::files;
use super::header::{Found, Header, Role};
use super::layout::Parts;
use super::member::{Member, MemberSource};
use crate::error::{Error, Result};

/// A member before its set is decided.
#[derive(Debug)]
pub(super) struct Candidate {
    pub path: PathBuf,
    pub device: bool,
    /// Absent for a file that is yet to be created.
    pub file: Option<File>,
    pub found: Found,
    pub size_bytes: u64,
    pub allocated_bytes: u64,
}

impl Candidate {
    /// Examines what is at the source's path.
    ///
    /// # Errors
    /// Refused if a file is there that stacktune did not make.
    pub fn of(source: MemberSource) -> Result<Self> {
        match source {
            MemberSource::Device { path, file, size_bytes } => {
                let found = Found::read(&file);
                let found = found.map_err(|error| Error::os("cannot read the header of", &path, error))?;
                let file = Some(file);
                Ok(Self { path, device: true, file, found, size_bytes, allocated_bytes: size_bytes })
            }
            MemberSource::File { path } => Ok(match files::open_ours(&path, true)? {
                None => {
                    let found = Found::Absent;
                    Self { path, device: false, file: None, found, size_bytes: 0, allocated_bytes: 0 }
                }
                Some(files::OurFile { file, found, size_bytes, allocated_bytes }) => {
                    Self { path, device: false, file: Some(file), found, size_bytes, allocated_bytes }
                }
            }),
        }
    }

    /// The valid header for a member with those parts. A file of another size has none.
    fn counting(&self, parts: Parts, role: Role) -> Option<&Header> {
        let right_size = if self.device {
            self.size_bytes >= parts.member_bytes()
        } else {
            self.size_bytes == parts.member_bytes()
        };
        match &self.found {
            Found::Valid(header) if right_size && header.parts == parts && header.role == role => {
                Some(header)
            }
            _ => None,
        }
    }

    /// Disk space that the file will need in addition to what it takes now.
    pub fn wanted_bytes(&self, parts: Parts) -> u64 {
        if self.device { 0 } else { parts.member_bytes().saturating_sub(self.allocated_bytes) }
    }
}

/// A header for each candidate, and whether it is a new one.
///
/// Keeps the set that most members belong to; any other member joins it unfilled.
pub(super) fn reconcile(candidates: &[Candidate], parts: Parts, role: Role) -> Vec<(Header, bool)> {
    let count = candidates.len() as u32;
    let counting: Vec<Option<&Header>> = candidates
        .iter()
        .map(|candidate| candidate.counting(parts, role).filter(|header| header.members == count))
        .collect();
    let votes = |set: u64| counting.iter().flatten().filter(|header| header.set == set).count();
    // `rev`, so that the first of equals wins.
    let set = counting.iter().rev().flatten().map(|header| header.set).max_by_key(|set| votes(*set));
    let set = set.unwrap_or_else(|| rand::random::<u64>().max(1));
    let mut taken = vec![false; count as usize];
    let kept: Vec<Option<&Header>> = counting
        .into_iter()
        .map(|header| {
            let header = header.filter(|header| header.set == set)?;
            let twice = std::mem::replace(&mut taken[header.index as usize], true);
            (!twice).then_some(header)
        })
        .collect();
    let mut free = (0..count).filter(|index| !taken[*index as usize]).collect::<Vec<_>>().into_iter();
    kept.into_iter()
        .map(|header| match header {
            Some(header) => (header.clone(), false),
            None => (Header::new(set, free.next().unwrap_or_default(), count, role, parts), true),
        })
        .collect()
}

/// Makes the candidates members of one set. Members that are kept are not written to.
pub(super) fn settle(candidates: Vec<Candidate>, parts: Parts, role: Role) -> Result<Vec<Member>> {
    let headers = reconcile(&candidates, parts, role);
    let settled = candidates.into_iter().zip(headers).map(|(candidate, (mut header, new))| {
        let Candidate { path, device, file, .. } = candidate;
        let file = match file {
            None => files::create(&path, &mut header)?,
            Some(file) => {
                if new {
                    begin_anew(&file, &path, device, &mut header)?;
                }
                file
            }
        };
        Ok(Member { name: name_of(&path), path, device, file, header: Some(header) })
    });
    settled.collect()
}

fn begin_anew(file: &File, path: &Path, device: bool, header: &mut Header) -> Result<()> {
    let written = header
        .write_area(file)
        .and_then(|()| if device { Ok(()) } else { files::allocate(file, header.parts.member_bytes()) });
    written.map_err(|error| Error::os("cannot prepare", path, error))
}

/// A short name: the file's, or the kernel's for a device.
pub(super) fn name_of(path: &Path) -> String {
    let real = path.canonicalize();
    let path = real.as_deref().unwrap_or(path);
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::MIB;

    const PARTS: Parts = Parts { wal_bytes: 0, data_bytes: 15 * MIB };

    fn candidate(found: Found) -> Candidate {
        let size_bytes = PARTS.member_bytes();
        Candidate { path: "x".into(), device: false, file: None, found, size_bytes, allocated_bytes: 0 }
    }

    fn valid(set: u64, index: u32, members: u32) -> Candidate {
        candidate(Found::Valid(Header {
            data_filled_bytes: PARTS.data_bytes,
            ..Header::new(set, index, members, Role::Data, PARTS)
        }))
    }

    fn outcome(candidates: &[Candidate]) -> Vec<(u64, u32, bool)> {
        let headers = reconcile(candidates, PARTS, Role::Data);
        headers.iter().map(|(header, new)| (header.set, header.index, *new)).collect()
    }

    #[test]
    fn a_whole_set_is_kept_in_any_order() {
        assert_eq!(outcome(&[valid(5, 1, 2), valid(5, 0, 2)]), [(5, 1, false), (5, 0, false)]);
    }

    #[test]
    fn only_a_damaged_missing_or_differing_member_starts_over() {
        for odd in [candidate(Found::Damaged), candidate(Found::Absent), valid(6, 1, 3), valid(5, 0, 3)] {
            let joined = outcome(&[valid(5, 0, 3), odd, valid(5, 2, 3)]);
            assert_eq!(joined, [(5, 0, false), (5, 1, true), (5, 2, false)]);
        }
    }

    #[test]
    fn another_count_size_or_role_starts_over() {
        let all_new = |candidates: &[Candidate]| outcome(candidates).iter().all(|(.., new)| *new);
        assert!(all_new(&[valid(5, 0, 2), valid(5, 1, 2), candidate(Found::Absent)]));
        assert!(all_new(&[Candidate { size_bytes: 17 * MIB, ..valid(5, 0, 1) }]));
        let wal = reconcile(&[valid(5, 0, 1)], PARTS, Role::Wal);
        assert!(wal[0].1);
    }
}
