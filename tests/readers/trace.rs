//! Block traces.

use stacktune::testing::trace::contract::{ContractSpec, score};
use stacktune::testing::trace::{WrittenForm, read_bytes, write};
use stacktune::testing::ui::report::{contract, contract_files, contract_json};

use super::{json, printed, report};

/// A trace of any form. A trace that is read survives writing as blktrace's records and rereading.
pub fn trace(input: &[u8]) {
    let trace = match read_bytes(input, "seed") {
        Ok(trace) => trace,
        Err(error) => {
            assert_eq!(error.exit_status(), 2);
            printed(&error.to_string());
            return;
        }
    };
    assert!(trace.ios.iter().all(|io| io.completed_ns.is_none_or(|end| end >= io.issued_ns)));
    let mut bytes = Vec::new();
    write(&trace, WrittenForm::Fio, &mut bytes).unwrap();
    bytes.clear();
    write(&trace, WrittenForm::Blktrace, &mut bytes).unwrap();
    let again = read_bytes(&bytes, "again").unwrap_or_else(|error| panic!("{error}"));
    let (mut before, mut after) = (trace.ios.clone(), again.ios);
    // I/Os with the same time may change their order.
    for ios in [&mut before, &mut after] {
        ios.sort_by_key(|io| (io.issued_ns, io.drive, io.offset_bytes, io.bytes, io.completed_ns, io.pid));
    }
    assert_eq!(before.len(), after.len());
    assert_eq!(again.lost.all, trace.lost.all.min(1 << 30));
    assert_eq!(again.lost.others(), trace.lost.others().min(1 << 30));
    assert!(trace.drives().iter().any(|drive| drive.to_string().contains(':')));
    for page_bytes in [2048, 65_536] {
        let spec =
            ContractSpec { drive: trace.drives().first().copied(), page_bytes, ..ContractSpec::default() };
        match score(&trace, &spec) {
            Ok(scores) => {
                let valid = scores.zombies[0].valid();
                assert_eq!(valid, scores.zombies[1].valid());
                assert_eq!(valid * page_bytes, scores.alignment[0].valid_bytes);
                assert!(valid <= scores.lifetime.pages());
                report(&contract("seed", &trace, &scores));
                json(&contract_json("seed", &trace, &scores));
                contract_files(&scores).iter().for_each(|(_, text)| drop(report(text)));
            }
            Err(error) => {
                assert_eq!(error.exit_status(), 2);
                printed(&error.to_string());
            }
        }
    }
}
