//! `stacktune run` on the screen: the program's own knobs, listed and turned like those of the stack.

use std::fs;
use std::path::Path;

use crate::common::devices::Loops;
use crate::common::program::{Home, wait_for};
use crate::common::terminal::{Terminal, first_line};
use crate::program::{USER, nothing_runs};
use crate::program_knobs::BENCH;
use crate::stack_screen::ALL;

const RIGHT: &str = "\x1b[C";

/// A knob whose command rejects the second value.
const BROKEN: &str = r#"
[[command.knob]]
name = "broken"
values = ["a", "b"]
turn = ["sh", "-c", "[ {value} = a ] || { echo no such luck; exit 3; }"]
"#;

/// A profile's program running on a fresh screen.
pub fn on_screen(home: &Home, command: &str, more: &[&str]) -> Terminal {
    let (path, state) = (home.path("bench.toml"), home.path("state"));
    let target = home.target().display().to_string();
    let text = format!("name = \"bench\"\n[target]\nfiles = {{ dir = \"{target}\" }}\n{command}\n");
    fs::write(&path, text).unwrap();
    let arguments = ["run", path.to_str().unwrap(), "--user", USER].into_iter().chain(more.iter().copied());
    let arguments: Vec<String> = arguments.map(str::to_owned).collect();
    let terminal = Terminal::start(home, &arguments, ALL, &[("XDG_STATE_HOME", state.to_str().unwrap())]);
    terminal.wait("the program's figures", |screen| {
        screen.contains("what it reports") && first_line(screen).contains("running")
    });
    terminal
}

/// The value last set by the program's command.
fn rate(home: &Home) -> String {
    fs::read_to_string(home.target().join("stacktune-program/rate")).unwrap_or_default().trim().to_owned()
}

fn wait_for_rate(terminal: &Terminal, home: &Home, value: &str) {
    terminal.wait(&format!("a rate of {value}"), |_| rate(home) == value);
}

/// Whether a turn has its verdict; with concurrent tests the processors may be full, which forbids one.
fn is_judged(screen: &str) -> bool {
    screen.contains("BETTER") || screen.contains("can't be judged")
}

/// The text of the profile saved under that name.
fn saved(config: &Path) -> Option<String> {
    fs::read_to_string(config.join("stacktune/profiles/mine.toml")).ok()
}

#[test]
fn a_knob_of_the_programs_own_is_turned_judged_and_undone_on_the_screen() {
    let name = "a_knob_of_the_programs_own_is_turned_judged_and_undone_on_the_screen";
    let Some(_loops) = Loops::take(name, 1) else { return };
    let home = Home::new();
    let mut terminal = on_screen(&home, &format!("{BENCH}{BROKEN}"), &["--set=command.loops=100"]);
    let screen = terminal.wait("its own knobs and none of the classes", |screen| {
        screen.contains("turn the chosen knob, such as command.rate")
            && screen.contains("knobs of application")
            && !screen.contains("background")
    });
    assert!(first_line(&screen).contains("bench*"), "--set is not the profile's: {screen}");
    // Concurrent tests may raise a flag that forbids any verdict for as long as they run.
    terminal.wait("a baseline", |screen| {
        let forbidden = screen.contains("not now: ") && !screen.contains("the load settles");
        screen.contains("ready: turn a knob") || forbidden
    });
    terminal.press(RIGHT);
    terminal.wait_for("command.rate 100 → 200");
    assert_eq!(rate(&home), "200", "in the ledger once its command has succeeded");
    let screen = terminal.wait("a verdict", is_judged);
    if screen.contains("BETTER") {
        assert!(screen.contains("rate +9") || screen.contains("rate +1"), "{screen}");
    }
    terminal.press("u");
    terminal.wait_for("undo command.rate 200 → 100");
    wait_for_rate(&terminal, &home, "100");
    // The second turn is requested while the first one's command runs.
    terminal.press(&RIGHT.repeat(2));
    wait_for_rate(&terminal, &home, "400");
    terminal.wait_for("→ 400");
    // Turns are undone one by one.
    terminal.press("u");
    wait_for_rate(&terminal, &home, "200");

    terminal.choose("command.broken");
    terminal.press(RIGHT);
    terminal.wait_for("command.broken was not turned: command.knob.turn ended with status 3: no such luck");
    // A knob without a command restarts the program, through a plan.
    terminal.choose("command.loops");
    terminal.press("\x1b[D");
    terminal.wait_for("1 to plan");
    terminal.press("p");
    terminal.wait_for("command.loops: 100 → 12");
    terminal.press("G");
    terminal.wait_for("y confirm");
    terminal.press("y");
    terminal.wait("the program, started anew", |screen| {
        screen.contains("command.loops 100 → 12") && first_line(screen).contains("running")
    });
    wait_for_rate(&terminal, &home, "200");
    begins_again_as_turned(&mut terminal, &home);

    terminal.press("s");
    terminal.wait_for("save");
    terminal.press("mine\r");
    let text = wait_for("the saved profile", || saved(&home.path("config")));
    assert!(text.contains("value = \"200\"") && text.contains("value = \"12\""), "{text}");
    terminal.press("q");
    terminal.left().expect(0);
    nothing_runs(&home);
}

/// A program that ends after about a second is restarted with the turned settings.
fn begins_again_as_turned(terminal: &mut Terminal, home: &Home) {
    terminal.choose("command.rate");
    terminal.press(RIGHT);
    wait_for_rate(terminal, home, "400");
    let written = || fs::metadata(home.target().join("stacktune-program/rate")).unwrap().modified().unwrap();
    // The first write may still be the turn's.
    for _ in 0..2 {
        let before = written();
        wait_for("the program, begun again", || (written() > before).then_some(()));
    }
    wait_for_rate(terminal, home, "400");
    terminal.press("u");
    terminal.wait_for("◂200▸");
    wait_for_rate(terminal, home, "200");
}

#[test]
fn a_program_without_knobs_of_its_own_has_those_of_what_is_below() {
    let name = "a_program_without_knobs_of_its_own_has_those_of_what_is_below";
    let Some(_loops) = Loops::take(name, 1) else { return };
    let home = Home::new();
    let text = "[command]\nrun = [\"sh\", \"-c\", \"while :; do echo x = 1; sleep 0.1; done\"]\n\
                [command.metrics]\nx = { line = 'x = ([0-9]+)' }\n";
    let mut terminal = on_screen(&home, text, &["--theme=light"]);
    let screen = terminal.wait_for("turn the chosen knob, such as queue.scheduler");
    assert!(screen.contains("knobs of drives"), "{screen}");
    // The light palette's text.
    assert!(String::from_utf8_lossy(&terminal.bytes()).contains("38;2;34;40;49"), "{screen}");
    terminal.press("m");
    terminal.wait_for("a program is the load");
    terminal.press("D");
    terminal.wait_for("none of the program's figures has `better`");
    terminal.press("q");
    terminal.left().expect(0);
    nothing_runs(&home);
}
