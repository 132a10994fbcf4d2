//! Table 7: database systems on the array, with less memory than data, and with more.
//!
//! The rows are runs of the built-in profiles of two programs, one per experiment. Their data is scaled to
//! this host, and each row's memory keeps the paper's proportion to the data.

use std::time::Duration;

use super::experiment::Says::{Less, More};
use super::experiment::{
    Claim, Experiment, ExperimentRow, ROW_TIME, RowTarget, Setup, Shape, claim, numbers, row,
};
use super::figure::Figure;
use super::figure::Figure::{CpuBusyPercent, DrivesReadMbPerS, DrivesWrittenMbPerS, KtxnPerS};
use crate::settings::profile::builtin;
use crate::settings::values::program::MEMORY_MAX;
use crate::settings::{Filesystem, Program, Settings};
use crate::units::{GIB, approx_size};

const COLUMNS: &[Figure] = &[KtxnPerS, DrivesReadMbPerS, DrivesWrittenMbPerS, CpuBusyPercent];
/// The profile of `PostgreSQL`'s rows, and its knobs.
const PROFILE: &str = "run-tpcc";
const WAREHOUSES: &str = "warehouses";
const CLIENTS: &str = "clients";
const SHARED_BUFFERS: &str = "shared_buffers";
/// The same for `LeanStore`: its memory is its buffer pool, and its WAL grows from this offset down towards its data.
const LEANSTORE_PROFILE: &str = "run-leanstore";
const DRAM_GIB: &str = "dram_gib";
const WAL_OFFSET_GIB: &str = "wal_offset_gib";
/// Its data per warehouse.
const LEANSTORE_WAREHOUSE_BYTES: u64 = 228_000_000;
/// Room for `LeanStore`'s data and WAL, as a multiple of its initial data.
const ROOM_FOR_WAL: u64 = 3;

/// Data of a warehouse, including its indexes.
const WAREHOUSE_BYTES: u64 = 100_000_000;
/// The paper's: 300 warehouses with 30 GB in total, and 40 clients.
const PAPERS_WAREHOUSES: u64 = 300;
const PAPERS_CLIENTS: &str = "40";
/// The paper's 50 GB and 16 GB of memory, in percent of its 30 GB of data.
const IN_MEMORY: u64 = 167;
const OUT_OF_MEMORY: u64 = 53;
/// Memory that `PostgreSQL` takes besides its buffers and the page cache: with less, the kernel kills it.
const CLIENT_BYTES: u64 = 10_000_000;
const SERVER_BYTES: u64 = 100_000_000;
/// The most that the data takes of the host's memory, and of the storage, in percent.
const OF_HOST: u64 = 60;
const OF_STORAGE: u64 = 30;

const LEANSTORE: &str = "LeanStore is another program: --beside takes its rows from table7-leanstore";

/// The room for a program and its data.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room<'a> {
    /// The host's memory.
    pub memory_bytes: u64,
    /// The storage.
    pub storage_bytes: u64,
    /// Why a program's memory can't be limited, if it can't.
    pub no_limit: Option<&'a str>,
}

fn of_memory(label: &str, words: &str, percent: u64, published: &[f64]) -> ExperimentRow {
    let row = row(label, words, RowTarget::Filesystem(Filesystem::Xfs), &[], numbers(COLUMNS, published));
    ExperimentRow { memory_percent: Some(percent), ..row }
}

fn leanstore_rows() -> [ExperimentRow; 2] {
    [
        of_memory("LS-50", "LeanStore in memory", IN_MEMORY, &[410.0, 0.0, 800.0]),
        of_memory("LS-16", "LeanStore out of memory", OUT_OF_MEMORY, &[130.0, 900.0, 1400.0]),
    ]
}

fn wal_alone() -> Claim {
    let words = "in memory LeanStore writes its WAL alone";
    claim("5.2", words, DrivesWrittenMbPerS, ("LS-50", "LS-16"), Less)
}

/// `LeanStore`'s rows of Table 7, by the operator's own build.
pub(super) fn table7_leanstore() -> Experiment {
    Experiment {
        name: "table7-leanstore",
        source: "Table 7, section 5.2",
        about: "LeanStore under TPC-C, in memory and out of it",
        shape: Shape::Program(LEANSTORE_PROFILE),
        rows: leanstore_rows().into(),
        claims: vec![wal_alone()],
        assumptions: &[
            "LeanStore is your own build of its TPC-C frontend, with a worker for each processor and a flush for each group of commits; the paper does not say which of its versions ran.",
            "Each run loads its data anew before it is measured; the rows run in random order.",
        ],
        remarks: &[],
        ..table7()
    }
}

