//! A recording on the screen: its figures as a run reported them, the position shown, and whether it plays.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::figures::Figures;
use crate::error::{Error, Result};
use crate::host::{Facts, TargetFacts};
use crate::json;
use crate::meter::whole_run::totals::Totals;
use crate::meter::window::{LedgerLine, Window};
use crate::printable;
use crate::runs::pitfalls::Pitfall;
use crate::runs::record::Recording;
use crate::runs::session::message::{Phase, Status};
use crate::settings::Settings;
use crate::settings::knobs;
use crate::settings::profile;
use crate::short_list;
use crate::ui::{clock, report};
use crate::units::approx_span;

/// Playback speeds, as multiples of the speed it was recorded at.
const SPEEDS: [u32; 6] = [1, 2, 5, 10, 30, 60];
/// A duel has two values, and restores the one from before.
const DUEL_VALUES_MAX: usize = 3;
/// Up to this length, the position is given in seconds.
const SECONDS_MAX: f64 = 600.0;

/// The message for a key that acts on a run.
pub const NOTHING_RUNS: &str = "this is a recording: nothing runs that could be turned, paused or saved";

/// A recording as the screen shows it.
#[derive(Debug, Clone)]
pub struct Replay {
    /// Its folder's name.
    pub name: String,
    /// When it began, by the local clock: `2026-01-31 14:05`; none if it does not say.
    pub began: Option<String>,
    /// The name of its host; empty if it does not say.
    pub host: String,
    /// What is known of its host, in words.
    pub host_facts: Vec<(&'static str, String)>,
    /// How far it can be trusted, by its summary; empty if there is none.
    pub pitfalls: Vec<Pitfall>,
    /// Whether it plays.
    pub plays: bool,
    /// The index of its speed.
    speed: usize,
    /// How far it has been played, on the run's clock: within the window shown, or to its end.
    played_ns: u64,
    /// The start of its first window, and the end of its last one.
    from_ns: u64,
    until_ns: u64,
    /// The states of the run, each with the time it began; empty if its settings can't be read.
    states: Vec<(u64, Arc<Status>)>,
    /// What is missing in it or damaged, in sentences.
    pub notes: Vec<String>,
    /// Its figures, until the screen takes them.
    pub figures: Figures,
}

impl Replay {
    /// Makes a recording ready for the screen.
    ///
    /// # Errors
    /// Input if there is nothing to show, or the log can't be read.
    pub fn of(mut recording: Recording) -> Result<Self> {
        // In the order of a run, each window ending after the one before.
        let end = |window: &Window| window.start_ns + window.duration_ns;
        recording.windows.sort_by_key(|window| window.start_ns);
        recording.windows.dedup_by_key(|window| window.start_ns);
        recording.windows.dedup_by(|later, earlier| end(later) <= end(earlier));
        let (Some(first), Some(last)) = (recording.windows.first(), recording.windows.last()) else {
            let what = format!("{} has no window yet", printable::path(&recording.dir));
            return Err(Error::input(what).hint("a recording can be shown once its first window is complete"));
        };
        let (from_ns, until_ns) = (first.start_ns, end(last));
        let mut figures = Figures::of_recording();
        take(&recording, &mut figures)?;
        let states = states(&mut recording, from_ns);
        let host = |key: &str| recording.host[key].as_str().unwrap_or_default().to_owned();
        let facts = report::host_facts(&recording).into_iter();
        Ok(Self {
            name: recording.name(),
            began: recording.host["started_unix_s"].as_u64().and_then(clock::local_time),
            host: host("hostname"),
            host_facts: facts.filter_map(|(what, text)| Some((what, text?))).collect(),
            pitfalls: std::mem::take(&mut recording.summary.pitfalls),
            plays: false,
            speed: 0,
            played_ns: from_ns,
            from_ns,
            until_ns,
            states,
            notes: recording.notes,
            figures,
        })
    }

    /// Converts a time on the run's clock to one since the recording began.
    pub fn since_ns(&self, ns: u64) -> u64 {
        ns.saturating_sub(self.from_ns)
    }

    /// Converts a time since the recording began to one on the run's clock.
    pub fn at_ns(&self, since_ns: u64) -> u64 {
        self.from_ns + since_ns.min(self.length_ns())
    }

    /// The settings with which it began.
    pub fn settings(&self) -> Option<&Settings> {
        self.states.first().map(|(_, status)| &status.settings)
    }

    /// Its length.
    pub fn length_ns(&self) -> u64 {
        self.until_ns - self.from_ns
    }

    /// The position by the end of the window shown: `12/60 s`, `12m 03s/1h 05m`.
    pub fn position(&self, shown_end_ns: u64) -> String {
        let [at, all] = [self.since_ns(shown_end_ns), self.length_ns()].map(|ns| ns as f64 / 1e9);
        match all {
            ..10.0 => format!("{at:.1}/{all:.1} s"),
            ..SECONDS_MAX => format!("{at:.0}/{all:.0} s"),
            _ => format!("{}/{}", approx_span(at), approx_span(all)),
        }
    }

    /// Its speed, as a multiple of the speed it was recorded at.
    pub fn times(&self) -> u32 {
        SPEEDS[self.speed]
    }

