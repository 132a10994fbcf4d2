//! The scopes in the table of knobs, checked against when each setting is read.

use super::*;
use crate::settings::interface::Interface;
use crate::settings::jobs::OpenedWith;
use crate::settings::knobs::{Conditions, Kind, Knob, Value};
use crate::settings::testing::capable_host;
use crate::settings::values::{
    Compaction, Filesystem, Io, Kv, LoadEngine, Raid, Rocksdb, Run, Stack, Sync, Wal,
};

/// Settings of every kind to turn knobs from.
fn bases() -> Vec<Settings> {
    let files = Settings::default();
    let mut drives = files.clone();
    drives.target.devices = vec!["/dev/nvme0n1".into(), "/dev/nvme1n1".into()];
    let mut given = drives.clone();
    given.io.interface = Interface::Vfio;
    let mut stack = drives.clone();
    (stack.stack.raid, stack.stack.filesystem) = (Raid::Md0, Filesystem::Ext4);
    let mut keyed = files.clone();
    keyed.kv.engine = LoadEngine::Rocksdb;
    let mut universal = keyed.clone();
    universal.kv.rocksdb.compaction = Compaction::Universal;
    vec![files, drives, given, stack, keyed, universal]
}

/// Values that the knob accepts: all of a fixed set, the steps of a quantity, some texts.
fn values(knob: &Knob) -> Vec<Value> {
    let facts = capable_host();
    let mut values = knob.steps(Conditions { facts: &facts, target: None });
    match knob.spec.kind {
        Kind::Text(_) => values.extend(["", "/dev/nvme7n1"].map(|text| Value::Text(text.into()))),
        Kind::List(_) => values.extend([vec![], vec!["/dev/nvme7n1".into()]].map(Value::List)),
        Kind::Int { min, max, .. } => values.extend([min, max].map(Value::Int)),
        _ => {}
    }
    values
}

/// Everything that is read when a target is opened, and not again. A new field must be added here: either it
/// is read then, or (`_`) while the load runs.
fn opened(settings: &Settings) -> impl PartialEq {
    let whole = settings.clone();
    let Settings {
        name: _,
        about: _,
        target,
        stack,
        io,
        classes: _,
        wal,
        run,
        queue: _,
        md: _,
        placement: _,
        kv,
        sim,
        // A program cannot be replaced while it runs.
        program: _,
    } = whole;
    let stack = Stack { price: 0.0, endurance_tb: 0.0, ..stack };
    let Io {
        interface: _,
        buffering: _,
        page_size_bytes: _,
        registered_buffers: _,
        registered_files: _,
        completion: _,
        submission: _,
        setup: _,
        prio: _,
        sqpoll_idle: _,
        sqpoll_cpu: _,
        poll_sleep: _,
        unsafe_noiommu,
    } = io;
    let Wal { sync: _, sync_every: _, target: wal_target, serial } = wal;
    let Run {
        max_writes_bytes: _,
        cache_limit_bytes: _,
        window: _,
        drain: _,
        cpu_latency: _,
        pace: _,
        slow_log: _,
        seed,
        drives: _,
        drive_rate_bytes_per_s: _,
    } = run;
    let Kv { engine, pairs, scan_pairs: _, scan_whole: _, miss_percent: _, read_percent: _, acks, rocksdb } =
        kv;
    let Rocksdb { compaction, single_level, .. } = rocksdb;
    let outside = Class::ALL.map(|class| Some(settings.interface_of(class)).filter(|of| of.leaves_kernel()));
    (
        (target, stack, unsafe_noiommu, wal_target, serial, seed),
        (engine, pairs, acks, compaction, single_level),
        (sim, outside),
    )
}

fn what_it_takes(old: &Settings, new: &Settings) -> Scope {
    if opened(old) != opened(new) {
        Scope::Rebuild
    } else if OpenedWith::of(&old.kv.rocksdb) != OpenedWith::of(&new.kv.rocksdb) {
        Scope::Reopen
    } else {
        Scope::Live
    }
}

#[test]
fn the_table_gives_the_scope_of_every_knob_and_value() {
    for base in bases() {
        for knob in knobs::all() {
            for value in values(knob) {
                let mut turned = base.clone();
                knob.set(&mut turned, value.clone());
                let change = between(&base, &turned);
                assert_eq!(change.scope, what_it_takes(&base, &turned), "{} = {value}", knob.path);
                if turned != base {
                    assert_eq!(change.scope, knob.scope_of(&value, &base), "{} = {value}", knob.path);
                }
            }
        }
    }
}

