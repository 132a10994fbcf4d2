//! What is asked of a drive, and how many blocks and pages that makes.

/// Bytes of an entry of the mapping.
pub const ENTRY_BYTES: u64 = 4;
/// Flash pages of a drive: each takes 8 B of memory, and about as much again for the mapping.
const PAGES_MAX: u64 = 1 << 26;
/// Free blocks with which what is moved always finds room: once there are no more, garbage is collected at once.
pub const SHORT: u32 = 2;
/// Logical blocks of a group, and log blocks that it may have (He et al. 2017).
const GROUP: [u32; 2] = [8, 80];

/// How a drive finds a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mapping {
    /// By pages, the whole map in memory.
    Page,
    /// By pages, the map on flash, and as many bytes of it in a cache.
    OnDemand {
        /// The cache's size, at 4 B a page.
        cache_bytes: u64,
    },
    /// By blocks, with a log by pages.
    #[cfg(feature = "trace")]
    Hybrid,
}

/// What is asked of a drive.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FlashSpec {
    /// What it offers to the host.
    pub capacity_bytes: u64,
    /// A page of flash.
    pub page_bytes: u64,
    /// A block of flash, which is erased whole.
    pub block_bytes: u64,
    /// Dies, over which pages are striped.
    pub dies: u32,
    /// Flash beyond the capacity, by the capacity.
    pub over_provision: f64,
    /// How it finds a page.
    pub mapping: Mapping,
    /// Streams, each with open blocks of its own.
    pub streams: u32,
    /// Erases by which blocks may differ before what never changes is moved; none levels no wear.
    pub wear_spread: Option<u32>,
}

/// A drive in pages and blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Pages that the host sees.
    pub pages: u32,
    /// Pages of a block.
    pub block_pages: u32,
    /// Blocks for data, and for logs.
    pub data_blocks: u32,
    /// Of these, blocks that may be logs; 0 unless the mapping is hybrid.
    pub log_blocks: u32,
    /// Blocks for translation pages, in addition.
    pub mapping_blocks: u32,
    /// Translation pages.
    pub translation_pages: u32,
    /// Entries of a translation page.
    pub entries: u32,
    /// Translation pages that the cache has room for; none if the whole map is in memory.
    pub cached: Option<u32>,
    /// Dies.
    pub dies: u32,
    /// Streams.
    pub streams: u32,
    /// Garbage is collected once no more blocks are free.
    pub low: u32,
    /// Logical blocks of a group.
    pub group_blocks: u32,
    /// Log blocks that a group may have.
    pub group_logs: u32,
    /// Whether the over-provisioning that was asked for would not hold the blocks that are open or kept free.
    pub is_least: bool,
    /// See [`FlashSpec::wear_spread`].
    pub wear_spread: Option<u32>,
}

impl Sizes {
    /// The sizes of what is asked for.
    ///
    /// # Errors
    /// What is wrong with it, as a sentence.
    pub fn of(spec: &FlashSpec) -> Result<Self, String> {
        let FlashSpec { page_bytes, block_bytes, .. } = *spec;
        if page_bytes == 0 || !block_bytes.is_multiple_of(page_bytes) || block_bytes / page_bytes < 2 {
            return Err("a block of flash is to have at least two whole pages".to_owned());
        }
        if spec.dies == 0 || spec.streams == 0 || !(0.0..=1000.0).contains(&spec.over_provision) {
            return Err(
                "a drive has at least one die, one stream, and up to 1000 times its capacity in flash"
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

    /// Blocks beyond the capacity without which a drive can't work: those that are open or kept free, and one that can
    /// be emptied; for a hybrid mapping one log block, and two to merge.
    fn least_spare(spec: &FlashSpec, low: u64) -> u64 {
        if Self::is_hybrid(spec) {
            return 3;
        }
        u64::from(spec.dies) * u64::from(streams_of(spec.streams, spec.wear_spread)) + low + 1
    }

    /// Streams with those of what is moved.
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

    /// Flash for data beyond the capacity, by the capacity: at least what was asked for.
    pub fn spare_share(&self) -> f64 {
        f64::from(self.data_blocks) * f64::from(self.block_pages) / f64::from(self.pages) - 1.0
    }
}

fn streams_of(host: u32, wear_spread: Option<u32>) -> u32 {
    host + 1 + u32::from(wear_spread.is_some())
}
