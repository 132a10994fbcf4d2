//! The figures on the screen: the last window, the totals, what the charts show, the ledger.

use std::collections::VecDeque;
use std::sync::Arc;

use super::heat::{self, Column, Latencies, TailOf, Tails, Timeline, visible};
use super::past::{Past, PastWindow, Peak, Point};
use crate::class::Class;
use crate::meter::flag::FlagKind;
use crate::meter::latencies::pooled::{Pool, PooledLatencies};
use crate::meter::turns::ledger::BEFORE_WINDOWS;
use crate::meter::whole_run::totals::Totals;
use crate::meter::window::{Flag, LedgerLine, Window};

/// Ledger lines kept for the screen; a recording has all of them.
const LEDGER_MAX: usize = 1000;

/// The figures that freezing keeps.
#[derive(Debug, Clone, Default)]
pub struct Figures {
    /// The last window.
    pub window: Option<Arc<Window>>,
    /// Percentiles for which its classes have too few I/Os, pooled over the last windows.
    pub pooled: [PooledLatencies; 4],
    /// The windows to pool.
    pool: Pool,
    /// The run so far.
    pub totals: Option<Arc<Totals>>,
    /// The past windows, which can be viewed.
    past: Past,
    /// Whether every line of the ledger is kept, however many there are.
    is_recorded: bool,
    /// Latencies over the whole run.
    pub timeline: Timeline,
    /// Windows since the run or its target began that a turn can be compared with.
    pub steady: usize,
    /// The ledger, oldest first.
    pub ledger: VecDeque<Arc<LedgerLine>>,
}

impl Figures {
    /// Empty figures for a recording.
    pub fn of_recording() -> Self {
        Self { is_recorded: true, ..Self::default() }
    }

    /// Takes a window and the totals up to it.
    pub fn window(&mut self, window: Arc<Window>, totals: Arc<Totals>) {
        // On a rebuilt target, windows count from 0 again while the clock goes on.
        if self.window.as_ref().is_some_and(|last| window.index < last.index) {
            self.pool = Pool::default();
            self.steady = 0;
        }
        self.steady += usize::from(is_settled(&window));
        self.pooled = self.pool.window(&window);
        let tails = Tails::of(&window);
        self.timeline.window(&tails);
        self.past.push(PastWindow::of(&window, &self.pooled, tails));
        self.window = Some(window);
        self.totals = Some(totals);
    }

    /// The flag that forbids judging a turn now, and its class, if it belongs to one: in the window shown, or in an
    /// earlier one that the turn would be compared with. In those earlier ones, a trend forbids nothing.
    pub fn forbidding(&self) -> Option<(Option<Class>, &Flag)> {
        let now = self.window.iter().flat_map(|window| forbidding(window)).next();
        let past = || self.past.newest().filter(|window| is_settled(window)).take(BEFORE_WINDOWS);
        let lasting = |(_, flag): &(Option<Class>, &Flag)| !flag.is(FlagKind::Drifting);
        now.or_else(|| past().flat_map(forbidding).find(lasting))
    }

    /// How many windows since a turn at that time can serve as the baseline of the next one.
    pub fn baseline_since(&self, turned_ns: u64) -> usize {
        let since = self.past.newest();
        since.take_while(|window| window.start_ns >= turned_ns).filter(|window| is_settled(window)).count()
    }

    /// Whether older windows were dropped.
    pub fn has_forgotten(&self) -> bool {
        self.past.forgotten() > 0
    }

    /// Forgets the oldest windows, as if there were too many.
    #[cfg(test)]
    pub fn forget(&mut self) {
        self.past.forget();
    }

    /// Moves that many windows forward, or back if negative, but not past the first or last one kept; returns whether
    /// it moved.
    pub fn shift(&mut self, by: isize) -> bool {
        let last = self.kept().saturating_sub(1);
        let to = |at: usize| at.saturating_add_signed(by).min(last);
        self.at().is_some_and(|at| to(at) != at && self.show(to(at)))
    }

    /// Shows the kept window at that place; returns whether there is one.
    pub fn show(&mut self, at: usize) -> bool {
        if at >= self.kept() {
            return false;
        }
        self.past.look_at(at);
        let Some(past) = self.past.get(at) else { return false };
        (self.window, self.pooled) = (Some(Arc::clone(&past.window)), past.pooled);
        true
    }

    /// The peak in ns, and the place of its window among those kept; none if there is none.
    pub fn peak(&self, by: Peak, of: TailOf) -> Option<(u64, usize)> {
        self.past.peak(by, of)
    }

    /// The p99 of the shown window's service times in ns, if it has enough I/Os.
    pub fn p99_ns(&self, of: TailOf) -> Option<u64> {
        self.past.get(self.at()?)?.peak_ns(Peak::P99, of)
    }

