//! A stack, and its open content.

use super::key_value::KeyValue;
use super::pages::Pages;
use super::program_folder::ProgramFolder;
use crate::error::Result;
use crate::load::volume::Request;
use crate::runs::session::opening::consent::source;
use crate::stack::build::Built;
use crate::stack::guard::{Claim, claim_built};
use crate::stack::plan::Exposed;
use crate::stack::runner::Runner;

/// A stack, and its open content. The content is closed before the stack is taken down.
pub struct Stack {
    pub(super) content: OnStack,
    pub(super) built: Built,
}

/// The open content of a stack.
pub enum OnStack {
    /// Its files or its device, read and written in pages.
    Pages(Pages),
    /// A data set of pairs in its file system.
    KeyValue(KeyValue),
    /// A program's folder in its file system.
    Folder(ProgramFolder),
}

/// The request for the target's content on a stack, with the claims that lock its devices.
pub(super) fn request(built: &Built) -> Result<(Request, Vec<Claim>)> {
    match &built.plan().exposed {
        Exposed::Files { dir, data_bytes, wal_bytes } => {
            let mut request = Request::of_files(dir, 1, *data_bytes);
            request.wal_bytes = Some(*wal_bytes);
            Ok((request, Vec::new()))
        }
        Exposed::Devices(places) => {
            let claims = places
                .iter()
                .map(|place| claim_built(&place.resolve(&Runner::default())?))
                .collect::<Result<Vec<_>>>()?;
            let sources = claims.iter().map(source).collect::<Result<_>>()?;
            Ok((Request::of_devices(sources), claims))
        }
    }
}
