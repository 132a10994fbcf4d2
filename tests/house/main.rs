//! What one crate can't enforce: which modules import which, where unsafe code stands, and how long
//! files and functions are.

mod documents;
mod public;
mod skips;
mod tidy;
mod tree;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use tree::{Source, root, sources};

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

/// The imports of a file that the map in `lib.rs`, or its room's own, does not have.
fn imports_off_the_map(source: &Source, rooms: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let [room, rest @ ..] = source.module.as_slice() else { return Vec::new() };
    let is_room = |name: &String| root().join(name).is_dir();
    let none = BTreeSet::new();
    let allowed = match room.as_str() {
        "lib" | "main" | "testing" => return Vec::new(),
        _ if is_room(room) => {
            rooms.get(room).unwrap_or_else(|| panic!("{room} is new: src/lib.rs must show it"))
        }
        // What all share imports no room.
        _ => &none,
    };
    let own = if is_room(room) { table(&root().join(room).join("mod.rs")) } else { BTreeMap::new() };
    let module = rest.first().map_or("", |module| module.trim_end_matches("_tests"));
    let leaves_room = |path: &Vec<String>| path.first().is_some_and(|first| is_room(first) && first != room);
    // In a module of tests inside a file, `super` leads elsewhere.
    let within = source.paths(&source.code()).into_iter().filter(|path| match path.as_slice() {
        [first, second, ..] if first == room && module != second => {
            own.get(module).is_some_and(|allowed| own.contains_key(second) && !allowed.contains(second))
        }
        _ => false,
    });
    let lines = source.text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let all = source.paths(&lines.collect::<Vec<_>>().join("\n"));
    let across = all.into_iter().filter(|path| leaves_room(path) && !allowed.contains(&path[0]));
    let shown = within.chain(across).map(|path| path[..path.len().min(2)].join("::"));
    let shown: BTreeSet<_> = shown.collect();
    shown.into_iter().map(|path| format!("{} imports {path}", source.module.join("/"))).collect()
}

#[test]
fn each_room_has_a_table_of_all_its_modules() {
    let tables: BTreeMap<_, _> = table(&root().join("lib.rs"))
        .into_keys()
        .map(|room| (room.clone(), table(&root().join(&room).join("mod.rs"))))
        .collect();
    for source in sources() {
        let [room, module, ..] = source.module.as_slice() else { continue };
        let is_test =
            ["tests", "fixture", "testing"].contains(&module.as_str()) || module.ends_with("_tests");
        let has_row = is_test || tables.get(room).is_some_and(|rows| rows.contains_key(module));
        assert!(has_row || room == "snapshots", "src/{room}/mod.rs has no row for {module}");
    }
}

#[test]
fn data_flows_one_way() {
    let rooms = table(&root().join("lib.rs"));
    assert!(rooms.len() >= 8, "the map in src/lib.rs can't be read: {rooms:?}");
    let found: BTreeSet<String> =
        sources().iter().flat_map(|source| imports_off_the_map(source, &rooms)).collect();
    assert!(found.is_empty(), "not on the map:\n{}", found.into_iter().collect::<Vec<_>>().join("\n"));
}

/// What an interface can do stands in its row; the rest of the program asks the row.
#[test]
fn interfaces_are_named_in_their_rows_and_the_launch_table_alone() {
    let named = ["settings/interface.rs", "load/io"];
    for source in sources() {
        let inside = source.path.strip_prefix(root()).unwrap();
        let is_fixture = source.module.iter().any(|part| part == "fixture");
        if source.is_test() || is_fixture || named.iter().any(|part| inside.starts_with(part)) {
            continue;
        }
        let code = source.code();
        let names = code.match_indices("Interface::").filter(|(at, found)| {
            let rest = &code[at + found.len()..];
            // Variants are in camel case; constants are not.
            let variant = rest.starts_with(char::is_uppercase) && rest[1..].starts_with(char::is_lowercase);
            variant || rest.starts_with(['{', '*'])
        });
        let lines: Vec<_> = names.map(|(at, _)| code[at..].lines().next().unwrap_or("")).collect();
        assert!(lines.is_empty(), "{} names interfaces, ask the row: {lines:?}", source.shown());
    }
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
        "stack/guard/wipe.rs",
        "load/volume/probe.rs",
    ];
    for source in sources() {
        let path = &source.path;
        let mut attributes = source.text.lines().filter(|line| line.trim_start().starts_with('#'));
        let allows = attributes.any(|line| line.contains("unsafe_code"));
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
    for source in sources() {
        let inside = source.path.strip_prefix(root()).unwrap();
        if !loops.iter().any(|part| inside.starts_with(part)) {
            continue;
        }
        let code = source.code();
        for lock in locks {
            assert!(!code.contains(lock), "{} names {lock}", source.shown());
        }
    }
}

/// `println!` and its like panic where nobody reads any more, and leave behind what is to be undone.
#[test]
fn nothing_is_said_in_a_way_that_panics_when_nobody_listens() {
    for source in sources() {
        let code = source.code();
        let says = ["println!(", "print!("].iter().any(|word| code.contains(word));
        assert!(source.is_test() || !says, "{} prints by a macro that panics", source.shown());
    }
}
