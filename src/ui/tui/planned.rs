//! A plan that the operator reads to its end and confirms.

use std::sync::Arc;

use super::consent::{Consent, about, word_kind};
use crate::printable::Shown as _;
use crate::runs::session::message::PlanShown;
use crate::ui::report::{properties_of, stack_properties};
use crate::ui::text::{width, wrap, wrap_exact};
use crate::units::{approx_size, fine_span};

/// A word up to this length is repeated in the question for it.
const WORD_CELLS_MAX: usize = 40;
/// A device's path with more lines than this is shown only in the list above.
const PATH_LINES_MAX: usize = 4;

/// How a line is to be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// A heading.
    Heading,
    /// Ordinary text.
    Plain,
    /// What matters less.
    Dim,
    /// What destroys data, or is wrong.
    Bad,
    /// What needs attention.
    Warn,
}

/// A line and how it is to be shown.
pub type Toned = (String, Tone);

/// A plan on the screen.
#[derive(Debug, Clone, PartialEq)]
pub struct Agreement {
    /// The plan.
    pub plan: Arc<PlanShown>,
    /// The devices that it destroys, asked one after the other.
    pub consent: Consent,
    /// Lines scrolled.
    pub top: usize,
    /// Whether its end was seen: it can't be confirmed before.
    pub read: bool,
}

impl Agreement {
    /// Asks the operator to confirm the plan.
    pub fn new(plan: Arc<PlanShown>) -> Self {
        let consent = Consent::new(plan.destroys.clone());
        Self { plan, consent, top: 0, read: false }
    }

    /// Whether the run is waiting for an answer: a target is being opened by this plan.
    pub fn is_awaited(&self) -> bool {
        self.plan.number == 0
    }

    /// Whether anything is destroyed.
    pub fn destroys(&self) -> bool {
        !self.plan.destroys.is_empty()
    }

    /// The whole plan, wrapped, nothing cut.
    pub fn lines(&self, cells: usize) -> Vec<Toned> {
        let mut lines = Vec::new();
        self.turned(&mut lines, cells);
        self.taken_down(&mut lines, cells);
        self.steps(&mut lines, cells);
        self.figures(&mut lines, cells);
        self.destroyed(&mut lines, cells);
        lines
    }

    fn turned(&self, lines: &mut Vec<Toned>, cells: usize) {
        let plan = &self.plan;
        match (plan.number, plan.turns.is_empty()) {
            _ if plan.opens.is_some() => {
                let name = plan.opens.as_deref().unwrap_or_default();
                heading(lines, cells, &format!("Open profile {name}"));
            }
            (0, _) => heading(lines, cells, "Open this profile"),
            // Only a stack has properties.
            (_, true) if plan.properties.is_none() => {
                heading(lines, cells, "No changes: the same target is opened again");
            }
            (_, true) => heading(lines, cells, "No changes: the same stack is rebuilt"),
            (_, false) => heading(lines, cells, "Changes"),
        }
        for (knob, from, to) in &plan.turns {
            entry(lines, "", wrap_exact(&format!("{knob}: {from} → {to}"), cells.saturating_sub(2)));
        }
    }

    /// The current stack is torn down without a question of its own: confirming the plan is enough.
    fn taken_down(&self, lines: &mut Vec<Toned>, cells: usize) {
        if self.plan.takes_down.is_empty() {
            return;
        }
        heading(lines, cells, "First, the current stack is torn down, with all data on it");
        for command in &self.plan.takes_down {
            entry(lines, "", wrap_exact(command, cells.saturating_sub(2)));
        }
    }

    fn steps(&self, lines: &mut Vec<Toned>, cells: usize) {
        heading(lines, cells, "Steps");
        for (at, step) in self.plan.lines.iter().enumerate() {
            let number = format!("{:>2}. ", at + 1);
            let parts = wrap_exact(step, cells.saturating_sub(2 + number.len()));
            entry(lines, &number, parts);
            if let Some(time) = self.plan.times.get(at).copied().flatten() {
                let indent = " ".repeat(2 + number.len());
                let parts =
                    wrap(&format!("last time {}", fine_span(time)), cells.saturating_sub(indent.len()));
                lines.extend(parts.into_iter().map(|part| (format!("{indent}{part}"), Tone::Dim)));
            }
        }
    }