/// Table 7, sections 5.1 and 5.2.
pub(super) fn table7() -> Experiment {
    let lacking = |row: ExperimentRow| ExperimentRow { lacking: Some(LEANSTORE), ..row };
    let [ls_50, ls_16] = leanstore_rows().map(lacking);
    Experiment {
        name: "table7",
        source: "Table 7, section 5",
        about: "database systems under TPC-C, in memory and out of it",
        setup: Setup::Consumer,
        shape: Shape::Program(PROFILE),
        columns: COLUMNS,
        rows: vec![
            of_memory(
                "PG-50",
                "PostgreSQL in memory: 50 GB for 30 GB of data",
                IN_MEMORY,
                &[10.0, 100.0, 50.0],
            ),
            of_memory("PG-16", "PostgreSQL out of memory: 16 GB", OUT_OF_MEMORY, &[9.0, 200.0, 70.0]),
            ls_50,
            ls_16,
        ],
        claims: vec![
            claim("5.1", "out of memory PostgreSQL loses a tenth", KtxnPerS, ("PG-16", "PG-50"), Less),
            claim("5.1", "out of memory PostgreSQL reads more", DrivesReadMbPerS, ("PG-16", "PG-50"), More),
            claim("5.2", "LeanStore is far ahead in memory", KtxnPerS, ("LS-50", "PG-50"), More),
            claim("5.2", "LeanStore is far ahead out of memory", KtxnPerS, ("LS-16", "PG-16"), More),
            wal_alone(),
        ],
        assumptions: &[
            "The paper does not give PostgreSQL's shared_buffers: here they are a quarter of the row's memory.",
            "All rows share one data set, which is set up once and grows from run to run; the rows run in random order.",
        ],
        remarks: &[
            "In the paper PostgreSQL is CPU-bound in both rows and leaves the array idle; here the flag `cpu-bound` and idle drives show that.",
        ],
        time: ROW_TIME,
        warmup: Duration::from_secs(10),
        repeat: 3,
    }
}

/// The program of an experiment whose rows run one, with `PostgreSQL`'s data scaled to the room; none for others.
pub(super) fn program(experiment: &Experiment, room: Room) -> Option<Program> {
    let Shape::Program(profile) = experiment.shape else { return None };
    let mut program = builtin(profile)?.settings.program?;
    if ![PROFILE, LEANSTORE_PROFILE].contains(&profile) {
        return Some(program);
    }
    let data_bytes = (room.memory_bytes / 100 * OF_HOST).min(room.storage_bytes / 100 * OF_STORAGE);
    let each_bytes = warehouse_bytes(&program);
    let warehouses = (data_bytes / each_bytes).clamp(1, PAPERS_WAREHOUSES);
    set(&mut program, WAREHOUSES, &warehouses.to_string());
    // Each profile has its own knobs.
    set(&mut program, CLIENTS, PAPERS_CLIENTS);
    let room_gib = (warehouses * each_bytes * ROOM_FOR_WAL).div_ceil(GIB);
    set(&mut program, WAL_OFFSET_GIB, &room_gib.to_string());
    Some(program)
}

/// Sets a knob to a value, which is added to its choices if need be.
fn set(program: &mut Program, name: &str, value: &str) {
    for knob in program.knobs.iter_mut().filter(|knob| knob.name == name) {
        if !knob.values.iter().any(|known| known == value) {
            knob.values.push(value.to_owned());
        }
        value.clone_into(&mut knob.value);
    }
}

/// Bytes of the data that the program of these settings has.
fn data_bytes(settings: &Settings) -> Option<u64> {
    let program = settings.program.as_ref()?;
    let warehouses: u64 = program.value_of(WAREHOUSES)?.parse().ok()?;
    Some(warehouses * warehouse_bytes(program))
}

fn warehouse_bytes(program: &Program) -> u64 {
    if is_leanstore(program) { LEANSTORE_WAREHOUSE_BYTES } else { WAREHOUSE_BYTES }
}

fn is_leanstore(program: &Program) -> bool {
    program.value_of(DRAM_GIB).is_some()
}

