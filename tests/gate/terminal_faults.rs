//! Former usability problems of the screen, and its behaviour now.

use std::fs;

use crate::common::is_root;
use crate::common::program::{Home, MODEST, json_lines};
use crate::common::terminal::{Terminal, first_line, mb_of};
use crate::terminal::{ALL, quit, running};

/// The message below the verdict.
fn message(screen: &str) -> String {
    let lines: Vec<_> = screen.lines().collect();
    lines[lines.len().saturating_sub(3)..].join("\n")
}

/// The first value in the chosen knob's row, including its marks.
fn chosen_row(screen: &str) -> Option<&str> {
    let row = screen.lines().find(|line| line.contains('◂'))?;
    Some(&row[row.find('▸')?..])
}

#[test]
fn what_was_under_way_is_not_said_once_it_is_done_and_a_rebuild_keeps_the_charts() {
    let home = Home::new();
    let mut terminal = running(&home, &["run.window=100ms"]);
    // The charts' time span, from the axis below them: `-12s ───`.
    let began = |screen: &str| {
        let axis = screen.lines().find(|line| line.contains("─ now"))?;
        let span = axis.split('-').find_map(|part| Some(part.split_once("s ─")?.0))?;
        let (minutes, seconds) = span.split_once("m ").unwrap_or(("0", span));
        Some(minutes.parse::<u64>().ok()? * 60 + seconds.parse::<u64>().ok()?)
    };
    let before = terminal.wait("three seconds", |screen| began(screen).is_some_and(|s| s >= 3));
    terminal.choose("target.files.count");
    terminal.press("h\r");
    terminal.wait_for("open 1 file in ");
    terminal.press("y");
    let after = terminal.wait("the load on one file", |screen| {
        first_line(screen).contains("running")
            && screen.contains("target.files.count 2 → 1")
            && !message(screen).contains("building")
            && began(screen).is_some()
    });
    assert!(began(&after) >= began(&before), "{before}{after}");
    quit(terminal);
}

/// Waits until a turn has a baseline, or the strip says why it can't have one (other tests keep the
/// processors busy). Returns whether it has one.
fn wait_for_baseline(terminal: &mut Terminal) -> bool {
    let ready = |screen: &str| screen.contains("ready: turn a knob");
    // While the load settles there is neither, but that passes.
    let forbidden = |screen: &str| screen.contains("not now: ") && !screen.contains("the load settles");
    ready(&terminal.wait("the baseline", |screen| ready(screen) || forbidden(screen)))
}

#[test]
fn the_readmes_first_turn_is_the_first_key_that_is_pressed_and_shows_something() {
    let readme = include_str!("../../README.md");
    assert!(readme.contains("turn it with `←` from `direct` to `cached`"));
    for size in [(80, 24), ALL] {
        first_turn(&Home::new(), size);
    }
}

fn first_turn(home: &Home, size: (u16, u16)) {
    // The scan has no rate limit.
    let sets = [&MODEST[..], &["run.window=100ms", "scan.rate=none"]].concat();
    let mut terminal = Terminal::demo(home, &sets, size);
    terminal.wait_until_running();
    let screen = terminal.wait_for("▸buffering");
    assert!(chosen_row(&screen).is_some_and(|row| row.contains("◂direct▸")), "{screen}");
    let ready = wait_for_baseline(&mut terminal);
    terminal.press("\x1b[D");
    // A verdict with its interval; or, if a flag forbids one, the figures before and after, and the flag.
    // Without a baseline, because other tests keep the processors busy, the strip says that there was none.
    terminal.wait("what the turn did", |screen| {
        let strip = screen.lines().find(|line| line.contains("▶ turn 1: "));
        let shown = |strip: &str| {
            let is_judged = ["BETTER", "WORSE", "TRADE-OFF", "no clear change"];
            let has_interval = is_judged.iter().any(|word| strip.contains(word)) && strip.contains("%)");
            let has_none = !ready && strip.contains("no baseline: ");
            has_none || has_interval || (strip.contains(" → ") && strip.contains("s, can't be judged: "))
        };
        strip.is_some_and(shown)
    });
    quit(terminal);
}

#[test]
fn after_an_interface_without_storage_the_same_target_is_opened_again() {
    let home = Home::new();
    let dir = home.path("config/stacktune/profiles");
    fs::create_dir_all(&dir).unwrap();
    let target = home.target().display().to_string();
    let files = format!("files = {{ dir = \"{target}\", count = 2, size = \"16MiB\" }}");
    let text = format!("name = \"again\"\n[target]\n{files}\n[scan]\nrate = \"5MB/s\"\n");
    fs::write(dir.join("again.toml"), text).unwrap();
    let mut terminal = running(&home, &[]);
    terminal.choose("io.interface");
    terminal.press("e\x15null\r");
    terminal.wait_for("io.interface io_uring → null");
    // The arrow skips a value that can only be set when the target is opened, and says why.
    terminal.press("l");
    terminal.wait_for("simulated devices take the place of the target");
    terminal.press("o");
    terminal.wait_for("▸ again");
    terminal.press("\r");
    terminal.wait("the same target", |screen| {
        assert!(!screen.contains("in use by process"), "{screen}");
        first_line(screen).contains("again  running") && mb_of(screen, "scan") > 0.0
    });
    quit(terminal);
}

