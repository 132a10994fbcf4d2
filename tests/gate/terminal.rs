//! The terminal UI as an operator sees it: the real program in a real pseudo-terminal.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use crate::common::program::{Home, MODEST, json_file, json_lines, wait_for};
use crate::common::terminal::{Terminal, class_row, first_line, mb_of, timed};

pub const ALL: (u16, u16) = (160, 50);

/// Added to time limits, because other tests use the CPUs.
const NOISE: Duration = Duration::from_secs(3);

/// The demo under a light load, running.
pub fn running(home: &Home, more: &[&str]) -> Terminal {
    let sets: Vec<_> = MODEST.iter().chain(more).copied().collect();
    let terminal = Terminal::demo(home, &sets, ALL);
    terminal.wait_until_running();
    terminal
}

/// Quits in order.
#[track_caller]
pub fn quit(mut terminal: Terminal) {
    terminal.press("q");
    terminal.left().expect(0);
}

/// The only recording in a home.
fn recording(home: &Home) -> PathBuf {
    let mut entries = fs::read_dir(home.path("data/stacktune/recordings")).unwrap();
    let dir = entries.next().unwrap().unwrap().path();
    assert!(entries.next().is_none());
    dir
}

/// A screen that is recording, and the recording, once it has that many windows.
pub fn recording_with(home: &Home, windows: usize) -> (Terminal, PathBuf) {
    let mut terminal = running(home, &["run.window=100ms"]);
    terminal.press("r");
    terminal.wait_for("● REC");
    let dir = recording(home);
    wait_for("windows", || (json_lines(&dir.join("windows.jsonl")).len() >= windows).then_some(()));
    (terminal, dir)
}

#[test]
fn help_goes_through_the_pager() {
    let home = Home::new();
    let pager = [("PAGER", "sed s/^/paged:/")];
    let left = Terminal::start(&home, &["help".into(), "lab".into()], (80, 24), &pager).left();
    left.expect(0);
    let text = String::from_utf8_lossy(&left.bytes);
    assert!(text.contains("paged:\x1b[1mThe practice array"), "{text}");
}

#[test]
fn a_command_that_only_reads_keeps_no_right_to_do_more() {
    let home = Home::new();
    let pager = [("PAGER", "grep -hE '^(NoNewPrivs|CapEff|CapPrm):' /proc/self/status #")];
    let left = Terminal::start(&home, &["help".into(), "lab".into()], (80, 24), &pager).left();
    left.expect(0);
    let text = String::from_utf8_lossy(&left.bytes).replace('\t', " ");
    assert!(text.contains("NoNewPrivs: 1"), "{text}");
    // Root may still read every file.
    let rights = if crate::common::is_root() { "0000000000000004" } else { "0000000000000000" };
    for set in ["CapEff", "CapPrm"] {
        assert!(text.contains(&format!("{set}: {rights}")), "{text}");
    }
}

#[test]
fn the_screen_comes_up_and_numbers_move() {
    let home = Home::new();
    let terminal = Terminal::demo(&home, &MODEST, ALL);
    // The header says "running" as soon as the files are filled.
    terminal.wait("a filled target", |screen| first_line(screen).contains("running"));
    let moving = |screen: &str| ["scan", "point", "wal", "background"].iter().all(|c| mb_of(screen, c) > 0.0);
    let (first, took) = timed(|| terminal.wait("moving numbers", moving));
    assert!(took < Duration::from_secs(2) + NOISE, "{took:?}");
    assert!(terminal.is_taken());
    terminal.wait("other numbers", |screen| {
        moving(screen) && class_row(screen, "scan") != class_row(&first, "scan")
    });
    // Flags take the place of the limit.
    assert!(first_line(&first).contains(" written"), "{first}");
    let bytes = terminal.bytes();
    assert!(coloured(&bytes), "an ordinary terminal shows colours");
    quit(terminal);
    for name in ["data-0", "data-1", "wal"] {
        assert!(home.target().join(name).exists(), "{name}");
    }
}

