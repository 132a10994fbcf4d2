//! What the guard permits with the operator's consent to the device, and what it refuses even then.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

use crate::common;
use crate::common::devices::run;
use crate::guard::{Examined, MAGIC, SIZE, facts, undo};
use stacktune::testing::stack::guard::{self, Consent};

fn having_typed(text: &str) -> Consent {
    Consent::default().and_typed(&[text.to_owned()])
}

pub fn everything(device: &Examined) -> Consent {
    Consent::named(std::slice::from_ref(&device.path), &facts()).unwrap()
}

#[test]
fn file_systems_and_swap_need_consent() {
    let Some(device) = Examined::blank("file_systems_and_swap_need_consent") else { return };
    device.run("mkfs.ext4", &["-q", "-F"]);
    device.needs_consent("ext4 signature");
    device.run("mkswap", &["-q"]);
    device.needs_consent("swap signature");
    let luks = [&b"LUKS\xba\xbe\0\x01aes\0"[..], &[0; 500]].concat();
    device.write(0, &luks);
    device.needs_consent("LUKS");
}

#[test]
fn xfs_and_btrfs_need_consent() {
    let test = "xfs_and_btrfs_need_consent";
    let Some(device) = Examined::make(test, &[], 320 << 20) else { return };
    for (program, kind) in [("mkfs.xfs", "xfs"), ("mkfs.btrfs", "btrfs")] {
        if Command::new(program).arg("-V").output().is_err() {
            common::skip(test, &format!("needs {program}"));
            return;
        }
        device.run(program, &["-q", "-f"]);
        device.refused(&Consent::default(), &format!("{kind} signature"));
        let permit = guard::permit(device.examine().unwrap(), &everything(&device)).unwrap();
        permit.open().unwrap().wipe().unwrap();
        assert!(!device.examine().unwrap().content.iter().any(|text| text.contains("signature")));
    }
}

/// A GPT header at `own` with an empty table and valid checksums; its other copy is at `other`. Both are in
/// sectors.
fn gpt_header(own: u64, other: u64, table: u64, sectors: u64) -> Vec<u8> {
    let entries = vec![0_u8; 128 * 128];
    let mut header = vec![0_u8; 512];
    header[..8].copy_from_slice(b"EFI PART");
    header[8..12].copy_from_slice(&0x0001_0000_u32.to_le_bytes());
    header[12..16].copy_from_slice(&92_u32.to_le_bytes());
    header[24..32].copy_from_slice(&own.to_le_bytes());
    header[32..40].copy_from_slice(&other.to_le_bytes());
    header[40..48].copy_from_slice(&34_u64.to_le_bytes());
    header[48..56].copy_from_slice(&(sectors - 34).to_le_bytes());
    header[56..72].copy_from_slice(&[7; 16]);
    header[72..80].copy_from_slice(&table.to_le_bytes());
    header[80..84].copy_from_slice(&128_u32.to_le_bytes());
    header[84..88].copy_from_slice(&128_u32.to_le_bytes());
    header[88..92].copy_from_slice(&crc32(&entries).to_le_bytes());
    let own_crc = crc32(&header[..92]);
    header[16..20].copy_from_slice(&own_crc.to_le_bytes());
    header
}

/// The checksum of Ethernet and GPT, which is not crc32c.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0_u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
    })
}

#[test]
fn partition_tables_need_consent_and_so_does_a_backup_alone() {
    let test = "partition_tables_need_consent_and_so_does_a_backup_alone";
    let Some(device) = Examined::blank(test) else { return };
    let sectors = SIZE / 512;
    let backup = gpt_header(sectors - 1, 1, sectors - 33, sectors);
    device.write(SIZE - 512, &backup);
    device.needs_consent("gpt signature at byte");
    let mut mbr = vec![0_u8; 512];
    mbr[446..462].copy_from_slice(&[0x80, 0, 2, 0, 0x83, 0, 3, 0, 0, 8, 0, 0, 0, 0, 1, 0]);
    mbr[510..].copy_from_slice(&[0x55, 0xaa]);
    device.write(0, &mbr);
    device.needs_consent("dos signature");
    // A protective MBR and both GPT headers.
    mbr[450] = 0xee;
    device.write(0, &mbr);
    device.write(512, &gpt_header(1, sectors - 1, 2, sectors));
    device.write(SIZE - 512, &backup);
    device.needs_consent("gpt signature");
}

