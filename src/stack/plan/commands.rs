//! The commands of each step, as shown and as run.

use std::ffi::OsStr;
use std::fmt;
use std::path::Path;

use super::capacity::PARTITION_START_BYTES;
use super::step::{Arg, CommandLine, Step};
use crate::printable::Shown as _;
use crate::settings::{Filesystem, Named, Raid};
use crate::stack::devices::BlockDevice;
use crate::stack::handover;
use crate::stack::runner::{LOSETUP, MDADM, MOUNT, SFDISK, Tool, WIPEFS, quoted};
use crate::units::{KIB, MIB, approx_size};

/// The name of a stack's arrays and partitions.
const NAME: &str = "stacktune";

const BLKDISCARD: Tool = Tool { program: "blkdiscard", package: "util-linux" };

/// The tool that makes a file system.
pub(super) fn maker(filesystem: Filesystem) -> Tool {
    match filesystem {
        Filesystem::Xfs => Tool { program: "mkfs.xfs", package: "xfsprogs" },
        Filesystem::Btrfs => Tool { program: "mkfs.btrfs", package: "btrfs-progs" },
        Filesystem::F2fs => Tool { program: "mkfs.f2fs", package: "f2fs-tools" },
        Filesystem::Ext4 | Filesystem::None => Tool { program: "mkfs.ext4", package: "e2fsprogs" },
    }
}

impl Step {
    /// The commands that the step runs, in order; empty if stacktune or the profile's own commands do the work.
    pub fn commands(&self) -> Vec<CommandLine> {
        match self {
            Self::AttachLoop { file } => {
                let options = ["--find", "--show", "--direct-io=on", "--nooverlap"];
                vec![line(LOSETUP, &options).path(file)]
            }
            Self::Trim { device, from_bytes } => {
                vec![line(BLKDISCARD, &[&format!("--offset={from_bytes}")]).device(device)]
            }
            Self::Partition { drive, disk_uuid, uuid, bytes } => {
                let (start, size) = (PARTITION_START_BYTES / MIB, bytes / MIB);
                let input = format!(
                    "label: gpt\nlabel-id: {disk_uuid}\nstart={start}MiB, size={size}MiB, uuid={uuid}, name={NAME}\n"
                );
                let sfdisk = line(SFDISK, &["--quiet", "--wipe=always", "--wipe-partitions=always"]);
                vec![CommandLine { input, ..sfdisk.device(&BlockDevice::Drive(drive.clone())) }]
            }
            Self::CreateArray { path, uuid, raid, chunk_bytes, assume_clean, bitmap, members } => {
                let name = uuid.split(['-', ':']).next().unwrap_or_default();
                let mut create = line(MDADM, &["--create"]).path(path).with(&[
                    "--run",
                    "--metadata=1.2",
                    &format!("--uuid={uuid}"),
                    &format!("--name={NAME}-{name}"),
                    &format!("--level={}", raid.name().trim_start_matches("md")),
                    &format!("--raid-devices={}", members.len()),
                ]);
                if let Some(bytes) = chunk_bytes {
                    create = create.with(&[&format!("--chunk={}K", bytes / KIB)]);
                }
                if *raid != Raid::Md0 {
                    // Otherwise it would depend on the members' size: mdadm adds a bitmap from 100 GB on, and
                    // setting its bits costs extra writes.
                    create = create.with(&[&format!("--bitmap={}", bitmap.name())]);
                }
                if *assume_clean {
                    create = create.with(&["--assume-clean"]);
                }
                // The drives' old content may show through the array. Any signature seen there after this
                // wipe was put there later, which is how `cleanup` knows what others have put on it.
                let wipe = line(WIPEFS, &["--all", "--quiet"]);
                let array = BlockDevice::Array { path: path.clone(), uuid: uuid.clone() };
                vec![members.iter().fold(create, CommandLine::device), wipe.device(&array)]
            }
            Self::MakeFilesystem { filesystem, raid, devices, uuid, options } => {
                let words = maker_options(*filesystem, *raid, uuid, options);
                vec![devices.iter().fold(line(maker(*filesystem), &[]).texts(&words), CommandLine::device)]
            }
            Self::Mount { filesystem, device, dir, options, .. } => {
                let mount = line(MOUNT, &["-t", filesystem.name()]);
                let mount = if options.is_empty() { mount } else { mount.with(&["-o", options]) };
                vec![mount.device(device).path(dir)]
            }
            Self::MakeFolder { .. }
            | Self::SetIommu { .. }
            | Self::Format { .. }
            | Self::MakeFile { .. }
            | Self::Blank { .. }
            | Self::Precondition { .. }
            | Self::AwaitResync { .. }
            | Self::RaiseLayer { .. }
            | Self::HoldLayer { .. }
            | Self::Clear { .. } => Vec::new(),
        }
    }

