//! What it takes to build a target, as text.

use std::fmt::Write as _;

use super::cells::wrap;
use crate::session::PlanShown;
use crate::units::{approx_size, fine_span};

/// Columns of a sentence; a step is never broken, so that it can be typed.
const WIDTH: usize = 80;

/// The steps, what they destroy and write, and what the stack is worth.
pub fn plan(plan: &PlanShown) -> String {
    let mut text = String::new();
    for (number, line) in plan.lines.iter().enumerate() {
        let _ = writeln!(text, "{:>3}  {line}", number + 1);
        if let Some(time) = plan.times.get(number).copied().flatten() {
            let _ = writeln!(text, "       last time {}", fine_span(time));
        }
    }
    for wanted in &plan.destroys {
        let model = wanted.model.as_deref().unwrap_or("unknown model");
        let serial = wanted.serial.as_deref().unwrap_or("none");
        let content =
            if wanted.content.is_empty() { "nothing found on it".into() } else { wanted.content.join("; ") };
        let (path, size) = (wanted.path.display(), approx_size(wanted.size_bytes));
        let _ = writeln!(text, "destroys {path}, {model}, serial {serial}, {size}: {content}");
    }
    if plan.writes_bytes > 0 {
        let _ = writeln!(text, "writes about {}", approx_size(plan.writes_bytes));
    }
    for sentence in &plan.wear {
        let _ = writeln!(text, "{}", wrap(sentence, WIDTH, "  "));
    }
    match plan.last_time {
        Some(time) => _ = writeln!(text, "last time all of it took {}", fine_span(time)),
        None => text.push_str("how long all of it takes is not known yet\n"),
    }
    for sentence in &plan.worth {
        let _ = writeln!(text, "{}", wrap(sentence, WIDTH, "  "));
    }
    text
}
