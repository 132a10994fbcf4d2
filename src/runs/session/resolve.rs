//! Settings × host facts × options, resolved: everything a run does, decided in advance.
//!
//! Everything that follows from settings and host together is derived here, once: a session is resolved for
//! the host, and again for the target once that is open; a turn of a knob makes a new [`Resolved`] from the
//! current settings. Once made, it never changes.

use std::sync::Arc;

use crate::class::Class;
use crate::error::{Error, Result};
use crate::host::{Facts, TargetFacts};
use crate::load::volume::{affordable_size, chosen_size};
use crate::runs::session::opening::consent::names_of;
use crate::runs::session::opening::expected_caps::expected_caps;
use crate::runs::session::opening::host_tuning::HostSpec;
use crate::runs::session::opening::target_folder::{others_in_folder, refuse_unsafe_folders};
use crate::runs::session::options::Options;
use crate::runs::session::running::window_schedule::Pace;
use crate::runs::session::targets::{BuiltSpec, ImaginedSpec, KvSpec, PagesSpec, TargetSpec, UserspaceSpec};
use crate::runs::session::write_budget::WriteBudget;
use crate::settings::Settings;
use crate::settings::change::{self, TargetIdentity};
use crate::settings::jobs::{self, Job};
use crate::settings::knobs::{self, Conditions, Knob, Scope, Value};
use crate::settings::paths::expand_home;
use crate::settings::profile::{builtin, by_identity, check, to_toml};
use crate::settings::{Buffering, Rocksdb, Sync};
use crate::stack::handover::Noiommu;
use crate::stack::plan::StackSpec;

/// Scans of a mounted device are limited to this unless they have a rate: somebody is working on it.
const MOUNTED_SCAN_BYTES_PER_S: u64 = 100_000_000;
/// Fallbacks of the demo for knobs that a system does not permit, in this order. Outside the demo there are
/// no fallbacks: such a setting is refused with the reason.
const INSTEAD: &[(&str, &[&str])] = &[
    ("io.interface", &["libaio", "sync"]),
    ("io.registered_buffers", &["off"]),
    ("io.buffering", &["cached"]),
    ("io.page_size", &["16KiB", "64KiB"]),
];

/// What a run does, with everything that follows. Each part of a session takes its share; the settings as a
/// whole are for the screen, for recordings and for turns.
#[derive(Debug, Clone)]
pub(in crate::runs::session) struct Resolved {
    /// The settings in force: those asked for, except for fallbacks.
    pub settings: Settings,
    pub facts: Arc<Facts>,
    pub options: Options,
    /// How the run differs from what was asked for, and why.
    pub fallbacks: Vec<String>,
    /// Others' files in the target's folder, before anything was opened.
    pub folder_note: Option<String>,
    /// What each class does.
    pub jobs: [Job; 4],
    pub target: TargetSpec,
    /// The target's identity.
    pub identity: TargetIdentity,
    /// The stack below the target; it may have no layers.
    pub stack: StackSpec,
    /// How the drives leave the kernel once they are filled, if they do.
    pub userspace: Option<UserspaceSpec>,
    pub host: HostSpec,
    pub budget: WriteBudget,
    pub pace: Pace,
    /// The most memory that the page cache can use for the target.
    pub cache_bytes_max: u64,
}

impl Resolved {
    /// Resolves these settings for this host.
    ///
    /// # Errors
    /// Input if this host can't do what they say.
    pub fn new(mut asked: Settings, options: Options, facts: Arc<Facts>) -> Result<Self> {
        let mut fallbacks = Vec::new();
        options.refuse_commands(&asked)?;
        options.refuse_program(&asked)?;
        if options.read_only {
            asked.classes[Class::Wal.index()].enabled = false;
            asked.classes[Class::Background.index()].enabled = false;
        }
        if options.fallbacks {
            fit_files(&mut asked, &mut fallbacks)?;
        }
        let mut resolved = Self::settled(asked, options, facts, fallbacks, None)?;
        if !resolved.options.read_only {
            refuse_unsafe_folders(&resolved.settings, &resolved.facts)?;
        }
        resolved.folder_note = others_in_folder(&resolved.settings);
        if resolved.options.agreed.is_none() {
            refuse_unable(&resolved.settings, &resolved.facts)?;
        }
        Ok(resolved)
    }