    fn figures(&self, lines: &mut Vec<Toned>, cells: usize) {
        let plan = &self.plan;
        heading(lines, cells, "Result");
        let mut row = |text: &str| entry(lines, "", wrap(text, cells.saturating_sub(2)));
        match plan.writes_bytes {
            _ if plan.live => self.beside_the_load().iter().for_each(|sentence| row(sentence)),
            None => row("bytes written: unknown; what filling needs, or what the program itself writes"),
            Some(0) => row("bytes written: none, as the target is filled"),
            Some(bytes) => {
                row(&format!("bytes written: {} ({bytes} bytes), the fill included", approx_size(bytes)));
            }
        }
        stack_properties::wear(&plan.wear).iter().for_each(|sentence| row(sentence));
        match plan.last_time {
            _ if plan.live => {}
            Some(time) => row(&format!("total time: {} last time", fine_span(time))),
            None => row("total time: unknown, as this has never run here"),
        }
        properties_of(plan).iter().for_each(|sentence| row(sentence));
    }

    /// What a turn involves while the load goes on.
    fn beside_the_load(&self) -> Vec<String> {
        let mut sentences = vec!["the load goes on: nothing is torn down or filled".to_owned()];
        if let Some(bytes) = self.plan.writes_bytes.filter(|bytes| *bytes > 0) {
            let size = approx_size(bytes);
            sentences.push(format!(
                "bytes written: {size} ({bytes} bytes) to the member, by md while the load runs"
            ));
        }
        sentences
    }

    fn destroyed(&self, lines: &mut Vec<Toned>, cells: usize) {
        let devices = &self.plan.destroys;
        let title = match devices.len() {
            0 if self.plan.takes_down.is_empty() => return heading(lines, cells, "Nothing is destroyed"),
            0 => return heading(lines, cells, "Nothing else is destroyed"),
            1 => "Everything on this device will be destroyed".to_owned(),
            many => format!("Everything on these {many} devices will be destroyed"),
        };
        lines.push((String::new(), Tone::Plain));
        lines.extend(wrap(&title, cells).into_iter().map(|part| (part, Tone::Bad)));
        for (at, device) in devices.iter().enumerate() {
            if at > 0 {
                lines.push((String::new(), Tone::Plain));
            }
            entry(lines, "", about(device, cells.saturating_sub(2)));
        }
    }

    /// The lines below the plan: always the same number, so that nothing moves while it is read.
    pub fn foot(&self, cells: usize, hidden: usize) -> Vec<Toned> {
        let mut lines = vec![(String::new(), Tone::Plain)];
        if hidden > 0 {
            lines[0] = (format!("{hidden} more below"), Tone::Warn);
        }
        let keys = match (self.read, self.destroys()) {
            (false, _) => "↓ PgDn: scroll to the end to confirm · Esc cancel",
            (true, true) => "Esc cancel: everything stays as it is",
            (true, false) => "y confirm · Esc cancel",
        };
        if !self.destroys() {
            lines.push((keys.into(), Tone::Plain));
            return lines;
        }
        let rows = (0..self.plan.destroys.len()).map(|at| self.question(at, cells).len()).max().unwrap_or(0);
        let mut asked = if self.read { self.question(self.consent.typed.len(), cells) } else { Vec::new() };
        asked.resize(rows, (String::new(), Tone::Plain));
        lines.extend(asked);
        // The view draws what is typed here.
        lines.push((String::new(), Tone::Plain));
        lines.push((self.consent.error.clone().unwrap_or_default(), Tone::Bad));
        lines.push((keys.into(), Tone::Plain));
        lines
    }

