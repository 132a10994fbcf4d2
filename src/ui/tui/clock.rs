//! The local time as a folder's name.

use tz::{DateTime, TimeZone};

/// The local date and time as `2026-01-31_14-05-09`; in UTC on a host without a time zone.
pub fn local_stamp() -> String {
    let zone = match std::env::var("TZ") {
        Ok(name) => TimeZone::from_posix_tz(&name),
        Err(_) => TimeZone::local(),
    };
    let Ok(now) = DateTime::now(zone.unwrap_or_else(|_| TimeZone::utc()).as_ref()) else {
        return "undated".to_owned();
    };
    let [month, day, hour, minute, second] =
        [now.month(), now.month_day(), now.hour(), now.minute(), now.second()];
    format!("{:04}-{month:02}-{day:02}_{hour:02}-{minute:02}-{second:02}", now.year())
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
