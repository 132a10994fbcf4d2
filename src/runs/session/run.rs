//! A session: settings in force, the target, the engine and the meters, and what is due when.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use super::adjust;
use super::classes::Classes;
use super::fallback;
use super::kv;
use super::left_over::left_over;
use super::loss::Losses;
use super::message::{Advance, Event, Phase, PlanShown, Progress, Status, Wanted};
use super::ready::{engine_on, meters_of, open_ready, settle};
use super::rebuild::Pending;
use super::retained_stack::RetainedStack;
use super::target::Target;
use super::window_schedule::window_end_ns;
use crate::class::Class;
use crate::error::Result;
use crate::host::{Facts, Levels, TargetFacts};
use crate::load::workers::Workers;
use crate::load::workers::control::Writes;
use crate::meter::context::WindowContext;
use crate::meter::ledger::{Ledger, Turn};
use crate::meter::totals::Totals;
use crate::meter::window::{State, Window};
use crate::meter::{Member, Meters};
use crate::runs::pitfalls::Circumstances;
use crate::runs::record::{Header, Outcome, Summary, Writer};
use crate::settings::jobs::{self, Job};
use crate::settings::knobs::{Ground, Value};
use crate::settings::profile::{by_identity, to_toml};
use crate::settings::{Settings, Sync};
use crate::stack::build::Built;
use crate::stack::id::StackId;
use crate::stack::plan::{Properties, properties};
use crate::stack::supervise::Watch;
use crate::stack::tuning::Adjustments;

/// How a session may be opened, beside its settings.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Scan and point only; nothing is opened for writing.
    pub read_only: bool,
    /// Devices of which the content may be destroyed.
    pub destroy: Vec<String>,
    /// What this host can't do is replaced, and said (the demo); else it is refused.
    pub fallbacks: bool,
    /// Windows that begin before are marked and left out of totals.
    pub warmup: Duration,
    /// Bytes that this process has written, over all its sessions: the disk does not get them back
    /// when another profile is opened.
    pub written_bytes: Arc<AtomicU64>,
    /// What the operator typed for devices of which the content may be destroyed.
    pub typed: Vec<String>,
    /// The stack's id and steps that the operator agreed to: nothing else is built.
    pub agreed: Option<(StackId, Vec<String>)>,
    /// Pairs are loaded anew, even where the folder holds them.
    pub anew: bool,
    /// What the page cache holds of the target is written back and dropped before the load begins.
    pub uncached: bool,
    /// Steps of the profile, which this run is none of; noted on the screen and in recordings.
    pub unused_steps: usize,
}

/// Who waits while a session is opened.
pub trait Attendant {
    /// A long step goes on. Returns whether it may.
    fn progress(&mut self, progress: Progress) -> bool;
    /// A sentence for the operator.
    fn notice(&mut self, text: &str);
    /// A sentence about a long step that nobody needs after it, or beside its progress.
    fn passing(&mut self, text: &str) {
        self.notice(text);
    }
    /// Devices hold something: what the operator types, or none if nobody can be asked.
    fn consent(&mut self, wanted: Vec<Wanted>) -> Option<Vec<String>>;
    /// What is to be built destroys something: what the operator types, or none if nobody can be asked.
    fn plan(&mut self, plan: PlanShown) -> Option<Vec<String>>;
    /// A step of building or taking down goes on. Returns whether it may.
    fn step(&mut self, advance: &Advance) -> bool;
    /// The target is open and filled, and the load begins with the return; what to note of that moment.
    ///
    /// # Errors
    /// What forbids that it begins.
    fn before_load(&mut self, members: &[Member]) -> Result<Vec<String>> {
        let _ = members;
        Ok(Vec::new())
    }
    /// Whether what was built stays where its target can't be opened, as the operator quits.
    fn keeps(&mut self) -> bool {
        false
    }
    /// What was built stays: the commands that remove it.
    fn kept(&mut self, _commands: Vec<String>) {}
}

/// A turn that can be taken back: of one knob, or of those that were built anew together.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Turned {
    /// Each knob's path and its value before.
    pub from: Vec<(String, Value)>,
}

/// What a session leaves to one that goes on with another target.
#[derive(Debug, Clone, Default)]
pub(super) struct Carried {
    pub ledger: Ledger,
    pub setting: u64,
    pub undo: Vec<Turned>,
    pub epoch_ns: Option<u64>,
    pub started: Option<SystemTime>,
    /// The turn that it is for; its time is when the load goes on.
    pub turn: Option<Turn>,
}

