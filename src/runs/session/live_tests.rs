use std::sync::mpsc::channel;

use super::*;
use crate::class::Class;
use crate::meter::window::{LedgerLine, Window};
use crate::settings::knobs::Value;
use crate::settings::{Buffering, Interface};
use crate::units::MIB;

fn open(settings: Settings) -> Command {
    Command::Open { settings: Box::new(settings), unused_steps: 0 }
}

/// The bytes written once the load runs.
fn written_once_running(received: &Receiver<Event>) -> u64 {
    let running = |event| match event {
        Event::Status(status) if status.phase == Phase::Running => Some(status.written_bytes),
        Event::Ended(ended) => panic!("{ended:?}"),
        _ => None,
    };
    received.iter().find_map(running).unwrap()
}

/// Agrees to the plan that is shown.
fn agree(commands: &Sender<Command>, received: &Receiver<Event>) -> Arc<PlanShown> {
    let plan = received.iter().find_map(|event| match event {
        Event::Planned(plan) => Some(plan.unwrap()),
        _ => None,
    });
    let plan = plan.unwrap();
    commands.send(Command::Build { plan: plan.number, typed: Vec::new() }).unwrap();
    plan
}

/// A small file in a folder, and classes that are off.
fn idle_on_files(dir: &std::path::Path) -> Settings {
    let mut settings = Settings::default();
    (settings.io.interface, settings.io.buffering) = (Interface::Sync, Buffering::Cached);
    (settings.target.count, settings.target.size_bytes) = (1, 16 * MIB);
    settings.target.dir = dir.to_string_lossy().into_owned();
    settings.classes.iter_mut().for_each(|class| class.enabled = false);
    settings
}

#[test]
fn what_cannot_be_obeyed_while_a_target_is_opened_is_answered() {
    let ((commands, asked), (events, received)) = (channel(), channel());
    let mut waiting = Waiting {
        settings: Settings::default(),
        facts: Arc::new(crate::runs::record::fixture::facts()),
        written_bytes: Arc::default(),
        runs_programs: false,
        commands: &asked,
        events: &events,
        next: None,
        phase: Phase::Opening,
    };
    let turn =
        |value| Command::Turn { knob: "scan.depth".into(), value: crate::settings::knobs::Value::Int(value) };
    let refused = |event| matches!(event, Event::Turned { outcome: Err(why), .. } if why.contains("not yet"));
    commands.send(turn(64)).unwrap();
    let progress = Progress { what: String::new(), done_bytes: 0, all_bytes: 1, rate_bytes_per_s: 0.0 };
    assert!(waiting.progress(progress), "a turn does not end the fill");
    assert_eq!(received.try_iter().filter(|event| refused(event.clone())).count(), 1);
    commands.send(turn(32)).unwrap();
    commands.send(Command::Consent(vec!["S1".into()])).unwrap();
    assert_eq!(waiting.consent(Vec::new()), Some(vec!["S1".into()]));
    assert_eq!(received.try_iter().filter(|event| refused(event.clone())).count(), 1);
}

#[test]
fn another_profile_adds_to_the_bytes_written_and_finds_the_facts_of_its_time() {
    let dir = tempfile::tempdir().unwrap();
    let on = |name: &str| idle_on_files(&dir.path().join(name));
    let looks = AtomicU64::new(0);
    let facts = || {
        looks.fetch_add(1, Ordering::Relaxed);
        Arc::new(crate::runs::record::fixture::facts())
    };
    let ((commands, asked), (events, received)) = (channel(), channel());
    std::thread::scope(|scope| {
        let (profile, facts) = (on("first"), &facts);
        scope.spawn(move || run(profile, Options::default(), facts, &asked, &events));
        let first = written_once_running(&received);
        assert!(first >= 15 * MIB, "{first}");
        commands.send(open(on("second"))).unwrap();
        assert_eq!(agree(&commands, &received).writes_bytes, Some(first));
        assert_eq!(written_once_running(&received), 2 * first);
        // Windows report the bytes too, whatever their own target was written.
        let written = |event| match event {
            Event::Written(bytes) => Some(bytes),
            _ => None,
        };
        assert_eq!(received.iter().find_map(written), Some(2 * first));
        // Written bytes count against the limit of the next profile.
        let limited = |run: &mut crate::settings::Run| run.max_writes_bytes = Some(3 * first - 1);
        let mut third = on("third");
        limited(&mut third.run);
        commands.send(open(third)).unwrap();
        let planned = received.iter().find_map(|event| match event {
            Event::Planned(planned) => Some(planned),
            Event::Ended(ended) => panic!("the run that goes on was ended: {ended:?}"),
            _ => None,
        });
        assert!(planned.unwrap().unwrap_err().contains("run.max_writes"));
        // A profile that can't run here does not disturb the run and its ledger.
        let mut nowhere = on("second");
        nowhere.target.devices = vec!["/dev/no-such".into()];
        commands.send(open(nowhere)).unwrap();
        let refused =
            |event: Event| matches!(event, Event::Planned(Err(why)) if why.contains("no-such")).then_some(());
        received.iter().find_map(refused).unwrap();
        // Commands of a profile run only if the command line named it.
        let mut layered = on("second");
        layered.stack.by_commands = vec![crate::settings::Layer {
            name: "alias".into(),
            up: vec![["ln", "{device}", "/dev/st-{id}"].map(str::to_owned).into()],
            down: vec![["rm", "/dev/st-{id}"].map(str::to_owned).into()],
            device: "/dev/st-{id}".into(),
        }];
        commands.send(open(layered)).unwrap();
        let refused = |event: Event| {
            matches!(event, Event::Planned(Err(why)) if why.contains("--allow-commands")).then_some(())
        };
        received.iter().find_map(refused).unwrap();
        // A target that is filled already opens at once.
        commands.send(open(on("first"))).unwrap();
        assert_eq!(written_once_running(&received), 2 * first);
        commands.send(Command::Quit).unwrap();
    });
    assert_eq!(looks.load(Ordering::Relaxed), 3);
    assert!(!dir.path().join("third").exists());
}

