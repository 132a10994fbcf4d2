//! The test bed of the checks, and their runs.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;

use super::checks::{Check, CheckOutcome};
use crate::error::{Error, Result};
use crate::host::{Facts, Levels, TargetFacts, Trusting, make_own_folder};
use crate::load::volume::{self, Volume};
use crate::meter::Member;
use crate::runs::record::Summary;
use crate::runs::session::headless;
use crate::runs::session::{
    Advance, Attendant, Event, Options, PlanShown, Progress, Session, Wanted, destroy_of, forget_map,
    to_read_back,
};
use crate::settings::Settings;
use crate::settings::knobs;
use crate::settings::paths::expand_home;
use crate::stack::system_folder::refuse_system_folder;
use crate::units::MIB;

/// The storage that the checks run on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckedOn {
    /// Files in their own folder below this one.
    Files(PathBuf),
    /// Block devices, which are filled; anything else that the checks need goes into a folder below the second.
    Devices(Vec<String>, PathBuf),
}

impl CheckedOn {
    /// The folder below which the checks' own folder is made.
    fn above(&self) -> &Path {
        match self {
            Self::Files(dir) | Self::Devices(_, dir) => dir,
        }
    }

    /// Its names, which a bundle must not show.
    pub(super) fn names(&self) -> Vec<String> {
        let devices = match self {
            Self::Files(_) => &[][..],
            Self::Devices(devices, _) => devices,
        };
        [devices, &[self.above().display().to_string()]].concat()
    }
}

/// How long the checks measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// About five minutes.
    Full,
    /// A few seconds: figures scatter more.
    Quick,
}

/// The times and amounts of the checks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Amounts {
    /// Bytes of the data file.
    pub file_bytes: u64,
    /// Pairs of runs with fio, and the length of each run.
    pub pairs: usize,
    pub pair: Duration,
    /// The length of a run compared with the block layer.
    pub bytes: Duration,
    /// The length of a run compared with other meters.
    pub cpu: Duration,
    /// Writes that are reverted, of each kind.
    pub planted: usize,
    /// The longest time of a duel, and its windows.
    pub duel: Duration,
    pub duel_window: Duration,
}

impl Extent {
    pub(super) fn amounts(self) -> Amounts {
        let (s, ms) = (Duration::from_secs, Duration::from_millis);
        match self {
            Self::Full => Amounts {
                file_bytes: 512 * MIB,
                pairs: 9,
                pair: s(4),
                bytes: s(5),
                cpu: s(10),
                planted: 50,
                duel: s(100),
                duel_window: ms(500),
            },
            Self::Quick => Amounts {
                file_bytes: 64 * MIB,
                pairs: 3,
                pair: ms(300),
                bytes: ms(300),
                cpu: ms(1000),
                planted: 20,
                duel: s(7),
                duel_window: ms(100),
            },
        }
    }
}

/// The target, a folder for recordings, and the attester.
pub(super) struct Bed<'a> {
    pub settings: Settings,
    pub amounts: Amounts,
    pub facts: Arc<Facts>,
    /// What the target can do: the checks' folder or, for devices, the first of them.
    pub target: Option<TargetFacts>,
    pub interrupts: &'a dyn Fn() -> usize,
    options: Options,
    folder: TempDir,
    runs: u32,
    /// The data sets that are removed with the folder.
    sets: HashSet<u64>,
    said: HashSet<String>,
    pub attester: &'a mut dyn Attester,
}

/// Who waits for the checks.
pub trait Attester: Attendant {
    /// These checks begin.
    fn begins(&mut self, checks: &[Check]);
    /// A check ended.
    fn outcome(&mut self, outcome: &CheckOutcome);
}

/// A check that observes a run.
pub(super) trait Onlooker {
    /// The target is open and filled, and the load begins.
    fn before(&mut self) {}
    /// The run reports something. Returns whether it goes on.
    fn event(&mut self, _: &mut Session, _: &Event) -> Result<bool> {
        Ok(true)
    }
    /// Everything has drained.
    fn after(&mut self) {}
}

/// No observer.
impl Onlooker for () {}

/// A recorded run.
pub(super) struct Ran {
    pub summary: Summary,
    pub dir: PathBuf,
}

