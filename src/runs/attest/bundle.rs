//! The outcomes with the relevant facts about the host, in a form that can be published: no serial, no host
//! or user name, no path.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

use super::checks::{CheckOutcome, CheckVerdict};
use crate::host::{Facts, Levels, TargetFacts};

/// The layout's version.
const SCHEMA: u32 = 1;
/// Shorter names occur inside other words, and reveal nothing.
const NAME_CHARS_MIN: usize = 3;
/// The replacement for a name.
const HIDDEN: &str = "…";

/// The content of the bundle.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bundle {
    /// The layout's version.
    pub schema: u32,
    /// stacktune's version.
    pub stacktune: String,
    /// When it was made, in seconds since 1970.
    pub made_unix_s: u64,
    /// Whether it is from the quick form of the checks.
    pub quick: bool,
    /// The machine.
    pub host: Host,
    /// What the checks ran on.
    pub target: BundledTarget,
    /// Each check.
    pub checks: Vec<CheckOutcome>,
}

/// The machine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Host {
    /// Distribution.
    pub distribution: String,
    /// Kernel release.
    pub kernel: String,
    /// The processor's model.
    pub cpu: String,
    /// CPUs that are online.
    pub cpus: usize,
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// The kind of virtual machine, if it is one.
    pub virtualization: Option<String>,
    /// The scaling governor, where there is one.
    pub governor: Option<String>,
}

/// What the checks ran on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BundledTarget {
    /// The file system, or `block device`.
    pub medium: String,
    /// The drives below.
    pub drives: Vec<BundledDrive>,
}

/// A drive.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BundledDrive {
    /// Its model, if reported; `loop device` for one.
    pub model: Option<String>,
    /// Firmware revision, if reported.
    pub firmware: Option<String>,
    /// Bytes.
    pub size_bytes: u64,
    /// Whether it is a real drive, as far as is known.
    pub real: bool,
    /// The I/O scheduler, if known.
    pub scheduler: Option<String>,
}

impl Bundle {
    /// The bundle of these outcomes; `more` are further names that must not be in it.
    pub(super) fn of(
        checks: Vec<CheckOutcome>,
        quick: bool,
        facts: &Facts,
        (target, levels): (Option<&TargetFacts>, &Levels),
        more: &[String],
    ) -> Self {
        let drives = levels.drives.iter().map(|drive| {
            let device = facts.devices.iter().find(|device| device.name == drive.name);
            BundledDrive {
                model: drive.model.clone(),
                firmware: device.and_then(|device| device.firmware.clone()),
                size_bytes: drive.size_bytes,
                real: drive.real,
                scheduler: device.and_then(|device| device.scheduler.clone()),
            }
        });
        let mut bundle = Self {
            schema: SCHEMA,
            stacktune: env!("CARGO_PKG_VERSION").to_owned(),
            made_unix_s: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs()),
            quick,
            host: Host {
                distribution: facts.distribution.clone(),
                kernel: facts.kernel.clone(),
                cpu: facts.cpu.model.clone(),
                cpus: facts.cpu.online.len(),
                memory_bytes: facts.memory_bytes,
                virtualization: facts.virtualization.clone(),
                governor: facts.cpu.governor.clone(),
            },
            target: BundledTarget {
                medium: target.map_or_else(|| "block device".to_owned(), |target| target.medium.clone()),
                drives: drives.collect(),
            },
            checks,
        };
        bundle.hide(&[names(facts), more.to_vec()].concat());
        bundle
    }

    /// How many checks had this verdict.
    pub fn count(&self, verdict: CheckVerdict) -> usize {
        self.checks.iter().filter(|outcome| outcome.verdict == verdict).count()
    }

    /// Removes names from every text.
    fn hide(&mut self, names: &[String]) {
        let Host { distribution, kernel, cpu, virtualization, governor, .. } = &mut self.host;
        let host = [distribution, kernel, cpu].into_iter().chain(virtualization).chain(governor);
        let drives = self.target.drives.iter_mut();
        let drives = drives.flat_map(|drive| {
            [&mut drive.model, &mut drive.firmware, &mut drive.scheduler].into_iter().flatten()
        });
        let checks = self.checks.iter_mut();
        let checks = checks.flat_map(|check| [&mut check.beside, &mut check.why].into_iter().flatten());
        for text in host.chain(drives).chain(checks) {
            names.iter().for_each(|name| hide(text, name));
        }
    }
}

