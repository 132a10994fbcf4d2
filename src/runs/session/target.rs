//! Opening what a run works on: files, guarded devices, or nothing where all is simulated.

use std::fs::File;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::kv;
use super::message::Wanted;
use super::ready::settle;
use super::retained_stack::RetainedStack;
use super::run::{Attendant, Options};
use super::target_stack;
use super::userspace_drives::UserspaceDrives;
use crate::class::Class;
use crate::error::{Error, Result};
use crate::host::{Facts, Levels, TargetFacts};
use crate::load::kv::Store;
use crate::load::volume::header::{Found, Header};
use crate::load::volume::{self, Extent, MemberSource, Region, Request, Survey, Volume, is_ours_at};
use crate::load::workers::RemoteWorkers;
use crate::load::workers::control::Writes;
use crate::meter::layers;
use crate::meter::member::Member;
use crate::settings::Settings;
use crate::settings::knobs::Ground;
use crate::settings::profile::store::expand_home;
use crate::stack::build::Built;
use crate::stack::guard::OwnData;
use crate::stack::guard::{self, Claim, Consent, Examination};
use crate::stack::supervise::Watch;
use crate::units::{MIB, approx_size, format_size};

/// A device must hold a header, and some pages of WAL and data.
pub(super) const DEVICE_BYTES_MIN: u64 = 64 * MIB;
/// Scans of a mounted device are held to this unless a rate is given: somebody works on it.
const MOUNTED_SCAN_BYTES_PER_S: u64 = 100_000_000;

/// What a run works on.
pub struct Target {
    /// The open volume; none where nothing touches storage.
    pub volume: Option<Volume>,
    /// What scan, point and background share.
    pub data: Arc<Region>,
    /// The WAL's region.
    pub wal: Arc<Region>,
    /// The members as the meters know them.
    pub members: Vec<Member>,
    /// The block devices below the members, as they were before any left the kernel.
    pub levels: Levels,
    /// What to know about it, as sentences.
    pub notes: Vec<String>,
    /// Holds devices against other programs as long as the target is open.
    pub claims: Vec<Claim>,
    /// Drives that have left the kernel.
    userspace: Option<UserspaceDrives>,
    /// What was built for it.
    pub built: Option<Built>,
    /// The data set with what its file system can do, where the classes read and write pairs.
    pub pairs: Option<(Arc<Store>, TargetFacts)>,
}

impl Target {
    /// Closes it, and hands over what was built for it.
    pub fn close(self) -> Option<Built> {
        self.built
    }

    /// Of a data set of pairs.
    pub(super) fn of_pairs(
        store: Arc<Store>,
        facts: TargetFacts,
        region: Region,
        member: Member,
        notes: Vec<String>,
    ) -> Self {
        let region = Arc::new(region);
        let members = vec![member];
        Self {
            volume: None,
            data: region.clone(),
            wal: region,
            levels: layers::levels(&members),
            members,
            notes,
            claims: Vec::new(),
            userspace: None,
            built: None,
            pairs: Some((store, facts)),
        }
    }

    /// What it can do; none where nothing touches storage.
    pub fn facts(&self) -> Option<&TargetFacts> {
        let drives = || self.userspace.as_ref().map(UserspaceDrives::facts);
        let pairs = || self.pairs.as_ref().map(|(_, facts)| facts);
        self.volume.as_ref().map(|volume| &volume.facts).or_else(drives).or_else(pairs)
    }

    /// Whether the kernel's page cache can hold anything of it.
    pub fn is_cacheable(&self) -> bool {
        self.volume.is_some() || self.pairs.is_some()
    }

    /// Lets the drives of a target that is filled leave the kernel, where the settings say so.
    ///
    /// # Errors
    /// Refused where something else would go with them. They are given back by then.
    pub fn leave_kernel(&mut self, settings: &Settings, watch: Watch) -> Result<()> {
        let Some(volume) = self.volume.take_if(|_| settings.leaves_kernel()) else { return Ok(()) };
        let facts = volume.facts.clone();
        // Whatever holds them open would keep the kernel's names for them.
        drop(volume);
        let drives = UserspaceDrives::take(std::mem::take(&mut self.claims), facts, settings, watch)?;
        (self.data, self.wal) = (drives.region(&self.data)?, drives.region(&self.wal)?);
        for member in &mut self.members {
            (member.device, member.path) = (None, None);
        }
        self.notes.extend(drives.notes());
        self.userspace = Some(drives);
        Ok(())
    }

