//! Every command as a script would use it: its output, its JSON, its exit status, and the content of a
//! recording.

use std::fs;

use crate::common;
use crate::common::devices::Loops;
use crate::common::recorded::{Home, Recorded, json, texts};

pub const CLASSES: [&str; 4] = ["scan", "point", "wal", "background"];

/// Simulated devices: a minute of load takes no time.
const SIMULATED: &str =
    "[io]\ninterface = \"sim\"\n[wal]\nrate = \"1MB/s\"\n[background]\nrate = \"1MB/s\"\n";

pub fn simulated(home: &Home, out: &str, arguments: &[&str]) -> Recorded {
    let profile = home.profile("simulated", SIMULATED);
    home.record(&profile, out, arguments)
}

#[test]
fn each_list_comes_as_text_and_as_json() {
    let home = Home::new();
    let knobs = home.run(&["knobs", "--json"]).json();
    let listed: Vec<_> =
        knobs.as_array().unwrap().iter().map(|knob| knob["path"].as_str().unwrap()).collect();
    let all: Vec<_> =
        stacktune::testing::settings::knobs::all().iter().map(|knob| knob.path.as_str()).collect();
    assert_eq!(listed, all);
    let text = home.run(&["knobs"]);
    for path in all {
        assert!(text.out.contains(&format!("{path} = ")), "{path}");
    }
    let profiles = home.run(&["profiles", "--json"]).json();
    let names: Vec<_> =
        profiles.as_array().unwrap().iter().map(|entry| entry["name"].as_str().unwrap()).collect();
    let built_in = [
        "demo",
        "inside-the-drive",
        "kv-figure4",
        "kv-mix",
        "lab",
        "lowest-latency",
        "mqssd",
        "mqssd-table3",
        "mqssd-table3-scans",
        "mqssd-table4",
        "rocksdb",
        "run-aerospike",
        "run-db_bench",
        "run-duckdb",
        "run-fio",
        "run-leanstore",
        "run-leveldb",
        "run-mariadb",
        "run-mysql",
        "run-pgbench",
        "run-redis",
        "run-sqlite",
        "run-sqlite-random",
        "run-tpcc",
        "run-varmail",
        "section4-7-sleep",
        "table2-1-baseline",
        "table2-2-no-fdatasync",
        "table2-3-async",
        "table2-4-direct",
        "table2-5-block",
        "tree-default",
        "tree-figure6",
        "tree-figure8",
        "tree-mixed",
        "tree-small-values",
    ];
    assert_eq!(names, built_in);
    let text = home.run(&["profiles"]);
    assert!(built_in.iter().all(|name| text.out.contains(name)), "{}", text.out);
    let host = home.run(&["host", "--json"]).json();
    assert!(host["memory_bytes"].as_u64() > Some(1 << 20), "{host:#}");
    assert!(home.run(&["host"]).out.contains("memory"));
}

#[test]
fn the_users_profiles_are_listed_and_found_by_name() {
    let home = Home::new();
    let folder = home.path(".config/stacktune/profiles");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("mine.toml"), "about = \"my own\"\n").unwrap();
    fs::write(folder.join("broken.toml"), "depth = 1\n").unwrap();
    let listed = home.run(&["profiles"]);
    listed.ended(0, &[]);
    assert!(listed.out.contains("my own") && listed.out.contains("broken"), "{}", listed.out);
    home.run(&["check", "mine"]).ended(0, &[]);
    home.run(&["check", "mien"]).ended(2, &["there is no profile `mien`; did you mean `mine`?"]);
}

#[test]
fn completions_and_the_man_page_name_every_command() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = home.run(&["completions", shell]);
        script.ended(0, &[]);
        for command in
            ["record", "show", "compare", "verify", "knobs", "profiles", "host", "calibrate", "check"]
        {
            assert!(script.out.contains(command), "{shell}: {command}");
        }
    }
    let page = home.run(&["man"]);
    page.ended(0, &[]);
    assert!(page.out.starts_with(".ie") || page.out.contains(".TH stacktune"), "{}", &page.out[..200]);
    for command in ["RECORD", "SHOW", "COMPARE", "VERIFY", "CALIBRATE"] {
        assert!(page.out.contains(&format!("STACKTUNE {command}")), "{command}");
    }
    home.run(&["completions", "tcsh"]).ended(2, &["bash, zsh, fish"]);
}

