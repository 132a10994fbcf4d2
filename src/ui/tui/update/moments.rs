//! Past windows: those next to the one shown, and the moments of the tail.

use crate::ui::tui::heat::TailOf;
use crate::ui::tui::past::Peak;
use crate::ui::tui::state::State;
use crate::units::{approx_span, format_latency};

const FORGOTTEN: &str = "earlier windows are no longer kept";

/// Shows another past window: freezes the figures and shows those of that window. If the map shows the whole run, a
/// step is a hundredth of it.
pub fn beside(state: &mut State, by: isize) {
    const STEPS: usize = 100;
    let mut figures = state.frozen.take().unwrap_or_else(|| Box::new(state.live.clone()));
    let each = if state.whole_run { (figures.kept() / STEPS).max(1) } else { 1 };
    let moved = figures.shift(by.saturating_mul(each.cast_signed()));
    state.cumulative = false;
    if by > 0 && figures.ago_ns().is_none() {
        return; // back in the present
    }
    if !moved {
        state.say(if figures.has_forgotten() { FORGOTTEN } else { "there is no earlier window" });
    }
    state.frozen = Some(figures);
}

/// Shows the window with the peak of what the heat map shows.
pub fn peak(state: &mut State, by: Peak) {
    let Some((ns, at)) = state.figures().peak(by, state.tail_of) else {
        return state.say(no_peak(by));
    };
    let mut figures = state.frozen.take().unwrap_or_else(|| Box::new(state.live.clone()));
    figures.show(at);
    state.cumulative = false;
    let (of, forgotten) = if figures.has_forgotten() {
        (format!(" of the last {} windows", figures.kept()), format!(": {FORGOTTEN}"))
    } else {
        (String::new(), String::new())
    };
    let end = approx_span(figures.shown_end_ns().unwrap_or(0) as f64 / 1e9);
    let whose = peak_of(by, ns, state.tail_of);
    state.say(format!("{whose}{of}, in the window that ended at {end}{forgotten}"));
    state.frozen = Some(figures);
}

/// Why there is no peak.
pub fn no_peak(by: Peak) -> &'static str {
    match by {
        Peak::LongestIo => "no I/O has ended yet",
        Peak::P99 => "no window has enough I/Os for a p99 yet: L shows the longest I/O",
    }
}

/// A peak in words: whose, and how long.
pub fn peak_of(by: Peak, ns: u64, of: TailOf) -> String {
    let whose = match (of, by) {
        (TailOf::Class(class), _) => class.to_string(),
        (TailOf::All, Peak::LongestIo) => "all classes".to_owned(),
        // A class of few I/Os may have a higher one.
        (TailOf::All, Peak::P99) => "all I/Os together".to_owned(),
    };
    let what = match by {
        Peak::LongestIo => "the longest I/O",
        Peak::P99 => "the highest p99",
    };
    format!("{what} of {whose} is {}", format_latency(ns))
}