    /// The steps by which its drives come back that have left the kernel.
    pub fn steps_back(&self) -> Vec<String> {
        self.userspace.as_ref().map(UserspaceDrives::steps_back).unwrap_or_default()
    }

    /// Where the workers are, if not in this process.
    ///
    /// # Errors
    /// Where the process that they are to be in is gone.
    pub fn remote_workers(&self, writes: &Arc<Writes>) -> Result<Option<Box<dyn RemoteWorkers>>> {
        let regions = (&*self.data, &*self.wal);
        let of = |drives: &UserspaceDrives| drives.remote_workers(regions, self.members.len(), writes);
        self.userspace.as_ref().and_then(of).transpose()
    }

    /// Gives the drives back that have left the kernel, once no worker drives them.
    ///
    /// # Errors
    /// What could not be; it is left to `cleanup`.
    pub fn give_back(&mut self) -> Result<()> {
        self.userspace.take().map_or(Ok(()), UserspaceDrives::give_back)
    }
}

/// Opens the target of the settings, which may change them where it says so (a scan of a mounted
/// device gets a rate). What was built for it stands in `kept` where that fails.
pub fn open(
    settings: &mut Settings,
    options: &Options,
    facts: &Facts,
    attendant: &mut dyn Attendant,
    kept: &mut RetainedStack,
) -> Result<Target> {
    if !settings.touches_storage() {
        return Ok(imagined(settings));
    }
    if settings.stack.is_built() {
        return open_built(settings, options, facts, attendant, kept);
    }
    if settings.is_keyed() {
        refuse_stray_consent(&options.destroy, &[], facts)?;
        return kv::open(settings, options, facts, None, attendant);
    }
    let (request, claims) = if options.read_only {
        (to_read(settings, facts)?, Vec::new())
    } else {
        to_write(settings, options, facts, attendant)?
    };
    Ok(opened(Volume::open(request)?, claims))
}

/// Builds what the target stands on, unless it stands already, and opens that.
fn open_built(
    settings: &Settings,
    options: &Options,
    facts: &Facts,
    attendant: &mut dyn Attendant,
    kept: &mut RetainedStack,
) -> Result<Target> {
    if options.read_only {
        let what = "a stack is built by writing, and --read-only writes nothing";
        return Err(Error::input(what).hint("set stack.* to none, or leave --read-only out"));
    }
    if settings.wal.target.is_some() {
        let what = "wal.target names a place beside the target, and a stack keeps the WAL on itself";
        return Err(Error::input(what).hint("leave wal.target out, or build no stack"));
    }
    let built = if let Some(built) = kept.take_for(settings)? {
        built
    } else {
        check_serials(settings, facts)?;
        refuse_stray_consent(&options.destroy, &settings.target.devices, facts)?;
        target_stack::raise(settings, options, facts, attendant)?
    };
    match open_on(&built, settings, options, facts, attendant) {
        Ok(target) => Ok(Target { built: Some(built), ..target }),
        Err(error) => {
            kept.put(built, settings.clone());
            Err(error)
        }
    }
}

fn open_on(
    built: &Built,
    settings: &Settings,
    options: &Options,
    facts: &Facts,
    attendant: &mut dyn Attendant,
) -> Result<Target> {
    if settings.is_keyed() {
        return kv::open(settings, options, facts, Some(built), attendant);
    }
    let (request, claims) = target_stack::request(built)?;
    refuse_unfit(&request, &claims, settings, options, facts)?;
    Ok(opened(Volume::open(request)?, claims))
}

fn opened(volume: Volume, claims: Vec<Claim>) -> Target {
    let members = volume.members.iter().map(|member| Member {
        name: member.name.clone(),
        device: member.device.then(|| device_number(&member.path)).flatten(),
        path: Some(member.path.clone()),
    });
    let members: Vec<Member> = members.collect();
    let mut notes = volume.notes.clone();
    if let Some(model) = &volume.facts.emulated {
        notes.push(format!("emulated drives ({model}): the figures say nothing of real ones"));
    }
    Target {
        data: Arc::new(volume.data.clone()),
        wal: Arc::new(volume.wal.clone()),
        levels: layers::levels(&members),
        members,
        notes,
        volume: Some(volume),
        claims,
        userspace: None,
        built: None,
        pairs: None,
    }
}