#[test]
fn arrows_and_letters_turn_knobs_and_the_ledger_shows_what_each_changed() {
    let home = Home::new();
    let mut terminal = running(&home, &["run.window=100ms"]);
    terminal.choose("scan.depth");
    terminal.press("l");
    terminal.wait_for("scan.depth 128 → 256");
    terminal.press("h");
    terminal.wait_for("scan.depth 256 → 128");
    terminal.press("\x1b[C");
    // Twice in the ledger, and once in the strip.
    terminal.wait("the arrow's turn", |screen| screen.matches("scan.depth 128 → 256").count() == 3);
    terminal.press("\x1b[B\x1b[D");
    let screen = terminal.wait_for("scan.batch 32 → 16");
    assert!(screen.contains("▸batch"), "{screen}");
    terminal.press("\x1b[A");
    terminal.wait_for("▸depth");
    // Sets an exact value.
    terminal.press("\r");
    terminal.wait_for("scan.depth ─");
    terminal.press("\x15100\r");
    terminal.wait_for("scan.depth 256 → 100");
    terminal.press("u");
    terminal.wait_for("undo scan.depth 100 → 256");
    // Its result appears once the windows after it are complete.
    terminal.wait("a closed ledger line", |screen| !screen.contains("gathering"));
    quit(terminal);
}

#[test]
fn a_turn_is_acknowledged_at_once_while_the_others_go_on() {
    let home = Home::new();
    let loaded = ["scan.rate=none", "scan.depth=128", "run.window=200ms"];
    let mut terminal = running(&home, &loaded);
    terminal.press("r");
    terminal.wait_for("● REC");
    terminal.choose("scan.batch");
    let mut took = Vec::new();
    for turn in ["32 → 16", "16 → 8", "8 → 4", "4 → 2", "2 → 1"] {
        let ((), time) = timed(|| {
            terminal.press("h");
            terminal.wait_for(&format!("scan.batch {turn} "));
        });
        took.push(time);
    }
    terminal.press("r");
    terminal.wait_until_gone("● REC");
    quit(terminal);
    // 200 ms, plus up to 100 ms until the screen is redrawn; the fastest turn shows the program's own time.
    let best = took.iter().min().unwrap();
    assert!(*best < Duration::from_millis(300), "{took:?}");
    assert!(took.iter().all(|time| *time < Duration::from_millis(300) + NOISE), "{took:?}");

    let windows = json_lines(&recording(&home).join("windows.jsonl"));
    assert!(windows.iter().any(|window| window["turned"] == true), "turns are marked");
    for window in &windows {
        if window["duration_ns"].as_u64().unwrap() >= 150_000_000 {
            assert!(
                window["classes"]["point"]["ios"].as_u64().unwrap() > 0,
                "point reads stood still: {window}"
            );
        }
    }
}

#[test]
fn space_pauses_everything_and_nothing_is_intended_meanwhile() {
    let home = Home::new();
    let mut terminal = running(&home, &["run.window=100ms"]);
    terminal.press("r");
    terminal.wait_for("● REC");
    terminal.press(" ");
    terminal.wait_for("PAUSED");
    let dir = recording(&home);
    let paused = || {
        let windows = json_lines(&dir.join("windows.jsonl"));
        let still = |window: &&serde_json::Value| window["paused"] == true && window["turned"] == false;
        windows.iter().filter(still).count()
    };
    wait_for("paused windows", || (paused() >= 5).then_some(()));
    terminal.press(" ");
    terminal.wait_until_gone("PAUSED");
    let count = json_lines(&dir.join("windows.jsonl")).len();
    wait_for("windows after it", || (json_lines(&dir.join("windows.jsonl")).len() > count + 3).then_some(()));
    terminal.press("r");
    terminal.wait_until_gone("● REC");
    quit(terminal);

    let windows = json_lines(&dir.join("windows.jsonl"));
    for window in windows.iter().filter(|window| window["paused"] == true && window["turned"] == false) {
        for class in window["classes"].as_object().unwrap().values() {
            let count = |name: &str| class[name].as_u64().unwrap();
            let still = (count("ios"), count("intended"), count("missed"));
            assert_eq!(still, (0, 0, 0), "{window}");
        }
    }
    let paused_last = windows.iter().rposition(|window| window["paused"] == true).unwrap();
    for class in ["scan", "point", "wal", "background"] {
        let ios = |window: &serde_json::Value| window["classes"][class]["ios"].as_u64().unwrap();
        assert!(windows[paused_last + 1..].iter().map(ios).sum::<u64>() > 0, "class {class} goes on");
    }
    // I/O not intended while paused is not missed afterwards. (I/O intended but not yet begun at the pause is
    // missed, in a window marked as turned.)
    let missed: u64 = windows
        .iter()
        .filter(|window| window["turned"] == false)
        .flat_map(|w| w["classes"].as_object().unwrap().values())
        .map(|c| c["missed"].as_u64().unwrap())
        .sum();
    assert_eq!(missed, 0);
}

