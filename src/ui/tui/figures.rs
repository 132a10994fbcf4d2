//! The figures on the screen: the last window, the totals, what the charts show, the ledger.

use std::collections::VecDeque;
use std::sync::Arc;

use super::heat::{HISTORY_MAX, TailOf, Timeline, visible};
use crate::class::Class;
use crate::meter::flag::FlagKind;
use crate::meter::latencies::pooled::{Pool, PooledLatencies, PooledLatency};
use crate::meter::turns::ledger::BEFORE_WINDOWS;
use crate::meter::whole_run::totals::Totals;
use crate::meter::window::{Flag, Latency, LedgerLine, Window};

/// Ledger lines kept for the screen; a recording has all of them.
const LEDGER_MAX: usize = 1000;

/// The figures that freezing keeps.
#[derive(Debug, Clone, Default)]
pub struct Figures {
    /// The last window.
    pub window: Option<Arc<Window>>,
    /// What the classes in it lack for too few I/Os, from the last windows together.
    pub pooled: [PooledLatencies; 4],
    /// The windows behind that.
    pool: Pool,
    /// The run so far.
    pub totals: Option<Arc<Totals>>,
    /// The windows that the charts show, oldest first.
    pub history: VecDeque<Point>,
    /// The same windows, without their histograms, each with what it lacks.
    past: VecDeque<(Arc<Window>, Arc<[PooledLatencies; 4]>)>,
    /// Whether every window is kept, however many there are.
    is_recorded: bool,
    /// Whether there were earlier windows than are kept.
    pub has_forgotten: bool,
    /// Latencies over time.
    pub timeline: Timeline,
    /// Windows since the run or its target began that a turn can be compared with.
    pub steady: usize,
    /// The ledger, oldest first.
    pub ledger: VecDeque<Arc<LedgerLine>>,
}

/// What the charts need from a window.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Point {
    /// The window's end, from the run's start.
    pub end_ns: u64,
    /// MB/s by class.
    pub mb_per_s: [f64; 4],
    /// p99 of the service time by class; of the last windows together where one has too few I/Os.
    pub service_p99_ns: [Option<u64>; 4],
    /// p99 of the response time by class, likewise.
    pub response_p99_ns: [Option<u64>; 4],
}

impl Figures {
    /// Those of a recording: every window can be shown.
    pub fn of_recording() -> Self {
        Self { is_recorded: true, timeline: Timeline::of_recording(), ..Self::default() }
    }

    /// Takes a window and the totals up to it.
    pub fn window(&mut self, window: Arc<Window>, totals: Arc<Totals>) {
        // Windows are counted from 0 again on a target that was built anew; the clock goes on.
        if self.window.as_ref().is_some_and(|last| window.index < last.index) {
            self.pool = Pool::default();
            self.steady = 0;
        }
        self.steady += usize::from(is_settled(&window));
        self.pooled = self.pool.window(&window);
        let p99 = |latency: &Option<Latency>, pooled: PooledLatency| {
            let own = latency.as_ref().and_then(|latency| latency.p99);
            own.or(pooled.p99.map(|p99| p99.ns))
        };
        if self.history.len() == HISTORY_MAX && !self.is_recorded {
            self.history.pop_front();
            self.past.pop_front();
            self.has_forgotten = true;
        }
        self.history.push_back(Point {
            end_ns: window.start_ns + window.duration_ns,
            mb_per_s: Class::ALL.map(|c| window.class(c).mb_per_s),
            service_p99_ns: Class::ALL
                .map(|c| p99(&window.class(c).latencies.service_ns, self.pooled[c.index()].service)),
            response_p99_ns: Class::ALL.map(|c| {
                let (figures, pooled) = (window.class(c), self.pooled[c.index()].response);
                if figures.not_held { None } else { p99(&figures.latencies.response_ns, pooled) }
            }),
        });
        self.timeline.window(&window);
        let bare = Window { histograms: Arc::default(), ..(*window).clone() };
        self.past.push_back((Arc::new(bare), Arc::new(self.pooled)));
        self.window = Some(window);
        self.totals = Some(totals);
    }

    /// What forbids that a turn is judged now, with the class that has the flag, if it is one's: of the window that is
    /// shown, or of one before it with which the turn would be compared. Of those before, a trend forbids nothing.
    pub fn forbidding(&self) -> Option<(Option<Class>, &Flag)> {
        let now = self.window.iter().flat_map(|window| forbidding(window)).next();
        let past = || {
            self.past
                .iter()
                .rev()
                .map(|(window, _)| window)
                .filter(|window| is_settled(window))
                .take(BEFORE_WINDOWS)
        };
        let lasting = |(_, flag): &(Option<Class>, &Flag)| !flag.is(FlagKind::Drifting);
        now.or_else(|| past().flat_map(|window| forbidding(window)).find(lasting))
    }

    /// How many windows since a turn at that time the next one can be compared with.
    pub fn baseline_since(&self, turned_ns: u64) -> usize {
        let since = self.past.iter().rev().map(|(window, _)| window);
        since.take_while(|window| window.start_ns >= turned_ns).filter(|window| is_settled(window)).count()
    }

    /// Goes that many windows forward, or back if negative, among those that are kept. Whether it could.
    pub fn shift(&mut self, by: isize) -> bool {
        self.at().and_then(|at| at.checked_add_signed(by)).is_some_and(|at| self.show(at))
    }

    /// Shows the window at that place among those that are kept. Whether there is one.
    pub fn show(&mut self, at: usize) -> bool {
        let Some((window, pooled)) = self.past.get(at) else { return false };
        (self.window, self.pooled) = (Some(Arc::clone(window)), **pooled);
        true
    }

