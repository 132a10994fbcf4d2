//! What ran on a screen that was closed: its turns with their verdicts, bytes written, recordings.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::cells::{WIDTH, paragraph};
use super::duel::verdict_of_line;
use crate::error::{Error, Result};
use crate::json;
use crate::meter::window::LedgerLine;
use crate::printable::{Shown as _, line};
use crate::ui::text::{clear_change, raw_change};
use crate::units::{approx_size, approx_span};

/// A profile that ran, and its turns.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Run {
    /// The profile's name.
    pub profile: String,
    /// When its last figures came, in nanoseconds from its start.
    #[serde(skip)]
    pub until_ns: u64,
    /// The turns, in order.
    pub turns: Vec<Arc<LedgerLine>>,
    /// The folder of its files and their number, if it ran on files.
    #[serde(skip)]
    pub files: Option<(String, u64)>,
}

/// What is remembered of a screen.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ran {
    /// What ran, in order.
    pub runs: Vec<Run>,
    /// Bytes written, those of fills included.
    pub written_bytes: u64,
    /// The folders in which its files stay for the next run, with their bytes.
    pub stay: Vec<(PathBuf, u64)>,
    /// The folders of the recordings, in order.
    pub recordings: Vec<PathBuf>,
    /// The files of the profiles that were saved, in order.
    pub saved: Vec<PathBuf>,
    /// Turns since the last of them was saved.
    pub turns_since_saved: usize,
}

/// A line of the file that keeps the ledger: a turn, once as it is made and once with its verdict.
#[derive(Debug, Serialize)]
struct Kept<'a> {
    profile: &'a str,
    #[serde(flatten)]
    turn: &'a LedgerLine,
}

/// What such a line has beside the turn. The turn is read by itself, as its code would otherwise be compiled twice.
#[derive(Debug, Deserialize)]
struct KeptUnder {
    profile: String,
}

/// How each line of that file begins.
const KEPT_BEGINS: &str = "{\"profile\":";

impl Run {
    /// Whether a turn under that profile belongs to this run: the next one, or an update of an earlier one.
    fn goes_on_with(&self, profile: &str, turn: &LedgerLine) -> bool {
        let known = || self.turns.iter().rev().find(|known| known.number == turn.number);
        let is_next = self.turns.last().is_none_or(|last| last.number < turn.number);
        self.profile == profile && (is_next || known().is_some_and(|known| known.at_ns == turn.at_ns))
    }
}

impl Ran {
    /// Begins the run of another profile, or of the first.
    pub fn begin(&mut self) {
        if self.runs.last() != Some(&Run::default()) {
            self.runs.push(Run::default());
        }
    }

    /// The current run.
    pub fn now(&mut self) -> &mut Run {
        if self.runs.is_empty() {
            self.begin();
        }
        let last = self.runs.len() - 1;
        &mut self.runs[last]
    }

    /// Takes a turn, or an update of one; returns whether it is new.
    pub fn turn(&mut self, line: Arc<LedgerLine>) -> bool {
        let turns = &mut self.now().turns;
        let known = turns.iter_mut().rev().find(|known| known.number == line.number);
        let is_new = known.is_none();
        match known {
            Some(known) => *known = line,
            None => turns.push(line),
        }
        self.turns_since_saved += usize::from(is_new);
        is_new
    }

    /// Notes a saved profile; one that is saved again is listed once.
    pub fn saved(&mut self, file: PathBuf) {
        self.saved.retain(|known| *known != file);
        self.saved.push(file);
        self.turns_since_saved = 0;
    }

    /// A turn of the current run as a line of JSON, as it is kept.
    pub fn json(&mut self, turn: &LedgerLine) -> String {
        let line = json::line(&Kept { profile: &self.now().profile, turn }).unwrap_or_default();
        String::from_utf8_lossy(&line).into_owned()
    }
}

/// The turns of a file that keeps a ledger, by the runs in which they were made.
///
/// # Errors
/// If a line is not a turn; a last line that was cut by a kill is left out.
pub fn kept_runs(text: &str) -> Result<Vec<Run>> {
    let mut ran = Ran::default();
    let (whole, cut) = text.rsplit_once('\n').unwrap_or(("", text));
    let is_cut = |line: &str| line.starts_with(KEPT_BEGINS) || KEPT_BEGINS.starts_with(line);
    for (at, line) in whole.lines().chain([cut].into_iter().filter(|cut| !is_cut(cut))).enumerate() {
        let bytes = line.as_bytes();
        let read = json::read(bytes)
            .and_then(|under: KeptUnder| Ok((under.profile, json::read::<LedgerLine>(bytes)?)));
        let (profile, turn) = read.map_err(|error| {
            Error::input(format!("line {} is not a turn of a ledger: {error}", at + 1))
                .hint("give a recording's folder, or the file of a ledger that the screen has kept")
        })?;
        if !ran.runs.last().is_some_and(|run| run.goes_on_with(&profile, &turn)) {
            ran.runs.push(Run { profile, ..Run::default() });
        }
        ran.turn(Arc::new(turn));
    }
    Ok(ran.runs)
}