#[test]
fn a_class_is_muted_and_comes_back() {
    let home = Home::new();
    let mut terminal = running(&home, &["run.window=100ms"]);
    terminal.choose("wal.enabled");
    terminal.press("m");
    terminal.wait_for("wal.enabled on → off");
    terminal.wait("a silent WAL", |screen| {
        mb_of(screen, "wal") == 0.0 && mb_of(screen, "scan") > 0.0 && mb_of(screen, "background") > 0.0
    });
    terminal.press("u");
    terminal.wait_for("undo wal.enabled off → on");
    terminal.wait("the WAL again", |screen| mb_of(screen, "wal") > 0.0);
    quit(terminal);
}

#[test]
fn a_setting_is_saved_replaced_only_after_yes_and_opened() {
    let home = Home::new();
    let mut terminal = running(&home, &[]);
    let path = home.path("config/stacktune/profiles/mine.toml");
    terminal.press("s");
    terminal.press("\x15mine\r");
    terminal.wait_for("saved as");
    let saved = fs::read_to_string(&path).unwrap();
    assert!(saved.contains("name = \"mine\"") && saved.contains("20MB/s"), "{saved}");

    terminal.choose("scan.depth");
    terminal.press("h");
    terminal.wait_for("scan.depth 128 → 64");
    terminal.press("s");
    terminal.press("\x15mine\r");
    terminal.wait_for("n Esc no");
    terminal.press("\r");
    assert_eq!(fs::read_to_string(&path).unwrap(), saved, "Enter is not yes");
    terminal.press("n");
    terminal.wait_until_gone("n Esc no");
    assert_eq!(fs::read_to_string(&path).unwrap(), saved);
    terminal.press("s");
    terminal.press("\x15mine\r");
    terminal.wait_for("n Esc no");
    terminal.press("y");
    terminal.wait_for("saved as");
    assert!(fs::read_to_string(&path).unwrap().contains("depth = 64"));

    // The list shows it before the built-in ones.
    terminal.press("o");
    terminal.wait_for("▸ mine ");
    terminal.wait_for("lowest-latency");
    terminal.press("\x1b");
    terminal.wait_until_gone("▸ mine ");
    assert!(first_line(&terminal.screen()).contains(" mine "), "{}", terminal.screen());
    terminal.press("q");
    let left = terminal.left();
    left.expect(0);
    let said = String::from_utf8_lossy(&left.bytes);
    assert!(said.contains(&format!("saved as {}", path.display())), "{said}");

    // It opens by name, on the same target, so nothing is filled again.
    let mine = Terminal::start(&home, &["mine".into()], ALL, &[]);
    let screen = mine.wait_until_running();
    assert!(first_line(&screen).contains("mine"), "{screen}");
    quit(mine);
}

#[test]
fn another_profile_is_opened_live() {
    let home = Home::new();
    let dir = home.path("config/stacktune/profiles");
    fs::create_dir_all(&dir).unwrap();
    let target = home.path("other");
    let text = format!(
        "name = \"aaa\"\nabout = \"Another one\"\n[target]\nfiles = {{ dir = \"{}\", count = 1, size = \"16MiB\" }}\n\
         [io]\ninterface = \"sync\"\nbuffering = \"cached\"\n[scan]\ndepth = 2\nrate = \"5MB/s\"\n\
         [wal]\nrate = \"1MB/s\"\n[background]\nrate = \"1MB/s\"\n",
        target.display()
    );
    fs::write(dir.join("aaa.toml"), text).unwrap();
    let mut terminal = running(&home, &[]);
    terminal.press("o");
    // The user's own profiles come first.
    terminal.wait_for("Another one");
    terminal.wait_for("▸ aaa ");
    terminal.press("\r");
    // It fills a file, so it asks for confirmation first.
    terminal.wait_for("fill what is not filled");
    assert!(!target.join("data-0").exists());
    terminal.press("y");
    let screen = terminal.wait("the other profile", |screen| {
        first_line(screen).contains("aaa")
            && first_line(screen).contains("running")
            && mb_of(screen, "scan") > 0.0
    });
    assert!(first_line(&screen).contains("sync cached"), "{screen}");
    assert!(target.join("data-0").exists());
    // The first target is free again.
    home.verify().expect(0);
    quit(terminal);
}

