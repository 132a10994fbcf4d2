//! State of stacktune's earlier runs, and answers of drives: in folders and on devices that others may own.

use std::fs;
use std::path::Path;

use stacktune::testing::load::kv::{Acks, DatabaseFolder};
use stacktune::testing::load::nvme::{ControllerFacts, Namespace, active_namespaces};
use stacktune::testing::load::volume::header::{COPIES_AT, COPY_BYTES, Found, Header};
use stacktune::testing::load::volume::write_map::WriteMap;
use stacktune::testing::load::volume::{Extent, Region};

use super::{files, printed};

/// Bytes of a drive's answer to Identify.
const IDENTIFY_BYTES: usize = 4096;

/// Files by name, each passed to the reader of that name.
pub fn state(input: &[u8]) {
    let (_, files) = files(input);
    let dir = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        match name {
            "wal.acks" => acks(dir.path(), bytes),
            "stacktune-pairs.json" => marker(dir.path(), bytes),
            "header" => header(dir.path(), bytes),
            "identify" => identify(bytes),
            "writes" => writes(dir.path(), bytes),
            _ => {}
        }
    }
}

/// `wal.acks`: others' files stay unchanged, and commits of another data set are counted.
fn acks(dir: &Path, bytes: &[u8]) {
    let path = dir.join("wal.acks");
    fs::write(&path, bytes).unwrap();
    match Acks::open(&path, 7) {
        Ok(acks) => {
            let noted = acks.noted().unwrap();
            assert!(noted.len() <= bytes.len() / 8);
            if let Some(note) = acks.adopt().unwrap() {
                printed(&note);
                assert_eq!(acks.noted().unwrap(), []);
            }
        }
        Err(error) => {
            printed(&error.to_string());
            assert_eq!(fs::read(&path).unwrap(), bytes);
        }
    }
}

/// The marker of a data set: reading it changes nothing.
fn marker(dir: &Path, bytes: &[u8]) {
    let (path, database) = (dir.join("stacktune-pairs.json"), dir.join("rocksdb"));
    fs::write(&path, bytes).unwrap();
    for makes_one in [false, true] {
        if makes_one {
            fs::create_dir_all(&database).unwrap();
            fs::write(database.join("CURRENT"), "").unwrap();
            fs::write(database.join("IDENTITY"), "one").unwrap();
        }
        let place = DatabaseFolder::new(dir);
        match place.marker() {
            Ok(marker) => {
                let marker = marker.unwrap();
                marker.sequence_base();
                marker.pairs.logged();
                // Somebody else's database is not taken for ours.
                assert!(!makes_one || !marker.loaded || marker.identity.as_deref() == Some("one"));
            }
            Err(error) => drop(printed(&error.to_string())),
        }
    }
    fs::remove_dir_all(database).unwrap();
    assert_eq!(fs::read(&path).unwrap(), bytes);
}

/// The copies of a member's header. A header that is read survives writing.
fn header(dir: &Path, bytes: &[u8]) {
    let sealed = |copy: &[u8]| {
        let mut copy = copy.to_vec();
        copy.resize(COPY_BYTES, 0);
        // A forger can compute the checksum too.
        let checksum = crc32c::crc32c(&copy[..COPY_BYTES - 4]);
        copy[COPY_BYTES - 4..].copy_from_slice(&checksum.to_le_bytes());
        copy
    };
    let plain: Vec<&[u8]> = bytes.chunks(COPY_BYTES).take(COPIES_AT.len()).collect();
    let sealed: Vec<Vec<u8>> = plain.iter().map(|copy| sealed(copy)).collect();
    let file = dir.join("member");
    for copies in [plain, sealed.iter().map(Vec::as_slice).collect()] {
        let found = Found::of(&copies);
        if let Found::Valid(header) = &found {
            assert_eq!(Header::decode(&header.encode()).as_ref(), Some(header));
            for at in [0, 1 << 20, header.parts.wal_bytes, u64::MAX] {
                header.says_filled(at);
            }
        }
        let mut member = Vec::new();
        for (copy, at) in copies.iter().zip(COPIES_AT) {
            member.resize(at as usize, 0);
            member.extend_from_slice(copy);
        }
        fs::write(&file, member).unwrap();
        Found::read(&fs::File::open(&file).unwrap()).unwrap();
    }
}

/// A write map: no word in it leads out of the file, and reading it changes nothing.
fn writes(dir: &Path, bytes: &[u8]) {
    // Past the seal, which a forger can compute too: the data set it belongs to, and that it was closed.
    let of_set = [u64::from_le_bytes(*b"stwrites"), 1, 7, 8, 5, 2, 9];
    let mut sealed = bytes.to_vec();
    sealed.resize(sealed.len().max(4096), 0);
    for (at, words) in [(0, &of_set[..]), (7, &[2, 4 << 20]), (12, &[1, 2 << 20])] {
        let words: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        sealed[8 * at..][..words.len()].copy_from_slice(&words);
    }
    let [data, wal] = [(0, 2, 4_u64), (1, 1, 2)].map(|(id, extents, mib)| Region {
        id,
        set: 7 + u64::from(id),
        extents: (0..extents)
            .map(|member| Extent { path: "x".into(), identity: None, member, offset_bytes: 3 << 20 })
            .collect(),
        extent_bytes: mib << 20,
    });
    for bytes in [bytes, &sealed] {
        let path = dir.join("writes");
        fs::write(&path, bytes).unwrap();
        let file = fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let Ok(map) = WriteMap::compare(file, [&data, &wal], 5, 9) else { continue };
        for region in [&data, &wal] {
            map.under_way(region).unwrap();
            let Ok(table) = map.table(region) else { continue };
            for (extent, place) in [(0, 0), (0, region.extent_bytes - 512)] {
                std::hint::black_box(table.expected(extent, (3 << 20) + place));
            }
        }
        drop(map);
        assert_eq!(fs::read(&path).unwrap(), bytes);
    }
}

/// A drive's answer to Identify.
fn identify(bytes: &[u8]) {
    let mut data = bytes.to_vec();
    data.resize(IDENTIFY_BYTES, 0);
    let facts = ControllerFacts::of(&data, 4096);
    printed(&format!("{facts:?}"));
    assert!(active_namespaces(&data).iter().all(|id| *id != 0));
    match Namespace::of(1, &data) {
        Ok(Some(space)) => assert!(space.bytes() >= space.blocks),
        Ok(None) => {}
        Err(error) => drop(printed(&error.to_string())),
    }
}