/// Their text.
pub fn ran_turns(runs: &[Run]) -> String {
    let mut out = String::new();
    for run in runs {
        let _ = writeln!(out, "{}: {}", line(&run.profile), many_turns(run));
        out.push_str(&turns_of(run));
    }
    if out.is_empty() { "no turns\n".into() } else { out }
}

fn many_turns(run: &Run) -> String {
    match run.turns.len() {
        0 => "no turns".to_owned(),
        1 => "1 turn".into(),
        many => format!("{many} turns"),
    }
}

/// A run's turns.
fn turns_of(run: &Run) -> String {
    run.turns.iter().map(|turn| paragraph(&of_turn(turn), WIDTH, "     ") + "\n").collect()
}

/// Its text; `kept` is the file with the ledger. If nothing ran, only what was saved.
pub fn ran(ran: &Ran, kept: Option<&Path>) -> String {
    let mut out = String::new();
    for run in ran.runs.iter().filter(|run| run.until_ns > 0) {
        let span = approx_span(run.until_ns as f64 / 1e9);
        let _ = writeln!(out, "{} ran {span}: {}", line(&run.profile), many_turns(run));
        out.push_str(&turns_of(run));
    }
    let nothing_ran = out.is_empty();
    if !nothing_ran {
        let _ = writeln!(out, "{} written", approx_size(ran.written_bytes));
        for (folder, bytes) in &ran.stay {
            let _ = writeln!(out, "{} of files stay in {}", approx_size(*bytes), folder.shown());
        }
    }
    for file in &ran.saved {
        let _ = writeln!(out, "saved as {}", file.shown());
    }
    match ran.turns_since_saved {
        since if since == 0 || ran.saved.is_empty() => {}
        1 => out.push_str("  the last turn is not in it\n"),
        since => _ = writeln!(out, "  the last {since} turns are not in it"),
    }
    if nothing_ran {
        return out;
    }
    for folder in &ran.recordings {
        let _ = writeln!(out, "recorded in {}", folder.shown());
    }
    if let Some(kept) = kept {
        let _ = writeln!(out, "the ledger is kept; read it by\n  stacktune show {}", kept.shown());
    }
    out
}