#[test]
fn a_recording_is_started_stopped_and_shown() {
    let home = Home::new();
    let (mut terminal, dir) = recording_with(&home, 5);
    assert!(!dir.join("summary.json").exists());
    terminal.press("r");
    terminal.wait_until_gone("● REC");
    let summary = json_file(&dir.join("summary.json"));
    assert_eq!((&summary["interrupted"], &summary["failure"]), (&false.into(), &serde_json::Value::Null));
    let windows = json_lines(&dir.join("windows.jsonl"));
    let sum: u64 = windows.iter().map(|window| window["total"]["bytes"].as_u64().unwrap()).sum();
    assert_eq!(summary["total"]["bytes"], sum);
    home.show(&dir).expect(0);
    quit(terminal);
}

#[test]
fn the_picture_freezes_while_the_load_goes_on() {
    let home = Home::new();
    let mut terminal = running(&home, &["run.window=100ms"]);
    terminal.press("f");
    let frozen = terminal.wait_for("FROZEN");
    terminal.press("r");
    terminal.wait_for("● REC");
    let dir = recording(&home);
    wait_for("windows", || (json_lines(&dir.join("windows.jsonl")).len() >= 5).then_some(()));
    let later = terminal.screen();
    for class in ["scan", "point", "wal", "background"] {
        assert_eq!(class_row(&frozen, class), class_row(&later, class), "{class}");
    }
    terminal.press("f");
    terminal.wait_until_gone("FROZEN");
    terminal.wait("new numbers", |screen| class_row(screen, "scan") != class_row(&frozen, "scan"));
    quit(terminal);
}

#[test]
fn help_and_sizes() {
    let home = Home::new();
    let mut terminal = running(&home, &[]);
    terminal.press("?");
    terminal.wait("the help", |screen| {
        screen.contains("help · Esc closes") && screen.contains("The chosen knob: io.buffering")
    });
    terminal.press("\x1b");
    terminal.wait_until_gone("help · Esc closes");

    terminal.resize((80, 24));
    terminal.wait("the small screen", |screen| {
        screen.lines().nth(23).is_some_and(|line| line.contains("q quit")) && mb_of(screen, "scan") > 0.0
    });
    terminal.resize((60, 20));
    terminal.wait_for("needs 80×24");
    terminal.resize((160, 50));
    terminal.wait("the large screen", |screen| {
        ["─ ledger", "─ notes", "─ members", "─ cpu"].iter().all(|panel| screen.contains(panel))
            && mb_of(screen, "scan") > 0.0
    });
    quit(terminal);
}

#[test]
fn a_foreign_file_in_the_way_is_reported_and_left_alone() {
    let home = Home::new();
    fs::create_dir_all(home.target()).unwrap();
    let foreign = home.target().join("data-0");
    fs::write(&foreign, "somebody's").unwrap();
    let mut terminal = Terminal::demo(&home, &[], ALL);
    terminal.wait("the reason", |screen| screen.contains("STOPPED") && screen.contains("data-0"));
    terminal.press("q");
    let left = terminal.left();
    left.expect(3);
    assert!(left.screen.contains("data-0"), "printed again on the ordinary screen: {}", left.screen);
    assert_eq!(fs::read_to_string(&foreign).unwrap(), "somebody's");
}

#[test]
fn a_folder_that_cannot_be_made_is_reported() {
    let home = Home::new();
    fs::write(home.target(), "a file").unwrap();
    let mut terminal = Terminal::demo(&home, &[], (80, 24));
    let says = |screen: &str| screen.contains("STOPPED") && screen.contains("is not a");
    terminal.wait("the reason", says);
    // The reason stays through the next keys; only its page closes.
    terminal.press("jk\x1b");
    terminal.wait_until_gone("Esc closes");
    terminal.press("j");
    terminal.wait("the reason still", says);
    terminal.press("q");
    terminal.left().expect(2);
}

