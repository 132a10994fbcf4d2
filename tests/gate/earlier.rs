//! What earlier builds wrote stays readable: recordings, sweeps and journals, kept in `tests/recordings/earlier`.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

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

/// What HdrHistogram's own tools say of its log; `KEEP=1 scripts/hlog.sh` writes it down.
#[test]
fn figures_from_the_log_are_those_of_hdrhistograms_own_tools() {
    let text = include_str!("../recordings/hlog-tools.json");
    let theirs: serde_json::Map<String, Value> = serde_json::from_str(text).unwrap();
    // Without its summary, all figures come from the windows and the log.
    let home = Home::new();
    let dir = home.path("killed");
    fs::create_dir(&dir).unwrap();
    for name in ["host.json", "latency.hlog", "ledger.jsonl", "profile.toml", "windows.jsonl"] {
        fs::copy(format!("{}/{name}", earlier("run")), dir.join(name)).unwrap();
    }
    let summary = home.run(["show", "--json", dir.to_str().unwrap()]).expect(0).json()["summary"].take();
    assert_eq!(summary["rebuilt"], true);
    let mut compared = 0;
    for (tag, theirs) in &theirs {
        let (class, kind) = tag.split_once('.').unwrap_or((tag, "service"));
        let ours = &summary["classes"][class][format!("{kind}_ns")];
        if ours.is_null() {
            assert_eq!(
                (kind, &summary["classes"][class]["response_not_held"]),
                ("response", &Value::Bool(true))
            );
            continue;
        }
        assert_eq!(ours["count"], theirs["count"], "{tag}");
        for figure in ["max", "mean", "p50", "p90", "p99", "p999", "p9999"] {
            let Some(value) = ours[figure].as_f64() else { continue };
            let bounds = theirs[figure].as_array().map_or(vec![theirs[figure].clone()], Vec::clone);
            let bounds: Vec<_> = bounds.iter().map(|bound| bound.as_f64().unwrap()).collect();
            let (low, high) = (bounds[0] * 0.998, bounds[bounds.len() - 1] * 1.002);
            assert!((low..=high).contains(&value), "{tag} {figure}: {value}, theirs {bounds:?}");
            compared += 1;
        }
    }
    assert!(compared > 30, "{compared}");
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
