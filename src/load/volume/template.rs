//! The random sectors from which every page is made: one copy for all workers, made before they start.

use std::sync::OnceLock;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::units::MIB;

/// Bytes of a sector.
pub const SECTOR_BYTES: usize = 512;
/// Where the checksum of a sector's body is, and where the body begins.
pub(super) const CHECKSUM_AT: usize = 32;
pub(super) const BODY_AT: usize = 36;

/// As long as the longest page, so that no two sectors of a page are made from the same one.
const TEMPLATE_SECTORS: usize = MIB as usize / SECTOR_BYTES;
const TEMPLATE_SEED: u64 = 0x7374_6163_6b74_756e;

/// The sectors, each with the checksum of its body in its place.
pub(super) fn template() -> &'static [[u8; SECTOR_BYTES]] {
    static TEMPLATE: OnceLock<Box<[[u8; SECTOR_BYTES]]>> = OnceLock::new();
    TEMPLATE.get_or_init(|| {
        let mut random = StdRng::seed_from_u64(TEMPLATE_SEED);
        let mut sectors = vec![[0; SECTOR_BYTES]; TEMPLATE_SECTORS];
        for sector in &mut sectors {
            random.fill_bytes(sector);
            let checksum = crc32c::crc32c(&sector[BODY_AT..]);
            sector[CHECKSUM_AT..BODY_AT].copy_from_slice(&checksum.to_le_bytes());
        }
        sectors.into()
    })
}
