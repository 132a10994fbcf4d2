//! Drives that leave the kernel for a run, and are driven by stacktune itself or by SPDK.

use std::path::PathBuf;
use std::sync::Arc;

use super::layout::Layout;
use super::pages::Pages;
use super::spec::UserspaceSpec;
use crate::error::{Error, Result};
use crate::host::{Facts, TargetFacts};
use crate::load::io::vfio;
use crate::load::nvme::Controller;
use crate::load::nvme::vfio::VfioBus;
use crate::load::remote::client::Remote;
use crate::load::spdk;
use crate::load::volume::write_map::WriteMap;
use crate::load::volume::{Extent, Region};
use crate::load::workers::control::Writes;
use crate::load::workers::{ThreadedWorkers, Workers};
use crate::printable::Shown as _;
use crate::stack::guard::Claim;
use crate::stack::handover::{self, HandedOver};
use crate::stack::paths::state_dir;
use crate::stack::supervise::Watch;
use crate::units::format_size;

/// The steps of handing drives over, to be shown in advance.
///
/// # Errors
/// Why they can't be handed over.
pub(in crate::runs::session) fn steps(
    spec: &UserspaceSpec,
    drives: &[String],
    facts: &Facts,
) -> Result<Vec<String>> {
    Ok(handover::steps(&handover::examine(&facts.find_all(drives)?, spec.noiommu)?))
}

/// Drives that have left the kernel. Dropping this gives them back.
pub struct UserspaceDrives {
    // Dropped first: the kernel takes back only drives that nobody drives.
    driver: Driver,
    over: HandedOver,
    /// The target's abilities, as found before the hand-over.
    facts: TargetFacts,
    layout: Layout,
    /// The write map, if one is kept.
    map: Option<Arc<WriteMap>>,
}

/// The driver in use.
enum Driver {
    /// stacktune's own driver, in this process.
    Own(Vec<Arc<Controller<VfioBus>>>),
    /// SPDK, in a separate process.
    Spdk(Remote),
}

impl Driver {
    fn start(spec: &UserspaceSpec, given: &[handover::UserspaceDrive]) -> Result<Self> {
        if spec.interface.capabilities().own_process {
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

    /// The prefix of a member's path.
    fn scheme(&self) -> &'static str {
        match self {
            Self::Own(_) => vfio::SCHEME,
            Self::Spdk(_) => spdk::SCHEME,
        }
    }

    /// The most bytes that one command moves.
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
    /// Hands the claimed drives of a filled target over, and starts their driver.
    ///
    /// # Errors
    /// Refused if something else would leave with them. By then, they have been given back.
    pub(super) fn take(pages: Pages, spec: &UserspaceSpec, profile: &str, watch: Watch) -> Result<Self> {
        let Pages { volume, claims, mut layout, .. } = pages;
        let (facts, map) = (volume.facts.clone(), volume.map());
        // Anything that holds them open would keep their kernel names in use.
        drop(volume);
        let (over, driver) = hand_over(claims, spec, profile, watch)?;
        layout.data = region(&over, driver.scheme(), &layout.data)?;
        layout.wal = region(&over, driver.scheme(), &layout.wal)?;
        for member in &mut layout.members {
            (member.device, member.path) = (None, None);
        }
        let mut drives = Self { driver, over, facts, layout, map };
        let notes = drives.notes();
        drives.layout.notes.extend(notes);
        Ok(drives)
    }

    /// Things to know about such a run, as sentences.
    fn notes(&self) -> Vec<String> {
        let mut notes = vec![
            "the drives have left the kernel: a flush is their own command, a durable write has FUA, and \
             the block layer counts nothing"
                .to_owned(),
        ];
        notes.extend(self.driver.transfer_bytes_max().map(|bytes| {
            format!("a command moves {} at most; larger pages take several", format_size(bytes))
        }));
        if self.over.given().iter().any(|given| given.no_iommu) {
            notes.push("no IOMMU confines the drives' memory accesses (io.unsafe_noiommu)".to_owned());
        }
        if let Driver::Spdk(remote) = &self.driver {
            let (spdk, dpdk) = &remote.attached().versions;
            notes.push(format!("{spdk} drives them, on {dpdk}, in a separate process"));
        }
        notes
    }

    /// The target's abilities, as found before the hand-over.
    pub(super) fn facts(&self) -> &TargetFacts {
        &self.facts
    }

    /// Where the load's I/O goes.
    pub(super) fn layout(&self) -> &Layout {
        &self.layout
    }

    pub(super) fn layout_mut(&mut self) -> &mut Layout {
        &mut self.layout
    }

    /// The write map, if one is kept.
    pub(super) fn map(&self) -> Option<Arc<WriteMap>> {
        self.map.clone()
    }

    /// The steps that give the drives back.
    pub(super) fn steps_back(&self) -> Vec<String> {
        self.over.steps_back()
    }

    /// The workers on them, which account for their writes in `writes`.
    ///
    /// # Errors
    /// If the process that they belong in is gone.
    pub(super) fn workers(&self, writes: Arc<Writes>) -> Result<Box<dyn Workers>> {
        let Layout { data, wal, members, .. } = &self.layout;
        Ok(match &self.driver {
            Driver::Own(_) => {
                Box::new(ThreadedWorkers::new(data.clone(), wal.clone(), members.len(), writes))
            }
            Driver::Spdk(remote) => {
                Box::new(remote.load(Region::clone(data), Region::clone(wal), members.len(), writes)?)
            }
        })
    }

    /// Gives the drives back.
    pub(super) fn give_back(self) -> Result<()> {
        drop(self.driver);
        self.over.give_back()
    }
}

fn hand_over(
    claims: Vec<Claim>,
    spec: &UserspaceSpec,
    profile: &str,
    watch: Watch,
) -> Result<(HandedOver, Driver)> {
    if claims.is_empty() {
        let what = "--read-only leaves drives with the kernel, but this interface takes them from it";
        return Err(Error::input(what).hint("choose another interface, or leave --read-only out"));
    }
    let over = handover::hand_over(claims, spec.noiommu, &state_dir(), profile, watch)?;
    match Driver::start(spec, over.given()) {
        Ok(driver) => Ok((over, driver)),
        Err(error) => Err(match over.give_back() {
            Ok(()) => error,
            Err(left) => error.and_then(&left),
        }),
    }
}

/// A region at the same places of the drives, with the interface's names.
fn region(over: &HandedOver, scheme: &str, region: &Region) -> Result<Arc<Region>> {
    let extent = |extent: &Extent| {
        let given = over.given().iter().find(|given| given.drive.path == extent.path);
        let given =
            given.ok_or_else(|| Error::failed(format!("{} was not handed over", extent.path.shown())))?;
        let path = PathBuf::from(format!("{scheme}{}/{}", given.address, given.namespace));
        Ok(Extent { path, identity: None, ..extent.clone() })
    };
    let extents = region.extents.iter().map(extent).collect::<Result<_>>()?;
    Ok(Arc::new(Region { extents, ..region.clone() }))
}
