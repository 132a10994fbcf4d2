//! The folder of a stack's files: one that nobody but root can exchange.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags, open};
use rustix::process::geteuid;

use crate::error::{Error, Result};
use crate::host::{Doubt, open_trusted};
use crate::printable::Shown as _;

/// Opens a folder as a place to make something in. What is made there is formatted, or mounted upon, by root: whoever
/// could exchange the folder meanwhile would choose what.
///
/// # Errors
/// Refused if anybody but root could exchange it, or a folder above it. Without root anything can be used that can
/// be opened.
pub(crate) fn open_own_folder(dir: &Path) -> Result<OwnedFd> {
    if !geteuid().is_root() {
        let opened = open(dir, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
        return opened.map_err(|error| Error::os("cannot open", dir, error));
    }
    open_trusted(dir).map_err(|doubt| match doubt {
        Doubt::Os(at, error) => Error::os("cannot open", &at, error),
        doubt => {
            let what = format!(
                "{} could be exchanged for another folder while root works in it: {doubt}",
                dir.shown()
            );
            Error::refused(what)
                .hint("choose a folder that only root can change, and whose parents only root can change")
        }
    })
}
