//! The terminal: set up, and restored at every exit.

use std::io::{Stdout, Write, stdout};
use std::mem::ManuallyDrop;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::cursor::Show;
use crossterm::event::{DisableMouseCapture, EnableMouseCapture};
use crossterm::terminal::{
    BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate, EnterAlternateScreen,
    LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use crossterm::{execute, queue};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::buffer::Buffer;

use crate::error::{Error, Result, describe};
use crate::threads;

/// Whether the terminal is ours and must be restored.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// The terminal while the screen is shown; dropping this restores it.
pub struct Screen {
    /// What ratatui draws on. Never dropped: its drop prints to standard error if the cursor can't be shown, and panics
    /// if the terminal is gone. [`give_back`] shows the cursor.
    pub terminal: ManuallyDrop<Terminal<CrosstermBackend<Stdout>>>,
}

impl Screen {
    /// Takes the terminal: raw mode, the alternate screen, the mouse. A panic restores it before printing its message.
    pub fn take() -> Result<Self> {
        give_back_on_panic();
        let failed =
            |e: std::io::Error| Error::failed(format!("cannot set up the terminal: {}", describe(&e)));
        TAKEN.store(true, Ordering::SeqCst);
        let set_up = || -> std::io::Result<_> {
            enable_raw_mode()?;
            execute!(stdout(), EnterAlternateScreen, EnableMouseCapture)?;
            Terminal::new(CrosstermBackend::new(stdout()))
        };
        match set_up() {
            Ok(terminal) => Ok(Self { terminal: ManuallyDrop::new(terminal) }),
            Err(error) => {
                give_back();
                Err(failed(error))
            }
        }
    }
}

impl Screen {
    /// Takes the terminal again after another program may have used it, and has everything redrawn.
    pub fn retake(&mut self) -> std::io::Result<()> {
        TAKEN.store(true, Ordering::SeqCst);
        // A shell may have set other modes meanwhile, while crossterm believes its own to be in force.
        disable_raw_mode()?;
        enable_raw_mode()?;
        execute!(stdout(), EnterAlternateScreen, EnableMouseCapture, Clear(ClearType::All))?;
        // Not by ratatui's clear: it asks the terminal where the cursor is, and waits for the answer.
        self.terminal = ManuallyDrop::new(Terminal::new(CrosstermBackend::new(stdout()))?);
        Ok(())
    }

    /// Draws a frame. A terminal that supports it shows the frame as a whole, so that no half of it is ever seen.
    pub fn draw(&mut self, draw: impl FnOnce(&mut Buffer)) -> std::io::Result<()> {
        queue!(stdout(), BeginSynchronizedUpdate)?;
        let drawn = self.terminal.draw(|frame| draw(frame.buffer_mut())).map(drop);
        execute!(stdout(), EndSynchronizedUpdate)?;
        drawn
    }

    /// Gives the terminal back until [`Screen::retake`].
    pub fn lend() {
        give_back();
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// Whether the terminal is still ours: a panic restores it.
pub fn is_taken() -> bool {
    TAKEN.load(Ordering::SeqCst)
}

/// Restores the terminal, once; failures here can't be reported.
fn give_back() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        let mut out = stdout();
        let _ = execute!(out, DisableMouseCapture, LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
        let _ = out.flush();
    }
}

fn give_back_on_panic() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let print_panic = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if is_taken() && threads::are_panics_reported_elsewhere() {
                return;
            }
            give_back();
            print_panic(panic);
        }));
    });
}
