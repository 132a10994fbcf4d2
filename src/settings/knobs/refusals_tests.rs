//! Settings that even a capable host refuses, by the knobs' reasons.

use super::*;
use crate::class::Class;
use crate::settings::testing::capable_host;
use crate::settings::{Buffering, Completion, Cpus, Interface, LoadEngine, Settings};

/// The refusals after a change of the defaults, one line each.
fn refused(change: impl FnOnce(&mut Settings)) -> String {
    let mut settings = Settings::default();
    change(&mut settings);
    let facts = capable_host();
    let found = problems(&settings, Conditions { facts: &facts, target: None });
    let lines: Vec<_> = found.into_iter().map(|(path, why)| format!("{path}: {why}")).collect();
    lines.join("\n")
}

fn on_rocksdb(change: impl FnOnce(&mut Settings)) -> String {
    refused(|settings| {
        settings.kv.engine = LoadEngine::Rocksdb;
        change(settings);
    })
}

fn on_a_drive(change: impl FnOnce(&mut Settings)) -> String {
    refused(|settings| {
        settings.target.devices = vec!["/dev/nvme0n1".into()];
        change(settings);
    })
}

#[test]
#[cfg(feature = "rocksdb")]
fn pairs_need_a_file_system_and_acks_need_values_with_room_for_a_number() {
    let bare = |s: &mut Settings| s.target.devices = vec!["/dev/nvme0n1".into()];
    assert_eq!(on_rocksdb(|_| {}), "");
    assert!(
        on_rocksdb(bare).starts_with("load.engine: RocksDB needs a file system, and the target has none")
    );
    let on_ext4 = |s: &mut Settings| {
        bare(s);
        s.stack.filesystem = crate::settings::Filesystem::Ext4;
    };
    assert_eq!(on_rocksdb(on_ext4), "");
    let refused = on_rocksdb(|s| (s.kv.acks, s.kv.pairs.value_bytes) = (Some("/acks".into()), 4));
    assert!(refused.starts_with("wal.acks: values below 8 B"), "{refused}");
}

#[test]
#[cfg(not(feature = "rocksdb"))]
fn a_build_without_rocksdb_refuses_it() {
    assert!(on_rocksdb(|_| {}).starts_with("load.engine: this build has no RocksDB"));
}

#[test]
fn only_direct_io_is_polled_for() {
    assert_eq!(on_a_drive(|s| s.io.completion = Completion::Iopoll), "");
    let cached = on_a_drive(|s| {
        s.io.completion = Completion::Iopoll;
        s.classes[Class::Wal.index()].buffering = Some(Buffering::Cached);
    });
    assert!(cached.contains("wal goes through the page cache"), "{cached}");
}

#[test]
fn nvme_commands_bypass_the_page_cache_and_go_only_to_drives() {
    assert_eq!(on_a_drive(|s| s.io.interface = Interface::NvmePassthrough), "");
    let cached = on_a_drive(|s| {
        s.io.interface = Interface::NvmePassthrough;
        s.io.buffering = Buffering::Cached;
    });
    assert!(cached.contains("bypass the page cache"), "{cached}");
    let files = on_a_drive(|s| {
        s.io.interface = Interface::NvmePassthrough;
        s.target.devices.clear();
    });
    assert!(files.contains("whole drives"), "{files}");
}

#[test]
fn the_kernels_thread_runs_on_one_cpu() {
    assert_eq!(on_a_drive(|s| s.io.sqpoll_cpu = Cpus::List(vec![3])), "");
    let two = on_a_drive(|s| s.io.sqpoll_cpu = Cpus::List(vec![2, 3]));
    assert!(two.contains("one CPU"), "{two}");
}

#[test]
fn a_ring_is_set_up_as_the_kernel_and_its_polling_thread_allow() {
    use crate::settings::{RingSetup, Submission};
    let on = |kernel: &str, setup: RingSetup, submission: Submission| {
        let mut settings = Settings::default();
        (settings.io.setup, settings.io.submission) = (setup, submission);
        let facts = crate::host::Facts { kernel: kernel.into(), ..capable_host() };
        let found = problems(&settings, Conditions { facts: &facts, target: None });
        found.into_iter().map(|(path, why)| format!("{path}: {why}")).collect::<Vec<_>>().concat()
    };
    assert_eq!(on("6.0.1", RingSetup::Coop, Submission::Call), "");
    assert_eq!(on("5.10.1", RingSetup::Plain, Submission::Sqpoll), "");
    let refused = on("6.0.1", RingSetup::Defer, Submission::Call);
    assert_eq!(refused, "io.setup: IORING_SETUP_DEFER_TASKRUN needs Linux 6.1, this is 6.0.1");
    for setup in [RingSetup::Coop, RingSetup::Defer] {
        assert!(on("6.18.0", setup, Submission::Sqpoll).contains("refuses it with io.submission = sqpoll"));
    }
}

#[test]
fn a_priority_needs_a_scheduler_that_acts_on_it() {
    use crate::settings::Prio;
    let on = |scheduler: Option<&str>, prio: Prio| {
        on_a_drive(|s| {
            s.classes[Class::Wal.index()].prio = Some(prio);
            s.queue.scheduler = scheduler.map(str::to_owned);
        })
    };
    let of_wal = |refused: &str| refused.lines().any(|line| line.starts_with("wal.prio"));
    let refused = on(None, Prio::High);
    assert!(refused.contains("wal.prio: nvme0n1's scheduler none ignores priorities"), "{refused}");
    assert!(of_wal(&on(Some("kyber"), Prio::High)) && !of_wal(&on(Some("bfq"), Prio::High)));
    assert!(!of_wal(&on(None, Prio::None)));
    let mut files = Settings::default();
    files.io.prio = Prio::Idle;
    assert_eq!(files.prio_of(Class::Scan), Prio::None, "the drive below files is not looked for");
    files.stack.loops = true;
    assert_eq!(files.prio_of(Class::Scan), Prio::Idle);
}

#[test]
fn a_lockless_bitmap_needs_a_kernel_that_has_it_and_settings_of_an_array_an_effect() {
    use crate::settings::{Bitmap, Raid};
    let on = |kernel: &str, raid: Raid| {
        let mut settings = Settings::default();
        (settings.stack.raid, settings.stack.bitmap) = (raid, Bitmap::Lockless);
        let facts = crate::host::Facts { kernel: kernel.into(), ..capable_host() };
        let found = problems(&settings, Conditions { facts: &facts, target: None });
        found.into_iter().map(|(path, why)| format!("{path}: {why}")).collect::<Vec<_>>().concat()
    };
    assert_eq!(on("6.18.0", Raid::Md5), "");
    let refused = on("6.1.0", Raid::Md5);
    assert_eq!(refused, "stack.bitmap: md has lockless bitmaps from Linux 6.18 on, this is 6.1.0");
    assert_eq!(on("6.1.0", Raid::Md0), "", "a stripe has none");
    let mut settings = Settings::default();
    (settings.md.stripe_cache_size, settings.md.sync_speed_max) = (Some(512), Some(1000));
    let in_force = |raid: Raid| {
        let md = settings.md.on(raid);
        (md.stripe_cache_size, md.sync_speed_max)
    };
    assert_eq!(in_force(Raid::Md0), (None, None));
    assert_eq!(in_force(Raid::Md10), (None, Some(1000)));
    assert_eq!(in_force(Raid::Md6), (Some(512), Some(1000)));
}
