//! The question before data is destroyed: for each device, a word must be typed in full.

use crate::printable::Shown as _;
use crate::runs::session::message::Wanted;
use crate::ui::text::{wrap, wrap_exact};
use crate::ui::tui::typed::Typed;
use crate::units::approx_size;

/// The devices whose content would be destroyed, asked one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Consent {
    /// The devices.
    pub wanted: Vec<Wanted>,
    /// What was typed in full, for the devices before the current one.
    pub typed: Vec<String>,
    /// What is being typed.
    pub input: Typed,
    /// Why it was not accepted.
    pub error: Option<String>,
    /// Lines scrolled.
    pub top: usize,
}

/// The result of pressing Enter.
#[derive(Debug, PartialEq, Eq)]
pub enum Consented {
    /// It does not match, or another device follows.
    Not,
    /// Everything was typed in full.
    Fully(Vec<String>),
}

impl Consent {
    /// Asks for these devices.
    pub fn new(wanted: Vec<Wanted>) -> Self {
        Self { wanted, typed: Vec::new(), input: Typed::default(), error: None, top: 0 }
    }

    /// The device being asked for.
    pub fn device(&self) -> Option<&Wanted> {
        self.wanted.get(self.typed.len())
    }

    /// Enter: only a word typed in full counts.
    pub fn accept(&mut self) -> Consented {
        let Some(device) = self.device() else { return Consented::Not };
        // An empty word would be confirmed by Enter alone.
        if device.typed.is_empty() || *self.input != *device.typed {
            self.error = Some(if self.input.is_empty() {
                "Type it first: Enter alone does not confirm.".into()
            } else {
                "That does not match exactly.".into()
            });
            return Consented::Not;
        }
        self.typed.push(std::mem::take(&mut self.input).to_string());
        self.error = None;
        self.top = 0;
        if self.typed.len() == self.wanted.len() {
            return Consented::Fully(self.typed.clone());
        }
        Consented::Not
    }

    /// Everything about the current device, wrapped, nothing cut.
    pub fn lines(&self, cells: usize) -> Vec<String> {
        self.device().map(|device| about(device, cells)).unwrap_or_default()
    }
}

/// Everything about a device, wrapped, nothing cut.
pub fn about(device: &Wanted, cells: usize) -> Vec<String> {
    let or_unknown = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".into());
    let mut lines = Vec::new();
    let cells = cells.saturating_sub(9);
    let mut row = |name: &str, parts: Vec<String>| {
        for (i, part) in parts.into_iter().enumerate() {
            lines.push(format!("{:<9}{part}", if i == 0 { name } else { "" }));
        }
    };
    row("device", wrap_exact(&device.path.shown(), cells));
    row("model", wrap_exact(&or_unknown(&device.model), cells));
    row("serial", wrap_exact(&or_unknown(&device.serial), cells));
    if device.serial.as_ref() != Some(&device.typed) {
        row("name", wrap_exact(&device.typed, cells));
    }
    let size = format!("{} ({} bytes)", approx_size(device.size_bytes), device.size_bytes);
    row("size", wrap(&size, cells));
    for (i, content) in device.content.iter().enumerate() {
        row(if i == 0 { "holds" } else { "" }, wrap(content, cells));
    }
    lines
}

/// What kind of word is typed for a device.
pub fn word_kind(device: &Wanted) -> &'static str {
    if device.serial.as_deref() == Some(device.typed.as_str()) { "serial" } else { "name" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(typed: &str) -> Wanted {
        Wanted {
            typed: typed.into(),
            path: "/dev/nvme0n1".into(),
            model: None,
            serial: Some(typed.into()),
            size_bytes: 1 << 40,
            content: vec!["a GPT partition table".into()],
        }
    }

    fn type_in(consent: &mut Consent, text: &str) -> Consented {
        consent.input = text.to_owned().into();
        consent.accept()
    }

    #[test]
    fn every_device_must_be_typed_in_full() {
        let mut consent = Consent::new(vec![wanted("S1"), wanted("S2")]);
        assert_eq!(type_in(&mut consent, ""), Consented::Not);
        assert_eq!(consent.error.as_deref(), Some("Type it first: Enter alone does not confirm."));
        assert_eq!(type_in(&mut consent, "s1"), Consented::Not);
        assert_eq!(type_in(&mut consent, "S1 "), Consented::Not);
        assert_eq!(type_in(&mut consent, "S2"), Consented::Not);
        assert!(consent.typed.is_empty());
        assert_eq!(type_in(&mut consent, "S1"), Consented::Not);
        assert_eq!(consent.device().unwrap().typed, "S2");
        assert_eq!(type_in(&mut consent, "S2"), Consented::Fully(vec!["S1".into(), "S2".into()]));
    }

    #[test]
    fn an_empty_serial_cannot_be_confirmed_by_enter_alone() {
        let mut consent = Consent::new(vec![wanted("")]);
        assert_eq!(type_in(&mut consent, ""), Consented::Not);
    }

    #[test]
    fn nothing_about_the_device_is_cut() {
        let mut device = wanted("S1");
        device.path = format!("/dev/disk/by-id/nvme-{}", "x".repeat(90)).into();
        let text = Consent::new(vec![device]).lines(60).concat().replace(' ', "");
        assert!(text.contains(&"x".repeat(90)), "{text}");
    }
}