    /// The write rate over the last ten windows, in bytes per second; none if nothing was written. What a rebuild
    /// wrote before them doesn't count.
    pub fn written_bytes_per_s(&self) -> Option<f64> {
        const WINDOWS: usize = 10;
        let mut newest = self.past.newest().take(WINDOWS);
        let last = newest.next()?;
        let mut first = last;
        for before in newest {
            if first.start_ns > before.start_ns + before.duration_ns + before.duration_ns / 2 {
                break;
            }
            first = before;
        }
        let bytes =
            last.written_bytes_total.checked_sub(first.written_bytes_total).filter(|bytes| *bytes > 0)?;
        let span_ns = last.start_ns + last.duration_ns - first.start_ns - first.duration_ns;
        Some(bytes as f64 * 1e9 / span_ns as f64)
    }

    /// The place of the shown window among those kept.
    pub fn at(&self) -> Option<usize> {
        Some(self.past.place_of(self.shown_end_ns()?))
    }

    /// The place of the first window that ends then, or later; of the last one if none does.
    pub fn place_of(&self, ns: u64) -> usize {
        self.past.place_of(ns).min(self.kept().saturating_sub(1))
    }

    /// How many windows are kept.
    pub fn kept(&self) -> usize {
        self.past.len()
    }

    /// When the oldest and the newest of them ended.
    pub fn ends_ns(&self) -> Option<[u64; 2]> {
        self.past.ends_ns()
    }

    /// When the shown window ended.
    pub fn shown_end_ns(&self) -> Option<u64> {
        self.window.as_ref().map(|window| window.start_ns + window.duration_ns)
    }

    /// The middle of the shown window.
    pub fn shown_middle_ns(&self) -> Option<u64> {
        self.window.as_ref().map(|window| window.start_ns + window.duration_ns / 2)
    }

    /// The windows in charts of that width, each with its place: the last ones, or those around the shown window.
    fn around(&self, cells: usize) -> impl Iterator<Item = (usize, &Arc<PastWindow>)> {
        let all = self.kept();
        let shown = self.at().unwrap_or(all).min(all.saturating_sub(1));
        self.past.range(visible(shown, all, cells))
    }

    /// Their points.
    pub fn points(&self, cells: usize) -> Vec<Point> {
        self.around(cells).map(|(_, past)| Point::of(past)).collect()
    }

    /// Their latencies.
    pub fn columns(&self, cells: usize, latencies: Latencies) -> Vec<Column> {
        let forgotten = self.past.forgotten();
        heat::columns(self.around(cells).map(|(at, past)| (forgotten + at, &past.tails)), latencies)
    }

    /// The windows themselves.
    #[cfg(feature = "programs")]
    pub fn windows(&self, cells: usize) -> Vec<Arc<Window>> {
        self.around(cells).map(|(_, past)| Arc::clone(&past.window)).collect()
    }

    /// The time from the shown window to the newest one kept; none if it is the newest.
    pub fn ago_ns(&self) -> Option<u64> {
        let [_, last_ns] = self.ends_ns()?;
        Some(last_ns.saturating_sub(self.shown_end_ns()?)).filter(|ns| *ns > 0)
    }

    /// Takes a ledger line: a new one, or an update of one with the same number.
    pub fn ledger(&mut self, line: Arc<LedgerLine>) {
        if let Some(known) = self.ledger.iter_mut().rev().find(|known| known.number == line.number) {
            *known = line;
            return;
        }
        if self.ledger.len() == LEDGER_MAX && !self.is_recorded {
            self.ledger.pop_front();
        }
        self.ledger.push_back(line);
    }

    /// I/O errors of the run so far.
    pub fn errors(&self) -> u64 {
        self.totals.as_ref().map_or(0, |totals| totals.classes.iter().map(|class| class.errors).sum())
    }
}

fn forbidding(window: &Window) -> impl Iterator<Item = (Option<Class>, &Flag)> {
    let of_classes = Class::ALL
        .into_iter()
        .flat_map(|class| window.class(class).flags.iter().map(move |flag| (Some(class), flag)));
    let own = window.flags.iter().map(|flag| (None, flag));
    own.chain(of_classes).filter(|(_, flag)| flag.forbids_verdict)
}

