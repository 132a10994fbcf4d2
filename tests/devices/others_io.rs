//! Another program doing I/O on the drive below the load: the recording shows it, and it forbids verdicts.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::common::devices::{Loop, Loops, Mount, run};
use crate::common::recorded::{Home, Recorded};
use crate::common::{LEFT_TO_SOAK, is_soak, skip};

/// `dd` in a loop until dropped: direct I/O, a megabyte at a time.
struct Dd(Child);

impl Dd {
    fn new(from: &str, to: &str, options: &str) -> Self {
        let script =
            format!("while :; do dd if={from} of={to} bs=1M {options} 2>/dev/null; sleep 0.02; done");
        let child = Command::new("sh").args(["-c", &script]).stdin(Stdio::null()).spawn();
        Self(child.unwrap())
    }

    fn reads(from: &str) -> Self {
        Self::new(from, "/dev/null", "count=8 iflag=direct")
    }

    fn writes(to: &str) -> Self {
        Self::new("/dev/zero", to, "count=8 oflag=direct conv=notrunc")
    }
}

impl Drop for Dd {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// MB/s that others read and wrote according to the summary, and the flag.
fn others(recorded: &Recorded) -> (f64, f64, Option<String>) {
    let summary = recorded.summary();
    let of = summary["others_io"].as_array().and_then(|drives| drives.first()).cloned().unwrap_or_default();
    let rate = |key: &str| of[key].as_f64().unwrap_or(-1.0) / 1e6 / summary["duration_s"].as_f64().unwrap();
    let mut flags = summary["flags"].as_array().unwrap().iter().filter_map(Value::as_str);
    let flag = flags.find(|flag| flag.starts_with("others on ")).map(str::to_owned);
    (rate("read_bytes"), rate("written_bytes"), flag)
}

fn files(home: &Home, name: &str, at: &Path, more: &str) -> String {
    let (dir, load) = (at.join("load").display().to_string(), crate::common::recorded::LOAD);
    home.profile(
        name,
        &format!("[target]\nfiles = {{ dir = \"{dir}\", count = 2, size = \"32MiB\" }}\n{load}{more}"),
    )
}

/// Leaves no lazy initialization for the kernel to write after the mount.
fn format_with_ext4(path: &str) {
    run("mkfs.ext4", &["-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", path]);
}

/// Small reads at a rate, so that even a slow host is not at its limit.
const GENTLE: &str = "[scan]\nrate = \"20MB/s\"\n[point]\nenabled = false\n";

#[track_caller]
fn is_quiet(recorded: &Recorded, what: &str) {
    recorded.ran.ended(0, &[]);
    let (read, written, flag) = others(recorded);
    assert!(read < 1.0 && written < 1.0 && flag.is_none(), "{what}: {read} {written} {flag:?}");
}

#[test]
fn a_reader_and_a_writer_beside_files_are_flagged_and_the_load_alone_is_not() {
    let test = "a_reader_and_a_writer_beside_files_are_flagged_and_the_load_alone_is_not";
    let Some(loops) = Loops::alone(test) else { return };
    let device = loops.blank(400);
    format_with_ext4(&device.path);
    let mount = Mount::of(&device, "noatime");
    let (home, at) = (Home::new(), mount.at.path());
    let profile = files(&home, "direct", at, GENTLE);
    let other = at.join("other");
    let other = other.to_str().unwrap();
    run("dd", &["if=/dev/zero", &format!("of={other}"), "bs=1M", "count=8", "conv=fsync", "status=none"]);
    is_quiet(&home.record(&profile, "alone", &["--warmup", "1s", "--for", "3s"]), "the load alone");

    for (name, begin) in [("read", Dd::reads as fn(&str) -> Dd), ("written", Dd::writes)] {
        let beside = begin(other);
        let recorded = home.record(&profile, name, &["--warmup", "1s", "--for", "3s"]);
        drop(beside);
        recorded.ran.ended(0, &[]);
        let (read, written, flag) = others(&recorded);
        let (most, least) = if name == "read" { (read, written) } else { (written, read) };
        // If other programs write elsewhere, some of the journal's writes may be attributed to them.
        assert!(most > 2.0 && least < most / 4.0, "{name}: read {read}, written {written}");
        let flag = flag.unwrap_or_else(|| panic!("{name}: not flagged"));
        assert!(flag.starts_with(&format!("others on {}: ", device.name())), "{flag}");
        assert_eq!(recorded.summary()["flag_notes"][&flag]["forbids_verdict"], true);
        let shown = home.run(&["show", name]).out;
        assert!(shown.contains(&format!("{}: others read", device.name())), "{shown}");
        assert!(shown.contains(&flag) && !shown.contains("Inconsistent"), "{shown}");
    }
    let compared = home.run(&["compare", "alone", "read"]);
    assert!(compared.out.contains("others on ") && compared.out.contains("flagged"), "{}", compared.out);
}

/// I/O that the kernel adds for the load counts as the load's: journal commits, and write-back.
#[test]
fn what_a_file_system_and_the_page_cache_write_for_the_load_is_not_others() {
    let test = "what_a_file_system_and_the_page_cache_write_for_the_load_is_not_others";
    if !is_soak() {
        return skip(test, LEFT_TO_SOAK);
    }
    let Some(loops) = Loops::alone(test) else { return };
    let device = loops.blank(400);
    format_with_ext4(&device.path);
    let mount = Mount::of(&device, "noatime");
    let home = Home::new();
    for (name, more) in [
        ("cached", "[io]\nbuffering = \"cached\"\n[scan]\nrate = \"20MB/s\"\n"),
        ("deep", "[scan]\ndepth = 64\n[point]\ndepth = 16\n"),
    ] {
        let profile = files(&home, name, mount.at.path(), more);
        is_quiet(&home.record(&profile, &format!("{name}-alone"), &["--for", "4s"]), name);
    }
}

struct Unmount<'a>(&'a tempfile::TempDir);