#[test]
fn the_flags_of_a_turn_are_a_count_that_opens() {
    let home = Home::new();
    let mut terminal = running(&home, &["run.window=100ms", "io.interface=sim"]);
    terminal.choose("scan.depth");
    terminal.press("h");
    terminal.wait("the turn with its flags", |screen| {
        screen
            .lines()
            .any(|line| line.contains("1 ") && line.contains("scan.depth 128 → 64") && line.contains('⚑'))
    });
    assert!(!terminal.screen().contains("scan simulated"));
    terminal.press("\t");
    terminal.wait_for("scan simulated");
    terminal.press("\x1b");
    terminal.wait_until_gone("scan simulated");
    quit(terminal);
}

#[test]
fn what_ran_is_said_at_the_end_and_the_ledger_is_kept() {
    let home = Home::new();
    let mut terminal = running(&home, &["run.window=100ms"]);
    wait_for_baseline(&mut terminal);
    terminal.choose("scan.depth");
    terminal.press("h");
    terminal.wait("a verdict", |screen| {
        let strip = screen.lines().find(|line| line.contains("▶ turn 1: scan.depth 128 → 64"));
        strip.is_some_and(|line| !line.contains("settling") && !line.contains("gathering"))
    });
    terminal.press("r");
    terminal.wait_for("recording into");
    terminal.press("rq");
    let left = terminal.left();
    left.expect(0);
    for part in
        ["demo ran ", ": 1 turn", "1. scan.depth 128 → 64: ", " written", "recorded in ", "stacktune show "]
    {
        assert!(left.screen.contains(part), "{part}: {}", left.screen);
    }
    let folder = home.path("state/stacktune/ledger");
    let files: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    let lines = json_lines(&files[0]);
    assert_eq!((files.len(), &lines[0]["profile"], &lines[0]["to"]), (1, &"demo".into(), &"64".into()));
    assert_eq!((&lines[0]["open"], &lines[lines.len() - 1]["open"]), (&true.into(), &false.into()));
    let shown = home.run(&["show", files[0].to_str().unwrap()]).expect(0).stdout;
    assert!(shown.starts_with("demo: 1 turn\n  1. scan.depth 128 → 64: "), "{shown}");

    // Without any turns there is nothing to keep.
    let quiet = Home::new();
    let mut terminal = running(&quiet, &[]);
    terminal.press("q");
    let left = terminal.left();
    assert!(left.screen.contains(": no turns") && !left.screen.contains("stacktune show"), "{}", left.screen);
    assert!(!quiet.path("state/stacktune/ledger").exists());
}

#[test]
fn a_start_that_fails_says_why_until_it_is_closed() {
    let home = Home::new();
    let first = running(&home, &[]);
    let mut second = Terminal::demo(&home, &MODEST, (80, 24));
    second.wait("the reason", |screen| {
        screen.contains("the run has failed")
            && screen.contains("one run at a time on a target")
            && screen.contains("o opens a profile, q quits")
    });
    second.press("xl ");
    second.press("\x1b[C");
    assert!(second.wait_for("the run has failed").contains("in use by process"));
    // After the page is closed, the reason stays in the lines below, whatever key is pressed.
    second.press("\x1b");
    second.wait("the reason", |screen| {
        !screen.contains("the run has failed") && message(screen).contains("is in use by process")
    });
    for key in ["j", "\x1b[C", "\r", "p"] {
        second.press(key);
        second.wait("the reason", |screen| message(screen).contains("is in use by process"));
    }
    second.press("q");
    second.left().expect(1);
    quit(first);
}

#[test]
fn the_strip_says_when_a_turn_can_be_judged_and_why_one_was_not() {
    let home = Home::new();
    let sets = home.sets(&[&MODEST[..], &["run.window=2s"]].concat());
    let mut terminal = Terminal::start(&home, &sets, (80, 24), &[]);
    terminal.wait_for("baseline 0 of 3");
    terminal.wait("the first window", |screen| mb_of(screen, "scan") > 0.0);
    terminal.choose("scan.depth");
    terminal.press("h");
    terminal.wait("the turn", |screen| {
        screen.contains("turn 1: can't be judged: no baseline: it was turned too early")
    });
    // The same holds for the next turn, and at the end.
    terminal.press("h");
    terminal.wait("the second turn", |screen| {
        screen.contains("turn 2: can't be judged: no baseline: it was turned too early")
    });
    terminal.press("q");
    let left = terminal.left();
    left.expect(0);
    for line in ["1. scan.depth 128 → 64: ", "2. scan.depth 64 → 32: "] {
        let said = format!("{line}can't be judged, no baseline: it was turned too early");
        let words = left.screen.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(&said), "{said}: {}", left.screen);
    }

    let mut terminal = running(&home, &["run.window=100ms"]);
    let ready = wait_for_baseline(&mut terminal);
    terminal.choose("scan.depth");
    terminal.press("h");
    // A flag on one of the earlier windows forbids a verdict at once, and the strip names it.
    let judged = ["settling", "gathering ", "can't be judged"];
    let screen = terminal.wait("the turn", |screen| {
        let strip = screen.lines().find(|line| line.contains("▶ turn 1: scan.depth 128 → 64"));
        strip.is_some_and(|strip| strip.contains("no baseline") || judged.iter().any(|is| strip.contains(is)))
    });
    // If the strip said ready, there is a baseline.
    assert!(!ready || !screen.contains("no baseline: it was"), "{screen}");
    quit(terminal);
}