    /// The step as shown: its commands, or a description of what stacktune does itself.
    pub fn words(&self) -> String {
        match self {
            Self::MakeFolder { dir } => format!("mkdir {}", quoted(dir.as_os_str())),
            Self::MakeFile { file, bytes } => {
                format!("fallocate --length {bytes} {}", quoted(file.as_os_str()))
            }
            Self::Blank { drive } => format!(
                "wipe {}: all signatures (wipefs --all --force), and zeros over its first and last MiB",
                drive.describe()
            ),
            Self::Precondition { device, bytes, random_bytes } => {
                let random = match random_bytes {
                    0 => "; random pages follow the fill".to_owned(),
                    bytes => format!(", then {} of 4 KiB pages at random", approx_size(*bytes)),
                };
                let bytes = approx_size(*bytes);
                format!("write the first {bytes} of {} once in order{random}", device.shown())
            }
            Self::Format { drive, namespace, new, .. } => format!(
                "format {} to blocks of {}, without secure erase: all on it is lost, and it takes as long as the drive \
                 needs (nvme format {} --namespace-id={namespace} --lbaf={})",
                drive.describe(),
                approx_size(new.block_bytes),
                drive.path.shown(),
                new.index
            ),
            Self::SetIommu { address, group, new, .. } => {
                handover::commands_of(address, group, new).join("; ")
            }
            Self::RaiseLayer { layer, number } => layer.up[*number].to_string(),
            Self::HoldLayer { layer } => {
                let below: Vec<String> = layer.made.below.iter().map(BlockDevice::shown).collect();
                format!(
                    "make sure that {} is built on nothing but {}, and wipe old signatures on it; layer `{}` is \
                     taken away by {}",
                    layer.made.device().shown(),
                    below.join(", "),
                    layer.name,
                    layer.made.down_in_words()
                )
            }
            Self::AwaitResync { array } => format!("wait until {} is in sync", array.shown()),
            Self::Clear { device } => {
                format!(
                    "write zeros over the first MiB of {}, where an older data set may begin",
                    device.shown()
                )
            }
            _ => self.commands().iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
        }
    }
}

fn line(tool: Tool, words: &[&str]) -> CommandLine {
    CommandLine { tool, args: Vec::new(), input: String::new() }.with(words)
}

impl CommandLine {
    fn with(mut self, words: &[&str]) -> Self {
        self.args.extend(words.iter().map(|word| Arg::Text((*word).to_owned())));
        self
    }

    fn texts(mut self, words: &[String]) -> Self {
        self.args.extend(words.iter().cloned().map(Arg::Text));
        self
    }

    fn path(self, path: &Path) -> Self {
        self.with(&[&path.display().to_string()])
    }

    fn device(mut self, device: &BlockDevice) -> Self {
        self.args.push(Arg::Device(device.clone()));
        self
    }
}

/// Options of mkfs: quiet, with the plan's UUID, then the operator's. None of them discards: the state of the
/// drives was set before, and a drive that was written full must not be emptied again.
fn maker_options(filesystem: Filesystem, raid: Raid, uuid: &str, theirs: &[String]) -> Vec<String> {
    let mut theirs = theirs.to_vec();
    let options: &[&str] = match filesystem {
        Filesystem::Xfs => &["-q", "-f", "-K", "-m", &format!("uuid={uuid}")],
        Filesystem::F2fs => &["-q", "-f", "-t", "0", "-U", uuid],
        Filesystem::Btrfs => {
            let (data, metadata) = match raid {
                Raid::Btrfs0 => ("raid0", "raid1"),
                Raid::Btrfs1 => ("raid1", "raid1"),
                Raid::Btrfs10 => ("raid10", "raid10"),
                // Btrfs's own documentation warns against parity for metadata.
                Raid::Btrfs5 => ("raid5", "raid1"),
                _ => ("single", "dup"),
            };
            &["-q", "-f", "-K", "-U", uuid, "-d", data, "-m", metadata]
        }
        Filesystem::Ext4 | Filesystem::None => {
            // Zeroing inode tables would write 1.6% of the drives' bytes, so it is skipped; mounting with
            // noinit_itable keeps the kernel from doing it later, under the load.
            let extended;
            (extended, theirs) = extended_options("nodiscard,lazy_itable_init=1", &theirs);
            &["-q", "-F", "-U", uuid, "-E", &extended.clone()]
        }
    };
    options.iter().map(|option| (*option).to_owned()).chain(theirs).collect()
}

