//! What can lie over the screen.

use super::ProfileEntry;
use super::planned::Agreement;
use super::text::{wrap, wrap_exact};
use crate::runs::session::message::Wanted;
use crate::units::approx_size;

/// A dialog.
#[derive(Debug, Clone, PartialEq)]
pub enum Dialog {
    /// The value of a knob is typed.
    Edit {
        /// The knob's path.
        knob: &'static str,
        /// What is typed.
        input: String,
        /// Why it was not accepted.
        error: Option<String>,
    },
    /// The name to save under is typed.
    Save {
        /// What is typed.
        input: String,
        /// Why it was not accepted.
        error: Option<String>,
    },
    /// A profile of that name exists: replace it?
    Replace {
        /// The name.
        name: String,
    },
    /// The list of profiles; none while it is read.
    Open {
        /// The profiles.
        entries: Option<Vec<ProfileEntry>>,
        /// The chosen one.
        chosen: usize,
    },
    /// What devices hold would be destroyed.
    Consent(Consent),
    /// What it takes to build the target anew.
    Plan(Agreement),
    /// Why the run can't go on, scrolled by so many lines.
    Failed {
        /// Lines above the screen.
        top: usize,
    },
    /// What becomes of a stack that stands?
    Leave,
    /// The help, scrolled by so many lines.
    Help {
        /// Lines above the screen.
        top: usize,
    },
    /// The host, scrolled by so many lines.
    Host {
        /// Lines above the screen.
        top: usize,
    },
    /// Whether the figures can be believed, scrolled by so many lines.
    Believe {
        /// Lines above the screen.
        top: usize,
    },
}

impl Dialog {
    /// Whether the run waits for its answer.
    pub fn is_awaited(&self) -> bool {
        match self {
            Dialog::Consent(_) => true,
            Dialog::Plan(asked) => asked.is_awaited(),
            _ => false,
        }
    }

    /// Whether it takes keys where the screen is too small to show it: to be closed, or to quit.
    pub fn outlives_small_screens(&self) -> bool {
        matches!(self, Dialog::Consent(_) | Dialog::Plan(_) | Dialog::Leave)
    }
}

/// The devices whose content would be destroyed, one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Consent {
    /// The devices.
    pub wanted: Vec<Wanted>,
    /// What was typed in full, for the devices before the present one.
    pub typed: Vec<String>,
    /// What is being typed.
    pub input: String,
    /// Why it was not accepted.
    pub error: Option<String>,
    /// Lines scrolled.
    pub top: usize,
}

/// What became of Enter.
#[derive(Debug, PartialEq, Eq)]
pub enum Consented {
    /// It does not match, or another device is to be asked for.
    Not,
    /// Everything was typed in full.
    Fully(Vec<String>),
}

impl Consent {
    /// Asks for these.
    pub fn new(wanted: Vec<Wanted>) -> Self {
        Self { wanted, typed: Vec::new(), input: String::new(), error: None, top: 0 }
    }

    /// The device that is asked for now.
    pub fn device(&self) -> Option<&Wanted> {
        self.wanted.get(self.typed.len())
    }

    /// Enter: only what was typed in full counts.
    pub fn accept(&mut self) -> Consented {
        let Some(device) = self.device() else { return Consented::Not };
        // An empty word would be confirmed by Enter alone.
        if device.typed.is_empty() || self.input != device.typed {
            self.error = Some(if self.input.is_empty() {
                "Enter alone confirms nothing.".into()
            } else {
                "That is not the same, letter for letter.".into()
            });
            return Consented::Not;
        }
        self.typed.push(std::mem::take(&mut self.input));
        self.error = None;
        self.top = 0;
        if self.typed.len() == self.wanted.len() {
            return Consented::Fully(self.typed.clone());
        }
        Consented::Not
    }

    /// Everything to know about the present device, wrapped, nothing cut.
    pub fn lines(&self, cells: usize) -> Vec<String> {
        self.device().map(|device| about(device, cells)).unwrap_or_default()
    }
}

/// Everything to know about a device, wrapped, nothing cut.
pub fn about(device: &Wanted, cells: usize) -> Vec<String> {
    let told = |text: &Option<String>| text.clone().unwrap_or_else(|| "not told".into());
    let mut lines = Vec::new();
    let cells = cells.saturating_sub(9);
    let mut row = |name: &str, parts: Vec<String>| {
        for (i, part) in parts.into_iter().enumerate() {
            lines.push(format!("{:<9}{part}", if i == 0 { name } else { "" }));
        }
    };
    row("device", wrap_exact(&device.path.display().to_string(), cells));
    row("model", wrap_exact(&told(&device.model), cells));
    row("serial", wrap_exact(&told(&device.serial), cells));
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

/// What the word is that is typed for a device.
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
        consent.input = text.into();
        consent.accept()
    }

    #[test]
    fn every_device_must_be_typed_in_full() {
        let mut consent = Consent::new(vec![wanted("S1"), wanted("S2")]);
        assert_eq!(type_in(&mut consent, ""), Consented::Not);
        assert_eq!(consent.error.as_deref(), Some("Enter alone confirms nothing."));
        assert_eq!(type_in(&mut consent, "s1"), Consented::Not);
        assert_eq!(type_in(&mut consent, "S1 "), Consented::Not);
        assert_eq!(type_in(&mut consent, "S2"), Consented::Not);
        assert!(consent.typed.is_empty());
        assert_eq!(type_in(&mut consent, "S1"), Consented::Not);
        assert_eq!(consent.device().unwrap().typed, "S2");
        assert_eq!(type_in(&mut consent, "S2"), Consented::Fully(vec!["S1".into(), "S2".into()]));
    }

    #[test]
    fn an_empty_serial_can_not_be_confirmed_by_enter_alone() {
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
