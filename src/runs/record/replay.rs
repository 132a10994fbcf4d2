//! A recording window by window, each with its histograms, as the run reported them.

use std::collections::btree_map::Entry;
use std::io::BufReader;
use std::sync::Arc;

use super::hlog::{self, Interval, Sums};
use super::names::LATENCY;
use super::rebuild;
use super::recording::Recording;
use crate::error::{Error, Result};
use crate::meter::whole_run::totals::Totals;
use crate::meter::window::{ClassHistograms, Window};
use crate::regular_file;

impl Recording {
    /// Passes on each window with its histograms, in order, and returns the totals of those that count. A
    /// window that is missing in the log has no histograms; nor has any window if there is no log.
    ///
    /// # Errors
    /// If the log can't be read.
    pub fn replay(&self, take: impl FnMut(Window)) -> Result<Totals> {
        let path = self.dir.join(LATENCY);
        let mut hand = Hand {
            windows: &self.windows,
            next: 0,
            held: Default::default(),
            sums: Sums::new(),
            damage: None,
            take,
        };
        match regular_file::open(&path) {
            Ok(log) => hlog::each(BufReader::new(log), &self.windows, |interval| hand.add(&interval)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
        .map_err(|error| Error::os("cannot read", &path, error))?;
        hand.up_to(self.windows.len());
        if let Some(why) = hand.damage {
            return Err(Error::failed(format!("{LATENCY} is damaged: {why}")));
        }
        let counted: Vec<_> = self.windows.iter().filter(|window| rebuild::counts(window)).collect();
        Ok(rebuild::totals(&counted, &hand.sums))
    }
}

/// The histograms of the window that is passed on next, and the sums of the others.
struct Hand<'a, F> {
    windows: &'a [Window],
    next: usize,
    held: [ClassHistograms; 4],
    sums: Sums,
    damage: Option<String>,
    take: F,
}

impl<F: FnMut(Window)> Hand<'_, F> {
    /// Passes on the windows before that one.
    fn up_to(&mut self, window: usize) {
        while self.next < window {
            let histograms = Arc::new(std::mem::take(&mut self.held));
            (self.take)(Window { histograms, ..self.windows[self.next].clone() });
            self.next += 1;
        }
    }

    fn add(&mut self, interval: &Interval) {
        // Out of order: no run wrote it, and it was reported when the recording was read.
        if interval.window < self.next {
            return;
        }
        self.up_to(interval.window);
        let of = &mut self.held[interval.class.index()];
        let place = match interval.suffix {
            "" => &mut of.service,
            ".response" => &mut of.response,
            ".write" => &mut of.write,
            _ => &mut of.flush,
        };
        // A repeated line counts once.
        if place.is_some() {
            return;
        }
        let samples = &interval.samples;
        let taken = samples.histogram().and_then(|mut histogram| {
            samples.add_to(&mut histogram)?;
            *place = Some(histogram);
            if !rebuild::counts(&self.windows[interval.window]) {
                return Ok(());
            }
            match self.sums.entry(format!("{}{}", interval.class, interval.suffix)) {
                Entry::Occupied(sum) => samples.add_to(sum.into_mut()),
                Entry::Vacant(none) => samples.add_to(none.insert(samples.histogram()?)),
            }
        });
        self.damage = self.damage.take().or(taken.err());
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{self, Like};
    use super::super::tests::written;
    use super::super::{Outcome, Recording};
    use super::*;

    #[test]
    fn windows_come_back_with_the_histograms_that_they_had() {
        let (dir, windows) = (tempfile::tempdir().unwrap(), fixture::windows(Like::default()));
        let totals = fixture::totals(&windows);
        written(dir.path(), &windows).finish(&totals, &Outcome::Complete).unwrap();
        let recording = Recording::open(dir.path()).unwrap();
        let mut back = Vec::new();
        let again = recording.replay(|window| back.push(window)).unwrap();
        assert_eq!(back.len(), windows.len());
        for (before, after) in windows.iter().zip(&back) {
            let histograms = before.histograms.iter().zip(after.histograms.iter());
            for (one, other) in histograms {
                let of = |h: &ClassHistograms| [h.service.clone(), h.response.clone(), h.write.clone()];
                assert_eq!(of(one), of(other), "window {}", before.index);
            }
            assert_eq!(before.classes, after.classes);
        }
        let latencies = |totals: &Totals| totals.classes.clone().map(|class| class.latencies);
        assert_eq!(latencies(&again), latencies(&totals), "those of the warm-up are left out");
        assert_eq!((again.windows, again.duration_s), (totals.windows, totals.duration_s));
    }

    #[test]
    fn without_a_log_there_are_windows_without_histograms() {
        let (dir, windows) = (tempfile::tempdir().unwrap(), fixture::windows(Like::default()));
        written(dir.path(), &windows).finish(&fixture::totals(&windows), &Outcome::Complete).unwrap();
        std::fs::remove_file(dir.path().join(LATENCY)).unwrap();
        let recording = Recording::open(dir.path()).unwrap();
        assert!(
            recording.notes.iter().any(|note| note.contains("can't be checked")),
            "{:?}",
            recording.notes
        );
        let mut empty = 0;
        recording.replay(|window| empty += usize::from(window.histograms[0].service.is_none())).unwrap();
        assert_eq!(empty, windows.len());
    }
}
