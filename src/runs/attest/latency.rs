//! Service latency of random reads, one at a time, compared with fio's, in pairs of consecutive runs.

use serde_json::Value;
use std::path::Path;

use super::bed::{Bed, with};
use super::checks::{Check, CheckOutcome, PAIRS_MIN};
use super::programs::{self, words};
use crate::error::{Error, Result};
use crate::json;
use crate::load::volume::Region;

const CHECKS: [Check; 2] = [Check::LatencyP50, Check::LatencyP99];
const FEW: &str = "too few reads for a 99th percentile";
/// With fewer I/Os there is no 99th percentile.
const IOS_MIN: u64 = 1000;

/// The median and the 99th percentile of a run, in nanoseconds.
type Percentiles = [f64; 2];

/// Both checks.
pub(super) fn check(bed: &mut Bed) -> Result<Vec<CheckOutcome>> {
    // The first run fills the target, however short it is.
    let settings =
        with(&bed.settings, &[("point.enabled", "true"), ("point.depth", "1"), ("point.threads", "1")])?;
    let pair = bed.amounts.pair;
    bed.run(&settings, pair, &mut ())?;
    let Some(fio) = programs::find("fio") else {
        return Ok(CheckOutcome::none(&CHECKS, "fio is not installed"));
    };
    if let Some(why) = bed.not_direct() {
        return Ok(CheckOutcome::none(&CHECKS, why));
    }
    let data = bed.volume(&settings)?.data;
    let engine = if bed.facts.libaio.reason().is_none() { "libaio" } else { "psync" };
    let arguments = arguments(&data, settings.io.page_size_bytes, engine, pair.as_secs_f64())?;
    let (mut all, mut missing, mut version) = (Vec::new(), Vec::new(), None);
    while all.len() < bed.amounts.pairs {
        let is_fio_first = (all.len() + missing.len()).is_multiple_of(2);
        let of_fio = |bed: &Bed| beside(&fio, &arguments, bed);
        // Each goes first in every other pair.
        let early = if is_fio_first { Some(of_fio(bed)?) } else { None };
        let ours = bed.run(&settings, pair, &mut ())?.summary.classes.point.service_ns;
        let theirs = match early {
            Some(early) => early,
            None => of_fio(bed)?,
        };
        let ours = ours.and_then(|of| Some([of.p50? as f64, of.p99? as f64]));
        match (theirs, ours.ok_or(FEW.to_owned())) {
            (Ok(theirs), Ok(ours)) => {
                version.get_or_insert(theirs.version);
                all.push((ours, theirs.percentiles));
            }
            // While the device stalls, a run may have too few reads: another pair replaces it.
            (Err(why), _) | (_, Err(why)) if missing.len() + 1 < PAIRS_MIN => missing.push(why),
            (Err(why), _) | (_, Err(why)) => return Ok(CheckOutcome::none(&CHECKS, &why)),
        }
    }
    let version = version.unwrap_or_default();
    let of =
        |n: usize| all.iter().map(move |(ours, theirs): &(Percentiles, Percentiles)| (ours[n], theirs[n]));
    let outcomes = CHECKS.iter().enumerate();
    Ok(outcomes.map(|(n, check)| CheckOutcome::of_pairs(*check, &version, of(n).collect())).collect())
}

/// The report of an fio run.
#[derive(Debug, PartialEq)]
struct Reported {
    version: String,
    percentiles: Percentiles,
}

/// Runs fio; the inner error tells why its report has no figures.
fn beside(fio: &Path, arguments: &[String], bed: &Bed) -> Result<std::result::Result<Reported, String>> {
    let ended = programs::run(fio, arguments, bed.amounts.pair, bed.interrupts)?;
    Ok(if ended.well { reported(&ended.out) } else { Err("fio failed".to_owned()) })
}