/// Regions without storage, as large as the files would be.
fn imagined(settings: &Settings) -> Target {
    let count = settings.target.count as u32;
    let region = |id, extent_bytes: u64| {
        let extent = |member| Extent { path: PathBuf::new(), identity: None, member, offset_bytes: 0 };
        Arc::new(Region { id, set: 0, extents: (0..count).map(extent).collect(), extent_bytes })
    };
    let size_bytes = settings.target.size_bytes;
    Target {
        volume: None,
        data: region(Region::DATA, size_bytes),
        wal: region(Region::WAL, (size_bytes / 4).next_multiple_of(MIB)),
        members: (0..count)
            .map(|i| Member { name: format!("imagined-{i}"), device: None, path: None })
            .collect(),
        levels: Levels::default(),
        notes: vec![
            if settings.is_simulated() {
                "nothing touches storage: the figures tell of simulated devices"
            } else {
                "nothing touches storage: the figures tell of the generator alone"
            }
            .into(),
        ],
        claims: Vec::new(),
        userspace: None,
        built: None,
        pairs: None,
    }
}

fn device_number(path: &Path) -> Option<(u32, u32)> {
    let number = std::fs::metadata(path).ok()?.rdev();
    Some((rustix::fs::major(number), rustix::fs::minor(number)))
}

fn to_read(settings: &mut Settings, facts: &Facts) -> Result<Request> {
    let request =
        if settings.target.devices.is_empty() { files(settings)? } else { devices_to_read(settings, facts)? };
    Ok(Request { read_only: true, ..request })
}

pub(super) fn files(settings: &Settings) -> Result<Request> {
    let dir = expand_home(&settings.target.dir)?;
    Ok(Request::of_files(&dir, settings.target.count, settings.target.size_bytes))
}

fn devices_to_read(settings: &mut Settings, facts: &Facts) -> Result<Request> {
    let mut devices = Vec::new();
    let mut uses = Vec::new();
    let mut mounted = false;
    check_serials(settings, facts)?;
    for name in &settings.target.devices {
        let found = guard::examine_read_only(name, facts)?;
        let path = found.device.path.clone();
        let file = File::open(&path).map_err(|e| Error::os("cannot open", &path, e))?;
        devices.push(MemberSource::Device { path, file, size_bytes: found.device.size_bytes });
        uses.extend(found.flags);
        mounted |= found.mounted;
    }
    let scan = &mut settings.classes[Class::Scan.index()];
    if mounted && scan.rate_bytes_per_s.is_none() {
        scan.rate_bytes_per_s = Some(MOUNTED_SCAN_BYTES_PER_S);
    }
    let mut request = Request::of_devices(devices);
    request.mounted = (!uses.is_empty()).then(|| uses.join(", "));
    Ok(request)
}

/// Refuses devices, the WAL's own included, that are not those of which the profile has the serials.
///
/// # Errors
/// Input where there is no such device; refused (3) where it has another serial.
pub fn check_serials(settings: &Settings, facts: &Facts) -> Result<()> {
    let devices = facts.find_all(&settings.target.devices)?;
    guard::check_serials(&devices, &settings.target.serials)?;
    match (&settings.wal.target, &settings.wal.serial) {
        (Some(wal), Some(serial)) => guard::check_serials(&[facts.find(wal)?], std::slice::from_ref(serial)),
        _ => Ok(()),
    }
}

/// Where the WAL has a place of its own.
pub(super) enum OwnWal {
    File(PathBuf),
    Device(String),
}

/// Everything that may refuse does so before anything is made or written.
fn to_write(
    settings: &Settings,
    options: &Options,
    facts: &Facts,
    attendant: &mut dyn Attendant,
) -> Result<(Request, Vec<Claim>)> {
    let wal = settings.wal.target.as_deref().map(|wal| own_wal(wal, facts)).transpose()?;
    let mut names = settings.target.devices.clone();
    if let Some(OwnWal::Device(name)) = &wal {
        names.push(name.clone());
    }
    refuse_stray_consent(&options.destroy, &names, facts)?;
    check_serials(settings, facts)?;
    refuse_shared_wal(wal.as_ref(), &settings.target.devices, facts)?;
    let mut request = if settings.target.devices.is_empty() { Some(files(settings)?) } else { None };
    if let Some(request) = &request {
        volume::refuse_in_the_way(&request.data, wal.is_some())?;
    }
    if let Some(OwnWal::File(path)) = &wal {
        volume::refuse_foreign(path)?;
    }

    let claims = claim_all(&names, options, facts, attendant)?;
    let mut sources = claims.iter().map(target_stack::source).collect::<Result<Vec<_>>>()?;
    let wal = match wal {
        Some(OwnWal::File(path)) => Some(MemberSource::File { path }),
        // It was named last.
        Some(OwnWal::Device(_)) => sources.pop(),
        None => None,
    };
    let mut request = request.take().unwrap_or_else(|| Request::of_devices(sources));
    request.wal = wal;
    refuse_unfit(&request, &claims, settings, options, facts)?;
    request.take_lock()?;
    claims.iter().try_for_each(Claim::wipe)?;
    Ok((request, claims))
}

