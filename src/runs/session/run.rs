//! A session: its parts, and what is due when.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::SystemTime;

use super::attendant::Attendant;
use super::message::{Event, Progress, Status, Tap};
use super::opening::host_tuning::HostTuning;
use super::opening::open::{Opened, Written, open};
use super::opening::retained_stack::RetainedStack;
use super::options::Options;
use super::program::Running;
use super::resolve::Resolved;
use super::running::classes::{ClassSurroundings, Classes};
use super::running::last_window::Ending;
use super::running::losses::Losses;
use super::running::recorder::Recorder;
use super::targets::{KeyValue, Pages, Target};

use super::running::window_schedule::Schedule;
use super::targets::verified::Verified;
use super::turning::turns::{Carried, Turns};
use crate::class::Class;
use crate::error::Result;
use crate::host::{Facts, Lost, TargetFacts};
use crate::meter::context::{ByTrace, WindowContext};
use crate::meter::counts::engine::EngineFigures;
use crate::meter::devices::layers::of_files;
use crate::meter::flag::FlagKind;
use crate::meter::turns::ledger::Turn;
use crate::meter::window::Window;
use crate::meter::{Meters, Probes};
use crate::runs::pitfalls::Circumstances;
use crate::settings::Settings;
use crate::settings::Sync;
use crate::stack::plan::{Properties, properties};
use crate::stack::supervise::Watch;

/// A run.
pub struct Session {
    pub(super) resolved: Resolved,
    // Dropped first, since it works on the target.
    pub(super) program: Option<Running>,
    // Dropped before the target: their workers drain while locks and claims still keep others out.
    pub(super) classes: Classes,
    pub(super) target: Target,
    pub(super) host: HostTuning,
    pub(super) written: Written,
    pub(super) meters: Meters,
    pub(super) schedule: Schedule,
    pub(super) turns: Turns,
    pub(super) losses: Losses,
    pub(super) recorder: Recorder,
    pub(super) ending: Ending,
    /// Takes a trace's figures, and whether a window has ended since tracing began.
    pub(super) tap: Option<Tap>,
    tapped: bool,
}

impl Session {
    /// Opens the target of the settings, filling it if needed.
    ///
    /// # Errors
    /// Input if this host can't do what the settings say; refused if data is at risk; interrupted if the
    /// attendant ends the fill.
    pub fn open(
        settings: Settings,
        options: Options,
        facts: Arc<Facts>,
        attendant: &mut dyn Attendant,
    ) -> Result<Self> {
        Self::open_after(settings, options, facts, attendant, Carried::default())
    }

    /// The same, continuing what another session left.
    pub(super) fn open_after(
        settings: Settings,
        options: Options,
        facts: Arc<Facts>,
        attendant: &mut dyn Attendant,
        carried: Carried,
    ) -> Result<Self> {
        let mut retained = RetainedStack::default();
        let opened = open(settings, options, facts, &mut *attendant, &mut retained);
        opened.map(|opened| Self::begin(opened, carried)).map_err(|error| retained.give_up(error, attendant))
    }

