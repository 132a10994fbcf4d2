//! Whether mkfs accepts the operator's options. Where only mkfs can judge that, it is tried: on files in memory, as
//! large as the devices will be. These take only the space that is written to them, and are gone with this process.

use std::fs::{File, read_to_string};
use std::os::fd::AsRawFd;
use std::path::Path;

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

use super::layers::Layers;
use super::mkfs_values::{bytes_of, value_of};
use super::spec::StackSpec;
use super::step::{Arg, CommandLine, Step};
use crate::error::{Error, Result};
use crate::host::{Facts, kernel_version};
use crate::settings::{Filesystem, Named, Raid};
use crate::stack::runner::{Answer, Runner};
use crate::units::{KIB, approx_size};

/// The largest block of any file system.
const BLOCK_BYTES_MAX: u64 = 64 * KIB;

/// Refuses options with which mkfs or mount would fail.
///
/// # Errors
/// Input (2), with the reason: mkfs's message, or that the drives or the kernel do not support it.
pub(super) fn refuse_mkfs_options(
    spec: &StackSpec,
    layers: &Layers,
    facts: &Facts,
    runner: &Runner,
) -> Result<()> {
    let step = layers.steps.iter().find(|step| matches!(step, Step::MakeFilesystem { .. }));
    let Some(step @ Step::MakeFilesystem { filesystem, options, .. }) = step else { return Ok(()) };
    if options.is_empty() {
        return Ok(());
    }
    let drives = facts.find_all(&spec.target.devices)?;
    let largest = |bytes: Vec<u64>| bytes.into_iter().max().unwrap_or(0);
    let sectors = Sectors {
        logical_bytes: largest(drives.iter().map(|drive| drive.logical_block_bytes).collect()),
        physical_bytes: largest(drives.iter().map(|drive| drive.physical_block_bytes).collect()),
    };
    let sectors = match spec.layers.lba_size.bytes() {
        Some(bytes) => Sectors { logical_bytes: bytes, physical_bytes: sectors.physical_bytes.max(bytes) },
        None => sectors,
    };
    let why = refused_by_drives(*filesystem, options, &sectors)
        .or_else(|| refused_by_kernel(*filesystem, options, &facts.kernel));
    let why = match why {
        None => refused_by_mkfs(step, &sectors, layers, runner)?,
        why => why,
    };
    why.map_or(Ok(()), |why| Err(Error::input(format!("stack.mkfs_options: {why}"))))
}

/// The largest sectors of the drives; 0 for files instead of drives, where any are possible.
struct Sectors {
    logical_bytes: u64,
    physical_bytes: u64,
}

/// Why drives with these sectors can't have it.
fn refused_by_drives(filesystem: Filesystem, options: &[String], sectors: &Sectors) -> Option<String> {
    let units: &[(&str, &str)] = match filesystem {
        Filesystem::Ext4 => &[("-b", "")],
        Filesystem::Xfs => &[("-b", "size"), ("-s", "size"), ("-d", "sectsize"), ("-l", "sectsize")],
        _ => &[],
    };
    let (option, value) = units.iter().find_map(|(option, setting)| {
        let value = value_of(options, option, setting)?;
        (bytes_of(value)? < sectors.logical_bytes).then_some((option, value))
    })?;
    let sector = approx_size(sectors.logical_bytes);
    Some(format!("`{option}`: {value} is less than a sector of the drives, {sector}"))
}

