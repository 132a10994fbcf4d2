//! The program on a real NVMe array, in a virtual machine that several tests share.
//!
//! `tests/rig.sh` boots it and runs scripts of `tests/lab` in it, each of which prints a line for each of its
//! tests. To add a test, write it there, and name it below so that it appears as a test here.
//!
//! With `SOAK` in the environment they run the whole matrices, which takes longer; `LAB_SEED` seeds
//! everything random.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::common::machine::{RIG, missing, output_of};
use crate::common::recorded::json;
use crate::common::{self, LEFT_TO_SOAK, is_soak};
use crate::in_soak::IN_SOAK;
use serde_json::Value;
use tempfile::TempDir;

pub const ROOT: &str = env!("CARGO_MANIFEST_DIR");
/// Seconds until a machine is given up, on a busy host that emulates it; then the same for the soak.
const MACHINE_S: &str = "2400";
const MACHINE_ALL_S: &str = "7200";

/// Where Debian's Linux 6.1 occasionally crashes while `io_uring` polls. No program without drivers of its
/// own should be able to crash a kernel, so the machine is run once more; after any other crash it is not.
const KERNELS_OWN_CRASH: &str = "RIP: 0010:bio_poll+";

/// A machine, what runs in it, and its result.
struct Machine {
    /// The scripts, in order.
    scripts: &'static [&'static str],
    /// Scripts that run after them in the soak: in the gate they would run no test.
    soak_scripts: &'static [&'static str],
    /// Options of the rig.
    options: &'static [&'static str],
    ran: OnceLock<Result<Ran, String>>,
}

/// What the guest printed and left.
struct Ran {
    log: String,
    share: TempDir,
    tests: BTreeMap<String, Outcome>,
}

#[derive(Debug, Clone, PartialEq)]
enum Outcome {
    Passed,
    Skipped(String),
    Failed(String),
}

/// Four drives, used bare: small, so that filling and verifying them is quick.
static BARE: Machine = Machine {
    scripts: &["host", "raw", "polled", "guard", "pull"],
    soak_scripts: &["lost"],
    options: &["--drives", "4", "--size", "64M", "--monitor", "--append", "nvme.poll_queues=2"],
    ran: OnceLock::new(),
};

/// Four drives, just large enough for the smallest XFS, for RAID and file systems.
static STACKS: Machine = Machine {
    scripts: &["stack"],
    soak_scripts: &["arrays"],
    options: &["--drives", "4", "--size", "384M", "--monitor"],
    ran: OnceLock::new(),
};

/// The same, for everything else that is built on drives or runs on what was built: a part of the soak of its own.
static BUILT: Machine = Machine {
    scripts: &[],
    soak_scripts: &["layers", "program", "lba", "iommu", "reproduce", "kv"],
    options: &["--drives", "4", "--size", "384M", "--monitor"],
    ran: OnceLock::new(),
};

/// The same, with drives that fail, are pulled, or come into use.
static FAULTS: Machine = Machine {
    scripts: &["faults", "degraded"],
    soak_scripts: &[],
    options: &["--drives", "4", "--size", "384M", "--monitor"],
    ran: OnceLock::new(),
};

/// The same, with kills of the program.
static KILLS: Machine = Machine {
    scripts: &[],
    soak_scripts: &["kill"],
    options: &["--drives", "4", "--size", "384M"],
    ran: OnceLock::new(),
};

/// Drives that leave the kernel together: two namespaces each, and two in one IOMMU group.
static TOGETHER: Machine = Machine {
    scripts: &["together"],
    soak_scripts: &[],
    options: &["--drives", "3", "--size", "96M", "--namespaces", "2", "--twins"],
    ran: OnceLock::new(),
};

/// A drive whose access to memory nothing limits.
static NO_IOMMU: Machine = Machine {
    scripts: &["no-iommu"],
    soak_scripts: &[],
    options: &["--drives", "1", "--size", "96M", "--no-iommu"],
    ran: OnceLock::new(),
};

static MACHINES: [&Machine; 7] = [&BARE, &STACKS, &BUILT, &FAULTS, &KILLS, &TOGETHER, &NO_IOMMU];