#[test]
fn members_of_lvm_md_and_zfs_are_refused_even_with_consent() {
    let test = "members_of_lvm_md_and_zfs_are_refused_even_with_consent";
    // libblkid looks for ZFS on 64 MiB and more.
    let Some(device) = Examined::make(test, &[], 64 << 20) else { return };
    let mut label = vec![0_u8; 512];
    label[..8].copy_from_slice(b"LABELONE");
    label[8..16].copy_from_slice(&1_u64.to_le_bytes());
    label[20..24].copy_from_slice(&32_u32.to_le_bytes());
    label[24..32].copy_from_slice(b"LVM2 001");
    label[32..64].copy_from_slice(&[b'a'; 32]);
    device.write(512, &label);
    device.refused(&everything(&device), "part of LVM");
    device.write(0, &[0; 4096]);

    // The superblock of md 1.2 lies at 4 KiB.
    let mut superblock = vec![0_u8; 1024];
    superblock[..4].copy_from_slice(&0xa92b_4efc_u32.to_le_bytes());
    superblock[4..8].copy_from_slice(&1_u32.to_le_bytes());
    superblock[16..32].copy_from_slice(&[9; 16]);
    superblock[144..152].copy_from_slice(&8_u64.to_le_bytes());
    let sum: u64 =
        superblock[..256].chunks(4).map(|w| u64::from(u32::from_le_bytes(w.try_into().unwrap()))).sum();
    let sum = (sum & 0xffff_ffff) as u32 + (sum >> 32) as u32;
    superblock[216..220].copy_from_slice(&sum.to_le_bytes());
    device.write(4096, &superblock);
    device.refused(&everything(&device), "part of md");
    device.write(4096, &[0; 4096]);

    // ZFS: uberblocks in the first label, each with its magic.
    for index in 0..16 {
        device.write(128 * 1024 + index * 1024, &0x00ba_b10c_u64.to_le_bytes());
    }
    device.refused(&everything(&device), "part of ZFS");
    device.refused(&having_typed(&device.path["/dev/".len()..]), "part of ZFS");
}

#[test]
fn data_without_any_signature_needs_consent() {
    let Some(device) = Examined::blank("data_without_any_signature_needs_consent") else { return };
    device.write(SIZE / 2 - (1 << 20), &vec![7; 1 << 20]);
    device.needs_consent("sampled pages");
    // A single byte near either end is always found.
    for offset in [0, 777_777, SIZE - 1] {
        device.write(SIZE / 2 - (1 << 20), &vec![0; 1 << 20]);
        device.write(offset, &[1]);
        device.refused(&Consent::default(), &format!("first at byte {}", offset / 4096 * 4096));
        device.write(offset, &[0]);
    }
}

#[test]
fn four_mib_anywhere_on_a_gib_need_consent() {
    let Some(device) = Examined::make("four_mib_anywhere_on_a_gib_need_consent", &[], 1 << 30) else {
        return;
    };
    let (data, zeros) = (vec![7; 4 << 20], vec![0; 4 << 20]);
    assert!(!device.examine().unwrap().needs_consent());
    for at_mib in (9..1000).step_by(50).chain([809]) {
        device.write(at_mib << 20, &data);
        assert!(device.examine().unwrap().needs_consent(), "at {at_mib} MiB");
        device.write(at_mib << 20, &zeros);
    }
    // Even if it is not in the backing file yet.
    let file = OpenOptions::new().write(true).open(&device.path).unwrap();
    file.write_all_at(&data, 809 << 20).unwrap();
    assert!(device.examine().unwrap().needs_consent());
}

