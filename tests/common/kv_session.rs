//! A session on RocksDB whose knobs an operator turns in each way: live, reopen and rebuild.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use stacktune::testing::runs::session::Options;
use stacktune::testing::settings::knobs;
use stacktune::testing::settings::{Filesystem, LoadEngine, Named, Raid, Settings};

use super::operator::Operator;

/// The environment variables that make a process of these tests the session: on these devices, with these
/// stacks one after the other, as `RAID/FILE SYSTEM`.
pub const DEVICES: &str = "STACKTUNE_TEST_DEVICES";
pub const STACKS: &str = "STACKTUNE_TEST_STACKS";

/// Few and small pairs, with all classes on them.
pub fn few_pairs() -> Settings {
    let mut settings = Settings::default();
    settings.kv.engine = LoadEngine::Rocksdb;
    (settings.kv.pairs.count, settings.kv.pairs.value_bytes) = (Some(5000), 200);
    (settings.kv.rocksdb.direct_reads, settings.kv.rocksdb.direct_flush) = (false, false);
    settings.classes.iter_mut().for_each(|class| (class.depth, class.rate_bytes_per_s) = (1, None));
    settings.run.window = Duration::from_millis(200);
    settings
}

/// The database's own record of its options in a folder.
fn options_in(dir: &Path) -> String {
    let files = fs::read_dir(dir.join("rocksdb")).unwrap().flatten().map(|file| file.path());
    let newest = files.filter(|path| path.to_string_lossy().contains("OPTIONS-")).max();
    fs::read_to_string(newest.unwrap()).unwrap()
}

/// While all classes run, turns a live option of RocksDB, then one that reopens it, then one that rebuilds
/// everything. `dir` returns the folder of the pairs, as long as the stack stands.
pub fn turns_each_kind(operator: &Operator, dir: &dyn Fn() -> PathBuf, direct: bool) {
    operator.turns("rocksdb.fanout", knobs::Value::Float(if direct { 4.0 } else { 6.0 }));
    let fanout = format!("max_bytes_for_level_multiplier={}.000000", if direct { 4 } else { 6 });
    assert!(options_in(&dir()).contains(&fanout));
    operator.sees_all_classes_work("turned");
    let flush = |direct: bool| format!("use_direct_io_for_flush_and_compaction={direct}");
    assert!(options_in(&dir()).contains(&flush(!direct)));
    operator.turns("rocksdb.direct_flush", knobs::Value::Bool(direct));
    assert!(options_in(&dir()).contains(&flush(direct)));
    operator.sees_all_classes_work("opened again");
    for engine in [LoadEngine::Pages, LoadEngine::Rocksdb] {
        operator.builds(&[("load.engine", knobs::Value::Choice(engine.name()))]);
        operator.runs(engine.name(), |settings| settings.kv.engine == engine);
        operator.sees_all_classes_work(engine.name());
    }
}

/// The same on one stack after the other; they are mounted below `state`.
fn turns_on_stacks(devices: &str, stacks: &str, state: &Path) {
    let stacks: Vec<_> = stacks.split(',').map(|stack| stack.split_once('/').unwrap()).collect();
    let of = |(raid, filesystem): (&str, &str)| {
        (Raid::named(raid).unwrap(), Filesystem::named(filesystem).unwrap())
    };
    let mut settings = few_pairs();
    settings.target.devices = devices.split(',').map(Into::into).collect();
    (settings.stack.raid, settings.stack.filesystem) = of(stacks[0]);
    let mount = || fs::read_dir(state.join("stacktune/mnt")).unwrap().next().unwrap().unwrap().path();
    let options = Options { destroy: settings.target.devices.clone(), ..Options::default() };
    Operator::at(settings, options, |operator| {
        for (at, stack) in stacks.iter().enumerate() {
            let (raid, filesystem) = of(*stack);
            if at > 0 {
                let choices = [("stack.raid", raid.name()), ("stack.filesystem", filesystem.name())];
                operator.builds(&choices.map(|(knob, name)| (knob, knobs::Value::Choice(name))));
            }
            operator.runs(stack.1, |now| (now.stack.raid, now.stack.filesystem) == (raid, filesystem));
            turns_each_kind(operator, &mount, at % 2 == 0);
        }
    });
}

/// Runs the session if this is its process, and returns whether it was.
pub fn was_the_session() -> bool {
    let [Ok(devices), Ok(stacks)] = [DEVICES, STACKS].map(std::env::var) else { return false };
    turns_on_stacks(&devices, &stacks, Path::new(&std::env::var("XDG_STATE_HOME").unwrap()));
    true
}