#[test]
fn a_turn_restarts_at_most_the_knobs_own_class() {
    for base in bases() {
        for knob in knobs::all() {
            for value in values(knob) {
                let mut turned = base.clone();
                knob.set(&mut turned, value.clone());
                let Change { scope, restarts } = between(&base, &turned);
                if scope != Scope::Live {
                    continue;
                }
                let others = restarts.iter().any(|&class| knob.class.is_some_and(|own| own != class));
                assert!(!others, "{} = {value} restarts {restarts:?}", knob.path);
                let idle = knob.inactive(&base).is_some() && knob.inactive(&turned).is_some();
                assert!(!idle || restarts.is_empty(), "{} = {value} restarts {restarts:?}", knob.path);
            }
        }
    }
}

#[test]
fn a_turn_restarts_the_classes_that_it_concerns() {
    let old = Settings::default();
    let mut new = old.clone();
    new.classes[Class::Scan.index()].depth = 64;
    new.wal.sync_every = 8;
    assert_eq!(between(&old, &new).restarts, [Class::Scan, Class::Wal]);
    new.io.page_size_bytes = 4096;
    assert_eq!(between(&old, &new).restarts.len(), 4);
}

#[test]
fn a_knob_without_effect_restarts_nothing() {
    let old = Settings::default();
    let mut new = old.clone();
    new.classes[0].zipf_theta = 0.5;
    new.classes[1].arrival = crate::settings::values::Arrival::Poisson;
    new.wal.sync = Sync::None;
    let base = new.clone();
    new.wal.sync_every = 8;
    assert_eq!(between(&old, &base).restarts, [Class::Wal]);
    assert_eq!(between(&base, &new).restarts, []);
}

#[test]
fn several_knobs_have_the_widest_scope_of_them() {
    let mut old = Settings::default();
    old.kv.engine = LoadEngine::Rocksdb;
    let mut new = old.clone();
    assert_eq!(between(&old, &new).scope, Scope::Live);
    new.classes[0].depth = 9;
    new.kv.rocksdb.direct_reads = !old.kv.rocksdb.direct_reads;
    assert_eq!(between(&old, &new).scope, Scope::Reopen);
    new.kv.pairs.key_bytes = 32;
    assert_eq!(between(&old, &new).scope, Scope::Rebuild);
}

#[test]
fn targets_are_compared_by_what_is_there_not_by_how_it_is_used() {
    let same = |base: &Settings, turns: &[(&str, &str)]| {
        let mut turned = base.clone();
        for (path, text) in turns {
            let knob = knobs::find(path).unwrap();
            knob.set(&mut turned, knob.parse(text).unwrap());
        }
        {
            let (base, turned) = (TargetIdentity::of(base), TargetIdentity::of(&turned));
            base.is_same(&turned) && turned.is_same(&base)
        }
    };
    let pages = Settings::default();
    assert!(same(&pages, &[("scan.depth", "3"), ("run.seed", "7"), ("stack.price", "100")]));
    assert!(same(&pages, &[("rocksdb.fanout", "4"), ("io.interface", "sync"), ("wal.acks", "/acks")]));
    for (path, text) in [
        ("target.files.count", "2"),
        ("stack.raid", "md0"),
        ("wal.target", "/mnt/log"),
        ("load.engine", "rocksdb"),
        ("kv.value_size", "128B"),
        ("rocksdb.compaction", "universal"),
    ] {
        assert!(!same(&pages, &[(path, text)]), "{path}");
    }
    let mut pairs = pages.clone();
    pairs.kv.engine = LoadEngine::Rocksdb;
    assert!(same(
        &pairs,
        &[("rocksdb.jobs", "8"), ("rocksdb.compactions", "8"), ("rocksdb.direct_reads", "off")]
    ));
    for (path, text) in
        [("block_size", "8KiB"), ("level_base", "16MiB"), ("l0_compact", "8"), ("file_size", "1MiB")]
    {
        let path = format!("rocksdb.{path}");
        assert!(!same(&pairs, &[(&path, text)]) && same(&pages, &[(&path, text)]), "{path}");
    }
    assert!(!same(&pairs, &[("rocksdb.fanout", "4")]), "the levels differ");
    pairs.kv.rocksdb.single_level = true;
    assert!(same(&pairs, &[("rocksdb.fanout", "4")]), "it has no levels");
}

#[test]
fn layers_by_commands_are_of_the_target_and_change_with_it() {
    let layer = crate::settings::Layer {
        name: "l".into(),
        up: vec![vec!["up".into(), "{id}".into()]],
        down: vec![vec!["down".into(), "{id}".into()]],
        device: "/dev/l{id}".into(),
    };
    let plain = Settings::default();
    let mut layered = plain.clone();
    layered.stack.by_commands = vec![layer];
    assert_eq!(between(&plain, &layered).scope, Scope::Rebuild);
    assert!(!TargetIdentity::of(&plain).is_same(&TargetIdentity::of(&layered)));
    let mut other = layered.clone();
    other.stack.by_commands[0].down[0][0] = "away".into();
    assert!(!TargetIdentity::of(&layered).is_same(&TargetIdentity::of(&other)));
    assert!(TargetIdentity::of(&layered).is_same(&TargetIdentity::of(&layered.clone())));
}