impl Drop for Unmount<'_> {
    fn drop(&mut self) {
        // Something may have just opened a file in it.
        let unmount =
            || Command::new("umount").arg(self.0.path()).status().is_ok_and(|status| status.success());
        let _ = (0..50).any(|_| {
            unmount() || {
                std::thread::sleep(std::time::Duration::from_millis(100));
                false
            }
        });
    }
}

fn partitions(device: &Loop) -> [String; 2] {
    let script = "label: gpt\nsize=128MiB\nsize=64MiB\n";
    let path = device.dir.path().join("table");
    std::fs::write(&path, script).unwrap();
    run("sh", &["-c", &format!("sfdisk -q {} < {}", device.path, path.display())]);
    run("partx", &["--update", &device.path]);
    [1, 2].map(|number| format!("{}p{number}", device.path))
}

#[test]
fn the_other_partition_of_a_drive_is_others_for_certain() {
    let test = "the_other_partition_of_a_drive_is_others_for_certain";
    let Some(loops) = Loops::alone(test) else { return };
    let device = loops.in_memory(256, &["--partscan"]);
    let [ours, theirs] = partitions(&device);
    format_with_ext4(&ours);
    let at = tempfile::tempdir().unwrap();
    run("mount", &["-o", "noatime", &ours, at.path().to_str().unwrap()]);
    let _mounted = Unmount(&at);
    let home = Home::new();
    let profile = files(&home, "part", at.path(), GENTLE);
    let record = |out: &str| home.record(&profile, out, &["--warmup", "1s", "--for", "3s"]);
    is_quiet(&record("alone"), "the load alone");
    let beside = Dd::writes(&theirs);
    let recorded = record("beside");
    drop(beside);
    recorded.ran.ended(0, &[]);
    let (read, written, flag) = others(&recorded);
    assert!(written > 2.0 && read < 1.0, "read {read}, written {written}");
    assert!(flag.is_some_and(|flag| flag.starts_with(&format!("others on {}: ", device.name()))));
}

/// The flag gives the old and the new value, and forbids verdicts.
#[test]
fn a_setting_that_somebody_changes_in_mid_run_is_flagged() {
    let test = "a_setting_that_somebody_changes_in_mid_run_is_flagged";
    let Some(loops) = Loops::alone(test) else { return };
    let device = loops.blank(400);
    format_with_ext4(&device.path);
    let mount = Mount::of(&device, "noatime");
    let home = Home::new();
    let profile = files(&home, "direct", mount.at.path(), GENTLE);
    is_unchanged(&home.record(&profile, "alone", &["--for", "3s"]));

    let attribute = format!("/sys/block/{}/queue/read_ahead_kb", device.name());
    let before = std::fs::read_to_string(&attribute).unwrap().trim().to_owned();
    let after = if before == "64" { "32" } else { "64" };
    let somebody = std::thread::spawn({
        let attribute = attribute.clone();
        move || {
            std::thread::sleep(std::time::Duration::from_secs(4));
            std::fs::write(attribute, after).unwrap();
        }
    });
    let recorded = home.record(&profile, "changed", &["--for", "8s"]);
    somebody.join().unwrap();
    recorded.ran.ended(0, &[]);
    let summary = recorded.summary();
    let flag = "others changed queue.read_ahead_kb";
    assert!(summary["flags"].as_array().unwrap().iter().any(|found| found == flag), "{}", summary["flags"]);
    let note = &summary["flag_notes"][flag];
    let change = format!("{} from {before} to {after}", device.name());
    assert!(note["why"].as_str().unwrap().contains(&change), "{note}");
    assert_eq!(note["forbids_verdict"], true);
    let shown = home.run(&["show", "changed"]).out;
    assert!(shown.contains(flag) && shown.contains(&change) && !shown.contains("Inconsistent"), "{shown}");
    let compared = home.run(&["compare", "alone", "changed"]);
    assert!(compared.out.contains(flag) && compared.out.contains("flagged"), "{}", compared.out);
}

#[track_caller]
fn is_unchanged(recorded: &Recorded) {
    recorded.ran.ended(0, &[]);
    let summary = recorded.summary();
    let flags = summary["flags"].to_string();
    assert!(!flags.contains("others changed"), "{flags}");
}