impl<'a> Bed<'a> {
    /// Makes the folder; the first run opens the target.
    pub fn new(
        on: &CheckedOn,
        extent: Extent,
        options: Options,
        facts: Arc<Facts>,
        attester: &'a mut dyn Attester,
        interrupts: &'a dyn Fn() -> usize,
    ) -> Result<Self> {
        let above = on.above();
        refuse_system_folder("--files", above)?;
        make_own_folder(above, Trusting::Caller)?;
        let above = above.canonicalize().map_err(|e| Error::os("cannot find", above, e))?;
        let folder = tempfile::Builder::new().prefix("attest-").tempdir_in(&above);
        let folder = folder.map_err(|e| Error::os("cannot create a folder in", &above, e))?;
        let amounts = extent.amounts();
        let target = match on {
            CheckedOn::Files(_) => Some(volume::examine_folder(folder.path())?),
            CheckedOn::Devices(..) => None,
        };
        let settings = settings_of(on, folder.path(), extent, &facts)?;
        let (runs, sets, said) = (0, HashSet::new(), HashSet::new());
        Ok(Self { settings, amounts, facts, target, interrupts, options, folder, runs, sets, said, attester })
    }

    /// A folder of its own for one check.
    pub fn place(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Settings with separate files, for a check that needs its own.
    pub fn apart(&self, name: &str, bytes: u64) -> Result<Settings> {
        quiet(&of_files(&self.place(name), bytes)?, &self.facts)
    }

    /// Why reads may not reach the storage; none if they do.
    pub fn not_direct(&self) -> Option<&'static str> {
        let target = self.target.as_ref()?;
        let is_direct = target.direct.reason().is_none() && target.quietly_buffered.is_none();
        (!is_direct).then_some("this file system has no direct I/O, so reads come from memory")
    }

    /// The volume of these settings, opened for reading only.
    pub fn volume(&mut self, settings: &Settings) -> Result<Volume> {
        let facts = self.facts.clone();
        let volume = Volume::open(to_read_back(settings, || facts)?)?;
        if settings.target.devices.is_empty() {
            self.sets.insert(volume.set);
        }
        Ok(volume)
    }

    /// The block devices below the target.
    pub fn levels(&mut self) -> Result<Levels> {
        let settings = self.settings.clone();
        let mut levels = Levels::default();
        for extent in self.volume(&settings)?.data.extents {
            levels.join(Levels::below_path(&extent.path));
        }
        Ok(levels)
    }

    /// Runs settings for that time, into a recording.
    ///
    /// # Errors
    /// Interrupted by a signal; else why the run can't be done, or failed.
    pub fn run(&mut self, settings: &Settings, time: Duration, onlooker: &mut dyn Onlooker) -> Result<Ran> {
        if (self.interrupts)() > 0 {
            return Err(interrupted());
        }
        // The uses of a device may have changed since.
        if !settings.target.devices.is_empty() {
            self.facts = Arc::new(Facts { devices: Facts::read_devices(), ..(*self.facts).clone() });
        }
        self.runs += 1;
        let dir = self.place(&format!("run-{}", self.runs));
        let destroy = destroy_of(&self.options.destroy, settings, &self.facts);
        let options = Options { destroy, ..self.options.clone() };
        let mut quiet = Quiet { inner: &mut *self.attester, said: &mut self.said, onlooker };
        let mut session = Session::open(settings.clone(), options, self.facts.clone(), &mut quiet)?;
        let mut watch = |session: &mut Session, event: &Event| onlooker.event(session, event);
        let recorded = headless::record_watched(&mut session, &dir, time, self.interrupts, &mut watch);
        onlooker.after();
        if (self.interrupts)() > 1 {
            // I/O that does not drain is abandoned.
            std::mem::forget(session);
            return Err(interrupted());
        }
        let attester = &mut *self.attester;
        let ended = session.dismantle(false, &mut |advance| attester.step(advance));
        let summary = recorded?;
        ended?;
        match (&summary.failure, summary.errors_line()) {
            _ if summary.interrupted => Err(interrupted()),
            (Some(failure), _) => Err(Error::failed(failure.clone())),
            (None, Some(errors)) => Err(Error::failed(errors)),
            (None, None) => Ok(Ran { summary, dir }),
        }
    }

    /// The folder of the checks.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Removes what the checks made.
    ///
    /// # Errors
    /// If something is left.
    pub fn remove(mut self) -> Result<()> {
        self.sets.drain().for_each(forget_map);
        let path = self.folder.path().to_owned();
        self.folder.close().map_err(|error| Error::os("cannot remove", &path, error))
    }
}

const NAME: &str = "attest";

