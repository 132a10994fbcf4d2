//! What the fuzzer kept, through the readers that it fuzzes: no input that ever stopped one does so again.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::readers::READERS;

#[test]
fn every_kept_seed_passes_its_reader() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds");
    let folders = fs::read_dir(&seeds).unwrap().map(|entry| entry.unwrap().file_name());
    let folders: BTreeSet<_> = folders.map(|name| name.into_string().unwrap()).collect();
    assert_eq!(folders, READERS.iter().map(|(name, _)| (*name).to_owned()).collect());
    for (name, reader) in READERS {
        let files = fs::read_dir(seeds.join(name)).unwrap().map(|entry| entry.unwrap().path());
        let files: BTreeSet<_> = files.collect();
        assert!(files.len() > 2, "{name} has {files:?}");
        for file in files {
            // The one that is at fault is the last.
            println!("{}", file.display());
            reader(&fs::read(&file).unwrap());
        }
    }
}
