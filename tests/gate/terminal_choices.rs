//! An operator's choices on the screen: a mark to return to; values, profiles, drives and themes from lists.

use std::fs;

use crate::common::program::{Home, MODEST};
use crate::common::terminal::{Terminal, first_line, mb_of};
use crate::terminal::{ALL, quit, running};

#[test]
fn a_marked_setting_is_gone_back_to_by_a_key_or_by_its_name() {
    let home = Home::new();
    let mut terminal = running(&home, &["run.window=100ms"]);
    terminal.press("a");
    terminal.wait("the mark", |screen| first_line(screen).contains("◆ marked"));
    terminal.choose("scan.depth");
    terminal.press("h");
    terminal.wait_for("scan.depth 128 → 64");
    terminal.choose("point.depth");
    terminal.press("l");
    terminal.wait("both", |screen| first_line(screen).contains("◆ 2 knobs from the mark"));
    // A duel that isn't possible is explained.
    terminal.press("D");
    terminal.wait_for("a duel turns one knob, but 2 differ from the marked setting: scan.depth 64 → 128");
    terminal.press("'");
    terminal.wait("the marked setting", |screen| {
        first_line(screen).contains("◆ marked") && screen.contains("scan.depth 64 → 128")
    });
    // Undo brings back both at once, and the palette returns to the mark.
    terminal.press("u");
    terminal.wait("both", |screen| {
        first_line(screen).contains("◆ 2 knobs from the mark") && screen.contains("undo scan.depth 128 → 64")
    });
    terminal.press(":back to\r");
    terminal.wait("the marked setting", |screen| first_line(screen).contains("◆ marked"));
    quit(terminal);
}

#[test]
fn layers_classes_and_windows_are_walked_through() {
    let home = Home::new();
    let mut terminal = running(&home, &["run.window=100ms"]);
    terminal.wait_for("latency all");
    terminal.press("z");
    terminal.wait_for("latency scan · service · last ");
    terminal.press("Z");
    terminal.wait_for("latency scan · service · whole run");
    terminal.press("L");
    terminal.wait("the slowest", |screen| {
        screen.contains("the longest I/O of scan is ") && first_line(screen).contains("FROZEN")
    });
    terminal.press("P");
    terminal.wait("that of the p99", |screen| {
        screen.contains("the highest p99 of scan is ")
            || screen.contains("no window has enough I/Os for a p99")
    });
    terminal.press("0");
    terminal.wait_until_gone("FROZEN");
    terminal.press("\x1b[1;2D");
    terminal.wait_for("FROZEN");
    terminal.press("0");
    terminal.press("]");
    terminal.wait_for("knobs of file system");
    terminal.press("[[");
    let screen = terminal.wait_for("knobs of interface");
    assert!(screen.contains(" inactive") && !screen.contains("sqpoll_idle"), "{screen}");
    terminal.press("i");
    terminal.wait_for("sqpoll_idle");
    quit(terminal);
}

#[test]
fn what_builds_the_target_anew_is_gone_back_from_through_a_plan() {
    let home = Home::new();
    let mut terminal = running(&home, &["run.window=100ms"]);
    terminal.press("a");
    terminal.choose("target.files.count");
    terminal.press("h\r");
    terminal.wait_for("open 1 file in ");
    terminal.press("y");
    terminal.wait("one file", |screen| {
        first_line(screen).contains("running") && first_line(screen).contains("◆ 1 knob from the mark")
    });
    terminal.press("'");
    terminal.wait("its plan", |screen| {
        screen.contains("target.files.count: 1 → 2") && screen.contains("open 2 files in ")
    });
    terminal.press("y");
    terminal.wait("both files", |screen| {
        first_line(screen).contains("running")
            && first_line(screen).contains("◆ marked")
            && screen.contains("target.files.count 1 → 2")
    });
    quit(terminal);
}

