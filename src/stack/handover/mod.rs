//! Drives that leave the kernel for a program of user space, and are given back: their PCI function is
//! bound to `vfio-pci` instead of `nvme`.
//!
//! The guard looks at everything that would go with the drive: all namespaces of its controller, and
//! all devices of its IOMMU group. The way back is in the journal before anything is unbound.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::error::{Error, Result, describe};
use crate::host::{Device, Facts};
use crate::stack::devices::Drive;
use crate::stack::guard::{Claim, holders, refuse_used};
use crate::stack::id::StackId;
use crate::stack::journal::{Journal, Undo};
use crate::stack::runner::{Runner, Tool};
use crate::stack::supervise::{Advance, Watch};

/// Loads kernel modules.
const MODPROBE: Tool = Tool { program: "modprobe", package: "kmod" };
/// The driver that gives devices to programs.
const VFIO_PCI: &str = "vfio-pci";
/// The kernel's own driver.
const NVME: &str = "nvme";
/// PCI's class code of an NVM Express controller, and the one of bridges, which belong to no one.
const CLASS_NVME: &str = "0x010802";
const CLASS_BRIDGE: &str = "0x0604";
/// After a bind the kernel's driver starts the controller, and then names its namespaces.
const PATIENCE: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(20);

/// PCI functions in sysfs.
#[derive(Debug, Clone)]
struct Bus {
    root: PathBuf,
}

impl Default for Bus {
    fn default() -> Self {
        Self { root: PathBuf::from("/sys") }
    }
}

/// A namespace of a drive that a program drives by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// The drive, as the kernel had it.
    pub drive: Drive,
    /// Its PCI address: `0000:01:00.0`.
    pub address: String,
    /// The namespace's number on its controller.
    pub namespace: u32,
    /// Its names that stay, as they were: udev's.
    pub by_id: Vec<PathBuf>,
    /// Whether no IOMMU will keep it from memory that is not its own.
    pub unkept: bool,
}

/// Whether the operator accepts VFIO's unsafe mode, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Noiommu {
    /// No: a drive that no IOMMU keeps from any memory stays with the kernel.
    Refused,
    /// Yes.
    Accepted,
}

impl Given {
    /// Whether there is nothing at its address any more: it was pulled.
    fn gone(&self) -> bool {
        !Bus::default().device(&self.address).exists()
    }
}

fn bind_step(address: &str, given: &[Given]) -> String {
    let unkept = given.iter().any(|given| given.unkept && given.address == address);
    let warning = if unkept { ", with no IOMMU: an error of it can overwrite any memory here" } else { "" };
    format!("bind {address} to {VFIO_PCI}{warning}")
}

/// Drives that were handed over. Given back when this is dropped, and told by [`HandedOver::give_back`].
#[derive(Debug)]
pub struct HandedOver {
    given: Vec<Given>,
    journal: Option<Journal>,
}

/// Finds where drives are on the bus that are to leave the kernel together, and whether they can.
/// Whether they themselves are in use is not looked at. Nothing is changed.
///
/// # Errors
/// Input where a drive is no NVMe drive on PCI; refused (3) where something else would go with it, or
/// where no IOMMU keeps it from memory that is not its own.
pub fn examine(drives: &[&Device], noiommu: Noiommu) -> Result<Vec<Given>> {
    let devices = Facts::read_devices();
    let bus = Bus::default();
    drives.iter().map(|drive| bus.examine(drive, drives, &devices, noiommu)).collect()
}

/// The steps of handing drives over, in order, as they are told while it goes on.
pub fn steps(given: &[Given]) -> Vec<String> {
    let load = (!Bus::default().has_vfio_pci()).then(|| format!("{} {VFIO_PCI}", MODPROBE.program));
    let binds = last_first(given).into_iter().map(|address| bind_step(address, given));
    load.into_iter().chain(binds).collect()
}

