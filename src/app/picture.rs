//! `stacktune picture`: the screen of a real run, drawn into an SVG file for documents.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::{facts, options, settings};
use crate::cli::{PictureArgs, parse_set};
use crate::error::{Error, Result};
use crate::knobs;
use crate::session::{Command, Event, live};
use crate::tui::message::Msg;
use crate::tui::state::State;
use crate::tui::theme::{Choice, Theme};
use crate::tui::update::update;
use crate::tui::{svg, view};

/// Runs the command.
pub fn run(args: &PictureArgs) -> Result<()> {
    let (settings, demo) = settings(args.profile.as_deref(), &args.run.sets.set)?;
    let turns: Vec<_> = args.turns.iter().map(|turn| parse_set(turn)).collect::<Result<_>>()?;
    let options = options(&args.run, demo);
    let (commands, asked) = channel();
    let (told, events) = channel();
    let session = std::thread::spawn(move || live::run(settings, options, &facts, &asked, &told));

    let mut state = State::new(Theme::new(Choice::Dark, false, None, None), args.columns, args.lines);
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
                // What the screen wants done is for an operator's terminal.
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
    std::fs::write(&args.out, svg(&screen)).map_err(|e| Error::os("cannot write", &args.out, e))
}