/// A run.
pub struct Session {
    pub(super) options: Options,
    pub(super) facts: Arc<Facts>,
    pub(super) settings: Settings,
    pub(super) plans: [Job; 4],
    pub(super) fallbacks: Vec<String>,
    // Dropped before the target: its workers drain while locks and claims still keep others away.
    pub(super) engine: Workers,
    pub(super) target: Target,
    /// What is changed of the host.
    pub(super) adjustments: Adjustments,
    /// Drops what was cached before the page cache got a budget.
    pub(super) dropping: Option<JoinHandle<std::io::Result<()>>>,
    pub(super) writes: Arc<Writes>,
    pub(super) classes: Classes,
    pub(super) meters: Meters,
    /// The block devices below the target.
    pub(super) levels: Levels,
    /// What the process had written when this session began to open its target.
    opened_bytes: u64,
    pub(super) ledger: Ledger,
    pub(super) setting: u64,
    pub(super) turned: bool,
    pub(super) draining: Vec<String>,
    pub(super) paused: bool,
    /// Whether the run was paused at any time in the window that runs.
    pub(super) paused_in_window: bool,
    pub(super) ending: bool,
    pub(super) undo: Vec<Turned>,
    /// Plans shown so far, and the one that waits for the operator.
    pub(super) plans_made: u64,
    pub(super) pending: Option<Pending>,
    pub(super) losses: Losses,
    /// Of the storage engine, where the classes read and write pairs.
    pub(super) pairs: kv::Engine,
    events: VecDeque<Event>,
    /// Where the run's clock stands at 0, on the engine's.
    epoch_ns: u64,
    started: SystemTime,
    next_window_ns: u64,
    recording: Option<Writer>,
}

impl Session {
    /// Opens the target of the settings, filling it where it must be.
    ///
    /// # Errors
    /// Input where this host can't do what the settings say; refused where data is at risk;
    /// interrupted where the attendant ends the fill.
    pub fn open(
        settings: Settings,
        options: Options,
        facts: Arc<Facts>,
        attendant: &mut dyn Attendant,
    ) -> Result<Self> {
        Self::open_after(settings, options, facts, attendant, Carried::default())
    }

    /// The same, going on with what another session leaves.
    pub(super) fn open_after(
        settings: Settings,
        options: Options,
        facts: Arc<Facts>,
        attendant: &mut dyn Attendant,
        carried: Carried,
    ) -> Result<Self> {
        let mut kept = RetainedStack::default();
        let opened = Self::open_over(settings, options, facts, &mut *attendant, carried, &mut kept);
        opened.map_err(|error| kept.give_up(error, attendant))
    }

    /// The same on what stands already for these settings, else on what is built for them. What was
    /// built stands in `kept` again where the session can't be opened.
    pub fn open_on(
        settings: Settings,
        options: Options,
        facts: Arc<Facts>,
        attendant: &mut dyn Attendant,
        kept: &mut RetainedStack,
    ) -> Result<Self> {
        Self::open_over(settings, options, facts, attendant, Carried::default(), kept)
    }

