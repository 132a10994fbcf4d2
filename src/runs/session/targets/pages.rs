//! Files and devices that the classes read and write in pages: opened behind the guard, and filled.

use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::layout::Layout;
use crate::error::{Error, Result};
use crate::load::volume::{self, MemberSource, Progress, Request, Survey, Volume};
use crate::runs::session::attendant::Attendant;
use crate::runs::session::consent::{
    OwnWal, check_serials, claim_all, own_wal, refuse_shared_wal, refuse_stray_consent, source,
};
use crate::runs::session::resolve::{Kind, Resolved, refuse_over_limit};
use crate::settings::profile::expand_home;
use crate::stack::guard::{self, Claim};
use crate::units::approx_span;

/// A fill that takes less is over before anybody has read how long it takes.
const SHOWN_S: f64 = 3.0;

/// An open volume. Dropped, it is closed before the claims on its devices end.
pub struct Pages {
    pub(super) volume: Volume,
    /// Holds devices against other programs as long as the target is open.
    pub(super) claims: Vec<Claim>,
    pub(super) layout: Layout,
    /// Whether somebody else works on the devices, which are only read then.
    pub(super) mounted: bool,
}

impl Pages {
    /// Opens files or devices as they are.
    pub(super) fn open(resolved: &Resolved, attendant: &mut dyn Attendant) -> Result<Self> {
        if resolved.options.read_only {
            let (request, mounted) = to_read(resolved)?;
            return Ok(Self { mounted, ..Self::of(Volume::open(request)?, Vec::new()) });
        }
        let (request, claims) = to_write(resolved, attendant)?;
        Ok(Self::of(Volume::open(request)?, claims))
    }

    /// Opens what a stack holds.
    pub(super) fn open_built(request: Request, claims: Vec<Claim>, resolved: &Resolved) -> Result<Self> {
        refuse_unfit(&request, &claims, resolved)?;
        Ok(Self::of(Volume::open(request)?, claims))
    }

    fn of(volume: Volume, claims: Vec<Claim>) -> Self {
        Self { layout: Layout::of_volume(&volume), volume, claims, mounted: false }
    }

    /// Fills what is not filled, and adds the bytes to those written. Returns how long it took, where it did
    /// anything.
    ///
    /// # Errors
    /// Interrupted where the attendant ends it.
    pub(super) fn fill(
        &mut self,
        resolved: &Resolved,
        attendant: &mut dyn Attendant,
    ) -> Result<Option<Duration>> {
        let (volume, options) = (&mut self.volume, &resolved.options);
        let Some(whole) = volume.missing_fill() else { return Ok(None) };
        let limit_bytes = resolved.settings.run.max_writes_bytes;
        refuse_over_limit(whole.bytes, options.written_until_now(), limit_bytes)?;
        attendant.passing(&format!("{whole}; the rate of its first half second shows how long it takes"));
        let (stop, began) = (AtomicBool::new(false), Instant::now());
        let (start, rest) = volume.measure_fill(&stop)?;
        options.written_bytes.fetch_add(start.written_bytes, Ordering::Relaxed);
        let Some(rest) = rest else { return Ok(Some(began.elapsed())) };
        if let Some(seconds) = rest.time_s().filter(|seconds| *seconds >= SHOWN_S) {
            attendant.passing(&format!("filling takes about {} more", approx_span(seconds)));
        }
        let mut progress = |progress: Progress| {
            // Of all that was to be filled, the measured start included.
            let (done_bytes, all_bytes) = (progress.done_bytes + start.written_bytes, whole.bytes);
            let rate_bytes_per_s = done_bytes as f64 / began.elapsed().as_secs_f64();
            if !attendant.progress(Progress { done_bytes, all_bytes, rate_bytes_per_s, ..progress }) {
                stop.store(true, Ordering::Relaxed);
            }
        };
        let end = volume.fill(&mut progress, &stop)?;
        options.written_bytes.fetch_add(end.written_bytes, Ordering::Relaxed);
        if end.complete {
            return Ok(Some(began.elapsed()));
        }
        let error = Error::interrupted("the fill was stopped");
        // A stack that was built for it goes with it.
        let goes_on = resolved.kind != Kind::Stack;
        Err(if goes_on { error.hint("the next run goes on where it stopped") } else { error })
    }