/// Refuses a target that can't do what the settings say, or that takes too much to fill.
fn refuse_unfit(
    request: &Request,
    claims: &[Claim],
    settings: &Settings,
    options: &Options,
    facts: &Facts,
) -> Result<()> {
    let survey = Survey::of(request)?;
    if let Some(target) = &survey.facts {
        // On a copy: what the demo falls back to is said once the target is open.
        settle(&mut settings.clone(), Ground { facts, target: Some(target) }, options, &mut Vec::new())?;
    }
    let written_bytes = options.written_bytes.load(Ordering::Relaxed);
    refuse_over_limit(bytes_to_fill(&survey, claims), written_bytes, settings)
}

/// Bytes that will be filled: of a device that is to be wiped, all.
fn bytes_to_fill(survey: &Survey, claims: &[Claim]) -> u64 {
    let bytes = survey.members.iter().map(|member| {
        let wiped = claims.iter().any(|claim| claim.device().path == member.path && !claim.has_own_fill());
        if wiped { member.whole_bytes } else { member.missing_bytes }
    });
    bytes.sum()
}

/// Refuses a WAL on a device that holds data already.
pub(super) fn refuse_shared_wal(wal: Option<&OwnWal>, devices: &[String], facts: &Facts) -> Result<()> {
    let Some(OwnWal::Device(wal)) = wal else { return Ok(()) };
    for device in devices {
        if facts.same_device(wal, device)? {
            let what = format!("wal.target: {wal} is a device of the target already");
            return Err(Error::input(what).hint("leave wal.target out: each device has a region for the WAL"));
        }
    }
    Ok(())
}

/// Refuses to fill so much that, with what is written already, it is more than `run.max_writes`.
pub(super) fn refuse_over_limit(bytes: u64, written_bytes: u64, settings: &Settings) -> Result<()> {
    match settings.run.max_writes_bytes {
        Some(limit) if bytes > 0 && written_bytes.saturating_add(bytes) > limit => {
            let (needs, limit) = (approx_size(bytes), format_size(limit));
            let written = match written_bytes {
                0 => String::new(),
                bytes => format!(", of which {} are written", approx_size(bytes)),
            };
            Err(Error::input(format!(
                "filling the target takes {needs}, and run.max_writes is {limit}{written}"
            ))
            .hint("a smaller target, or a higher limit: --set run.max_writes=…"))
        }
        _ => Ok(()),
    }
}

pub(super) fn own_wal(wal: &str, facts: &Facts) -> Result<OwnWal> {
    let path = expand_home(wal)?;
    let is_device = std::fs::metadata(&path).is_ok_and(|metadata| metadata.file_type().is_block_device());
    // A file made under /dev takes memory, and is a mistyped device.
    let among_devices = path.starts_with("/dev") && !path.starts_with("/dev/shm") && !path.exists();
    match facts.find(wal) {
        Err(error) if is_device || among_devices => Err(error),
        Err(_) => Ok(OwnWal::File(path)),
        Ok(_) => Ok(OwnWal::Device(wal.to_owned())),
    }
}

/// Consent for a device that is not of the target is a mistake: maybe another one was meant.
pub fn refuse_stray_consent(destroy: &[String], names: &[String], facts: &Facts) -> Result<()> {
    for named in destroy {
        let is_of_target = |name: &String| facts.same_device(named, name).unwrap_or(false);
        if facts.find(named).is_ok() && !names.iter().any(is_of_target) {
            return Err(Error::input(format!("--destroy {named}: it is not a device of this target"))
                .hint("name a device of the profile's target, or leave --destroy out"));
        }
    }
    Ok(())
}

