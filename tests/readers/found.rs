//! Content found on a drive, or in a target's folder, before stacktune writes or deletes anything there.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use stacktune::testing::load::volume::is_ours_at;
use stacktune::testing::stack::devices::disk_ids;
use stacktune::testing::stack::undo::others_in;

use super::{files, printed, put};

const SECTOR_BYTES: usize = 512;

/// A drive's bytes, and more files: of one folder, or of folders in it.
pub fn found(input: &[u8]) {
    let (drive, files) = files(input);
    let dir = tempfile::tempdir().unwrap();
    on_drive(dir.path(), drive);
    in_folder(&dir.path().join("folder"), &files);
}

/// Partition tables, and pages of ours.
fn on_drive(dir: &Path, bytes: &[u8]) {
    let node = dir.join("drive");
    fs::write(&node, bytes).unwrap();
    let ids = disk_ids(&node).unwrap();
    let is_id = |id: &String| id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    assert!(ids.len() <= 4 && ids.iter().all(is_id), "{ids:?}");
    for (n, sector) in bytes.chunks(SECTOR_BYTES).enumerate() {
        // A page of ours is only valid at its own place.
        let at = |place: usize| is_ours_at(sector, (place * SECTOR_BYTES) as u64);
        assert!(!(at(n + 8) && at(n + 1000)));
    }
}

/// Whether a folder's content is ours: anything else is named, and everything stays.
fn in_folder(folder: &Path, files: &[(&str, &[u8])]) {
    fs::create_dir(folder).unwrap();
    put(folder, files, is_in_it);
    fs::write(folder.join("letters"), "theirs").unwrap();
    let before = content(folder);
    let others = others_in(folder).unwrap();
    assert!(others.contains(&"letters".to_owned()) && others.is_sorted(), "{others:?}");
    others.iter().for_each(|name| drop(printed(name)));
    // A file of more than a few bytes that holds none of our marks is somebody else's.
    let marks = [&b"stacktun"[..], b"{", b"A set of"];
    for (path, bytes) in &before {
        let name = path.to_str().filter(|name| !name.contains('/'));
        let is_foreign = |bytes: &Vec<u8>| {
            let holds = |mark: &&[u8]| bytes.windows(mark.len()).any(|at| at == *mark);
            bytes.len() > 8 && !marks.iter().any(holds)
        };
        if let (Some(name), Some(true)) = (name, bytes.as_ref().map(is_foreign)) {
            assert!(others.iter().any(|other| other == name), "{name}: {others:?}");
        }
    }
    assert_eq!(content(folder), before);
}

fn is_in_it(name: &str) -> bool {
    let parts: Vec<_> = Path::new(name).components().collect();
    (1..=2).contains(&parts.len()) && parts.iter().all(|part| matches!(part, Component::Normal(_)))
}

/// Files with their bytes; folders without.
fn content(folder: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = PathBuf::from(path.file_name().unwrap());
        if path.is_dir() {
            found.extend(content(&path).into_iter().map(|(inner, bytes)| (name.join(inner), bytes)));
            found.insert(name, None);
        } else {
            found.insert(name, Some(fs::read(&path).unwrap()));
        }
    }
    found
}