/// Whether a turn can be compared with that window.
fn is_settled(window: &Window) -> bool {
    window.is_clean() && !window.flags.iter().any(|flag| flag.is(FlagKind::Settling))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(number: u64, open: bool) -> Arc<LedgerLine> {
        Arc::new(LedgerLine { number, open, ..LedgerLine::default() })
    }

    #[test]
    fn an_updated_ledger_line_stays_one_line() {
        let mut figures = Figures::default();
        figures.ledger(line(1, true));
        figures.ledger(line(2, true));
        figures.ledger(line(1, false));
        assert_eq!(figures.ledger.len(), 2);
        assert!(!figures.ledger[0].open);
    }

    #[test]
    fn a_target_built_anew_goes_on_in_the_charts() {
        let mut figures = Figures::default();
        for (index, start_ns) in [(0, 0), (1, 10), (0, 50), (1, 60)] {
            let window = Window { index, start_ns, duration_ns: 10, ..Window::default() };
            figures.window(Arc::new(window), Arc::default());
        }
        let ends: Vec<_> = figures.points(8).iter().map(|point| point.end_ns).collect();
        assert_eq!(ends, [10, 20, 60, 70]);
        assert!(figures.shift(-3) && !figures.shift(-1));
        assert_eq!((figures.window.as_ref().unwrap().start_ns, figures.ago_ns()), (0, Some(60)));
        assert!(figures.shift(3) && !figures.shift(1));
        assert_eq!(figures.ago_ns(), None);
    }

    const MANY: u64 = 8192;

    fn long() -> Figures {
        let mut figures = Figures::default();
        for index in 0..MANY {
            let window = Window { index, start_ns: index * 10, duration_ns: 10, ..Window::default() };
            figures.window(Arc::new(window), Arc::default());
        }
        figures
    }

    #[test]
    fn every_window_can_be_shown() {
        let mut figures = long();
        let all = usize::try_from(MANY).unwrap();
        assert_eq!(figures.kept(), all);
        assert!(figures.show(7) && !figures.show(all));
        assert_eq!((figures.at(), figures.shown_end_ns()), (Some(7), Some(80)));
        assert_eq!([0, 10, 11, 80, 81, u64::MAX].map(|ns| figures.place_of(ns)), [0, 0, 1, 7, 8, all - 1]);
        let points = |figures: &Figures| {
            let points = figures.points(8);
            (points.len(), points[0].end_ns, points[7].end_ns)
        };
        assert_eq!(points(&figures), (8, 60, 130));
        assert!(figures.show(0));
        assert_eq!(points(&figures), (8, 10, 80));
        assert!(figures.show(all - 1));
        let last = MANY * 10;
        assert_eq!(points(&figures), (8, last - 70, last));
        assert!(!figures.has_forgotten());
    }

    #[test]
    fn the_columns_around_a_window_hold_it() {
        let mut figures = long();
        let latencies = Latencies { of: TailOf::All, response: false };
        for (shown, first) in [(1, 1), (11, 1), (12, 2), (1000, 990), (8163, 8153), (8192, 8153)] {
            assert!(figures.show(shown - 1));
            let columns = figures.columns(40, latencies);
            let ends = (columns.len(), columns[0].end_ns, columns[0].place);
            assert_eq!(ends, (40, first as u64 * 10, first - 1), "window {shown}");
            assert!(columns.iter().any(|column| column.holds(shown as u64 * 10)), "window {shown}");
        }
    }

    #[test]
    fn further_than_there_are_windows_is_the_first_or_the_last() {
        let mut figures = long();
        assert!(figures.shift(-80) && figures.shift(-10_000) && !figures.shift(-1));
        assert_eq!((figures.at(), figures.ago_ns()), (Some(0), Some(MANY * 10 - 10)));
        assert!(figures.shift(10_000) && !figures.shift(1));
        assert_eq!(figures.ago_ns(), None);
    }

    #[test]
    fn what_forbids_a_verdict_is_named_with_its_class_for_as_long_as_a_turn_is_compared_with_it() {
        let mut figures = Figures::default();
        let mut push = |index, flag: Option<FlagKind>| {
            let mut window = Window { index, start_ns: index * 10, duration_ns: 10, ..Window::default() };
            window.classes[Class::Wal.index()].flags.extend(flag.map(|kind| kind.flag("Why.")));
            figures.window(Arc::new(window), Arc::default());
            figures.forbidding().map(|(class, flag)| (class, flag.text.clone()))
        };
        assert_eq!(push(0, None), None);
        assert_eq!(push(1, Some(FlagKind::NotDurable)), None, "a note forbids nothing");
        let named = Some((Some(Class::Wal), "no storage".to_owned()));
        assert_eq!(push(2, Some(FlagKind::NoStorage)), named);
        let later: Vec<_> = (0..=BEFORE_WINDOWS as u64).map(|more| push(3 + more, None)).collect();
        assert!(later[..BEFORE_WINDOWS - 1].iter().all(|found| *found == named), "{later:?}");
        assert_eq!(later.last().unwrap(), &None);
    }
}
