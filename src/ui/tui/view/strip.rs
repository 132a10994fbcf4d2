//! The verdict strip, always in sight: whether a turn can be judged yet, how far that is, what the last one did.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::frame::{put, span};
use super::turn::{both_sides, foremost, uncounted_verdict, verdict};
use crate::meter::flag::{FlagKind, kind_of_turns};
use crate::meter::turns::ledger::{AFTER_WINDOWS, WINDOWS_MIN};
use crate::meter::turns::outcome::TurnOutcome;
use crate::meter::turns::settling::settling_ns;
use crate::meter::window::LedgerLine;
use crate::runs::session::message::{DuelShown, Phase};
use crate::ui::report::duel::{begun_again, verdict_of_line};
use crate::ui::text::{fit, raw_change, signed_percent, width};
use crate::ui::tui::beside::Beside;
use crate::ui::tui::state::State;
use crate::units::{approx_span, three_digits};

/// Draws the strip.
pub fn render(state: &State, buf: &mut Buffer, area: Rect) {
    let cells = usize::from(area.width).saturating_sub(2);
    let mut spans = vec![span(" ▶ ", state.theme.accent)];
    spans.extend(said(state, cells.saturating_sub(3)));
    put(buf, area.x, area.y, area.width, &Line::from(fitted(spans, cells)));
}

/// The spans that fit, the last one cut.
fn fitted(spans: Vec<Span<'static>>, cells: usize) -> Vec<Span<'static>> {
    let mut room = cells;
    let mut cut = |span: Span<'static>| {
        let content = fit(&span.content, room);
        room -= width(&content);
        Span { content: content.into(), ..span }
    };
    spans.into_iter().map(&mut cut).collect()
}

fn said(state: &State, cells: usize) -> Vec<Span<'static>> {
    let theme = &state.theme;
    let dim = |text: String| vec![span(text, theme.dim)];
    if let Some((_, shown)) = &state.duel {
        return dim(duel(shown));
    }
    if let Some(beside) = &state.beside {
        return differences(state, beside, cells);
    }
    if state.replay.is_some() {
        return turns(state, cells);
    }
    let judged = state.figures().ledger.back();
    match (state.phase(), judged) {
        _ if state.ended.is_some() => dim("the run has ended".into()),
        (Phase::Opening, _) => dim("no verdicts yet: the target is being opened".into()),
        (Phase::Building, _) => dim("no verdicts now: the stack is being built".into()),
        (Phase::Filling, _) => dim("no verdicts now: the target is being filled".into()),
        (Phase::Ending, _) => dim("the run ends".into()),
        (Phase::Paused, _) => dim("paused: nothing is compared".into()),
        (Phase::Running, None) => baseline(state, cells),
        (Phase::Running, Some(line)) if line.outcome() == TurnOutcome::Gathering => {
            gathering(state, line, cells)
        }
        (Phase::Running, Some(line)) => closed(state, line, cells),
    }
}

/// What clearly differs in the second recording from the first, as far as there is room.
fn differences(state: &State, beside: &Beside, cells: usize) -> Vec<Span<'static>> {
    let theme = &state.theme;
    let mut spans = vec![span("B against A: ", theme.accent)];
    if beside.changes.is_empty() {
        spans.push(span("no clear difference, or none that can be judged; = says why", theme.dim));
        return spans;
    }
    let room = |spans: &[Span]| cells.saturating_sub(spans.iter().map(Span::width).sum());
    let all = beside.changes.len();
    for (at, change) in beside.changes.iter().enumerate() {
        let more = if at + 1 < all { format!("and {} more: =", all - at) } else { String::new() };
        if width(change) + 2 + width(&more) > room(&spans) {
            spans.push(span(format!("and {} more: =", all - at), theme.dim));
            break;
        }
        spans.push(span(format!("{change}  "), theme.plain));
    }
    spans
}

/// In a recording: the last turn up to the window shown, with its verdict; else the first one.
fn turns(state: &State, cells: usize) -> Vec<Span<'static>> {
    let theme = &state.theme;
    let ledger = &state.figures().ledger;
    let shown_ns = state.cursor_ns().unwrap_or(0);
    let Some(line) = ledger.iter().rfind(|line| line.at_ns <= shown_ns) else {
        let text = match (ledger.front(), &state.replay) {
            (Some(first), Some(replay)) => {
                let at = approx_span(replay.since_ns(first.at_ns) as f64 / 1e9);
                format!("no turn yet; {}at {at}: n goes there", turn(first))
            }
            _ => "no knob was turned in this recording".into(),
        };
        return vec![span(text, theme.dim)];
    };
    if line.outcome() == TurnOutcome::Gathering {
        let open = span("was still collecting windows when the recording ended", theme.dim);
        return vec![span(turn(line), theme.plain), open];
    }
    closed(state, line, cells)
}

