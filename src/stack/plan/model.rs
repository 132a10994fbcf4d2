//! The steps that build a stack, as data: shown, confirmed, and then run exactly as shown.

use std::path::PathBuf;

use super::endurance::{DriveWear, Endurance};
use super::fit::Fit;
use super::resilience::Properties;
use super::step::Step;
use crate::error::{Error, Result};
use crate::printable::Shown as _;
use crate::stack::devices::{BlockDevice, Drive};
use crate::stack::guard::Consent;
use crate::stack::id::StackId;
use crate::stack::layer::Layer;
use crate::units::approx_size;

/// Steps to a stack, in order.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The stack's id.
    pub id: StackId,
    /// The steps.
    pub steps: Vec<Step>,
    /// Drives on which everything is destroyed, with their current content.
    pub destroys: Vec<Destroyed>,
    /// What the target is opened on afterwards.
    pub exposed: Exposed,
    /// The folder of a program's log, made next to the stack and removed with it; none if the log is with the data.
    pub log: Option<PathBuf>,
    /// What it survives, holds and costs.
    pub properties: Properties,
    /// Bytes written by the steps and then the fill, over all drives; metadata that mkfs and md write is not counted.
    pub writes_bytes: u64,
    /// Determines its sizes once its command layers are built, if it has any: until then its sizes are upper bounds.
    pub fit: Option<Fit>,
}

/// A drive on which everything is destroyed.
#[derive(Debug, Clone, PartialEq)]
pub struct Destroyed {
    /// The drive.
    pub drive: Drive,
    /// Its content, in words; empty if only stacktune's own data was found.
    pub content: Vec<String>,
    /// Bytes written to it, by steps and fill.
    pub writes_bytes: u64,
    /// What is known about its endurance.
    pub endurance: Endurance,
}

/// What the target is opened on once the stack is built.
#[derive(Debug, Clone, PartialEq)]
pub enum Exposed {
    /// Block devices, with pages interleaved over them.
    Devices(Vec<BlockDevice>),
    /// A data file and a WAL file in a folder of a file system.
    Files {
        /// The folder.
        dir: PathBuf,
        /// Bytes of the data file.
        data_bytes: u64,
        /// Bytes of the WAL file.
        wal_bytes: u64,
    },
}

/// A plan that the operator has confirmed. Only [`Plan::confirm`] makes one.
#[derive(Debug)]
pub struct Confirmed {
    pub(crate) plan: Plan,
}

impl Plan {
    /// The drives that it is built on; empty if it is built on files.
    pub fn drives(&self) -> Vec<Drive> {
        self.destroys.iter().map(|destroyed| destroyed.drive.clone()).collect()
    }

    /// The plan with sizes that fit the bytes that its command layers leave; unchanged without such layers.
    ///
    /// # Errors
    /// Input if the files do not fit on them.
    pub(crate) fn measured(&self, device_bytes: u64) -> Result<Self> {
        let mut plan = self.clone();
        let Some(fit) = &self.fit else { return Ok(plan) };
        if let Exposed::Files { data_bytes, wal_bytes, .. } = &mut plan.exposed {
            (*data_bytes, *wal_bytes) = fit.file_sizes(device_bytes)?;
        }
        (plan.properties.usable_bytes, plan.properties.at_most) = (fit.room_bytes(device_bytes), false);
        Ok(plan)
    }

    /// Its command layers, the lowest first.
    pub fn layers(&self) -> impl DoubleEndedIterator<Item = &Layer> {
        self.steps.iter().filter_map(|step| match step {
            Step::HoldLayer { layer } => Some(&**layer),
            _ => None,
        })
    }

    /// How much endurance of each drive it uses; empty if it is built on files.
    pub fn wear(&self) -> Vec<DriveWear> {
        let wear = |destroyed: &Destroyed| DriveWear {
            drive: destroyed.drive.name.clone(),
            writes_bytes: destroyed.writes_bytes,
            endurance: destroyed.endurance,
        };
        self.destroys.iter().map(wear).collect()
    }

    /// Whether a program runs on it: how much that writes is not known in advance.
    pub fn is_for_program(&self) -> bool {
        matches!(self.exposed, Exposed::Files { data_bytes: 0, wal_bytes: 0, .. })
    }

    /// The plan as text, one line per step with its command; exactly what is shown is run.
    pub fn lines(&self) -> Vec<String> {
        let most = if self.fit.is_some() { "at most " } else { "" };
        let fill = match &self.exposed {
            Exposed::Files { dir, .. } if self.is_for_program() => {
                let log = self.log.as_ref().map(|log| format!(", with its log in {}", log.shown()));
                format!("run the program in {}{}", dir.shown(), log.unwrap_or_default())
            }
            Exposed::Files { dir, data_bytes, wal_bytes: 0 } => {
                format!("load {most}{} of pairs in {}", approx_size(*data_bytes), dir.shown())
            }
            Exposed::Files { dir, data_bytes, wal_bytes } => {
                let (data, wal) = (approx_size(*data_bytes), approx_size(*wal_bytes));
                format!("fill {most}{data} of data and {wal} of WAL in {}", dir.shown())
            }
            Exposed::Devices(devices) => {
                let devices: Vec<_> = devices.iter().map(BlockDevice::shown).collect();
                format!("fill {}", devices.join(", "))
            }
        };
        self.steps.iter().map(Step::words).chain([fill]).collect()
    }

    /// Confirms the plan if there is consent for each drive that is destroyed.
    ///
    /// # Errors
    /// Refused (3), naming the drives without consent, with what is on them; input (2) if commands of its
    /// layers are not allowed.
    pub fn confirm(self, consent: &Consent) -> Result<Confirmed> {
        if let Some(fit) = &self.fit {
            consent.refuse_commands(&fit.layers.by_commands)?;
        }
        let covered = |destroyed: &&Destroyed| {
            let drive = &destroyed.drive;
            !consent.covers_device(&drive.name, drive.serial.as_deref())
        };
        let missing: Vec<&Destroyed> = self.destroys.iter().filter(covered).collect();
        if missing.is_empty() {
            return Ok(Confirmed { plan: self });
        }
        let list: Vec<_> = missing.iter().map(|destroyed| destroyed.describe()).collect();
        let hint: Vec<_> = missing.iter().map(|d| format!("--destroy {}", d.drive.path.shown())).collect();
        Err(Error::refused(format!("building this stack destroys everything on:\n  {}", list.join("\n  ")))
            .hint(format!("to do that, add: {}", hint.join(" "))))
    }
}

impl Destroyed {
    fn describe(&self) -> String {
        let content =
            if self.content.is_empty() { "nothing found on it".to_owned() } else { self.content.join("; ") };
        format!("{}: {content}", self.drive.in_full())
    }
}