/// Random reads of the same pages, by the same calls; nothing is written.
fn arguments(data: &Region, page_bytes: u64, engine: &str, seconds: f64) -> Result<Vec<String>> {
    let first = data.extents.first().map_or(0, |extent| extent.offset_bytes);
    let name = |path: &Path| {
        let path = path.to_str().ok_or_else(|| Error::input("fio takes no path that is not UTF-8 text"))?;
        // fio separates names by colons.
        Ok(path.replace('\\', "\\\\").replace(':', "\\:"))
    };
    let names = data.extents.iter().map(|extent| name(&extent.path)).collect::<Result<Vec<_>>>()?;
    let fixed = words([
        "--name=attest",
        "--rw=randread",
        "--direct=1",
        "--iodepth=1",
        "--thread",
        "--readonly",
        "--allow_file_create=0",
        "--invalidate=0",
        "--norandommap",
        "--randrepeat=0",
        "--time_based",
        "--lat_percentiles=1",
        "--clat_percentiles=0",
        "--percentile_list=50:99",
        "--file_service_type=random",
        "--output-format=json",
    ]);
    let own = [
        format!("--ioengine={engine}"),
        format!("--bs={page_bytes}"),
        format!("--offset={first}"),
        format!("--size={}", data.bytes()),
        format!("--runtime={}ms", (seconds * 1e3).round()),
        format!("--filename={}", names.join(":")),
    ];
    Ok([fixed, own.to_vec()].concat())
}

/// The percentiles in fio's report: `lat_ns`, from the start of the submission to the completion.
fn reported(text: &str) -> std::result::Result<Reported, String> {
    // Warnings may precede it.
    let report = text.find('{').and_then(|at| json::read::<Value>(&text.as_bytes()[at..]).ok());
    let report = report.ok_or("fio's report can't be read")?;
    let job = &report["jobs"][0];
    if job["error"].as_i64() != Some(0) {
        return Err("fio reports errors".to_owned());
    }
    if job["read"]["total_ios"].as_u64().is_none_or(|ios| ios < IOS_MIN) {
        return Err("fio made too few reads for a 99th percentile".to_owned());
    }
    let percentiles = &job["read"]["lat_ns"]["percentile"];
    let [Some(p50), Some(p99)] = ["50.000000", "99.000000"].map(|name| percentiles[name].as_f64()) else {
        return Err("this fio reports no percentiles of the whole latency (lat_percentiles)".to_owned());
    };
    let version = report["fio version"].as_str().unwrap_or("fio").to_owned();
    Ok(Reported { version, percentiles: [p50, p99] })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::load::volume;

    fn report(ios: u64, percentile: &Value, error: i64) -> String {
        let read = json!({ "total_ios": ios, "lat_ns": { "percentile": percentile } });
        json!({ "fio version": "fio-3.33", "jobs": [{ "error": error, "read": read }] }).to_string()
    }

    #[test]
    fn the_whole_latency_is_read_from_fios_report_or_why_it_has_none() {
        let both = json!({ "50.000000": 74240, "99.000000": 136_192 });
        let found = reported(&format!("fio: a warning\n{}\n", report(5000, &both, 0))).unwrap();
        assert_eq!(found, Reported { version: "fio-3.33".into(), percentiles: [74240.0, 136_192.0] });
        let why = |text: &str| reported(text).unwrap_err();
        assert!(why(&report(5000, &json!({}), 0)).contains("lat_percentiles"));
        assert!(why(&report(999, &both, 0)).contains("too few"));
        assert!(why(&report(5000, &both, 5)).contains("errors"));
        assert!(why("").contains("can't be read") && why("{").contains("can't be read"));
    }

    #[test]
    fn fio_reads_the_data_alone_and_writes_nothing() {
        let extent = |path: &str| volume::Extent {
            path: path.into(),
            identity: None,
            member: 0,
            offset_bytes: 1 << 20,
        };
        let extents = vec![extent("/dev/disk/by-id/a:b"), extent("/dev/sdb")];
        let data = Region { id: 0, set: 1, extents, extent_bytes: 3 << 20 };
        let words = arguments(&data, 16384, "libaio", 0.5).unwrap();
        for word in [
            "--readonly",
            "--allow_file_create=0",
            "--rw=randread",
            "--offset=1048576",
            "--size=6291456",
            "--runtime=500ms",
            "--filename=/dev/disk/by-id/a\\:b:/dev/sdb",
        ] {
            assert!(words.iter().any(|given| given == word), "{word}: {words:?}");
        }
    }
}
