use super::super::context::ClassContext;
use super::*;
use crate::host::TargetFacts;
use crate::settings::interface::Interface;
use crate::settings::testing::capable_files;
use crate::units::SECOND_NS;

/// A context in which nothing should be flagged.
pub fn context() -> WindowContext<'static> {
    let class = ClassContext {
        state: ClassState::Running,
        drained: false,
        interface: Interface::IoUring,
        buffering: Buffering::Direct,
        rate_bytes_per_s: None,
        in_flight_bytes_max: 0,
    };
    WindowContext {
        flash: None,
        began_ns: 0,
        late_ns: 0,
        window_ns: 1_000_000_000,
        now_ns: 0,
        setting: 0,
        turned: false,
        warmup: false,
        paused: false,
        classes: std::array::from_fn(|_| class.clone()),
        array: crate::settings::ArrayState::Healthy,
        wal_durable: true,
        data_bytes: 4 << 30,
        memory_bytes: 1 << 30,
        target: None,
        unfilled: false,
        written_bytes_total: 0,
        data_set_bytes: 5 << 30,
        pairs: false,
        engine: None,
        program: None,
        ended_early: false,
        block_cache_bytes: 0,
        full: false,
        traced: false,
        tuned: crate::meter::context::Tuned::default(),
        by_trace: crate::meter::context::ByTrace::default(),
    }
}

fn texts(flags: &[Flag]) -> Vec<&str> {
    flags.iter().map(|flag| flag.text.as_str()).collect()
}

fn scan(context: &WindowContext) -> Vec<String> {
    let flags = of_class(Class::Scan, context, &ClassFigures::default(), false);
    assert!(flags.iter().all(|flag| flag.why.ends_with('.')), "{flags:?}");
    assert!(
        flags
            .iter()
            .all(|flag| flag.forbids_verdict != ["simulated", "emulated"].contains(&flag.text.as_str())),
        "{flags:?}"
    );
    flags.into_iter().map(|flag| flag.text).collect()
}

#[test]
fn nothing_is_flagged_without_a_reason() {
    let context = context();
    for class in Class::ALL {
        assert_eq!(of_class(class, &context, &ClassFigures::default(), false), []);
    }
    assert_eq!(of_window(&context, Some(0.02), false, Some(0.02)), []);
}

#[test]
fn what_a_class_measured_is_flagged() {
    let figures = ClassFigures { cache_share: Some(0.974), busiest_worker: Some(0.96), ..Default::default() };
    let flags = of_class(Class::Scan, &context(), &figures, true);
    assert_eq!(texts(&flags), ["cache 97%", "worker-bound", "drifting"]);
    let figures = ClassFigures { cache_share: Some(0.02), busiest_worker: Some(0.95), ..Default::default() };
    assert_eq!(of_class(Class::Scan, &context(), &figures, false), []);
}

#[test]
fn settings_under_which_no_storage_is_measured_are_flagged() {
    let mut context = context();
    context.data_bytes = 1 << 29;
    assert_eq!(scan(&context), [""; 0], "direct I/O does not fill memory");
    context.classes[0].buffering = Buffering::Cached;
    assert_eq!(scan(&context), ["data fits memory"]);
    context.classes[0].buffering = Buffering::Uncached;
    assert_eq!(scan(&context), [""; 0]);
    context.unfilled = true;
    assert_eq!(scan(&context), ["unfilled"]);
    context.classes[0].interface = Interface::Sim;
    assert_eq!(scan(&context), ["simulated"]);
    context.classes[0].interface = Interface::Null;
    assert_eq!(scan(&context), ["no storage"]);
    context.classes[0].state = ClassState::Off;
    assert_eq!(scan(&context), [""; 0]);
}

fn target() -> TargetFacts {
    capable_files("btrfs")
}

#[test]
fn quietly_buffered_direct_io_counts_as_cached() {
    let target = TargetFacts { quietly_buffered: Some("btrfs keeps checksums".into()), ..target() };
    let context = WindowContext { target: Some(&target), data_bytes: 1, ..context() };
    assert_eq!(scan(&context), ["quietly buffered", "data fits memory"]);
    assert!(context.through_cache(Class::Scan) && !context.all_direct());
}

