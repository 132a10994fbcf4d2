//! Drives that leave the kernel for a run, and are driven by stacktune itself or by SPDK.

use std::path::PathBuf;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::host::{Facts, TargetFacts};
use crate::load::io::vfio;
use crate::load::nvme::Controller;
use crate::load::nvme::vfio::VfioBus;
use crate::load::remote::client::Remote;
use crate::load::spdk;
use crate::load::volume::{Extent, Region};
use crate::load::workers::RemoteWorkers;
use crate::load::workers::control::Writes;
use crate::settings::Settings;
use crate::settings::interface::Interface;
use crate::stack::guard::Claim;
use crate::stack::handover::{self, HandedOver, Noiommu};
use crate::stack::paths::state_dir;
use crate::stack::supervise::Watch;
use crate::units::format_size;

/// The steps of handing the drives of these settings over, told before it is done.
///
/// # Errors
/// Why they can't be.
pub(super) fn steps(settings: &Settings, facts: &Facts) -> Result<Vec<String>> {
    let drives = facts.find_all(&settings.target.devices)?;
    Ok(handover::steps(&handover::examine(&drives, noiommu(settings))?))
}

fn noiommu(settings: &Settings) -> Noiommu {
    // SPDK finds its own way to memory, which nobody has accepted here.
    let accepted = settings.io.unsafe_noiommu
        && settings.driven_by().is_some_and(|interface| interface.capabilities().unsafe_noiommu);
    if accepted { Noiommu::Accepted } else { Noiommu::Refused }
}

/// Drives that have left the kernel. Dropped, they are given back.
pub(super) struct UserspaceDrives {
    // They go first: the kernel takes back only what nobody drives.
    driver: Driver,
    over: HandedOver,
    facts: TargetFacts,
}

/// What drives them.
enum Driver {
    /// stacktune's own driver, in this process.
    Own(Vec<Arc<Controller<VfioBus>>>),
    /// SPDK, in a process of its own.
    Spdk(Remote),
}

impl Driver {
    fn start(interface: Option<Interface>, given: &[handover::UserspaceDrive]) -> Result<Self> {
        if interface.is_some_and(|interface| interface.capabilities().own_process) {
            let drives = given.iter().map(|given| (given.address.clone(), given.namespace));
            return Ok(Self::Spdk(Remote::start(drives.collect())?));
        }
        let controllers = given.iter().map(|given| {
            let controller = crate::load::nvme::vfio::controller(&given.address)?;
            controller.namespace(given.namespace)?;
            Ok(controller)
        });
        Ok(Self::Own(controllers.collect::<Result<_>>()?))
    }

    /// How a member's path begins.
    fn scheme(&self) -> &'static str {
        match self {
            Self::Own(_) => vfio::SCHEME,
            Self::Spdk(_) => spdk::SCHEME,
        }
    }

    /// Bytes that a command moves at most.
    fn transfer_bytes_max(&self) -> Option<u64> {
        match self {
            Self::Own(controllers) => {
                controllers.iter().map(|controller| controller.transfer_bytes_max() as u64).min()
            }
            Self::Spdk(remote) => Some(remote.attached().transfer_bytes_max),
        }
    }
}

impl UserspaceDrives {
    /// Hands claimed drives over, and starts what drives them.
    pub fn take(claims: Vec<Claim>, facts: TargetFacts, settings: &Settings, watch: Watch) -> Result<Self> {
        if claims.is_empty() {
            let what =
                "drives that are only read stay with the kernel, and this interface takes them from it";
            return Err(Error::input(what).hint("choose another interface, or leave --read-only out"));
        }
        let over = handover::hand_over(claims, noiommu(settings), &state_dir(), &settings.name, watch)?;
        match Driver::start(settings.driven_by(), over.given()) {
            Ok(driver) => Ok(Self { driver, over, facts }),
            Err(error) => Err(match over.give_back() {
                Ok(()) => error,
                Err(left) => Error { what: format!("{}; and then {}", error.what, left.what), ..error },
            }),
        }
    }

    /// What the target can do, as it was found before.
    pub fn facts(&self) -> &TargetFacts {
        &self.facts
    }

    /// A region on the same places of the drives, as the interface names them.
    pub fn region(&self, region: &Region) -> Result<Arc<Region>> {
        let extent = |extent: &Extent| {
            let given = self.over.given().iter().find(|given| given.drive.path == extent.path);
            let given = given
                .ok_or_else(|| Error::failed(format!("{} was not handed over", extent.path.display())))?;
            let path =
                PathBuf::from(format!("{}{}/{}", self.driver.scheme(), given.address, given.namespace));
            Ok(Extent { path, identity: None, ..extent.clone() })
        };
        let extents = region.extents.iter().map(extent).collect::<Result<_>>()?;
        Ok(Arc::new(Region { extents, ..region.clone() }))
    }

    /// What to know about such a run, as sentences.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = vec![
            "the drives have left the kernel: a flush is their own command, a durable write has FUA, and \
             the block layer counts nothing"
                .to_owned(),
        ];
        notes.extend(self.driver.transfer_bytes_max().map(|bytes| {
            format!("a command moves {} at most; larger pages take several", format_size(bytes))
        }));
        if self.over.given().iter().any(|given| given.no_iommu) {
            notes.push(
                "no IOMMU keeps the drives from memory that is not theirs (io.unsafe_noiommu)".to_owned(),
            );
        }
        if let Driver::Spdk(remote) = &self.driver {
            let (spdk, dpdk) = &remote.attached().versions;
            notes.push(format!("{spdk} drives them, on {dpdk}, in a process of its own"));
        }
        notes
    }

    /// The steps that give the drives back.
    pub fn steps_back(&self) -> Vec<String> {
        self.over.steps_back()
    }

    /// Where the workers are, if not in this process: what it takes to start them there.
    pub fn remote_workers(
        &self,
        regions: (&Region, &Region),
        members: usize,
        writes: &Arc<Writes>,
    ) -> Option<Result<Box<dyn RemoteWorkers>>> {
        let Driver::Spdk(remote) = &self.driver else { return None };
        let (data, wal) = regions;
        Some(remote.load(data.clone(), wal.clone(), members, writes.clone()))
    }

    /// Gives the drives back.
    pub fn give_back(self) -> Result<()> {
        drop(self.driver);
        self.over.give_back()
    }
}
