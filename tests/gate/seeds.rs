//! The fuzzer's kept inputs, fed to the readers: no input that once stopped a reader does so again.

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
            // The last one printed is the culprit.
            println!("{}", file.display());
            reader(&fs::read(&file).unwrap());
        }
    }
}