/// The memory limit of a row, if the host has that much and can limit it, and `PostgreSQL`'s buffers within it.
fn memory_of(base: &Settings, room: Room, percent: u64) -> (Option<u64>, u64) {
    let wanted = data_bytes(base).unwrap_or(0) / 100 * percent;
    let fits = room.no_limit.is_none() && wanted <= room.memory_bytes / 100 * 90;
    (fits.then_some(wanted), wanted.min(room.memory_bytes) / 4)
}

fn shared_buffers((_, bytes): (Option<u64>, u64)) -> String {
    // PostgreSQL's MB are binary, and it needs a few.
    format!("{}MB", (bytes >> 20).max(16))
}

/// `LeanStore`'s pool: as much as the row wants, if the host has it.
fn dram_gib(base: &Settings, room: Room, percent: u64) -> String {
    let wanted = data_bytes(base).unwrap_or(0) / 100 * percent;
    format!("{:.2}", wanted.min(room.memory_bytes / 100 * 80) as f64 / GIB as f64)
}

/// The settings that rows start from, including all values to which these turn the program's knobs.
pub(super) fn with_values_of_rows(base: &Settings, experiment: &Experiment, room: Room) -> Settings {
    let mut settings = base.clone();
    for percent in experiment.rows.iter().filter_map(|row| row.memory_percent) {
        let pools = [
            (SHARED_BUFFERS, shared_buffers(memory_of(base, room, percent))),
            (DRAM_GIB, dram_gib(base, room, percent)),
        ];
        let Some(program) = &mut settings.program else { continue };
        for (name, value) in pools {
            let now = program.value_of(name).unwrap_or_default().to_owned();
            set(program, name, &value);
            set(program, name, &now);
        }
    }
    settings
}

/// A row's turns of its program's knobs, or why it can't be run.
pub(super) fn turns(
    row: &ExperimentRow,
    base: &Settings,
    room: Room,
) -> Result<Vec<(String, String)>, String> {
    let Some(percent) = row.memory_percent else {
        return Ok(row
            .command
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect());
    };
    if base.program.as_ref().is_some_and(is_leanstore) {
        return Ok(vec![(DRAM_GIB.to_owned(), dram_gib(base, room, percent))]);
    }
    let memory = memory_of(base, room, percent);
    if let (Some(why), true) = (room.no_limit, percent < 100) {
        return Err(format!("its memory can't be limited here: {why}"));
    }
    let of_program = |name| base.program.as_ref()?.value_of(name)?.parse::<u64>().ok();
    let least = SERVER_BYTES + of_program(CLIENTS).unwrap_or(0) * CLIENT_BYTES;
    if memory.0.is_some_and(|bytes| bytes < least) {
        return Err(format!(
            "{percent}% of its data is less than the {} that the clients need: raise command.warehouses or lower command.clients",
            approx_size(least)
        ));
    }
    let limit = memory.0.map(|bytes| (MEMORY_MAX.to_owned(), format!("{}MB", bytes / 1_000_000)));
    Ok(limit.into_iter().chain([(SHARED_BUFFERS.to_owned(), shared_buffers(memory))]).collect())
}

/// How the program's runs differ from the paper's, by the settings of each row.
pub(super) fn deviations(rows: &[(&str, &Settings)]) -> Vec<String> {
    let Some((_, first)) = rows.first() else { return Vec::new() };
    let value = |name: &str| first.program.as_ref().and_then(|of| of.value_of(name)).unwrap_or("?");
    let bytes = data_bytes(first).unwrap_or(0);
    let mut deviations = vec![format!(
        "{} warehouses, about {} of data at first; the paper had {PAPERS_WAREHOUSES}, 30 GB",
        value(WAREHOUSES),
        approx_size(bytes)
    )];
    let pool = |settings: &Settings| settings.program.as_ref()?.value_of(DRAM_GIB)?.parse::<f64>().ok();
    if pool(first).is_some() {
        let percent = |gib: f64| gib * GIB as f64 * 100.0 / bytes.max(1) as f64;
        let row = |(label, settings): &(&str, &Settings)| {
            let gib = pool(settings)?;
            Some(format!("row {label} has a pool of {gib} GiB, {:.0}% of its data", percent(gib)))
        };
        return deviations.into_iter().chain(rows.iter().filter_map(row)).collect();
    }
    deviations.push(format!(
        "TPC-C-like transactions in PL/pgSQL, called by pgbench with {} clients; the paper had OLTP-Bench's TPC-C with {PAPERS_CLIENTS} workers",
        value(CLIENTS)
    ));
    for (label, settings) in rows {
        let limit = settings.program.as_ref().and_then(|program| program.memory_max_bytes);
        deviations.push(match limit {
            Some(limit) => {
                let percent = limit as f64 * 100.0 / bytes.max(1) as f64;
                format!("row {label} has {} of memory, {percent:.0}% of its data", approx_size(limit))
            }
            None => format!("row {label} has all of the host's memory: the host has less than the row wants, or can't limit it"),
        });
    }
    deviations
}

