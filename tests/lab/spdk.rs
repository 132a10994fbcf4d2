//! Drives that SPDK drives: in the rig if these tests are built with it; otherwise the error without it.

use std::process::{Command, Stdio};

use crate::common::program::Home;
use crate::common::{machine, skip};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

#[test]
fn the_load_runs_over_spdk_on_emulated_drives() {
    let test = "the_load_runs_over_spdk_on_emulated_drives";
    if !cfg!(feature = "spdk") {
        return skip(test, "built without SPDK (the cargo feature `spdk`)");
    }
    if let Some(reason) = machine::missing() {
        return skip(test, &reason);
    }
    // DPDK needs SSE4.2, and SPDK may be built for a newer CPU.
    let options = ["--drives", "2", "--size", "128M", "--timeout", "900", "--model", "max"];
    let script = format!("{ROOT}/tests/lab/spdk.sh");
    let printed = machine::run("spdk", &options, &["bash", &script, env!("CARGO_BIN_EXE_stacktune")]);
    println!("{printed}");
    assert!(machine::succeeded(&printed) && printed.contains("\nall went well"), "{printed}");
}

#[test]
fn what_spdk_lacks_here_is_said_with_what_to_do() {
    let home = Home::new();
    let said = |arguments: &[&str]| {
        let output = home.command(arguments).output().unwrap();
        let output_text =
            [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        output_text.concat().split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let (host, check) = (said(&["host"]), said(&["check", "demo", "--set", "io.interface=spdk"]));
    if cfg!(feature = "spdk") {
        assert!(host.contains("SPDK v") && host.contains("DPDK "), "{host}");
        assert!(check.contains("`io.interface` can't be spdk"), "{check}");
    } else {
        for said in [host, check] {
            assert!(said.contains("built without SPDK") && said.contains("--features spdk"), "{said}");
        }
    }
}

#[test]
fn the_helper_is_no_use_by_hand() {
    let output = Command::new(env!("CARGO_BIN_EXE_stacktune"))
        .arg("drive-spdk")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let output_text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && output_text.contains("io.interface = spdk"), "{output_text}");
}
