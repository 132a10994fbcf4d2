//! What is on a block device: signatures, and its first and last MiB.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::error::{Error, Result};
use crate::host::{Device, member_of};
use crate::json;
use crate::printable::Shown as _;
use crate::stack::devices::node;
use crate::stack::runner::{Answer, BLKID, Runner, WIPEFS};
use crate::units::MIB;

/// Bytes at the beginning and at the end that are checked completely.
pub(super) const EDGE_BYTES: u64 = MIB;
/// Pages are judged one by one: zero, stacktune's own, or foreign.
pub(super) const PAGE_BYTES: u64 = 4096;

/// Recognizes data that stacktune wrote itself.
pub trait OwnData: Sync {
    /// Whether the first MiB of the device is a valid header of stacktune.
    fn header(&self, head: &[u8]) -> bool;

    /// The data set that the header belongs to; none if the header is not valid.
    fn set(&self, _head: &[u8]) -> Option<u64> {
        None
    }

    /// Whether the header says that stacktune wrote the page at byte `offset`; by default it says so of all pages.
    fn says_filled(&self, _head: &[u8], _offset: u64) -> bool {
        true
    }

    /// Whether `page`, read from the device at byte `offset` (a multiple of 4 KiB; at most 4 KiB), is data
    /// that stacktune wrote; in the first MiB, whether it is part of a damaged stacktune header.
    fn page(&self, device: &File, offset: u64, page: &[u8]) -> bool;
}

/// A mark by which programs recognise a file system, a partition table and the like.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Signature {
    /// The device or partition that it is on.
    pub(super) node: PathBuf,
    /// What it identifies, in libblkid's words.
    pub(super) kind: String,
    /// The byte at which it begins, if known.
    pub(super) offset: Option<u64>,
    /// The kind of set that it says the device is a member of.
    pub(super) member: Option<String>,
}

impl Signature {
    pub(super) fn describe(&self) -> String {
        let node = self.node.shown();
        match self.offset {
            Some(offset) => format!("{} signature at byte {offset} of {node}", self.kind),
            None => format!("{} signature on {node}", self.kind),
        }
    }
}

/// All signatures on a device and on its partitions, as wipefs and libblkid know them.
pub(super) fn signatures(runner: &Runner, device: &Device) -> Result<Vec<Signature>> {
    // A container may lack the partitions' nodes, but their content is on the device all the same.
    let partitions = device.partitions.iter().map(|name| node::of(name)).collect::<Result<Vec<_>>>()?;
    let nodes = std::iter::once(device.path.clone()).chain(partitions.into_iter().flatten());
    let mut found = BTreeSet::new();
    for node in nodes {
        let arguments = ["--no-act".as_ref(), "--json".as_ref(), node.as_os_str()];
        let by_wipefs = parse_wipefs(&node, &runner.run(WIPEFS, &arguments)?)?;
        let arguments = ["-p".as_ref(), "-o".as_ref(), "export".as_ref(), node.as_os_str()];
        let by_blkid = parse_blkid(&node, &runner.run(BLKID, &arguments)?)?;
        // libblkid adds signatures for which wipefs has no offset, and says what a signature is used for.
        for signature in by_blkid {
            if signature.member.is_some() || !by_wipefs.iter().any(|other| other.kind == signature.kind) {
                found.insert(signature);
            }
        }
        found.extend(by_wipefs);
    }
    Ok(found.into_iter().collect())
}

fn unreadable(node: &Path, tool: &str, why: &str) -> Error {
    let why = if why.is_empty() { "no reason given" } else { why };
    Error::refused(format!("{tool} cannot identify what is on {}: {why}", node.shown()))
        .hint("a device with unknown content is never touched")
}

fn parse_wipefs(node: &Path, answer: &Answer) -> Result<Vec<Signature>> {
    #[derive(Deserialize)]
    struct Found {
        signatures: Vec<Entry>,
    }
    #[derive(Deserialize)]
    struct Entry {
        offset: String,
        #[serde(rename = "type")]
        kind: String,
    }
    if answer.status != 0 {
        return Err(unreadable(node, "wipefs", &answer.stderr));
    }
    // Without signatures it prints nothing.
    if answer.stdout.trim().is_empty() {
        return Ok(Vec::new());
    }
    let found: Found = json::read(answer.stdout.as_bytes())
        .map_err(|error| unreadable(node, "wipefs", &format!("its output can't be parsed ({error})")))?;
    let entries = found.signatures.into_iter();
    Ok(entries
        .map(|entry| Signature {
            node: node.to_owned(),
            offset: entry.offset.strip_prefix("0x").and_then(|hex| u64::from_str_radix(hex, 16).ok()),
            member: member_of(&entry.kind, ""),
            kind: entry.kind,
        })
        .collect())
}

