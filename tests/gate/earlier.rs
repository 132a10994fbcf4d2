//! What earlier builds wrote stays readable: recordings, sweeps and journals, kept in `tests/recordings/earlier`.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::common::program::Home;

fn earlier(name: &str) -> String {
    format!("{}/tests/recordings/earlier/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn an_earlier_recording_is_shown_and_compared() {
    let home = Home::new();
    let shown = home.run(["show", &earlier("run")]).expect(0);
    for expected in ["profile demo, 3s", "AMD EPYC", "scan                3608", "missed 1421 of 3053"] {
        assert!(shown.stdout.contains(expected), "{expected}: {shown:?}");
    }
    let shown = home.run(["show", "--json", &earlier("run")]).expect(0).json();
    assert_eq!(shown["summary"]["schema"], 1);
    let compared = home.run(["compare", &earlier("run"), &earlier("other")]).expect(0);
    assert!(compared.stdout.contains("scan.depth: A 128 | B 4"), "{compared:?}");
}

#[test]
fn an_earlier_sweep_is_shown() {
    let shown = Home::new().run(["show", &earlier("sweep")]).expect(0);
    for expected in ["2 of 2 runs, shuffled by seed 1", "scan.depth=1 ", "scan.depth=4 "] {
        assert!(shown.stdout.contains(expected), "{expected}: {shown:?}");
    }
}

/// It was killed once its first member was attached, and the machine was restarted.
#[test]
fn what_an_earlier_build_left_is_listed_and_cleaned_up() {
    let home = Home::new();
    let (state, members) = (home.path("state"), home.path("members"));
    let journals = state.join("stacktune/journal");
    let stack = members.join("stack-1d09c32e70b2af8b");
    fs::create_dir_all(&journals).unwrap();
    fs::set_permissions(&journals, fs::Permissions::from_mode(0o700)).unwrap();
    fs::create_dir_all(&stack).unwrap();
    fs::write(stack.join("loop-0.img"), [0; 4096]).unwrap();
    let text = fs::read_to_string(earlier("journal.jsonl")).unwrap();
    let journal = journals.join("1d09c32e70b2af8b.jsonl");
    fs::write(&journal, text.replace("@FOLDER@", members.to_str().unwrap())).unwrap();
    fs::set_permissions(&journal, fs::Permissions::from_mode(0o600)).unwrap();

    let run = |command: &str| {
        let mut command = home.command([command]);
        let output = command.env("XDG_STATE_HOME", &state).output().unwrap();
        crate::common::program::Outcome::of(&output).expect(0)
    };
    let status = run("status");
    assert!(status.stdout.contains("loop-0.img"), "{status:?}");
    let cleaned = run("cleanup");
    assert!(cleaned.stdout.contains("1d09c32e70b2af8b"), "{cleaned:?}");
    assert!(!stack.exists() && !journal.exists(), "{cleaned:?}");
}