/// Why this kernel would not mount it: which block sizes it supports.
fn refused_by_kernel(filesystem: Filesystem, options: &[String], kernel: &str) -> Option<String> {
    let page_bytes = rustix::param::page_size() as u64;
    let option = if filesystem == Filesystem::Btrfs { "-s" } else { "-b" };
    let setting = if filesystem == Filesystem::Xfs { "size" } else { "" };
    let bytes = value_of(options, option, setting)
        .or_else(|| value_of(options, "--sectorsize", setting))
        .and_then(bytes_of)?;
    // Blocks larger than the kernel's pages need large folios, which come with huge pages.
    let folios = Path::new("/sys/kernel/mm/transparent_hugepage").exists();
    let since = |version| folios && kernel_version(kernel).is_none_or(|has| has >= version);
    let possible = match filesystem {
        Filesystem::Ext4 | Filesystem::Xfs if bytes <= page_bytes => true,
        // "ext4: enable block size larger than page size" (cab8cbcb923a); once it is loaded, it says so itself.
        Filesystem::Ext4 => {
            Path::new("/sys/fs/ext4/features/blocksize_gt_pagesize").exists() || since((6, 19))
        }
        // LWN 1009548, "Filesystem support for block sizes larger than the page size".
        Filesystem::Xfs => since((6, 12)),
        Filesystem::Btrfs => {
            // Missing while the Btrfs module is not loaded.
            let list = read_to_string("/sys/fs/btrfs/features/supported_sectorsizes");
            list.map_or(true, |list| list.split_whitespace().any(|size| size.parse() == Ok(bytes)))
        }
        Filesystem::F2fs | Filesystem::None => true,
    };
    let (name, size) = (filesystem.name(), approx_size(bytes));
    (!possible).then(|| format!("`{option}`: this kernel ({kernel}) has no {name} with blocks of {size}"))
}

/// What mkfs.xfs would learn from the devices, but can't from a file: their sectors, and an array's stripes.
fn xfs_geometry(steps: &[Step], options: &[String], sectors: &Sectors) -> Vec<String> {
    let given = |option, settings: &[&str]| {
        settings.iter().any(|setting| value_of(options, option, setting).is_some())
    };
    let mut words = Vec::new();
    if sectors.logical_bytes > 0 && !given("-s", &["size"]) && !given("-d", &["sectsize"]) {
        let block_bytes = value_of(options, "-b", "size").and_then(bytes_of).unwrap_or(4 * KIB);
        let fits = sectors.physical_bytes <= block_bytes;
        let bytes = if fits { sectors.physical_bytes } else { sectors.logical_bytes };
        words.extend(["-s".to_owned(), format!("size={bytes}")]);
    }
    let array = steps.iter().find_map(|step| match step {
        Step::CreateArray { raid, chunk_bytes: Some(chunk_bytes), members, .. } => {
            Some((*chunk_bytes, striped(*raid, members.len())))
        }
        _ => None,
    });
    let array = array.filter(|(chunk_bytes, over)| *over > 1 && chunk_bytes.is_multiple_of(BLOCK_BYTES_MAX));
    // How command layers change its stripes is unknown.
    let layered = steps.iter().any(|step| matches!(step, Step::RaiseLayer { .. }));
    if let Some((chunk_bytes, over)) = array.filter(|_| !layered)
        && !given("-d", &["sunit", "swidth", "su", "sw", "noalign"])
    {
        words.extend(["-d".to_owned(), format!("su={chunk_bytes},sw={over}")]);
    }
    words
}

/// How many members hold data in a stripe.
fn striped(raid: Raid, members: usize) -> usize {
    match raid {
        Raid::Md5 => members.saturating_sub(1),
        Raid::Md6 => members.saturating_sub(2),
        Raid::Md10 if members.is_multiple_of(2) => members / 2,
        Raid::Md0 | Raid::Md10 => members,
        _ => 1,
    }
}

