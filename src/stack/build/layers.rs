//! Command layers: made, measured, and checked to stand on nothing but the stack's own devices.

use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use super::builder::Builder;
use crate::error::{Error, Result};
use crate::printable::Shown as _;
use crate::stack::devices::{BlockDevice, foreign_ground};
use crate::stack::guard;
use crate::stack::layer::Layer;
use crate::stack::runner::WIPEFS;
use crate::units::{MIB, approx_size};

/// A layer must leave room for a header and some pages of WAL and data.
const LAYER_BYTES_MIN: u64 = 64 * MIB;

impl Builder<'_> {
    /// The guard's check before a layer's first command: the devices below are the stack's own and unused,
    /// and the device to be made does not exist yet, since the undo would remove it.
    pub(super) fn refuse_layer(&self, layer: &Layer, number: usize) -> Result<()> {
        if number > 0 {
            return Ok(());
        }
        layer.made.below.iter().try_for_each(|device| self.refuse_used(device))?;
        match layer.made.path.symlink_metadata() {
            Err(_) => Ok(()),
            Ok(_) => Err(Error::refused(format!(
                "{} already exists, before layer `{}` is made",
                layer.made.path.shown(),
                layer.name
            ))),
        }
    }

    /// Runs one of the commands that make a layer.
    pub(super) fn raise_layer(&self, layer: &Layer, number: usize) -> Result<()> {
        layer.up[number].run(&self.site.runner, |device| self.node(device).map(Some))
    }

    /// Refuses a layer's device that stands on anything but the stack's own devices; measures it, and wipes
    /// any old drive content that shows through it.
    pub(super) fn hold_layer(&self, layer: &Layer) -> Result<()> {
        let device = layer.made.device();
        let node = self.node(&device).map_err(|error| {
            let what = format!("layer `{}` left no device: {}", layer.name, error.what);
            Error::failed(what).hint(format!(
                "its commands must make the block device {}, which is named in the profile's stack.layer.device",
                layer.made.path.shown()
            ))
        })?;
        let own: Vec<PathBuf> =
            layer.made.below.iter().map(|device| self.node(device)).collect::<Result<_>>()?;
        let foreign = foreign_ground(&node, &own);
        if !foreign.is_empty() {
            let what = format!(
                "layer `{}`: {} is built on {}, which is not this stack's",
                layer.name,
                layer.made.path.shown(),
                foreign.join(", ")
            );
            return Err(Error::refused(what).hint("its commands may use `{devices}` alone"));
        }
        guard::refuse_claimed(&node)?;
        let bytes = size_of(&node)?;
        if bytes < LAYER_BYTES_MIN {
            let (has, needs) = (approx_size(bytes), approx_size(LAYER_BYTES_MIN));
            let what = format!("layer `{}` leaves {has}, but {needs} is needed", layer.name);
            return Err(Error::input(what).hint("use larger members, or let its commands take all of them"));
        }
        // As for an array: any signature seen there from now on was put there later.
        self.site.runner.run_well(WIPEFS, &["--all".as_ref(), "--quiet".as_ref(), node.as_os_str()])?;
        // With several layers, the last one counts.
        self.layer_bytes.store(bytes, Ordering::Relaxed);
        if self.is_top(&device) { self.plan.measured(bytes).map(drop) } else { Ok(()) }
    }

    fn is_top(&self, device: &BlockDevice) -> bool {
        let last = self.plan.layers().last();
        last.is_some_and(|layer| layer.made.device() == *device)
    }
}

fn size_of(node: &Path) -> Result<u64> {
    let end = File::open(node).and_then(|mut file| file.seek(SeekFrom::End(0)));
    end.map_err(|error| Error::os("cannot measure", node, error))
}
