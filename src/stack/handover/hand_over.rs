//! Handing drives over, and giving them back.

use std::path::Path;
use std::time::Instant;

use super::bus::{LOOK, NVME, PATIENCE, PciBus, VFIO_PCI, give_back};
use super::examine::{Noiommu, UserspaceDrive, examine};
use crate::error::{Error, Result};
use crate::host::Device;
use crate::stack::devices::Drive;
use crate::stack::guard::Claim;
use crate::stack::id::StackId;
use crate::stack::journal::{Journal, Undo};
use crate::stack::runner::{Runner, Tool};
use crate::stack::supervise::{Advance, Watch};

/// Loads kernel modules.
const MODPROBE: Tool = Tool { program: "modprobe", package: "kmod" };

/// Drives that were handed over. [`HandedOver::give_back`] reports errors; dropping this ignores them.
#[derive(Debug)]
pub struct HandedOver {
    given: Vec<UserspaceDrive>,
    journal: Option<Journal>,
}

pub(super) fn bind_step(address: &str, given: &[UserspaceDrive]) -> String {
    let no_iommu = given.iter().any(|given| given.no_iommu && given.address == address);
    let warning =
        if no_iommu { ", with no IOMMU: a fault in it can overwrite any memory of this host" } else { "" };
    format!("bind {address} to {VFIO_PCI}{warning}")
}

/// The steps of handing drives over, in order, as the watch sees them.
pub fn steps(given: &[UserspaceDrive]) -> Vec<String> {
    let load = (!PciBus::default().has_vfio_pci()).then(|| format!("{} {VFIO_PCI}", MODPROBE.program));
    let binds = last_first(given).into_iter().map(|address| bind_step(address, given));
    load.into_iter().chain(binds).collect()
}

/// Hands claimed drives over, which ends their claims; descriptors opened before become unusable. `watch`
/// sees each step before it is taken, and can stop it.
///
/// # Errors
/// As [`examine`]; interrupted if `watch` stops it; and if the kernel does not bind them, after undoing what
/// was done.
pub fn hand_over(
    claims: Vec<Claim>,
    noiommu: Noiommu,
    state_dir: &Path,
    profile: &str,
    watch: Watch,
) -> Result<HandedOver> {
    let drives: Vec<&Device> = claims.iter().map(Claim::device).collect();
    let given = examine(&drives, noiommu)?;
    let bus = PciBus::default();
    let mut announced = Announced { steps: steps(&given).len(), step: 0, watch };
    if !bus.has_vfio_pci() {
        announced.next(&format!("{} {VFIO_PCI}", MODPROBE.program))?;
        Runner::default().run_well(MODPROBE, &[VFIO_PCI.as_ref()])?;
    }
    let drives: Vec<Drive> = given.iter().map(|given| given.drive.clone()).collect();
    let mut journal = Journal::begin(state_dir, &StackId::random(), profile, &drives)?;
    // From here on nothing may hold them, since unbinding waits for every holder.
    drop(claims);
    let bound = last_first(&given).into_iter().try_for_each(|address| {
        let step = bind_step(address, &given);
        announced.next(&step)?;
        let undo = Undo::GiveBack { address: address.to_owned() };
        journal.act(&step, Some(undo), || bus.bind(address, VFIO_PCI))
    });
    let handed = HandedOver { given, journal: Some(journal) };
    match bound {
        Ok(()) => Ok(handed),
        Err(error) => Err(match handed.give_back() {
            Ok(()) => error,
            Err(left) => error.and_then(&left),
        }),
    }
}

/// The watch, and the progress of the hand-over.
struct Announced<'a> {
    step: usize,
    steps: usize,
    watch: Watch<'a>,
}

impl Announced<'_> {
    fn next(&mut self, command: &str) -> Result<()> {
        let (step, steps, command) = (self.step, self.steps, command.to_owned());
        self.step += 1;
        if (self.watch)(&Advance { step, steps, command, undoing: false, bytes: None, left_s: None }) {
            return Ok(());
        }
        Err(Error::interrupted("the hand-over of the drives was stopped")
            .hint("they were given back to the kernel"))
    }
}

/// The functions, those with the kernel's last names first: given back in reverse order, they get their old
/// names again.
pub(super) fn last_first(given: &[UserspaceDrive]) -> Vec<&str> {
    let mut named: Vec<_> = given
        .iter()
        .map(|given| (given.drive.name.len(), &given.drive.name, given.address.as_str()))
        .collect();
    named.sort_unstable();
    let mut addresses: Vec<&str> = Vec::new();
    for (.., address) in named.into_iter().rev() {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    addresses
}

impl HandedOver {
    /// The drives that were handed over, in the order of the claims.
    pub fn given(&self) -> &[UserspaceDrive] {
        &self.given
    }

    /// The steps of giving everything back, in order.
    pub fn steps_back(&self) -> Vec<String> {
        let back = |address: &str| format!("give {address} back to {NVME}");
        last_first(&self.given).into_iter().rev().map(back).collect()
    }

    /// Gives everything back to the kernel. The drives must no longer be in use.
    ///
    /// # Errors
    /// What could not be given back; it stays in the journal for `cleanup`.
    pub fn give_back(mut self) -> Result<()> {
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        let Some(mut journal) = self.journal.take() else { return Ok(()) };
        let mut outcome = Ok(());
        for number in (0..journal.record().entries.len()).rev() {
            let Some(Undo::GiveBack { address }) = journal.record().entries[number].to_undo().cloned() else {
                continue;
            };
            match give_back(&address) {
                Ok(()) => journal.undone(number as u64),
                Err(error) => outcome = outcome.and(Err(error)),
            }
        }
        outcome?;
        self.await_names();
        journal.end()
    }

    /// Waits briefly for the drives' old names: udev recreates them, and the next program to open a drive
    /// uses them. A missing one is reported when it is opened.
    fn await_names(&self) {
        let ends = Instant::now() + PATIENCE / 4;
        let is_there = |given: &UserspaceDrive| {
            let names = || std::iter::once(&given.drive.path).chain(&given.by_id);
            given.gone() || names().all(|name| name.exists())
        };
        while !self.given.iter().all(is_there) && Instant::now() < ends {
            std::thread::sleep(LOOK);
        }
    }
}

impl Drop for HandedOver {
    fn drop(&mut self) {
        // What can't be given back stays in the journal.
        let _ = self.end();
    }
}