#[test]
fn emulated_drives_are_flagged_if_used() {
    let target = TargetFacts { emulated: Some("QEMU NVMe Ctrl".into()), ..target() };
    let mut emulated = WindowContext { target: Some(&target), ..context() };
    assert_eq!(scan(&emulated), ["emulated"]);
    emulated.classes[0].interface = Interface::Null;
    assert_eq!(scan(&emulated), ["no storage"]);
    // Where a program is the load, no class gets the flag.
    let of_window = |context: &WindowContext| of_processor(context, &CpuFigures::default(), 1);
    assert_eq!(texts(&of_window(&emulated)), [""; 0]);
    emulated.program = Some(ProgramFigures::default());
    assert_eq!(texts(&of_window(&emulated)), ["emulated"]);
}

#[test]
fn a_log_without_flushes_is_flagged_but_can_be_judged() {
    let context = WindowContext { wal_durable: false, ..context() };
    let flags = of_class(Class::Wal, &context, &ClassFigures::default(), false);
    assert_eq!((texts(&flags), flags[0].forbids_verdict), (vec!["not durable"], false));
}

#[test]
fn whole_windows_are_flagged() {
    let flags = of_window(&context(), Some(0.051), true, Some(0.5));
    assert_eq!(texts(&flags), ["settling", "steal 5%", "block layer differs 50%"]);
    let turned = WindowContext { turned: true, paused: true, ..context() };
    assert_eq!(texts(&of_window(&turned, None, true, None)), ["paused", "turned"]);
    let traced = WindowContext { traced: true, ..context() };
    assert_eq!(texts(&of_window(&traced, None, false, None)), ["traced"]);
    let mut draining = context();
    draining.classes[0].state = ClassState::Draining;
    assert_eq!(scan(&draining), ["draining"]);
    draining.classes[0] =
        ClassContext { state: ClassState::Running, drained: true, ..draining.classes[0].clone() };
    assert_eq!(scan(&draining), ["draining"], "it has drained since the window began");
}

#[test]
fn a_window_that_ends_late_by_over_half_its_length_is_flagged() {
    let late = |late_ns| WindowContext { late_ns, window_ns: 1_000_000_000, ..context() };
    assert_eq!(of_window(&late(500_000_000), None, false, None), []);
    let flags = of_window(&late(9_100_000_000), None, false, None);
    assert_eq!((texts(&flags), flags[0].forbids_verdict), (vec!["late"], true));
    assert!(flags[0].why.starts_with("The window ended 9.1 s late"), "{}", flags[0].why);
}

#[test]
fn a_target_in_use_is_flagged_with_its_uses() {
    let target = TargetFacts { mounted: Some("mounted at /srv, swapped on: /dev/sdb2".into()), ..target() };
    let context = WindowContext { target: Some(&target), ..context() };
    let flags = of_window(&context, None, false, None);
    assert_eq!(texts(&flags), ["mounted"]);
    assert!(flags[0].why.starts_with("The target is in use (mounted at /srv, swapped"), "{}", flags[0].why);
}

#[test]
fn others_are_flagged_where_they_matter() {
    let cpu = |others: f64, unattributed: f64| CpuFigures {
        cpus: 2,
        busy: 1.0,
        others_cores: Some(others),
        unattributed_cores: Some(unattributed),
        ..CpuFigures::default()
    };
    assert_eq!(others(&cpu(0.19, 0.0)), None);
    assert_eq!(others(&CpuFigures { others_cores: None, ..cpu(1.8, 0.0) }), None);
    let flag = others(&cpu(1.8, 0.0)).unwrap();
    assert_eq!((flag.text.as_str(), flag.forbids_verdict), ("others 1.8 cores", false));
    assert!(
        flag.is(FlagKind::Others) && flag.why.starts_with("Other programs used 1.8 of the 2.0 busy cores:")
    );
    assert_eq!(
        texts(&of_others(&cpu(1.8, 0.0)).collect::<Vec<_>>()),
        ["others 1.8 cores", "processors full"]
    );
    let half_idle = CpuFigures { busy: 0.6, ..cpu(1.0, 0.0) };
    assert_eq!(texts(&of_others(&half_idle).collect::<Vec<_>>()), ["others 1.0 cores"]);
    assert!(others(&cpu(1.8, 0.6)).unwrap().why.contains("accounts for 0.6 of them"));
    let window = Window { cpu: cpu(0.3, 0.0), ..Window::default() };
    assert_eq!(implied_of_window(&window), [FlagKind::Others]);
}