/// Claims devices that the guard permits, with the operator's consent where they hold anything.
/// Nothing is written.
fn claim_all(
    names: &[String],
    options: &Options,
    facts: &Facts,
    attendant: &mut dyn Attendant,
) -> Result<Vec<Claim>> {
    let mut consent = Consent::named(&options.destroy, facts)?.and_typed(&options.typed);
    let examined: Vec<_> = names
        .iter()
        .map(|name| guard::examine(name, facts, DEVICE_BYTES_MIN, &OursCheck))
        .collect::<Result<_>>()?;
    let wanted: Vec<_> =
        examined.iter().filter(|e| guard::permit((*e).clone(), &consent).is_err()).map(wanted).collect();
    let typed = if wanted.is_empty() { None } else { attendant.consent(wanted) };
    let at_screen = typed.is_some();
    consent = consent.and_typed(&typed.unwrap_or_default());
    let permits = examined.into_iter().map(|examination| guard::permit(examination, &consent));
    let permits: Vec<_> = permits
        .collect::<Result<_>>()
        .map_err(|error| if at_screen { target_stack::not_typed(error) } else { error })?;
    permits.into_iter().map(guard::Permit::open).collect()
}

/// Refuses what the operator did not allow of what a run of these settings destroys, as things are.
/// What else speaks against the run is not looked for.
///
/// # Errors
/// Refused (3), naming the device.
pub fn refuse_unallowed(settings: &Settings, options: &Options, facts: &Facts) -> Result<()> {
    if options.read_only || !settings.touches_storage() {
        return Ok(());
    }
    let destroy = destroy_of(&options.destroy, settings, facts);
    let consent = Consent::named(&destroy, facts)?.and_typed(&options.typed);
    if settings.stack.is_built() {
        let Ok(plan) = target_stack::planned(settings, facts, None) else { return Ok(()) };
        return plan.confirm(&consent).map(drop);
    }
    let mut examined = names_of(settings, facts).into_iter().filter_map(|name| {
        // A file of the WAL's own is no device.
        guard::examine(&name, facts, DEVICE_BYTES_MIN, &OursCheck).ok()
    });
    examined.try_for_each(|examination| guard::permit(examination, &consent).map(drop))
}

/// Of devices that may be destroyed, those that are of the settings' target.
pub fn destroy_of(destroy: &[String], settings: &Settings, facts: &Facts) -> Vec<String> {
    let names = names_of(settings, facts);
    let is_of_target =
        |named: &&String| names.iter().any(|name| facts.same_device(named, name).unwrap_or(false));
    destroy.iter().filter(is_of_target).cloned().collect()
}

/// The devices that the settings name, the WAL's own included.
pub fn names_of(settings: &Settings, facts: &Facts) -> Vec<String> {
    let wal = settings.wal.target.iter().filter(|name| facts.find(name).is_ok());
    settings.target.devices.iter().chain(wal).cloned().collect()
}

fn wanted(examination: &Examination) -> Wanted {
    let device = &examination.device;
    Wanted {
        typed: examination.to_type().to_owned(),
        path: device.path.clone(),
        model: device.model.clone(),
        serial: device.serial.clone(),
        size_bytes: device.size_bytes,
        content: examination.content.clone(),
    }
}

/// Tells the guard what stacktune wrote itself.
pub(super) struct OursCheck;

impl OwnData for OursCheck {
    fn header(&self, head: &[u8]) -> bool {
        header_in(head).is_some()
    }

    fn says_filled(&self, head: &[u8], offset: u64) -> bool {
        header_in(head).is_some_and(|header| header.says_filled(offset))
    }

    fn page(&self, _: &File, offset: u64, page: &[u8]) -> bool {
        let sector_is_ours = |(i, sector): (usize, &[u8])| {
            is_ours_at(sector, offset + (i * volume::SECTOR_BYTES) as u64)
                || (offset < volume::layout::HEADER_BYTES && sector.iter().all(|byte| *byte == 0))
        };
        page.chunks(volume::SECTOR_BYTES).enumerate().all(sector_is_ours)
    }
}

fn header_in(head: &[u8]) -> Option<Header> {
    let copy = |at: &u64| head.get(*at as usize..*at as usize + volume::header::COPY_BYTES);
    let copies: Vec<&[u8]> = volume::header::COPIES_AT.iter().filter_map(copy).collect();
    match Found::of(&copies) {
        Found::Valid(header) => Some(header),
        Found::Damaged | Found::Absent => None,
    }
}