/// Before the first turn: whether there is something to compare it with.
fn baseline(state: &State, cells: usize) -> Vec<Span<'static>> {
    let theme = &state.theme;
    let figures = state.figures();
    if let Some((class, flag)) = figures.forbidding() {
        let named = class.map_or(flag.text.clone(), |class| format!("{class} {}", flag.text));
        let no_turn = match FlagKind::of(&flag.text) {
            Some(FlagKind::Settling) => ": the load settles, and windows of it are not compared".to_owned(),
            // They affect both values of a duel alike.
            Some(FlagKind::ProcessorsFull | FlagKind::Drifting) => {
                format!(": under `{named}` only a duel can judge: turn a knob, then D")
            }
            _ => format!(": with `{named}` no turn can be judged"),
        };
        let more = "; ? explains it";
        let fits = width("not now") + width(&no_turn) + width(more) <= cells;
        let text = if fits { no_turn + more } else { no_turn };
        return vec![span("not now", theme.warn), span(text, theme.dim)];
    }
    let ready = figures.steady.min(WINDOWS_MIN);
    if ready == WINDOWS_MIN {
        return vec![
            span("ready", theme.good),
            span(": turn a knob by ← →, and this line says whether it helped", theme.dim),
        ];
    }
    vec![
        span(format!("baseline {ready} of {WINDOWS_MIN} "), theme.accent),
        span(bar(ready, WINDOWS_MIN), theme.accent),
        span(" a turn can be judged after it", theme.dim),
    ]
}

fn bar(done: usize, all: usize) -> String {
    "█".repeat(done.min(all)) + &"░".repeat(all.saturating_sub(done))
}

fn cells_of(spans: &[Span]) -> usize {
    spans.iter().map(Span::width).sum()
}

fn turn(line: &LedgerLine) -> String {
    format!("turn {}: {}{}  ", line.number, undo(line), line.turned())
}

/// The turn without the former value.
fn turned_to(line: &LedgerLine) -> String {
    format!("turn {}: {}{} → {}  ", line.number, undo(line), line.knob, line.to)
}

fn undo(line: &LedgerLine) -> &'static str {
    if line.undo { "undo " } else { "" }
}

fn gathering(state: &State, line: &LedgerLine, cells: usize) -> Vec<Span<'static>> {
    let theme = &state.theme;
    let after = line.windows.1 as usize;
    let mut spans = vec![span(turn(line), theme.plain)];
    let left = left_s(state, line).map_or_else(String::new, |left_s| format!(", about {left_s:.0} s left"));
    let text = match after {
        0 => format!("settling{left}"),
        _ if after < AFTER_WINDOWS => {
            format!("gathering {after} of {AFTER_WINDOWS} {}{left}", bar(after, AFTER_WINDOWS))
        }
        _ => format!("gathering {after}: a p99 needs more I/Os"),
    };
    spans.push(span(text, theme.accent));
    let room = cells.saturating_sub(cells_of(&spans));
    let so_far = foremost(state, line)
        .and_then(|(name, change)| Some(format!("  {name} {} so far", signed_percent(change.relative()?))));
    spans.extend(so_far.filter(|text| width(text) <= room).map(|text| span(text, theme.dim)));
    spans
}

/// How long the fewest windows for a verdict still take: the rest of the turn's, settling, and those that count.
fn left_s(state: &State, line: &LedgerLine) -> Option<f64> {
    let window = state.figures().window.as_ref()?;
    let length_ns = window.duration_ns.max(1);
    let counted = AFTER_WINDOWS.checked_sub(line.windows.1 as usize).filter(|windows| *windows > 0)?;
    let settled_ns = line.at_ns + length_ns + settling_ns(length_ns);
    let settling_ns = settled_ns.saturating_sub(window.start_ns + window.duration_ns);
    let settling_ns = if line.windows.1 == 0 { settling_ns } else { 0 };
    Some((settling_ns + counted as u64 * length_ns) as f64 / 1e9)
}

