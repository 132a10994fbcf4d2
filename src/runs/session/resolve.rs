//! Settings × host facts × options, resolved: all that a run does, settled before it does it.
//!
//! This is the only place that derives settings. A session is resolved once for the host, and once more
//! for the target when that is open; a turn of a knob makes a new [`Resolved`] of the settings in force.
//! Nothing changes one that is made.

use std::sync::Arc;

use super::options::Options;
use crate::class::Class;
use crate::error::{Error, Result};
use crate::host::{Facts, TargetFacts};
use crate::load::volume::affordable_size;
use crate::settings::Settings;
use crate::settings::change;
use crate::settings::jobs::{self, Job};
use crate::settings::knobs::{self, Ground, Knob, Scope, Value};
use crate::settings::profile::store::expand_home;
use crate::settings::profile::{by_identity, check, to_toml};
use crate::settings::{Buffering, Sync};
use crate::units::{approx_size, format_size};

/// Scans of a mounted device are held to this unless they have a rate: somebody works on it.
const MOUNTED_SCAN_BYTES_PER_S: u64 = 100_000_000;
/// What the demo tries instead where a system forbids something, in this order. Outside the demo nothing
/// falls back: it is refused with the reason.
const INSTEAD: &[(&str, &[&str])] = &[
    ("io.interface", &["libaio", "sync"]),
    ("io.registered_buffers", &["off"]),
    ("io.buffering", &["cached"]),
    ("io.page_size", &["16KiB", "64KiB"]),
];

/// What a run does, with all that follows from it.
#[derive(Debug, Clone)]
pub(super) struct Resolved {
    /// The settings in force: what was asked for, less what falls back.
    pub settings: Settings,
    pub facts: Arc<Facts>,
    pub options: Options,
    /// What the run does otherwise than was asked for, and why.
    pub fallbacks: Vec<String>,
    /// What each class does.
    pub jobs: [Job; 4],
    pub kind: Kind,
    /// Whether the drives leave the kernel once they are filled.
    pub leaves_kernel: bool,
    pub window_ns: u64,
    pub warmup_ns: u64,
    /// Memory that the page cache can have of the target.
    pub cache_bytes_max: u64,
}

/// What the target is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Nothing touches storage.
    Imagined,
    /// Files, or devices as they are.
    Pages,
    /// A data set of key-value pairs.
    KeyValue,
    /// Files, devices or pairs on a stack that is built for them.
    Stack,
}

impl Kind {
    fn of(settings: &Settings) -> Self {
        if !settings.touches_storage() {
            Self::Imagined
        } else if settings.stack.is_built() {
            Self::Stack
        } else if settings.is_keyed() {
            Self::KeyValue
        } else {
            Self::Pages
        }
    }
}

impl Resolved {
    /// What these settings come to on this host.
    ///
    /// # Errors
    /// Input where this host can't do what they say.
    pub fn new(mut asked: Settings, options: Options, facts: Arc<Facts>) -> Result<Self> {
        let mut fallbacks = Vec::new();
        if options.read_only {
            asked.classes[Class::Wal.index()].enabled = false;
            asked.classes[Class::Background.index()].enabled = false;
        }
        if options.fallbacks {
            fit_files(&mut asked, &mut fallbacks)?;
        }
        Self::settled(asked, options, facts, fallbacks, None)
    }

    /// The same on a target, of which the facts are known now; `mounted` if somebody works on it.
    ///
    /// # Errors
    /// Input where the target can't do what the settings say.
    pub fn on(&self, target: Option<&TargetFacts>, mounted: bool) -> Result<Self> {
        let Self { mut settings, options, facts, fallbacks, .. } = self.clone();
        let scan = &mut settings.classes[Class::Scan.index()];
        if mounted && scan.rate_bytes_per_s.is_none() {
            scan.rate_bytes_per_s = Some(MOUNTED_SCAN_BYTES_PER_S);
        }
        Self::settled(settings, options, facts, fallbacks, target)
    }