    fn open_over(
        mut settings: Settings,
        options: Options,
        facts: Arc<Facts>,
        attendant: &mut dyn Attendant,
        carried: Carried,
        kept: &mut RetainedStack,
    ) -> Result<Self> {
        let mut fallbacks = Vec::new();
        if !kept.stands()
            && let Some(text) = left_over()
        {
            attendant.notice(&text);
        }
        if options.read_only {
            settings.classes[Class::Wal.index()].enabled = false;
            settings.classes[Class::Background.index()].enabled = false;
        }
        if options.fallbacks {
            fallback::files(&mut settings, &mut fallbacks)?;
        }
        settle(&mut settings, Ground { facts: &facts, target: None }, &options, &mut fallbacks)?;
        let opened_bytes = options.written_bytes.load(Ordering::Relaxed);
        let (target, sequence, adjustments) =
            open_ready(&mut settings, &options, &facts, &mut fallbacks, attendant, kept)?;
        fallbacks.iter().for_each(|text| attendant.notice(text));
        let writes = Arc::new(Writes::new(sequence, options.written_bytes.clone()));
        writes.limit(settings.run.max_writes_bytes);
        let engine = engine_on(&target, &settings, &writes)?;
        let epoch_ns = carried.epoch_ns.unwrap_or_else(|| engine.now_ns());
        let now_ns = engine.now_ns().saturating_sub(epoch_ns);
        let mut ledger = carried.ledger;
        let lines = carried.turn.map(|turn| ledger.turn(Turn { at_ns: now_ns, ..turn })).unwrap_or_default();
        Ok(Self {
            plans: jobs::jobs(&settings),
            classes: Classes::default(),
            meters: meters_of(&engine, &target, now_ns),
            levels: target.levels.clone(),
            opened_bytes,
            ledger,
            setting: carried.setting,
            turned: false,
            draining: Vec::new(),
            paused: false,
            paused_in_window: false,
            ending: false,
            undo: carried.undo,
            plans_made: 0,
            pending: None,
            losses: Losses::default(),
            pairs: kv::Engine::begin(engine.pairs()),
            events: lines.into_iter().map(|line| Event::Ledger(Arc::new(line))).collect(),
            epoch_ns,
            started: carried.started.unwrap_or_else(SystemTime::now),
            next_window_ns: window_end_ns(
                now_ns,
                now_ns,
                settings.run.window.as_nanos() as u64,
                options.warmup.as_nanos() as u64,
            ),
            recording: None,
            options,
            facts,
            settings,
            target,
            adjustments,
            dropping: None,
            fallbacks,
            engine,
            writes,
        })
    }

    /// Starts every class that is enabled.
    ///
    /// # Errors
    /// Where a class can't be started; those that could go on until the session is dropped.
    pub fn start(&mut self) -> Result<()> {
        for class in Class::ALL {
            self.start_class(class)?;
        }
        self.status();
        Ok(())
    }

    pub(super) fn epoch_ns(&self) -> u64 {
        self.epoch_ns
    }

    pub(super) fn started(&self) -> SystemTime {
        self.started
    }

    /// The run's clock.
    pub fn now_ns(&self) -> u64 {
        self.engine.now_ns().saturating_sub(self.epoch_ns)
    }

    /// Whether time passes only as [`Self::advance`] lets it.
    pub fn is_simulated(&self) -> bool {
        self.engine.is_simulated()
    }

    /// Lets simulated time pass until then, at most to the next window's end.
    pub fn advance(&mut self, ns: u64) {
        self.engine.run_until(self.epoch_ns + ns.min(self.next_window_ns));
    }

    /// When something is due next.
    pub fn next_ns(&self) -> u64 {
        self.next_window_ns
    }

    /// Whether a class is draining or being restarted, so that a tick soon is worth it.
    pub fn is_settling(&self) -> bool {
        self.classes.any_pending()
    }

    /// Does what is due: restarts drained classes, ends a window.
    pub fn tick(&mut self) -> Result<()> {
        self.settle_classes();
        self.look_at_puts();
        // Until then reads may be served by what no budget holds.
        self.turned |= self.is_dropping();
        if self.now_ns() >= self.next_window_ns {
            self.end_window()?;
        }
        Ok(())
    }

    /// Events since the last call.
    pub fn events(&mut self) -> impl Iterator<Item = Event> {
        self.events.drain(..)
    }

    pub(super) fn tell(&mut self, event: Event) {
        self.events.push_back(event);
    }

    pub(super) fn notice(&mut self, text: String) {
        self.tell(Event::Notice(text));
    }

    /// Tells what the run is doing now.
    pub(super) fn status(&mut self) {
        let phase = match (self.ending, self.paused) {
            (true, _) => Phase::Ending,
            (_, true) => Phase::Paused,
            _ => Phase::Running,
        };
        let mut notes = self.target.notes.clone();
        notes.extend(self.setting_notes());
        let status = Status {
            settings: self.settings.clone(),
            facts: self.facts.clone(),
            target: self.target.facts().cloned(),
            phase,
            draining: self.draining.clone(),
            fallbacks: self.fallbacks.clone(),
            notes,
            written_bytes: self.writes.written_bytes(),
            circumstances: self.circumstances(),
            properties: self.properties(),
            standing: self.target.built.is_some(),
            recording: self.recording.as_ref().map(|writer| writer.dir().to_owned()),
        };
        self.tell(Event::Status(Arc::new(status)));
    }

