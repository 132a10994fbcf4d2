//! Where each panel is at each size.

use ratatui::layout::{Constraint, Layout, Rect};

/// The smallest screen.
pub const MIN: (u16, u16) = (80, 24);

/// Which panel is shown if not all fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum View {
    /// MB/s and latency over time.
    #[default]
    Charts,
    /// CPU and members.
    System,
    /// What each turn did.
    Ledger,
    /// Flags, fallbacks, notes and notices in full.
    Notes,
}

/// How much fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tier {
    /// One view at a time.
    Small,
    /// Everything but ledger and notes.
    Medium,
    /// Everything.
    Large,
}

/// The panels' places; an area without cells is not shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Areas {
    /// Name, phase, what was written.
    pub header: Rect,
    /// The knobs.
    pub knobs: Rect,
    /// The classes' table.
    pub classes: Rect,
    /// Charts over time.
    pub charts: Rect,
    /// The processor.
    pub cpu: Rect,
    /// Members.
    pub members: Rect,
    /// The ledger.
    pub ledger: Rect,
    /// Notes.
    pub notes: Rect,
    /// The last message, or what the chosen knob does.
    pub message: Rect,
    /// Keys.
    pub hints: Rect,
}

impl View {
    /// The view after this one at that size.
    pub fn next(self, tier: Tier) -> Self {
        match (tier, self) {
            (Tier::Small, View::Charts) => View::System,
            (Tier::Small, View::Notes) => View::Charts,
            (Tier::Small, View::System) | (_, View::Notes) => View::Ledger,
            _ => View::Notes,
        }
    }
}

/// How much fits on a screen of that size; none if it is too small.
pub fn tier(area: Rect) -> Option<Tier> {
    match (area.width, area.height) {
        (w, h) if w < MIN.0 || h < MIN.1 => None,
        (w, h) if w >= 150 && h >= 46 => Some(Tier::Large),
        (w, h) if w >= 118 && h >= 36 => Some(Tier::Medium),
        _ => Some(Tier::Small),
    }
}

/// The panels' places; none if the screen is too small.
pub fn areas(area: Rect, view: View) -> Option<Areas> {
    let tier = tier(area)?;
    let [header, body, message, hints] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Min(0),
        Constraint::Length(2),
        Constraint::Length(1),
    ])
    .areas(area);
    let frame = Areas { header, message, hints, ..Areas::default() };
    Some(match tier {
        Tier::Small => small(frame, body, view),
        Tier::Medium => medium(frame, body, view),
        Tier::Large => large(frame, body),
    })
}

fn columns(area: Rect, left: u16) -> [Rect; 2] {
    Layout::horizontal([Constraint::Length(left), Constraint::Min(0)]).spacing(2).areas(area)
}

fn small(frame: Areas, body: Rect, view: View) -> Areas {
    let [classes, below] = Layout::vertical([Constraint::Length(7), Constraint::Min(0)]).areas(body);
    let [knobs, right] = columns(below, 33);
    let mut areas = Areas { knobs, classes, ..frame };
    match view {
        View::Charts => areas.charts = right,
        View::Ledger => areas.ledger = right,
        View::Notes => areas.notes = right,
        View::System => {
            [areas.cpu, areas.members] =
                Layout::vertical([Constraint::Length(8), Constraint::Min(0)]).areas(right);
        }
    }
    areas
}

fn medium(frame: Areas, body: Rect, view: View) -> Areas {
    let [knobs, right] = columns(body, 35);
    let [classes, charts, system, bottom] = Layout::vertical([
        Constraint::Length(7),
        Constraint::Length(11),
        Constraint::Length(8),
        Constraint::Min(0),
    ])
    .areas(right);
    let [cpu, members] = columns(system, 47);
    let mut areas = Areas { knobs, classes, charts, cpu, members, ..frame };
    if view == View::Notes {
        areas.notes = bottom;
    } else {
        areas.ledger = bottom;
    }
    areas
}

fn large(frame: Areas, body: Rect) -> Areas {
    let [knobs, right] = columns(body, 36);
    let [classes, charts, system, ledger] = Layout::vertical([
        Constraint::Length(9),
        Constraint::Length(14),
        Constraint::Length(9),
        Constraint::Min(0),
    ])
    .areas(right);
    let [cpu, rest] = columns(system, 47);
    let [members, notes] = columns(rest, rest.width.saturating_sub(2) / 2 - 3);
    Areas { knobs, classes, charts, cpu, members, ledger, notes, ..frame }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_views_go_round() {
        let mut view = View::Charts;
        let mut seen = Vec::new();
        for _ in 0..4 {
            seen.push(view);
            view = view.next(Tier::Small);
        }
        assert_eq!(seen, [View::Charts, View::System, View::Ledger, View::Notes]);
        assert_eq!(view, View::Charts);
        assert_eq!(View::Charts.next(Tier::Medium), View::Notes);
        assert_eq!(View::Notes.next(Tier::Medium), View::Ledger);
    }

    #[test]
    fn panels_never_overlap_and_never_leave_the_screen() {
        for (w, h) in [(80, 24), (119, 60), (120, 40), (149, 46), (150, 46), (160, 50), (300, 100)] {
            let screen = Rect::new(0, 0, w, h);
            for view in [View::Charts, View::System, View::Ledger, View::Notes] {
                let a = areas(screen, view).unwrap();
                let panels = [
                    a.header, a.knobs, a.classes, a.charts, a.cpu, a.members, a.ledger, a.notes, a.message,
                    a.hints,
                ];
                for (i, one) in panels.iter().enumerate().filter(|(_, r)| !r.is_empty()) {
                    assert_eq!(screen.intersection(*one), *one, "{w}×{h} {view:?} {i}");
                    for other in panels[i + 1..].iter().filter(|r| !r.is_empty()) {
                        assert!(!one.intersects(*other), "{w}×{h} {view:?} {one} {other}");
                    }
                }
            }
        }
        assert!(areas(Rect::new(0, 0, 79, 24), View::Charts).is_none());
        assert!(areas(Rect::new(0, 0, 80, 23), View::Charts).is_none());
    }
}