#[test]
fn help_explains_topics_and_commands() {
    let home = Home::new();
    let flags = home.run(&["help", "flags"]);
    flags.ended(0, &[]);
    assert!(flags.out.starts_with("Flags\n") && !flags.out.contains('\x1b'), "{}", flags.out);
    assert!(flags.out.contains("data fits memory"));
    assert!(home.run(&["help", "record"]).out.contains("--until-steady"));
    let list = home.run(&["help"]).out;
    assert!(list.contains("calibrate") && list.contains("userspace"), "{list}");
    home.run(&["help", "flgas"]).ended(2, &["did you mean `flags`?"]);
}

#[test]
fn bad_input_is_refused_with_what_was_meant() {
    let home = Home::new();
    let table: &[(&[&str], &[&str])] = &[
        (&["check", "demmo"], &["no profile `demmo`", "did you mean `demo`?"]),
        (&["record", "demmo", "--out", "out"], &["did you mean `demo`?"]),
        (&["check", "./none.toml"], &["none.toml"]),
        (&["check", "demo", "--set", "scan.dept=3"], &["did you mean `scan.depth`?"]),
        (&["check", "demo", "--set", "scan.depth=0"], &["a whole number from 1 to 1024"]),
        (&["check", "demo", "--set", "scan.depth"], &["KNOB=VALUE"]),
        (&["check", "demo", "--set", "wal.sync=fsync"], &["fdatasync"]),
        (
            &["check", "demo", "--set", "stack.raid=raid5"],
            &["`stack.raid` must be none, md0", "not \"raid5\""],
        ),
        (
            &["record", "demo", "--out", "out", "--set", "stack.raid=btrfs1"],
            &["`stack.raid` can't be btrfs1: Btrfs's own RAID requires"],
        ),
        (
            &["record", "demo", "--out", "out", "--set", "stack.filesystem=xfs"],
            &["`stack.filesystem` can't be xfs"],
        ),
        (&["check", "demo", "--set", "target.devices=/dev/none"], &["there is no block device /dev/none"]),
        (
            &["record", "demo", "--out", "out", "--set", "target.devices=/dev/none"],
            &["no block device /dev/none"],
        ),
        (&["record", "demo", "--out", "out", "--for", "0s"], &["a time above 0"]),
        (&["record", "demo", "--out", "out", "--for", "soon"], &["soon"]),
        (&["record", "demo"], &["--out"]),
        (&["compare", "one"], &["DIR"]),
        (&["show", "/none"], &["there is no folder `/none`"]),
        (&["--frobnicate"], &["--frobnicate"]),
        (&[], &["needs a terminal", "stacktune record"]),
        (&["demo"], &["needs a terminal", "stacktune record"]),
        (&["recrod", "--read-only"], &["stacktune record"]),
        (&["verify", "demmo"], &["did you mean `demo`?"]),
        (&["verify", "demo"], &["there is nothing to verify"]),
    ];
    for (arguments, said) in table {
        let ran = home.run(arguments);
        assert!(ran.out.is_empty(), "{arguments:?}: {}", ran.out);
        ran.ended(2, said);
    }
    assert!(!home.path("out").exists(), "a recording without a run");
}

#[test]
fn a_mistake_in_a_profile_is_reported_with_file_line_and_column() {
    let home = Home::new();
    let table = [
        ("[scan]\ndepht = 3\n", ":2:1: ", "did you mean `scan.depth`?"),
        ("[scan]\n  depth = \"many\"\n", ":2:11: ", "a whole number from 1 to 1024"),
        ("[wall]\n", ":1:2: ", "did you mean `wal`?"),
        ("[io]\ninterface = \"io-uring\"\n", ":2:13: ", "io_uring"),
        ("[scan\n", ":1:", "]"),
        ("name = \"x\"\nname = \"y\"\n", ":2:1: ", "duplicate key"),
    ];
    for (text, position, said) in table {
        let path = home.profile("mistake", text);
        let at = format!("{path}{position}");
        home.run(&["check", &path]).ended(2, &[&at, said]);
        home.run(&["record", &path, "--out", "out"]).ended(2, &[&at]);
    }
}