    /// The same for a target whose facts are known now; `mounted` if somebody is working on it.
    ///
    /// # Errors
    /// Input if the target can't do what the settings say.
    pub fn on(&self, target: Option<&TargetFacts>, mounted: bool) -> Result<Self> {
        let Self { mut settings, options, facts, fallbacks, .. } = self.clone();
        let scan = &mut settings.classes[Class::Scan.index()];
        if mounted && scan.rate_bytes_per_s.is_none() {
            scan.rate_bytes_per_s = Some(MOUNTED_SCAN_BYTES_PER_S);
        }
        Self::settled(settings, options, facts, fallbacks, target)
    }

    /// Checks whether a target that is not open yet could do what the settings say.
    ///
    /// # Errors
    /// Input if it could not.
    pub fn check_on(&self, target: &TargetFacts) -> Result<()> {
        let conditions = Conditions { facts: &self.facts, target: Some(target) };
        let mut settings = self.settings.clone();
        if self.options.fallbacks {
            fall_back(&mut settings, conditions, &mut Vec::new());
        }
        refuse_wrong(&settings, conditions)
    }

    fn settled(
        mut settings: Settings,
        options: Options,
        facts: Arc<Facts>,
        mut fallbacks: Vec<String>,
        target: Option<&TargetFacts>,
    ) -> Result<Self> {
        let conditions = Conditions { facts: &facts, target };
        if options.fallbacks {
            fall_back(&mut settings, conditions, &mut fallbacks);
        }
        refuse_wrong(&settings, conditions)?;
        Ok(Self::of(settings, options, facts, fallbacks))
    }

    fn of(settings: Settings, options: Options, facts: Arc<Facts>, fallbacks: Vec<String>) -> Self {
        Self {
            jobs: jobs::jobs(&settings),
            target: target_of(&settings),
            identity: TargetIdentity::of(&settings),
            stack: StackSpec::of(&settings),
            userspace: userspace_of(&settings),
            host: host_of(&settings, &options, &facts),
            budget: WriteBudget::new(settings.run.max_writes_bytes, options.written_bytes.clone()),
            pace: Pace {
                window_ns: settings.run.window.as_nanos() as u64,
                warmup_ns: options.warmup.as_nanos() as u64,
            },
            cache_bytes_max: settings.run.cache_limit_bytes.unwrap_or(u64::MAX).min(facts.memory_bytes),
            settings,
            facts,
            options,
            fallbacks,
            folder_note: None,
        }
    }

    /// The same with a knob turned on the open target, or why that is impossible.
    pub fn turned(
        &self,
        knob: &Knob,
        value: &Value,
        target: Option<&TargetFacts>,
    ) -> std::result::Result<Self, String> {
        let mut settings = self.settings.clone();
        knob.set(&mut settings, value.clone());
        if change::between(&self.settings, &settings).scope == Scope::Rebuild {
            return Err("it takes effect when the target is rebuilt: a plan shows what that involves".into());
        }
        let conditions = Conditions { facts: &self.facts, target };
        if let Some(reason) = knob.unavailable(value, &self.settings, conditions) {
            return Err(reason);
        }
        if let Some(problem) = check(&settings, conditions).into_iter().next() {
            return Err(problem.to_string());
        }
        // A program works in a folder, whose facts may be unknown.
        let needs_target = settings.touches_storage() && settings.program.is_none() && target.is_none();
        if let Some(why) = change::refused(&self.settings, &settings) {
            return Err(why.into());
        }
        if needs_target {
            return Err("this run has no storage open: open a profile on a real interface instead".into());
        }
        // A fallback value is now the operator's choice, or gone.
        let of_knob = format!("{} is ", knob.path);
        let fallbacks = self.fallbacks.iter().filter(|note| !note.starts_with(&of_knob)).cloned().collect();
        Ok(Self::of(settings, self.options.clone(), self.facts.clone(), fallbacks))
    }

