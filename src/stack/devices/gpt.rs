//! The two headers of a GUID partition table, each read on its own: a power cut during a table write may
//! leave just one, which no tool accepts as a table (UEFI specification 2.10, 5.3.2).

use std::fmt::Write as _;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

const SIGNATURE: &[u8; 8] = b"EFI PART";
/// The offset of the disk's unique id in a header.
const DISK_ID_AT: usize = 56;
const HEADER_BYTES: usize = 92;
/// The possible sector sizes.
const SECTOR_BYTES: [u64; 2] = [512, 4096];

/// The disk ids in the headers at either end of a device, where there are any.
///
/// # Errors
/// If it can't be read.
pub fn disk_ids(node: &Path) -> std::io::Result<Vec<String>> {
    let file = File::open(node)?;
    let end = std::io::Seek::seek(&mut &file, std::io::SeekFrom::End(0))?;
    let places = SECTOR_BYTES.into_iter().flat_map(|sector| [sector, end.saturating_sub(sector)]);
    let mut ids = Vec::new();
    for at in places.filter(|at| at + HEADER_BYTES as u64 <= end) {
        let mut header = [0; HEADER_BYTES];
        file.read_exact_at(&mut header, at)?;
        ids.extend(disk_id(&header));
    }
    Ok(ids)
}

/// The disk id of a header; none if it is not a header.
fn disk_id(header: &[u8]) -> Option<String> {
    let id = header.get(DISK_ID_AT..DISK_ID_AT + 16).filter(|_| header.starts_with(SIGNATURE))?;
    // The first three fields are little-endian.
    let order = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
    let mut text = String::new();
    for at in order {
        let _ = write!(text, "{:02x}", id[at]); // writing to a String cannot fail
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_headers_disk_id_is_read_as_tools_write_it() {
        let mut header = [0_u8; HEADER_BYTES];
        header[DISK_ID_AT..DISK_ID_AT + 16].copy_from_slice(&[
            0x04, 0x03, 0x02, 0x01, 0x06, 0x05, 0x08, 0x07, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0x10,
        ]);
        assert_eq!(disk_id(&header), None, "no signature");
        header[..8].copy_from_slice(SIGNATURE);
        assert_eq!(disk_id(&header).unwrap(), "0102030405060708090a0b0c0d0e0f10");
        assert_eq!(disk_id(&header[..60]), None, "cut short");
    }

    #[test]
    fn headers_are_looked_for_at_both_ends() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("disk");
        let file = File::create(&path).unwrap();
        file.set_len(1 << 20).unwrap();
        assert_eq!(disk_ids(&path).unwrap(), [""; 0]);
        let mut header = [0_u8; HEADER_BYTES];
        header[..8].copy_from_slice(SIGNATURE);
        header[DISK_ID_AT + 15] = 7;
        file.write_all_at(&header, (1 << 20) - 4096).unwrap();
        assert_eq!(disk_ids(&path).unwrap(), ["00000000000000000000000000000007"]);
        file.set_len(100).unwrap();
        assert_eq!(disk_ids(&path).unwrap(), [""; 0], "too small for any");
    }
}