/// Replaces a name wherever it is a separate word.
fn hide(text: &mut String, name: &str) {
    if name.chars().count() < NAME_CHARS_MIN {
        return;
    }
    let mut from = 0;
    while let Some(at) = text[from..].find(name).map(|at| from + at) {
        let end = at + name.len();
        let is_edge = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
        if is_edge(text[..at].chars().next_back()) && is_edge(text[end..].chars().next()) {
            text.replace_range(at..end, HIDDEN);
            from = at + HIDDEN.len();
        } else {
            from = end;
        }
    }
}

/// Names of the host, of its users, and of its drives.
fn names(facts: &Facts) -> Vec<String> {
    let mut names = vec![facts.hostname.clone()];
    names.extend(facts.hostname.split('.').map(str::to_owned));
    names.extend(["USER", "LOGNAME", "SUDO_USER"].iter().filter_map(|name| std::env::var(name).ok()));
    let devices = facts.devices.iter();
    names.extend(devices.clone().filter_map(|device| device.serial.clone()));
    names.extend(devices.flat_map(|device| &device.by_id).map(|path| path.display().to_string()));
    names.extend(facts.storage.controllers.iter().filter_map(|controller| controller.serial.clone()));
    names
}

#[cfg(test)]
mod tests {
    use super::super::checks::Check;
    use super::*;
    use crate::host::LevelDrive;
    use crate::runs::record::fixture;

    #[test]
    fn nothing_in_a_bundle_names_the_host_its_user_or_its_drives() {
        let mut facts = fixture::facts();
        facts.hostname = "db-17.example.org".into();
        facts.kernel = "6.12.1-db-17".into();
        let serial = "S3CR3TN0".to_owned();
        if let Some(device) = facts.devices.first_mut() {
            device.serial = Some(serial.clone());
        }
        let path = "/home/somebody/files".to_owned();
        let why = format!("{path}/attest-1 on {serial} of db-17 failed, attested");
        let mut levels = Levels::default();
        levels.drives.push(LevelDrive {
            name: "nvme0n1".into(),
            model: Some(format!("Drive {serial}")),
            size_bytes: 1 << 40,
            real: true,
        });
        let outcome = CheckOutcome::not_checkable(Check::Cycles, why);
        let more = [path, serial.clone()];
        let bundle = Bundle::of(vec![outcome], true, &facts, (None, &levels), &more);
        let text = serde_json::to_string(&bundle).unwrap();
        for name in ["db-17", "example", "somebody", &serial] {
            assert!(!text.contains(name), "{name}: {text}");
        }
        assert_eq!(bundle.host.kernel, "6.12.1-…");
        assert_eq!(bundle.checks[0].why.as_deref(), Some("…/attest-1 on … of … failed, attested"));
        assert!(text.contains("\"schema\":1") && text.contains("\"verdict\":\"not_checkable\""));
        assert_eq!((bundle.count(CheckVerdict::NotCheckable), bundle.count(CheckVerdict::Fail)), (1, 0));
    }

    #[test]
    fn a_name_is_hidden_as_a_word_alone() {
        let hidden = |text: &str, name: &str| {
            let mut text = text.to_owned();
            hide(&mut text, name);
            text
        };
        assert_eq!(hidden("fio on fi, fio", "fio"), "… on fi, …");
        assert_eq!(hidden("fiord", "fio"), "fiord");
        assert_eq!(hidden("on pc", "pc"), "on pc");
    }
}
