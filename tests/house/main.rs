//! Rules that the compiler can't enforce within one crate: which modules import which, which files contain
//! unsafe code, and how long files and functions are.

mod documents;
mod public;
mod skips;
mod tidy;
mod tree;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use tree::{BASE, Source, root, sources};

/// The rows of the table at the head of a file: a module, and the modules it may import.
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

fn is_room(name: &str) -> bool {
    root().join(name).is_dir()
}

/// The names that the rooms re-export at their head, each with the path of its definition.
fn re_exports(sources: &[Source]) -> BTreeMap<Vec<String>, Vec<String>> {
    let modules: BTreeSet<_> = sources.iter().map(|source| source.module.clone()).collect();
    let heads = sources.iter().filter(|source| source.module.len() == 1 && source.only_passes_on());
    let named = heads.flat_map(|head| {
        let passed_on = head.passed_on(&modules).into_iter();
        passed_on.map(|(name, path)| (vec![head.module[0].clone(), name], path))
    });
    named.filter(|(name, _)| !modules.contains(name)).collect()
}

/// A file's imports from modules of its own room, and from other rooms, as paths of a room and a name.
fn imports_by_rooms(
    source: &Source,
    re_exports: &BTreeMap<Vec<String>, Vec<String>>,
) -> (BTreeSet<Vec<String>>, BTreeSet<Vec<String>>) {
    let room = &source.module[0];
    // In a module of tests inside a file, `super` leads elsewhere.
    let within = source.paths(&source.code()).into_iter();
    let mut within: BTreeSet<_> = within.map(|path| re_exports.get(&path).cloned().unwrap_or(path)).collect();
    within.retain(|path| path.len() > 1 && path[0] == *room && path[1] != module_of(source));
    let lines = source.text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let mut across = source.paths(&lines.collect::<Vec<_>>().join("\n"));
    // Every room may import the base.
    let is_other = |name: &String| is_room(name) && name != room && name != BASE;
    across.retain(|path| path.first().is_some_and(is_other));
    let short = |paths: BTreeSet<Vec<String>>| {
        paths.into_iter().map(|path| path[..path.len().min(2)].to_vec()).collect()
    };
    (short(within), short(across))
}

/// The module of its room that a file, or a file of its tests, belongs to.
fn module_of(source: &Source) -> &str {
    source.module.get(1).map_or("", |module| module.trim_end_matches("_tests"))
}

