//! From an examination and the operator's consent to a claim.

use std::fs::OpenOptions;

use super::claim::{Claim, claim, gone};
use super::consent::Consent;
use super::content;
use super::examine::{Examination, Seen};
use super::uses::{refuse_in_use, refuse_written_below};
use crate::error::{Error, Result};
use crate::host::{Device, Facts};
use crate::printable::Shown as _;
use crate::stack::runner::Runner;

/// Permits writing if there is nothing to lose, or if the operator consents to losing it.
pub fn permit(examination: Examination, consent: &Consent) -> Result<Permit> {
    if !examination.needs_consent()
        || consent.covers_device(&examination.device.name, examination.device.serial.as_deref())
    {
        return Ok(Permit { examination });
    }
    let device = &examination.device;
    let what = format!("{} is not empty: {}", examination.describe(), examination.content.join("; "));
    Err(Error::refused(what)
        .hint(format!("to destroy everything on it, add: --destroy {}", name_to_give(device))))
}

fn name_to_give(device: &Device) -> String {
    device.by_id.first().unwrap_or(&device.path).shown()
}

/// A device that may be written. Only [`permit`] makes one.
#[derive(Debug)]
pub struct Permit {
    examination: Examination,
}

impl Permit {
    /// Opens the device for reading and writing and claims it for this process.
    ///
    /// Examines it again first: refused (3) if it has come into use, become another device or changed its
    /// content since it was examined.
    pub fn open(self) -> Result<Claim> {
        let examined = &self.examination.device;
        let now = Facts::read_devices();
        let device = now.iter().find(|device| device.number == examined.number);
        let device = device.ok_or_else(|| gone(examined))?;
        let same = |device: &Device| {
            (&device.name, &device.serial, device.size_bytes)
                == (&examined.name, &examined.serial, examined.size_bytes)
        };
        if !same(device) {
            return Err(gone(examined));
        }
        refuse_in_use(device, self.examination.min_bytes)?;
        refuse_written_below(device)?;
        let file = claim(device, OpenOptions::new().read(true).write(true))?;
        let signatures = content::signatures(&Runner::default(), device)?;
        let edges_crc = content::edges_crc(&file, device)?;
        if (Seen { signatures, edges_crc }) != self.examination.seen {
            let what = format!("{} was written to after it was examined", device.path.shown());
            return Err(Error::refused(what).hint("find out what wrote to it, then start again"));
        }
        Ok(Claim { file, device: device.clone(), own_fill: self.examination.own_fill })
    }
}