/// Runs a session of these settings beside an operator, who has a minute.
fn operated(settings: Settings, operator: impl FnOnce(&Sender<Command>, &Receiver<Event>)) {
    let ((commands, asked), (events, received)) = (channel(), channel());
    let facts = || Arc::new(crate::runs::record::fixture::facts());
    std::thread::scope(move |scope| {
        scope.spawn(move || run(settings, Options::default(), &facts, &asked, &events));
        // If the operator fails, the session ends with it.
        let commands = commands;
        operator(&commands, &received);
    });
}

/// The first event for which this returns something.
fn first<T>(received: &Receiver<Event>, mut of: impl FnMut(&Event) -> Option<T>) -> T {
    // With other tests running, a thread may wait long for a processor.
    let patience_ends = Instant::now() + Duration::from_mins(3);
    loop {
        let left = patience_ends.saturating_duration_since(Instant::now());
        let event = received.recv_timeout(left).expect("nothing of the kind is received");
        if let Some(found) = of(&event) {
            return found;
        }
    }
}

fn is_running(event: &Event) -> Option<Settings> {
    match event {
        Event::Status(status) if status.phase == Phase::Running => Some(status.settings.clone()),
        _ => None,
    }
}

fn a_window(event: &Event) -> Option<Arc<Window>> {
    match event {
        Event::Window(window, _) => Some(window.clone()),
        _ => None,
    }
}

/// Asks for a plan with larger files, and agrees to it.
fn build_larger(commands: &Sender<Command>, received: &Receiver<Event>) {
    let larger = ("target.files.size".to_owned(), Value::Size(Some(64 * MIB)));
    commands.send(Command::Plan(vec![larger])).unwrap();
    let plan = first(received, |event| match event {
        Event::Planned(plan) => Some(plan.as_ref().unwrap().number),
        _ => None,
    });
    commands.send(Command::Build { plan, typed: Vec::new() }).unwrap();
}

#[test]
fn who_quits_while_the_load_drains_for_a_rebuild_gets_nothing_built() {
    let dir = tempfile::tempdir().unwrap();
    let mut settings = idle_on_files(&dir.path().join("target"));
    // Many threads take a while to end.
    (settings.classes[0].enabled, settings.classes[0].depth) = (true, 64);
    operated(settings, |commands, received| {
        first(received, is_running);
        build_larger(commands, received);
        commands.send(Command::Quit).unwrap();
        let ended = first(received, |event| match event {
            Event::Ended(ended) => Some(Ok(ended.clone())),
            event => is_running(event).filter(|now| now.target.size_bytes > 16 * MIB).map(Err),
        });
        assert_eq!(ended.map(|ended| ended.is_ok()), Ok(true), "it was built, and runs");
    });
}

