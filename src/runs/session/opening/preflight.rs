//! Examining a target before a run: what speaks against it, and what a run would destroy. Nothing is made or written.

use std::collections::HashSet;
use std::fs::File;
use std::path::{Path, PathBuf};

use super::consent::{
    DEVICE_BYTES_MIN, OursCheck, OwnWal, check_serials, destroy_of, names_of, own_wal, refuse_shared_wal,
    wanted_of,
};
use super::data_set::outlook;
use super::expected_caps::expected_caps;
use super::plan_shown::{Taken, keyed, plain, shown};
use super::target_folder::{files_elsewhere_noted, others_in_folder, refuse_unsafe_folders};
use super::target_stack::planned;
use crate::error::{Error, Result};
use crate::host::Facts;
use crate::load::volume::{self, MemberSource, Request, Survey};
use crate::runs::session::message::{PlanShown, Wanted};
use crate::runs::session::options::Options;
use crate::runs::session::program::{for_program, program_noted};
use crate::runs::session::resolve::{fit_files, userspace_of};
use crate::runs::session::targets::{bytes_to_fill, files, handover_steps};
use crate::runs::session::write_budget::WriteBudget;
use crate::settings::knobs::Conditions;
use crate::settings::profile::{check, is_demo};
use crate::settings::{Layer, Settings};
use crate::stack::devices::Drive;
use crate::stack::guard::{self, Consent, Examination};
use crate::stack::paths::state_dir;
use crate::stack::plan::StackSpec;
use crate::stack::runner::quoted;
use crate::stack::state::StateFolder;

/// What opening the settings' target takes, as the operator sees it.
///
/// # Errors
/// Why it can't be opened.
pub fn plan_shown(settings: &Settings, facts: &Facts) -> Result<PlanShown> {
    refuse_unsafe_folders(settings, facts)?;
    if settings.builds_stack() {
        let budget = WriteBudget::untouched(settings.run.max_writes_bytes);
        let plan = planned(settings, facts, None, &[], &budget)?;
        return Ok(shown(&plan, keyed(settings), 0, Vec::new()));
    }
    if !settings.touches_storage() || settings.program.is_some() {
        return Ok(plain(settings, Taken::default(), 0, Vec::new(), None));
    }
    let handed_over = match userspace_of(settings) {
        Some(spec) => handover_steps(&spec, &settings.target.devices, facts)?,
        None => Vec::new(),
    };
    let mut seen = Preflight::default();
    let request = (!settings.is_keyed()).then(|| seen.request(settings, facts)).flatten();
    if let Some(error) = seen.first {
        return Err(error);
    }
    let writes_bytes = match request {
        Some(request) => match Survey::of(&request) {
            // An obstacle to opening the files stops the run, too.
            Err(error) if settings.target.devices.is_empty() => return Err(error),
            survey => survey.ok().map(|survey| seen.bytes_to_fill(&survey)),
        },
        None => outlook(settings, None)?.load_bytes,
    };
    let taken = Taken { handed_over, destroys: Some(seen.destroyed), writes_bytes };
    Ok(plain(settings, taken, 0, Vec::new(), None))
}

/// Bytes that filling or loading the settings' target writes, if nothing is built for it; none if not known
/// in advance. The devices in `wiped` are filled entirely; `held` is the folder that this process has locked
/// and will leave first.
///
/// # Errors
/// If the data set can't be loaded, or files can't be opened: that would stop the run, too.
pub(in crate::runs::session) fn bytes_to_write(
    settings: &Settings,
    facts: &Facts,
    wiped: &HashSet<PathBuf>,
    held: Option<&Path>,
) -> Result<Option<u64>> {
    if !settings.touches_storage() {
        return Ok(Some(0));
    }
    if settings.is_keyed() {
        return outlook(settings, held).map(|outlook| outlook.load_bytes);
    }
    let survey = match unlocked(settings, facts).and_then(|request| surveyed(settings, facts, &request, held))
    {
        Err(error) if settings.target.devices.is_empty() => return Err(error),
        survey => survey.ok(),
    };
    Ok(survey.map(|survey| bytes_to_fill(&survey, |path| wiped.contains(path))))
}

/// Surveys the existing parts of what a run would open.
///
/// # Errors
/// If others' files are in its place, another run uses it, there is no room, or it lacks a required ability.
fn surveyed(settings: &Settings, facts: &Facts, request: &Request, held: Option<&Path>) -> Result<Survey> {
    if let Some(MemberSource::File { path }) = request.data.first()
        && let Some(dir) = path.parent()
    {
        volume::refuse_in_the_way(&request.data, request.wal.is_some())?;
        let real = |dir: &Path| dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
        if held.is_none_or(|held| real(held) != real(dir)) {
            volume::files::refuse_locked(dir)?;
        }
    }
    let survey = Survey::of(request)?;
    // For whatever the demo can't do here, it falls back.
    let target = survey.facts.as_ref().filter(|_| !is_demo(settings));
    let problems = target.map(|target| check(settings, Conditions { facts, target: Some(target) }));
    match problems.as_ref().and_then(|problems| problems.first()) {
        Some(problem) => Err(Error::input(problem.to_string())),
        None => Ok(survey),
    }
}

