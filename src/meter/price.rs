//! What storage costs for what it holds and what it moves.

/// What a TB costs of a stack of that price, in $.
pub fn price_per_tb(price: f64, usable_bytes: u64) -> Option<f64> {
    (usable_bytes > 0).then(|| price / (usable_bytes as f64 / 1e12))
}

/// What a GB/s of scan costs at that throughput, in $; none where nothing was scanned.
pub fn price_per_scan_gb_per_s(price: f64, scan_mb_per_s: f64) -> Option<f64> {
    (scan_mb_per_s > 0.0).then(|| price / (scan_mb_per_s / 1e3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_is_of_the_usable_tb_and_of_what_was_scanned() {
        assert_eq!(price_per_tb(500.0, 8_000_000_000_000), Some(62.5));
        assert_eq!(price_per_scan_gb_per_s(500.0, 25_000.0), Some(20.0));
        assert_eq!((price_per_tb(500.0, 0), price_per_scan_gb_per_s(500.0, 0.0)), (None, None));
    }
}