#[test]
fn the_run_before_a_rebuild_that_failed_goes_on_with_its_clock_and_another_profile_begins_anew() {
    let dir = tempfile::tempdir().unwrap();
    let mut settings = idle_on_files(&dir.path().join("target"));
    settings.run.window = Duration::from_millis(100);
    // Enough for this target, but not for the rebuilt one.
    settings.run.max_writes_bytes = Some(40 * MIB);
    let other = Settings { name: "other".into(), ..settings.clone() };
    operated(settings, |commands, received| {
        let began = |event: &Event| matches!(event, Event::Began).then_some(());
        first(received, began);
        let start_ns = first(received, |event| a_window(event).filter(|window| window.start_ns > 0)).start_ns;
        build_larger(commands, received);
        let former = first(received, |event| match event {
            Event::Former(settings) => Some(settings.clone()),
            _ => None,
        });
        commands.send(open(*former)).unwrap();
        let window = first(received, |event| {
            assert!(!matches!(event, Event::Began), "it goes on");
            a_window(event).filter(|window| window.index == 0)
        });
        assert!(window.start_ns > start_ns);
        commands.send(open(other)).unwrap();
        first(received, began);
        let later = first(received, |event| a_window(event).filter(|window| window.index == 0));
        assert!(later.start_ns < window.start_ns, "a run of its own has its own clock");
    });
}

/// Settings that touch no storage, with short windows.
fn without_storage(interface: Interface) -> Settings {
    let mut settings = Settings::default();
    settings.io.interface = interface;
    settings.run.window = Duration::from_millis(100);
    settings
}

#[test]
fn a_recording_that_a_rebuild_ends_has_its_last_ledger_line_closed() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("recording");
    operated(without_storage(Interface::Sim), |commands, received| {
        first(received, is_running);
        commands.send(Command::Record(Some((out.clone(), "mine".into())))).unwrap();
        let knob = "scan.depth".to_owned();
        commands.send(Command::Turn { knob, value: Value::Int(8) }).unwrap();
        first(received, a_window);
        build_larger(commands, received);
        first(received, |event| is_running(event).filter(|now| now.target.size_bytes == 64 * MIB));
    });
    let text = std::fs::read_to_string(out.join("ledger.jsonl")).unwrap();
    let lines: Vec<LedgerLine> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let last = lines.last().unwrap();
    assert_eq!((last.knob.as_str(), last.number, last.open), ("scan.depth", 1, false), "{text}");
    assert!(out.join("summary.json").exists());
}

/// How busy a worker that never rests was in the first window after a rebuild.
fn share_after_a_rebuild() -> f64 {
    let mut settings = without_storage(Interface::Null);
    settings.classes.iter_mut().for_each(|class| class.enabled = false);
    (settings.classes[0].enabled, settings.classes[0].depth) = (true, 1);
    let mut share = 0.0;
    operated(settings, |commands, received| {
        let late = |event: &Event| a_window(event).filter(|window| window.start_ns > 1_500_000_000);
        first(received, late);
        build_larger(commands, received);
        first(received, |event| is_running(event).filter(|now| now.target.size_bytes == 64 * MIB));
        let window = first(received, a_window);
        assert!(window.start_ns > 1_500_000_000, "the run's clock goes on");
        share = window.class(Class::Scan).busiest_worker.unwrap();
    });
    share
}

#[test]
fn after_a_rebuild_a_workers_share_is_of_its_window() {
    // Beside other tests it may start late in its first window, or get less than half of a processor.
    let busy = (0..12).map(|_| share_after_a_rebuild()).find(|share| *share > 0.5);
    assert!(busy.is_some(), "a worker that never rests was busy for less than half of its first window");
}

#[test]
fn a_stack_that_is_filled_stands_and_may_be_kept() {
    let ((commands, asked), (events, received)) = (channel(), channel());
    let mut settings = Settings::default();
    settings.stack.loops = true;
    let mut waiting = Waiting {
        settings,
        facts: Arc::new(crate::runs::record::fixture::facts()),
        written_bytes: Arc::default(),
        runs_programs: false,
        commands: &asked,
        events: &events,
        next: None,
        phase: Phase::Opening,
    };
    let standing = |waiting: &mut Waiting, phase| {
        waiting.enter(phase);
        let status = received.try_iter().find_map(|event| match event {
            Event::Status(status) => Some(status.standing),
            _ => None,
        });
        status.unwrap()
    };
    assert!(!standing(&mut waiting, Phase::Building), "building is undone on the operator's word");
    commands.send(Command::QuitKeeping).unwrap();
    assert!(!waiting.may_go_on() && !waiting.keeps(), "what is half built is never kept");
    waiting.next = None;
    assert!(standing(&mut waiting, Phase::Filling));
    commands.send(Command::Quit).unwrap();
    assert!(!waiting.may_go_on() && !waiting.keeps());
    commands.send(Command::QuitKeeping).unwrap();
    assert!(!waiting.may_go_on() && waiting.keeps());
    waiting.next = None;
    waiting.settings.stack.loops = false;
    waiting.phase = Phase::Opening;
    assert!(!standing(&mut waiting, Phase::Filling), "plain files are filled: nothing was built");
}
