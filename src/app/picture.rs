//! `stacktune picture`: the screen of a real run, still or moving, drawn into an SVG file for documents.

use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::duel::knob_and_values;
use super::inputs::{facts, options, profile};
use crate::error::{Error, Result};
use crate::held_folder::HeldFolder;
use crate::printable;
use crate::regular_file;
use crate::runs::duel::DuelSpec;
use crate::runs::session::{Command, Duel, DuelAsked, Event, live};
use crate::settings::Settings;
use crate::settings::knobs::{self, Value};
use crate::threads;
use crate::ui::cli::{PictureArgs, parse_set};
use crate::ui::theme_name::ThemeName;
use crate::ui::tui::message::{Effect, Msg};
use crate::ui::tui::state::State;
use crate::ui::tui::theme::Theme;
use crate::ui::tui::update::{choose_knob, picked, update};
use crate::ui::tui::{Film, Paper, animated, cast, is_cast_of_ours, is_svg_of_ours, svg, view};

/// Enough to recognize a file of ours by its first lines.
const HEAD_BYTES: u64 = 4096;
/// How often to check what is due.
const LOOK: Duration = Duration::from_millis(50);
/// The screen is filmed once nothing has come for [`LOOK`], or after this time.
const FRAME_MAX: Duration = Duration::from_secs(1);
/// How long a duel may take to begin.
const BEGINS_MAX: Duration = Duration::from_secs(10);
/// How long the run goes on after a duel.
const AFTER_DUEL: Duration = Duration::from_secs(3);

/// Runs the command.
pub fn run(args: &PictureArgs) -> Result<()> {
    // Before spending time on a run.
    let files = Files::of(args)?;
    let (profile, demo) = profile(args.profile.as_deref(), &args.run.sets.set)?;
    let script = Script::of(args, &profile.settings)?;
    let options = options(&args.run, &profile.settings, demo);
    let (commands, asked) = channel();
    let (report, events) = channel();
    let run = move || live::run(profile.settings, options, &facts, &asked, &report);
    let session = threads::start("run the load", run)?;

    let mut shooting = Shooting {
        script,
        state: State::new(Theme::named(args.theme), args.columns, args.lines),
        film: Film::default(),
        films: args.animate || args.cast.is_some(),
        changed: false,
        notable: false,
    };
    let early = || Error::failed("the run ended too early");
    let mut began = None;
    let elapsed = |began: Option<Instant>| began.map_or(Duration::ZERO, |began| began.elapsed());
    let mut filmed = Duration::ZERO;
    while elapsed(began) < shooting.script.until {
        let event = match events.recv_timeout(LOOK) {
            Ok(Event::Ended(ended)) => return ended.and(Err(early())),
            Ok(event) => Some(event),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return Err(early()),
        };
        let quiet = event.is_none();
        if let Some(event) = event {
            if matches!(event, Event::Window(..)) {
                began.get_or_insert_with(Instant::now);
            }
            shooting.take(elapsed(began), event);
        }
        for effect in shooting.due(elapsed(began)) {
            // Other effects need an operator's terminal.
            if let Effect::Send(command) = effect {
                let _ = commands.send(command);
            }
        }
        if began.is_some() && (quiet || elapsed(began) >= filmed + FRAME_MAX) {
            filmed = elapsed(began);
            shooting.shoot(filmed);
        }
    }
    shooting.script.check_begun(&shooting.state)?;
    shooting.changed = true;
    shooting.shoot(elapsed(began));
    let _ = commands.send(Command::Quit);
    let _ = session.join();
    let paper = if args.theme == ThemeName::Light { Paper::LIGHT } else { Paper::DARK };
    let picture = if args.animate {
        animated(&shooting.film, &view::plots(&shooting.state), paper)
    } else {
        svg(&shooting.screen(), paper)
    };
    files.write(&picture, &shooting.film)
}

/// The files to write.
struct Files<'a> {
    picture: &'a Path,
    cast: Option<PathBuf>,
}

impl<'a> Files<'a> {
    fn of(args: &'a PictureArgs) -> Result<Self> {
        let beside = || args.animate.then(|| args.out.with_extension("cast"));
        let files = Self { picture: &args.out, cast: args.cast.clone().or_else(beside) };
        if files.cast.as_deref() == Some(files.picture) {
            return Err(Error::input("--cast names the same file as --out").hint("choose another file"));
        }
        files.refuse_others()?;
        Ok(files)
    }

    fn refuse_others(&self) -> Result<()> {
        refuse_other_file(self.picture, is_svg_of_ours, ("a picture drawn", "--out"))?;
        let cast = self.cast.as_deref();
        cast.map_or(Ok(()), |cast| refuse_other_file(cast, is_cast_of_ours, ("a recording made", "--cast")))
    }

    fn write(&self, picture: &str, film: &Film) -> Result<()> {
        self.refuse_others()?;
        write(self.picture, picture)?;
        self.cast.as_deref().map_or(Ok(()), |path| write(path, &cast(film)))
    }
}

