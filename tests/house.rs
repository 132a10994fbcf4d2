//! What one crate can't enforce: which modules import which, and how long files have become.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// What all may import.
const SHARED: &[&str] = &["class", "error", "units"];
/// Arrows against the tables, which are to go: importing file (from `src`) and imported module.
const STILL_WRONG: &[(&str, &str)] = &[
    ("host/spdk", "load::spdk"),
    ("meter/cell", "load::io"),
    ("meter/meters", "load::io"),
    ("meter/source", "load::io"),
    ("meter/tasks", "load::io"),
    ("meter/window", "load::io"),
];
const FILE_LINES_MAX: usize = 700;

fn sources(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
}

fn source_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

fn rust_files() -> Vec<PathBuf> {
    let files = sources(&source_root());
    files.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "rs")).collect()
}

/// The rows of the table at the head of a file: a module, and what it may import.
fn table(path: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let text = fs::read_to_string(path).unwrap();
    let rows = text.lines().filter_map(|line| line.strip_prefix("//! | [`")?.split_once("`] | "));
    let rows = rows.map(|(module, rest)| {
        let allowed = rest.trim_end_matches(" |").rsplit(" | ").next().unwrap();
        let names = allowed.split(", ").filter(|name| *name != "–").map(str::to_owned);
        (module.to_owned(), names.collect())
    });
    rows.collect()
}

/// A file's place below `src`, as the modules it lies in: `load/io/uring.rs` is `load`, `io`, `uring`.
fn place(path: &Path) -> Vec<String> {
    let inside = path.strip_prefix(source_root()).unwrap().with_extension("");
    inside.iter().map(|part| part.to_str().unwrap().trim_end_matches("_tests").to_owned()).collect()
}

/// The paths that a file names after `crate::`, each as its first two parts.
fn imports(text: &str) -> BTreeSet<(String, String)> {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let paths =
        code.flat_map(|line| line.match_indices("crate::").map(|(at, found)| &line[at + found.len()..]));
    let name = |text: &str| {
        let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
        text[..end].to_owned()
    };
    let pairs = paths.map(|path| {
        let first = name(path);
        let rest = path[first.len()..].strip_prefix("::").map(name).unwrap_or_default();
        (first, rest)
    });
    pairs.filter(|(first, _)| first.starts_with(char::is_lowercase)).collect()
}

/// The imports of a file that the map in `lib.rs`, or its room's own, does not have.
fn imports_off_the_map(path: &Path, rooms: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let place = place(path);
    let [room, module, ..] = place.as_slice() else { return Vec::new() };
    let allowed = rooms.get(room).unwrap_or_else(|| panic!("{room} is new: src/lib.rs must show it"));
    let own = table(&source_root().join(room).join("mod.rs"));
    let text = fs::read_to_string(path).unwrap();
    let off = imports(&text).into_iter().filter(|(first, second)| {
        if first == room {
            let crosses = own.contains_key(module) && own.contains_key(second) && module != second;
            return crosses && !own[module].contains(second);
        }
        !SHARED.contains(&first.as_str()) && !allowed.contains(first)
    });
    off.map(|(first, second)| format!("{} imports {first}::{second}", place.join("/"))).collect()
}

#[test]
fn data_flows_one_way() {
    let rooms = table(&source_root().join("lib.rs"));
    assert!(rooms.len() >= 8, "the map in src/lib.rs can't be read: {rooms:?}");
    let mut found: BTreeSet<String> =
        rust_files().iter().flat_map(|path| imports_off_the_map(path, &rooms)).collect();
    for (file, import) in STILL_WRONG {
        let line = format!("{file} imports {import}");
        assert!(found.remove(&line), "no longer wrong, take it from the list: {line}");
    }
    assert!(found.is_empty(), "not on the map:\n{}", found.into_iter().collect::<Vec<_>>().join("\n"));
}

#[test]
fn files_are_about_one_thing() {
    let long = rust_files().into_iter().filter_map(|path| {
        let lines = fs::read_to_string(&path).unwrap().lines().count();
        (lines > FILE_LINES_MAX).then(|| format!("{} has {lines} lines", path.display()))
    });
    let long: Vec<_> = long.collect();
    assert!(long.is_empty(), "{}", long.join("\n"));
}

#[test]
fn unsafe_code_is_allowed_in_named_places_only() {
    let named = [
        "app/signals.rs",
        "load/calibrate.rs",
        "host/features.rs",
        "host/loops.rs",
        // The passthrough to NVMe drives, which no library wraps.
        "host/nvme.rs",
        "host/threads.rs", // kcmp, which no library wraps
        "load/io/libaio.rs",
        "load/io/passthrough.rs",
        "load/io/ring.rs",
        "load/io/uring.rs",
        "load/kv/ffi.rs", // what the crate of RocksDB does not wrap
        "meter/tasks.rs",
        "load/nvme/memory.rs",   // maps memory on large pages
        "load/nvme/noiommu.rs",  // ioctls that no crate wraps
        "load/nvme/space.rs",    // maps memory for controllers
        "load/nvme/dma.rs",      // memory that a controller writes to at any time
        "load/nvme/transfer.rs", // lends such memory while no command names it
        "load/nvme/vfio.rs",     // maps registers and memory
        "runs/session/thread_priority.rs",
        "load/spdk/shim.rs", // calls of C
        "stack/wipe.rs",
        "ui/tui/clock.rs",
        "load/volume/probe.rs",
    ];
    for path in rust_files() {
        let allows = fs::read_to_string(&path).unwrap().contains("allow(unsafe_code)");
        let is_named = named.iter().any(|name| path.ends_with(name));
        assert!(!allows || is_named, "{} has unsafe code: name it here, if it must be there", path.display());
    }
}

/// A worker takes no lock after its start. One in contention shows when it runs (see `hot_loop.rs`);
/// that there is none at all shows here, in what its loop is made of.
#[test]
fn the_code_of_a_workers_loop_knows_no_lock() {
    let workers = ["worker", "commit", "control", "offsets", "kv", "pacing"];
    let nvme = ["queue", "lane", "transfer", "dma"];
    let volume = ["stamp", "region"];
    let files = |dir: &str, names: &[&str]| -> Vec<String> {
        names.iter().map(|name| format!("{dir}/{name}.rs")).collect()
    };
    let loops = [
        vec!["load/io".to_owned(), "meter/cell.rs".to_owned()],
        files("load/workers", &workers),
        files("load/nvme", &nvme),
        files("load/volume", &volume),
    ]
    .concat();
    let locks = ["Mutex", "RwLock", "Condvar", "Barrier", "Once", "LazyLock", "mpsc", "channel("];
    for path in rust_files() {
        let inside = path.strip_prefix(source_root()).unwrap();
        if !loops.iter().any(|part| inside.starts_with(part)) {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap_or("");
        for lock in locks {
            assert!(!code.contains(lock), "{} names {lock}", path.display());
        }
    }
}

/// `println!` and its like panic where nobody reads any more, and leave behind what is to be undone.
#[test]
fn nothing_is_said_in_a_way_that_panics_when_nobody_listens() {
    for path in rust_files() {
        let text = fs::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap_or("");
        let is_test = path.file_stem().is_some_and(|stem| stem.to_string_lossy().ends_with("tests"));
        let says = ["println!(", "print!("].iter().any(|word| code.contains(word));
        assert!(is_test || !says, "{} prints by a macro that panics", path.display());
    }
}