#[test]
fn the_marked_and_the_present_setting_fight_a_duel() {
    let home = Home::new();
    let mut terminal = running(&home, &["run.window=100ms"]);
    terminal.press("a");
    terminal.choose("scan.depth");
    terminal.press("hh");
    terminal.wait_for("scan.depth 64 → 32");
    terminal.press("D");
    terminal.wait_for("turned between 128 (A) and 32 (B)");
    terminal.press("\r");
    terminal.wait_for("duel of scan.depth 128 and 32");
    // The operator can't change settings during the duel.
    terminal.press("a");
    terminal.wait_for("a duel is turning its knob");
    terminal.press("D");
    terminal.wait("its end", |screen| {
        first_line(screen).contains("◆ 1 knob from the mark") && screen.contains("duel (A 128, B 32)")
    });
    quit(terminal);
}

#[test]
fn values_that_this_host_or_target_can_not_have_say_why_in_the_list() {
    let home = Home::new();
    let mut terminal = running(&home, &[]);
    terminal.choose("io.interface");
    terminal.press("\r");
    let screen = terminal.wait("the list", |screen| {
        let says_why = |name: &str| {
            let of = |line: &str| line.contains(&format!(" {name} ")) && line.contains("can't: ");
            screen.lines().any(of)
        };
        ["vfio", "spdk", "nvme_passthrough"].into_iter().all(says_why)
    });
    assert!(screen.contains("completes at once: the generator's own cost"), "{screen}");
    terminal.press("G\r");
    terminal.wait_for("spdk can't be chosen: ");
    terminal.press("\x1b");
    terminal.wait_until_gone("spdk can't be chosen");
    quit(terminal);
}

#[test]
fn a_profile_that_can_not_run_here_says_why_in_the_list_and_is_not_opened() {
    let home = Home::new();
    let dir = home.path("config/stacktune/profiles");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("aaa.toml"), "name = \"aaa\"\n[io]\ninterface = \"vfio\"\n").unwrap();
    fs::write(dir.join("aab.toml"), "name = \"aab\"\n[io]\ninterface = \"none\"\n").unwrap();
    let mut terminal = running(&home, &[]);
    terminal.press("o");
    terminal.wait("the reason", |screen| {
        screen.contains("▸ aaa ") && screen.contains("can't: `io.interface` can't be vfio")
    });
    terminal.press("\r");
    terminal.press("j");
    terminal.wait("the other", |screen| screen.contains("▸ aab ") && screen.contains("it is broken: "));
    terminal.press("\r\x1b");
    terminal.wait_until_gone("▸ aab ");
    let screen = terminal.wait("the load", |screen| mb_of(screen, "scan") > 0.0);
    assert!(first_line(&screen).contains("demo*  running"), "{screen}");
    quit(terminal);
}

#[test]
fn a_profile_that_can_not_be_opened_leaves_the_load_alone() {
    let home = Home::new();
    let dir = home.path("config/stacktune/profiles");
    fs::create_dir_all(&dir).unwrap();
    let foreign = home.path("theirs");
    fs::create_dir_all(&foreign).unwrap();
    fs::write(foreign.join("data-0"), "somebody's").unwrap();
    let on_files = |name: &str, folder: &str, size: &str| {
        let folder = home.path(folder).display().to_string();
        let text = format!(
            "name = \"{name}\"\n[target]\nfiles = {{ dir = \"{folder}\", count = 1, size = \"{size}\" }}\n\
             [io]\ninterface = \"sync\"\nbuffering = \"cached\"\n"
        );
        fs::write(dir.join(format!("{name}.toml")), text).unwrap();
    };
    on_files("aaa", "theirs", "16MiB");
    on_files("aab", "large", "16TiB");
    let program = include_str!("../../profiles/run-fio.toml").replace("run-fio", "aac");
    fs::write(dir.join("aac.toml"), program).unwrap();
    let mut terminal = running(&home, &[]);
    for (keys, chosen, why) in [("o", "▸ aaa ", "data-0 is "), ("oj", "▸ aab ", "but its file system has ")]
    {
        terminal.press(keys);
        terminal.wait_for(chosen);
        terminal.press("\r");
        terminal.wait("the reason", |screen| screen.contains("no plan: ") && screen.contains(why));
    }
    // A profile that runs a program can't be a load on this screen.
    terminal.press("ojj");
    terminal.wait_for("▸ aac ");
    terminal.wait_for("can't: its load is a program: `stacktune run` runs it");
    terminal.press("\r\x1b");
    terminal.wait_until_gone("▸ aac ");
    let screen = terminal.wait("the load", |screen| mb_of(screen, "scan") > 0.0);
    assert!(first_line(&screen).contains("demo  running"), "{screen}");
    assert_eq!(fs::read_to_string(foreign.join("data-0")).unwrap(), "somebody's");
    assert!(!home.path("large").exists());
    quit(terminal);
}

