//! Files and devices that the classes read and write in pages: opening them behind the guard, and filling them.

use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::layout::Layout;
use super::spec::PagesSpec;
use crate::error::{Error, Result};
use crate::host::{Facts, TargetFacts};
use crate::load::volume::{self, MemberSource, Progress, Request, Survey, Volume};
use crate::runs::pitfalls::Prepared;
use crate::runs::session::attendant::Attendant;
use crate::runs::session::opening::consent::{
    OwnWal, check_serials, claim_all, own_wal, refuse_shared_wal, refuse_stray_consent, source,
};
use crate::runs::session::opening::write_maps;
use crate::runs::session::options::Options;
use crate::runs::session::write_budget::WriteBudget;
use crate::settings::paths::expand_home;
use crate::stack::guard::{self, Claim};
use crate::units::approx_span;

/// A shorter fill is over before anybody has read its duration.
const SHOWN_S: f64 = 3.0;

/// An open volume. Dropping it closes the volume before the claims on its devices end.
pub struct Pages {
    pub(super) volume: Volume,
    /// Locks devices against other programs while the target is open.
    pub(super) claims: Vec<Claim>,
    pub(super) layout: Layout,
    /// Whether others use the devices, which are then only read.
    pub(super) mounted: bool,
    /// How it was last written to make it ready.
    pub(super) last: Prepared,
}

/// Files or devices that can be opened. The claims lock the devices that will be written.
pub(in crate::runs::session) struct FoundPages {
    request: Request,
    claims: Vec<Claim>,
    /// The survey of content that will be written; none for content that is only read.
    survey: Option<Survey>,
    /// Whether the devices' content is replaced: their old headers are wiped, and the files' folder is locked.
    takes_over: bool,
    mounted: bool,
}

impl FoundPages {
    /// Examines files or devices as they are.
    pub fn look(
        spec: &PagesSpec,
        options: &Options,
        facts: &Facts,
        attendant: &mut dyn Attendant,
    ) -> Result<Self> {
        if options.read_only {
            let (request, mounted) = to_read(spec, facts)?;
            return Ok(Self { request, claims: Vec::new(), survey: None, takes_over: false, mounted });
        }
        let (request, claims) = to_write(spec, options, facts, attendant)?;
        Ok(Self { takes_over: true, ..Self::look_built((request, claims))? })
    }

    /// Examines the content of a stack.
    pub fn look_built((request, claims): (Request, Vec<Claim>)) -> Result<Self> {
        let survey = Some(Survey::of(&request)?);
        Ok(Self { request, claims, survey, takes_over: false, mounted: false })
    }

    /// Its abilities, if they are known before it is open.
    pub fn facts(&self) -> Option<&TargetFacts> {
        self.survey.as_ref().and_then(|survey| survey.facts.as_ref())
    }

    /// Bytes that will be filled.
    pub fn bytes_to_fill(&self) -> u64 {
        let claims = &self.claims;
        let is_wiped =
            |path: &Path| claims.iter().any(|claim| claim.device().path == path && !claim.has_own_fill());
        self.survey.as_ref().map_or(0, |survey| bytes_to_fill(survey, is_wiped))
    }

    /// Opens it.
    pub fn open(mut self) -> Result<Pages> {
        if self.takes_over {
            self.request.take_lock()?;
            self.claims.iter().try_for_each(Claim::wipe)?;
        }
        let mounted = self.mounted;
        Ok(Pages { mounted, ..Pages::of(Volume::open(self.request)?, self.claims) })
    }
}

impl Pages {
    fn of(volume: Volume, claims: Vec<Claim>) -> Self {
        Self { layout: Layout::of_volume(&volume), volume, claims, mounted: false, last: Prepared::Earlier }
    }

    /// The data set.
    pub(in crate::runs::session) fn set(&self) -> u64 {
        self.volume.set
    }

    /// Keeps a map of writes, with pages of these sizes in data and WAL.
    ///
    /// # Errors
    /// In words, why it can't be kept.
    pub(in crate::runs::session) fn keep_map(
        &mut self,
        page_bytes: [u64; 2],
    ) -> std::result::Result<(), String> {
        write_maps::keep(&mut self.volume, page_bytes)
    }

    /// Whether the data is on plain devices, the first member being one of the data's.
    pub(super) fn is_on_devices(&self) -> bool {
        self.volume.members.first().is_some_and(|member| member.device)
    }

