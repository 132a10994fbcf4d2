//! The command line as it is typed.

use std::path::PathBuf;
use std::time::Duration;

use clap::{CommandFactory, Parser};

use super::shared::{EXIT_STATUS, JsonArgs};
use super::*;
use crate::settings::{Interface, Settings, Sync};
use crate::ui::help;

fn parsed(words: &str) -> Cli {
    Cli::try_parse_from(words.split(' ')).unwrap()
}

fn refused(words: &str) -> String {
    let error = Cli::try_parse_from(words.split(' ')).unwrap_err();
    assert_eq!(error.exit_code(), 2, "{words}");
    error.to_string()
}

/// The help at a fixed width, whatever terminal the test runs in.
fn help_of(words: &str) -> String {
    let error = Cli::command().term_width(100).try_get_matches_from(words.split(' ')).unwrap_err();
    assert_eq!(error.exit_code(), 0);
    error.to_string()
}

#[test]
fn the_definitions_hold_together() {
    Cli::command().debug_assert();
}

#[test]
fn a_word_that_is_no_command_is_a_profile() {
    let cli = parsed("stacktune ./mine.toml --read-only --set scan.depth=4 --set wal.sync=none");
    assert_eq!(cli.command, None);
    assert_eq!(cli.profile.as_deref(), Some("./mine.toml"));
    assert!(cli.run.read_only);
    assert_eq!(cli.run.sets.set, ["scan.depth=4", "wal.sync=none"]);
    assert_eq!(parsed("stacktune").profile, None);
    assert_eq!(parsed("stacktune host").command, Some(Cmd::Host(JsonArgs { json: false })));
    // A profile named like a command is given by its path.
    assert_eq!(parsed("stacktune ./host.toml").profile.as_deref(), Some("./host.toml"));
}

#[test]
fn a_recording_takes_durations_and_devices_to_destroy() {
    let words =
        "stacktune record demo --out d --for 1m30s --warmup 5s --destroy /dev/x --destroy /dev/y --json";
    let Some(Cmd::Record(record)) = parsed(words).command else { panic!("not a recording") };
    assert_eq!(
        (record.duration, record.warmup),
        (Some(Duration::from_secs(90)), Some(Duration::from_secs(5)))
    );
    assert_eq!(record.run.destroy, [PathBuf::from("/dev/x"), PathBuf::from("/dev/y")]);
    assert!(record.output.json);
    let Some(Cmd::Record(plain)) = parsed("stacktune record demo --out d").command else { panic!() };
    assert_eq!((plain.duration, plain.warmup), (None, None));
}

#[test]
fn wrong_arguments_are_refused_with_status_2() {
    assert!(refused("stacktune record demo").contains("--out <DIR>"));
    assert!(matches!(
        parsed("stacktune record demo --dry-run").command,
        Some(Cmd::Record(RecordArgs { out: None, .. }))
    ));
    assert!(refused("stacktune record demo --out d --for 5").contains("is not a duration"));
    assert!(refused("stacktune record demo --out d --for 0s").contains("a time above 0"));
    assert!(refused("stacktune --read-only --destroy /dev/x").contains("cannot be used with"));
    assert!(refused("stacktune compare a").contains("2 values required"));
    assert!(refused("stacktune demo --raed-only").contains("--read-only"));
    assert!(refused("stacktune completions tcsh").contains("bash"));
}

#[test]
fn the_examples_fit_80_columns_and_the_rest_wraps() {
    for words in ["stacktune --help", "stacktune record --help", "stacktune reproduce --help"] {
        let error = Cli::command().term_width(80).try_get_matches_from(words.split(' ')).unwrap_err();
        let text = error.to_string();
        let wide: Vec<_> = text.lines().filter(|line| line.chars().count() > 80).collect();
        assert!(wide.is_empty(), "{words}: {wide:?}");
        let (_, examples) = text.split_once("Examples:").unwrap();
        assert!(
            examples
                .lines()
                .take_while(|line| !line.starts_with("Exit"))
                .all(|line| { line.is_empty() || line.starts_with("  ") || line.starts_with("Topics") })
        );
    }
}