#[test]
fn the_drives_of_the_host_are_listed_and_none_is_touched() {
    let home = Home::new();
    let mut terminal = running(&home, &[]);
    terminal.choose("target.devices");
    terminal.press("\r");
    let screen = terminal.wait("the drives", |screen| {
        screen.contains("none ticked: the target is files") && !screen.contains("being examined")
    });
    // Whatever drives this host has: each row says what is on the drive, or why it can't be chosen.
    let rows = screen.lines().filter(|line| line.contains("[ ] "));
    for row in rows {
        let says =
            ["can't: ", "empty", "holds ", "filled by stacktune"].iter().any(|text| row.contains(text));
        assert!(says, "{row}");
    }
    terminal.press("\r");
    terminal.wait_until_gone("none ticked");
    quit(terminal);
}

#[test]
fn btops_theme_files_are_chosen_by_name_and_on_the_screen() {
    // The text colour in the theme file, and in the built-in palette.
    const OWN: &str = "38;2;1;2;3";
    const LIGHT: &str = "38;2;34;40;49";
    let home = Home::new();
    let dir = home.path("config/stacktune/themes");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("mine.theme"), "# Mine\ntheme[main_bg]=\"#f0f0f0\"\ntheme[main_fg]=\"#010203\"\n")
        .unwrap();
    fs::write(dir.join("other.theme"), "theme[main_fg]=\"#xyz\"\n").unwrap();
    let sets = home.sets(&MODEST);
    let with = |theme: &str| sets.iter().cloned().chain([format!("--theme={theme}")]).collect::<Vec<_>>();
    let has = |terminal: &Terminal, colour: &str| String::from_utf8_lossy(&terminal.bytes()).contains(colour);

    let terminal = Terminal::start(&home, &with("mine"), ALL, &[]);
    terminal.wait_until_running();
    assert!(has(&terminal, OWN) && !has(&terminal, LIGHT));
    quit(terminal);

    let mut terminal = Terminal::start(&home, &with("light"), ALL, &[]);
    terminal.wait_until_running();
    terminal.press(":theme\r");
    terminal.wait_for("▸ light");
    terminal.press("G");
    terminal.wait_for("line 1: main_fg must be a colour");
    assert!(!has(&terminal, OWN));
    terminal.press("k");
    terminal.wait_for("▸ mine");
    terminal.press("\r");
    terminal.wait_until_gone("▸ mine");
    assert!(has(&terminal, OWN));
    quit(terminal);

    for (theme, why) in [("none", "there is no theme `none`"), ("other", "main_fg must be a colour")] {
        let left = Terminal::start(&home, &with(theme), ALL, &[]).left();
        left.expect(2);
        assert!(left.screen.contains(why), "{}", left.screen);
        let run = home.run(["run", "demo", "--theme", theme, "--", "true"]).expect(2);
        assert!(run.stderr.contains(why), "{}", run.stderr);
    }
    // `run` has no screen.
    let run = home.run(["run", "demo", "--theme=light", "--out", "x", "--", "true"]).expect(2);
    assert!(run.stderr.contains("cannot be used with"), "{}", run.stderr);
}