fn closed(state: &State, line: &LedgerLine, cells: usize) -> Vec<Span<'static>> {
    let theme = &state.theme;
    if let Some(said) = verdict_of_line(line) {
        let of = format!("duel of {}, {}: ", line.knob, line.values());
        // If both don't fit, the outcome stays whole.
        let of = Some(of).filter(|of| width(of) + width(&said) <= cells);
        return vec![span(of.unwrap_or_else(|| "duel: ".into()), theme.plain), span(said, theme.strong)];
    }
    if let Some(why) = line.why_not_judged() {
        return not_judged(state, line, &why, cells);
    }
    let changes = both_sides(state, line);
    let next = next(state, line, "the next can't be judged now").unwrap_or_default();
    let begun = |turn: String| [vec![span(turn, theme.plain)], verdict(state, line)].concat();
    // The first change keeps its interval; in a trade-off the first two do: the loss and the gain. To make room,
    // values are dropped first, then the knob, then intervals: all are in the ledger as well.
    let most = if line.outcome() == TurnOutcome::TradeOff { 2 } else { 1 };
    let first = || changes.iter().take(most);
    let whole_cells: usize = first().map(|(figure, text, _)| width(figure) + width(text) + 3).sum();
    let short_cells: usize = first().map(|(figure, text, _)| width(figure) + width(short(text)) + 3).sum();
    let forms = || [turn(line), turned_to(line), format!("turn {}: ", line.number)].into_iter().map(begun);
    let fits = |needed: usize| forms().find(|spans| cells_of(spans) + needed <= cells);
    let with_intervals = fits(whole_cells);
    let is_short = with_intervals.is_none() && most > 1;
    let mut spans = with_intervals.or_else(|| fits(short_cells)).unwrap_or_else(|| begun(turn(line)));
    for (at, (figure, text, style)) in changes.iter().cloned().enumerate() {
        let name = format!("  {figure} ");
        // Whether the next turn can be judged matters more than a third figure.
        let kept = if at < 2 { 0 } else { width(&next) };
        let room = cells.saturating_sub(cells_of(&spans) + width(&name) + kept);
        let short = Some(short(&text).to_owned()).filter(|_| at < most);
        let whole = Some(text).filter(|_| !is_short);
        let Some(text) = [whole, short].into_iter().flatten().find(|text| width(text) <= room) else {
            break;
        };
        spans.push(span(name, theme.dim));
        spans.push(span(text, style));
    }
    if cells_of(&spans) + width(&next) <= cells {
        spans.push(span(next, theme.dim));
    }
    spans
}

/// A change without its interval.
fn short(text: &str) -> &str {
    text.split_once(" (").map_or(text, |(change, _)| change)
}

/// The reason comes first: the ledger has the values and the knob as well.
fn not_judged(state: &State, line: &LedgerLine, why: &str, cells: usize) -> Vec<Span<'static>> {
    let theme = &state.theme;
    let short = format!("turn {}: ", line.number);
    let made = |turn: String, raw: &str, verdict: &[Span<'static>]| {
        let mut spans = vec![span(turn, theme.plain)];
        spans.push(span(format!("{raw}{}", TurnOutcome::NotJudged.word()), theme.dim));
        spans.push(span(": ", theme.dim));
        spans.push(span(why.to_owned(), theme.warn));
        spans.extend(verdict.iter().skip(1).cloned());
        spans
    };
    let [whole, uncounted] = [verdict(state, line), uncounted_verdict(state, line)];
    let raw = raw_change(line).map(|raw| format!("{raw}, "));
    // What changed matters more than the number of flags, and that more than what was turned.
    let turns = [turn(line), turned_to(line), short.clone()];
    let with_raw = raw.iter().flat_map(|raw| {
        let flagged = turns.iter().map(|turn| made(turn.clone(), raw, &whole));
        flagged.chain([made(short.clone(), raw, &uncounted)])
    });
    let choices = with_raw.chain(turns[..2].iter().map(|turn| made(turn.clone(), "", &whole)));
    let mut spans =
        choices.into_iter().find(|spans| cells_of(spans) <= cells).unwrap_or_else(|| made(short, "", &whole));
    let more = by_memory(why).map(str::to_owned).into_iter().chain(next(state, line, "nor can the next now"));
    for more in more {
        if cells_of(&spans) + width(&more) <= cells {
            spans.push(span(more, theme.dim));
        }
    }
    spans
}

