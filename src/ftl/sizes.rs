//! What a drive is asked to be, and how many blocks and pages that makes.

/// Bytes of a mapping entry.
pub const ENTRY_BYTES: u64 = 4;
/// Maximum flash pages of a drive: each takes 8 B of memory, and about as much again for the mapping.
const PAGES_MAX: u64 = 1 << 26;
/// Free blocks that moved pages always have room with: at this number or below, garbage is collected at once.
pub const SHORT: u32 = 2;
/// Logical blocks of a group, and the log blocks that it may have (He et al. 2017).
const GROUP: [u32; 2] = [8, 80];

/// How a drive finds a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mapping {
    /// By pages, with the whole map in memory.
    Page,
    /// By pages, with the map on flash and a cache of this size for it.
    OnDemand {
        /// Bytes of the cache, at 4 B per page.
        cache_bytes: u64,
    },
    /// By blocks, with a log mapped by pages.
    #[cfg(feature = "trace")]
    Hybrid,
}

/// What a drive is asked to be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FlashSpec {
    /// Bytes that the host sees.
    pub capacity_bytes: u64,
    /// Bytes of a flash page.
    pub page_bytes: u64,
    /// Bytes of a flash block, which is erased as a whole.
    pub block_bytes: u64,
    /// Dies, over which pages are striped.
    pub dies: u32,
    /// Flash beyond the capacity, as a share of the capacity.
    pub over_provision: f64,
    /// How it finds a page.
    pub mapping: Mapping,
    /// Streams, each with its own open blocks.
    pub streams: u32,
    /// How far the erase counts of blocks may differ before cold data is moved; `None` for no wear levelling.
    pub wear_spread: Option<u32>,
}

/// A drive's sizes in pages and blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Pages that the host sees.
    pub pages: u32,
    /// Pages of a block.
    pub block_pages: u32,
    /// Blocks for data and logs.
    pub data_blocks: u32,
    /// How many of these may be logs; 0 unless the mapping is hybrid.
    pub log_blocks: u32,
    /// Additional blocks for translation pages.
    pub mapping_blocks: u32,
    /// Translation pages.
    pub translation_pages: u32,
    /// Entries of a translation page.
    pub entries: u32,
    /// Translation pages that fit in the cache; `None` if the whole map is in memory.
    pub cached: Option<u32>,
    /// Dies.
    pub dies: u32,
    /// Streams.
    pub streams: u32,
    /// Garbage is collected once this many blocks or fewer are free.
    pub low: u32,
    /// Logical blocks of a group.
    pub group_blocks: u32,
    /// Log blocks that a group may have.
    pub group_logs: u32,
    /// Whether the requested over-provisioning is less than the blocks that are open or kept free.
    pub is_least: bool,
    /// See [`FlashSpec::wear_spread`].
    pub wear_spread: Option<u32>,
}

impl Sizes {
    /// The sizes for a spec.
    ///
    /// # Errors
    /// What is wrong with it, as a sentence.
    pub fn of(spec: &FlashSpec) -> Result<Self, String> {
        let FlashSpec { page_bytes, block_bytes, .. } = *spec;
        if page_bytes == 0 || !block_bytes.is_multiple_of(page_bytes) || block_bytes / page_bytes < 2 {
            return Err("a flash block must have at least two whole pages".to_owned());
        }
        if spec.dies == 0 || spec.streams == 0 || !(0.0..=1000.0).contains(&spec.over_provision) {
            return Err(
                "a drive must have at least one die, one stream, and up to 1000 times its capacity in flash"
                    .to_owned(),
            );
        }
        let pages = spec.capacity_bytes.div_ceil(page_bytes).max(1);
        let block_pages = block_bytes / page_bytes;
        let logical_blocks = pages.div_ceil(block_pages);
        let low = u64::from(SHORT.max(spec.dies / 2));
        let least = Self::least_spare(spec, low);
        let asked = (logical_blocks as f64 * spec.over_provision).round() as u64;
        let data_blocks = logical_blocks + asked.max(least);
        let entries = (page_bytes / ENTRY_BYTES).max(1);
        let translation_pages = pages.div_ceil(entries);
        let cached = match spec.mapping {
            Mapping::OnDemand { cache_bytes } => Some((cache_bytes / page_bytes).clamp(1, translation_pages)),
            _ => None,
        };
        let open = 2 * u64::from(spec.dies);
        let mapping_blocks =
            cached.map_or(0, |_| 2 * translation_pages.div_ceil(block_pages) + open + low + 1);
        if (data_blocks + mapping_blocks).saturating_mul(block_pages) > PAGES_MAX {
            let what = format!("such a drive has over {PAGES_MAX} pages of flash, more than is simulated");
            return Err(what);
        }
        Ok(Self {
            pages: pages as u32,
            block_pages: block_pages as u32,
            data_blocks: data_blocks as u32,
            log_blocks: if Self::is_hybrid(spec) { (data_blocks - logical_blocks) as u32 - 2 } else { 0 },
            mapping_blocks: mapping_blocks as u32,
            translation_pages: translation_pages as u32,
            entries: entries as u32,
            cached: cached.map(|cached| cached as u32),
            dies: spec.dies,
            streams: spec.streams,
            low: low as u32,
            group_blocks: GROUP[0],
            group_logs: GROUP[1],
            is_least: asked < least,
            wear_spread: spec.wear_spread,
        })
    }

    /// Blocks beyond the capacity that a drive needs to work: those that are open or kept free, and one that
    /// can be emptied; for a hybrid mapping one log block, and two to merge.
    fn least_spare(spec: &FlashSpec, low: u64) -> u64 {
        if Self::is_hybrid(spec) {
            return 3;
        }
        u64::from(spec.dies) * u64::from(streams_of(spec.streams, spec.wear_spread)) + low + 1
    }

    /// All streams, including those for moved pages.
    pub fn all_streams(&self) -> u32 {
        streams_of(self.streams, self.wear_spread)
    }

    #[cfg(feature = "trace")]
    fn is_hybrid(spec: &FlashSpec) -> bool {
        spec.mapping == Mapping::Hybrid
    }

    #[cfg(not(feature = "trace"))]
    fn is_hybrid(_: &FlashSpec) -> bool {
        false
    }

    /// Flash for data beyond the capacity, as a share of the capacity: at least what was asked for.
    pub fn spare_share(&self) -> f64 {
        f64::from(self.data_blocks) * f64::from(self.block_pages) / f64::from(self.pages) - 1.0
    }
}

fn streams_of(host: u32, wear_spread: Option<u32>) -> u32 {
    host + 1 + u32::from(wear_spread.is_some())
}
