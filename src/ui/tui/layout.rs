//! Where each panel is at each size.

use ratatui::layout::{Constraint, Layout, Rect};

/// The smallest screen.
pub const MIN: (u16, u16) = (80, 24);

/// Which panel is shown if not all fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum View {
    /// Latency over time.
    #[default]
    Tails,
    /// MB/s over time.
    Charts,
    /// CPU and members.
    System,
    /// What each turn did, at full width.
    Ledger,
    /// Flags, fallbacks, notes and notices in full.
    Notes,
}

/// How much fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tier {
    /// One view at a time beside stack, classes, knobs and ledger.
    Small,
    /// Latency and throughput together, or one of the others.
    Medium,
    /// Everything.
    Large,
    /// Everything, in three columns.
    Wide,
}

/// The panels' places; an area without cells is not shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Areas {
    /// Name, phase, bytes written.
    pub header: Rect,
    /// The layers.
    pub stack: Rect,
    /// The knobs of the chosen layer.
    pub knobs: Rect,
    /// Latency over time.
    pub heat: Rect,
    /// MB/s over time.
    pub charts: Rect,
    /// Latency over time of each class, beside that of the chosen one.
    pub tails: [Rect; 4],
    /// The classes' table.
    pub classes: Rect,
    /// The processor.
    pub cpu: Rect,
    /// Members.
    pub members: Rect,
    /// The ledger.
    pub ledger: Rect,
    /// Notes.
    pub notes: Rect,
    /// What the last turn did, or what is being waited for.
    pub strip: Rect,
    /// The last message, or what the chosen knob does.
    pub message: Rect,
    /// Keys.
    pub hints: Rect,
}

impl Areas {
    /// The same if the load has no classes: the notes take the place of their latencies.
    pub fn without_tails(self) -> Self {
        let notes = self.tails.into_iter().filter(|area| !area.is_empty()).fold(self.notes, Rect::union);
        Self { notes, tails: [Rect::default(); 4], ..self }
    }
}

impl View {
    /// The view after this one at that size.
    pub fn next(self, tier: Tier) -> Self {
        match (tier, self) {
            (Tier::Small, View::Tails) => View::Charts,
            (Tier::Small, View::System) => View::Ledger,
            (Tier::Small, View::Charts) | (_, View::Tails | View::Charts) => View::System,
            (_, View::Notes) => View::Tails,
            (_, View::System | View::Ledger) => View::Notes,
        }
    }
}

/// How much fits on a screen of that size; none if it is too small.
pub fn tier(area: Rect) -> Option<Tier> {
    match (area.width, area.height) {
        (w, h) if w < MIN.0 || h < MIN.1 => None,
        (w, h) if w >= 220 && h >= 46 => Some(Tier::Wide),
        (w, h) if w >= 150 && h >= 46 => Some(Tier::Large),
        (w, h) if w >= 118 && h >= 36 => Some(Tier::Medium),
        _ => Some(Tier::Small),
    }
}

/// The left and the right half of a terminal, with a line between them where there is room for it; none if they would be
/// too small.
pub fn halves(terminal: Rect) -> Option<[Rect; 2]> {
    let line = u16::from(terminal.width > 2 * MIN.0);
    let width = terminal.width.saturating_sub(line) / 2;
    let half = Rect { width, ..terminal };
    tier(half)?;
    Some([half, Rect { x: terminal.right() - width, ..half }])
}

/// The panels' places; none if the screen is too small.
pub fn areas(area: Rect, view: View) -> Option<Areas> {
    let tier = tier(area)?;
    let [header, body, strip, message, hints] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Min(0),
        Constraint::Length(1),
        Constraint::Length(2),
        Constraint::Length(1),
    ])
    .areas(area);
    let frame = Areas { header, strip, message, hints, ..Areas::default() };
    Some(match tier {
        Tier::Small => small(frame, body, view),
        Tier::Medium => medium(frame, body, view),
        Tier::Large => large(frame, body),
        Tier::Wide => wide(frame, body),
    })
}

/// Rows of the strip, of the message and of the keys.
const BELOW_ROWS: u16 = 4;