/// Why mkfs refuses it, on devices of these sizes.
fn refused_by_mkfs(
    making: &Step,
    sectors: &Sectors,
    layers: &Layers,
    runner: &Runner,
) -> Result<Option<String>> {
    let Step::MakeFilesystem { filesystem, options, .. } = making else { return Ok(None) };
    let trial: Vec<String> = match filesystem {
        Filesystem::Ext4 => vec!["-n".to_owned()],
        Filesystem::Xfs => {
            let geometry = xfs_geometry(&layers.steps, options, sectors);
            std::iter::once("-N".to_owned()).chain(geometry).collect()
        }
        // They have no dry run, and write little.
        Filesystem::Btrfs | Filesystem::F2fs | Filesystem::None => Vec::new(),
    };
    let files: Vec<File> = layers.bytes_below.iter().map(|bytes| memory(*bytes)).collect::<Result<_>>()?;
    let mut paths = files.iter().map(|file| format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()));
    for CommandLine { tool, args, .. } in making.commands() {
        let own = args.into_iter().filter_map(|arg| match arg {
            // With it, mkfs would give no reason.
            Arg::Text(text) if text == "-q" && *filesystem == Filesystem::F2fs => None,
            Arg::Text(text) => Some(text),
            Arg::Device(_) => paths.next(),
        });
        let words: Vec<String> = trial.iter().cloned().chain(own).collect();
        let words: Vec<_> = words.iter().map(AsRef::as_ref).collect();
        let answer = runner.run(tool, &words)?;
        if answer.status != 0 {
            return Ok(Some(format!("{}: {}", tool.program, reason(tool.program, &answer))));
        }
    }
    Ok(None)
}

/// A file in memory, entirely sparse.
fn memory(bytes: u64) -> Result<File> {
    let cannot = |error: rustix::io::Errno| {
        Error::failed(format!("cannot get a file in memory to try mkfs on: {error}"))
    };
    let file = File::from(memfd_create("stacktune-mkfs", MemfdFlags::CLOEXEC).map_err(cannot)?);
    ftruncate(&file, bytes).map_err(cannot)?;
    Ok(file)
}