/// mke2fs heeds only its last `-E`, so the operator's settings are merged with the necessary ones.
fn extended_options(own: &str, theirs: &[String]) -> (String, Vec<String>) {
    let (mut extended, mut others) = (vec![own.to_owned()], Vec::new());
    let mut words = theirs.iter();
    while let Some(word) = words.next() {
        match word.strip_prefix("-E") {
            Some("") => extended.extend(words.next().cloned()),
            Some(value) => extended.push(value.to_owned()),
            None => others.push(word.clone()),
        }
    }
    (extended.join(","), others)
}

impl fmt::Display for CommandLine {
    /// As typed in a shell; a placeholder for an unknown node is in angle brackets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.input.is_empty() {
            write!(f, "printf {} | ", quoted(OsStr::new(&self.input.replace('\n', "\\n"))))?;
        }
        f.write_str(self.tool.program)?;
        for arg in &self.args {
            match arg {
                Arg::Text(text) => write!(f, " {}", quoted(OsStr::new(text)))?,
                Arg::Device(device) => write!(f, " {}", device.shown())?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::devices::Drive;

    fn drive(name: &str) -> Drive {
        Drive {
            name: name.into(),
            path: Path::new("/dev").join(name),
            number: "259:0".into(),
            model: None,
            serial: Some("S1".into()),
            size_bytes: 1 << 40,
        }
    }

    #[test]
    fn steps_are_shown_with_every_word_and_input_of_their_commands() {
        let device = BlockDevice::Drive(drive("sda"));
        let steps = [
            Step::Partition { drive: drive("sda"), disk_uuid: "D".into(), uuid: "P".into(), bytes: 5 * MIB },
            Step::AttachLoop { file: "/a folder/loop-0.img".into() },
            Step::MakeFilesystem {
                filesystem: Filesystem::Xfs,
                raid: Raid::None,
                devices: vec![device.clone()],
                uuid: "U".into(),
                options: vec!["-d".into(), "agcount=8".into()],
            },
            Step::Trim { device, from_bytes: 4096 },
        ];
        for step in steps {
            let shown = step.words();
            for command in step.commands() {
                assert!(shown.contains(command.tool.program), "{shown}");
                for arg in &command.args {
                    let word = match arg {
                        Arg::Text(text) => quoted(OsStr::new(text)),
                        Arg::Device(device) => device.shown(),
                    };
                    assert!(shown.contains(&format!(" {word}")), "{word} in {shown}");
                }
                assert!(command.input.lines().all(|line| shown.contains(line)), "{shown}");
            }
        }
    }

    #[test]
    fn a_device_is_shown_as_the_node_that_it_will_have() {
        let partition = |name| BlockDevice::Partition { drive: drive(name), uuid: "P".into() }.shown();
        assert_eq!([partition("sda"), partition("nvme0n1")], ["/dev/sda1", "/dev/nvme0n1p1"]);
        let file = BlockDevice::Loop { file: "/t/loop-0.img".into() };
        assert_eq!(file.shown(), "<loop of loop-0.img>");
    }

    #[test]
    fn the_operators_extended_ext4_options_do_not_replace_the_necessary_ones() {
        let theirs = ["-m", "0", "-E", "stride=4", "-Estripe_width=8"].map(str::to_owned);
        let words = maker_options(Filesystem::Ext4, Raid::None, "U", &theirs).join(" ");
        assert_eq!(words, "-q -F -U U -E nodiscard,lazy_itable_init=1,stride=4,stripe_width=8 -m 0");
    }

    #[test]
    fn no_mkfs_discards() {
        let words = |filesystem| format!(" {} ", maker_options(filesystem, Raid::None, "U", &[]).join(" "));
        assert!(words(Filesystem::Ext4).contains("nodiscard"));
        assert!(words(Filesystem::Xfs).contains(" -K ") && words(Filesystem::Btrfs).contains(" -K "));
        assert!(words(Filesystem::F2fs).contains(" -t 0 "));
    }
}