#[test]
fn a_client_that_can_do_no_more_and_full_processors_are_flagged_of_programs() {
    let cpu = |busy: f64, others: f64| CpuFigures {
        cpus: 4,
        busy,
        others_cores: Some(others),
        ..CpuFigures::default()
    };
    let program = |server: u64, run: u64, thread: u64| ProgramFigures {
        server_cpu_ns: Some(server * 10_000_000),
        run_cpu_ns: Some(run * 10_000_000),
        run_thread_ns: Some(thread * 10_000_000),
        ..ProgramFigures::default()
    };
    let flagged = |busy, others, of: &ProgramFigures| {
        texts(&of_program(&cpu(busy, others), of, SECOND_NS))
            .into_iter()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let none: [&str; 0] = [];
    assert_eq!(flagged(0.5, 0.0, &program(100, 100, 89)), none);
    assert_eq!(flagged(0.5, 0.0, &program(100, 100, 91)), ["client-bound"]);
    assert_eq!(flagged(0.94, 0.0, &program(10, 370, 80)), ["client-bound"]);
    assert_eq!(flagged(0.97, 0.0, &program(300, 80, 20)), ["cpu-bound"]);
    // Without a server there is no client; and beside other programs, nobody can tell which is to blame.
    let alone = ProgramFigures { server_cpu_ns: None, ..program(0, 100, 99) };
    assert_eq!(flagged(0.5, 0.0, &alone), none);
    assert_eq!(flagged(0.5, 0.0, &program(0, 100, 99)), ["client-bound"], "one that idles is one");
    assert_eq!(flagged(0.97, 2.0, &program(100, 80, 20)), none);
    let unknown = ProgramFigures { run_thread_ns: None, ..program(10, 10, 0) };
    assert_eq!(flagged(0.5, 0.0, &unknown), none);
    let why = &of_program(&cpu(0.5, 0.0), &program(100, 100, 95), SECOND_NS)[0].why;
    assert!(why.contains("a thread that ran for 95% of the time"), "{why}");
    let swapped = |bytes| ProgramFigures { swapped_bytes: Some(bytes), ..program(0, 10, 1) };
    assert_eq!(flagged(0.5, 0.0, &swapped(4096)), ["swapped"]);
    assert_eq!(flagged(0.5, 0.0, &swapped(0)), none);
}

#[test]
fn others_on_the_drives_are_flagged_with_the_busiest_first() {
    use crate::meter::window::OthersIo;
    let io = |drive: &str, bytes: u64, read_bytes, written_bytes| OthersIo {
        drive: drive.into(),
        bytes,
        read_bytes,
        written_bytes,
    };
    let drives = [
        io("sda", 1_000_000_000, Some(60_000_000), None),
        io("nvme0n1", 400_000_000, Some(0), Some(70_000_000)),
        io("sdb", 400_000_000, Some(1_000_000), Some(0)),
    ];
    let flag = others_io(&drives, 2.0).unwrap();
    assert_eq!((flag.text.as_str(), flag.forbids_verdict), ("others on nvme0n1: 35.0 MB/s", true));
    assert!(flag.is(FlagKind::OthersIo) && !flag.is(FlagKind::Others), "{flag:?}");
    let expected = "nvme0n1 (reads 0.00 MB/s, writes 35.0 MB/s, of 200 MB/s in all), sda (reads 30.0 MB/s, writes unknown, of 500 MB/s in all)";
    assert!(flag.why.contains(expected) && !flag.why.contains("sdb"), "{}", flag.why);
    let window = Window { duration_ns: 2_000_000_000, others_io: drives[1..2].to_vec(), ..Window::default() };
    assert_eq!(implied_of_window(&window), [FlagKind::OthersIo]);
    assert_eq!(others_io(&drives[2..], 2.0), None);
}

#[test]
fn what_others_change_is_flagged_once_for_each_knob_with_from_what_to_what() {
    use crate::host::AttributeChange;
    let change = |device: &str, knob: &str, [from, to]: [&str; 2]| AttributeChange {
        device: device.into(),
        knob: knob.into(),
        values: [from.into(), to.into()],
    };
    assert_eq!(of_attributes(&[]), []);
    let flags = of_attributes(&[
        change("nvme0n1", "queue.scheduler", ["none", "bfq"]),
        change("nvme0n1", "queue.nr_requests", ["1023", "256"]),
        change("nvme1n1", "queue.scheduler", ["none", "bfq"]),
    ]);
    assert_eq!(texts(&flags), ["others changed queue.scheduler", "others changed queue.nr_requests"]);
    assert!(flags[0].forbids_verdict && flags[0].is(FlagKind::OthersChanged), "{flags:?}");
    let both = "Somebody else changed queue.scheduler: nvme0n1 from none to bfq, nvme1n1 from none to bfq. Figures from before and after can't be compared.";
    assert!(flags[0].why.contains(both), "{flags:?}");
}