/// A file's imports that are missing from the map in `lib.rs` and from its room's own.
fn imports_off_the_map(
    source: &Source,
    rooms: &BTreeMap<String, BTreeSet<String>>,
    re_exports: &BTreeMap<Vec<String>, Vec<String>>,
) -> Vec<String> {
    let Some(room) = source.module.first() else { return Vec::new() };
    let allowed = match room.as_str() {
        "lib" | "main" | "testing" => return Vec::new(),
        _ => rooms.get(room).unwrap_or_else(|| panic!("{room} is new: src/lib.rs must show it")),
    };
    let own = table(&root().join(room).join("mod.rs"));
    let (mut within, mut across) = imports_by_rooms(source, re_exports);
    within.retain(|path| {
        let row = own.get(module_of(source));
        row.is_some_and(|allowed| own.contains_key(&path[1]) && !allowed.contains(&path[1]))
    });
    across.retain(|path| !allowed.contains(&path[0]));
    let shown: BTreeSet<_> = within.union(&across).map(|path| path.join("::")).collect();
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
fn each_folder_says_what_it_is_about_and_what_enters_and_leaves() {
    let mut silent = Vec::new();
    for source in sources().into_iter().filter(|source| source.path.ends_with("mod.rs")) {
        let head: Vec<_> = source.text.lines().take_while(|line| line.starts_with("//!")).collect();
        let head = head.join(" ").replace(" //! ", " ");
        // In subfolders of rooms, a first sentence is enough.
        let is_deep = source.module.len() > 2 || source.module.iter().any(|part| part == "fixture");
        let says_flow = head.contains("Enters: ") && head.contains("Leaves: ");
        if head.is_empty() || !(is_deep || says_flow) {
            silent.push(source.shown());
        }
    }
    assert!(silent.is_empty(), "not said at the head of {silent:?}");
}

#[test]
fn data_flows_one_way() {
    let rooms = table(&root().join("lib.rs"));
    assert!(rooms.len() >= 8, "the map in src/lib.rs can't be read: {rooms:?}");
    let (sources, mut found) = (sources(), BTreeSet::new());
    let re_exports = re_exports(&sources);
    for source in &sources {
        found.extend(imports_off_the_map(source, &rooms, &re_exports));
    }
    assert!(found.is_empty(), "not on the map:\n{}", found.into_iter().collect::<Vec<_>>().join("\n"));
}

/// The stack, the load and the meters depend only on settings, whatever their source.
#[test]
fn the_stack_the_load_and_the_meters_know_no_profiles() {
    let is_profile = |path: &Vec<String>| {
        path.first().is_some_and(|room| room == "settings")
            && path.get(1).is_some_and(|name| name.eq_ignore_ascii_case("profile"))
    };
    for source in sources().into_iter().filter(|source| !source.is_test()) {
        if ["stack", "load", "meter"].contains(&source.module[0].as_str()) {
            let found = source.paths(&source.code()).into_iter().any(|path| is_profile(&path));
            assert!(!found, "{} imports profiles", source.shown());
        }
    }
}

#[test]
fn the_map_shows_no_import_that_does_not_exist() {
    let rows = |map: &str, table: BTreeMap<String, BTreeSet<String>>| -> Vec<[String; 3]> {
        let entry = |row: &String, name: String| [map.to_owned(), row.clone(), name];
        table.iter().flat_map(|(row, names)| names.iter().map(|name| entry(row, name.clone()))).collect()
    };
    let rooms = table(&root().join("lib.rs"));
    let own = rooms.keys().flat_map(|room| rows(room, table(&root().join(room).join("mod.rs"))));
    let mut unused: BTreeSet<_> = own.collect();
    unused.extend(rows("lib", rooms));
    let sources = sources();
    let re_exports = re_exports(&sources);
    for source in &sources {
        let (within, across) = imports_by_rooms(source, &re_exports);
        let room = &source.module[0];
        for path in within {
            unused.remove(&[room.clone(), module_of(source).to_owned(), path[1].clone()]);
        }
        for path in across {
            unused.remove(&["lib".to_owned(), room.clone(), path[0].clone()]);
        }
    }
    let unused: Vec<_> = unused.iter().map(|[map, row, name]| format!("{map}: {row} → {name}")).collect();
    assert!(unused.is_empty(), "nothing imports what the tables allow:\n{}", unused.join("\n"));
}

/// An interface's capabilities are in its row; the rest of the program consults the row.
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
        "host/system/features.rs",
        "host/block/loops.rs",
        // Passthrough to NVMe drives, which no library wraps.
        "host/drive/nvme.rs",
        "host/system/threads.rs", // kcmp, which no library wraps
        "load/io/libaio.rs",
        "load/io/passthrough.rs",
        "load/io/ring.rs",
        "load/io/uring.rs",
        "load/kv/ffi.rs", // calls that the RocksDB crate does not wrap
        "meter/processors/tasks.rs",
        "load/nvme/memory.rs",   // maps memory on large pages
        "load/nvme/noiommu.rs",  // ioctls that no crate wraps
        "load/nvme/space.rs",    // maps memory for controllers
        "load/nvme/dma.rs",      // memory that a controller may write to at any time
        "load/nvme/transfer.rs", // lends such memory while no command refers to it
        "load/nvme/vfio.rs",     // maps registers and memory
        "runs/session/thread_priority.rs",
        "load/spdk/shim.rs",           // calls into C
        "load/workers/io_priority.rs", // ioprio_set, which no crate wraps
        "trace/live.rs",               // a tracepoint's filter, which no crate wraps
        "stack/guard/wipe.rs",
        "stack/program/enter.rs", // runs in a process before it executes a program
        "stack/program/place.rs", // a thread's own mount namespace
        "stack/undo/inside.rs",   // a thread's own mount namespace
        "load/volume/probe.rs",
        "load/volume/write_map/mapping.rs", // maps a file
    ];
    for source in sources() {
        let path = &source.path;
        let mut attributes = source.text.lines().filter(|line| line.trim_start().starts_with('#'));
        let allows = attributes.any(|line| line.contains("unsafe_code"));
        let is_named = named.iter().any(|name| path.ends_with(name));
        assert!(!allows || is_named, "{} has unsafe code: name it here, if it must be there", path.display());
    }
}

/// A worker takes no lock after its start. A contended lock shows at run time (see `hot_loop.rs`); this test
/// checks the source of its loop for any lock at all.
#[test]
fn the_code_of_a_workers_loop_knows_no_lock() {
    let workers = ["worker", "commit", "control", "ended", "offsets", "kv", "pacing"];
    let nvme = ["queue", "lane", "transfer", "dma"];
    let volume = ["stamp", "region", "write_map/tracked", "write_map/table", "write_map/mapping"];
    let files = |dir: &str, names: &[&str]| -> Vec<String> {
        names.iter().map(|name| format!("{dir}/{name}.rs")).collect()
    };
    let loops = [
        vec!["load/io".to_owned(), "meter/counts/cell.rs".to_owned()],
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

/// `println!` and the like panic once nobody reads the output, and would leave things that must be undone.
#[test]
fn nothing_is_said_in_a_way_that_panics_when_nobody_listens() {
    for source in sources() {
        let code = source.code();
        let says = ["println!(", "print!("].iter().any(|word| code.contains(word));
        assert!(source.is_test() || !says, "{} prints by a macro that panics", source.shown());
    }
}