    /// Fills what is missing, and adds the bytes to those written. Returns how long it took, if it did anything.
    ///
    /// # Errors
    /// Interrupted if the attendant ends it.
    pub(super) fn fill(
        &mut self,
        budget: &WriteBudget,
        attendant: &mut dyn Attendant,
    ) -> Result<Option<Duration>> {
        let volume = &mut self.volume;
        let Some(whole) = volume.missing_fill() else { return Ok(None) };
        budget.refuse(whole.bytes)?;
        attendant.passing(&format!("{whole}; the rate of its first half second shows how long it takes"));
        let (stop, began) = (AtomicBool::new(false), Instant::now());
        let (start, rest) = volume.measure_fill(&stop)?;
        budget.add(start.written_bytes);
        let Some(rest) = rest else { return Ok(Some(began.elapsed())) };
        if let Some(seconds) = rest.time_s().filter(|seconds| *seconds >= SHOWN_S) {
            attendant.passing(&format!("filling takes about {} more", approx_span(seconds)));
        }
        let mut progress = |progress: Progress| {
            // As a share of the whole fill, including the measured start.
            let (done_bytes, all_bytes) = (progress.done_bytes + start.written_bytes, whole.bytes);
            let rate_bytes_per_s = done_bytes as f64 / began.elapsed().as_secs_f64();
            if !attendant.progress(Progress { done_bytes, all_bytes, rate_bytes_per_s, ..progress }) {
                stop.store(true, Ordering::Relaxed);
            }
        };
        let end = volume.fill(&mut progress, &stop)?;
        budget.add(end.written_bytes);
        if end.complete { Ok(Some(began.elapsed())) } else { Err(Error::interrupted("the fill was stopped")) }
    }
}

impl Pages {
    /// Whether a fill is due, to be followed by random pages; refuses in advance if both together exceed the budget.
    pub(super) fn refuse_scattered(&self, budget: &WriteBudget) -> Result<bool> {
        let Some(fill) = self.volume.missing_fill() else { return Ok(false) };
        budget.refuse(fill.bytes + self.volume.scattered_bytes())?;
        Ok(true)
    }

    /// Overwrites the filled part with random pages of twice its size, and adds the bytes to those written.
    ///
    /// # Errors
    /// Interrupted if the attendant ends it.
    pub(super) fn scatter(&mut self, budget: &WriteBudget, attendant: &mut dyn Attendant) -> Result<()> {
        let stop = AtomicBool::new(false);
        let mut progress = |progress: Progress| {
            if !attendant.progress(progress) {
                stop.store(true, Ordering::Relaxed);
            }
        };
        let written = self.volume.scatter(&mut progress, &stop)?;
        budget.add(written.written_bytes);
        if written.complete { Ok(()) } else { Err(Error::interrupted("the random pages were stopped")) }
    }
}

/// The request for reading only, and whether somebody works on the target.
fn to_read(spec: &PagesSpec, facts: &Facts) -> Result<(Request, bool)> {
    let target = &spec.target;
    if target.devices.is_empty() {
        return Ok((
            Request { read_only: true, ..files(&target.dir, target.count, target.size_bytes)? },
            false,
        ));
    }
    check_serials(target, &spec.wal, facts)?;
    let (mut devices, mut uses, mut mounted) = (Vec::new(), Vec::new(), false);
    for name in &target.devices {
        let found = guard::examine_read_only(name, facts)?;
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

/// The request for writing, once the guard permits it.
fn to_write(
    spec: &PagesSpec,
    options: &Options,
    facts: &Facts,
    attendant: &mut dyn Attendant,
) -> Result<(Request, Vec<Claim>)> {
    let target = &spec.target;
    let wal = spec.wal.target.as_deref().map(|wal| own_wal(wal, facts)).transpose()?;
    let mut names = target.devices.clone();
    if let Some(OwnWal::Device(name)) = &wal {
        names.push(name.clone());
    }
    refuse_stray_consent(&options.destroy, &names, facts)?;
    check_serials(target, &spec.wal, facts)?;
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
        // The WAL's device was named last.
        Some(OwnWal::Device(_)) => sources.pop(),
        None => None,
    };
    let mut request = request.unwrap_or_else(|| Request::of_devices(sources));
    request.wal = wal;
    Ok((request, claims))
}

/// Bytes that will be filled: all of a device that is to be wiped.
pub(in crate::runs::session) fn bytes_to_fill(survey: &Survey, is_wiped: impl Fn(&Path) -> bool) -> u64 {
    let bytes = survey
        .members
        .iter()
        .map(|member| if is_wiped(&member.path) { member.whole_bytes } else { member.missing_bytes });
    bytes.sum()
}