/// What is done to the run, and when.
struct Script {
    turns: std::vec::IntoIter<(usize, Value)>,
    /// The time between two turns, and when the next one is due.
    gap: Duration,
    next: Duration,
    /// The duel, until it is asked for, and when to ask for it.
    duel: Option<DuelAsked>,
    duel_at: Duration,
    /// Whether it was asked for but has not begun yet.
    duel_awaited: bool,
    /// When the picture is complete.
    until: Duration,
}

impl Script {
    fn of(args: &PictureArgs, settings: &Settings) -> Result<Self> {
        let turns: Vec<_> = args.turns.iter().map(|turn| parse_set(turn)).collect::<Result<_>>()?;
        let gap = args.duration / (turns.len() as u32 + 1);
        let asked = |asked: &String| -> Result<DuelAsked> {
            let (knob, values) = knob_and_values(asked)?;
            let figure = args.duel_figure.clone();
            // Refused now rather than after all turns.
            let spec = DuelSpec {
                knob: knob.clone(),
                values: values.clone(),
                figure: figure.clone(),
                margin: 0.05,
                seed: 0,
            };
            Duel::new(spec, settings)?;
            Ok(DuelAsked { knob, values, figure })
        };
        let duel = args.duel.as_ref().map(asked).transpose()?;
        Ok(Self {
            turns: turns.into_iter(),
            gap,
            next: gap,
            duel_at: args.duration,
            duel_awaited: false,
            until: if duel.is_some() { Duration::MAX } else { args.duration },
            duel,
        })
    }

    /// Fails if the duel was refused: the picture would not show one.
    fn check_begun(&self, state: &State) -> Result<()> {
        if !self.duel_awaited {
            return Ok(());
        }
        let why = state.message.as_ref().map_or("it did not begin", |message| &message.text);
        Err(Error::failed(format!("no picture was drawn, as there was no duel: {why}")))
    }
}

/// The screen of the run, its script, and what is filmed.
struct Shooting {
    script: Script,
    state: State,
    film: Film,
    films: bool,
    /// Whether the screen may have changed since the last frame, and whether by something notable.
    changed: bool,
    notable: bool,
}

impl Shooting {
    fn take(&mut self, elapsed: Duration, event: Event) {
        self.changed = true;
        self.notable |= matches!(&event, Event::Ledger(line) if !line.open);
        if let Event::Duel(shown) = &event {
            self.notable = true;
            self.script.duel_awaited = false;
            self.script.until = if shown.is_over { elapsed + AFTER_DUEL } else { Duration::MAX };
        }
        let _ = update(&mut self.state, Msg::Session(event));
    }

    /// Applies what is due to the screen, and returns what to send to the run.
    fn due(&mut self, elapsed: Duration) -> Vec<Effect> {
        let script = &mut self.script;
        if elapsed >= script.next
            && let Some((index, value)) = script.turns.next()
        {
            script.next += script.gap;
            (self.changed, self.notable) = (true, true);
            let knob = &knobs::all()[index];
            choose_knob(&mut self.state, knob);
            return picked(&mut self.state, knob, value);
        }
        if elapsed >= script.duel_at
            && let Some(duel) = script.duel.take()
        {
            script.duel_awaited = true;
            script.until = elapsed + BEGINS_MAX;
            // It is about the last turn of its knob, if there was one.
            let line = self.state.live.ledger.iter().rev().find(|line| line.knob == duel.knob);
            self.state.duel_asked = line.map_or(0, |line| line.number);
            return vec![Effect::Send(Command::Duel(Some(duel)))];
        }
        Vec::new()
    }

    /// Films what has changed.
    fn shoot(&mut self, elapsed: Duration) {
        if self.films && std::mem::take(&mut self.changed) {
            self.film.add(elapsed, self.screen(), std::mem::take(&mut self.notable));
        }
    }

    fn screen(&self) -> Buffer {
        let mut screen = Buffer::empty(Rect::new(0, 0, self.state.screen.width, self.state.screen.height));
        view::draw(&self.state, &mut screen);
        screen
    }
}

/// Refuses to overwrite anything but a file made by this command; a link is not one.
fn refuse_other_file(out: &Path, is_ours: fn(&[u8]) -> bool, (made, option): (&str, &str)) -> Result<()> {
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
    if is_ours(&text) {
        return Ok(());
    }
    let what = format!("{} already exists, and is not {made} by stacktune", printable::path(out));
    Err(Error::refused(what).hint(format!("it was left unchanged: choose another file with {option}")))
}

fn write(out: &Path, text: &str) -> Result<()> {
    let dir = out.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Some(name) = out.file_name().and_then(|name| name.to_str()) else {
        return Err(Error::input(format!("{} can't name a picture", printable::path(out))));
    };
    // Others may have put a link there meanwhile: it is replaced, not followed.
    HeldFolder::open(dir)?.replace(name, text.as_bytes())
}