    fn settled(
        mut settings: Settings,
        options: Options,
        facts: Arc<Facts>,
        mut fallbacks: Vec<String>,
        target: Option<&TargetFacts>,
    ) -> Result<Self> {
        let ground = Ground { facts: &facts, target };
        if options.fallbacks {
            fall_back(&mut settings, ground, &mut fallbacks);
        }
        let problems = check(&settings, ground);
        if problems.is_empty() {
            return Ok(Self::of(settings, options, facts, fallbacks));
        }
        let list: Vec<_> = problems.iter().map(ToString::to_string).collect();
        Err(Error::input(format!("profile `{}` can't run here:\n  {}", settings.name, list.join("\n  ")))
            .hint("`stacktune knobs` lists what each of them accepts"))
    }

    fn of(settings: Settings, options: Options, facts: Arc<Facts>, fallbacks: Vec<String>) -> Self {
        Self {
            jobs: jobs::jobs(&settings),
            kind: Kind::of(&settings),
            leaves_kernel: settings.leaves_kernel(),
            window_ns: settings.run.window.as_nanos() as u64,
            warmup_ns: options.warmup.as_nanos() as u64,
            cache_bytes_max: settings.run.cache_limit_bytes.unwrap_or(u64::MAX).min(facts.memory_bytes),
            settings,
            facts,
            options,
            fallbacks,
        }
    }

    /// The same with a knob turned on the open target, or why it can't be.
    pub fn turned(
        &self,
        knob: &Knob,
        value: &Value,
        target: Option<&TargetFacts>,
    ) -> std::result::Result<Self, String> {
        let mut settings = self.settings.clone();
        knob.set(&mut settings, value.clone());
        if change::between(&self.settings, &settings).scope == Scope::Rebuild {
            return Err("it takes effect when the target is built anew: a plan shows what that takes".into());
        }
        let ground = Ground { facts: &self.facts, target };
        if let Some(reason) = knob.unavailable(value, &self.settings, ground) {
            return Err(reason);
        }
        if let Some(problem) = check(&settings, ground).into_iter().next() {
            return Err(problem.to_string());
        }
        let needs_target = settings.touches_storage() && target.is_none();
        if needs_target || settings.is_simulated() != self.settings.is_simulated() {
            return Err("this run has no storage open: open a profile on a real interface instead".into());
        }
        Ok(Self::of(settings, self.options.clone(), self.facts.clone(), self.fallbacks.clone()))
    }

    /// What a class does.
    pub fn job(&self, class: Class) -> &Job {
        &self.jobs[class.index()]
    }

    /// What to know about these settings on this target.
    pub fn notes(&self, target: Option<&TargetFacts>) -> Vec<String> {
        let mut notes = Vec::new();
        let count = self.options.unused_steps;
        if count > 0 {
            notes.push(format!(
                "the profile has {count} steps: `stacktune record` runs them, not this screen"
            ));
        }
        let (wal, Some(target)) = (self.job(Class::Wal), target) else { return notes };
        let cached = wal.buffering != Buffering::Direct;
        if wal.enabled && target.devices && cached && wal.sync == Sync::Fdatasync {
            notes.push(
                "a flush of the WAL covers the whole device: it pays for the background's dirty pages".into(),
            );
        }
        notes
    }

    /// The profile in force, with drives by their identity: what a recording keeps.
    pub fn profile_toml(&self) -> String {
        to_toml(&by_identity(&self.settings, &self.facts).into())
    }
}

/// Replaces what this host or target can't do by what it can, as far as there is something.
fn fall_back(settings: &mut Settings, ground: Ground, notes: &mut Vec<String>) {
    for (path, candidates) in INSTEAD {
        let Some(knob) = knobs::find(path) else { continue };
        let Some(reason) = knob.unavailable(&knob.get(settings), settings, ground) else { continue };
        let from = knob.get(settings);
        let parse = |text: &&str| knob.parse(text).ok();
        let works = |value: &Value| knob.unavailable(value, settings, ground).is_none();
        if let Some(value) = candidates.iter().filter_map(parse).find(works) {
            notes.push(format!("{path} is {value} instead of {from}: {reason}"));
            knob.set(settings, value);
        }
    }
}