/// What a run would open, without checking whether it may.
///
/// # Errors
/// If a part of it is not available.
fn unlocked(settings: &Settings, facts: &Facts) -> Result<Request> {
    let device = |name: &String| {
        let device = facts.find(name)?;
        let (path, size_bytes) = (device.path.clone(), device.size_bytes);
        let file = File::open(&path).map_err(|error| Error::os("cannot open", &path, error))?;
        Ok(MemberSource::Device { file, path, size_bytes })
    };
    let target = &settings.target;
    let mut request = if target.devices.is_empty() {
        files(&target.dir, target.count, target.size_bytes)?
    } else {
        Request::of_devices(target.devices.iter().map(device).collect::<Result<_>>()?)
    };
    if let Some(wal) = &settings.wal.target {
        request.wal = Some(match own_wal(wal, facts)? {
            OwnWal::File(path) => MemberSource::File { path },
            OwnWal::Device(name) => device(&name)?,
        });
    }
    Ok(request)
}

/// Refuses anything that a run of these settings would destroy now without the operator's consent. Other
/// obstacles to the run are not checked.
///
/// # Errors
/// Refused (3), naming the device.
pub fn refuse_unallowed(settings: &Settings, options: &Options, facts: &Facts) -> Result<()> {
    if options.read_only || !settings.touches_storage() {
        return Ok(());
    }
    let destroy = destroy_of(&options.destroy, settings, facts);
    let consent = Consent::named(&destroy, facts)?.and_typed(&options.typed).and_commands(&options.commands);
    if settings.stack.is_built() {
        // Exceeding the limit of writes is refused too, but not here.
        let unlimited = WriteBudget::untouched(None);
        let Ok(plan) = planned(settings, facts, None, &[], &unlimited) else { return Ok(()) };
        return plan.confirm(&consent).map(drop);
    }
    let names = names_of(&settings.target, &settings.wal, facts);
    // A file for the WAL is not a device.
    let examined = guard::examine_all(&names, facts, DEVICE_BYTES_MIN, &OursCheck).into_iter().flatten();
    examined.into_iter().try_for_each(|examination| guard::permit(examination, &consent).map(drop))
}

/// The commands of command layers, in full, for the operator to read before allowing them.
pub fn layers_noted(settings: &Settings) -> Vec<String> {
    let words = |commands: &[Vec<String>]| {
        let command = |words: &Vec<String>| {
            let words: Vec<String> = words.iter().map(|word| quoted(word.as_ref())).collect();
            words.join(" ")
        };
        commands.iter().map(command).collect::<Vec<_>>().join("\n")
    };
    let note = |layer: &Layer| {
        format!(
            "layer `{}` runs this as root, where --allow-commands allows it:\n{}\nand this to take it away, also in \
             `stacktune cleanup`:\n{}\nwhich is to leave {}",
            layer.name,
            words(&layer.up),
            words(&layer.down),
            layer.device
        )
    };
    settings.stack.by_commands.iter().map(note).collect()
}

/// The findings.
#[derive(Debug, Default)]
pub struct Preflight {
    /// Why the settings can't run here as things are, each with what to do about it.
    pub problems: Vec<String>,
    /// How a run would differ from the settings, and what it would ask for.
    pub notes: Vec<String>,
    /// The first problem that is not a knob's.
    first: Option<Error>,
    /// The devices with content that a run would destroy.
    destroyed: Vec<Wanted>,
    /// The devices that hold nothing, or anything but our fill: these are filled entirely.
    wiped: HashSet<PathBuf>,
}

/// Checks whether a run that writes could begin with these settings. The demo's may be adjusted to fit the disk.
pub fn preflight(settings: &Settings, demo: bool, facts: &Facts) -> Preflight {
    let (mut found, mut settings) = (Preflight::default(), settings.clone());
    if demo && let Err(error) = fit_files(&mut settings, &mut found.notes) {
        found.problem(error.to_string());
    }
    if settings.program.is_some() {
        found.notes.extend(program_noted(&settings));
        if let Some(of_program) = found.taken(for_program(settings.clone())) {
            settings = of_program;
        }
    }
    found.check(&settings, Conditions { facts, target: None });
    found.notes.extend(layers_noted(&settings));
    if !settings.touches_storage() {
        return found;
    }
    found.taken(refuse_unsafe_folders(&settings, facts));
    let elsewhere = found.taken(files_elsewhere_noted(&settings, facts));
    found.notes.extend(elsewhere.unwrap_or_default());
    found.notes.extend(others_in_folder(&settings));
    if settings.stack.is_built() {
        found.stack(&settings, facts);
        return found;
    }
    if settings.program.is_some() {
        return found;
    }
    if settings.is_keyed() {
        // Without RocksDB, the check of the knobs has reported that.
        if cfg!(feature = "rocksdb")
            && let Some(outlook) = found.taken(outlook(&settings, None))
        {
            found.notes.push(format!("a run would {}", outlook.text));
        }
        return found;
    }
    if let Some(request) = found.request(&settings, facts) {
        found.survey(&settings, facts, &request);
    }
    found
}