#[test]
fn a_mistyped_command_with_arguments_is_named() {
    let said = |words: &str| {
        let error = Cli::try_parse_from(words.split(' ')).unwrap_err();
        mistyped(words.split(' ').nth(1).map(Into::into), &error).map(|error| error.what)
    };
    for words in ["stacktune recrod demo", "stacktune recrod demo --out d"] {
        let what = said(words);
        assert_eq!(what.as_deref(), Some("there is no command `recrod`; did you mean `record`?"), "{words}");
    }
    assert_eq!(said("stacktune record demo"), None);
    assert_eq!(said("stacktune demo --raed-only"), None);
}

#[test]
fn the_help_lists_the_same_exit_statuses() {
    let formats = help::topic("formats").unwrap().text;
    for line in EXIT_STATUS.lines().skip(1) {
        let (status, meaning) = line.trim().split_once(' ').unwrap();
        let row = format!("| {status} | {} |", meaning.trim());
        assert!(formats.contains(&row), "{row}");
    }
}

#[test]
fn sets_turn_knobs_and_new_devices_drop_the_old_serials() {
    let mut settings = Settings::default();
    settings.target.devices = vec!["/dev/a".into()];
    settings.target.serials = vec!["A".into()];
    let sets = |texts: &[&str]| texts.iter().map(ToString::to_string).collect::<Vec<_>>();
    apply_sets(
        &mut settings,
        &sets(&["io.interface=libaio", "wal.sync = none", "scan.depth=4", "scan.depth=8"]),
    )
    .unwrap();
    assert_eq!((settings.io.interface, settings.wal.sync), (Interface::Libaio, Sync::None));
    assert_eq!(settings.classes[0].depth, 8);
    assert_eq!(settings.target.serials, ["A"]);
    apply_sets(&mut settings, &sets(&["target.devices=/dev/b,/dev/c"])).unwrap();
    assert_eq!(settings.target.devices, ["/dev/b", "/dev/c"]);
    assert!(settings.target.serials.is_empty(), "the serials are another device's");
    apply_sets(&mut settings, &sets(&["target.serials=D", "target.devices=/dev/d"])).unwrap();
    assert_eq!(settings.target.serials, ["D"]);
}

#[test]
fn a_wrong_set_names_the_knob_and_turns_nothing() {
    let refusal = |set: &str| {
        let mut settings = Settings::default();
        let error = apply_sets(&mut settings, &["scan.depth=4".into(), set.into()]).unwrap_err();
        assert_eq!(settings, Settings::default());
        assert_eq!(error.exit_status(), 2);
        error.what
    };
    assert_eq!(
        refusal("scan.dept=4"),
        "--set scan.dept=4: there is no `scan.dept`; did you mean `scan.depth`?"
    );
    assert_eq!(
        refusal("scan.depth=0"),
        "--set scan.depth=0: `scan.depth` must be a whole number from 1 to 1024, not \"0\""
    );
    assert_eq!(
        refusal("io.interface=iouring"),
        "--set io.interface=iouring: `io.interface` must be sync, libaio, io_uring, nvme_passthrough, null, sim, vfio or spdk, not \"iouring\"; did you mean `io_uring`?"
    );
    assert_eq!(refusal("scan.depth"), "--set scan.depth: write KNOB=VALUE, such as scan.depth=64");
}

#[test]
fn a_mistyped_command_is_recognized() {
    assert_eq!(nearest_command("recrod").as_deref(), Some("record"));
    assert_eq!(nearest_command("table2-1-baseline"), None);
}

#[test]
fn completions_know_the_commands() {
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        let mut text = Vec::new();
        write_completions(shell, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        for word in ["record", "compare", "warmup", "read-only", "userspace"] {
            assert!(text.contains(word), "{shell:?} {word}");
        }
    }
}