/// `--set` before each of them.
fn set<'a>(sets: &[&'a str]) -> Vec<&'a str> {
    sets.iter().flat_map(|set| ["--set", *set]).collect()
}

#[test]
fn check_lists_everything_that_this_host_cannot_do() {
    let home = Home::new();
    let small = home.small_files("small");
    home.run(&["check", &small]).ended(0, &[]);
    let sets = ["--set", "scan.cpus=900", "--set", "stack.raid=btrfs0"];
    let checked = home.run(&[&["check", "demo"][..], &sets].concat());
    checked.ended(2, &["`scan.cpus` can't be 900", "`stack.raid` can't be btrfs0"]);
}

#[test]
fn check_looks_at_the_target_and_makes_nothing() {
    let home = Home::new();
    let small = home.small_files("small");
    let foreign = home.path("small-files");
    let table: &[(&[&str], &[&str])] = &[
        (&["target.files.size=16TiB", "target.files.count=64"], &["needs", "free"]),
        (&["target.files.dir=/proc/stacktune"], &["/proc"]),
        (&["wal.target=/dev/nonexist"], &["no block device /dev/nonexist"]),
        (&["wal.target=/var/tmp/none/wal"], &["there is no folder /var/tmp/none"]),
        (&["run.max_writes=16MiB"], &["run.max_writes is 16MiB"]),
        (&["scan.cpus=900", "wal.target=/dev/nonexist"], &["`scan.cpus` can't be 900", "/dev/nonexist"]),
    ];
    for (sets, said) in table {
        home.run(&[&["check", &small][..], &set(sets)].concat()).ended(2, said);
        assert!(!foreign.exists(), "{sets:?}");
    }
    let memory = format!("target.files.dir=/dev/shm/stacktune-check-{}", std::process::id());
    let uncached = ["io.buffering=uncached", memory.as_str()];
    home.run(&[&["check", &small][..], &set(&uncached)].concat()).ended(2, &["can't be uncached"]);
    std::fs::create_dir(&foreign).unwrap();
    std::fs::write(foreign.join("data-0"), "mine").unwrap();
    home.run(&["check", &small]).ended(2, &["data-0"]);
    assert_eq!(std::fs::read(foreign.join("data-0")).unwrap(), b"mine");
}

#[test]
fn check_looks_at_devices_and_writes_nothing() {
    let Some(loops) = Loops::take("check_looks_at_devices_and_writes_nothing", 2) else { return };
    let home = Home::new();
    let blank = loops.blank(64);
    let profile = home.profile("blank", &blank.profile());
    home.run(&["check", &profile]).ended(0, &[]);
    let device =
        loops.device(64, |backing| _ = common::devices::run("mkfs.ext4", &["-q", backing.to_str().unwrap()]));
    let hash = device.hash();
    let profile = home.profile("device", &device.profile());
    let checked = home.run(&["check", &profile]);
    checked.ended(0, &[]);
    assert!(checked.out.contains("ext4") && checked.out.contains("--destroy"), "{}", checked.out);
    let uncached = home.run(&["check", &profile, "--set", "io.buffering=uncached"]);
    assert!(uncached.status == Some(0) || uncached.err.contains("can't be uncached"), "{}", uncached.err);
    common::devices::run("losetup", &["--sector-size", "4096", &blank.path]);
    let profile = home.profile("blank4k", &blank.profile());
    home.run(&["check", &profile, "--set", "scan.page_size=512B"])
        .ended(2, &["`scan.page_size` can't be 512B"]);
    let mount = common::devices::Mount::of(&device, "ro,noload");
    home.run(&["check", &home.profile("mounted", &device.profile())]).ended(2, &["mounted"]);
    drop(mount);
    assert_eq!(device.hash(), hash, "something was written");
}

