//! The practice array across several boots, and from its screen.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::common::machine::{RIG, Turn, missing, output_of};
use crate::common::program::Home;
use crate::common::recorded::json;
use crate::common::terminal::Terminal;
use crate::common::{self, LEFT_TO_SOAK, is_soak};
use crate::machines::{ROOT, rig};
use tempfile::TempDir;

/// With a synced log, a commit survives a power cut; without, some are lost, and are counted.
#[test]
#[cfg(feature = "rocksdb")]
fn commits_survive_a_power_cut_where_the_log_is_synced_and_are_counted_where_not() {
    const NAME: &str = "commits_survive_a_power_cut_where_the_log_is_synced_and_are_counted_where_not";
    // The gate only kills processes, in tests/devices/kv.rs.
    if !is_soak() {
        return common::skip(NAME, LEFT_TO_SOAK);
    }
    if let Some(reason) = missing() {
        return common::skip(NAME, &reason);
    }
    let script = format!("{ROOT}/tests/lab/kv_power.sh");
    let [share, images] = [(); 2].map(|()| TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap());
    for commits in ["300", "0"] {
        let said = output_of(
            &format!("kv_power-{commits}"),
            rig(&share)
                .args(["--drives", "2", "--size", "384M", "--monitor", "--images"])
                .arg(images.path())
                .args(["--", "bash", &script, env!("CARGO_BIN_EXE_stacktune"), commits]),
        );
        assert_eq!(said.contains("ended without an exit status"), commits != "0", "{said}");
    }
    for sync in ["fdatasync", "none"] {
        let said = fs::read_to_string(share.path().join(format!("said-{sync}"))).unwrap();
        let kept = said.contains("previously acknowledged commits are there");
        let lost = said.contains("previously acknowledged commits are lost");
        assert_eq!((kept, lost), (sync == "fdatasync", sync == "none"), "{said}");
        assert!(said.contains("pairs hold a value that was put"), "{said}");
    }
}

#[test]
fn what_a_power_cut_left_is_reported_after_the_boot_and_cleaned_up() {
    const NAME: &str = "what_a_power_cut_left_is_reported_after_the_boot_and_cleaned_up";
    // The gate only simulates a reboot, in tests/devices/stack_reboot.rs.
    if !is_soak() {
        return common::skip(NAME, LEFT_TO_SOAK);
    }
    if let Some(reason) = missing() {
        return common::skip(NAME, &reason);
    }
    let [share, images] = [(); 2].map(|()| TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap());
    let power = format!("{ROOT}/tests/lab/power.sh");
    // While the first drive gets its partition; while the file system on all of them is mounted; never.
    let cuts = [(1, "7"), (2, "13"), (3, "0")];
    for &(cut, steps) in &cuts {
        let output = output_of(
            &format!("power-{cut}"),
            rig(&share)
                .args(["--drives", "4", "--size", "384M", "--monitor", "--images"])
                .arg(images.path())
                .args(["--", "bash", &power, env!("CARGO_BIN_EXE_stacktune"), &cut.to_string(), steps]),
        );
        assert_eq!(output.contains("ended without an exit status"), steps != "0", "boot {cut}: {output}");
        assert_eq!(output.contains("cleaned up"), cut > cuts[0].0, "boot {cut}: {output}");
    }
    for (cut, _) in &cuts[1..] {
        let status = json(&share.path().join(format!("status-{cut}.json")));
        let [left] = status.as_array().unwrap().as_slice() else { panic!("{status:#}") };
        assert_eq!((&left["state"], &left["restarted"]), (&"dead".into(), &true.into()), "{status:#}");
        let stands: Vec<_> =
            left["stands"].as_array().unwrap().iter().map(|one| one["what"].as_str().unwrap()).collect();
        assert!(stands.iter().any(|what| what.contains("partition table on")), "{stands:?}");
        assert_eq!(stands.iter().any(|what| what.contains("md array")), *cut == 3, "{stands:?}");
    }
}

