//! Opening what a run works on: files, guarded devices, or nothing where all is simulated.

use std::fs::File;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::message::Wanted;
use super::run::{Attendant, Options};
use crate::class::Class;
use crate::error::{Error, Result};
use crate::host::{Facts, TargetFacts};
use crate::meter::meters::Member;
use crate::profile::settings::{Interface, Settings};
use crate::profile::store::expand_home;
use crate::stack::Ours;
use crate::stack::guard::{self, Claim, Consent, Examination};
use crate::units::MIB;
use crate::volume::header::Header;
use crate::volume::{self, Extent, MemberSource, Region, Request, Volume, is_ours_at};

/// A device must hold a header, and some pages of WAL and data.
const DEVICE_BYTES_MIN: u64 = 64 * MIB;
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
    /// What to know about it, as sentences.
    pub notes: Vec<String>,
    /// Holds devices against other programs as long as the target is open.
    _claims: Vec<Claim>,
}

impl Target {
    /// What it can do; none where nothing touches storage.
    pub fn facts(&self) -> Option<&TargetFacts> {
        self.volume.as_ref().map(|volume| &volume.facts)
    }
}

/// Whether any class that could run touches storage.
pub fn touches_storage(settings: &Settings) -> bool {
    let virtual_only = |class| matches!(settings.interface_of(class), Interface::Null | Interface::Sim);
    !Class::ALL.into_iter().all(virtual_only)
}

/// Opens the target of the settings, which may change them where it says so (a scan of a mounted
/// device gets a rate).
pub fn open(
    settings: &mut Settings,
    options: &Options,
    facts: &Facts,
    attendant: &mut dyn Attendant,
) -> Result<Target> {
    if !touches_storage(settings) {
        return Ok(imagined(settings));
    }
    let mut claims = Vec::new();
    let mut request = if settings.target.devices.is_empty() {
        let dir = expand_home(&settings.target.dir)?;
        Request::of_files(&dir, settings.target.count, settings.target.size_bytes)
    } else if options.read_only {
        read_only_devices(settings, facts)?
    } else {
        Request::of_devices(guarded(
            &settings.target.devices,
            settings,
            options,
            facts,
            attendant,
            &mut claims,
        )?)
    };
    request.read_only = options.read_only;
    request.wal = match settings.wal.target.clone() {
        Some(wal) if !options.read_only => {
            Some(wal_source(&wal, settings, options, facts, attendant, &mut claims)?)
        }
        _ => None,
    };
    let volume = Volume::open(request)?;
    let members = volume.members.iter().map(|member| Member {
        name: member.name.clone(),
        device: member.device.then(|| device_number(&member.path)).flatten(),
    });
    Ok(Target {
        data: Arc::new(volume.data.clone()),
        wal: Arc::new(volume.wal.clone()),
        members: members.collect(),
        notes: volume.notes.clone(),
        volume: Some(volume),
        _claims: claims,
    })
}

/// Regions without storage, as large as the files would be.
fn imagined(settings: &Settings) -> Target {
    let count = settings.target.count as u32;
    let region = |id, extent_bytes: u64| {
        let extent = |member| Extent { path: PathBuf::new(), member, offset_bytes: 0 };
        Arc::new(Region { id, set: 0, extents: (0..count).map(extent).collect(), extent_bytes })
    };
    let size_bytes = settings.target.size_bytes;
    Target {
        volume: None,
        data: region(Region::DATA, size_bytes),
        wal: region(Region::WAL, (size_bytes / 4).next_multiple_of(MIB)),
        members: (0..count).map(|i| Member { name: format!("imagined-{i}"), device: None }).collect(),
        notes: vec!["nothing touches storage: the figures tell of the generator alone".into()],
        _claims: Vec::new(),
    }
}

fn device_number(path: &Path) -> Option<(u32, u32)> {
    let number = std::fs::metadata(path).ok()?.rdev();
    Some((rustix::fs::major(number), rustix::fs::minor(number)))
}