#[test]
fn another_runs_lock_is_found_by_a_look_and_before_anything_is_wiped() {
    let test = "another_runs_lock_is_found_by_a_look_and_before_anything_is_wiped";
    let Some(loops) = Loops::take(test, 2) else { return };
    let home = Home::new();
    let wal =
        loops.device(64, |backing| _ = common::devices::run("mkfs.ext4", &["-q", backing.to_str().unwrap()]));
    let hash = wal.hash();
    let dir = home.path("held");
    let text = format!(
        "[target]\nfiles = {{ dir = {dir:?}, count = 1, size = \"16MiB\" }}\n[wal]\ntarget = {:?}\n{}",
        wal.path,
        common::recorded::LOAD.replace("[wal]\n", "")
    );
    let profile = home.profile("held", &text);
    home.run(&["check", &profile]).ended(0, &[]);
    assert!(!dir.exists(), "a look makes nothing");
    let request =
        stacktune::testing::load::volume::Request::of_files(&dir, 1, 16 * stacktune::testing::units::MIB);
    let held = stacktune::testing::load::volume::Volume::open(request).unwrap();
    home.run(&["check", &profile]).ended(2, &["in use by"]);
    let destroy = ["--for", "300ms", "--destroy", wal.path.as_str()];
    home.record(&profile, "refused", &destroy).ran.ended(1, &["in use by"]);
    assert_eq!(wal.hash(), hash, "the WAL's device was wiped for nothing");
    drop(held);
    // A program writing to the file below a loop device: no lock or claim reveals it.
    let disk = std::fs::OpenOptions::new().append(true).open(&wal.backing).unwrap();
    let mut writer = std::process::Command::new("sleep").arg("60").stdout(disk).spawn().unwrap();
    let said = ["which process", "(sleep)"];
    home.run(&["check", &profile]).ended(2, &said);
    home.record(&profile, "written", &destroy).ran.ended(3, &said);
    writer.kill().unwrap();
    writer.wait().unwrap();
    assert_eq!(wal.hash(), hash);
}

#[test]
fn the_screen_takes_no_consent_in_advance() {
    let home = Home::new();
    home.run(&["demo", "--destroy", "/dev/nvme0n1"])
        .ended(2, &["no consent in advance", "`record` accepts it"]);
}

#[test]
fn devices_are_named_once_and_whole() {
    let Some(loops) = Loops::take("devices_are_named_once_and_whole", 2) else { return };
    let device = loops.blank(64);
    let home = Home::new();
    let profile = home.profile("device", &device.profile());
    let hash = device.hash();
    let twice = format!("target.devices={0},{0}", device.path);
    let record = |name: &str, sets: &[&str], more: &[&str]| {
        let sets: Vec<_> = sets.iter().flat_map(|set| ["--set", *set]).collect();
        home.record(&profile, name, &[&["--for", "300ms"][..], &sets, more].concat()).ran
    };
    record("twice", &[&twice], &[]).ended(2, &["are the same device"]);
    let wal = format!("wal.target={}", device.path);
    record("wal", &[&wal], &[]).ended(2, &["is already a device of the target"]);
    // The profile recorded another drive's serial: a loop device has none.
    record("serial", &["target.serials=S1"], &[]).ended(3, &["S1", &device.path]);
    home.run(&["check", &profile, "--set", "target.serials=S1"]).ended(2, &["S1"]);
    let other = loops.blank(64);
    let wal = [format!("wal.target={}", other.path), "wal.serial=S2".into()];
    record("wal-serial", &[&wal[0], &wal[1]], &[]).ended(3, &["S2", &other.path]);
    home.run(&["check", &profile, "--set", &wal[0], "--set", &wal[1]]).ended(2, &["S2"]);
    record("other", &[], &["--destroy", "/dev/none"]).ended(2, &["/dev/none"]);
    assert_eq!(device.hash(), hash, "something was written");

    common::devices::run("addpart", &[&device.path, "1", "2048", "65536"]);
    let partition = format!("{}p1", device.path);
    let of_partition = format!("target.devices={partition}");
    let refused = record("partition", &[&of_partition], &[]);
    common::devices::run("delpart", &[&device.path, "1"]);
    assert!(matches!(refused.status, Some(2 | 3)), "{}", refused.err);
    assert!(refused.err.contains("is a partition"), "{}", refused.err);
    assert_eq!(device.hash(), hash, "something was written");
}

