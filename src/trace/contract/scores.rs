//! The figures of all rules, and how well each rule is followed.

use super::alignment::{self, Unaligned};
use super::grouping::{self, Zombies};
use super::lifetime::Lifetime;
use super::locality::{self, Miss};
use super::requests::Requests;
use super::space::Space;
use super::spec::{ContractSpec, Rule, TRAFFIC_MIN};
use crate::error::Result;
use crate::trace::io::{LostEvents, Trace, TracedDrive};
use crate::trace::selected::{Selected, select};

/// The coverage and the block size that determine the lights.
const JUDGED_PERCENT: u64 = 10;
const JUDGED_BLOCK_BYTES: u64 = 128 << 10;

/// How well a rule is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Light {
    /// Well.
    Good,
    /// In between.
    Doubt,
    /// Badly.
    Poor,
    /// Not judged, for this reason.
    Unjudged(Why),
}

/// Why a rule isn't judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// Events are missing from the trace.
    Lost,
    /// The rule was not asked for, or not the coverage or block size that determines its light.
    NotAsked,
    /// How much the drive can take at once is unknown.
    NoModel,
    /// There is no I/O.
    NoIo,
    /// Nothing was written.
    NoWrites,
    /// The zombie curve is still changing.
    NotStable,
    /// The space was not overwritten often enough.
    TooShort,
}

impl Why {
    /// The reason in a few words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lost => "events lost",
            Self::NotAsked => "not asked for",
            Self::NoModel => "no model",
            Self::NoIo => "no I/O",
            Self::NoWrites => "no writes",
            Self::NotStable => "not stable yet",
            Self::TooShort => "too short",
        }
    }
}

impl Light {
    /// The light for a figure of which less is better.
    fn of(figure: f64, good_max: f64, doubt_max: f64) -> Self {
        match figure {
            _ if figure <= good_max => Self::Good,
            _ if figure <= doubt_max => Self::Doubt,
            _ => Self::Poor,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Doubt => "doubt",
            Self::Poor => "poor",
            Self::Unjudged(why) => why.name(),
        }
    }
}

/// Figures of all rules.
#[derive(Debug, Clone, PartialEq)]
pub struct Scores {
    /// The drive.
    pub drive: TracedDrive,
    /// How many of its I/Os were scored.
    pub ios: usize,
    /// How many of its I/Os were outside of the space and belong to others.
    pub others: u64,
    /// Bytes of the space.
    pub space_bytes: u64,
    /// Whether the space is only assumed to end at the furthest I/O.
    pub space_is_assumed: bool,
    /// Bytes of a flash page.
    pub page_bytes: u64,
    /// Events missing from the trace: nothing is judged unless they are all completions.
    pub lost: LostEvents,
    /// Pages that were written in part, so that their old content has to be read.
    pub rewritten_in_part: u64,
    /// The rules that were scored; those that were not have no figures.
    pub rules: Vec<Rule>,
    /// Request scale.
    pub requests: Requests,
    /// Locality, by coverage.
    pub misses: Vec<Miss>,
    /// Alignment, by block size.
    pub alignment: Vec<Unaligned>,
    /// Grouping by death time: one segment, and several.
    pub zombies: [Zombies; 2],
    /// Uniform data lifetime.
    pub lifetime: Lifetime,
}

impl Scores {
    /// How often the space was overwritten: bytes written relative to its size.
    pub fn traffic(&self) -> f64 {
        (self.lifetime.writes() * self.page_bytes) as f64 / self.space_bytes.max(1) as f64
    }

    /// The light of each rule, in order.
    pub fn lights(&self) -> [Light; 5] {
        if self.lost.others() > 0 {
            return [Light::Unjudged(Why::Lost); 5];
        }
        let miss = self.misses.iter().find(|miss| miss.coverage_percent == JUDGED_PERCENT);
        let unaligned = self.alignment.iter().find(|of| of.block_bytes == JUDGED_BLOCK_BYTES);
        let [zombies, _] = &self.zombies;
        let wrote = |figure: Option<f64>, good_max, doubt_max| {
            figure.map_or(Light::Unjudged(Why::NoWrites), |figure| Light::of(figure, good_max, doubt_max))
        };
        let grouping = wrote(zombies.zombie_share(), 0.1, 0.5);
        let lifetime = wrote(self.lifetime.p99_to_p50(), 10.0, 100.0);
        let is_short = self.traffic() < TRAFFIC_MIN;
        let locality = |miss: &Miss| {
            miss.ratio().map_or(Light::Unjudged(Why::NoIo), |ratio| Light::of(ratio, 0.01, 0.05))
        };
        let not_asked = Light::Unjudged(Why::NotAsked);
        let lights = [
            Light::Unjudged(Why::NoModel),
            miss.map_or(not_asked, locality),
            unaligned.map_or(not_asked, |of| wrote(of.share(), 0.1, 0.5)),
            match grouping {
                Light::Unjudged(_) => grouping,
                _ if zombies.is_stable => grouping,
                _ => Light::Unjudged(Why::NotStable),
            },
            match lifetime {
                Light::Unjudged(_) => lifetime,
                _ if is_short => Light::Unjudged(Why::TooShort),
                _ => lifetime,
            },
        ];
        let mut rules = Rule::ALL.into_iter();
        lights.map(|light| {
            let is_asked = rules.next().is_some_and(|rule| self.rules.contains(&rule));
            if is_asked { light } else { not_asked }
        })
    }
}

/// Scores the rules.
///
/// # Errors
/// `Input` if the trace has several drives and none was named, if an I/O crosses the end of the space, or if
/// the I/Os are spread too far for pages of that size.
pub fn score(trace: &Trace, spec: &ContractSpec) -> Result<Scores> {
    spec.check()?;
    let Selected { drive, ios, others } = select(trace, spec.drive, spec.start_bytes, spec.space_bytes)?;
    let space = Space::of(&ios, spec)?;
    // A rule that is not asked for is scored on no I/Os.
    let of = |rule| if spec.asks_for(rule) { &ios[..] } else { &[][..] };
    let if_asked = |rule, list: &[u64]| if spec.asks_for(rule) { list.to_vec() } else { Vec::new() };
    let blocks = if_asked(Rule::Alignment, &spec.block_bytes);
    let unaligned = |block: &u64| alignment::unaligned(&ios, &space, *block, spec.file_bytes);
    let zombies = |segment| grouping::zombies(of(Rule::Grouping), &space, segment, spec.channels);
    Ok(Scores {
        drive,
        ios: ios.len(),
        others,
        space_bytes: space.bytes,
        space_is_assumed: spec.space_bytes.is_none(),
        page_bytes: spec.page_bytes,
        lost: trace.lost,
        rewritten_in_part: space.written_in_part(&ios),
        rules: spec.rules.clone(),
        requests: Requests::of(of(Rule::RequestScale), trace.form, trace.lost),
        misses: locality::misses(&ios, &space, &if_asked(Rule::Locality, &spec.coverage_percent)),
        alignment: blocks.iter().map(unaligned).collect(),
        zombies: [None, Some(spec.segment_bytes)].map(zombies),
        lifetime: Lifetime::of(of(Rule::Lifetime), &space),
    })
}