/// The reason that mkfs gave, without its usage message.
fn reason(program: &str, answer: &Answer) -> String {
    if answer.status < 0 {
        return "it crashed".to_owned();
    }
    let said = if answer.stderr.is_empty() { &answer.stdout } else { &answer.stderr };
    let lines = said.lines().take_while(|line| !line.starts_with("Usage")).map(str::trim);
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    let error = lines.iter().find_map(|line| line.strip_prefix("Error: ").or(line.strip_prefix("ERROR: ")));
    let all = lines.join(" ");
    let text = error.map_or(all.strip_prefix(program).unwrap_or(&all), |error| error);
    let text = text.trim_start_matches([':', ' ']);
    if text.is_empty() { "it gives no reason".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Stack;
    use crate::settings::testing::capable_host;
    use crate::skips::skip;
    use crate::stack::id::StackId;
    use crate::units::MIB;
    use std::path::Path;

    fn spec(filesystem: Filesystem, raid: Raid, mkfs_options: &str) -> StackSpec {
        let stack = Stack { filesystem, raid, mkfs_options: mkfs_options.into(), ..Stack::default() };
        let mut settings = crate::settings::Settings { stack, ..Default::default() };
        settings.target.size_bytes = 320 * MIB;
        settings.target.count = if raid == Raid::None { 1 } else { 4 };
        StackSpec::of(&settings)
    }

    /// Why mkfs refuses these options on files of 320 MiB.
    fn refused(filesystem: Filesystem, raid: Raid, options: &str) -> Option<String> {
        let (spec, id) = (spec(filesystem, raid, options), StackId::random());
        let place = super::super::layers::StackPlace { id: &id, state_dir: Path::new("/"), missing: &[] };
        let layers = Layers::of(&spec, &[], &place).unwrap();
        let refused = refuse_mkfs_options(&spec, &layers, &capable_host(), &Runner::default());
        refused.err().map(|error| error.what)
    }

    #[test]
    fn what_mkfs_alone_judges_is_refused_beforehand() {
        use Filesystem::{Btrfs, Ext4, F2fs, Xfs};
        let runner = Runner::default();
        for (filesystem, wrong, says, right) in [
            (Ext4, "-N 4000000000", "too big for a filesystem", "-N 1000"),
            (Ext4, "-C 16k", "requires the bigalloc feature", "-C 16k -O bigalloc"),
            (Ext4, "-O inline_data -I 128", "too small for inline data", "-O inline_data -I 256"),
            (Xfs, "-d sunit=3", "both data sunit and data swidth", "-d noalign"),
            (Xfs, "-d agcount=4000", "too small, need at least", "-d agcount=2"),
            (Btrfs, "-n 3000", "illegal nodesize 3000", "-n 16k"),
            (F2fs, "-s 3000", "Device size is not sufficient", "-o 10"),
            (F2fs, "-s 0", "it crashed", "-s 2"),
        ] {
            let test = "what_mkfs_alone_judges_is_refused_beforehand";
            if let Err(missing) = runner.find(super::super::commands::maker(filesystem)) {
                skip(test, &missing.what);
                continue;
            }
            let why = refused(filesystem, Raid::None, wrong).unwrap_or_default();
            assert!(why.starts_with("stack.mkfs_options: mkfs.") && why.contains(says), "{wrong}: {why}");
            assert!(!why.contains("Usage") && !why.contains('\n'), "{why}");
            assert_eq!(refused(filesystem, Raid::None, right), None, "{right}");
        }
    }

    #[test]
    fn it_is_asked_for_the_drives_sectors_and_the_arrays_stripes() {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let steps = |raid| {
            let (spec, id) = (spec(Filesystem::Xfs, raid, "-d agcount=2"), StackId::random());
            let place = super::super::layers::StackPlace { id: &id, state_dir: Path::new("/"), missing: &[] };
            Layers::of(&spec, &[], &place).unwrap().steps
        };
        let drives = Sectors { logical_bytes: 512, physical_bytes: 4096 };
        for (raid, sectors, options, expected) in [
            (Raid::None, &drives, "-d agcount=2", "-s size=4096"),
            (Raid::None, &drives, "-b size=1k", "-s size=512"),
            (Raid::None, &drives, "-s size=2k", ""),
            (Raid::Md0, &NONE, "-d agcount=2", "-d su=524288,sw=4"),
            (Raid::Md5, &NONE, "-d agcount=2", "-d su=524288,sw=3"),
            (Raid::Md10, &NONE, "-d agcount=2", "-d su=524288,sw=2"),
            (Raid::Md1, &NONE, "-d agcount=2", ""),
            (Raid::Md0, &NONE, "-d noalign", ""),
        ] {
            assert_eq!(xfs_geometry(&steps(raid), &words(options), sectors), words(expected), "{options}");
        }
        // With an array's stripes there are more allocation groups, so the log can be in that one.
        assert_eq!(refused(Filesystem::Xfs, Raid::Md0, "-l agnum=5"), None);
        assert!(refused(Filesystem::Xfs, Raid::None, "-l agnum=5").is_some());
    }

    #[test]
    fn blocks_are_no_smaller_than_sectors_and_no_larger_than_the_kernel_has_them() {
        use Filesystem::{Btrfs, Ext4, Xfs};
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let large = Sectors { logical_bytes: 4096, physical_bytes: 4096 };
        for (filesystem, options) in [(Ext4, "-b 1024"), (Xfs, "-b size=1k"), (Xfs, "-m crc=1 -s size=512")] {
            let why = refused_by_drives(filesystem, &words(options), &large).unwrap_or_default();
            assert!(why.ends_with("is less than a sector of the drives, 4.00 KiB"), "{why}");
            assert_eq!(refused_by_drives(filesystem, &words(options), &NONE), None);
        }
        assert_eq!(refused_by_drives(Ext4, &words("-b 4096"), &large), None);
        for (filesystem, options, before, since) in
            [(Ext4, "-b 65536", "6.18.4", "6.19.0"), (Xfs, "-d noalign -b size=65536", "6.11", "6.12.3-1")]
        {
            let why = refused_by_kernel(filesystem, &words(options), before).unwrap_or_default();
            assert!(why.contains(before) && why.ends_with("with blocks of 64.0 KiB"), "{why}");
            assert_eq!(refused_by_kernel(filesystem, &words(options), since), None);
        }
        let page = rustix::param::page_size();
        for option in ["-s", "--sectorsize"] {
            assert_eq!(refused_by_kernel(Btrfs, &words(&format!("{option} {page}")), "6.1"), None);
        }
    }

    const NONE: Sectors = Sectors { logical_bytes: 0, physical_bytes: 0 };
}