    /// Plays faster or slower; returns whether that was possible.
    pub fn change_speed(&mut self, faster: bool) -> bool {
        let speed = if faster { self.speed + 1 } else { self.speed.wrapping_sub(1) };
        let goes = speed < SPEEDS.len();
        if goes {
            self.speed = speed;
        }
        goes
    }

    /// Plays or not, and at the same speed, as the recording whose place it takes.
    pub fn keep_playing_as(&mut self, other: &Self) {
        (self.plays, self.speed) = (other.plays, other.speed);
    }

    /// Plays on from the end of the window that is shown.
    pub fn play_from(&mut self, shown_end_ns: u64) {
        self.played_ns = shown_end_ns;
    }

    /// Plays on for that long; returns the time that is reached.
    pub fn play(&mut self, elapsed_ns: u64) -> u64 {
        self.played_ns += elapsed_ns.saturating_mul(self.times().into()).min(self.length_ns());
        self.played_ns
    }

    /// The state of the run at a time; none if the settings are unknown.
    pub fn state_at(&self, ns: u64) -> Option<&Arc<Status>> {
        self.states.iter().rev().find(|(from_ns, _)| *from_ns <= ns).map(|(_, status)| status)
    }
}

/// Passes the figures of a recording on as a session does.
fn take(recording: &Recording, figures: &mut Figures) -> Result<()> {
    // The last window comes with the totals of all.
    let mut last: Option<Arc<Window>> = None;
    let before = Arc::new(Totals::default());
    let totals = recording.replay(|window| {
        if let Some(earlier) = last.replace(Arc::new(window)) {
            figures.window(earlier, Arc::clone(&before));
        }
    })?;
    if let Some(last) = last {
        figures.window(last, Arc::new(totals));
    }
    recording.ledger.iter().for_each(|line| figures.ledger(Arc::new(line.clone())));
    Ok(())
}

/// The states of the run from its start: the settings as run, and those after each turn.
fn states(recording: &mut Recording, from_ns: u64) -> Vec<(u64, Arc<Status>)> {
    let settings = match profile::parse(&recording.profile_toml, "profile.toml") {
        Ok(profile) => profile.settings,
        Err(error) => {
            recording
                .notes
                .push(format!("Its settings can't be read, and no knob is shown: {}.", error.what));
            return Vec::new();
        }
    };
    // Earlier turns are already in the profile as run.
    let own = |line: &LedgerLine| line.turns().filter(|(at_ns, _)| *at_ns >= from_ns).count();
    let settings_after = recording.windows.iter().map(|window| window.setting);
    let (least, most) =
        settings_after.fold((u64::MAX, u64::MIN), |(least, most), at| (least.min(at), most.max(at)));
    if most.saturating_sub(least) > recording.ledger.iter().map(own).sum::<usize>() as u64 {
        let missing =
            "Its ledger lacks turns: from the first of them on, the knobs are not those of the run.";
        recording.notes.push(missing.to_owned());
    }
    let mut status = Arc::new(status(recording, settings));
    let mut states = vec![(0, Arc::clone(&status))];
    for line in &recording.ledger {
        let mut known: BTreeMap<&str, Arc<Status>> = BTreeMap::new();
        for (at_ns, to) in line.turns().filter(|(at_ns, _)| *at_ns >= from_ns) {
            if known.len() == DUEL_VALUES_MAX && !known.contains_key(to) {
                break;
            }
            status = Arc::clone(known.entry(to).or_insert_with(|| Arc::new(after(&status, line, to))));
            states.push((at_ns, Arc::clone(&status)));
        }
    }
    short_list::sort_by_key(&mut states, |(from_ns, _)| *from_ns);
    states
}

/// The state after a ledger line turned its knob to that value.
fn after(before: &Status, line: &LedgerLine, to: &str) -> Status {
    let mut status = before.clone();
    match turned(&status.settings, &line.knob, to) {
        Some(settings) => status.settings = settings,
        None => status.notes.push(format!(
            "the knobs are shown without turn {} ({} to {to}), which this version doesn't know",
            line.number, line.knob
        )),
    }
    status
}

/// The settings after a turn; none if this version can't make it.
fn turned(settings: &Settings, knob: &str, to: &str) -> Option<Settings> {
    let turns: Vec<_> = if knobs::find_of(settings, knob).is_some() {
        vec![(knob, to)]
    } else {
        // Several knobs that were changed in one rebuild.
        knob.split(", ").zip(to.split(", ")).collect()
    };
    let mut settings = settings.clone();
    for (path, to) in turns {
        let knob = knobs::find_of(&settings, path)?;
        let value = knob.parse(to).ok()?;
        knob.set(&mut settings, value);
    }
    Some(settings)
}

fn status(recording: &Recording, settings: Settings) -> Status {
    let host = &recording.host;
    let noted = host["notes"].as_array().into_iter().flatten().filter_map(|note| note.as_str());
    let own = recording.notes.iter().map(String::as_str);
    Status {
        settings,
        facts: Arc::new(Facts::recorded(host)),
        target: TargetFacts::recorded(host),
        phase: Phase::Running,
        draining: Vec::new(),
        fallbacks: Vec::new(),
        notes: own.chain(noted).map(str::to_owned).collect(),
        written_bytes: 0,
        recording: None,
        circumstances: json::read_value(&host["circumstances"]).unwrap_or_default(),
        properties: None,
        standing: false,
        drives: Vec::new(),
        runs_programs: false,
    }
}
