//! Values that do not compress, and that can be checked when they are read back.
//!
//! A value is a piece of a template of random bytes, at a position derived from the pair and the put. It
//! begins with a stamp of 16 bytes: the put's sequence number and the pair's number, both little-endian.
//! Shorter values cut the stamp off. A put copies nothing: the stamp is written over the template and removed
//! before the next put.

use super::keys::mix;

/// Positions at which a value can begin in its template.
const PLACES: u64 = 1 << 17;
/// Bytes between two positions.
const PLACE_BYTES: u64 = 8;
/// Bytes of the stamp.
const STAMP_BYTES: usize = 16;
/// Values of at least this many bytes identify the put that wrote them.
pub const SEQUENCE_BYTES: usize = 8;

/// Makes and checks the values of a data set.
#[derive(Debug)]
pub struct Values {
    template: Vec<u8>,
    value_bytes: usize,
    /// Where the stamp is, and the template's bytes beneath it.
    stamped: Option<(usize, [u8; STAMP_BYTES])>,
}

/// What is wrong with a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrong {
    /// It has another length.
    Length,
    /// It belongs to another pair.
    Misplaced,
    /// Its bytes do not match its stamp.
    Damaged,
}

impl Values {
    /// Values of a data set, of that many bytes each.
    pub fn new(set: u64, value_bytes: u64) -> Self {
        let bytes = (PLACES * PLACE_BYTES + value_bytes) as usize + STAMP_BYTES;
        let words = (0..bytes.div_ceil(8) as u64).map(|word| mix(set ^ word));
        let template = words.flat_map(u64::to_le_bytes).collect();
        Self { template, value_bytes: value_bytes as usize, stamped: None }
    }

    /// The value that a put gives to a pair.
    #[inline]
    pub fn of(&mut self, number: u64, sequence: u64) -> &[u8] {
        self.unstamp();
        let at = place(number, sequence);
        let mut under = [0; STAMP_BYTES];
        under.copy_from_slice(&self.template[at..at + STAMP_BYTES]);
        self.stamped = Some((at, under));
        self.template[at..at + STAMP_BYTES].copy_from_slice(&stamp(number, sequence));
        &self.template[at..at + self.value_bytes]
    }

    fn unstamp(&mut self) {
        if let Some((at, under)) = self.stamped.take() {
            self.template[at..at + STAMP_BYTES].copy_from_slice(&under);
        }
    }

    /// The sequence number of the put that wrote a pair's value; `None` if it is too short to contain one.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(&mut self, number: u64, value: &[u8]) -> Result<Option<u64>, Wrong> {
        if value.len() != self.value_bytes {
            return Err(Wrong::Length);
        }
        let Some(sequence) = sequence(value) else { return Ok(None) };
        let stamp = stamp(number, sequence);
        let stamped = value.len().min(STAMP_BYTES);
        if value[..stamped] != stamp[..stamped] {
            return Err(Wrong::Misplaced);
        }
        self.unstamp();
        let at = place(number, sequence);
        let same = value[stamped..] == self.template[at + stamped..at + value.len()];
        if same { Ok(Some(sequence)) } else { Err(Wrong::Damaged) }
    }
}

/// The sequence number in a value; `None` if it is too short.
pub fn sequence(value: &[u8]) -> Option<u64> {
    value.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

fn stamp(number: u64, sequence: u64) -> [u8; STAMP_BYTES] {
    let mut stamp = [0; STAMP_BYTES];
    stamp[..8].copy_from_slice(&sequence.to_le_bytes());
    stamp[8..].copy_from_slice(&number.to_le_bytes());
    stamp
}

fn place(number: u64, sequence: u64) -> usize {
    (mix(number ^ mix(sequence)) % PLACES * PLACE_BYTES) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_identifies_its_put_and_shows_damage() {
        let (mut writer, mut reader) = (Values::new(9, 4000), Values::new(9, 4000));
        for (number, sequence) in [(0, 0), (7, 3), (7, 1 << 40), (u64::MAX >> 1, 12)] {
            let mut value = writer.of(number, sequence).to_vec();
            assert_eq!(reader.check(number, &value), Ok(Some(sequence)));
            assert_eq!(reader.check(number + 1, &value), Err(Wrong::Misplaced));
            assert_eq!(reader.check(number, &value[1..]), Err(Wrong::Length));
            value[3999] ^= 1;
            assert_eq!(reader.check(number, &value), Err(Wrong::Damaged));
        }
        assert!(Values::new(10, 4000).check(1, writer.of(1, 1)).is_err(), "another set's");
    }

    #[test]
    fn short_values_contain_what_fits() {
        for bytes in [0, 4, 8, 12, 16, 17] {
            let value = Values::new(1, bytes).of(5, 6).to_vec();
            let expected = (bytes >= SEQUENCE_BYTES as u64).then_some(6);
            assert_eq!(Values::new(1, bytes).check(5, &value), Ok(expected), "{bytes}");
        }
    }

    #[test]
    fn values_do_not_compress() {
        use std::io::Write;
        let mut values = Values::new(1, 128);
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
        for number in 0..512 {
            encoder.write_all(values.of(number, number)).unwrap();
        }
        let bytes = encoder.finish().unwrap().len();
        assert!(bytes > 512 * 128 * 8 / 10, "{bytes}");
    }
}