/// A turn: its values, its verdict, and what changed clearly.
fn of_turn(turn: &LedgerLine) -> String {
    let undo = if turn.undo { "undo " } else { "" };
    let mut text = format!("  {}. {undo}{}: {}", turn.number, line(&turn.turned()), turn.outcome().word());
    if let Some(said) = verdict_of_line(turn) {
        let _ = write!(text, ", {said}");
    }
    if let Some(why) = turn.why_not_judged() {
        let _ = write!(text, ", {}", line(&why));
        if let Some(raw) = raw_change(turn) {
            let _ = write!(text, " ({raw})");
        }
    }
    for (figure, change) in turn.changes() {
        if let Some(change) = clear_change(figure, change) {
            let _ = write!(text, ", {figure} {change}");
        }
    }
    if turn.more_durable {
        text.push_str(", more durable");
    }
    if turn.is_of_other_sizes() {
        text.push_str(", I/Os of another size");
    }
    let less = turn.less_durable.then_some("less durable");
    for words in less.into_iter().chain(turn.survives_less.iter().map(String::as_str)) {
        let _ = write!(text, ", {}", line(words));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meter::duel_outcome::{DuelOutcome, DuelVerdict};
    use crate::meter::window::{Change, Verdict};

    fn turned(number: u64) -> LedgerLine {
        LedgerLine {
            number,
            knob: "scan.depth".into(),
            from: "64".into(),
            to: "128".into(),
            windows: (8, 5),
            scan_mb_per_s: Change {
                before: Some(100.0),
                after: Some(125.0),
                interval: Some((0.21, 0.29)),
                verdict: Verdict::Higher,
                ..Change::default()
            },
            ..LedgerLine::default()
        }
    }

    #[test]
    fn what_ran_is_said_with_the_verdicts_and_where_it_lies() {
        let mut seen = Ran::default();
        seen.begin();
        (seen.now().profile, seen.now().until_ns) = ("demo".into(), 201_000_000_000);
        seen.turn(Arc::new(LedgerLine { open: true, ..turned(1) }));
        seen.turn(Arc::new(turned(1)));
        let others = LedgerLine {
            flags: vec!["others 1.3 cores".into(), "scan data fits memory".into()],
            undo: true,
            ..turned(2)
        };
        let raw = Change { before: Some(100.0), after: Some(4149.0), ..Change::default() };
        seen.turn(Arc::new(LedgerLine { scan_mb_per_s: raw, ..others }));
        let (from, to) = ("none, 4".into(), "ext4, 1".into());
        let knob = "stack.filesystem, target.files.count".into();
        seen.turn(Arc::new(LedgerLine { knob, from, to, duel: Vec::new(), ..turned(3) }));
        let duel = vec![(1, "64".into()), (2, "128".into())];
        let duel_outcome = Some(DuelOutcome {
            verdict: DuelVerdict::First,
            figure: "point p99".into(),
            pairs: 7,
            change: Some(0.4),
            interval: Some((0.35, 0.45)),
            is_clear: true,
            margin: 0.05,
            less_durable: None,
            why: None,
        });
        let none = Change::default();
        seen.turn(Arc::new(LedgerLine { duel, duel_outcome, scan_mb_per_s: none, ..turned(4) }));
        seen.begin();
        seen.begin();
        (seen.written_bytes, seen.recordings) = (1 << 30, vec!["/data/demo-1".into()]);
        seen.stay = vec![("/cache/demo".into(), 962 << 20)];
        for file in ["/config/a.toml", "/config/b.toml", "/config/a.toml"] {
            seen.saved(file.into());
        }
        let text = ran(&seen, Some(Path::new("/state/ledger/x.jsonl")));
        assert_eq!(
            text,
            "demo ran 3m 21s: 4 turns\n  1. scan.depth 64 → 128: BETTER, scan MB/s +25% (+21 to +29%)\n  \
             2. undo scan.depth 64 → 128: can't be judged, scan data fits memory (scan 100\n     \
             → 4149 MB/s)\n  \
             3. stack.filesystem none → ext4, target.files.count 4 → 1: BETTER, scan MB/s\n     \
             +25% (+21 to +29%)\n  \
             4. scan.depth 64 against 128: duel, 64 is better: point p99 40% higher with\n     \
             128 (+35 to +45%)\n\
             1.00 GiB written\n962 MiB of files stay in /cache/demo\nsaved as /config/b.toml\nsaved as /config/a.toml\nrecorded in /data/demo-1\nthe ledger is kept; read it by\n  stacktune show /state/ledger/x.jsonl\n"
        );
        assert_eq!(ran(&Ran::default(), None), "", "nothing ran");
        seen.turn(Arc::new(turned(5)));
        let text = ran(&seen, None);
        assert!(text.contains("saved as /config/a.toml\n  the last turn is not in it\n"), "{text}");
        seen.now().profile = "mine".into();
        let kept: serde_json::Value = serde_json::from_str(&seen.json(&turned(3))).unwrap();
        assert_eq!((&kept["profile"], &kept["number"]), (&"mine".into(), &3.into()));
        assert_eq!(kept["scan_mb_per_s"]["after"], 125.0);
    }

    #[test]
    fn a_kept_ledger_is_read_back_with_the_last_that_is_known_of_each_turn() {
        let mut seen = Ran::default();
        let mut text = String::new();
        for (profile, number, at_ns, open) in [
            ("demo", 1, 5, true),
            ("demo", 2, 9, true),
            ("demo", 1, 5, false),
            ("demo", 2, 9, false),
            ("demo", 1, 7, false),
            ("mine", 2, 8, false),
        ] {
            seen.now().profile = profile.into();
            text += &seen.json(&LedgerLine { at_ns, open, ..turned(number) });
        }
        let runs = kept_runs(&(text.clone() + "{\"profile\": \"cut")).unwrap();
        let found: Vec<_> = runs.iter().map(|run| (run.profile.as_str(), run.turns.len())).collect();
        assert_eq!(found, [("demo", 2), ("demo", 1), ("mine", 1)]);
        assert!(runs.iter().flat_map(|run| &run.turns).all(|turn| !turn.open));
        let shown = ran_turns(&runs);
        assert!(shown.starts_with("demo: 2 turns\n  1. scan.depth 64 → 128: BETTER, scan"), "{shown}");
        let error = kept_runs("{\"profile\": 3}\n").unwrap_err();
        assert!(error.what.starts_with("line 1 is not a turn of a ledger"), "{error}");
        assert_eq!(ran_turns(&kept_runs("").unwrap()), "no turns\n");
        assert!(kept_runs("not a ledger").is_err(), "a line that no kill has cut");
    }
}
