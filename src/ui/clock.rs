//! The local time, as a folder's name and for reading.

use tz::{DateTime, TimeZone, TimeZoneSettings};

use crate::regular_file;

/// Many times the size of any time zone's file.
const ZONE_BYTES_MAX: u64 = 1 << 20;

/// The local date and time as `2026-01-31_14-05-09`; in UTC on a host without a time zone.
pub fn local_stamp() -> String {
    let zone = zone(std::env::var("TZ").ok().as_deref()).unwrap_or_else(TimeZone::utc);
    let Ok(now) = DateTime::now(zone.as_ref()) else {
        return "undated".to_owned();
    };
    let [month, day, hour, minute, second] =
        [now.month(), now.month_day(), now.hour(), now.minute(), now.second()];
    format!("{:04}-{month:02}-{day:02}_{hour:02}-{minute:02}-{second:02}", now.year())
}

/// The local date and time of a second since 1970, as `2026-01-31 14:05`; none if it is beyond the calendar.
pub fn local_time(unix_s: u64) -> Option<String> {
    let zone = zone(std::env::var("TZ").ok().as_deref()).unwrap_or_else(TimeZone::utc);
    let time = DateTime::from_timespec(i64::try_from(unix_s).ok()?, 0, zone.as_ref()).ok()?;
    let [month, day, hour, minute] = [time.month(), time.month_day(), time.hour(), time.minute()];
    Some(format!("{:04}-{month:02}-{day:02} {hour:02}:{minute:02}", time.year()))
}

/// The zone of that name, or the host's. The name is the caller's and may lead to any file, such as an endless one or
/// a pipe that would block.
fn zone(name: Option<&str>) -> Option<TimeZone> {
    let read = |path: &str| Ok(regular_file::read(path.as_ref(), ZONE_BYTES_MAX)?);
    let files = TimeZoneSettings::new(TimeZoneSettings::DEFAULT_DIRECTORIES, read);
    match name {
        Some(name) => files.parse_posix_tz(name).ok(),
        None => files.parse_local().ok(),
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    #[test]
    fn a_zone_is_a_rule_or_a_regular_file_and_nothing_else_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR, 0).unwrap();
        for path in [pipe.to_str().unwrap(), "/dev/zero", "../../../dev/zero"] {
            assert!(super::zone(Some(path)).is_none() && super::zone(Some(&format!(":{path}"))).is_none());
        }
        let offset = |name| {
            let zone = super::zone(Some(name)).unwrap();
            zone.find_local_time_type(0).unwrap().ut_offset()
        };
        assert_eq!((offset("CET-1"), offset("UTC0")), (3600, 0));
        // RFC 8536's smallest: one type, an hour east of Greenwich.
        let mut file = b"TZif\0".to_vec();
        file.resize(20, 0);
        file.extend([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 4]);
        file.extend([0, 0, 0x0e, 0x10, 0, 0]);
        file.extend(b"CET\0");
        let path = dir.path().join("zone");
        std::fs::write(&path, file).unwrap();
        assert_eq!(offset(path.to_str().unwrap()), 3600);
    }

    #[test]
    fn a_time_is_given_to_the_minute_if_a_calendar_has_it() {
        let time = super::local_time(1_795_439_654).unwrap();
        assert!(time.starts_with("2026-11-") && time.len() == 16, "{time}");
        assert_eq!(super::local_time(u64::MAX), None);
    }

    #[test]
    fn a_stamp_sorts_by_time_and_suits_a_file_name() {
        let stamp = super::local_stamp();
        assert_eq!(stamp.len(), 19, "{stamp}");
        assert!(stamp.chars().all(|c| c.is_ascii_digit() || c == '-' || c == '_'), "{stamp}");
    }
}