#[test]
fn consent_to_another_device_is_none() {
    let Some(device) = Examined::blank("consent_to_another_device_is_none") else { return };
    device.run("mkfs.ext4", &["-q", "-F"]);
    let name = &device.path["/dev/".len()..];
    for typed in ["", "\n", "yes", &name[..name.len() - 1], &name.to_uppercase(), "vda"] {
        device.refused(&having_typed(typed), "ext4 signature");
    }
    let Err(error) = Consent::named(&["/dev/no-such-device".to_owned()], &facts()) else { panic!("found") };
    assert_eq!(error.exit_status(), 2);
    let facts = facts();
    if let Some(other) = facts.devices.iter().find(|other| other.path != Path::new(&device.path)) {
        let consent = Consent::named(std::slice::from_ref(&other.name), &facts).unwrap();
        device.refused(&consent, "--destroy");
    }
    assert!(guard::permit(device.examine().unwrap(), &having_typed(name)).is_ok());
    assert!(guard::permit(device.examine().unwrap(), &having_typed(&format!("{name}\n"))).is_ok());
}

#[test]
fn a_link_to_the_device_is_consent_as_well() {
    let Some(device) = Examined::blank("a_link_to_the_device_is_consent_as_well") else { return };
    device.run("mkfs.ext4", &["-q", "-F"]);
    let link = device.dir.path().join("link");
    std::os::unix::fs::symlink(&device.path, &link).unwrap();
    let link = link.to_str().unwrap().to_owned();
    let consent = Consent::named(std::slice::from_ref(&link), &facts()).unwrap();
    assert!(guard::permit(device.examine().unwrap(), &consent).is_ok());
    assert!(facts().same_device(&link, &device.path).unwrap());
    let error = facts().find_all(&[device.path.clone(), link]).unwrap_err();
    assert!(error.what.contains("are the same device"), "{error}");
}

#[test]
fn a_fill_of_ours_is_kept_without_and_with_consent() {
    let Some(device) = Examined::blank("a_fill_of_ours_is_kept_without_and_with_consent") else { return };
    device.write(0, MAGIC);
    for offset in (1..SIZE >> 20).map(|mib| mib << 20) {
        device.write(offset, MAGIC);
    }
    let before = device.hash();
    for consent in [Consent::default(), everything(&device)] {
        let found = device.examine().unwrap();
        assert!(found.own_fill && !found.needs_consent(), "{:?}", found.content);
        let claim = guard::permit(found, &consent).unwrap().open().unwrap();
        assert!(claim.has_own_fill());
        claim.wipe().unwrap();
        drop(claim);
        assert_eq!(device.hash(), before);
    }
    // Our header does not vouch for others' data.
    device.write(SIZE / 2, &vec![5; 1 << 20]);
    device.refused(&Consent::default(), "sampled pages");
    assert!(!device.examine().unwrap().own_fill);
}

#[test]
fn what_changed_since_the_examination_is_refused() {
    let Some(device) = Examined::blank("what_changed_since_the_examination_is_refused") else { return };
    let permit = guard::permit(device.examine().unwrap(), &Consent::default()).unwrap();
    device.run("mkfs.ext4", &["-q", "-F"]);
    let before = device.hash();
    let error = permit.open().unwrap_err();
    assert_eq!(error.exit_status(), 3);
    assert!(error.what.contains("was written to after"), "{error}");
    assert_eq!(device.hash(), before);
    // Mounted in the meantime.
    let permit = guard::permit(device.examine().unwrap(), &everything(&device)).unwrap();
    let at = device.dir.path().join("mount");
    std::fs::create_dir(&at).unwrap();
    let at = at.to_str().unwrap();
    run("mount", &["-o", "ro", &device.path, at]);
    let _unmount = undo(&["umount", at]);
    let before = device.hash();
    let error = permit.open().unwrap_err();
    assert!(error.what.contains("mounted at"), "{error}");
    assert_eq!(device.hash(), before);
}
