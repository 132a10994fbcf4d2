//! The price of storage per capacity and per throughput.

/// The price per usable TB, in $.
pub fn price_per_tb(price: f64, usable_bytes: u64) -> Option<f64> {
    (usable_bytes > 0).then(|| price / (usable_bytes as f64 / 1e12))
}

/// The price per GB/s of scan, in $; none if nothing was scanned.
pub fn price_per_scan_gb_per_s(price: f64, scan_mb_per_s: f64) -> Option<f64> {
    (scan_mb_per_s > 0.0).then(|| price / (scan_mb_per_s / 1e3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_per_usable_tb_and_per_scan_throughput() {
        assert_eq!(price_per_tb(500.0, 8_000_000_000_000), Some(62.5));
        assert_eq!(price_per_scan_gb_per_s(500.0, 25_000.0), Some(20.0));
        assert_eq!((price_per_tb(500.0, 0), price_per_scan_gb_per_s(500.0, 0.0)), (None, None));
    }
}
