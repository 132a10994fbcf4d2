//! Stacks built, torn down and turned from the screen.

use std::fs;

use crate::common::devices::{Loops, run};
use crate::common::program::{Home, MODEST, wait_for};
use crate::common::terminal::{Terminal, first_line};
use crate::stack_run::{ON_EXT4, TOOLS, assert_nothing_left, fake, program, slow_mkfs};
use rustix::process::Signal;
use serde_json::Value;

pub const ALL: (u16, u16) = (160, 50);
/// The UI on ext4 over a file, running.
fn in_the_ui(home: &Home, path: &str) -> Terminal {
    let state = home.path("state");
    let environment = [("XDG_STATE_HOME", state.to_str().unwrap()), (TOOLS, path)];
    let sets: Vec<_> = MODEST.iter().chain(&ON_EXT4).copied().collect();
    let terminal = Terminal::start(home, &home.sets(&sets), ALL, &environment);
    terminal.wait_until_running();
    terminal
}

/// Turns a knob of the stack's, and confirms the plan, which destroys nobody's data.
fn rebuild(terminal: &mut Terminal, knob: &str, key: &str) {
    terminal.choose(knob);
    terminal.press(key);
    terminal.press("p");
    terminal.wait_for("Steps");
    terminal.press("G");
    terminal.wait_for("y confirm");
    terminal.press("y");
}

/// Quits with `q` and takes down the stack.
fn tear_down_and_quit(mut terminal: Terminal, home: &Home) {
    terminal.press("q");
    terminal.wait_for("tear down and quit");
    terminal.press("t");
    terminal.left().expect(0);
    assert_nothing_left(home);
}

#[test]
fn a_signal_in_the_middle_of_a_rebuild_leaves_nothing() {
    let Some(_loops) = Loops::take("a_signal_in_the_middle_of_a_rebuild_leaves_nothing", 2) else { return };
    for hung_up in [false, true] {
        for signal in [Signal::HUP, Signal::TERM, Signal::QUIT] {
            let home = Home::new();
            let path = slow_mkfs(&home);
            let mut terminal = in_the_ui(&home, &path);
            assert!(home.path("mkfs-ended").exists());
            ["mkfs-begun", "mkfs-ended"].iter().for_each(|mark| fs::remove_file(home.path(mark)).unwrap());
            rebuild(&mut terminal, "stack.loops", "l");
            wait_for("mkfs of the new stack", || home.path("mkfs-begun").exists().then_some(()));
            let last_words = if hung_up {
                assert_eq!(terminal.hang_up(), 130);
                String::new()
            } else {
                terminal.signal(signal);
                let left = terminal.left();
                left.expect(130);
                left.screen
            };
            assert!(home.path("mkfs-ended").exists(), "the tool was let finish: {last_words}");
            assert_nothing_left(&home);
            if hung_up {
                break;
            }
        }
    }
}

#[test]
fn a_failed_rebuild_shows_why_and_the_previous_stack_is_one_key_away() {
    let test = "a_failed_rebuild_shows_why_and_the_previous_stack_is_one_key_away";
    let Some(_loops) = Loops::take(test, 2) else { return };
    let home = Home::new();
    // The first mkfs succeeds, the second one fails.
    let script = "[ -e $0.once ] && [ ! -e $0.well ] && { echo no such luck >&2; exit 1; }
         touch $0.once; exec /usr/sbin/mkfs.ext4 \"$@\"";
    let path = fake(&home, "mkfs.ext4", script);
    let mut terminal = in_the_ui(&home, &path);
    rebuild(&mut terminal, "stack.loops", "l");
    let screen = terminal.wait("the reason", |screen| {
        screen.contains("no such luck") && screen.contains("everything built so far is undone")
    });
    assert!(screen.contains("rebuild previous"), "{screen}");
    assert_nothing_left(&home);
    fs::write(home.path("tools/mkfs.ext4.well"), "").unwrap();
    terminal.press("b");
    terminal.wait_until_running();
    tear_down_and_quit(terminal, &home);
}

/// The commands that take the stack down, according to the program's own list.
fn commands_down(home: &Home) -> Vec<String> {
    let status = program(home, &["status"]).expect(0).stdout;
    status.lines().filter_map(|line| line.strip_prefix("      ")).map(str::to_owned).collect()
}

