//! What wakes the loop: keys, the mouse, sizes, signals, and the session's events.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::thread;
use std::time::Duration;

use crossterm::event::{self, Event as Input, MouseEventKind};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
use signal_hook::iterator::{Handle, Signals};

use super::message::Msg;
use crate::error::{Error, Result, describe};
use crate::runs::session::{Event, raise_thread_priority};
use crate::threads;

/// How often the thread that reads keys checks whether it is still needed.
const INPUT_WAIT: Duration = Duration::from_millis(500);

/// What wakes the loop.
pub enum Wake {
    /// A message for the state.
    Msg(Msg),
    /// A signal came.
    Signal(i32),
    /// The terminal is gone.
    InputGone,
}

/// Watches for signals until the handle is closed.
pub fn watch_signals(wake: Sender<Wake>) -> Result<Handle> {
    let failed = |e: std::io::Error| Error::failed(format!("cannot watch for signals: {}", describe(&e)));
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGQUIT, SIGHUP, SIGTSTP, SIGCONT]).map_err(failed)?;
    let handle = signals.handle();
    let watch = move || {
        for signal in signals.forever() {
            if wake.send(Wake::Signal(signal)).is_err() {
                return;
            }
        }
    };
    let started = thread::Builder::new().name("signals".into()).spawn(watch);
    started.map_err(|error| threads::refused("watch for signals", &error))?;
    Ok(handle)
}

/// Reads keys, the mouse and sizes until they are no longer wanted.
pub fn read_input(wake: Sender<Wake>, wanted: Arc<AtomicBool>) -> Result<()> {
    let read = move || {
        raise_thread_priority();
        while wanted.load(Ordering::Relaxed) {
            let msg = match event::poll(INPUT_WAIT) {
                Ok(false) => continue,
                Ok(true) => match event::read() {
                    Ok(input) => message(&input),
                    Err(_) => break,
                },
                Err(_) => break,
            };
            if let Some(msg) = msg
                && wake.send(Wake::Msg(msg)).is_err()
            {
                return;
            }
        }
        let _ = wake.send(Wake::InputGone);
    };
    threads::start("read the keys", read).map(drop)
}

/// Input that matters; mere mouse movement does not.
fn message(input: &Input) -> Option<Msg> {
    match input {
        Input::Key(key) => Some(Msg::Key(*key)),
        Input::Mouse(mouse) if matches!(mouse.kind, MouseEventKind::Moved | MouseEventKind::Drag(_)) => None,
        Input::Mouse(mouse) => Some(Msg::Mouse(*mouse)),
        Input::Resize(columns, lines) => Some(Msg::Resize(*columns, *lines)),
        Input::FocusGained | Input::FocusLost | Input::Paste(_) => None,
    }
}

/// Passes the session's events on until it is gone.
pub fn forward(events: Receiver<Event>, wake: Sender<Wake>) -> Result<()> {
    let forward = move || {
        raise_thread_priority();
        for event in events {
            if wake.send(Wake::Msg(Msg::Session(event))).is_err() {
                return;
            }
        }
        let _ = wake.send(Wake::Msg(Msg::SessionGone));
    };
    threads::start("follow the run", forward).map(drop)
}