/// Hands drives over that are claimed, and whose claims end by that. What was opened of them before is
/// of no use any more. `watch` is told each step before it is taken, and whether it may be.
///
/// # Errors
/// As [`examine`]; interrupted where `watch` ends it; and where the kernel does not bind them, which
/// is undone by then.
pub fn hand_over(
    claims: Vec<Claim>,
    noiommu: Noiommu,
    state_dir: &Path,
    profile: &str,
    watch: Watch,
) -> Result<HandedOver> {
    let drives: Vec<&Device> = claims.iter().map(Claim::device).collect();
    let given = examine(&drives, noiommu)?;
    let bus = Bus::default();
    let mut told = Told { steps: steps(&given).len(), step: 0, watch };
    if !bus.has_vfio_pci() {
        told.next(&format!("{} {VFIO_PCI}", MODPROBE.program))?;
        Runner::default().run_well(MODPROBE, &[VFIO_PCI.as_ref()])?;
    }
    let drives: Vec<Drive> = given.iter().map(|given| given.drive.clone()).collect();
    let mut journal = Journal::begin(state_dir, &StackId::random(), profile, &drives)?;
    // From here on nothing may hold them: the kernel waits for whoever does.
    drop(claims);
    let bound = last_first(&given).into_iter().try_for_each(|address| {
        let step = bind_step(address, &given);
        told.next(&step)?;
        let undo = Undo::GiveBack { address: address.to_owned() };
        journal.act(&step, Some(undo), || bus.bind(address, VFIO_PCI))
    });
    let handed = HandedOver { given, journal: Some(journal) };
    match bound {
        Ok(()) => Ok(handed),
        Err(error) => Err(match handed.give_back() {
            Ok(()) => error,
            Err(left) => Error { what: format!("{}; and then {}", error.what, left.what), ..error },
        }),
    }
}

/// Who watches, and how far it is.
struct Told<'a> {
    step: usize,
    steps: usize,
    watch: Watch<'a>,
}

impl Told<'_> {
    fn next(&mut self, command: &str) -> Result<()> {
        let (step, steps, command) = (self.step, self.steps, command.to_owned());
        self.step += 1;
        if (self.watch)(&Advance { step, steps, command, undoing: false, bytes: None, left_s: None }) {
            return Ok(());
        }
        Err(Error::interrupted("handing the drives over was stopped").hint("the kernel has them back"))
    }
}