#[test]
fn a_plan_that_destroys_drives_is_agreed_to_by_typing_their_serials() {
    if let Some(reason) = missing() {
        return common::skip("a_plan_that_destroys_drives_is_agreed_to_by_typing_their_serials", &reason);
    }
    let home = Home::new();
    let by_id = |number| format!("/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_RIG{number}_1");
    let rates = ["scan", "point", "wal", "background"].map(|class| format!("[{class}]\nrate = \"1MB/s\"\n"));
    let profile = home.path("typed.toml");
    let text = format!(
        "name = \"typed\"\n[target]\ndevices = [{:?}, {:?}]\n[stack]\nraid = \"md1\"\nfilesystem = \"ext4\"\n\
         data = \"48MiB\"\nwal = \"16MiB\"\n{}",
        by_id(0),
        by_id(1),
        rates.concat()
    );
    fs::write(&profile, text).unwrap();
    let begin = format!(
        "modprobe -a md_mod raid1 ext4; exec {} {}",
        env!("CARGO_BIN_EXE_stacktune"),
        profile.display()
    );
    let _turn = Turn::take("");
    let mut terminal = screen(&home, &begin, (80, 24));
    terminal.wait_for("Open this profile");
    terminal.wait_for("scroll to the end");
    terminal.press("\x1b[F");
    let asked = terminal.wait_for("1 of 2: ");
    assert!(asked.contains("Type its serial, RIG0, in full"), "{asked}");
    for wrong in ["RIG1", "rig0", "yes"] {
        terminal.press(&format!("{wrong}\r"));
        terminal.wait_for("That does not match exactly.");
        terminal.press("\x15\r");
        terminal.wait_for("Type it first: Enter alone does not confirm.");
    }
    terminal.press("RIG0\r");
    terminal.wait_for("2 of 2: ");
    terminal.press("RIG1\r");
    terminal.wait("the load on the mirror", |screen| {
        screen.lines().next().is_some_and(|first| first.contains("running"))
    });
    terminal.press("q");
    terminal.wait_for("tear down and quit");
    terminal.press("t");
    terminal.left().expect(0);
}

/// A machine with two drives that runs this command on its terminal.
fn screen(home: &Home, begin: &str, size: (u16, u16)) -> Terminal {
    let options = ["--drives", "2", "--size", "128M", "--timeout", "120", "--terminal", "--dir"];
    let arguments: Vec<String> =
        options.into_iter().chain([env!("CARGO_TARGET_TMPDIR"), "--", begin]).map(str::to_owned).collect();
    // The kernel is cached where the other tests find it.
    let own =
        ["HOME", "XDG_CACHE_HOME", "RIG_KERNEL"].map(|name| (name, std::env::var(name).unwrap_or_default()));
    let environment: Vec<_> = own
        .iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    Terminal::start_program(Path::new(RIG), home, &arguments, size, &environment)
}

#[test]
fn drives_change_hands_from_the_screen_there_and_back() {
    if let Some(reason) = missing() {
        return common::skip("drives_change_hands_from_the_screen_there_and_back", &reason);
    }
    let home = Home::new();
    let rates = ["scan", "point", "wal", "background"].map(|class| format!("[{class}]\nrate = \"1MB/s\"\n"));
    let profile = home.path("hands.toml");
    let devices = ["0", "1"].map(|number| format!("/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_RIG{number}_1"));
    fs::write(&profile, format!("name = \"hands\"\n[target]\ndevices = {devices:?}\n{}", rates.concat()))
        .unwrap();
    let begin = format!("exec {} {}", env!("CARGO_BIN_EXE_stacktune"), profile.display());
    let _turn = Turn::take("");
    let mut terminal = screen(&home, &begin, (80, 24));
    let runs = |terminal: &Terminal, interface: &str| {
        terminal.wait("the load", |screen| {
            let first = screen.lines().next().unwrap_or_default();
            let knob = screen.lines().find(|line| line.contains("interface")).unwrap_or_default();
            first.contains("running") && knob.contains(interface) && !knob.contains('→')
        });
    };
    runs(&terminal, "io_uring");
    terminal.choose("io.interface");
    for (interface, step) in
        [("vfio", "bind 0000:01:00.0 to vfio-pci"), ("io_uring", "give 0000:01:00.0 back to nvme")]
    {
        terminal.press("e");
        terminal.press(&format!("\x15{interface}\r"));
        terminal.wait_for("needs a rebuild: Enter shows the plan");
        terminal.press("\r");
        terminal.wait_for("Steps");
        terminal.wait_for(step);
        terminal.press("\x1b[F");
        terminal.press("y");
        runs(&terminal, interface);
    }
    terminal.press("q");
    terminal.left().expect(0);
}

/// Waits until the array's knob has that value.
fn array_is(terminal: &Terminal, value: &str) {
    terminal.wait(value, |screen| shows_array(screen, value));
}