/// Where windows open: the strip, the message and the keys stay in sight below them.
pub fn of_windows(screen: Rect) -> Rect {
    Rect { height: screen.height.saturating_sub(BELOW_ROWS), ..screen }
}

fn columns(area: Rect, left: u16) -> [Rect; 2] {
    Layout::horizontal([Constraint::Length(left), Constraint::Min(0)]).spacing(GAP).areas(area)
}

/// Areas one above the other, of these heights; the one after them takes the rest.
fn rows<const N: usize>(area: Rect, heights: [u16; N]) -> ([Rect; N], Rect) {
    let mut y = area.y;
    let above = heights.map(|height| {
        let height = height.min(area.bottom() - y);
        y += height;
        Rect { y: y - height, height, ..area }
    });
    (above, Rect { y, height: area.bottom() - y, ..area })
}

/// A column of knobs with names and values.
const KNOBS_CELLS_MIN: u16 = 38;
/// Between columns.
const GAP: u16 = 2;

/// The columns of the list of knobs, below its title.
pub fn knob_columns(area: Rect) -> Vec<Rect> {
    let many = if area.width >= 2 * KNOBS_CELLS_MIN + GAP { 2 } else { 1 };
    let inner = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
    let equal = vec![Constraint::Fill(1); many];
    Layout::horizontal(equal).spacing(GAP).split(inner).to_vec()
}

/// How many knobs are shown at once.
pub fn knobs_shown(area: Rect) -> usize {
    let columns = knob_columns(area);
    usize::from(columns[0].height).max(1) * columns.len()
}

/// The title, and one line for each layer.
const STACK_ROWS: u16 = 7;
/// The same with a second line for each.
const STACK_ROWS_LARGE: u16 = 13;

fn small(frame: Areas, body: Rect, view: View) -> Areas {
    // The extra rows of a taller screen go to the knobs and the ledger, and some to the charts.
    let more = body.height.saturating_sub(19) / 3;
    let ([top, classes], below) = rows(body, [STACK_ROWS + more, 6]);
    let [left, right] = columns(top, 38);
    let [knobs, beside] = columns(below, 33);
    let mut areas = Areas { stack: left, knobs, classes, ledger: beside, ..frame };
    match view {
        View::Tails => areas.heat = right,
        View::Charts => areas.charts = right,
        View::Notes => areas.notes = right,
        View::System => {
            [areas.cpu, areas.members] =
                Layout::horizontal([Constraint::Fill(3), Constraint::Fill(2)]).spacing(1).areas(right);
        }
        View::Ledger => (areas.ledger, areas.stack) = (top, beside),
    }
    areas
}

fn medium(frame: Areas, body: Rect, view: View) -> Areas {
    let [left, right] = columns(body, 45);
    let ([stack], knobs) = rows(left, [STACK_ROWS]);
    let upper = 16 + body.height.saturating_sub(35) / 3;
    let ([upper, classes], ledger) = rows(right, [upper, 7]);
    let mut areas = Areas { stack, knobs, classes, ledger, ..frame };
    match view {
        View::Notes => areas.notes = upper,
        View::System => [areas.cpu, areas.members] = columns(upper, 44),
        View::Tails | View::Charts | View::Ledger => {
            ([areas.heat], areas.charts) = rows(upper, [upper.height - 6]);
        }
    }
    areas
}

/// Two-row strips show more, if the ledger still has room for many turns.
fn charts_rows(body: Rect) -> u16 {
    if body.height >= 60 { 10 } else { 6 }
}

fn large(frame: Areas, body: Rect) -> Areas {
    let [left, right] = columns(body, 50);
    let ([stack], knobs) = rows(left, [STACK_ROWS_LARGE]);
    let more = body.height.saturating_sub(45) / 2;
    let ([heat, charts, classes, system], ledger) = rows(right, [12 + more, charts_rows(body), 9, 9]);
    let [cpu, rest] = columns(system, 47);
    let [members, notes] = columns(rest, rest.width.saturating_sub(2) / 2 - 3);
    Areas { stack, knobs, heat, charts, classes, cpu, members, ledger, notes, ..frame }
}

