//! Drives that leave the kernel for a run, and are driven by stacktune itself.

use std::path::PathBuf;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::host::TargetFacts;
use crate::io::vfio::SCHEME;
use crate::nvme::Controller;
use crate::nvme::vfio::{self, VfioBus};
use crate::profile::Settings;
use crate::stack::guard::Claim;
use crate::stack::handover::{self, HandedOver};
use crate::stack::site::state_dir;
use crate::units::format_size;
use crate::volume::{Extent, Region};

/// Drives that have left the kernel. Dropped, they are given back.
pub(super) struct Given {
    // They go first: the kernel takes back only what nobody drives.
    controllers: Vec<Arc<Controller<VfioBus>>>,
    over: HandedOver,
    facts: TargetFacts,
}

impl Given {
    /// Hands claimed drives over, and starts their controllers.
    pub fn take(claims: Vec<Claim>, facts: TargetFacts, settings: &Settings) -> Result<Self> {
        if claims.is_empty() {
            let what = "drives that are only read stay with the kernel, and `vfio` takes them from it";
            return Err(Error::input(what).hint("choose another interface, or leave --read-only out"));
        }
        let over = handover::hand_over(claims, &state_dir(), &settings.name)?;
        let controllers = over.given().iter().map(|given| {
            let controller = vfio::controller(&given.address)?;
            controller.namespace(given.namespace)?;
            Ok(controller)
        });
        Ok(Self { controllers: controllers.collect::<Result<_>>()?, over, facts })
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
            let path = PathBuf::from(format!("{SCHEME}{}/{}", given.address, given.namespace));
            Ok(Extent { path, identity: None, ..extent.clone() })
        };
        let extents = region.extents.iter().map(extent).collect::<Result<_>>()?;
        Ok(Arc::new(Region { extents, ..region.clone() }))
    }

    /// What to know about such a run, as sentences.
    pub fn notes(&self) -> Vec<String> {
        let moved = self.controllers.iter().map(|controller| controller.transfer_bytes_max()).min();
        let mut notes = vec![
            "the drives have left the kernel: a flush is their own command, a durable write has FUA, and \
             the block layer counts nothing"
                .to_owned(),
        ];
        notes.extend(moved.map(|bytes| {
            format!("a command moves {} at most; larger pages take several", format_size(bytes as u64))
        }));
        notes
    }

    /// Gives the drives back.
    pub fn give_back(self) -> Result<()> {
        drop(self.controllers);
        self.over.give_back()
    }
}