    /// What the stack under these settings survives and costs, where it is built or is bare devices; what
    /// is turned live (`wal.sync`, the price) counts as it is now.
    fn properties(&self) -> Option<Properties> {
        let built = self.target.built.as_ref().map(|built| built.plan().properties.usable_bytes);
        let devices = !self.settings.target.devices.is_empty() && self.target.volume.is_some();
        let bare = || devices.then(|| self.target.data.bytes() + self.target.wal.bytes());
        Some(properties(&self.settings, &self.facts, built.or_else(bare)?).without(self.lost()))
    }

    /// What bears on whether the figures can be believed, under these settings.
    fn circumstances(&self) -> Circumstances {
        let memory_bytes = adjust::cache_bytes_max(&self.settings, &self.facts);
        Circumstances::of(&self.settings, &self.levels, self.target.data.bytes(), memory_bytes)
    }

    /// Closes the target and takes down what was built for it, or leaves that standing; what would
    /// then remove it.
    ///
    /// # Errors
    /// What could not be taken away.
    pub fn dismantle(self, keep: bool, watch: Watch) -> Result<Vec<String>> {
        let mut kept = RetainedStack::default();
        let closed = self.close_onto(&mut kept);
        let left = if keep { kept.keep() } else { kept.tear_down(watch).map(|()| Vec::new()) };
        closed.and(left)
    }

    /// Closes the target, and leaves what was built for it to another session.
    ///
    /// # Errors
    /// What could not be put back of the host's settings.
    pub fn close_onto(self, kept: &mut RetainedStack) -> Result<()> {
        let Self { engine, mut target, mut adjustments, settings, pairs, .. } = self;
        pairs.end();
        // Its workers hold the files open, and so does the database.
        drop(engine);
        target.pairs = None;
        let given_back = target.give_back();
        let restored = adjustments.restore(target.built.as_mut().map(Built::journal));
        if let Some(built) = target.close() {
            kept.put(built, settings);
        }
        given_back.and(restored)
    }