fn wide(frame: Areas, body: Rect) -> Areas {
    // Two columns of knobs, so that those of a layer are all in sight.
    let [left, rest] = columns(body, 2 * KNOBS_CELLS_MIN + GAP);
    let ([stack], knobs) = rows(left, [STACK_ROWS_LARGE]);
    let [middle, right] = columns(rest, rest.width.saturating_sub(54));
    let more = body.height.saturating_sub(45) / 2;
    let ([heat, charts, classes], ledger) = rows(middle, [14 + more, charts_rows(body), 9]);
    let ([cpu, members], below) = rows(right, [9, 14 + more / 4]);
    let each = below.height.saturating_sub(NOTES_ROWS) / 4;
    let (tails, notes) = rows(below, [if each < TAIL_ROWS_MIN { 0 } else { each }; 4]);
    Areas { stack, knobs, heat, charts, tails, classes, cpu, members, ledger, notes, ..frame }
}

/// Rows that the notes keep beside the classes' latencies, and the fewest that each of those gets.
const NOTES_ROWS: u16 = 10;
const TAIL_ROWS_MIN: u16 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_views_go_round() {
        let round = |tier: Tier, many: usize| {
            let mut view = View::default();
            let mut seen = Vec::new();
            for _ in 0..many {
                seen.push(view);
                view = view.next(tier);
            }
            assert_eq!(view, View::default());
            seen
        };
        let all = [View::Tails, View::Charts, View::System, View::Ledger, View::Notes];
        assert_eq!(round(Tier::Small, 5), all);
        assert_eq!(round(Tier::Medium, 3), [View::Tails, View::System, View::Notes]);
    }

    #[test]
    fn a_tall_screen_has_each_classs_latency() {
        let of = |w, h| areas(Rect::new(0, 0, w, h), View::Tails).unwrap();
        assert!(of(240, 70).tails.iter().all(|area| area.height >= 7));
        for small in [of(240, 46), of(160, 70), of(80, 24)] {
            assert!(small.tails.iter().all(|area| area.is_empty()));
        }
        let all = of(240, 70);
        let program = all.without_tails();
        assert_eq!((program.notes.y, program.notes.bottom()), (all.tails[0].y, all.notes.bottom()));
        assert_eq!(of(160, 50).without_tails(), of(160, 50));
        assert!(all.notes.height >= NOTES_ROWS && all.ledger.height >= 20 && all.charts.height == 10);
        assert!(of(160, 70).ledger.height >= 15 && of(160, 70).charts.height == 10);
    }

    #[test]
    fn panels_never_overlap_and_never_leave_the_screen() {
        for (w, h) in [(80, 24), (119, 60), (120, 40), (149, 46), (150, 46), (160, 50), (240, 70), (300, 100)]
        {
            let screen = Rect::new(0, 0, w, h);
            for view in [View::Tails, View::Charts, View::System, View::Ledger, View::Notes] {
                let a = areas(screen, view).unwrap();
                let [scan, point, wal, background] = a.tails;
                let panels = [
                    a.header, a.stack, a.knobs, a.heat, a.charts, a.classes, a.cpu, a.members, a.ledger,
                    a.notes, a.strip, a.message, a.hints, scan, point, wal, background,
                ];
                for (i, one) in panels.iter().enumerate().filter(|(_, r)| !r.is_empty()) {
                    assert_eq!(screen.intersection(*one), *one, "{w}×{h} {view:?} {i}");
                    for other in panels[i + 1..].iter().filter(|r| !r.is_empty()) {
                        assert!(!one.intersects(*other), "{w}×{h} {view:?} {one} {other}");
                    }
                }
            }
        }
        for screen in [Rect::new(0, 0, 80, 24), Rect::new(0, 0, 240, 70)] {
            assert_eq!(of_windows(screen).bottom(), areas(screen, View::Tails).unwrap().strip.y);
        }
        assert!(areas(Rect::new(0, 0, 79, 24), View::Charts).is_none());
        assert!(areas(Rect::new(0, 0, 80, 23), View::Charts).is_none());
    }
}