fn read_only_devices(settings: &mut Settings, facts: &Facts) -> Result<Request> {
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

fn check_serials(settings: &Settings, facts: &Facts) -> Result<()> {
    let devices = facts.find_all(&settings.target.devices)?;
    guard::check_serials(&devices, &settings.target.serials)
}

/// Devices that the guard permits, with the operator's consent where they hold anything.
fn guarded(
    names: &[String],
    settings: &Settings,
    options: &Options,
    facts: &Facts,
    attendant: &mut dyn Attendant,
    claims: &mut Vec<Claim>,
) -> Result<Vec<MemberSource>> {
    check_serials(settings, facts)?;
    let examined: Vec<_> = names
        .iter()
        .map(|name| guard::examine(name, facts, DEVICE_BYTES_MIN, &OursCheck))
        .collect::<Result<_>>()?;
    let mut consents = vec![Consent::named(&options.destroy, facts)?];
    let wanted: Vec<_> =
        examined.iter().filter(|e| guard::permit((*e).clone(), &consents[0]).is_err()).map(wanted).collect();
    if !wanted.is_empty()
        && let Some(typed) = attendant.consent(wanted)
    {
        consents.extend(typed.iter().map(|text| Consent::typed(text)));
    }
    let mut sources = Vec::new();
    for examination in examined {
        let permitted = consents.iter().find_map(|consent| guard::permit(examination.clone(), consent).ok());
        let permit = match permitted {
            Some(permit) => permit,
            None => guard::permit(examination, &consents[0])?,
        };
        let claim = permit.open()?;
        claim.wipe()?;
        let device = claim.device();
        let file = claim.file().try_clone().map_err(|e| Error::os("cannot hold", &device.path, e))?;
        sources.push(MemberSource::Device { path: device.path.clone(), file, size_bytes: device.size_bytes });
        claims.push(claim);
    }
    Ok(sources)
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

fn wal_source(
    wal: &str,
    settings: &Settings,
    options: &Options,
    facts: &Facts,
    attendant: &mut dyn Attendant,
    claims: &mut Vec<Claim>,
) -> Result<MemberSource> {
    let path = expand_home(wal)?;
    let is_device = std::fs::metadata(&path).is_ok_and(|metadata| metadata.file_type().is_block_device());
    if !is_device {
        return Ok(MemberSource::File { path });
    }
    let [device] = &facts.find_all(&[wal.to_owned()])?[..] else {
        return Err(Error::input(format!("{wal} is no block device that this host knows")));
    };
    if facts.find_all(&settings.target.devices)?.iter().any(|data| data.path == device.path) {
        let what = format!("wal.target: {wal} is a device of the target already");
        return Err(Error::input(what).hint("leave wal.target out: each device has a region for the WAL"));
    }
    // Serials go along with the data devices; the WAL's own device has none recorded.
    let unrecorded = Settings {
        target: crate::profile::settings::Target {
            devices: vec![wal.to_owned()],
            serials: Vec::new(),
            ..settings.target.clone()
        },
        ..settings.clone()
    };
    let mut sources = guarded(&[wal.to_owned()], &unrecorded, options, facts, attendant, claims)?;
    sources.pop().ok_or_else(|| Error::failed(format!("{wal} could not be opened")))
}

/// Tells the guard what stacktune wrote itself.
struct OursCheck;

impl Ours for OursCheck {
    fn header(&self, head: &[u8]) -> bool {
        volume::header::COPIES_AT
            .iter()
            .filter_map(|&at| head.get(at as usize..at as usize + volume::header::COPY_BYTES))
            .any(|copy| Header::decode(copy).is_some())
    }

    fn page(&self, _: &File, offset: u64, page: &[u8]) -> bool {
        let sector_is_ours = |(i, sector): (usize, &[u8])| {
            is_ours_at(sector, offset + (i * volume::SECTOR_BYTES) as u64)
                || (offset < volume::layout::HEADER_BYTES && sector.iter().all(|byte| *byte == 0))
        };
        page.chunks(volume::SECTOR_BYTES).enumerate().all(sector_is_ours)
    }
}
