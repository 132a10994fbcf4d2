//! How long the kernel's SQPOLL threads found work, from the rings' `fdinfo` (Linux 6.9).

use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// The file reads as empty while the ring's lock is held, mostly by that very thread.
const TRIES: usize = 20;

/// What a polling thread has done since it started, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::meter) struct Polled {
    work_us: u64,
    total_us: u64,
}

impl Polled {
    /// The share of its time since `last` in which it found work.
    pub fn share_since(self, last: Option<&Self>) -> f64 {
        let last = last.copied().unwrap_or(Self { work_us: 0, total_us: 0 });
        let total_us = self.total_us.saturating_sub(last.total_us);
        let work_us = self.work_us.saturating_sub(last.work_us);
        if total_us == 0 { 0.0 } else { (work_us as f64 / total_us as f64).min(1.0) }
    }
}

/// The polling threads of this process's rings, by thread number; those whose kernel does not report this are
/// left out. `tasks` is the process's folder of threads.
pub(in crate::meter) fn read(tasks: &Path) -> HashMap<i32, Polled> {
    let Some(process) = tasks.parent() else { return HashMap::new() };
    let files = std::fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
    let is_ring =
        |path: &Path| std::fs::read_link(path).is_ok_and(|to| to.as_os_str() == "anon_inode:[io_uring]");
    let rings =
        files.filter(|file| is_ring(&file.path())).map(|file| process.join("fdinfo").join(file.file_name()));
    let times = |ring: PathBuf| {
        (0..TRIES).find_map(|_| {
            let text = std::fs::read_to_string(&ring).ok()?;
            text.contains("SqThread:").then(|| parse(&text))
        })
    };
    rings.filter_map(times).flatten().collect()
}

/// The thread's number and its times, if the text has them. Parsed by hand: procfs-core does not know this text.
fn parse(text: &str) -> Option<(i32, Polled)> {
    let of = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)?.trim().parse::<u64>().ok());
    let thread = i32::try_from(of("SqThread:")?).ok().filter(|id| *id > 0)?;
    Some((thread, Polled { work_us: of("SqWorkTime:")?, total_us: of("SqTotalTime:")? }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_without_a_thread_or_with_its_lock_taken_has_no_times() {
        assert_eq!(
            parse("pos:\t0\nSqThread:\t-1\nSqThreadCpu:\t-1\nSqTotalTime:\t0\nSqWorkTime:\t0\n"),
            None
        );
        assert_eq!(parse("pos:\t0\nflags:\t02000002\n"), None);
        let polled = Polled { work_us: 5, total_us: 20 };
        assert_eq!(parse("SqThread:\t7\nSqTotalTime:\t20\nSqWorkTime:\t5\n"), Some((7, polled)));
        assert!((polled.share_since(None) - 0.25).abs() < 1e-9);
        assert!(polled.share_since(Some(&polled)).abs() < 1e-9);
    }
}