/// The settings of the checks' target, with files in that folder.
///
/// # Errors
/// If a profile can't name the folder.
pub fn settings_of(on: &CheckedOn, folder: &Path, extent: Extent, facts: &Facts) -> Result<Settings> {
    let settings = match on {
        CheckedOn::Files(_) => of_files(&folder.join("data"), extent.amounts().file_bytes)?,
        CheckedOn::Devices(devices, _) => {
            let mut settings = Settings { name: NAME.into(), ..Settings::default() };
            settings.target.devices.clone_from(devices);
            settings
        }
    };
    quiet(&settings, facts)
}

fn interrupted() -> Error {
    Error::interrupted("interrupted: not everything was checked")
}

fn of_files(dir: &Path, bytes: u64) -> Result<Settings> {
    let mut settings = Settings { name: NAME.into(), ..Settings::default() };
    let dir = dir.to_str().ok_or_else(|| Error::input("the folder's path is not UTF-8 text"))?;
    dir.clone_into(&mut settings.target.dir);
    (settings.target.count, settings.target.size_bytes) = (1, bytes);
    Ok(settings)
}

/// The settings with no class running, through system calls that fio offers too.
fn quiet(settings: &Settings, facts: &Facts) -> Result<Settings> {
    let interface = if facts.libaio.reason().is_none() { "libaio" } else { "sync" };
    let off = ["scan.enabled", "point.enabled", "wal.enabled", "background.enabled"];
    let off = off.map(|knob| (knob, "false"));
    with(settings, &[&off[..], &[("io.interface", interface)]].concat())
}

/// The settings with these knobs turned.
pub(super) fn with(settings: &Settings, turns: &[(&str, &str)]) -> Result<Settings> {
    let mut settings = settings.clone();
    for (path, text) in turns {
        let knob = knobs::find(path).ok_or_else(|| Error::failed(format!("there is no knob `{path}`")))?;
        let value = knob.parse(text).map_err(|why| Error::failed(format!("{path}: {why}")))?;
        knob.set(&mut settings, value);
    }
    Ok(settings)
}

/// Shows each notice once, as the same target is opened repeatedly, and tells the check when the load begins.
struct Quiet<'a> {
    inner: &'a mut dyn Attendant,
    said: &'a mut HashSet<String>,
    onlooker: &'a mut dyn Onlooker,
}

impl Attendant for Quiet<'_> {
    fn progress(&mut self, progress: Progress) -> bool {
        self.inner.progress(progress)
    }

    fn notice(&mut self, text: &str) {
        if self.said.insert(text.to_owned()) {
            self.inner.notice(text);
        }
    }

    fn consent(&mut self, wanted: Vec<Wanted>) -> Option<Vec<String>> {
        self.inner.consent(wanted)
    }

    fn plan(&mut self, plan: PlanShown) -> Option<Vec<String>> {
        self.inner.plan(plan)
    }

    fn step(&mut self, advance: &Advance) -> bool {
        self.inner.step(advance)
    }

    fn before_load(&mut self, members: &[Member]) -> Result<Vec<String>> {
        self.onlooker.before();
        self.inner.before_load(members)
    }
}

/// The folder below which the checks make their own, unless the operator names one.
///
/// # Errors
/// If this user has no home folder.
pub fn default_folder() -> Result<PathBuf> {
    expand_home("~/.cache/stacktune")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::record::fixture;

    #[test]
    fn what_the_checks_turn_exists_and_nothing_runs_by_itself() {
        let facts = fixture::facts();
        let settings = quiet(&of_files(Path::new("/srv/x"), 64 * MIB).unwrap(), &facts).unwrap();
        assert!(settings.classes.iter().all(|class| !class.enabled));
        assert!(with(&settings, &[("no.knob", "1")]).is_err());
        assert!(with(&settings, &[("point.depth", "zero")]).is_err());
        assert!(of_files(Path::new("/srv/x"), 1).unwrap().target.devices.is_empty());
    }

    #[test]
    fn the_short_form_is_shorter_in_everything() {
        let (full, quick) = (Extent::Full.amounts(), Extent::Quick.amounts());
        let time = |of: Amounts| of.pair * 2 * of.pairs as u32 + (of.bytes + of.cpu) * 3 + of.duel;
        assert!(time(quick) < Duration::from_secs(15) && time(full) < Duration::from_mins(5));
        assert!(quick.pairs >= super::super::checks::PAIRS_MIN && quick.file_bytes < full.file_bytes);
    }
}
