//! A line of the ledger: what a turn did, or a duel.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::change::Change;
use super::duel_outcome::DuelOutcome;
use super::flag::used_by_others;
use super::ledger_figure::{FigureUnit, LedgerFigure};

/// A line of the ledger: what a turn did.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LedgerLine {
    /// Counts from 1.
    pub number: u64,
    /// When, from the run's start.
    pub at_ns: u64,
    /// The knob's path.
    pub knob: String,
    /// The value before, as it is written in a profile.
    pub from: String,
    /// The value after, likewise.
    pub to: String,
    /// Whether it undid the last turn.
    pub undo: bool,
    /// For a duel, which is one line: all its turns, each with its time from the run's start and its value.
    /// `from` and `to` are the values compared. Absent for a turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub duel: Vec<(u64, String)>,
    /// The outcome of a duel; absent for a turn, and for a duel whose line was closed before it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duel_outcome: Option<DuelOutcome>,
    /// `scan MB/s`.
    pub scan_mb_per_s: Change,
    /// `point MB/s`.
    #[serde(default)]
    pub point_mb_per_s: Change,
    /// `point p50` in ns.
    #[serde(default)]
    pub point_p50_ns: Change,
    /// `point p99` in ns.
    pub point_p99_ns: Change,
    /// `WAL MB/s`.
    #[serde(default)]
    pub wal_mb_per_s: Change,
    /// `WAL p50` (commit) in ns.
    #[serde(default)]
    pub wal_p50_ns: Change,
    /// `WAL p99` (commit) in ns.
    pub wal_p99_ns: Change,
    /// `background MB/s`.
    #[serde(default)]
    pub background_mb_per_s: Change,
    /// `total MB/s`.
    pub total_mb_per_s: Change,
    /// Cycles per byte.
    pub cycles_per_byte: Change,
    /// The share of all classes' intended starts that were missed, 0 to 1.
    #[serde(default)]
    pub missed_share: Change,
    /// Figures of a program that is the load, or of a trace of the drives, by name; absent without either.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metrics: BTreeMap<String, Change>,
    /// Numbers of windows compared: before, after.
    pub windows: (u64, u64),
    /// Whether it is still collecting windows.
    pub open: bool,
    /// Whether commits are less durable than before: never called a gain.
    pub less_durable: bool,
    /// Whether more is survived than before in any respect: a performance cost is then a trade-off.
    #[serde(default)]
    pub more_durable: bool,
    /// What the stack no longer survives, in words: never called a gain either.
    #[serde(default)]
    pub survives_less: Vec<String>,
    /// Flags, by [`Flag::text`](super::flag::Flag::text) after the class's name: they forbid a verdict (then
    /// no change has one), or make the line worth a second look.
    pub flags: Vec<String>,
}

impl LedgerLine {
    /// Each turn of the line: its time from the run's start, and its value.
    pub fn turns(&self) -> impl Iterator<Item = (u64, &str)> {
        let of_duel = self.duel.iter().map(|(at_ns, to)| (*at_ns, to.as_str()));
        let own = self.duel.is_empty().then_some((self.at_ns, self.to.as_str()));
        own.into_iter().chain(of_duel)
    }

    /// Its values in words: before and after, or the two that a duel compared.
    pub fn values(&self) -> String {
        let between = if self.duel.is_empty() { "→" } else { "against" };
        format!("{} {between} {}", self.from, self.to)
    }

    /// Each knob and its values in words; a rebuild may turn several at once.
    pub fn by_knob(&self) -> Vec<(&str, String)> {
        let [knobs, from, to] =
            [&self.knob, &self.from, &self.to].map(|of| of.split(", ").collect::<Vec<_>>());
        if knobs.len() < 2 || from.len() != knobs.len() || to.len() != knobs.len() {
            return vec![(&self.knob, self.values())];
        }
        let values = from.iter().zip(to).map(|(from, to)| format!("{from} → {to}"));
        knobs.into_iter().zip(values).collect()
    }

    /// The same in one line: `stack.filesystem none → ext4, target.files.count 4 → 1`.
    pub fn turned(&self) -> String {
        let each: Vec<_> = self.by_knob().iter().map(|(knob, values)| format!("{knob} {values}")).collect();
        each.join(", ")
    }

    /// Whether the new setting survives less than the old one: then nothing counts as a gain.
    pub fn is_less_safe(&self) -> bool {
        self.less_durable || !self.survives_less.is_empty()
    }

    /// Why cycles are not judged, if only they have no verdict: what others used.
    pub fn cycles_not_judged(&self) -> Option<String> {
        used_by_others(self.flags.iter().map(String::as_str)).map(|why| format!("not judged: {why}"))
    }

    /// Its figures.
    pub fn changes(&self) -> [(LedgerFigure, &Change); 11] {
        use FigureUnit::{CyclesPerByte, LatencyNs, MbPerS, Share};
        [
            ("scan MB/s", MbPerS, &self.scan_mb_per_s),
            ("point MB/s", MbPerS, &self.point_mb_per_s),
            ("point p50", LatencyNs, &self.point_p50_ns),
            ("point p99", LatencyNs, &self.point_p99_ns),
            ("WAL MB/s", MbPerS, &self.wal_mb_per_s),
            ("WAL p50", LatencyNs, &self.wal_p50_ns),
            ("WAL p99", LatencyNs, &self.wal_p99_ns),
            ("background MB/s", MbPerS, &self.background_mb_per_s),
            ("total MB/s", MbPerS, &self.total_mb_per_s),
            ("cycles/byte", CyclesPerByte, &self.cycles_per_byte),
            ("missed starts", Share, &self.missed_share),
        ]
        .map(|(name, unit, change)| (LedgerFigure { name, unit }, change))
    }

    /// Its figures, in the same order.
    pub(super) fn changes_mut(&mut self) -> [&mut Change; 11] {
        [
            &mut self.scan_mb_per_s,
            &mut self.point_mb_per_s,
            &mut self.point_p50_ns,
            &mut self.point_p99_ns,
            &mut self.wal_mb_per_s,
            &mut self.wal_p50_ns,
            &mut self.wal_p99_ns,
            &mut self.background_mb_per_s,
            &mut self.total_mb_per_s,
            &mut self.cycles_per_byte,
            &mut self.missed_share,
        ]
    }
}
