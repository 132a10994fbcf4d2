//! Keys: each pair's number as bytes, and a random order of all numbers.
//!
//! A key is twice its number, big-endian: keys sort like their numbers, and there is a missing key between
//! any two. A key of more than 8 bytes continues with ASCII zeros; a shorter one has only the last bytes.

/// The shortest key.
pub const KEY_BYTES_MIN: usize = 4;
/// The longest key.
pub const KEY_BYTES_MAX: usize = 255;

/// How many numbers keys of that many bytes can have.
pub const fn numbers(key_bytes: u64) -> u64 {
    if key_bytes >= 8 { 1 << 63 } else { 1 << (8 * key_bytes - 1) }
}

/// A reusable key.
#[derive(Debug, Clone)]
pub struct Key {
    bytes: [u8; KEY_BYTES_MAX],
    length: usize,
}

impl Key {
    /// A key of that many bytes, 4 to 255.
    pub fn new(key_bytes: u64) -> Self {
        let length = (key_bytes as usize).clamp(KEY_BYTES_MIN, KEY_BYTES_MAX);
        Self { bytes: [b'0'; KEY_BYTES_MAX], length }
    }

    /// The key of a pair.
    #[inline]
    pub fn of(&mut self, number: u64) -> &[u8] {
        self.put(number << 1)
    }

    /// A missing key, right after that pair's key.
    #[inline]
    pub fn missing(&mut self, number: u64) -> &[u8] {
        self.put(number << 1 | 1)
    }

    #[inline]
    fn put(&mut self, doubled: u64) -> &[u8] {
        let big = doubled.to_be_bytes();
        let skipped = big.len().saturating_sub(self.length);
        self.bytes[..big.len() - skipped].copy_from_slice(&big[skipped..]);
        &self.bytes[..self.length]
    }
}

/// The number of the pair that a key belongs to; `None` for a key that no pair has.
pub fn number(key: &[u8]) -> Option<u64> {
    let mut big = [0; 8];
    let taken = key.len().min(8);
    big[8 - taken..].copy_from_slice(&key[..taken]);
    let doubled = u64::from_be_bytes(big);
    let padded = key[taken..].iter().all(|byte| *byte == b'0');
    (key.len() >= KEY_BYTES_MIN && padded && doubled.is_multiple_of(2)).then_some(doubled >> 1)
}

/// Mixes all bits (`SplitMix64`).
#[inline]
pub const fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Every number below a count exactly once, in random order: a Feistel network over the next power of four,
/// applied again while the result is not below the count.
#[derive(Debug, Clone, Copy)]
pub struct Shuffled {
    count: u64,
    half_bits: u32,
    seed: u64,
}

impl Shuffled {
    /// An order of that many numbers.
    pub fn new(count: u64, seed: u64) -> Self {
        let bits = u64::BITS - count.saturating_sub(1).leading_zeros();
        Self { count, half_bits: bits.div_ceil(2).max(1), seed }
    }

    /// The number at that position.
    pub fn at(&self, place: u64) -> u64 {
        let mut number = place;
        loop {
            number = self.permute(number);
            if number < self.count {
                return number;
            }
        }
    }

    fn permute(&self, number: u64) -> u64 {
        let mask = (1 << self.half_bits) - 1;
        let (mut left, mut right) = (number >> self.half_bits, number & mask);
        for round in 0..4 {
            let mixed = mix(right ^ self.seed.rotate_left(round * 16) ^ u64::from(round)) & mask;
            (left, right) = (right, left ^ mixed);
        }
        left << self.half_bits | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn keys_sort_like_their_numbers_and_contain_them() {
        for key_bytes in [4, 5, 8, 16, 255] {
            let mut key = Key::new(key_bytes);
            let of = |key: &mut Key, number| key.of(number).to_vec();
            for number in [0, 1, 255, 256, 70_000, numbers(key_bytes) - 2] {
                let (this, next) = (of(&mut key, number), of(&mut key, number + 1));
                assert_eq!(this.len() as u64, key_bytes);
                assert!(this < next, "{number} in {key_bytes} bytes");
                assert_eq!(super::number(&this), Some(number));
                let between = key.missing(number).to_vec();
                assert!(this < between && between < next);
                assert_eq!(super::number(&between), None);
            }
        }
        assert_eq!(number(b"\xff"), None, "shorter than any key");
    }

    #[test]
    fn every_number_comes_once_in_a_different_order() {
        for count in [1, 2, 3, 100, 4097] {
            let shuffled = Shuffled::new(count, 7);
            let order: Vec<_> = (0..count).map(|place| shuffled.at(place)).collect();
            assert_eq!(order.iter().collect::<HashSet<_>>().len() as u64, count);
            assert!(order.iter().all(|number| *number < count));
            let follow = order.windows(2).filter(|pair| pair[1] == pair[0] + 1).count();
            assert!(count < 100 || follow < 10, "{follow} of {count} follow each other");
        }
    }
}
