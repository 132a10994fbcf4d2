//! Reading back what a run has written.

use std::fs::File;
use std::os::unix::fs::FileTypeExt;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::host::{Device, Facts};
use crate::load::kv::PairsReport;
use crate::load::volume::{MemberSource, Request, VerifyReport};
use crate::printable::Shown as _;
use crate::runs::session::opening::consent::check_serials;
use crate::settings::Settings;
use crate::settings::paths::expand_home;

/// The result of reading the target back.
#[derive(Debug)]
pub enum Verified {
    /// For pages.
    Pages(Box<VerifyReport>),
    /// For pairs.
    Pairs(PairsReport),
}

impl Verified {
    /// Whether everything was checked and is as it was written.
    fn is_clean(&self) -> bool {
        match self {
            Self::Pages(report) => report.is_clean(),
            Self::Pairs(report) => report.is_clean(),
        }
    }

    /// The outcome for the command.
    ///
    /// # Errors
    /// Failed if something is not as it was written, or pages could not be compared with the write map.
    pub fn ended_well(&self) -> Result<()> {
        match self {
            _ if !self.is_clean() => Err(Error::failed("not everything is as written")),
            Self::Pages(report) => report.not_compared().map_or(Ok(()), |why| {
                Err(Error::failed(format!("not checked for lost writes: {why}"))
                    .hint("the next run keeps a write map, so its writes can be checked"))
            }),
            Self::Pairs(_) => Ok(()),
        }
    }
}

impl std::fmt::Display for Verified {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Pages(report) => report.fmt(f),
            Self::Pairs(report) => report.fmt(f),
        }
    }
}

/// The request to open these settings' target for reading only; `facts` are needed for devices.
///
/// # Errors
/// Input if there is nothing that stacktune made; refused if a device's serial is not the profile's.
pub fn to_read_back(settings: &Settings, facts: impl FnOnce() -> Arc<Facts>) -> Result<Request> {
    if !settings.stack.by_commands.is_empty() {
        let what = "only the run that made command layers (stack.layer) can read back what is on them";
        return Err(Error::input(what).hint("use `stacktune record --verify`"));
    }
    let mut request = if settings.target.devices.is_empty() {
        let dir = expand_home(&settings.target.dir)?;
        if !dir.join("data-0").exists() {
            let what = format!("there is nothing to verify: {} holds no files of stacktune", dir.shown());
            return Err(
                Error::input(what).hint("`stacktune record` makes the files of a profile and fills them")
            );
        }
        Request::of_files(&dir, settings.target.count, settings.target.size_bytes)
    } else {
        let facts = facts();
        check_serials(&settings.target, &settings.wal, &facts)?;
        let devices = facts.find_all(&settings.target.devices)?;
        let source = |device: &&Device| {
            let path = device.path.clone();
            let file = File::open(&path).map_err(|e| Error::os("cannot open", &path, e))?;
            Ok(MemberSource::Device { path, file, size_bytes: device.size_bytes })
        };
        Request::of_devices(devices.iter().map(source).collect::<Result<_>>()?)
    };
    request.read_only = true;
    request.wal = settings.wal.target.as_deref().map(wal_source).transpose()?;
    Ok(request)
}

fn wal_source(wal: &str) -> Result<MemberSource> {
    let path = expand_home(wal)?;
    let metadata = std::fs::metadata(&path).map_err(|e| Error::os("cannot examine", &path, e))?;
    if !metadata.file_type().is_block_device() {
        return Ok(MemberSource::File { path });
    }
    let file = File::open(&path).map_err(|e| Error::os("cannot open", &path, e))?;
    let size_bytes = rustix::fs::seek(&file, rustix::fs::SeekFrom::End(0))
        .map_err(|e| Error::os("cannot measure", &path, e))?;
    Ok(MemberSource::Device { path, file, size_bytes })
}