    /// The same on the existing stack for these settings, else on a newly built one. If the session can't be
    /// opened, the stack is left in `retained` again.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_on(
        settings: Settings,
        options: Options,
        facts: Arc<Facts>,
        attendant: &mut dyn Attendant,
        retained: &mut RetainedStack,
    ) -> Result<Self> {
        let opened = open(settings, options, facts, attendant, retained);
        opened.map(|opened| Self::begin(opened, Carried::default()))
    }

    fn begin(opened: Opened, carried: Carried) -> Self {
        let Opened { resolved, workers, mut target, host, written } = opened;
        let epoch_ns = carried.epoch_ns.unwrap_or_else(|| workers.now_ns());
        let now_ns = workers.now_ns().saturating_sub(epoch_ns);
        let started = carried.started.unwrap_or_else(SystemTime::now);
        let mut turns = Turns {
            ledger: carried.ledger,
            setting: carried.setting,
            undo: carried.undo,
            ..Turns::default()
        };
        let mut recorder = Recorder::default();
        for line in
            carried.turn.map(|turn| turns.ledger.turn(Turn { at_ns: now_ns, ..turn })).into_iter().flatten()
        {
            recorder.line(line);
        }
        let classes = Classes::new(workers);
        Self {
            meters: meters_of(&classes, &mut target, &[], now_ns),
            schedule: Schedule::new(epoch_ns, started, now_ns, resolved.pace),
            losses: Losses::default(),
            resolved,
            program: None,
            classes,
            target,
            host,
            written,
            turns,
            recorder,
            ending: Ending::default(),
            tap: None,
            tapped: false,
        }
    }

    /// Starts every class that is enabled.
    ///
    /// # Errors
    /// If a class can't be started; those that could be go on until the session is dropped.
    pub fn start(&mut self) -> Result<()> {
        for class in Class::ALL {
            let (classes, mut around) = self.classes_around();
            classes.start(class, &mut around)?;
        }
        self.run_program()?;
        self.status();
        Ok(())
    }

    /// Restarts the run's clock: nothing done so far belongs to the run.
    pub(super) fn begin_anew(&mut self) {
        let (epoch_ns, is_traced) = (self.classes.now_ns(), self.schedule.traced);
        self.schedule = Schedule::new(epoch_ns, SystemTime::now(), 0, self.resolved.pace);
        self.traced(is_traced);
        let groups = self.program.as_ref().map(Running::groups).unwrap_or_default();
        self.meters = meters_of(&self.classes, &mut self.target, &groups, 0);
    }

    /// The classes, with their surroundings.
    fn classes_around(&mut self) -> (&mut Classes, ClassSurroundings<'_>) {
        let rests = self.schedule.rests();
        let Self { resolved, classes, target, meters, .. } = self;
        (classes, ClassSurroundings { resolved, target, meters, rests })
    }

    /// The drives below the target, or the parts of them that it uses, by their folders in sysfs.
    pub fn drives(&self) -> Vec<PathBuf> {
        let folders = self.target.layout().levels.bottom.iter().filter_map(|device| device.stat.parent());
        folders.map(Path::to_owned).collect()
    }

    /// Notes that the drives are traced from now on, or no longer, for the windows' records.
    pub fn traced(&mut self, is_on: bool) {
        self.schedule.traced = is_on;
        self.schedule.traced_in_window |= is_on;
    }

    /// The same for a trace whose figures can be taken for each window.
    pub(super) fn tap(&mut self, tap: Option<Tap>) {
        self.traced(tap.is_some());
        self.tap = tap;
        self.tapped = false;
    }

    /// A trace's figures of the window that ends; none for the window in which the trace began.
    pub(super) fn take_traced(&mut self) -> ByTrace {
        let Some(tap) = &self.tap else { return ByTrace::default() };
        let taken = tap.take(self.now_ns().saturating_sub(self.meters.start_ns()));
        if std::mem::replace(&mut self.tapped, true) { taken } else { ByTrace::default() }
    }

    /// Marks for a trace at moments of the run, by the monotonic clock: `phase warmup` and `phase run` at
    /// their beginnings, and each turn.
    pub fn marks(&self) -> Vec<(u64, String)> {
        let (epoch_ns, warmup_ns) = (self.schedule.epoch_ns, self.resolved.pace.warmup_ns);
        let mut marks = Vec::new();
        if warmup_ns > 0 {
            marks.push((epoch_ns, "phase warmup".to_owned()));
        }
        marks.push((epoch_ns + warmup_ns, "phase run".to_owned()));
        for line in self.turns.ledger.lines() {
            let turned = |(at_ns, to): (u64, &str)| (epoch_ns + at_ns, format!("turn {} = {to}", line.knob));
            marks.extend(line.turns().map(turned));
        }
        marks.sort();
        marks
    }

    /// The space that RocksDB's files occupy, if that is the engine, and their file system was made for this run.
    pub fn database_bytes(&self) -> Option<u64> {
        self.target.built().and(self.target.key_value())?;
        let database = self.target.layout().members.iter().filter_map(|member| member.path.clone());
        of_files(&database.collect::<Vec<_>>())
    }

    /// The run's clock.
    pub fn now_ns(&self) -> u64 {
        self.classes.now_ns().saturating_sub(self.schedule.epoch_ns)
    }

    /// Whether time passes only through [`Self::advance`].
    pub fn is_simulated(&self) -> bool {
        self.classes.is_simulated()
    }

    /// Lets simulated time pass until then, but not beyond the next window's end.
    pub fn advance(&mut self, ns: u64) {
        self.classes.run_until(self.schedule.epoch_ns + ns.min(self.schedule.next_window_ns));
    }

    /// When something is next due.
    pub fn next_ns(&self) -> u64 {
        self.schedule.next_window_ns
    }

    /// Whether a class is draining or being restarted, so that ticks should be frequent.
    pub fn is_settling(&self) -> bool {
        self.classes.any_pending()
    }

    /// Does what is due: restarts drained classes, ends a window.
    pub fn tick(&mut self) -> Result<()> {
        self.settle_classes();
        self.look_at_puts();
        self.look_at_program();
        if !self.classes.any_pending() {
            self.host.begin_emptying(&self.target);
        }
        let (dropping, failed) = self.host.is_dropping();
        failed.into_iter().for_each(|text| self.notice(text));
        // Until then, pages outside any budget may serve reads.
        self.schedule.turned |= dropping;
        if self.now_ns() >= self.schedule.next_window_ns {
            self.end_window()?;
        }
        self.end_awaited_recording()
    }

    /// Drops cached pages of the target; windows until then are marked as a turn's.
    pub fn empty_cache(&mut self) {
        self.host.empty_cache();
        self.schedule.turned = true;
    }

    /// Why cached pages stayed, if dropping them failed since the last call.
    pub fn cache_stayed(&mut self) -> Option<String> {
        self.host.cache_stayed()
    }

    /// Events since the last call.
    pub fn events(&mut self) -> impl Iterator<Item = Event> {
        self.recorder.events()
    }

    pub(super) fn report(&mut self, event: Event) {
        self.recorder.report(event);
    }

    pub(super) fn notice(&mut self, text: String) {
        self.report(Event::Notice(text));
    }

    /// Checks every class: restarts those that have drained, reports those that stopped by themselves.
    pub(super) fn settle_classes(&mut self) {
        let (classes, mut around) = self.classes_around();
        let settled = classes.settle(&mut around);
        self.schedule.turned |= settled.turned;
        settled.notices.into_iter().for_each(|text| self.notice(text));
        for (class, why) in settled.failed {
            if let Some(line) = self.turns.ledger.class_failed(class) {
                self.recorder.line(line);
            }
            // Without an operator who could restart it, the run ends.
            self.losses.failed.get_or_insert(format!("{class} failed: {why}"));
        }
        if !self.classes.any_pending() && !self.turns.draining.is_empty() {
            for knob in std::mem::take(&mut self.turns.draining) {
                self.report(Event::Turned { knob, outcome: Ok(true) });
            }
            self.status();
        }
    }

    /// Lets a class drain; it then restarts with its job.
    pub(super) fn stop_class(&mut self, class: Class) {
        self.classes.stop(class);
        self.schedule.turned = true;
    }

    /// Reports once why puts fail, and once that they work again.
    fn look_at_puts(&mut self) {
        let puts = Class::ALL.into_iter().any(|class| class.writes() && self.classes.works(class));
        let text = self.target.key_value_mut().and_then(|pairs| pairs.look_at_puts(puts));
        text.into_iter().for_each(|text| self.notice(text));
    }

    /// Reports the run's current status.
    pub(super) fn status(&mut self) {
        let target = self.target.facts().cloned();
        let status = Status {
            settings: self.resolved.settings.clone(),
            facts: self.resolved.facts.clone(),
            phase: self.schedule.phase(),
            draining: self.turns.draining.clone(),
            fallbacks: self.resolved.fallbacks.clone(),
            notes: [self.target.layout().notes.clone(), self.resolved.notes(target.as_ref())].concat(),
            target,
            written_bytes: self.written.writes.written_bytes(),
            circumstances: self.circumstances(),
            properties: self.properties(),
            standing: self.target.built().is_some(),
            recording: self.recorder.dir().map(Path::to_owned),
            drives: self.drives(),
            runs_programs: self.resolved.options.program,
        };
        self.report(Event::Status(Arc::new(status)));
    }

    /// What the stack survives and costs under these settings, if it is built or is bare devices; settings
    /// that are turned live (`wal.sync`, the price) count as they are now.
    pub(super) fn properties(&self) -> Option<Properties> {
        let built = self.target.built().map(|built| built.plan().properties.usable_bytes);
        let devices = !self.resolved.stack.target.devices.is_empty() && self.target.pages().is_some();
        let bare = || devices.then(|| self.target.layout().bytes());
        let usable_bytes = built.or_else(bare)?;
        let stack = properties(&self.resolved.stack, &self.resolved.facts, usable_bytes);
        Some(stack.without(self.losses.count))
    }

    /// The circumstances that affect whether the figures can be believed, under these settings.
    pub(super) fn circumstances(&self) -> Circumstances {
        let (layout, resolved) = (self.target.layout(), &self.resolved);
        let of = Circumstances::of(
            &resolved.settings,
            &layout.levels,
            layout.data.bytes(),
            resolved.cache_bytes_max,
        );
        Circumstances { last: self.target.last_written(), ..of }
    }

    /// RocksDB's work so far; its writes are added to the bytes written. None for pages.
    pub(super) fn engine_figures(&mut self) -> Option<EngineFigures> {
        let (figures, written_bytes) = self.target.key_value_mut()?.figures()?;
        self.written.writes.add(written_bytes);
        Some(figures)
    }

    pub(super) fn context<'a>(&self, now_ns: u64, target: Option<&'a TargetFacts>) -> WindowContext<'a> {
        let Self { resolved, schedule, .. } = self;
        let (layout, store) = (self.target.layout(), self.target.key_value().map(KeyValue::store));
        let options = &resolved.options;
        WindowContext {
            now_ns,
            began_ns: self.classes.now_ns().saturating_sub(now_ns),
            late_ns: now_ns.saturating_sub(schedule.next_window_ns),
            window_ns: resolved.pace.window_ns,
            setting: self.turns.setting,
            turned: schedule.turned,
            warmup: self.meters.start_ns() < resolved.pace.warmup_ns,
            paused: schedule.has_paused(),
            classes: Class::ALL.map(|class| self.classes.context(resolved.job(class), schedule.paused)),
            array: resolved.host.md.array,
            wal_durable: resolved.job(Class::Wal).sync != Sync::None,
            data_bytes: layout.data.bytes(),
            memory_bytes: resolved.cache_bytes_max,
            target,
            unfilled: options.read_only && layout.data.set == 0 && self.target.pages().is_some(),
            written_bytes_total: self.written.here_bytes(),
            data_set_bytes: store.map_or_else(|| layout.bytes(), |store| store.stored_bytes()),
            pairs: store.is_some(),
            engine: None,
            program: None,
            ended_early: self.program.as_ref().is_some_and(Running::has_ended_early),
            block_cache_bytes: if resolved.settings.is_keyed() {
                resolved.settings.kv.rocksdb.block_cache_bytes
            } else {
                0
            },
            full: store.is_some_and(|store| store.take_full()),
            traced: schedule.traced_in_window,
            tuned: schedule.tuned_in_window,
            by_trace: ByTrace::default(),
            flash: self.classes.flash_writes(),
        }
    }

    /// Why the target can't be used any more, if it has lost too many drives.
    pub fn failure(&self) -> Option<&str> {
        self.losses.failed.as_deref()
    }

    /// Reports newly lost drives of a window, once each; stops all classes if an array has failed.
    pub(super) fn look_for_losses(&mut self, window: &Window) {
        let new = self.losses.new_in(window);
        if self.losses.count_is(self.meters.lost().iter().map(Lost::count).sum()) {
            // The stack survives less now, or more again.
            self.status();
        }
        for flag in new {
            if flag.is(FlagKind::ArrayFailed) {
                self.losses.failed = Some(flag.why.clone());
                Class::ALL.into_iter().for_each(|class| self.classes.give_up(class, &flag.why));
                self.schedule.turned = true;
            }
            self.notice(flag.why);
        }
    }

    /// Reads the target back once everything has drained, and checks every page that was written, or every
    /// pair; none if nothing touches storage.
    ///
    /// # Errors
    /// Input if the drives have left the kernel.
    pub fn verify(&self, progress: &mut dyn FnMut(Progress), stop: &AtomicBool) -> Result<Option<Verified>> {
        self.target.verify(progress, stop)
    }

    /// Closes the target and takes its stack down, or leaves it in place; returns the commands that would remove it.
    ///
    /// # Errors
    /// What could not be removed.
    pub fn dismantle(self, keep: bool, watch: Watch) -> Result<Vec<String>> {
        let mut retained = RetainedStack::default();
        let closed = self.close_onto(&mut retained);
        let left = if keep { retained.keep() } else { retained.tear_down(watch).map(|()| Vec::new()) };
        closed.and(left)
    }

    /// Closes the target, and leaves its stack to another session.
    ///
    /// # Errors
    /// Host settings that could not be restored.
    pub fn close_onto(self, retained: &mut RetainedStack) -> Result<()> {
        let Self { resolved, program, classes, mut target, mut host, .. } = self;
        let ended = program.map_or(Ok(()), |running| running.end(&mut target, &mut || true));
        if let Some(pairs) = target.key_value_mut() {
            pairs.end();
        }
        // The workers hold the files, or the database, open.
        drop(classes);
        let set = target.pages().map(Pages::set);
        let (closed, built) = target.close(|journal| host.restore(journal));
        if let Some(built) = built {
            retained.put(built, resolved.identity);
            retained.holds(set);
        }
        ended.and(closed)
    }
}

/// The meters of a target, from here on.
fn meters_of(classes: &Classes, target: &mut Target, groups: &[PathBuf], now_ns: u64) -> Meters {
    let (layout, is_built) = (target.layout(), target.built().is_some());
    let mut probes = if classes.is_simulated() {
        Probes::none()
    } else {
        Probes::system(&layout.members, &layout.levels, is_built, now_ns)
    };
    if let Target::Folder(_) = target {
        // A program's work is not this process's, so it can't be told from others' work.
        probes = probes.without_others_io();
    }
    let mut meters = Meters::new(now_ns, layout.members.clone(), probes.with_program(groups));
    let pairs = target.key_value_mut();
    meters.engine_begins(pairs.and_then(|pairs| {
        pairs.begin();
        pairs.store().figures()
    }));
    meters
}