#[test]
fn bare_devices_are_built_upon_from_the_screen_and_the_plan_shows_what_is_torn_down() {
    let test = "bare_devices_are_built_upon_from_the_screen_and_the_plan_shows_what_is_torn_down";
    let Some(loops) = Loops::take(test, 2) else { return };
    let (home, device) = (Home::new(), loops.blank(256));
    let state = home.path("state");
    let profile = home.path("bare.toml");
    fs::write(&profile, format!("name = \"bare\"\n[target]\ndevices = [{:?}]\n", device.path)).unwrap();
    let sets = MODEST.iter().map(|set| format!("--set={set}"));
    let arguments: Vec<String> = [profile.display().to_string()].into_iter().chain(sets).collect();
    let environment = [("XDG_STATE_HOME", state.to_str().unwrap())];
    let mut terminal = Terminal::start(&home, &arguments, ALL, &environment);
    terminal.wait_until_running();
    let build = |terminal: &mut Terminal, knob: &str, keys: &str| {
        terminal.choose(knob);
        terminal.press(keys);
        terminal.wait_for("1 to plan");
        terminal.press("p");
        terminal.wait_for("Steps");
        // The plan can be confirmed only once its end has been shown.
        terminal.press("\x1b[F");
        let screen = terminal.wait_for("Type its name");
        terminal.press(device.name());
        terminal.press("\r");
        screen
    };
    // The run itself holds the device; that does not count as use by others.
    let screen = build(&mut terminal, "stack.filesystem", "l");
    assert!(!screen.contains("torn down"), "nothing stands yet: {screen}");
    terminal.wait("the turn", |screen| screen.contains("stack.filesystem none → ext4"));
    terminal.wait_until_running();
    let down = commands_down(&home);
    assert!(down.iter().any(|command| command.starts_with("umount ")), "{down:?}");
    let screen = build(&mut terminal, "stack.mount_options", "e\x15noatime\r");
    let torn_down = screen.find("torn down").expect("what is taken down");
    let steps = screen.find("Steps").unwrap();
    for command in &down {
        // Long commands are wrapped.
        let start: String = command.chars().take(40).collect();
        assert!(screen[torn_down..steps].contains(&start), "{command} in {screen}");
    }
    terminal.wait("the turn", |screen| screen.contains("stack.mount_options none → noatime"));
    terminal.wait_until_running();
    tear_down_and_quit(terminal, &home);
}

#[test]
fn the_list_of_drives_says_which_are_empty_and_what_taking_one_destroys() {
    let test = "the_list_of_drives_says_which_are_empty_and_what_taking_one_destroys";
    let Some(loops) = Loops::take(test, 2) else { return };
    let (home, empty) = (Home::new(), loops.blank(64));
    let foreign = loops.device(64, |device| {
        run("mkfs.ext4", &["-q", device.to_str().unwrap()]);
    });
    let mut terminal = Terminal::start(&home, &home.sets(&MODEST), ALL, &[]);
    terminal.wait_until_running();
    terminal.choose("target.devices");
    terminal.press("\r");
    terminal.wait("the drives", |screen| {
        let says = |name: &str, what: &str| {
            screen.lines().any(|row| row.contains(&format!("[ ] /dev/{name} ")) && row.contains(what))
        };
        says(empty.name(), "empty") && says(foreign.name(), "destroyable: holds ext4")
    });
    terminal.press("\x1b");
    terminal.wait_until_gone("none ticked");
    terminal.press("q");
    terminal.left().expect(0);
}

#[test]
fn queue_settings_of_a_stack_are_turned_in_the_ui_and_put_back() {
    let Some(_loops) = Loops::take("queue_settings_of_a_stack_are_turned_in_the_ui_and_put_back", 2) else {
        return;
    };
    let home = Home::new();
    let mut terminal = in_the_ui(&home, "/none");
    let member = home.target();
    let loops = || -> Value {
        let listed = run("losetup", &["--list", "--json", "--output", "NAME,BACK-FILE"]);
        serde_json::from_str(&listed).unwrap()
    };
    let of_ours = |one: &&Value| one["back-file"].as_str().unwrap().starts_with(member.to_str().unwrap());
    let listed = loops();
    let ours = listed["loopdevices"].as_array().unwrap().iter().find(of_ours).unwrap();
    let name = ours["name"].as_str().unwrap().trim_start_matches("/dev/").to_owned();
    let read_ahead = || fs::read_to_string(format!("/sys/block/{name}/queue/read_ahead_kb")).unwrap();
    let found = read_ahead();
    terminal.choose("queue.read_ahead_kb");
    terminal.press("\r");
    terminal.wait_for("queue.read_ahead_kb ─");
    terminal.press("\x1564\r");
    terminal.wait("the turn", |screen| screen.contains("queue.read_ahead_kb default → 64"));
    assert_eq!(read_ahead().trim(), "64");
    let status = program(&home, &["status"]).expect(0).stdout;
    assert!(status.contains("queue setting read_ahead_kb"), "{status}");
    terminal.press("u");
    terminal.wait("the turn back", |screen| screen.contains("undo queue.read_ahead_kb 64 → default"));
    assert_eq!(read_ahead(), found);
    assert!(first_line(&terminal.screen()).contains("running"));
    tear_down_and_quit(terminal, &home);
}