/// Whether any of these bytes sets a colour.
fn coloured(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let sequences = text.split("\x1b[").skip(1).filter_map(|rest| {
        let end = rest.find(|c: char| !(c.is_ascii_digit() || c == ';' || c == ':'))?;
        rest[end..].starts_with('m').then(|| &rest[..end])
    });
    let is_colour = |code: &str| {
        let first: u32 = code.split(':').next().unwrap_or_default().parse().unwrap_or(0);
        matches!(first, 30..=38 | 40..=48 | 90..=97 | 100..=107)
    };
    sequences.flat_map(|sequence| sequence.split(';')).any(is_colour)
}

#[test]
fn no_color_means_none() {
    let home = Home::new();
    let sets = home.sets(&MODEST);
    let mut terminal = Terminal::start(&home, &sets, ALL, &[("NO_COLOR", "1"), ("COLORTERM", "truecolor")]);
    terminal.wait_until_running();
    terminal.press("?");
    terminal.wait_for("help · Esc closes");
    terminal.press("\x1bq");
    // Escape directly followed by a letter may be read as one key.
    terminal.press("q");
    let left = terminal.left();
    left.expect(0);
    assert!(!coloured(&left.bytes));
}

#[test]
fn a_terminal_is_asked_for_its_background_and_glyphs_and_who_names_both_is_not_asked() {
    const QUESTION: &[u8] = b"\x1b]11;?";
    // The text colour on light and on dark backgrounds.
    const LIGHT: &str = "38;2;34;40;49";
    const DARK: &str = "38;2;214;219;227";
    let home = Home::new();
    let sets = home.sets(&MODEST);
    let asked = |bytes: &[u8]| bytes.windows(QUESTION.len()).any(|part| part == QUESTION);
    for (answer, version, text, octants) in
        [("ffff/ffff/ffff", "kitty(0.48.0)", LIGHT, true), ("1e1e/1e1e/2e2e", "XTerm(390)", DARK, false)]
    {
        let mut terminal = Terminal::start(&home, &sets, ALL, &[("COLORTERM", "truecolor")]);
        wait_for("the question", || asked(&terminal.bytes()).then_some(()));
        terminal.press(&format!("\x1b]11;rgb:{answer}\x1b\\\x1bP>|{version}\x1b\\\x1b[?62;22c"));
        terminal.wait_until_running();
        assert!(String::from_utf8_lossy(&terminal.bytes()).contains(text), "{answer}");
        let is_octant = |c| matches!(c, '\u{1cd00}'..='\u{1ceab}' | '\u{1fb82}' | '\u{1fb85}');
        let drawn = || terminal.screen().contains(is_octant);
        let has_map = || octants || terminal.screen().contains(['▀', '▄']);
        wait_for("the map", || (has_map() && drawn() == octants).then_some(()));
        assert_eq!(drawn(), octants, "{}", terminal.screen());
        quit(terminal);
    }
    let named: Vec<_> = sets.iter().cloned().chain(["--theme=light".into()]).collect();
    let environment = [("COLORTERM", "truecolor"), ("STACKTUNE_GLYPHS", "blocks")];
    let terminal = Terminal::start(&home, &named, ALL, &environment);
    terminal.wait_until_running();
    assert!(!asked(&terminal.bytes()) && String::from_utf8_lossy(&terminal.bytes()).contains(LIGHT));
    quit(terminal);
}

#[test]
fn glyphs_are_ascii_where_the_locale_or_the_terminal_has_no_others() {
    let home = Home::new();
    for of_terminal in [("LC_ALL", "C"), ("TERM", "dumb"), ("TERM", "linux")] {
        let terminal = Terminal::start(&home, &home.sets(&MODEST), ALL, &[of_terminal]);
        let screen = terminal.wait_until_running();
        assert!(screen.is_ascii() && screen.contains("- stack --"), "{of_terminal:?}: {screen}");
        quit(terminal);
    }
}