#[test]
fn the_man_page_has_every_command_once() {
    let mut page = Vec::new();
    write_man(&mut page).unwrap();
    let page = String::from_utf8(page).unwrap();
    assert!(page.contains(".TH stacktune 1"), "{page}");
    for sub in Cli::command().get_subcommands().filter(|sub| !sub.is_hide_set()) {
        let heading = format!(".SH \"STACKTUNE {}\"", sub.get_name().to_uppercase());
        assert_eq!(page.matches(&heading).count(), 1, "{heading}");
    }
    assert!(page.contains("130  interrupted") && page.contains("record demo"));
    assert!(!page.contains("Topics ("), "the section has a heading");
    assert!(help::TOPICS.iter().all(|topic| page.contains(&format!("\n  {} ", topic.name))));
}

#[test]
fn help_explains_topics_and_commands() {
    let place = help::TextOutput { columns: 80, styled: false };
    let text = |word: &str| explain(Some(word), place).unwrap();
    assert!(text("flags").starts_with("Flags\n"));
    assert!(text("compare").contains("Usage: stacktune compare"));
    assert!(text("reproduce").contains("--beside") && text("reproduce").contains("Reproducing a paper\n"));
    let list = explain(None, place).unwrap();
    assert!(list.contains("calibrate") && help::TOPICS.iter().all(|topic| list.contains(topic.about)));
    let unknown = explain(Some("flgas"), place).unwrap_err();
    assert_eq!(unknown.exit_status(), 2);
    assert_eq!(unknown.what, "there is no topic or command `flgas`; did you mean `flags`?");
}

#[cfg(feature = "trace")]
#[test]
fn a_trace_on_a_profile_is_a_run_that_is_traced() {
    let to_run = |words: &str| {
        let Some(Cmd::Trace(args)) = parsed(words).command else { panic!("{words}: no trace") };
        args.to_run()
    };
    let words = "stacktune trace --on ./p.toml --out d --destroy /dev/x --mem 32MiB --set stack.filesystem=xfs \
                 --prepare ls --user u --dry-run -- sort a";
    let run = to_run(words).unwrap();
    assert!(run.trace && run.dry_run && !run.keep);
    assert_eq!((run.profile.as_deref(), run.user.as_deref()), (Some("./p.toml"), Some("u")));
    assert_eq!((run.words, run.prepare.as_deref()), (vec!["sort".to_owned(), "a".into()], Some("ls")));
    assert_eq!(
        (run.run.destroy, run.run.sets.set),
        (vec!["/dev/x".into()], vec!["stack.filesystem=xfs".into()])
    );
    assert_eq!((run.mem, run.duration), (Some(32 << 20), Some(Duration::from_hours(1))));
    let timed = to_run("stacktune trace --on p --out d --for 5s -- a").unwrap();
    assert_eq!(timed.duration, Some(Duration::from_secs(5)));
    assert_eq!(to_run("stacktune trace --device /dev/x --out f -- a"), None);
    for (words, said) in [
        ("trace --out d", "--device"),
        ("trace --on p --out d", "COMMAND"),
        ("trace --on p --device /dev/x --out d -- a", "cannot be used with"),
        ("trace --on p --from t --out d -- a", "cannot be used with"),
        ("trace --on p --as fio --out d -- a", "cannot be used with"),
        ("trace --from t --out d -- a", "cannot be used with"),
        ("trace --from t --for 1s --out d", "cannot be used with"),
        ("trace --device /dev/x --mem 1GB --out d -- a", "cannot be used with"),
        ("trace --from t --destroy /dev/x --out d", "cannot be used with"),
    ] {
        assert!(refused(&format!("stacktune {words}")).contains(said), "{words}");
    }
}

#[test]
fn help_reads_well() {
    insta::assert_snapshot!("help_main", help_of("stacktune --help"));
    insta::assert_snapshot!("help_record", help_of("stacktune record --help"));
}