    /// Where sequence numbers begin.
    pub(super) fn sequence_base(&mut self, resolved: &Resolved) -> Result<u64> {
        if resolved.options.read_only { Ok(0) } else { self.volume.next_sequence_base() }
    }
}

/// What is read only, and whether somebody works on it.
fn to_read(resolved: &Resolved) -> Result<(Request, bool)> {
    let target = &resolved.settings.target;
    if target.devices.is_empty() {
        return Ok((
            Request { read_only: true, ..files(&target.dir, target.count, target.size_bytes)? },
            false,
        ));
    }
    check_serials(&resolved.settings, &resolved.facts)?;
    let (mut devices, mut uses, mut mounted) = (Vec::new(), Vec::new(), false);
    for name in &target.devices {
        let found = guard::examine_read_only(name, &resolved.facts)?;
        let path = found.device.path.clone();
        let file = File::open(&path).map_err(|e| Error::os("cannot open", &path, e))?;
        devices.push(MemberSource::Device { path, file, size_bytes: found.device.size_bytes });
        uses.extend(found.flags);
        mounted |= found.mounted;
    }
    let in_use = (!uses.is_empty()).then(|| uses.join(", "));
    Ok((Request { read_only: true, mounted: in_use, ..Request::of_devices(devices) }, mounted))
}

/// The data files of a folder.
pub(in crate::runs::session) fn files(dir: &str, count: u64, size_bytes: u64) -> Result<Request> {
    Ok(Request::of_files(&expand_home(dir)?, count, size_bytes))
}

/// Everything that may refuse does so before anything is made or written.
fn to_write(resolved: &Resolved, attendant: &mut dyn Attendant) -> Result<(Request, Vec<Claim>)> {
    let Resolved { settings, options, facts, .. } = resolved;
    let target = &settings.target;
    let wal = settings.wal.target.as_deref().map(|wal| own_wal(wal, facts)).transpose()?;
    let mut names = target.devices.clone();
    if let Some(OwnWal::Device(name)) = &wal {
        names.push(name.clone());
    }
    refuse_stray_consent(&options.destroy, &names, facts)?;
    check_serials(settings, facts)?;
    refuse_shared_wal(wal.as_ref(), &target.devices, facts)?;
    let mut request = None;
    if target.devices.is_empty() {
        let files = files(&target.dir, target.count, target.size_bytes)?;
        volume::refuse_in_the_way(&files.data, wal.is_some())?;
        request = Some(files);
    }
    if let Some(OwnWal::File(path)) = &wal {
        volume::refuse_foreign(path)?;
    }

    let claims = claim_all(&names, options, facts, attendant)?;
    let mut sources = claims.iter().map(source).collect::<Result<Vec<_>>>()?;
    let wal = match wal {
        Some(OwnWal::File(path)) => Some(MemberSource::File { path }),
        // It was named last.
        Some(OwnWal::Device(_)) => sources.pop(),
        None => None,
    };
    let mut request = request.unwrap_or_else(|| Request::of_devices(sources));
    request.wal = wal;
    refuse_unfit(&request, &claims, resolved)?;
    request.take_lock()?;
    claims.iter().try_for_each(Claim::wipe)?;
    Ok((request, claims))
}

/// Refuses a target that can't do what the settings say, or that takes too much to fill.
fn refuse_unfit(request: &Request, claims: &[Claim], resolved: &Resolved) -> Result<()> {
    let survey = Survey::of(request)?;
    if let Some(target) = &survey.facts {
        // What the demo falls back to is settled once the target is open.
        resolved.on(Some(target), false)?;
    }
    let bytes = bytes_to_fill(&survey, |path| {
        claims.iter().any(|claim| claim.device().path == path && !claim.has_own_fill())
    });
    refuse_over_limit(bytes, resolved.options.written_until_now(), resolved.settings.run.max_writes_bytes)
}

/// Bytes that will be filled: of a device that is to be wiped, all.
pub(in crate::runs::session) fn bytes_to_fill(survey: &Survey, is_wiped: impl Fn(&Path) -> bool) -> u64 {
    let bytes = survey
        .members
        .iter()
        .map(|member| if is_wiped(&member.path) { member.whole_bytes } else { member.missing_bytes });
    bytes.sum()
}