/// Whether the chosen knob has that value; a ledger line would name both values of a turn.
fn shows_array(screen: &str, value: &str) -> bool {
    let value = format!("◂{value}▸");
    let mut knobs = screen.lines().filter(|line| line.contains("array ") && line.contains(&value));
    knobs.any(|line| !line.contains("turning"))
}

/// Sets the knob at that path by typing a value.
fn set(terminal: &mut Terminal, path: &str, value: &str) {
    terminal.choose(path);
    terminal.press("e");
    terminal.press(&format!("\x15{value}\r"));
}

/// Turns a rebuilding array to healthy, which is refused until the rebuild ends: only the array knows when.
fn set_healthy(terminal: &mut Terminal) {
    let refused = "is still being rebuilt";
    for _ in 0..60 {
        set(terminal, "md.array", "healthy");
        let answer = |screen: &str| screen.contains(refused) || shows_array(screen, "healthy");
        if !terminal.wait("an answer", answer).contains(refused) {
            break;
        }
        terminal.press("\x1b");
        terminal.wait_until_gone(refused);
        std::thread::sleep(Duration::from_secs(1));
    }
}

#[test]
fn a_member_fails_and_is_rebuilt_by_turns_at_the_screen() {
    const NAME: &str = "a_member_fails_and_is_rebuilt_by_turns_at_the_screen";
    if let Some(reason) = missing().or_else(|| (!is_soak()).then(|| LEFT_TO_SOAK.to_owned())) {
        return common::skip(NAME, &reason);
    }
    let home = Home::new();
    let rates = ["scan", "point", "wal", "background"].map(|class| format!("[{class}]\nrate = \"1MB/s\"\n"));
    let devices = ["0", "1"].map(|number| format!("/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_RIG{number}_1"));
    let profile = home.path("turned.toml");
    let text = format!(
        "name = \"turned\"\n[target]\ndevices = {devices:?}\n[stack]\nraid = \"md1\"\nassume_clean = false\n\
         [md]\nsync_speed_max = 1000\n[run]\nwindow = \"500ms\"\n{}",
        rates.concat()
    );
    fs::write(&profile, text).unwrap();
    let program = env!("CARGO_BIN_EXE_stacktune");
    let begin = format!("modprobe -a md_mod raid1; exec {program} {}", profile.display());
    let _turn = Turn::take("");
    let mut terminal = screen(&home, &begin, (160, 50));
    terminal.wait_for("Open this profile");
    terminal.press("\x1b[F");
    for serial in ["RIG0", "RIG1"] {
        terminal.wait_for(&format!("Type its serial, {serial}, in full"));
        terminal.press(&format!("{serial}\r"));
    }
    terminal.wait_until_running();

    // Without the member's own serial, nothing happens to it.
    set(&mut terminal, "md.array", "degraded");
    terminal.wait_for("--fail /dev/nvme");
    terminal.press("\x1b[F");
    terminal.wait_for("Type its serial, RIG1, in full");
    terminal.press("RIG0\r");
    terminal.wait_for("That does not match exactly.");
    terminal.press("\x1b");
    terminal.wait_for("nothing is destroyed, and the load goes on");
    array_is(&terminal, "healthy");

    set(&mut terminal, "md.array", "degraded");
    terminal.wait_for("--fail /dev/nvme");
    terminal.press("\x1b[F");
    terminal.wait_for("Type its serial, RIG1, in full");
    terminal.press("RIG1\r");
    array_is(&terminal, "degraded");
    terminal.wait_for("degraded as set");
    terminal.wait("the turn in the ledger", |screen| screen.contains("healthy → degraded"));

    // The member's content is lost already: it is rebuilt without a question, at the slow speed set before.
    set(&mut terminal, "md.array", "rebuilding");
    array_is(&terminal, "rebuilding");
    // The header names the first flag, and only counts the rebuild's.
    terminal.wait_for("degraded as set +1");
    set(&mut terminal, "md.array", "healthy");
    terminal.wait_for("is still being rebuilt");
    terminal.press("\x1b");
    // At full speed it ends soon.
    set(&mut terminal, "md.sync_speed_max", "1000000");
    // From `degraded`, or from `healthy` if the turn to `degraded` had not been judged yet.
    terminal.wait("the turns in the ledger", |screen| {
        screen.contains("→ rebuilding") && screen.contains("1000 → 1000000")
    });
    set_healthy(&mut terminal);
    array_is(&terminal, "healthy");
    terminal.press("u");
    terminal.wait_for("would fail a member again");
    terminal.press("q");
    terminal.wait_for("tear down and quit");
    terminal.press("t");
    terminal.left().expect(0);
}
