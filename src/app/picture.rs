//! `stacktune picture`: the screen of a real run, drawn into an SVG file for documents.

use std::io::{ErrorKind, Read};
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::inputs::{facts, options, profile};
use crate::error::{Error, Result};
use crate::held_folder::HeldFolder;
use crate::printable;
use crate::regular_file;
use crate::runs::session::{Command, Event, live};
use crate::settings::knobs;
use crate::threads;
use crate::ui::cli::{PictureArgs, parse_set};
use crate::ui::tui::message::Msg;
use crate::ui::tui::state::State;
use crate::ui::tui::theme::Theme;
use crate::ui::tui::update::update;
use crate::ui::tui::{is_svg_of_ours, svg, view};

/// A picture is known by its first lines.
const HEAD_BYTES: u64 = 4096;

/// Runs the command.
pub fn run(args: &PictureArgs) -> Result<()> {
    // Before spending time on a run.
    refuse_other_file(&args.out)?;
    let (profile, demo) = profile(args.profile.as_deref(), &args.run.sets.set)?;
    let turns: Vec<_> = args.turns.iter().map(|turn| parse_set(turn)).collect::<Result<_>>()?;
    let options = options(&args.run, &profile.settings, demo);
    let (commands, asked) = channel();
    let (report, events) = channel();
    let run = move || live::run(profile.settings, options, &facts, &asked, &report);
    let session = threads::start("run the load", run)?;

    let mut state = State::new(Theme::named(args.theme), args.columns, args.lines);
    let gap = args.duration / (turns.len() as u32 + 1);
    let mut turns = turns.into_iter();
    let mut due = gap;
    let mut began = None;
    loop {
        match events.recv_timeout(Duration::from_millis(50)) {
            Ok(Event::Ended(ended)) => return ended.and(Err(Error::failed("the run ended too early"))),
            Ok(event) => {
                if matches!(event, Event::Window(..)) {
                    began.get_or_insert_with(Instant::now);
                }
                // The screen's effects need an operator's terminal.
                let _ = update(&mut state, Msg::Session(event));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(Error::failed("the run ended too early")),
        }
        let elapsed = began.map_or(Duration::ZERO, |began: Instant| began.elapsed());
        if elapsed >= due
            && let Some((index, value)) = turns.next()
        {
            let _ = commands.send(Command::Turn { knob: knobs::all()[index].path.clone(), value });
            due += gap;
        }
        if elapsed >= args.duration {
            break;
        }
    }
    let mut screen = Buffer::empty(Rect::new(0, 0, args.columns, args.lines));
    view::draw(&state, &mut screen);
    let _ = commands.send(Command::Quit);
    let _ = session.join();
    write(&args.out, &svg(&screen))
}

/// Refuses to overwrite anything but a picture drawn by this command. A link is none.
fn refuse_other_file(out: &Path) -> Result<()> {
    let unreadable = |e| Error::os("cannot read", out, e);
    let is_file = match out.symlink_metadata() {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
        found => found.map_err(unreadable)?.is_file(),
    };
    let mut text = Vec::new();
    if is_file {
        let file = regular_file::open(out).map_err(unreadable)?;
        file.take(HEAD_BYTES).read_to_end(&mut text).map_err(unreadable)?;
    }
    if is_svg_of_ours(&text) {
        return Ok(());
    }
    let what = format!("{} already exists, and is not a picture drawn by stacktune", printable::path(out));
    Err(Error::refused(what).hint("it was left unchanged: choose another file with --out"))
}

fn write(out: &Path, svg: &str) -> Result<()> {
    refuse_other_file(out)?;
    let dir = out.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Some(name) = out.file_name().and_then(|name| name.to_str()) else {
        return Err(Error::input(format!("{} can't name a picture", printable::path(out))));
    };
    // Others may have put a link there meanwhile: it is replaced, not followed.
    HeldFolder::open(dir)?.replace(name, svg.as_bytes())
}