/// What a flag means that a turn to the page cache causes by itself: how much of the reads memory answered.
fn by_memory(why: &str) -> Option<&'static str> {
    const MOST_PERCENT: u32 = 90;
    match kind_of_turns(why)? {
        FlagKind::Cache => {
            let percent = why.rsplit(' ').next()?.strip_suffix('%')?.parse::<u32>().ok()?;
            let all = percent >= MOST_PERCENT;
            Some(if all { " · memory answered, not the drives" } else { " · memory answered in part" })
        }
        FlagKind::DataFitsMemory | FlagKind::DataFitsCache => Some(" · memory may have answered"),
        _ => None,
    }
}

/// Whether the next turn could be judged; if not, why, beginning as given.
fn next(state: &State, line: &LedgerLine, cannot: &str) -> Option<String> {
    let figures = state.figures();
    if state.replay.is_some() {
        return None;
    }
    if let Some((_, flag)) = figures.forbidding() {
        return Some(format!(" · {cannot}: {}", flag.text));
    }
    let ready = figures.baseline_since(line.at_ns).min(WINDOWS_MIN);
    Some(match ready {
        WINDOWS_MIN => " · the next can be judged".into(),
        _ => format!(" · baseline {ready} of {WINDOWS_MIN}"),
    })
}

fn duel(shown: &DuelShown) -> String {
    let report = &shown.report;
    let [a, b] = &report.values;
    let first = report.figures.first().filter(|_| !report.pairs.is_empty());
    let evidence = first.map_or_else(String::new, |row| {
        format!(", evidence {} of {}", three_digits(row.evidence.min(9999.0)), row.threshold)
    });
    let (pairs, s) = (report.pairs.len(), if report.pairs.len() == 1 { "" } else { "s" });
    let left_out = report.dropped.last().map(|why| format!(", {} left out ({why})", report.dropped.len()));
    let again = begun_again(report).map(|why| format!(", {why}"));
    let not_counted = [left_out, again].into_iter().flatten().collect::<String>();
    let figure = report.figure.name();
    format!("duel of {} {a} and {b} by {figure}: {pairs} pair{s}{not_counted}{evidence}", report.knob)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::meter::window::{Change, LedgerLine, Verdict};
    use crate::runs::session::Event;
    use crate::ui::tui::fixture::{running, tell};
    use crate::ui::tui::tests::shown;

    /// The screen after that turn.
    fn after(line: LedgerLine, columns: u16, lines: u16) -> String {
        let mut state = running(columns, lines);
        let knob = "background.page_size".into();
        let line = LedgerLine { number: 1, knob, from: "4KiB".into(), to: "64KiB".into(), ..line };
        tell(&mut state, Event::Ledger(Arc::new(line)));
        shown(&state)
    }

    fn scan(after: f64) -> Change {
        Change { before: Some(100.0), after: Some(after), ..Change::default() }
    }

    #[test]
    fn what_a_flag_keeps_from_a_verdict_is_shown_by_its_values() {
        let flags = vec!["background simulated".into(), "scan data fits memory".into()];
        let (scan_mb_per_s, total_mb_per_s) = (scan(4149.0), scan(200.0));
        let line =
            LedgerLine { flags, windows: (8, 5), scan_mb_per_s, total_mb_per_s, ..LedgerLine::default() };
        let screen = after(line, 160, 50);
        let raw = "scan 100 → 4149 MB/s, can't be judged: scan data fits memory";
        assert!(
            screen.contains(&format!(" ▶ turn 1: background.page_size 4KiB → 64KiB  {raw}  ⚑2")),
            "{screen}"
        );
        assert_eq!(screen.matches(raw).count(), 2, "in the ledger as well: {screen}");

        let flags = vec!["background simulated".into(), "scan cache 97%".into()];
        let line =
            LedgerLine { flags, windows: (8, 5), scan_mb_per_s: scan(4149.0), ..LedgerLine::default() };
        let screen = after(line, 80, 24);
        let strip = " ▶ turn 1: scan 100 → 4149 MB/s, can't be judged: scan cache 97%  ⚑2";
        assert!(screen.contains(strip), "what changed and the reason are whole: {screen}");

        let flags = vec!["background data fits memory".into(), "scan data fits memory".into()];
        let line = LedgerLine { flags, windows: (8, 5), scan_mb_per_s: scan(743.0), ..LedgerLine::default() };
        let screen = after(line, 80, 24);
        let strip = " ▶ turn 1: scan 100 → 743 MB/s, can't be judged: background data fits memory";
        assert!(screen.contains(strip), "the number of flags gives way: {screen}");
    }

    #[test]
    fn a_trade_offs_loss_and_gain_are_both_on_the_strip() {
        let change = |after: f64, verdict, interval| Change { interval, verdict, ..scan(after) };
        let line = || LedgerLine {
            windows: (8, 5),
            scan_mb_per_s: change(152.0, Verdict::Higher, Some((0.44, 0.61))),
            point_p50_ns: change(190.0, Verdict::Higher, Some((0.8, 1.0))),
            point_p99_ns: change(150.0, Verdict::Higher, Some((0.4, 0.6))),
            ..LedgerLine::default()
        };
        let narrow = after(line(), 80, 24);
        let strip = "▶ turn 1: TRADE-OFF  point p50 +90%  scan MB/s +52%";
        assert!(narrow.contains(strip), "{narrow}");
        let wide = after(line(), 160, 50);
        let both = "TRADE-OFF  point p50 +90% (+80 to +100%)  scan MB/s +52% (+44 to +61%)";
        assert!(wide.contains(both), "{wide}");
    }

    #[test]
    fn what_memory_answered_is_said_as_far_as_it_is_known() {
        for (why, said) in [
            ("scan cache 97%", Some(" · memory answered, not the drives")),
            ("point cache 3%", Some(" · memory answered in part")),
            ("background data fits memory", Some(" · memory may have answered")),
            ("steal 3%", None),
        ] {
            assert_eq!(super::by_memory(why), said, "{why}");
        }
    }

    #[test]
    fn while_windows_are_gathered_the_figure_is_of_the_knobs_class() {
        let line = || LedgerLine {
            windows: (8, 2),
            open: true,
            scan_mb_per_s: scan(110.0),
            wal_mb_per_s: scan(120.0),
            wal_p50_ns: scan(130.0),
            total_mb_per_s: scan(140.0),
            ..LedgerLine::default()
        };
        for (knob, said) in [
            ("scan.depth", "scan MB/s +10% so far"),
            ("wal.sync_every", "WAL p50 +30% so far"),
            ("background.page_size", "total MB/s +40% so far"),
            ("io.page_size", "total MB/s +40% so far"),
        ] {
            let mut state = running(160, 50);
            let line = LedgerLine { number: 1, knob: knob.into(), ..line() };
            tell(&mut state, Event::Ledger(Arc::new(line)));
            assert!(shown(&state).contains(said), "{knob}: {}", shown(&state));
        }
    }

    #[test]
    fn strip_and_ledger_agree_on_a_turn_without_a_baseline() {
        let line =
            LedgerLine { open: true, windows: (0, 2), scan_mb_per_s: scan(200.0), ..LedgerLine::default() };
        let screen = after(line, 160, 50);
        assert_eq!(screen.matches("can't be judged").count(), 2, "{screen}");
        assert!(screen.contains("no baseline: it was turned too early"), "{screen}");
        assert!(!screen.contains("gathering"), "{screen}");
    }

    #[test]
    fn at_80_columns_the_reason_is_whole_and_the_next_baseline_is_counted() {
        let line =
            LedgerLine { open: false, windows: (0, 5), scan_mb_per_s: scan(200.0), ..LedgerLine::default() };
        let flags = vec!["background simulated".into()];
        let screen = after(LedgerLine { flags, ..line.clone() }, 80, 24);
        assert!(
            screen.contains(" ▶ turn 1: can't be judged: no baseline: it was turned too early  ⚑1"),
            "{screen}"
        );
        let early = after(LedgerLine { at_ns: u64::MAX, ..line.clone() }, 160, 50);
        assert!(early.contains(" · baseline 0 of 3"), "{early}");
        let later = after(line, 160, 50);
        assert!(later.contains(" · the next can be judged"), "{later}");
    }

    #[test]
    fn the_interval_is_shown_where_the_values_that_were_turned_leave_no_room() {
        let (interval, verdict) = (Some((0.21, 0.29)), Verdict::Higher);
        let scan_mb_per_s = Change { interval, verdict, ..scan(125.0) };
        let line =
            || LedgerLine { scan_mb_per_s: scan_mb_per_s.clone(), windows: (8, 5), ..LedgerLine::default() };
        assert!(after(line(), 120, 40).contains("BETTER  scan MB/s +25% (+21 to +29%)"));
        let narrow = after(line(), 80, 24);
        let strip = narrow.lines().find(|line| line.contains("▶ turn 1")).unwrap();
        let whole = "▶ turn 1: background.page_size → 64KiB  BETTER  scan MB/s +25% (+21 to +29%)";
        assert!(strip.contains(whole), "{narrow}");
    }
}