fn parse_blkid(node: &Path, answer: &Answer) -> Result<Vec<Signature>> {
    let signature = |kind: &str, usage: &str| Signature {
        node: node.to_owned(),
        kind: kind.to_owned(),
        offset: None,
        member: member_of(kind, usage),
    };
    match answer.status {
        0 => {}
        // Nothing found.
        2 => return Ok(Vec::new()),
        8 => return Ok(vec![signature("contradictory", "")]),
        _ => return Err(unreadable(node, "blkid", &answer.stderr)),
    }
    let value = |key: &str| {
        answer
            .stdout
            .lines()
            .find_map(|line| line.split_once('=').filter(|(name, _)| *name == key))
            .map(|(_, value)| value)
    };
    let kind = value("TYPE").map(|kind| signature(kind, value("USAGE").unwrap_or("")));
    let table = value("PTTYPE").map(|kind| signature(kind, ""));
    Ok(kind.into_iter().chain(table).collect())
}

/// The first and the last MiB.
pub(super) struct Edges {
    pub(super) head: Vec<u8>,
    pub(super) tail_at: u64,
    pub(super) tail: Vec<u8>,
}

pub(super) fn edges(file: &File, device: &Device) -> Result<Edges> {
    let failed = |error| Error::os("cannot read", &device.path, error);
    let size = device.size_bytes;
    let head = read(file, 0, EDGE_BYTES.min(size)).map_err(failed)?;
    let tail_at = size.saturating_sub(EDGE_BYTES) / PAGE_BYTES * PAGE_BYTES;
    let tail = read(file, tail_at, size - tail_at).map_err(failed)?;
    Ok(Edges { head, tail_at, tail })
}

pub(super) fn crc(head: &[u8], tail: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(head), tail)
}

/// The checksum of the first and the last MiB alone.
pub(super) fn edges_crc(file: &File, device: &Device) -> Result<u32> {
    let Edges { head, tail, .. } = edges(file, device)?;
    Ok(crc(&head, &tail))
}

pub(super) fn read(file: &File, offset: u64, bytes: u64) -> std::io::Result<Vec<u8>> {
    let mut buffer = vec![0; bytes as usize];
    file.read_exact_at(&mut buffer, offset)?;
    Ok(buffer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: i32, stdout: &str) -> Answer {
        Answer { status, stdout: stdout.to_owned(), stderr: "went wrong".to_owned() }
    }

    #[test]
    fn wipefs_output_gives_signatures_with_offsets() {
        let node = Path::new("/dev/x");
        assert!(parse_wipefs(node, &answer(0, "")).unwrap().is_empty());
        let json =
            r#"{"signatures": [{"device":"x","offset":"0x438","type":"ext4","uuid":null,"label":null}]}"#;
        let found = parse_wipefs(node, &answer(0, json)).unwrap();
        assert_eq!(found[0].describe(), "ext4 signature at byte 1080 of /dev/x");
    }

    #[test]
    fn a_tool_that_fails_or_prints_nonsense_is_a_refusal() {
        let node = Path::new("/dev/x");
        assert_eq!(parse_wipefs(node, &answer(1, "")).unwrap_err().exit_status(), 3);
        assert_eq!(parse_wipefs(node, &answer(0, "what?")).unwrap_err().exit_status(), 3);
        let error = parse_blkid(node, &answer(4, "")).unwrap_err();
        assert_eq!(error.exit_status(), 3);
        assert!(error.what.contains("went wrong"));
    }

    #[test]
    fn blkid_output_gives_members_tables_and_contradictions() {
        let node = Path::new("/dev/x");
        let found =
            parse_blkid(node, &answer(0, "DEVNAME=/dev/x\nTYPE=zfs_member\nUSAGE=filesystem\n")).unwrap();
        assert_eq!(found[0].member.as_deref(), Some("ZFS"));
        let found = parse_blkid(node, &answer(0, "TYPE=isw_raid_member\nUSAGE=raid\nPTTYPE=gpt\n")).unwrap();
        assert_eq!(found[0].member.as_deref(), Some("isw_raid_member"));
        assert_eq!((found[1].kind.as_str(), &found[1].member), ("gpt", &None));
        assert_eq!(parse_blkid(node, &answer(8, "")).unwrap()[0].kind, "contradictory");
        assert!(parse_blkid(node, &answer(2, "")).unwrap().is_empty());
    }
}