impl Preflight {
    fn problem(&mut self, text: String) {
        if !self.problems.contains(&text) {
            self.problems.push(text);
        }
    }

    /// The value, or none, with the reason added to the problems.
    fn taken<T>(&mut self, outcome: Result<T>) -> Option<T> {
        match outcome {
            Ok(value) => Some(value),
            Err(error) => {
                self.problem(error.to_string());
                self.first.get_or_insert(error);
                None
            }
        }
    }

    fn check(&mut self, settings: &Settings, conditions: Conditions) {
        check(settings, conditions).iter().for_each(|problem| self.problem(problem.to_string()));
    }

    /// Whether a run would build its stack.
    fn stack(&mut self, settings: &Settings, facts: &Facts) {
        self.devices(&settings.target.devices, facts);
        // Without root, the check of the knobs has reported that.
        if facts.platform.unprivileged && !self.problems.is_empty() {
            return;
        }
        self.taken(StateFolder::refuse_unusable(&state_dir()));
        let target = expected_caps(&StackSpec::of(settings), facts);
        let conditions = Conditions { facts, target: Some(&target) };
        self.check(settings, conditions);
        if check(settings, conditions).is_empty() {
            let budget = WriteBudget::untouched(settings.run.max_writes_bytes);
            self.taken(planned(settings, facts, None, &[], &budget));
        }
    }

    /// What a run would open, if all of it is available.
    fn request(&mut self, settings: &Settings, facts: &Facts) -> Option<Request> {
        self.taken(check_serials(&settings.target, &settings.wal, facts));
        let target = &settings.target;
        let devices = self.devices(&target.devices, facts);
        let wal = match &settings.wal.target {
            Some(wal) => Some(self.wal(wal, settings, facts)?),
            None => None,
        };
        let mut request = if devices.is_empty() {
            self.taken(files(&target.dir, target.count, target.size_bytes))?
        } else {
            Request::of_devices(devices.into_iter().collect::<Option<_>>()?)
        };
        request.wal = wal;
        let members = request.data.iter().chain(&request.wal);
        let files = members.filter(|member| matches!(member, MemberSource::File { .. }));
        let free = files.map(|file| volume::refuse_foreign(file.path())).collect::<Result<Vec<()>>>();
        self.taken(free)?;
        // Reported together with other problems.
        let _ = self.taken(request.refuse_locked());
        Some(request)
    }

    fn wal(&mut self, wal: &str, settings: &Settings, facts: &Facts) -> Option<MemberSource> {
        let wal = self.taken(own_wal(wal, facts))?;
        self.taken(refuse_shared_wal(Some(&wal), &settings.target.devices, facts))?;
        match wal {
            OwnWal::File(path) => Some(MemberSource::File { path }),
            OwnWal::Device(name) => self.devices(&[name], facts).pop().flatten(),
        }
    }

    /// The devices, if the guard lets a run have them, at least with the operator's consent.
    fn devices(&mut self, names: &[String], facts: &Facts) -> Vec<Option<MemberSource>> {
        let examined = guard::examine_all(names, facts, DEVICE_BYTES_MIN, &OursCheck);
        names.iter().zip(examined).map(|(name, examined)| self.device(name, examined)).collect()
    }

    fn device(&mut self, name: &str, examined: Result<Examination>) -> Option<MemberSource> {
        let examined = self.taken(examined)?;
        let device = examined.device.clone();
        if examined.needs_consent() {
            let content = examined.content.join(", ");
            self.notes.push(format!(
                "{name} holds {content}: a run destroys that, but only with `--destroy {name}`"
            ));
            self.destroyed.push(wanted_of(&Drive::of(&device), examined.content));
        }
        if !examined.own_fill {
            self.wiped.insert(device.path.clone());
        }
        let file = File::open(&device.path).map_err(|e| Error::os("cannot open", &device.path, e));
        let file = self.taken(file)?;
        Some(MemberSource::Device { path: device.path, file, size_bytes: device.size_bytes })
    }

    /// Bytes that filling the members writes.
    fn bytes_to_fill(&self, survey: &Survey) -> u64 {
        bytes_to_fill(survey, |path| self.wiped.contains(path))
    }

    fn survey(&mut self, settings: &Settings, facts: &Facts, request: &Request) {
        let Some(survey) = self.taken(Survey::of(request)) else { return };
        if let Some(target) = &survey.facts {
            self.check(settings, Conditions { facts, target: Some(target) });
        }
        let bytes = self.bytes_to_fill(&survey);
        self.taken(WriteBudget::untouched(settings.run.max_writes_bytes).refuse(bytes));
    }
}
