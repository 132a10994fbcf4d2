//! Splits pages that one command can't move: the operation takes several, and completes with the last.

use super::backend::Done;

/// How a worker's operations are split, and the progress of each.
pub struct Parts {
    bytes: usize,
    count: u32,
    /// By slot.
    states: Box<[State]>,
}

/// The progress of an operation.
#[derive(Debug, Clone, Copy, Default)]
struct State {
    /// Parts that are not yet complete.
    left: u32,
    /// Bytes moved by the completed parts.
    moved: i32,
    /// The negative errno of the last part that failed; 0 if none did.
    failed: i32,
}

impl Parts {
    /// For pages of `page_bytes`, a power of two, and commands that move at most `command_bytes_max`.
    pub fn new(page_bytes: usize, command_bytes_max: usize, slots: u32) -> Self {
        let bytes = page_bytes.min(1 << command_bytes_max.max(1).ilog2());
        let count = (page_bytes / bytes) as u32;
        Self { bytes, count, states: vec![State::default(); slots as usize].into() }
    }

    /// Bytes of a part.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The number of parts of a page.
    #[inline]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Begins an operation of `count` parts.
    #[inline]
    pub fn begin(&mut self, slot: u32, count: u32) {
        self.states[slot as usize] = State { left: count, ..State::default() };
    }

    /// Records that a part completed: `result` is the bytes moved, or a negative errno. Returns the
    /// operation's result if this was its last part.
    #[inline]
    pub fn over(&mut self, slot: u32, result: i32) -> Option<Done> {
        let state = &mut self.states[slot as usize];
        if result < 0 {
            state.failed = result;
        } else {
            state.moved += result;
        }
        state.left -= 1;
        let result = if state.failed < 0 { state.failed } else { state.moved };
        (state.left == 0).then_some(Done { slot, result })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_completes_with_its_last_part_and_sums_their_bytes() {
        let mut parts = Parts::new(1 << 20, 520_192, 2);
        assert_eq!((parts.bytes(), parts.count()), (256 << 10, 4), "a power of two within the limit");
        parts.begin(1, 3);
        assert!(parts.over(1, 4096).is_none());
        assert!(parts.over(1, 4096).is_none());
        let done = parts.over(1, 512).unwrap();
        assert_eq!((done.slot, done.result), (1, 8704), "the last came short");
    }

    #[test]
    fn a_part_that_fails_fails_the_operation() {
        let mut parts = Parts::new(4096, 1 << 20, 1);
        assert_eq!((parts.bytes(), parts.count()), (4096, 1));
        parts.begin(0, 3);
        assert!(parts.over(0, 4096).is_none());
        assert!(parts.over(0, -libc::EIO).is_none(), "in the middle");
        assert_eq!(parts.over(0, 4096).unwrap().result, -libc::EIO);
        parts.begin(0, 1);
        assert_eq!(parts.over(0, 0).unwrap().result, 0, "forgotten by the next");
    }
}
