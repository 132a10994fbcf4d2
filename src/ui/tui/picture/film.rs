//! What was on the screen during a run, and how it is played.

use std::time::Duration;

use ratatui::buffer::Buffer;

/// How much faster it is played.
const FASTER: f64 = 4.0;
/// The shortest and the longest time that a frame is shown, in seconds: long still stretches are cut.
const SHOWN_S: (f64, f64) = (0.2, 1.0);
/// The shortest of a frame that shows what happened, and that of the last one.
const SHOWN_IF_NOTABLE_S: f64 = 0.8;
const LAST_SHOWN_S: f64 = 5.0;

/// A screen, and from when on it was shown.
#[derive(Debug)]
pub(super) struct Frame {
    pub at: Duration,
    pub screen: Buffer,
    /// Whether something happened, such as a verdict.
    pub notable: bool,
}

/// The screens of a run.
#[derive(Debug, Default)]
pub struct Film {
    frames: Vec<Frame>,
}

/// A frame as it is played, and when it begins, in seconds.
#[derive(Debug)]
pub(super) struct Played<'a> {
    pub from_s: f64,
    pub screen: &'a Buffer,
}

impl Film {
    /// Adds what is on the screen now, if that has changed.
    pub fn add(&mut self, at: Duration, screen: Buffer, notable: bool) {
        match self.frames.last_mut() {
            Some(last) if last.screen == screen => last.notable |= notable,
            _ => self.frames.push(Frame { at, screen, notable }),
        }
    }

    pub(super) fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// The first, last and notable frames, and one in `one_in` of the others; and how long all play, in seconds.
    pub(super) fn played(&self, one_in: usize) -> (Vec<Played<'_>>, f64) {
        let (mut played, mut now_s, mut skipped) = (Vec::new(), 0.0, 0);
        let mut before: Option<&Frame> = None;
        for (n, frame) in self.frames.iter().enumerate() {
            skipped += 1;
            if !frame.notable && n > 0 && n + 1 < self.frames.len() && skipped < one_in {
                continue;
            }
            skipped = 0;
            if let Some(before) = before {
                let least_s = if before.notable { SHOWN_IF_NOTABLE_S } else { SHOWN_S.0 };
                let shown_s = frame.at.saturating_sub(before.at).as_secs_f64() / FASTER;
                now_s += shown_s.clamp(least_s, SHOWN_S.1);
            }
            played.push(Played { from_s: now_s, screen: &frame.screen });
            before = Some(frame);
        }
        (played, now_s + LAST_SHOWN_S)
    }
}

#[cfg(test)]
mod tests {
    use ratatui::layout::Rect;

    use super::*;

    #[test]
    fn still_stretches_are_cut_and_what_happens_is_shown_for_longer() {
        let mut film = Film::default();
        for (at_s, text, notable) in [
            (0, "a", false),
            (2, "b", false),
            (2, "b", true),
            (3, "c", false),
            (100, "d", false),
            (101, "e", false),
        ] {
            let mut screen = Buffer::empty(Rect::new(0, 0, 1, 1));
            screen[(0, 0)].set_symbol(text);
            film.add(Duration::from_secs(at_s), screen, notable);
        }
        let from = |one_in| {
            let (frames, all_s) = film.played(one_in);
            let from: Vec<_> =
                frames.iter().map(|frame| (frame.screen[(0, 0)].symbol(), frame.from_s)).collect();
            (from.into_iter().map(|(text, from_s)| format!("{text}{from_s:.2}")).collect::<Vec<_>>(), all_s)
        };
        assert_eq!(
            from(1),
            (["a0.00", "b0.50", "c1.30", "d2.30", "e2.55"].map(str::to_owned).to_vec(), 7.55)
        );
        assert_eq!(from(9).0, ["a0.00", "b0.50", "e1.50"], "the first, the notable one, the last");
    }
}