#[cfg(test)]
mod tests {
    use super::*;

    type RowTurns = Result<Vec<(String, String)>, String>;

    fn planned(room: Room) -> (Settings, Vec<RowTurns>) {
        let experiment = table7();
        let base = Settings { program: program(&experiment, room), ..Settings::default() };
        let base = with_values_of_rows(&base, &experiment, room);
        let turns = experiment.rows.iter().map(|row| turns(row, &base, room)).collect();
        (base, turns)
    }

    #[test]
    fn leanstores_pool_keeps_the_papers_proportion_to_its_own_data() {
        let experiment = table7_leanstore();
        let room = Room { memory_bytes: 64_000_000_000, storage_bytes: 17_000_000_000, no_limit: Some("v1") };
        let base = Settings { program: program(&experiment, room), ..Settings::default() };
        let base = with_values_of_rows(&base, &experiment, room);
        let program = base.program.clone().unwrap();
        assert_eq!(
            (program.value_of(WAREHOUSES), program.value_of(WAL_OFFSET_GIB)),
            (Some("22"), Some("15"))
        );
        let turns = |at: usize, room| super::turns(&experiment.rows[at], &base, room).unwrap();
        for (at, gib) in [(0, "7.80"), (1, "2.48")] {
            assert_eq!(turns(at, room), [(DRAM_GIB.to_owned(), gib.to_owned())]);
            assert_eq!(program.clone().turn(DRAM_GIB, gib), Ok(()));
        }
        let small = Room { memory_bytes: 4 * GIB, ..room };
        assert_eq!(turns(0, small)[0].1, "3.20", "what the host has");
        let said = deviations(&[("LS-16", &base)]).join("\n");
        assert!(
            said.contains("22 warehouses") && said.contains("row LS-16 has a pool of 1 GiB, 21%"),
            "{said}"
        );
        assert!(!said.contains("pgbench"), "{said}");
    }

    #[test]
    fn memory_keeps_the_papers_proportion_to_data_that_fits_the_host() {
        let room = Room { memory_bytes: 64_000_000_000, storage_bytes: 17_000_000_000, no_limit: None };
        let (base, turns) = planned(room);
        let program = base.program.unwrap();
        assert_eq!((program.value_of(WAREHOUSES), program.value_of(CLIENTS)), (Some("51"), Some("40")));
        let turn = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(turns[0], Ok(vec![turn("memory_max", "8517MB"), turn("shared_buffers", "2030MB")]));
        assert_eq!(turns[1], Ok(vec![turn("memory_max", "2703MB"), turn("shared_buffers", "644MB")]));
        for (name, value) in turns.into_iter().flatten().flatten() {
            assert_eq!(program.clone().turn(&name, &value), Ok(()), "{name} {value}");
        }

        // With less memory than a row wants, it gets all there is; and the data is scaled to the host.
        let (base, turns) = planned(Room { memory_bytes: 2_000_000_000, ..room });
        assert_eq!(base.program.as_ref().unwrap().value_of(WAREHOUSES), Some("12"));
        assert_eq!(turns[0], Ok(vec![turn("shared_buffers", "476MB")]));
        let said = deviations(&[("PG-50", &base)]).join("\n");
        assert!(
            said.contains("12 warehouses, about 1.12 GiB") && said.contains("PG-50 has all of"),
            "{said}"
        );

        let (mut base, _) = planned(room);
        set(base.program.as_mut().unwrap(), WAREHOUSES, "2");
        let why = super::turns(&table7().rows[1], &base, room).unwrap_err();
        assert!(why.contains("lower command.clients"), "{why}");

        let (_, turns) = planned(Room { no_limit: Some("no cgroups"), ..room });
        assert_eq!(turns[1], Err("its memory can't be limited here: no cgroups".to_owned()));
        assert!(turns[0].is_ok());
    }
}