#[test]
fn values_names_and_files_are_called_by_what_they_are() {
    let home = Home::new();
    // A file in place of the profiles' folder: nothing can be saved.
    fs::create_dir_all(home.path("config")).unwrap();
    fs::write(home.path("config/stacktune"), "a file").unwrap();
    let mut terminal = running(&home, &[]);
    terminal.choose("io.page_size");
    terminal.press("e\x15banana\r");
    let screen = terminal.wait_for("`banana` is not a power of two from 512B to 1MiB");
    assert!(!screen.contains("expected"), "{screen}");
    // The cursor moves within the typed text.
    terminal.press("\x1532KB\x1b[Di\x1b[C\r");
    terminal.wait_for("io.page_size 16KiB → 32KiB");

    terminal.press("s\x15mine\r");
    let screen = terminal.wait("the error", |screen| screen.contains("› mine") && screen.contains("(E"));
    assert!(screen.contains("save as a profile"), "{screen}");
    terminal.press("\x1b");
    terminal.wait_until_gone("save as a profile");
    fs::remove_file(home.path("config/stacktune")).unwrap();
    terminal.press("s\x15mine\r");
    terminal.wait_for("saved as");

    // This screen already shows everything: no key shows more.
    assert!(!terminal.screen().contains("v view"), "{}", terminal.screen());
    quit(terminal);
}

#[test]
fn a_recording_says_where_it_lies_and_another_profile_begins_at_the_first_knob() {
    let home = Home::new();
    let mut terminal = running(&home, &[]);
    let folder = home.path("data/stacktune/recordings");
    terminal.press("r");
    terminal.wait("the folder", |screen| message(screen).contains("recording into"));
    terminal.press("r");
    let screen = terminal.wait("the folder", |screen| message(screen).contains("recorded in"));
    let path: String = message(&screen).lines().map(str::trim).collect();
    assert!(path.contains(folder.to_str().unwrap()), "{screen}");

    terminal.press("s\x15mine\r");
    terminal.wait_for("saved as");
    terminal.choose("load.engine");
    terminal.press("o");
    terminal.wait_for("▸ mine ");
    terminal.press("\r");
    terminal.wait("the profile", |screen| {
        first_line(screen).contains("mine")
            && mb_of(screen, "scan") > 0.0
            && chosen_row(screen).is_some_and(|row| row.starts_with("▸buffering"))
            && !message(screen).contains("opening")
    });
    quit(terminal);
}

#[test]
fn the_first_steps_once_hidden_are_gone_for_good_and_values_set_at_the_start_are_marked() {
    const STEPS: &str = "hides these lines for good";
    let home = Home::new();
    let mut terminal = running(&home, &[]);
    let screen = terminal.wait_for(STEPS);
    assert!(first_line(&screen).contains(" demo* "), "--set is not the profile's: {screen}");
    terminal.press("\x1b");
    terminal.wait_until_gone(STEPS);
    quit(terminal);
    let terminal = running(&home, &[]);
    let screen = terminal.wait_for("no knob has been turned yet");
    assert!(!screen.contains(STEPS), "{screen}");
    quit(terminal);
}

#[test]
fn a_recording_that_can_not_begin_says_why_and_then_what_to_do() {
    let home = Home::new();
    fs::write(home.path("a-file"), "").unwrap();
    let below_a_file = home.path("a-file/nowhere");
    let of_the_system =
        "is a system folder – choose a dedicated folder, such as one below /srv, /mnt or /var/tmp";
    let (root, errno) = if is_root() { (of_the_system, "(ENOTDIR)") } else { ("(ENOENT)", "(ENOTDIR)") };
    // Neither allows a folder to be created.
    for (nowhere, reason) in [("/proc/nowhere", root), (below_a_file.to_str().unwrap(), errno)] {
        let data = [("XDG_DATA_HOME", nowhere)];
        let mut terminal = Terminal::start(&home, &home.sets(&MODEST), ALL, &data);
        terminal.wait_until_running();
        terminal.press("r");
        let words = |screen: &str| message(screen).split_whitespace().collect::<Vec<_>>().join(" ");
        let screen = terminal.wait("the reason", |screen| words(screen).contains(reason));
        // The remedy, if any, is set apart from the reason.
        let text = words(&screen);
        let (_, behind) = text.split_once(reason).unwrap();
        let is_apart = [" – ", " ←"].iter().any(|then| behind.starts_with(then));
        assert!(is_apart, "{text}");
        assert!(!first_line(&screen).contains("REC"), "{screen}");
        quit(terminal);
    }
}