#[test]
fn a_generator_alone_is_flagged() {
    let home = Home::new();
    let profile = home.profile("null", &format!("[io]\ninterface = \"null\"\n{}", common::recorded::LOAD));
    let recorded = home.record(&profile, "out", &["--for", "400ms", "--set", "scan.rate=10MB/s"]);
    let host = json(&recorded.dir.join("host.json"));
    assert!(texts(&host["notes"]).iter().any(|note| note.contains("nothing touches storage")), "{host:#}");
    assert_eq!(recorded.windows().pop().unwrap()["written_bytes_total"], 0);
}

#[test]
fn the_cost_of_the_generator_is_measured_by_interface() {
    let home = Home::new();
    let costs = home.run(&["calibrate", "--json"]).json();
    let of = |interface: &str| {
        costs
            .as_array()
            .unwrap()
            .iter()
            .find(|cost| cost["interface"] == interface)
            .unwrap_or_else(|| panic!("{costs:#}"))
    };
    for interface in ["null", "sync", "libaio", "io_uring"] {
        assert!(of(interface)["iops"].as_f64() > Some(0.0), "{costs:#}");
    }
    assert!(!home.path(".cache").exists(), "what was made for it is gone");
    assert!(of("null")["cpu_ns"].as_f64() > Some(0.0), "{costs:#}");
    // Should take about 20 ns per write; concurrent tests contending for caches and memory have tripled that.
    // The third map, of 256 GiB, doesn't fit into any cache.
    let kept = costs.as_array().unwrap().iter().filter(|cost| cost["interface"] == "write map");
    let kept: Vec<_> = kept.map(|cost| cost["cpu_ns"].as_f64().unwrap()).collect();
    assert!(kept.len() == 3 && kept[..2].iter().all(|ns| *ns < 120.0), "{kept:?}");
}

#[test]
fn a_full_standard_output_is_reported_in_words() {
    let home = Home::new();
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let ran = home.command(&["knobs"]).stdout(full).output().unwrap();
    let output = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(1), "{output}");
    assert!(output.contains("standard output: no space left on device (ENOSPC)"), "{output}");
    assert!(!output.contains("os error"), "{output}");
}

#[test]
fn a_picture_takes_the_place_of_another_picture_alone() {
    let home = Home::new();
    let picture = |out: &str| {
        let arguments = ["picture", "demo", "--for=300ms", "--set=io.interface=null", "--out"];
        let ran = home.command(&arguments).arg(home.path(out)).output().unwrap();
        (ran.status.code(), String::from_utf8_lossy(&ran.stderr).into_owned())
    };
    fs::write(home.path("theirs.svg"), "<svg xmlns='x'>\n</svg>\n").unwrap();
    fs::write(home.path("empty"), "").unwrap();
    for (theirs, text) in [("theirs.svg", "<svg xmlns='x'>\n</svg>\n"), ("empty", "")] {
        let (status, output) = picture(theirs);
        assert_eq!(status, Some(3), "{output}");
        assert!(output.contains("is not a picture drawn by stacktune"), "{output}");
        assert_eq!(fs::read_to_string(home.path(theirs)).unwrap(), text);
    }
    for _ in 0..2 {
        let (status, output) = picture("ours.svg");
        assert_eq!(status, Some(0), "{output}");
        assert!(fs::read_to_string(home.path("ours.svg")).unwrap().ends_with("</svg>\n"));
        // As if cut off by a full disk.
        fs::OpenOptions::new().write(true).open(home.path("ours.svg")).unwrap().set_len(999).unwrap();
    }
    for leads_to in ["ours.svg", "none"] {
        let link = home.path("link.svg");
        std::os::unix::fs::symlink(leads_to, &link).unwrap();
        let (status, output) = picture("link.svg");
        assert_eq!(status, Some(3), "{output}");
        assert_eq!(fs::metadata(home.path("ours.svg")).unwrap().len(), 999);
        assert!(link.is_symlink() && !home.path("none").exists());
        fs::remove_file(link).unwrap();
    }
}

