//! A key as the key map names it.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// A key, with its modifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // they are what is printed on them
pub enum BoundKey {
    BackTab,
    Backspace,
    Char(char),
    Ctrl(char),
    Down,
    End,
    Enter,
    Esc,
    Home,
    Left,
    PageDown,
    PageUp,
    Right,
    ShiftLeft,
    ShiftRight,
    Tab,
    Up,
}

impl BoundKey {
    /// What a pressed key stands for: with shift, the shifted key goes before the plain one. None if no action can be
    /// bound to it.
    pub fn of(event: &KeyEvent) -> [Option<Self>; 2] {
        let plain = match event.code {
            KeyCode::Char(c) if event.modifiers.contains(KeyModifiers::CONTROL) => Some(Self::Ctrl(c)),
            _ if event.modifiers.contains(KeyModifiers::CONTROL) => None,
            KeyCode::BackTab => Some(Self::BackTab),
            KeyCode::Backspace => Some(Self::Backspace),
            KeyCode::Char(c) => Some(Self::Char(c)),
            KeyCode::Down => Some(Self::Down),
            KeyCode::End => Some(Self::End),
            KeyCode::Enter => Some(Self::Enter),
            KeyCode::Esc => Some(Self::Esc),
            KeyCode::Home => Some(Self::Home),
            KeyCode::Left => Some(Self::Left),
            KeyCode::PageDown => Some(Self::PageDown),
            KeyCode::PageUp => Some(Self::PageUp),
            KeyCode::Right => Some(Self::Right),
            KeyCode::Tab => Some(Self::Tab),
            KeyCode::Up => Some(Self::Up),
            _ => None,
        };
        let with_shift = match plain {
            Some(Self::Left) => Some(Self::ShiftLeft),
            Some(Self::Right) => Some(Self::ShiftRight),
            _ => None,
        };
        [with_shift.filter(|_| event.modifiers.contains(KeyModifiers::SHIFT)), plain]
    }
}