    /// The question for a device.
    fn question(&self, at: usize, cells: usize) -> Vec<Toned> {
        let Some(device) = self.plan.destroys.get(at) else { return Vec::new() };
        let all = self.plan.destroys.len();
        let head = if all > 1 { format!("{} of {all}: ", at + 1) } else { String::new() };
        let mut lines = wrap_exact(&format!("{head}{}", device.path.shown()), cells);
        if lines.len() > PATH_LINES_MAX {
            lines = vec![format!("device {} of {all}, as above", at + 1)];
        }
        let word = match &device.typed {
            word if width(word) <= WORD_CELLS_MAX => format!(", {word},"),
            _ => String::new(),
        };
        let question = format!("Type its {}{word} in full to confirm, then Enter:", word_kind(device));
        lines.extend(wrap(&question, cells));
        lines.into_iter().map(|line| (line, Tone::Plain)).collect()
    }
}

fn heading(lines: &mut Vec<Toned>, cells: usize, text: &str) {
    if !lines.is_empty() {
        lines.push((String::new(), Tone::Plain));
    }
    lines.extend(wrap(text, cells).into_iter().map(|part| (part, Tone::Heading)));
}

/// Lines indented by two, the first after its number.
fn entry(lines: &mut Vec<Toned>, number: &str, parts: Vec<String>) {
    for (i, part) in parts.into_iter().enumerate() {
        let lead = if i == 0 { number.to_owned() } else { " ".repeat(number.len()) };
        lines.push((format!("  {lead}{part}"), Tone::Plain));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::tui::fixture;

    /// All text of the plan, without what wrapping adds.
    fn letters(lines: &[Toned]) -> String {
        lines.iter().flat_map(|(line, _)| line.chars()).filter(|c| !c.is_whitespace()).collect()
    }

    #[test]
    fn nothing_of_a_plan_is_cut_at_any_width() {
        let mut plan = fixture::plan_destroying();
        plan.takes_down = vec!["umount /var/lib/stacktune/mnt/8d12".into(), "mdadm --stop /dev/md127".into()];
        let asked = Agreement::new(Arc::new(plan.clone()));
        for cells in [20, 40, 72, 96] {
            let text = letters(&asked.lines(cells));
            let mut expected: Vec<String> = plan.lines.clone();
            expected.extend(properties_of(&plan));
            expected.extend(stack_properties::wear(&plan.wear));
            expected.extend(plan.takes_down.clone());
            for device in &plan.destroys {
                expected.push(device.path.display().to_string());
                expected.extend(device.serial.clone());
                expected.extend(device.model.clone());
                expected.extend(device.content.clone());
                expected.push(device.size_bytes.to_string());
            }
            for part in expected {
                let part: String = part.chars().filter(|c| !c.is_whitespace()).collect();
                assert!(text.contains(&part), "{part} at {cells}");
            }
            assert!(asked.lines(cells).iter().all(|(line, _)| width(line.trim_end()) <= cells));
        }
    }

    #[test]
    fn what_is_torn_down_is_listed_before_the_steps() {
        let plan_of = |takes_down: &[&str]| {
            let takes_down = takes_down.iter().map(|command| (*command).to_owned()).collect();
            let plan = PlanShown { takes_down, ..fixture::plan_short() };
            let lines = Agreement::new(Arc::new(plan)).lines(72);
            lines.into_iter().map(|(line, _)| line).collect::<Vec<_>>().join("\n")
        };
        let text = plan_of(&["umount /mnt/a", "rmdir /mnt/a"]);
        let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("no {part} in {text}"));
        assert!(at("torn down") < at("umount /mnt/a") && at("umount /mnt/a") < at("rmdir /mnt/a"));
        assert!(at("rmdir /mnt/a") < at("Steps"));
        assert!(text.contains("Nothing else is destroyed"), "{text}");
        assert!(!plan_of(&[]).contains("torn down") && plan_of(&[]).ends_with("Nothing is destroyed"));
    }

    #[test]
    fn the_footer_keeps_its_height_once_the_plan_was_read() {
        let mut asked = Agreement::new(Arc::new(fixture::plan_destroying()));
        let before = asked.foot(72, 5).len();
        asked.read = true;
        assert_eq!(asked.foot(72, 0).len(), before);
        asked.consent.typed = vec![String::new(); 3];
        assert_eq!(asked.foot(72, 0).len(), before);
    }
}
