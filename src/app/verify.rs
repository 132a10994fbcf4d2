//! `stacktune verify`: reads every written page back and checks it.

use std::fs::File;
use std::io::{IsTerminal, stderr};
use std::os::unix::fs::FileTypeExt;
use std::sync::atomic::{AtomicBool, Ordering};

use super::inputs::facts;
use super::output::{print, print_json};
use super::signals::Interrupts;
use crate::error::{Error, Result};
use crate::load::volume::{MemberSource, Request, Volume};
use crate::printable::Shown as _;
use crate::runs::session::{Verified, check_serials, compare_with_map, verify_pairs};
use crate::settings::Settings;
use crate::settings::profile::expand_home;
use crate::ui::report::Progress;

/// Runs the command.
pub fn run(profile: Option<&str>, sets: &[String], json: bool) -> Result<()> {
    let (profile, _) = super::inputs::profile(profile, sets)?;
    let settings = profile.settings;
    let interrupts = Interrupts::watch()?;
    let mut progress = Progress::new(stderr(), stderr().is_terminal(), None);
    let stop = AtomicBool::new(false);
    let mut on_progress = |step: crate::runs::session::Progress| {
        progress.fill(&step);
        stop.store(interrupts.count() > 0, Ordering::Relaxed);
    };
    let (verified, has_wal) = if settings.is_keyed() {
        (Verified::Pairs(verify_pairs(&settings, &mut on_progress, &stop)?), true)
    } else {
        let mut volume = Volume::open(request(&settings)?)?;
        compare_with_map(&mut volume)?;
        (Verified::Pages(Box::new(volume.verify(&mut on_progress, &stop)?)), volume.wal.bytes() > 0)
    };
    progress.done();
    match &verified {
        Verified::Pages(report) if json => print_json(report)?,
        Verified::Pairs(report) if json => print_json(report)?,
        verified => print(&format!("{verified}\n"))?,
    }
    if interrupts.count() > 0 {
        return Err(Error::interrupted("interrupted: not everything was read"));
    }
    if !has_wal {
        return Err(Error::failed("the WAL is not verified: it is missing, or its header is damaged"));
    }
    verified.ended_well()
}

/// The profile's target, for reading only.
fn request(settings: &Settings) -> Result<Request> {
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
        let source = |device: &&crate::host::Device| {
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
