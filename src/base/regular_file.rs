//! Reading files that others may have put in place: only regular ones, up to a size, and without blocking. A
//! pipe in such a place would never end, and neither would /dev/zero.

use std::fs::{File, OpenOptions};
use std::io::{Error, Read, Result};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, openat, statat};

use crate::units::approx_size;

/// Opens a regular file for reading.
///
/// # Errors
/// If it can't be opened, or is not a regular file: a pipe does not block, and a device is not touched.
pub fn open(path: &Path) -> Result<File> {
    // Merely opening some devices has an effect.
    refuse_unless(path.metadata()?.is_file())?;
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    refuse_unless(file.metadata()?.is_file())?;
    Ok(file)
}

/// Opens for reading a regular file in a folder that is held open; a link does not count as one.
///
/// # Errors
/// As for [`open()`].
pub fn open_in(folder: impl AsFd, name: &str) -> Result<File> {
    let found = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    refuse_unless(FileType::from_raw_mode(found.st_mode) == FileType::RegularFile)?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(openat(&folder, name, flags, Mode::empty())?);
    refuse_unless(file.metadata()?.is_file())?;
    Ok(file)
}

fn refuse_unless(is_file: bool) -> Result<()> {
    if is_file { Ok(()) } else { Err(Error::other("it is not a regular file")) }
}

/// The content of a regular file of at most `bytes_max` bytes.
///
/// # Errors
/// As for [`open()`]; if it is larger, or can't be read.
pub fn read(path: &Path, bytes_max: u64) -> Result<Vec<u8>> {
    read_opened(open(path)?, bytes_max)
}

/// The content of an opened file of at most `bytes_max` bytes.
///
/// # Errors
/// If it is larger, or can't be read.
pub fn read_opened(file: File, bytes_max: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return Err(Error::other(format!("it has over {}", approx_size(bytes_max))));
    }
    Ok(bytes)
}

/// The same for text.
///
/// # Errors
/// As for [`read()`], and if it is not UTF-8.
pub fn read_text(path: &Path, bytes_max: u64) -> Result<String> {
    String::from_utf8(read(path, bytes_max)?).map_err(|_| Error::other("it is not text (UTF-8 was expected)"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn only_regular_files_up_to_the_limit_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("file"), "12345678").unwrap();
        symlink(at("file"), at("link")).unwrap();
        assert_eq!(read(&at("file"), 8).unwrap(), b"12345678");
        assert_eq!(read_text(&at("link"), 8).unwrap(), "12345678");
        assert_eq!(read(&at("file"), 7).unwrap_err().to_string(), "it has over 7 B");
        mknodat(CWD, at("pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
        symlink("/dev/zero", at("zero")).unwrap();
        for other in [at("pipe"), at("zero"), dir.path().to_owned(), "/dev/null".into()] {
            assert_eq!(read(&other, 8).unwrap_err().to_string(), "it is not a regular file");
        }
        assert_eq!(read(&at("none"), 8).unwrap_err().kind(), std::io::ErrorKind::NotFound);
        std::fs::write(at("file"), [0xff]).unwrap();
        assert!(read_text(&at("file"), 8).is_err());
    }
}
