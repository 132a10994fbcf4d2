//! What `RocksDB` reports about itself: tickers, histograms and properties.

use rocksdb::statistics::{Histogram, Ticker};
use rocksdb::{DB, Options};

use crate::meter::counts::engine::{EngineFigures, EngineTime, EngineTotals};

/// The histograms to read: gets, seeks, writes, syncs of the log, write stalls and compactions.
const TIMES: [Histogram; 6] = [
    Histogram::DbGet,
    Histogram::DbSeek,
    Histogram::DbWrite,
    Histogram::WalFileSyncMicros,
    Histogram::WriteStall,
    Histogram::CompactionTime,
];

/// The counts since the statistics began; the application's own reads and writes are left to its counters.
pub fn totals(options: &Options) -> EngineTotals {
    let of = |ticker| options.get_ticker_count(ticker);
    EngineTotals {
        user_written_bytes: 0,
        user_read_bytes: 0,
        log_bytes: of(Ticker::WalFileBytes),
        log_syncs: of(Ticker::WalFileSynced),
        flush_bytes: of(Ticker::FlushWriteBytes),
        compaction_read_bytes: of(Ticker::CompactReadBytes),
        compaction_written_bytes: of(Ticker::CompactWriteBytes),
        stall_ns: of(Ticker::StallMicros) * 1000,
        cache_hits: of(Ticker::BlockCacheDataHit),
        cache_misses: of(Ticker::BlockCacheDataMiss),
        filter_hits: of(Ticker::BloomFilterUseful),
    }
}

/// All figures of an open database.
pub fn figures(options: &Options, db: &DB) -> EngineFigures {
    let property = |name: &str| db.property_int_value(name).ok().flatten().unwrap_or(0);
    let times = TIMES.into_iter().filter_map(|histogram| {
        let name = histogram.name().to_owned();
        let data = options.get_histogram_data(histogram);
        let (p50, p99, max) = (data.median(), data.p99(), data.max());
        (data.count() > 0).then(|| EngineTime { name, count: data.count(), p50, p99, max })
    });
    EngineFigures {
        counts: totals(options),
        times_us: times.collect(),
        files_bytes: property("rocksdb.total-sst-files-size"),
        pending_compaction_bytes: property("rocksdb.estimate-pending-compaction-bytes"),
        stopped: property("rocksdb.is-write-stopped") > 0,
    }
}