/// The functions, those of the kernel's last names first: given back in reverse, they get the names
/// again that they had.
fn last_first(given: &[Given]) -> Vec<&str> {
    let mut named: Vec<_> = given
        .iter()
        .map(|given| (given.drive.name.len(), &given.drive.name, given.address.as_str()))
        .collect();
    named.sort_unstable();
    let mut addresses: Vec<&str> = Vec::new();
    for (.., address) in named.into_iter().rev() {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    addresses
}

impl HandedOver {
    /// What was handed over, in the order of the claims.
    pub fn given(&self) -> &[Given] {
        &self.given
    }

    /// The steps of giving everything back, in order.
    pub fn steps_back(&self) -> Vec<String> {
        let back = |address: &str| format!("give {address} back to {NVME}");
        last_first(&self.given).into_iter().rev().map(back).collect()
    }

    /// Gives everything back to the kernel. Whoever drives the drives has to have let go of them.
    ///
    /// # Errors
    /// What could not be; it stays in the journal, for `cleanup`.
    pub fn give_back(mut self) -> Result<()> {
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        let Some(mut journal) = self.journal.take() else { return Ok(()) };
        let mut outcome = Ok(());
        for number in (0..journal.record().entries.len()).rev() {
            let Some(Undo::GiveBack { address }) = journal.record().entries[number].to_undo().cloned() else {
                continue;
            };
            match give_back(&address) {
                Ok(()) => journal.undone(number as u64),
                Err(error) => outcome = outcome.and(Err(error)),
            }
        }
        outcome?;
        self.await_names();
        journal.end()
    }

    /// Waits a little for the names that drives had: udev makes them anew, and whoever opens them next
    /// goes by them. One that does not come is missed by whoever looks for it.
    fn await_names(&self) {
        let ends = Instant::now() + PATIENCE / 4;
        let is_there = |given: &Given| {
            let names = || std::iter::once(&given.drive.path).chain(&given.by_id);
            given.gone() || names().all(|name| name.exists())
        };
        while !self.given.iter().all(is_there) && Instant::now() < ends {
            std::thread::sleep(LOOK);
        }
    }
}

impl Drop for HandedOver {
    fn drop(&mut self) {
        // What can't be given back is in the journal.
        let _ = self.end();
    }
}

/// Gives a function back to the kernel's driver, if it is still where stacktune put it; once more does
/// nothing.
pub(crate) fn give_back(address: &str) -> Result<()> {
    Bus::default().give_back(address)
}

/// The commands that do the same by hand; none where there is nothing to do.
pub(crate) fn commands(address: &str) -> Vec<String> {
    let bus = Bus::default();
    if !is_address(address) || !bus.is_ours(address) {
        return Vec::new();
    }
    let device = bus.device(address);
    let mut commands = vec![format!("echo > {}/driver_override", device.display())];
    if bus.driver(address).is_some() {
        commands.push(format!("echo {address} > {}/driver/unbind", device.display()));
    }
    commands.push(format!("echo {address} > /sys/bus/pci/drivers_probe"));
    commands
}

fn is_address(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_hexdigit() || c == ':' || c == '.';
    !text.is_empty() && text.starts_with(|c: char| c.is_ascii_hexdigit()) && text.chars().all(plain)
}

impl Bus {
    fn device(&self, address: &str) -> PathBuf {
        self.root.join("bus/pci/devices").join(address)
    }

    fn text(&self, address: &str, file: &str) -> Option<String> {
        let text = fs::read_to_string(self.device(address).join(file)).ok()?;
        Some(text.trim().to_owned())
    }

    /// The name of the driver that a function is bound to.
    fn driver(&self, address: &str) -> Option<String> {
        last_of(&fs::read_link(self.device(address).join("driver")).ok()?)
    }

    /// Whether it is as [`Self::bind`] leaves it, or on the way there.
    fn is_ours(&self, address: &str) -> bool {
        self.text(address, "driver_override").as_deref() == Some(VFIO_PCI)
    }

    fn has_vfio_pci(&self) -> bool {
        self.root.join("bus/pci/drivers").join(VFIO_PCI).exists()
    }

    fn examine(
        &self,
        device: &Device,
        together: &[&Device],
        devices: &[Device],
        noiommu: Noiommu,
    ) -> Result<Given> {
        let path = device.path.display();
        let address = self.address_of(device)?;
        let controller = device.controller.as_deref();
        let goes = |name: &str| together.iter().any(|device| device.name == name);
        // Those that go were looked at by the guard.
        for beside in devices.iter().filter(|beside| beside.controller.as_deref() == controller) {
            if !goes(&beside.name) {
                refuse_used(&beside.path, &beside.usage)?;
            }
        }
        let addresses: Vec<String> =
            together.iter().filter_map(|device| self.address_of(device).ok()).collect();
        let unkept = !self.device(&address).join("iommu_group").exists();
        if !unkept || noiommu == Noiommu::Refused {
            self.refuse_shared(&address, &path.to_string(), &addresses)?;
        }
        let nsid = self.root.join("block").join(&device.name).join("nsid");
        let namespace = fs::read_to_string(&nsid).map_err(|error| Error::os("cannot read", &nsid, error))?;
        let namespace = namespace
            .trim()
            .parse()
            .map_err(|_| Error::failed(format!("{} does not hold a number", nsid.display())))?;
        let by_id = device.by_id.iter().map(PathBuf::from).collect();
        Ok(Given { drive: Drive::of(device), address, namespace, by_id, unkept })
    }

    /// The PCI address of an NVMe drive.
    fn address_of(&self, device: &Device) -> Result<String> {
        let path = device.path.display();
        let no_nvme = || {
            Error::input(format!("{path} is not an NVMe drive on PCI Express"))
                .hint("only such a drive can be driven from user space")
        };
        let controller = device.controller.as_ref().ok_or_else(no_nvme)?;
        let link = self.root.join("class/nvme").join(controller).join("device");
        let address = fs::canonicalize(link).ok().as_deref().and_then(last_of).ok_or_else(no_nvme)?;
        let class = self.text(&address, "class");
        if !is_address(&address) || class.as_deref() != Some(CLASS_NVME) {
            return Err(no_nvme());
        }
        match self.driver(&address).as_deref() {
            Some(NVME) => Ok(address),
            driver => {
                let driver = driver.unwrap_or("no driver");
                Err(Error::refused(format!("{path} ({address}) is bound to {driver}, not to {NVME}")))
            }
        }
    }

    /// Refuses a function that an IOMMU does not keep apart from all others but those that go with it.
    fn refuse_shared(&self, address: &str, path: &str, together: &[String]) -> Result<()> {
        let group = self.device(address).join("iommu_group");
        let Ok(members) = fs::read_dir(group.join("devices")) else {
            return Err(Error::refused(format!(
                "no IOMMU keeps {path} ({address}) from memory that is not its own"
            ))
            .hint("switch one on in the firmware (VT-d, AMD-Vi) and the kernel (intel_iommu=on)"));
        };
        let names = members.flatten().map(|member| member.file_name().to_string_lossy().into_owned());
        let is_bridge =
            |name: &String| self.text(name, "class").is_some_and(|class| class.starts_with(CLASS_BRIDGE));
        let stays = |name: &String| name != address && !together.contains(name) && !is_bridge(name);
        let mut others: Vec<String> = names.filter(stays).collect();
        if others.is_empty() {
            return Ok(());
        }
        others.sort();
        let what = format!("{path} ({address}) shares its IOMMU group with {}", others.join(", "));
        Err(Error::refused(what)
            .hint("a group goes to a program as a whole: make all its drives the target, or use a slot with a group of its own"))
    }

    /// Takes a function from its driver and binds it to another.
    fn bind(&self, address: &str, driver: &str) -> Result<()> {
        let device = self.device(address);
        // First, so that nothing takes it in between.
        write(&device.join("driver_override"), driver)?;
        if self.driver(address).is_some() {
            write(&device.join("driver/unbind"), address)?;
        }
        write(&self.root.join("bus/pci/drivers_probe"), address)?;
        match self.driver(address) {
            Some(found) if found == driver => Ok(()),
            found => {
                let found = found.unwrap_or_else(|| "no driver".to_owned());
                let what = format!("the kernel bound {address} to {found} instead of {driver}");
                Err(Error::failed(what).hint("see the kernel's log (dmesg)"))
            }
        }
    }

    fn give_back(&self, address: &str) -> Result<()> {
        if !is_address(address) {
            return Err(Error::refused(format!("`{address}` is no PCI address")));
        }
        // One that was pulled took its binding along; what came in its place was never bound here.
        if !self.is_ours(address) || self.text(address, "class").as_deref() != Some(CLASS_NVME) {
            return Ok(());
        }
        let device = self.device(address);
        self.refuse_held(address)?;
        write(&device.join("driver_override"), "\n")?;
        if self.driver(address).as_deref() == Some(VFIO_PCI) {
            write(&device.join("driver/unbind"), address)?;
        }
        if self.driver(address).is_none() {
            write(&self.root.join("bus/pci/drivers_probe"), address)?;
        }
        self.await_nodes(address)
    }

    /// The files by which a program drives a function that was handed over: its group's, with an IOMMU
    /// and without, and its own.
    fn files_of(&self, address: &str) -> Vec<PathBuf> {
        let vfio = Path::new("/dev/vfio");
        let group = fs::read_link(self.device(address).join("iommu_group")).ok().as_deref().and_then(last_of);
        let groups = group.map(|group| [vfio.join(&group), vfio.join(format!("noiommu-{group}"))]);
        let own = fs::read_dir(self.device(address).join("vfio-dev")).into_iter().flatten().flatten();
        let own = own.map(|entry| vfio.join("devices").join(entry.file_name()));
        groups.into_iter().flatten().chain(own).collect()
    }

    /// Refuses where a program drives it: the kernel would wait for that one, and so would we.
    fn refuse_held(&self, address: &str) -> Result<()> {
        let files = self.files_of(address);
        let ends = Instant::now() + PATIENCE;
        loop {
            let holders: String = files.iter().map(|file| holders::in_words(file)).collect();
            if holders.is_empty() {
                return Ok(());
            }
            if Instant::now() >= ends {
                let what = format!("{address} is still driven{holders}");
                return Err(Error::failed(what).hint("end that program first"));
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Waits until the kernel's driver has the drive: whoever comes next finds its namespaces.
    fn await_nodes(&self, address: &str) -> Result<()> {
        let ends = Instant::now() + PATIENCE;
        loop {
            let bound = self.driver(address);
            if bound.as_deref() == Some(NVME) && self.has_namespace(address) {
                return Ok(());
            }
            if Instant::now() >= ends {
                let driver = bound.unwrap_or_else(|| "no driver".to_owned());
                let what = format!("the kernel did not take {address} back: it is bound to {driver}");
                return Err(Error::failed(what).hint(format!(
                    "modprobe nvme; echo {address} > /sys/bus/pci/drivers_probe; see the kernel's log (dmesg)"
                )));
            }
            std::thread::sleep(LOOK);
        }
    }

    fn has_namespace(&self, address: &str) -> bool {
        let entries = |dir: PathBuf| fs::read_dir(dir).into_iter().flatten().flatten();
        let controllers = entries(self.device(address).join("nvme")).map(|entry| entry.path());
        controllers.flat_map(entries).any(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            name.strip_prefix(NVME).is_some_and(is_namespace)
        })
    }
}

/// What follows `nvme` in the name of a namespace: `0n1`, and `0c0n1` below a multipath device.
fn is_namespace(rest: &str) -> bool {
    rest.starts_with(|c: char| c.is_ascii_digit()) && rest.contains('n')
}

fn last_of(path: &Path) -> Option<String> {
    Some(path.file_name()?.to_string_lossy().into_owned())
}

fn write(file: &Path, text: &str) -> Result<()> {
    fs::write(file, text).map_err(|error| {
        let what = format!("cannot write {} to {}: {}", text.trim(), file.display(), describe(&error));
        Error::failed(what).hint("binding drivers takes root, and a /sys that can be written to")
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    const ADDRESS: &str = "0000:01:00.0";

    /// A sysfs with one drive, in a group by itself.
    struct Host {
        _dir: tempfile::TempDir,
        bus: Bus,
    }

    fn host() -> Host {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().to_owned();
        let device = root.join("bus/pci/devices").join(ADDRESS);
        let group = root.join("kernel/iommu_groups/7");
        for folder in [&device, &group.join("devices").join(ADDRESS), &root.join("class/nvme/nvme0")] {
            fs::create_dir_all(folder).unwrap();
        }
        for driver in ["nvme", "vfio-pci"] {
            fs::create_dir_all(root.join("bus/pci/drivers").join(driver)).unwrap();
        }
        fs::create_dir_all(root.join("block/nvme0n1")).unwrap();
        fs::write(root.join("block/nvme0n1/nsid"), "3\n").unwrap();
        fs::write(device.join("class"), "0x010802\n").unwrap();
        fs::write(device.join("driver_override"), "(null)\n").unwrap();
        symlink(root.join("bus/pci/drivers/nvme"), device.join("driver")).unwrap();
        symlink(&group, device.join("iommu_group")).unwrap();
        symlink(&device, root.join("class/nvme/nvme0/device")).unwrap();
        Host { _dir: dir, bus: Bus { root } }
    }

    fn drive() -> Device {
        Device {
            name: "nvme0n1".into(),
            path: "/dev/nvme0n1".into(),
            number: "259:0".into(),
            by_id: Vec::new(),
            model: None,
            serial: Some("S1".into()),
            firmware: None,
            size_bytes: 1 << 30,
            logical_block_bytes: 512,
            physical_block_bytes: 512,
            volatile_write_cache: None,
            rotational: false,
            read_only: false,
            numa_node: None,
            scheduler: None,
            queue: crate::host::Queue::default(),
            controller: Some("nvme0".into()),
            link: None,
            temperature: None,
            health: None,
            partitions: Vec::new(),
            members: Vec::new(),
            usage: Vec::new(),
        }
    }

    fn refusal(host: &Host, devices: &[Device]) -> Error {
        host.bus.examine(&drive(), &[], devices, Noiommu::Refused).unwrap_err()
    }

    #[test]
    fn a_drive_is_found_on_the_bus() {
        let host = host();
        let given = host.bus.examine(&drive(), &[&drive()], &[drive()], Noiommu::Refused).unwrap();
        assert_eq!((given.address.as_str(), given.namespace, given.unkept), (ADDRESS, 3, false));
    }

    #[test]
    fn another_namespace_in_use_keeps_the_drive_with_the_kernel() {
        let usage = vec![crate::host::Usage::Mounted("/data".into())];
        let beside = Device { name: "nvme0n2".into(), usage, ..drive() };
        let error = refusal(&host(), &[drive(), beside]);
        assert!(error.exit_status() == 3 && error.what.contains("/data"), "{error}");
    }

    #[test]
    fn a_group_with_others_and_no_group_at_all_are_refused() {
        let shared = host();
        let members = shared.bus.root.join("kernel/iommu_groups/7/devices");
        for (address, class) in [("0000:00:01.0", "0x060400"), ("0000:02:00.0", "0x020000")] {
            fs::create_dir_all(members.join(address)).unwrap();
            let device = shared.bus.device(address);
            fs::create_dir_all(&device).unwrap();
            fs::write(device.join("class"), class).unwrap();
        }
        let error = refusal(&shared, &[]);
        assert!(error.what.contains("IOMMU group with 0000:02:00.0"), "{error}");
        assert!(!error.what.contains("0000:00:01.0"), "a bridge is nobody's: {error}");
        let alone = host();
        fs::remove_file(alone.bus.device(ADDRESS).join("iommu_group")).unwrap();
        let error = refusal(&alone, &[]);
        assert!(error.exit_status() == 3 && error.what.contains("no IOMMU"), "{error}");
        let accepted = alone.bus.examine(&drive(), &[], &[], Noiommu::Accepted).unwrap();
        assert!(accepted.unkept && bind_step(ADDRESS, &[accepted]).contains("with no IOMMU"));
        // Accepted or not, what shares a group with others stays.
        let error = shared.bus.examine(&drive(), &[], &[], Noiommu::Accepted).unwrap_err();
        assert!(error.what.contains("IOMMU group with 0000:02:00.0"), "{error}");
    }

    #[test]
    fn what_is_no_nvme_drive_of_the_kernels_is_refused() {
        let other = host();
        fs::write(other.bus.device(ADDRESS).join("class"), "0x010601\n").unwrap();
        assert!(refusal(&other, &[]).what.contains("not an NVMe drive on PCI Express"));
        let taken = host();
        fs::remove_file(taken.bus.device(ADDRESS).join("driver")).unwrap();
        assert!(refusal(&taken, &[]).what.contains("bound to no driver"));
    }

    #[test]
    fn drives_are_given_back_in_the_order_of_their_names() {
        let given = |name: &str, address: &str| {
            let drive = Drive { name: name.into(), ..Drive::of(&drive()) };
            Given { drive, address: address.into(), namespace: 1, by_id: Vec::new(), unkept: false }
        };
        let all =
            [given("nvme2n1", "c"), given("nvme10n1", "d"), given("nvme0n1", "a"), given("nvme0n2", "a")];
        assert_eq!(last_first(&all), ["d", "c", "a"]);
    }

    #[test]
    fn what_stacktune_did_not_bind_is_left_alone() {
        let host = host();
        host.bus.give_back(ADDRESS).unwrap();
        host.bus.give_back("0000:09:00.0").unwrap();
        let untouched = fs::read_to_string(host.bus.device(ADDRESS).join("driver_override")).unwrap();
        assert_eq!(untouched, "(null)\n");
        assert_eq!(host.bus.give_back("../../x").unwrap_err().exit_status(), 3);
    }
}
