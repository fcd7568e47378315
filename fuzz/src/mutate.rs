//! Mutations that need nothing but a seed: what the tests try in some seconds.

use attentive_tensor::Random;

/// Draws one number after the other.
#[derive(Debug)]
pub struct Draw {
    random: Random,
    drawn: u32,
}

/// What numbers in texts are replaced by.
const NUMBERS: [&str; 12] = [
    "0",
    "-1",
    "1",
    "2147483648",
    "4294967295",
    "18446744073709551616",
    "-9223372036854775809",
    "1e309",
    "0.5",
    "NaN",
    "null",
    "[]",
];

/// What numbers in binary files are replaced by.
const BYTES: [u8; 8] = [0, 1, 0x7f, 0x80, 0xff, b'"', b'<', b'\n'];

impl Draw {
    /// The same numbers for the same seed.
    pub fn new(seed: u64) -> Draw {
        Draw { random: Random::new(seed), drawn: 0 }
    }

    /// A number below a bound, which is not 0.
    fn below(&mut self, bound: usize) -> usize {
        self.drawn = self.drawn.wrapping_add(1);
        self.random.bits(self.drawn) as usize % bound
    }

    fn range(&mut self, len: usize) -> std::ops::Range<usize> {
        let start = self.below(len + 1);
        start..start + self.below((len - start).min(64) + 1)
    }

    /// An input with up to four changes; some bytes of `other` may be among them.
    pub fn mutate(&mut self, input: &[u8], other: &[u8]) -> Vec<u8> {
        let mut bytes = input.to_vec();
        for _ in 0..=self.below(4) {
            self.change(&mut bytes, other);
        }
        bytes
    }

    fn change(&mut self, bytes: &mut Vec<u8>, other: &[u8]) {
        let len = bytes.len();
        let range = self.range(len);
        match self.below(8) {
            0 if len > 0 => bytes[self.below(len)] ^= 1 << self.below(8),
            1 if len > 0 => bytes[self.below(len)] = BYTES[self.below(BYTES.len())],
            2 => drop(bytes.drain(range)),
            3 => {
                let copy = bytes[range.clone()].repeat(1 + self.below(8));
                bytes.splice(range.start..range.start, copy);
            }
            4 => {
                let part = self.range(other.len());
                bytes.splice(range, other[part].iter().copied());
            }
            5 => bytes.truncate(range.start),
            6 => {
                let four = range.start..len.min(range.start + 4);
                bytes[four].fill(BYTES[self.below(5)]);
            }
            _ => self.change_number(bytes),
        }
    }

    /// Replaces a number that is written in digits.
    fn change_number(&mut self, bytes: &mut Vec<u8>) {
        let from = self.below(bytes.len() + 1);
        let Some(start) = bytes[from..].iter().position(u8::is_ascii_digit).map(|at| from + at) else {
            return;
        };
        let end = bytes[start..]
            .iter()
            .position(|byte| !byte.is_ascii_digit())
            .map_or(bytes.len(), |at| start + at);
        bytes.splice(start..end, NUMBERS[self.below(NUMBERS.len())].bytes());
    }
}