    /// What to know about these settings on this target.
    fn setting_notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let count = self.options.unused_steps;
        if count > 0 {
            notes.push(format!(
                "the profile has {count} steps: `stacktune record` runs them, not this screen"
            ));
        }
        let wal = &self.plans[Class::Wal.index()];
        let Some(target) = self.target.facts() else { return notes };
        let cached = wal.buffering != crate::settings::Buffering::Direct;
        if wal.enabled && target.devices && cached && wal.sync == Sync::Fdatasync {
            notes.push(
                "a flush of the WAL covers the whole device: it pays for the background's dirty pages".into(),
            );
        }
        notes
    }

    /// Ends the window that runs, whether or not it is due.
    pub(super) fn end_window(&mut self) -> Result<()> {
        let now_ns = self.now_ns();
        let target = self.target.facts().cloned();
        let engine = self.engine_figures();
        let context = WindowContext { engine, ..self.context(now_ns, target.as_ref()) };
        let window = self.meters.window(&context);
        let window_ns = self.settings.run.window.as_nanos() as u64;
        let warmup_ns = self.options.warmup.as_nanos() as u64;
        self.next_window_ns = window_end_ns(self.next_window_ns, now_ns, window_ns, warmup_ns);
        self.turned = self.classes.any_pending();
        self.classes.begin_window();
        self.paused_in_window = self.paused;
        // One that was cut short spreads more than the others: it is not to be compared with them.
        let lines = if window.duration_ns < window_ns / 2 { Vec::new() } else { self.ledger.window(&window) };
        let written = self.write_window(&window, &lines);
        self.look_for_losses(&window);
        let totals = self.meters.totals();
        self.tell(Event::Window(window, totals));
        lines.into_iter().for_each(|line| self.tell(Event::Ledger(Arc::new(line))));
        written
    }

    /// Ends the window that runs, unless it has only just begun.
    pub fn finish_window(&mut self) -> Result<()> {
        let window_ns = self.settings.run.window.as_nanos() as u64;
        let age_ns = self.now_ns().saturating_sub(self.meters.start_ns());
        if age_ns < window_ns / 100 { Ok(()) } else { self.end_window() }
    }

    fn context<'a>(&self, now_ns: u64, target: Option<&'a TargetFacts>) -> WindowContext<'a> {
        let plans = &self.plans;
        WindowContext {
            now_ns,
            late_ns: now_ns.saturating_sub(self.next_window_ns),
            window_ns: self.settings.run.window.as_nanos() as u64,
            setting: self.setting,
            turned: self.turned,
            warmup: u128::from(self.meters.start_ns()) < self.options.warmup.as_nanos(),
            paused: self.paused || self.paused_in_window,
            classes: Class::ALL.map(|class| self.classes.context(&plans[class.index()], self.paused)),
            wal_durable: plans[Class::Wal.index()].sync != Sync::None,
            data_bytes: self.target.data.bytes(),
            memory_bytes: adjust::cache_bytes_max(&self.settings, &self.facts),
            target,
            unfilled: self.options.read_only && self.target.data.set == 0 && self.target.volume.is_some(),
            written_bytes_total: self.writes.written_bytes().saturating_sub(self.opened_bytes),
            data_set_bytes: match self.engine.pairs() {
                Some(store) => store.stored_bytes(),
                None => self.target.data.bytes() + self.target.wal.bytes(),
            },
            pairs: self.engine.pairs().is_some(),
            engine: None,
            block_cache_bytes: if self.settings.is_keyed() {
                self.settings.kv.rocksdb.block_cache_bytes
            } else {
                0
            },
            full: self.found_full(),
        }
    }

    /// Totals since the start, or since a recording began.
    pub fn totals(&self) -> Arc<Totals> {
        self.meters.totals()
    }

    /// What a class is doing.
    pub fn state(&self, class: Class) -> State {
        self.classes.context(&self.plans[class.index()], self.paused).state
    }

    /// Starts a recording into a new folder; totals begin anew with the next window.
    pub fn record(&mut self, dir: &Path) -> Result<()> {
        let mut notes = self.fallbacks.clone();
        notes.extend(self.target.notes.iter().cloned());
        notes.extend(self.setting_notes());
        let writer = Writer::create(
            dir,
            &Header {
                profile: self.settings.name.clone(),
                profile_toml: to_toml(&by_identity(&self.settings, &self.facts).into()),
                facts: (*self.facts).clone(),
                target: self.target.facts().cloned(),
                notes,
                run_started: self.started,
                worth: self.properties().map(|stack| (stack.price, stack.usable_bytes)),
                circumstances: self.circumstances(),
            },
        )?;
        self.meters.reset_totals();
        self.recording = Some(writer);
        self.tell(Event::Recording(Some(dir.to_owned())));
        self.status();
        Ok(())
    }

    /// Ends the recording, if there is one, with its summary.
    pub fn end_recording(&mut self, outcome: &Outcome) -> Result<Option<Summary>> {
        let Some(mut writer) = self.recording.take() else { return Ok(None) };
        if let Some(line) = self.ledger.close() {
            writer.ledger(&line)?;
            self.tell(Event::Ledger(Arc::new(line)));
        }
        let summary = writer.finish(&self.meters.totals(), outcome)?;
        self.tell(Event::Recording(None));
        self.status();
        Ok(Some(summary))
    }

    fn write_window(&mut self, window: &Window, lines: &[crate::meter::window::LedgerLine]) -> Result<()> {
        let Some(writer) = &mut self.recording else { return Ok(()) };
        let written =
            writer.window(window).and_then(|()| lines.iter().try_for_each(|line| writer.ledger(line)));
        if written.is_err() {
            self.recording = None;
            self.tell(Event::Recording(None));
        }
        written
    }

    /// Stops all classes; they have drained once [`Self::is_drained`].
    pub fn end(&mut self) {
        self.ending = true;
        Class::ALL.into_iter().for_each(|class| self.engine.stop(class));
        self.status();
    }

    /// Windows are that long from now on, the running one included.
    pub(super) fn change_window(&mut self, window_ns: u64) {
        self.next_window_ns = self.now_ns() + window_ns;
    }

    pub(super) fn tell_line(&mut self, line: crate::meter::window::LedgerLine) {
        if let Some(writer) = &mut self.recording
            && let Err(error) = writer.ledger(&line)
        {
            self.recording = None;
            self.tell(Event::Notice(format!("the recording ended: {error}")));
            self.tell(Event::Recording(None));
        }
        self.tell(Event::Ledger(Arc::new(line)));
    }

    /// Whether no I/O is outstanding any more.
    pub fn is_drained(&mut self) -> bool {
        if self.is_simulated() {
            let now_ns = self.engine.now_ns();
            self.engine.run_until(now_ns + crate::units::SECOND_NS);
        }
        Class::ALL.into_iter().all(|class| self.classes.is_idle(class, &mut self.engine))
    }
}