    /// What a class does.
    pub fn job(&self, class: Class) -> &Job {
        &self.jobs[class.index()]
    }

    /// Things to know about these settings on this target.
    pub fn notes(&self, target: Option<&TargetFacts>) -> Vec<String> {
        let mut notes = Vec::new();
        let count = self.options.unused_steps;
        if count > 0 {
            notes.push(format!(
                "the profile has {count} steps: `stacktune record` runs them, not this screen"
            ));
        }
        notes.extend(split_of_jobs(&self.settings));
        let layers: Vec<_> =
            self.settings.stack.by_commands.iter().map(|layer| format!("`{}`", layer.name)).collect();
        if !layers.is_empty() && self.settings.touches_storage() {
            notes.push(format!("layers by the profile's commands, the lowest first: {}", layers.join(", ")));
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

    /// The current profile under that name, with drives by their identity, as a recording keeps it.
    pub fn profile_toml(&self, name: &str) -> String {
        let settings = Settings { name: name.to_owned(), ..by_identity(&self.settings, &self.facts) };
        to_toml(&settings.into())
    }
}

/// How RocksDB divides `rocksdb.jobs`, if a profile sets only that.
fn split_of_jobs(settings: &Settings) -> Option<String> {
    let rocksdb = &settings.kv.rocksdb;
    let by_jobs = rocksdb.compactions == 0 && rocksdb.flushes == 0 && rocksdb.jobs != Rocksdb::default().jobs;
    let (compactions, flushes) = rocksdb.background();
    (settings.is_keyed() && by_jobs).then(|| {
        format!(
            "rocksdb.jobs = {} are {compactions} compactions and {flushes} flushes at once: rocksdb.compactions and rocksdb.flushes set each",
            rocksdb.jobs
        )
    })
}

fn refuse_wrong(settings: &Settings, conditions: Conditions) -> Result<()> {
    let problems = check(settings, conditions);
    if problems.is_empty() {
        return Ok(());
    }
    let list: Vec<_> = problems.iter().map(ToString::to_string).collect();
    Err(Error::input(format!("profile `{}` can't run here:\n  {}", settings.name, list.join("\n  ")))
        .hint("`stacktune knobs` lists what each of them accepts"))
}

/// Replaces settings that this host or target can't satisfy, as far as there is a fallback.
fn fall_back(settings: &mut Settings, conditions: Conditions, notes: &mut Vec<String>) {
    for (path, candidates) in INSTEAD {
        let Some(knob) = knobs::find(path) else { continue };
        let Some(reason) = knob.unavailable(&knob.get(settings), settings, conditions) else { continue };
        let from = knob.get(settings);
        let parse = |text: &&str| knob.parse(text).ok();
        let works = |value: &Value| knob.unavailable(value, settings, conditions).is_none();
        if let Some(value) = candidates.iter().filter_map(parse).find(works) {
            notes.push(format!("{path} is {value} instead of {from}: {reason}"));
            knob.set(settings, value);
        }
    }
}

/// Makes the demo's files smaller if the disk has less than four times their size, or is too slow to fill them within
/// seconds; files of another number or size, which somebody chose, only if the disk is short of space.
///
/// # Errors
/// If the folder can't be named, or its disk can't be examined.
pub(in crate::runs::session) fn fit_files(settings: &mut Settings, notes: &mut Vec<String>) -> Result<()> {
    if !settings.target.devices.is_empty() || !settings.touches_storage() {
        return Ok(());
    }
    let dir = expand_home(&settings.target.dir)?;
    let (count, size_bytes) = (settings.target.count, settings.target.size_bytes);
    let of_demo = builtin("demo").map(|demo| (demo.settings.target.count, demo.settings.target.size_bytes));
    let is_chosen = of_demo != Some((count, size_bytes));
    let fitting = if is_chosen { chosen_size } else { affordable_size };
    let (size_bytes, note) = fitting(&dir, count, size_bytes)?;
    settings.target.size_bytes = size_bytes;
    notes.extend(note);
    Ok(())
}

/// Refuses settings that are known not to work on the requested stack: a buffering or a page size.
///
/// # Errors
/// Input, naming each knob with the reason.
pub(in crate::runs::session) fn refuse_unable(settings: &Settings, facts: &Facts) -> Result<()> {
    if !settings.builds_stack() {
        return Ok(());
    }
    let target = expected_caps(&StackSpec::of(settings), facts);
    let problems = check(settings, Conditions { facts, target: Some(&target) });
    if problems.is_empty() {
        return Ok(());
    }
    let list: Vec<_> = problems.iter().map(ToString::to_string).collect();
    let what = format!("the requested stack does not support these settings:\n  {}", list.join("\n  "));
    Err(Error::input(what).hint("turn those, or choose another file system; nothing was touched"))
}

/// The target of the settings.
fn target_of(settings: &Settings) -> TargetSpec {
    let Settings { target, wal, kv, .. } = settings;
    let (target, wal) = (target.clone(), wal.clone());
    if !settings.touches_storage() {
        let sim = settings.is_simulated().then(|| settings.sim.clone());
        let (count, size_bytes) = (target.count as u32, target.size_bytes);
        TargetSpec::Imagined(ImaginedSpec { count, size_bytes, sim })
    } else if settings.stack.is_built() {
        TargetSpec::Stack(BuiltSpec::of(settings))
    } else if settings.program.is_some() {
        TargetSpec::Folder(target.dir, wal.target)
    } else if settings.is_keyed() {
        TargetSpec::KeyValue(KvSpec { dir: target.dir, kv: kv.clone() })
    } else {
        TargetSpec::Pages(PagesSpec { target, wal })
    }
}

/// How the settings' drives leave the kernel; none if they stay.
pub(in crate::runs::session) fn userspace_of(settings: &Settings) -> Option<UserspaceSpec> {
    let interface = settings.driven_by()?;
    // SPDK maps memory in its own way, to which the acceptance here does not extend.
    let accepted = settings.io.unsafe_noiommu && interface.capabilities().unsafe_noiommu;
    let noiommu = if accepted { Noiommu::Accepted } else { Noiommu::Refused };
    Some(UserspaceSpec { interface, noiommu })
}

fn host_of(settings: &Settings, options: &Options, facts: &Facts) -> HostSpec {
    HostSpec {
        profile: settings.name.clone(),
        queue: settings.queue.clone(),
        md: settings.md.on(settings.stack.raid),
        cache_limit_bytes: settings.run.cache_limit_bytes,
        cpu_latency: settings.run.cpu_latency.filter(|_| !settings.is_simulated()),
        devices: if settings.touches_storage() {
            names_of(&settings.target, &settings.wal, facts)
        } else {
            Vec::new()
        },
        uncached: options.uncached,
        read_only: options.read_only,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::testing::capable_host;

    /// The notes and the interface with such a limit on locked memory.
    fn limited(limit_bytes: u64, kernel: &str) -> (Vec<String>, String, bool) {
        let mut facts = capable_host();
        (facts.memlock_bytes, facts.kernel) = (Some(limit_bytes), kernel.into());
        let (mut settings, mut notes) = (Settings::default(), Vec::new());
        fall_back(&mut settings, Conditions { facts: &facts, target: None }, &mut notes);
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
        assert!(notes[0].contains("rings need 40KiB, but RLIMIT_MEMLOCK is 16KiB"), "{notes:?}");
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
