//! Which class an I/O is like, by the reads and writes that follow each other on the drive.

use std::collections::{HashMap, VecDeque};

use crate::class::Class;
use crate::trace::io::{Op, TracedIo};

/// This many I/Os in a row, each starting where the previous one ended, are sequential.
const RUN_IOS_MIN: u64 = 8;
/// How many recent ends of I/Os are remembered, for others to continue at.
const HEADS_MAX: usize = 4096;

/// What an I/O is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Like {
    /// The class; `None` for discards and flushes.
    pub class: Option<Class>,
    /// Whether it continues where an earlier one ended.
    pub goes_on: bool,
}

/// I/Os that follow each other on the drive.
#[derive(Debug)]
struct Run {
    writes: bool,
    ios: u64,
    /// Flushes in the trace before its first and before its last I/O.
    flushes: [u64; 2],
    /// How many of its I/Os come after a flush since the previous one.
    after_flush: u64,
    /// Flushes for which its I/O was the last write before.
    before_flush: u64,
}

impl Run {
    /// Writes in a row are a log if most of them follow a flush, or if most flushes follow one of them.
    fn class(&self) -> Class {
        let is_long = self.ios >= RUN_IOS_MIN;
        let [first, last] = self.flushes;
        let is_flushed = 2 * self.after_flush >= self.ios
            || self.before_flush > 1 && 2 * self.before_flush >= last.saturating_sub(first);
        match (self.writes, is_long) {
            (false, true) => Class::Scan,
            (false, false) => Class::Point,
            (true, true) if is_flushed => Class::Wal,
            (true, _) => Class::Background,
        }
    }
}

/// What each I/O is like, in order of issue.
pub fn likes(ios: &[TracedIo]) -> Vec<Like> {
    let (mut runs, mut of): (Vec<Run>, Vec<Option<(usize, bool)>>) = (Vec::new(), Vec::new());
    let (mut heads, mut order) = (HashMap::new(), VecDeque::new());
    let (mut flushes, mut last_write) = (0, None);
    for io in ios {
        if io.op == Op::Flush {
            flushes += 1;
            if let Some(run) = last_write {
                let run: &mut Run = &mut runs[run];
                run.before_flush += 1;
            }
        }
        if !io.op.moves_data() {
            of.push(None);
            continue;
        }
        let writes = io.op == Op::Write;
        let found = heads.remove(&(writes, io.offset_bytes)).map(|(run, _)| run);
        let at = found.unwrap_or(runs.len());
        if found.is_none() {
            runs.push(Run { writes, ios: 0, flushes: [flushes; 2], after_flush: 0, before_flush: 0 });
        }
        let run = &mut runs[at];
        run.ios += 1;
        run.after_flush += u64::from(run.flushes[1] < flushes);
        run.flushes[1] = flushes;
        if writes {
            last_write = Some(at);
        }
        let head = (writes, io.end_bytes());
        // A stream that starts over returns to ends that it had before.
        heads.insert(head, (at, of.len()));
        order.push_back((head, of.len()));
        if order.len() > HEADS_MAX
            && let Some((oldest, since)) = order.pop_front()
            && heads.get(&oldest).is_some_and(|(_, at)| *at == since)
        {
            heads.remove(&oldest);
        }
        of.push(Some((at, found.is_some())));
    }
    let like = |of: Option<(usize, bool)>| match of {
        Some((run, goes_on)) => Like { class: Some(runs[run].class()), goes_on },
        None => Like { class: None, goes_on: false },
    };
    of.into_iter().map(like).collect()
}
