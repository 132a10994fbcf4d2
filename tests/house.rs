//! What one crate can't enforce: which modules import which, and how long files have become.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Each module with those it may import; all may import what all share.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("class", &[]),
    ("error", &[]),
    ("units", &[]),
    ("host", &["spdk"]),
    ("knobs", &["profile", "host"]),
    ("profile", &["knobs", "host"]),
    ("plan", &["profile"]),
    ("stack", &["host", "profile"]),
    ("volume", &["host"]),
    ("spdk", &[]),
    ("nvme", &[]),
    ("io", &["profile", "volume", "nvme", "spdk", "host"]),
    ("kv", &["profile", "plan", "volume", "meter"]),
    ("load", &["profile", "plan", "volume", "io", "kv", "meter", "nvme"]),
    ("remote", &["plan", "volume", "io", "load", "meter", "profile", "spdk"]),
    ("meter", &["profile", "host", "io"]),
    ("calibrate", &["profile", "plan", "volume", "io", "kv", "meter", "load", "host"]),
    ("record", &["meter", "host"]),
    (
        "session",
        &[
            "profile", "knobs", "plan", "stack", "volume", "io", "kv", "load", "meter", "record", "host",
            "nvme", "remote", "spdk",
        ],
    ),
    ("sweep", &["session", "record", "stack", "meter", "knobs", "profile", "host"]),
    ("paper", &["profile", "knobs", "meter", "record", "spdk"]),
    ("report", &["stack", "record", "meter", "knobs", "profile", "host", "session", "sweep", "paper"]),
    ("tui", &["session", "meter", "knobs", "profile", "host"]),
    ("cli", &["knobs", "profile"]),
];
const SHARED: &[&str] = &["class", "error", "units"];
/// The composition root may import everything.
const ROOT: &str = "app";
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

/// The module of the crate that a file belongs to.
fn module_of(path: &Path) -> String {
    let inside = path.strip_prefix(source_root()).unwrap();
    let first = inside.iter().next().unwrap().to_str().unwrap();
    first.trim_end_matches(".rs").trim_end_matches("_tests").to_owned()
}

fn imports(text: &str) -> BTreeSet<&str> {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    code.flat_map(|line| line.match_indices("crate::").map(move |(at, found)| &line[at + found.len()..]))
        .map(|rest| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or(""))
        .filter(|name| !name.is_empty() && name.starts_with(char::is_lowercase))
        .collect()
}

#[test]
fn data_flows_one_way() {
    let mut wrong = Vec::new();
    for path in rust_files() {
        let module = module_of(&path);
        if [ROOT, "lib", "main"].contains(&module.as_str()) {
            continue;
        }
        let (_, allowed) = MAY_IMPORT
            .iter()
            .find(|(name, _)| *name == module)
            .unwrap_or_else(|| panic!("{module} is new: say here what it may import"));
        let text = fs::read_to_string(&path).unwrap();
        for import in imports(&text) {
            if import != module && !SHARED.contains(&import) && !allowed.contains(&import) {
                wrong.push(format!("{} imports {import}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
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
        "calibrate.rs",
        "host/features.rs",
        "host/loops.rs",
        // The passthrough to NVMe drives, which no library wraps.
        "host/nvme.rs",
        "host/threads.rs", // kcmp, which no library wraps
        "io/libaio.rs",
        "io/passthrough.rs",
        "io/ring.rs",
        "io/uring.rs",
        "kv/ffi.rs", // what the crate of RocksDB does not wrap
        "meter/tasks.rs",
        "nvme/memory.rs",   // maps memory on large pages
        "nvme/noiommu.rs",  // ioctls that no crate wraps
        "nvme/space.rs",    // maps memory for controllers
        "nvme/dma.rs",      // memory that a controller writes to at any time
        "nvme/transfer.rs", // lends such memory while no command names it
        "nvme/vfio.rs",     // maps registers and memory
        "session/prompt.rs",
        "spdk/shim.rs", // calls of C
        "stack/wipe.rs",
        "tui/clock.rs",
        "volume/probe.rs",
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
    let loops =
        ["io", "load/worker.rs", "load/commit.rs", "load/control.rs", "load/offsets.rs", "load/pairs.rs"];
    let more = ["load/pacing.rs", "meter/cell.rs", "volume/stamp.rs", "volume/region.rs"];
    let more = more.into_iter().chain(["nvme/queue.rs", "nvme/lane.rs", "nvme/transfer.rs", "nvme/dma.rs"]);
    let locks = ["Mutex", "RwLock", "Condvar", "Barrier", "Once", "LazyLock", "mpsc", "channel("];
    for path in rust_files() {
        let inside = path.strip_prefix(source_root()).unwrap();
        if !loops.into_iter().chain(more.clone()).any(|part| inside.starts_with(part)) {
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
