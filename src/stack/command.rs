//! The commands of each step: what is shown, and what is run.

use std::path::Path;

use super::place::Place;
use super::runner::{LOSETUP, MDADM, SFDISK, Tool};
use super::step::{Arg, CommandLine, Step};
use crate::profile::settings::{Filesystem, Raid};

const BLKDISCARD: Tool = Tool { program: "blkdiscard", package: "util-linux" };
const MOUNT: Tool = Tool { program: "mount", package: "mount" };

/// What makes a file system.
pub(super) fn maker(filesystem: Filesystem) -> Tool {
    match filesystem {
        Filesystem::Xfs => Tool { program: "mkfs.xfs", package: "xfsprogs" },
        Filesystem::Btrfs => Tool { program: "mkfs.btrfs", package: "btrfs-progs" },
        Filesystem::F2fs => Tool { program: "mkfs.f2fs", package: "f2fs-tools" },
        Filesystem::Ext4 | Filesystem::None => Tool { program: "mkfs.ext4", package: "e2fsprogs" },
    }
}

impl Step {
    /// The commands that the step runs, in order; none where it acts by itself.
    pub fn commands(&self) -> Vec<CommandLine> {
        match self {
            Self::AttachLoop { file } => {
                let options = ["--find", "--show", "--direct-io=on", "--nooverlap"];
                vec![line(LOSETUP, &options).path(file)]
            }
            Self::Trim { place, from_bytes } => {
                vec![line(BLKDISCARD, &[&format!("--offset={from_bytes}")]).place(place)]
            }
            Self::Partition { drive, disk_uuid, uuid, bytes } => {
                let input = format!(
                    "label: gpt\nlabel-id: {disk_uuid}\nstart=2048, size={}, uuid={uuid}\n",
                    bytes / 512
                );
                vec![CommandLine { input, ..line(SFDISK, &["--quiet"]).place(&Place::Drive(drive.clone())) }]
            }
            Self::CreateArray { path, uuid, raid, chunk_bytes, assume_clean, members } => {
                let level = level(*raid);
                let mut create = line(MDADM, &["--create"]).path(path).with(&[
                    "--run",
                    "--metadata=1.2",
                    &format!("--uuid={uuid}"),
                    &format!("--level={level}"),
                    &format!("--raid-devices={}", members.len()),
                ]);
                if let Some(bytes) = chunk_bytes {
                    create = create.with(&[&format!("--chunk={}K", bytes >> 10)]);
                }
                if *assume_clean {
                    create = create.with(&["--assume-clean"]);
                }
                vec![members.iter().fold(create, CommandLine::place)]
            }
            Self::MakeFilesystem { filesystem, raid, places, uuid, options } => {
                let own = line(maker(*filesystem), &[]).texts(&maker_options(*filesystem, *raid, uuid));
                vec![places.iter().fold(own.texts(options), CommandLine::place)]
            }
            Self::Mount { filesystem, place, dir, options, .. } => {
                let kind = filesystem_name(*filesystem);
                let mount = line(MOUNT, &["-t", kind]);
                let mount = if options.is_empty() { mount } else { mount.with(&["-o", options]) };
                vec![mount.place(place).path(dir)]
            }
            Self::MakeFolder { .. }
            | Self::MakeFile { .. }
            | Self::Blank { .. }
            | Self::Precondition { .. }
            | Self::AwaitResync { .. } => Vec::new(),
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

    fn place(mut self, place: &Place) -> Self {
        self.args.push(Arg::Place(place.clone()));
        self
    }
}

fn level(raid: Raid) -> u8 {
    match raid {
        Raid::Md1 => 1,
        Raid::Md5 => 5,
        Raid::Md6 => 6,
        Raid::Md10 => 10,
        _ => 0,
    }
}

fn filesystem_name(filesystem: Filesystem) -> &'static str {
    match filesystem {
        Filesystem::Xfs => "xfs",
        Filesystem::Btrfs => "btrfs",
        Filesystem::F2fs => "f2fs",
        Filesystem::Ext4 | Filesystem::None => "ext4",
    }
}

/// The options that stacktune gives itself: quiet, the plan's UUID, and nothing that goes on in the
/// background afterwards and would be measured (ext4's lazy initialisation).
fn maker_options(filesystem: Filesystem, raid: Raid, uuid: &str) -> Vec<String> {
    let options: &[&str] = match filesystem {
        Filesystem::Xfs => &["-q", "-f", "-m", &format!("uuid={uuid}")],
        Filesystem::F2fs => &["-q", "-f", "-U", uuid],
        Filesystem::Btrfs => {
            let (data, metadata) = match raid {
                Raid::Btrfs0 => ("raid0", "raid1"),
                Raid::Btrfs1 => ("raid1", "raid1"),
                Raid::Btrfs10 => ("raid10", "raid10"),
                // Btrfs's own documentation warns of metadata with parity.
                Raid::Btrfs5 => ("raid5", "raid1"),
                _ => ("single", "dup"),
            };
            &["-q", "-f", "-U", uuid, "-d", data, "-m", metadata]
        }
        Filesystem::Ext4 | Filesystem::None => {
            &["-q", "-F", "-U", uuid, "-E", "lazy_itable_init=0,lazy_journal_init=0"]
        }
    };
    options.iter().map(|option| (*option).to_owned()).collect()
}
