//! Stand-in for builds in which no drives leave the kernel: the same type, without values, and the error that says so.

use std::convert::Infallible;
use std::sync::Arc;

use super::layout::Layout;
use super::pages::Pages;
use super::spec::UserspaceSpec;
use crate::error::{Error, Result};
use crate::host::{Facts, TargetFacts};
use crate::load::volume::write_map::WriteMap;
use crate::load::workers::Workers;
use crate::load::workers::control::Writes;
use crate::stack::supervise::Watch;

/// Has no values.
pub struct UserspaceDrives(Infallible);

pub(in crate::runs::session) fn steps(_: &UserspaceSpec, _: &[String], _: &Facts) -> Result<Vec<String>> {
    Err(absent())
}

fn absent() -> Error {
    Error::not_built("lets no drives leave the kernel")
}

#[allow(clippy::needless_pass_by_value)]
impl UserspaceDrives {
    pub(super) fn take(_: Pages, _: &UserspaceSpec, _: &str, _: Watch) -> Result<Self> {
        Err(absent())
    }

    pub(super) fn facts(&self) -> &TargetFacts {
        match self.0 {}
    }

    pub(super) fn layout(&self) -> &Layout {
        match self.0 {}
    }

    pub(super) fn layout_mut(&mut self) -> &mut Layout {
        match self.0 {}
    }

    pub(super) fn map(&self) -> Option<Arc<WriteMap>> {
        match self.0 {}
    }

    pub(super) fn steps_back(&self) -> Vec<String> {
        match self.0 {}
    }

    pub(super) fn workers(&self, _: Arc<Writes>) -> Result<Box<dyn Workers>> {
        match self.0 {}
    }

    pub(super) fn give_back(self) -> Result<()> {
        match self.0 {}
    }
}
