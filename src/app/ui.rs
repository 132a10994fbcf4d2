//! The terminal UI on a session that runs in its own thread.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{IsTerminal, stdin, stdout};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;

use super::inputs::{facts_with_versions, options};
use super::output::print;
use super::user_memory::UserMemory;
use crate::error::{Error, Result};
use crate::host::{Facts, has_node};
use crate::load::kv;
use crate::load::volume::our_bytes;
use crate::printable::{self, Shown as _};
#[cfg(feature = "programs")]
use crate::runs::session::ProgramOptions;
use crate::runs::session::{Options, live};
use crate::settings::Profile;
use crate::settings::Settings;
use crate::settings::paths::expand_home;
use crate::settings::profile::{ProfileFolder, Source, Sweep, config_folder};
use crate::threads;
use crate::ui::cli::RunArgs;
use crate::ui::report;
use crate::ui::report::ran::Ran;
use crate::ui::theme_name::ThemeName;
use crate::ui::tui::theme::Theme;
use crate::ui::tui::{self, Beside, Link, ProfileEntry, ProfileStore, Replay, themes};

/// Opens the UI with a profile; the demo without one.
pub fn run(profile: Option<&str>, theme: Option<&str>, args: &RunArgs) -> Result<()> {
    refuse_consent_in_advance(args)?;
    let theme = theme.map(self::theme).transpose()?;
    let (profile, demo) = super::inputs::profile(profile, &args.sets.set)?;
    kv::built::require(&profile.settings)?;
    require_terminal("without one, use `stacktune record PROFILE --out DIR`")?;
    let options = Options { unused_steps: profile.steps(), ..options(args, &profile.settings, demo) };
    operate(profile, options, theme, !args.sets.set.is_empty())
}

/// Opens the UI with a profile whose load is a program.
#[cfg(feature = "programs")]
pub fn run_program(
    profile: Profile,
    args: &RunArgs,
    theme: Option<Theme>,
    operated: ProgramOptions,
) -> Result<()> {
    refuse_consent_in_advance(args)?;
    require_terminal("without one, record it: `stacktune run PROFILE --out DIR`")?;
    let options = Options {
        unused_steps: profile.steps(),
        program: true,
        operated: Some(operated),
        ..options(args, &profile.settings, false)
    };
    operate(profile, options, theme, !args.sets.set.is_empty())
}

fn operate(profile: Profile, options: Options, theme: Option<Theme>, is_set_apart: bool) -> Result<()> {
    let profiles = Profiles { store: ProfileFolder::of_user(), steps: RefCell::default() };
    profiles.remember_steps(&profile);
    let settings = profile.settings;
    let written_bytes = Arc::clone(&options.written_bytes);
    let kept_in = Rc::new(RefCell::new(None));
    let memory = UserMemory { file: None, path: Rc::clone(&kept_in) };
    let screen = tui::Options { is_set_apart, ..screen(theme, profiles, memory) };
    let (commands, asked) = channel();
    let (report, events) = channel();
    let session = std::thread::Builder::new()
        .name("session".into())
        .spawn(move || live::run(settings, options, &facts_with_versions, &asked, &report))
        .map_err(|error| threads::refused("run the load", &error))?;
    let tui::ScreenEnd { ended, kept, mut ran } = tui::run(Link { commands, events }, screen);
    match &ended {
        // The operator asked to quit at once: what still drains ends with the process.
        Err(error) if error.kind == crate::error::Kind::Interrupted => {}
        _ => drop(session.join()),
    }
    ran.written_bytes = written_bytes.load(Ordering::Relaxed);
    ran.stay = files_that_stay(&ran);
    // If the terminal is gone, nobody can read it.
    let _ = print(&report::ran::ran(&ran, kept_in.borrow().as_deref()));
    print_kept(&kept);
    ended
}

/// The folders with files that the runs left for the next one, each once, with their bytes.
fn files_that_stay(ran: &Ran) -> Vec<(PathBuf, u64)> {
    let mut stay: Vec<(PathBuf, u64)> = Vec::new();
    for (dir, count) in ran.runs.iter().filter_map(|run| run.files.as_ref()) {
        let Ok(dir) = expand_home(dir) else { continue };
        let bytes = our_bytes(&dir, *count);
        match stay.iter_mut().find(|(known, _)| *known == dir) {
            Some(known) => known.1 = known.1.max(bytes),
            None => stay.push((dir, bytes)),
        }
    }
    stay.retain(|(_, bytes)| *bytes > 0);
    stay
}