#[test]
fn a_run_is_filmed_until_its_duel_is_decided() {
    let home = Home::new();
    let picture = |more: &[&str]| {
        let arguments = ["picture", "demo", "--animate", "--for=600ms", "--set=run.window=100ms"];
        let sets = ["--set=io.interface=sim", "--turn=scan.depth=64", "--out"];
        let mut command = home.command(&arguments);
        let ran = command.args(sets).arg(home.path("ours.svg")).args(more).output().unwrap();
        (ran.status.code(), String::from_utf8_lossy(&ran.stderr).into_owned())
    };
    let cast = home.path("ours.cast");
    let cast = ["--cast", cast.to_str().unwrap()];
    fs::write(home.path("ours.cast"), "{\"version\": 2}\n").unwrap();
    let (status, output) = picture(&cast);
    assert_eq!(status, Some(3), "{output}");
    assert!(output.contains("is not a recording made by stacktune") && output.contains("--cast"), "{output}");
    fs::remove_file(home.path("ours.cast")).unwrap();
    let (status, output) = picture(&["--cast", home.path("ours.svg").to_str().unwrap()]);
    assert!(status == Some(2) && output.contains("the same file"), "{output}");
    let (status, output) = picture(&["--duel=scan.depth=1,1"]);
    assert!(status == Some(2) && output.contains("both values are the same"), "{output}");
    assert!(!home.path("ours.svg").exists() && !home.path("ours.cast").exists());
    for _ in 0..2 {
        let (status, output) =
            picture(&[&cast[..], &["--duel=scan.depth=1,64", "--duel-figure=scan"]].concat());
        assert_eq!(status, Some(0), "{output}");
    }
    let svg = fs::read_to_string(home.path("ours.svg")).unwrap();
    assert!(svg.contains("B is better: scan MB/s") && svg.matches("@keyframes f").count() > 10, "{svg}");
    let cast = fs::read_to_string(home.path("ours.cast")).unwrap();
    assert!(cast.starts_with("{\"version\":2,") && cast.lines().count() > 10, "{cast}");
    fs::remove_file(home.path("ours.cast")).unwrap();
    let (status, output) = picture(&[]);
    assert_eq!(status, Some(0), "{output}");
    assert!(home.path("ours.cast").exists(), "beside the picture, where no other place is named");
}

/// The second command at the top of a profile, with a folder of ours.
#[cfg(feature = "rocksdb")]
fn folder_command(text: &str, folder: &str) -> Option<Vec<String>> {
    let line = text.lines().find(|line| line.contains("target.files.dir=FOLDER"))?;
    let words = line.trim_start_matches('#').split_whitespace();
    Some(words.skip_while(|word| *word != "--set").map(|word| word.replace("FOLDER", folder)).collect())
}

#[test]
#[cfg(feature = "rocksdb")]
fn profiles_of_drives_run_in_a_folder_as_they_say() {
    let home = Home::new();
    let folder = home.path("pairs");
    let mut checked = 0;
    for entry in fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/profiles")).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let Some(sets) = folder_command(&text, folder.to_str().unwrap()) else { continue };
        let mut command = vec!["check".to_owned(), path.display().to_string()];
        command.extend(sets);
        // As many pairs as fit.
        command.extend(["--set".to_owned(), "kv.pairs=1000".to_owned()]);
        home.run(&command.iter().map(String::as_str).collect::<Vec<_>>()).ended(0, &[]);
        checked += 1;
    }
    assert!(checked >= 8, "{checked} profiles say how to run them in a folder");
}