/// The guest's tests, by machine: each becomes a test of this program, in a module named after the machine.
macro_rules! in_guest {
    ($($machine:ident $module:ident: $($name:ident)*;)*) => {
        $(mod $module { $(#[test] fn $name() { super::$machine.expect_passed(stringify!($name)); })* })*
        const NAMED: &[(&Machine, &[&str])] = &[$((&$machine, &[$(stringify!($name)),*])),*];
    };
}

in_guest! {
    BARE bare:
        the_host_is_described
        the_practice_profile_fits_the_practice_array
        io_uring_on_bare_drives_is_verified
        libaio_on_bare_drives_is_verified
        system_calls_on_bare_drives_are_verified
        writes_of_nvme_commands_that_are_taken_back_are_found
        writes_over_vfio_that_are_taken_back_are_found
        a_stale_member_of_a_mirror_is_found
        polled_completions_are_verified
        a_polled_submission_queue_is_verified_and_wakes_after_its_sleep
        rings_polled_from_both_sides_are_verified
        nvme_commands_are_verified
        polled_nvme_commands_with_a_sleep_are_verified
        every_page_size_goes_through_every_polled_interface
        nvme_commands_hold_the_block_device_beside
        the_kernels_thread_polls_on_its_cpu_and_counts_as_ours
        polling_is_refused_on_what_can_not_be_polled
        a_mounted_drive_is_refused
        a_drive_with_a_mounted_partition_is_refused
        a_drive_that_is_swapped_on_is_refused
        members_of_a_running_array_are_refused
        members_of_a_stopped_array_are_refused
        a_drive_exported_over_nvme_is_refused
        a_drive_to_which_commands_can_be_given_is_refused
        a_node_that_is_another_devices_is_refused
        a_drive_named_twice_by_two_names_is_refused
        a_drive_whose_serial_is_another_is_refused
        a_read_only_drive_is_refused
        a_member_that_is_too_small_is_refused
        on_a_full_disk_nothing_is_built_and_its_drive_is_no_member
        a_file_system_needs_consent_and_is_wiped_with_it
        a_run_whose_drive_is_pulled_ends_in_order;
    STACKS stacks:
        stripes_are_verified_and_leave_nothing
        mirrors_are_verified_and_leave_nothing
        one_parity_is_verified_and_leaves_nothing
        two_parities_are_verified_and_leave_nothing
        striped_mirrors_are_verified_and_leave_nothing
        btrfs_on_its_own_raid_is_verified_and_leaves_nothing
        a_bare_array_is_verified_and_leaves_nothing
        a_part_of_each_drive_is_used_and_resynced
        a_mirror_of_two_takes_each_byte_twice
        parity_takes_more_bytes_than_are_written
        without_consent_nothing_is_built
        a_retained_stack_is_reported_and_cleaned_up
        others_files_on_a_stopped_array_of_a_dead_stack_stay
        a_file_system_on_the_array_of_a_dead_stack_stays
        others_files_on_an_array_of_files_stay_after_a_reboot
        a_file_system_on_the_partition_of_a_dead_stack_stays
        what_runs_is_what_the_dry_run_has_shown
        a_tool_that_fails_leaves_nothing
        an_arrays_settings_are_in_force_and_a_kill_leaves_nothing
        an_arrays_settings_are_put_back_on_one_that_is_kept
        a_lockless_bitmap_is_refused_where_kernel_or_mdadm_lack_it
        an_array_is_measured_healthy_degraded_and_rebuilding
        a_run_on_a_rebuilding_array_that_is_killed_leaves_nothing
        an_arrays_states_are_steps_of_a_sweep_and_values_of_a_duel
        a_degraded_array_that_is_kept_is_rebuilt
        killed_while_a_member_is_failed_or_replaced_cleanup_leaves_nothing;
    BUILT built:
        a_table_goes_on_after_kill_9_and_leaves_nothing
        a_sweep_over_arrays_is_verified_and_leaves_nothing
        the_iommus_mode_is_in_force_and_the_hosts_afterwards
        a_run_that_is_killed_leaves_the_iommus_mode_to_cleanup
        stripes_of_lvm_are_verified_and_leave_nothing
        dm_crypt_on_lvm_and_on_md_is_verified_and_leaves_nothing
        a_layer_on_a_drive_of_others_is_refused_and_taken_away
        without_leave_no_command_runs
        a_program_on_md_has_its_bytes_by_level_and_by_name
        a_cap_holds_under_version_2_and_ends_what_needs_more
        a_killed_run_of_a_program_is_ended_by_cleanup
        a_trace_times_a_read_as_fio_does
        killed_under_load_and_within_up_cleanup_leaves_nothing
        a_kept_layer_is_reported_and_cleaned_up
        a_device_that_hangs_at_the_end_of_a_run_is_waited_for
        drives_are_formatted_for_a_stack_and_back
        what_has_no_such_format_is_refused
        a_killed_runs_drives_are_formatted_back_unless_others_use_them
        killed_while_drives_are_formatted_cleanup_formats_them_back
        pairs_on_md0_and_f2fs_are_verified
        pairs_on_md1_and_ext4_are_verified;
    FAULTS faults:
        a_tool_that_fails_at_any_step_leaves_nothing
        a_drive_that_comes_into_use_at_any_step_is_refused_and_untouched
        failed_members_are_reported_and_the_run_continues
        pulled_drives_are_reported_and_the_run_continues
        a_stripe_stops_in_order_without_a_pulled_drive
        others_files_on_a_stripe_wait_for_a_pulled_drive
        a_stripe_whose_member_is_failed_stops_in_order_or_goes_on;
    KILLS kills:
        killed_at_random_moments_cleanup_leaves_nothing;
    TOGETHER together:
        namespaces_leave_and_come_back_together
        a_namespace_in_use_keeps_its_drive
        a_namespace_beside_is_left_as_it_is
        drives_of_one_group_leave_only_together;
    NO_IOMMU no_iommu:
        without_an_iommu_drives_stay_with_the_kernel
        accepted_by_name_drives_leave_without_an_iommu_and_come_back;
}

fn runs_here(test: &str) -> bool {
    is_soak() || !IN_SOAK.contains(&test)
}

fn machine_s() -> &'static str {
    if is_soak() { MACHINE_ALL_S } else { MACHINE_S }
}

/// The rig's command, up to the options of a particular machine.
pub fn rig(share: &TempDir) -> Command {
    let mut rig = Command::new(RIG);
    rig.args(["--timeout", machine_s(), "--dir", env!("CARGO_TARGET_TMPDIR"), "--share"]).arg(share.path());
    rig.stdin(Stdio::null());
    rig
}

impl Machine {
    /// All scripts that run here.
    fn scripts(&self) -> Vec<&'static str> {
        let more = if is_soak() { self.soak_scripts } else { &[] };
        [self.scripts, more].concat()
    }

    /// Its result; none, with the reason reported, if it can't run here. The first caller boots the machine.
    fn ran(&self, test: &str) -> Option<&Ran> {
        match self.ran.get_or_init(|| self.boot()) {
            Ok(ran) => Some(ran),
            Err(reason) => {
                common::skip(test, reason);
                None
            }
        }
    }

    fn boot(&self) -> Result<Ran, String> {
        if let Some(reason) = missing() {
            return Err(reason);
        }
        let ran = self.run_once();
        if !ran.log.contains(KERNELS_OWN_CRASH) {
            return Ok(ran);
        }
        eprintln!("the machine's kernel crashed in a polled read; once more\n{}", ran.log);
        Ok(self.run_once())
    }

    fn run_once(&self) -> Ran {
        let share = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let wanted = |name: &str| Some(format!("{name}={}", std::env::var(name).ok()?));
        let log = output_of(
            &self.scripts().join("+"),
            rig(&share)
                .args(self.options)
                .args(["--", "env"])
                .args(["SOAK", "LAB_SEED"].into_iter().filter_map(wanted))
                .arg(format!("LAB_SCRIPT_S={}", machine_s()))
                .args(["bash", &format!("{ROOT}/tests/lab/run.sh"), env!("CARGO_BIN_EXE_stacktune")])
                .args(self.scripts()),
        );
        let tests = log.lines().filter_map(outcome).collect();
        Ran { log, share, tests }
    }

    #[track_caller]
    fn expect_passed(&self, test: &str) {
        if !runs_here(test) {
            return common::skip(test, LEFT_TO_SOAK);
        }
        let Some(ran) = self.ran(test) else { return };
        match ran.tests.get(test) {
            Some(Outcome::Passed) => {}
            Some(Outcome::Skipped(why)) => common::skip(test, why),
            Some(Outcome::Failed(why)) => panic!("{why}\n{}", ran.log),
            None => panic!("the guest says nothing of it\n{}", ran.log),
        }
    }
}

impl Ran {
    fn json(&self, path: &str) -> Value {
        json(&self.share.path().join(path))
    }
}

/// A test's name and outcome from a line of the guest's output; none for other lines.
fn outcome(line: &str) -> Option<(String, Outcome)> {
    let of = |text: &str, make: fn(String) -> Outcome| {
        let (name, why) = text.split_once(": ").unwrap_or((text, "it does not say why"));
        (name.to_owned(), make(why.to_owned()))
    };
    let passed = |name: &str| (name.to_owned(), Outcome::Passed);
    (line.strip_prefix("ok ").map(passed))
        .or_else(|| Some(of(line.strip_prefix("not ok ")?, Outcome::Failed)))
        .or_else(|| Some(of(line.strip_prefix("skip ")?, Outcome::Skipped)))
}

#[test]
fn every_test_of_the_guest_is_seen_here_and_every_script_ran() {
    let mut scripts: Vec<_> =
        MACHINES.iter().flat_map(|machine| [machine.scripts, machine.soak_scripts].concat()).collect();
    scripts.sort_unstable();
    let files = fs::read_dir(Path::new(ROOT).join("tests/lab")).unwrap();
    let mut there: Vec<String> = files
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .filter_map(|name| Some(name.strip_suffix(".sh")?.to_owned()))
        .filter(|name| {
            !["run", "lib", "userspace", "power", "kv_power", "nvme", "spdk", "dropped"]
                .contains(&name.as_str())
        })
        .collect();
    there.sort();
    assert_eq!(scripts, there);
    for (machine, named) in NAMED.iter().filter(|(_, named)| named.iter().any(|test| runs_here(test))) {
        let Some(ran) = machine.ran("every_test_of_the_guest_is_seen_here_and_every_script_ran") else {
            return;
        };
        let unseen: Vec<_> = ran.tests.keys().filter(|name| !named.contains(&name.as_str())).collect();
        assert!(unseen.is_empty(), "name them in tests/lab/machines.rs: {unseen:?}");
        for script in machine.scripts() {
            assert!(ran.log.contains(&format!("\nend {script} 0")), "{script} did not end\n{}", ran.log);
        }
    }
}

#[test]
fn the_host_has_four_nvme_drives_with_serials_and_names_that_last() {
    let Some(ran) = BARE.ran("the_host_has_four_nvme_drives_with_serials_and_names_that_last") else {
        return;
    };
    let host = ran.json("host.json");
    let devices = host["devices"].as_array().unwrap();
    let nvme = devices.iter().filter(|device| device["name"].as_str().unwrap().starts_with("nvme"));
    let mut serials: Vec<_> = nvme
        .map(|drive| {
            let serial = drive["serial"].as_str().unwrap();
            let by_id = format!("/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_{serial}_1");
            assert_eq!(drive["by_id"][0], by_id.as_str());
            assert_eq!(
                (&drive["model"], &drive["size_bytes"]),
                (&"QEMU NVMe Ctrl".into(), &(64 << 20).into())
            );
            assert_eq!(drive["usage"], Value::Array(Vec::new()));
            serial
        })
        .collect();
    serials.sort_unstable();
    assert_eq!(serials, ["RIG0", "RIG1", "RIG2", "RIG3"]);
    assert!(host["virtualization"].is_string(), "{host:#}");
}

#[test]
fn figures_of_emulated_drives_say_so() {
    let Some(ran) = BARE.ran("figures_of_emulated_drives_say_so") else { return };
    let interfaces = ["io_uring", "libaio", "sync"];
    for interface in if is_soak() { &interfaces[..] } else { &interfaces[..1] } {
        let host = ran.json(&format!("raw-{interface}/host.json"));
        assert_eq!(host["target"]["emulated"], "QEMU NVMe Ctrl");
        assert!(host["notes"][0].as_str().unwrap().starts_with("emulated drives"), "{host:#}");
        let summary = ran.json(&format!("raw-{interface}/summary.json"));
        for class in ["scan", "point", "wal", "background"] {
            let figures = &summary["classes"][class];
            assert!(figures["ios"].as_u64() > Some(0), "{class}: {summary:#}");
            assert_eq!(figures["errors"], 0, "{class}: {summary:#}");
            assert!(common::recorded::texts(&figures["flags"]).contains(&"emulated"), "{summary:#}");
        }
        let verified = ran.json(&format!("verify-{interface}.json"));
        // Everything except a header of 1 MiB on each of the two drives.
        assert_eq!(verified["sectors_ok"], ((2 * 63) << 20) / 512, "{verified:#}");
        assert_eq!(verified["complete"], true);
    }
}

/// The page sizes checked here, of those that the soak runs (`pages_of` in tests/lab/polled.sh).
const PAGES: &[&str] = &["512B", "4KiB", "128KiB", "1MiB"];

#[test]
fn interfaces_that_poll_report_their_polls_and_others_have_none() {
    let Some(ran) = BARE.ran("interfaces_that_poll_report_their_polls_and_others_have_none") else { return };
    let runs = [
        ("iopoll", true),
        ("sqpoll", false),
        ("both", false),
        ("commands", false),
        ("polled-commands", true),
        ("vfio", true),
    ];
    let pages = if is_soak() { PAGES } else { &[] };
    let of_pages = runs
        .iter()
        .flat_map(|(name, looks)| pages.iter().map(move |size| (format!("{name}-{size}"), *looks)));
    let left_out: &[&str] =
        if is_soak() { &["vfio"] } else { &["vfio", "both", "sqpoll", "polled-commands"] };
    let mixed = runs.iter().filter(|(name, _)| !left_out.contains(name));
    let mixed = mixed.map(|(name, looks)| ((*name).to_owned(), *looks));
    for (name, looks) in mixed.chain(of_pages) {
        let summary = ran.json(&format!("polled-{name}/summary.json"));
        let mut sums = [0; 2];
        for class in ["scan", "point", "wal", "background"] {
            let figures = &summary["classes"][class];
            assert!(
                figures["ios"].as_u64() > Some(0) && figures["errors"] == 0,
                "{name}, {class}: {summary:#}"
            );
            let polls = &figures["polls"];
            assert_eq!(polls.is_object(), looks, "{name}, {class}: {summary:#}");
            if looks {
                let [all, empty] = ["polls", "empty_polls"].map(|key| polls[key].as_u64().unwrap());
                // If there are only a few I/Os, on a slow processor each may be complete at the first poll.
                assert!(empty < all, "{name}, {class}: {polls:#}");
                sums = [sums[0] + all, sums[1] + empty];
            }
        }
        // Most reads take longer than one poll.
        assert!(!looks || 0 < sums[1], "{name}: {sums:?}");
        // I/O that bypasses the block layer is not compared with the block layer's count.
        let doubted = common::recorded::texts(&summary["flags"]);
        let past = ["commands", "polled", "vfio"].iter().any(|way| name.starts_with(way));
        assert!(!past || !doubted.iter().any(|flag| flag.starts_with("block layer")), "{name}: {doubted:?}");
        let verified = ran.json(&format!("polled-{name}.json"));
        assert_eq!(verified["complete"], true, "{name}: {verified:#}");
    }
}

#[test]
fn the_papers_table_on_drives_shows_what_was_recorded() {
    let test = "the_papers_table_on_drives_shows_what_was_recorded";
    if !is_soak() {
        return common::skip(test, LEFT_TO_SOAK);
    }
    let Some(ran) = BUILT.ran(test) else { return };
    let shown = ran.json("table5.json");
    let rows = shown["rows"].as_array().unwrap();
    let mut steps = 0;
    for row in rows {
        let label = row["label"].as_str().unwrap();
        let lacking =
            [("5b", "needs at least 3 drives"), ("6", "no hardware RAID"), ("6c", "no hardware RAID")];
        if let Some((_, why)) = lacking.iter().find(|(of, _)| *of == label) {
            assert!(row["reason"].as_str().unwrap().contains(why), "{row:#}");
            continue;
        }
        assert!(row["reason"].is_null(), "{row:#}");
        steps += 1;
        let summary = ran.json(&format!("table5/{steps:02}-{label}-r1/summary.json"));
        let mb_per_s = |class: &str| summary["classes"][class]["mb_per_s"].as_f64().unwrap();
        let shown_is = |figure: &str, recorded: f64| {
            let here = row["here"][figure]["median"].as_f64().unwrap();
            assert!((here / recorded - 1.0).abs() < 1e-9, "{figure} is {recorded}: {row:#}");
        };
        shown_is("scan_mb_per_s", mb_per_s("scan"));
        shown_is("point_mb_per_s", mb_per_s("point"));
        shown_is("write_mb_per_s", mb_per_s("wal") + mb_per_s("background"));
        shown_is("total_mb_per_s", summary["total"]["mb_per_s"].as_f64().unwrap());
    }
    assert_eq!(steps, 4, "{rows:#?}");
    let deviations: Vec<_> =
        shown["deviations"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(deviations.contains(&"row 6b is on 1 QEMU NVMe Ctrl of 384 MiB"), "{deviations:?}");
    assert!(deviations.iter().any(|line| line.starts_with("emulated drives")), "{deviations:?}");
}
