//! `stacktune attest` on a device: like `record`, it asks before destroying anything.

use serde_json::Value;

use crate::common::devices::{Loops, Mount, has, run};
use crate::common::recorded::{Home, json};
use crate::common::{LEFT_TO_SOAK, is_soak, remark, skip};

/// Checks that must not fail in the long form; a duel of equal settings may, by chance.
const NEVER_FAIL: [&str; 7] =
    ["latency_p50", "latency_p99", "bytes_read", "bytes_written", "own_cpu", "busy_cores", "cycles"];

/// Adds latencies beside fio's to the soak's table; they aren't judged where fio's own runs differ.
fn remark_latencies(on: &str, bundle: &Value) {
    let latencies: Vec<_> = bundle["checks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|check| check["check"].as_str().unwrap().starts_with("latency_"))
        .map(|check| {
            let figure =
                |key: &str| check[key].as_f64().map_or_else(|| "-".into(), |ns| format!("{:.1}", ns / 1e3));
            let (name, verdict) = (check["check"].as_str().unwrap(), check["verdict"].as_str().unwrap());
            format!("{name} {verdict}, {} us by us and {} by fio", figure("ours"), figure("theirs"))
        })
        .collect();
    remark(&format!("attest on {on}: {}", latencies.join(", ")));
}

/// The long form on files: our latencies and fio's are for the same calls on the same file system.
#[test]
fn files_are_attested_in_the_long_form() {
    let test = "files_are_attested_in_the_long_form";
    if !is_soak() {
        return skip(test, LEFT_TO_SOAK);
    }
    let Some(loops) = Loops::alone(test) else { return };
    let device = loops.blank(1024);
    run("mkfs.ext4", &["-q", "-F", &device.path]);
    let mount = Mount::of(&device, "noatime");
    let (home, at) = (Home::new(), mount.at.path().join("checks"));
    let out = home.path("attest.json");
    home.run(&["attest", "--files", at.to_str().unwrap(), "--out", out.to_str().unwrap()]);
    let bundle = json(&out);
    for check in bundle["checks"].as_array().unwrap() {
        let name = check["check"].as_str().unwrap();
        assert!(!NEVER_FAIL.contains(&name) || check["verdict"] != "fail", "{check:#}");
    }
    remark_latencies("files", &bundle);
}

#[test]
fn a_device_is_attested_only_with_consent_and_nothing_is_planted_on_it() {
    let test = "a_device_is_attested_only_with_consent_and_nothing_is_planted_on_it";
    let Some(loops) = Loops::alone(test) else { return };
    let device = loops.blank(128);
    std::fs::write(&device.path, vec![1; 65536]).unwrap();
    let (home, before) = (Home::new(), device.hash());
    let out = home.path("attest.json");
    let mut attest = vec!["attest", "--devices", &device.path, "--out", out.to_str().unwrap()];
    // The soak runs the long form, which takes five minutes.
    if !is_soak() {
        attest.push("--quick");
    }
    let refused = home.run(&attest);
    assert_eq!(refused.status, Some(3), "{}{}", refused.out, refused.err);
    home.run(&[&attest[..], &["--dry-run"]].concat()).ended(0, &[]);
    assert_eq!((device.hash(), out.exists()), (before, false), "nothing was written");

    let ran = home.run(&[&attest[..], &["--destroy", &device.path]].concat());
    let bundle = json(&out);
    let failed = bundle["checks"].as_array().unwrap().iter().any(|check| check["verdict"] == "fail");
    assert_eq!(ran.status, Some(i32::from(failed)), "{}{}", ran.out, ran.err);
    let check = |name: &str| -> &Value {
        let mut checks = bundle["checks"].as_array().unwrap().iter();
        checks.find(|check| check["check"] == name).unwrap()
    };
    if is_soak() {
        for name in NEVER_FAIL {
            assert_ne!(check(name)["verdict"], "fail", "{bundle:#}");
        }
        remark_latencies("a loop device", &bundle);
    }
    // Nobody else uses the device.
    for name in ["bytes_read", "bytes_written", "lost_writes"] {
        assert_eq!(check(name)["verdict"], "pass", "{bundle:#}");
    }
    if has("fio") {
        assert!(check("latency_p50")["theirs"].as_f64() > Some(0.0), "{bundle:#}");
    }
    assert!(!ran.out.contains(&device.path) && bundle["target"]["drives"][0]["model"] == "loop device");
    // The device holds a data set, sound as after any run.
    let profile = home.profile("device", &device.profile());
    home.run(&["verify", &profile]).ended(0, &[]);
}
