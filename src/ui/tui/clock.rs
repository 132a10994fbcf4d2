//! The local time as a folder's name.

use std::time::{SystemTime, UNIX_EPOCH};

/// The local date and time as `2026-01-31_14-05-09`.
pub fn local_stamp() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let Some(tm) = broken_down(now) else { return format!("{now}") };
    format!(
        "{:04}-{:02}-{:02}_{:02}-{:02}-{:02}",
        tm.tm_year + 1900,
        tm.tm_mon + 1,
        tm.tm_mday,
        tm.tm_hour,
        tm.tm_min,
        tm.tm_sec
    )
}

/// The local calendar's fields of a time in seconds since 1970.
#[allow(unsafe_code)]
fn broken_down(seconds: u64) -> Option<libc::tm> {
    let time = libc::time_t::try_from(seconds).ok()?;
    let mut tm = std::mem::MaybeUninit::<libc::tm>::zeroed();
    // SAFETY: both pointers are to live, aligned values; `localtime_r` keeps neither.
    let filled = unsafe { libc::localtime_r(&raw const time, tm.as_mut_ptr()) };
    // SAFETY: zeroed bytes are a valid `tm`, and `localtime_r` has filled it where it succeeded.
    (!filled.is_null()).then(|| unsafe { tm.assume_init() })
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_stamp_sorts_by_time_and_suits_a_file_name() {
        let stamp = super::local_stamp();
        assert_eq!(stamp.len(), 19, "{stamp}");
        assert!(stamp.chars().all(|c| c.is_ascii_digit() || c == '-' || c == '_'), "{stamp}");
    }
}
