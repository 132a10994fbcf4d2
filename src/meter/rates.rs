//! Shares and rates that windows and totals compute alike.

/// Whether over 1% of the intended starts were missed.
pub(super) fn not_held(intended: u64, missed: u64) -> bool {
    missed.saturating_mul(100) > intended
}

/// The share of the bytes read that storage did not serve. Read-ahead may fetch more from storage than was
/// read.
pub(super) fn cache_share(storage_bytes: u64, read_bytes: u64) -> Option<f64> {
    (read_bytes > 0).then(|| 1.0 - (storage_bytes as f64 / read_bytes as f64).min(1.0))
}

/// A count per second.
pub(super) fn per_s(count: u64, duration_ns: u64) -> f64 {
    if duration_ns == 0 { 0.0 } else { count as f64 * 1e9 / duration_ns as f64 }
}