/// Makes the files smaller where the disk is short of four times what they take.
///
/// # Errors
/// Where the folder can't be named or its disk not be asked.
pub(super) fn fit_files(settings: &mut Settings, notes: &mut Vec<String>) -> Result<()> {
    if !settings.target.devices.is_empty() || !settings.touches_storage() {
        return Ok(());
    }
    let dir = expand_home(&settings.target.dir)?;
    let (size_bytes, note) = affordable_size(&dir, settings.target.count, settings.target.size_bytes)?;
    settings.target.size_bytes = size_bytes;
    notes.extend(note);
    Ok(())
}

/// Refuses to fill so much that, with what is written already, it is more than `run.max_writes`.
pub(super) fn refuse_over_limit(bytes: u64, written_bytes: u64, limit_bytes: Option<u64>) -> Result<()> {
    match limit_bytes {
        Some(limit) if bytes > 0 && written_bytes.saturating_add(bytes) > limit => {
            let (needs, limit) = (approx_size(bytes), format_size(limit));
            let written = match written_bytes {
                0 => String::new(),
                bytes => format!(", of which {} are written", approx_size(bytes)),
            };
            Err(Error::input(format!(
                "filling the target takes {needs}, and run.max_writes is {limit}{written}"
            ))
            .hint("a smaller target, or a higher limit: --set run.max_writes=…"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::testing::capable_host;

    /// The notes and the interface under such a limit of locked memory.
    fn limited(limit_bytes: u64, kernel: &str) -> (Vec<String>, String, bool) {
        let mut facts = capable_host();
        (facts.memlock_bytes, facts.kernel) = (Some(limit_bytes), kernel.into());
        let (mut settings, mut notes) = (Settings::default(), Vec::new());
        fall_back(&mut settings, Ground { facts: &facts, target: None }, &mut notes);
        let interface = knobs::find("io.interface").unwrap().get(&settings).to_string();
        (notes, interface, settings.io.registered_buffers)
    }

    #[test]
    fn too_little_locked_memory_takes_the_registered_buffers_then_the_rings() {
        let (notes, interface, registered) = limited(8 << 20, "6.18.0");
        assert_eq!((notes.len(), interface.as_str(), registered), (0, "io_uring", true), "{notes:?}");
        let (notes, interface, registered) = limited(64 << 10, "6.18.0");
        assert_eq!((notes.len(), interface.as_str(), registered), (1, "io_uring", false), "{notes:?}");
        let (notes, interface, _) = limited(16 << 10, "6.18.0");
        assert_eq!(interface, "libaio", "{notes:?}");
        assert!(notes[0].contains("rings take 40KiB and RLIMIT_MEMLOCK is 16KiB"), "{notes:?}");
        assert_eq!(limited(16 << 10, "6.1.0").1, "io_uring", "this kernel does not count rings");
    }

    #[test]
    fn the_page_cache_can_have_no_more_than_its_budget_or_what_there_is() {
        let facts = Arc::new(Facts { memory_bytes: 1 << 30, ..capable_host() });
        let cache_bytes_max = |limit_bytes| {
            let mut settings = Settings::default();
            settings.run.cache_limit_bytes = limit_bytes;
            Resolved::of(settings, Options::default(), facts.clone(), Vec::new()).cache_bytes_max
        };
        assert_eq!(cache_bytes_max(None), 1 << 30);
        assert_eq!(cache_bytes_max(Some(1 << 28)), 1 << 28, "data of 512 MiB does not fit in that");
        assert_eq!(cache_bytes_max(Some(1 << 40)), 1 << 30);
    }
}