    /// The longest I/O in ns, and the place of its window among those that are kept; none where there was none.
    pub fn slowest(&self, of: TailOf) -> Option<(u64, usize)> {
        let longest_ns = |window: &Window| {
            let classes =
                Class::ALL.into_iter().filter(|class| of == TailOf::All || of == TailOf::Class(*class));
            classes.filter_map(|class| window.class(class).latencies.service_ns.as_ref()?.max).max()
        };
        let of_each =
            self.past.iter().enumerate().filter_map(|(at, (window, _))| Some((longest_ns(window)?, at)));
        of_each.max()
    }

    /// The rate at which the last ten windows were written, in bytes per second; none if nothing was.
    pub fn written_bytes_per_s(&self) -> Option<f64> {
        const WINDOWS: usize = 10;
        let (last, _) = self.past.back()?;
        let (first, _) = &self.past[self.past.len().saturating_sub(WINDOWS)];
        let bytes =
            last.written_bytes_total.checked_sub(first.written_bytes_total).filter(|bytes| *bytes > 0)?;
        let span_ns = last.start_ns + last.duration_ns - first.start_ns - first.duration_ns;
        Some(bytes as f64 * 1e9 / span_ns as f64)
    }

    /// The place of the shown window among those that are kept.
    pub fn at(&self) -> Option<usize> {
        let shown = self.window.as_ref()?;
        Some(self.past.partition_point(|(past, _)| past.start_ns < shown.start_ns))
    }

    /// The place of the first window that ends then, or later; of the last one if none does.
    pub fn place_of(&self, ns: u64) -> usize {
        let ends = |(past, _): &(Arc<Window>, _)| past.start_ns + past.duration_ns;
        self.past.partition_point(|past| ends(past) < ns).min(self.past.len().saturating_sub(1))
    }

    /// How many windows are kept.
    pub fn kept(&self) -> usize {
        self.past.len()
    }

    /// When the shown window ended.
    pub fn shown_end_ns(&self) -> Option<u64> {
        self.window.as_ref().map(|window| window.start_ns + window.duration_ns)
    }

    /// The middle of the shown window.
    pub fn shown_middle_ns(&self) -> Option<u64> {
        self.window.as_ref().map(|window| window.start_ns + window.duration_ns / 2)
    }

    /// The points that charts of that width show: the last ones, or those around the shown window.
    pub fn points(&self, cells: usize) -> Vec<&Point> {
        let all = self.history.len();
        let shown = self.at().unwrap_or(all).min(all.saturating_sub(1));
        self.history.range(visible(shown, all, cells)).collect()
    }

    /// The windows of the same points.
    #[cfg(feature = "programs")]
    pub fn windows(&self, cells: usize) -> Vec<Arc<Window>> {
        let all = self.past.len();
        let shown = self.at().unwrap_or(all).min(all.saturating_sub(1));
        self.past.range(visible(shown, all, cells)).map(|(window, _)| Arc::clone(window)).collect()
    }

    /// The time from the shown window to the last one that is kept; none if it is that.
    pub fn ago_ns(&self) -> Option<u64> {
        let (shown, (last, _)) = (self.window.as_ref()?, self.past.back()?);
        Some(last.start_ns.saturating_sub(shown.start_ns)).filter(|ns| *ns > 0)
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
        let ends: Vec<_> = figures.history.iter().map(|point| point.end_ns).collect();
        assert_eq!(ends, [10, 20, 60, 70]);
        assert!(figures.shift(-3) && !figures.shift(-1));
        assert_eq!((figures.window.as_ref().unwrap().start_ns, figures.ago_ns()), (0, Some(60)));
        assert!(figures.shift(3) && !figures.shift(1));
        assert_eq!(figures.ago_ns(), None);
    }

    #[test]
    fn a_recording_keeps_every_window() {
        let mut figures = Figures::of_recording();
        for index in 0..HISTORY_MAX as u64 * 2 {
            let window = Window { index, start_ns: index * 10, duration_ns: 10, ..Window::default() };
            figures.window(Arc::new(window), Arc::default());
        }
        assert_eq!((figures.kept(), figures.history.len()), (HISTORY_MAX * 2, HISTORY_MAX * 2));
        assert!(figures.show(7) && !figures.show(HISTORY_MAX * 2));
        assert_eq!((figures.at(), figures.shown_end_ns()), (Some(7), Some(80)));
        assert_eq!(
            [0, 10, 11, 80, 81, u64::MAX].map(|ns| figures.place_of(ns)),
            [0, 0, 1, 7, 8, HISTORY_MAX * 2 - 1]
        );
        let points = |figures: &Figures| {
            let points = figures.points(8);
            (points.len(), points[0].end_ns, points[7].end_ns)
        };
        assert_eq!(points(&figures), (8, 60, 130));
        assert!(figures.show(0));
        assert_eq!(points(&figures), (8, 10, 80));
        assert!(figures.show(HISTORY_MAX * 2 - 1));
        let last = HISTORY_MAX as u64 * 20;
        assert_eq!(points(&figures), (8, last - 70, last));
        assert!(!figures.has_forgotten);
    }

    #[test]
    fn the_history_is_bounded() {
        let mut figures = Figures::default();
        for index in 0..HISTORY_MAX as u64 + 10 {
            let window = Window { index, start_ns: index, duration_ns: 1, ..Window::default() };
            figures.window(Arc::new(window), Arc::default());
        }
        assert_eq!(figures.history.len(), HISTORY_MAX);
        assert_eq!(figures.history[0].end_ns, 11);
        assert!(figures.has_forgotten);
        let of_one = size_of::<Window>() + size_of::<[PooledLatencies; 4]>() + size_of::<Point>();
        assert!(of_one < 8 << 10, "{of_one} bytes a window, without what it points to");
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
