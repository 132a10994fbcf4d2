//! Lists of recordings: the date, the profile, the length, and a line of figures.

use std::fmt::Write;

use serde::Serialize;

use super::cells::{WIDTH, latency, paragraph};
use crate::printable::line;
use crate::runs::record::{Listed, ListedFigures};
use crate::ui::clock;
use crate::ui::text::{NONE, left};
use crate::units::{approx_span, three_digits};

const PROFILE_CELLS: usize = 24;
const INDENT: &str = "    ";

/// The recordings of a folder.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ListedFolder {
    /// The folder.
    pub folder: String,
    /// Its recordings, the newest first.
    pub recordings: Vec<Listed>,
}

/// When a recording began, by the local clock.
pub fn date(listed: &Listed) -> String {
    listed.started_unix_s.and_then(clock::local_time).unwrap_or_else(|| "undated".to_owned())
}

/// Its profile and its length.
pub fn profile_and_length(listed: &Listed) -> (String, String) {
    match &listed.figures {
        Some(figures) => (figures.profile.clone(), approx_span(figures.duration_s)),
        None => (NONE.to_owned(), NONE.to_owned()),
    }
}

/// A line of its figures, or why it has none.
pub fn figures(listed: &Listed) -> String {
    match &listed.figures {
        Some(figures) => figures_text(figures),
        None => listed.problem.clone().unwrap_or_default(),
    }
}

fn figures_text(figures: &ListedFigures) -> String {
    let flags = match figures.flags {
        0 => String::new(),
        1 => ", 1 flag".to_owned(),
        many => format!(", {many} flags"),
    };
    let failed = figures.failure.as_ref().map_or_else(String::new, |why| format!("; failed: {why}"));
    format!(
        "{} MB/s, scan {}; p99 of point {}, wal {}{flags}{failed}",
        three_digits(figures.mb_per_s),
        three_digits(figures.scan_mb_per_s),
        latency(figures.point_p99_ns),
        latency(figures.wal_p99_ns),
    )
}

/// The lists of these folders as text of 80 columns.
pub fn recordings(folders: &[ListedFolder]) -> String {
    let mut out = String::new();
    for ListedFolder { folder, recordings } in folders {
        if !out.is_empty() {
            out.push('\n');
        }
        let _ = writeln!(out, "{}", heading(folder, recordings.len()));
        for listed in recordings {
            let (profile, length) = profile_and_length(listed);
            let profile = left(&profile, PROFILE_CELLS);
            let _ = writeln!(out, "{}  {profile}  {length:>7}  {}", date(listed), listed.name);
            let _ = writeln!(out, "{INDENT}{}", paragraph(&figures(listed), WIDTH - INDENT.len(), INDENT));
        }
    }
    out
}

fn heading(folder: &str, count: usize) -> String {
    let folder = line(folder);
    match count {
        0 => format!("{folder}: no recordings"),
        1 => format!("{folder}: 1 recording"),
        many => format!("{folder}: {many} recordings"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_dates_profiles_lengths_and_figures() {
        let whole = Listed {
            dir: "/data/demo-1".into(),
            name: "demo-1".into(),
            started_unix_s: None,
            figures: Some(ListedFigures {
                profile: "demo".into(),
                duration_s: 30.0,
                mb_per_s: 2449.0,
                scan_mb_per_s: 1850.0,
                point_p99_ns: Some(288_000),
                wal_p99_ns: None,
                flags: 2,
                failure: None,
            }),
            problem: None,
        };
        let killed = Listed {
            name: "demo-2".into(),
            figures: None,
            problem: Some("it is still being recorded, or was killed".into()),
            ..whole.clone()
        };
        let of = |folder: &str, recordings| ListedFolder { folder: folder.into(), recordings };
        let text = recordings(&[of("/data", vec![whole, killed]), of("/none", Vec::new())]);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "/data: 2 recordings",
                "undated  demo                          30s  demo-1",
                "    2449 MB/s, scan 1850; p99 of point 288µs, wal –, 2 flags",
                "undated  –                               –  demo-2",
                "    it is still being recorded, or was killed",
                "",
                "/none: no recordings",
            ]
        );
    }
}
