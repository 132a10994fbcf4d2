//! RocksDB operated by hand on stacks that only the machine has: md arrays, and F2FS.

use crate::common::kv_session::{DEVICES, STACKS, was_the_session};
use crate::common::{LEFT_TO_SOAK, is_soak, machine, skip, this_test};

#[test]
fn pairs_on_md_and_f2fs_are_turned_opened_again_and_built_anew_under_load() {
    let name = "pairs_on_md_and_f2fs_are_turned_opened_again_and_built_anew_under_load";
    if was_the_session() {
        return;
    }
    if let Some(reason) = machine::missing() {
        return skip(name, &reason);
    }
    // tests/devices/kv.rs does the same on loop devices.
    if !is_soak() {
        return skip(name, LEFT_TO_SOAK);
    }
    let session = this_test(module_path!(), name);
    let (stacks, devices) =
        (format!("{STACKS}=md0/f2fs,md1/ext4"), format!("{DEVICES}=/dev/nvme0n1,/dev/nvme1n1"));
    let mut command = vec!["env", "XDG_STATE_HOME=/run/state", &stacks, &devices];
    command.push(session.get_program().to_str().unwrap());
    command.extend(session.get_args().map(|argument| argument.to_str().unwrap()));
    let printed =
        machine::run("kv-session", &["--timeout", "900", "--drives", "2", "--size", "384M"], &command);
    assert!(machine::succeeded(&printed) && printed.contains("1 passed"), "{printed}");
}