/// How the screen is drawn here, and where profiles and recordings are.
fn screen(theme: Option<Theme>, profiles: Profiles, memory: UserMemory) -> tui::Options {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    tui::Options {
        theme,
        themes: themes_folder(),
        no_color: set("NO_COLOR"),
        over_ssh: set("SSH_CONNECTION"),
        profiles: Box::new(profiles),
        recordings: recordings(),
        shelves: shelves(),
        memory: Box::new(memory),
        is_set_apart: false,
    }
}

/// The theme of that name: a built-in one, or one of the user's files.
pub fn theme(name: &str) -> Result<Theme> {
    match ThemeName::ALL.into_iter().find(|built_in| built_in.name() == name) {
        Some(built_in) => Ok(Theme::named(built_in)),
        None => themes::find(themes_folder().as_deref(), name),
    }
}

fn themes_folder() -> Option<PathBuf> {
    Some(config_folder()?.join("themes"))
}

/// Opens the UI with a recording, or with two.
pub fn show((replay, beside): (Replay, Option<Beside>), theme: Option<Theme>) -> Result<()> {
    let profiles = Profiles { store: ProfileFolder::of_user(), steps: RefCell::default() };
    tui::show(replay, beside, screen(theme, profiles, UserMemory::default()))
}

/// Refuses to go on if there is no terminal to draw on.
pub fn require_terminal(instead: &str) -> Result<()> {
    if stdin().is_terminal() && stdout().is_terminal() {
        return Ok(());
    }
    Err(Error::input("the terminal UI needs a terminal").hint(instead))
}

/// The operator confirms each plan after reading it, never in advance.
fn refuse_consent_in_advance(args: &RunArgs) -> Result<()> {
    let Some(device) = args.destroy.first() else { return Ok(()) };
    Err(Error::input(format!("--destroy {}: the screen accepts no consent in advance", device.shown())).hint(
        "leave it out: each plan that destroys data asks for its devices' serials; `record` accepts it",
    ))
}

/// Prints how to remove a retained stack.
fn print_kept(commands: &[String]) {
    if commands.is_empty() {
        return;
    }
    let commands = commands.join("\n  ");
    // If this can't be written, `stacktune status` shows the same.
    let _ = print(&format!("The stack stays in place. These commands remove it:\n  {commands}\n"));
}

/// Where `r` puts recordings: the XDG data folder.
fn recordings() -> PathBuf {
    let data = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/share"));
    data.or_else(home).unwrap_or_default().join("stacktune/recordings")
}

/// Where recordings usually are: the screen's folder, and the current one, where `record` is often told to make them.
pub fn shelves() -> Vec<PathBuf> {
    let here = std::env::current_dir().into_iter();
    [recordings()].into_iter().chain(here.filter(|here| *here != recordings())).collect()
}

/// The user's and the built-in profiles.
struct Profiles {
    store: ProfileFolder,
    /// The steps of opened profiles, by name: the screen does not run them, but saves them with the settings.
    steps: RefCell<BTreeMap<String, Sweep>>,
}

impl Profiles {
    fn remember_steps(&self, profile: &Profile) {
        let mut steps = self.steps.borrow_mut();
        match &profile.sweep {
            Some(sweep) => steps.insert(profile.settings.name.clone(), sweep.clone()),
            None => steps.remove(&profile.settings.name),
        };
    }
}

impl ProfileStore for Profiles {
    fn list(&self) -> Vec<ProfileEntry> {
        let entries = self.store.list().unwrap_or_default();
        // Reading all facts of the host would query the drives beside the load: whether there is a node is enough.
        let absent = |settings: &Settings| {
            let mut devices = settings.target.devices.iter().filter(|_| settings.touches_storage());
            let named = devices.find(|device| !has_node(device))?;
            Some(format!("there is no block device {} on this host", printable::line(named)))
        };
        let entry = |entry: crate::settings::profile::Entry| ProfileEntry {
            refused: entry.error.map(|error| format!("it is broken: {error}")),
            about: entry.about,
            name: entry.name,
            absent: entry.settings.as_deref().and_then(absent),
            settings: entry.settings,
            path: match entry.source {
                Source::BuiltIn => None,
                Source::File(path) => Some(path),
            },
        };
        entries.into_iter().map(entry).collect()
    }

    fn load(&self, name: &str) -> Result<Profile> {
        let profile = self.store.load(name)?;
        self.remember_steps(&profile);
        Ok(profile)
    }

    fn save(&self, settings: &Settings, facts: &Facts, name: &str, replace: bool) -> Result<PathBuf> {
        let sweep = self.steps.borrow().get(&settings.name).cloned();
        let profile = Profile { settings: settings.clone(), sweep };
        self.store.save(&profile.by_identity(facts), name, replace)
    }
}
