//! TER (Snover et al., 2006): how many edits make the hypothesis equal to a reference, for each word of it.
//!
//! ```text
//! TER = edits / words of the reference
//! ```
//!
//! An edit inserts, deletes or replaces one word, or shifts some words in a row to another place. The best
//! shifts are looked for greedily: among all pieces of the hypothesis that are in the reference too, the
//! shift that lowers the edit distance most is made, again and again until none lowers it. Which shifts are
//! tried, how far, how many and which of two equal ones is made are Tercom's rules as sacreBLEU has them.
//! Case does not matter.

use super::edit_distance::{Alignment, EditDistance};

/// The longest piece that is shifted, in words.
const LONGEST: usize = 10;
/// The farthest place that a piece is looked for in the reference, in words.
const FARTHEST: usize = 50;
/// Shifts that are tried for a segment. When so many were, what was found in the last round is not made.
const MOST_TRIED: usize = 1000;

/// What a segment adds to TER.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Counts {
    /// Edits to the reference that takes the fewest.
    pub edits: u64,
    /// Words of a reference, on average.
    pub reference_words: f64,
}

impl Counts {
    /// Counts the edits from the words of a hypothesis to those of its references; words are numbers.
    pub(super) fn new(hypothesis: &[u32], references: &[Vec<u32>]) -> Counts {
        let edits = references.iter().map(|reference| edits(hypothesis, reference)).min().unwrap_or(0);
        let words: usize = references.iter().map(Vec::len).sum();
        Counts { edits, reference_words: words as f64 / references.len().max(1) as f64 }
    }

    pub(super) fn add(&mut self, other: &Counts) {
        self.edits += other.edits;
        self.reference_words += other.reference_words;
    }

    /// The score in percent.
    pub fn score(&self) -> f64 {
        if self.reference_words > 0.0 {
            100.0 * (self.edits as f64 / self.reference_words)
        } else if self.edits > 0 {
            100.0
        } else {
            0.0
        }
    }
}

/// The number of edits from one text to another.
fn edits(hypothesis: &[u32], reference: &[u32]) -> u64 {
    if reference.is_empty() {
        return hypothesis.len() as u64;
    }
    let mut distance = EditDistance::new(hypothesis, reference);
    let (mut shifts, mut tried) = (0, 0);
    let mut shifted = Vec::with_capacity(hypothesis.len());
    while let Some(shift) = best_shift(&mut distance, reference, &mut tried, &mut shifted) {
        shift.apply(distance.words(), &mut shifted);
        distance.change(&shifted, shift.same());
        shifts += 1;
    }
    shifts + u64::from(distance.current())
}

/// A piece of the hypothesis and the place before which it is put, both counted before it is taken out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shift {
    start: usize,
    length: usize,
    to: usize,
}

impl Shift {
    fn apply(self, words: &[u32], shifted: &mut Vec<u32>) {
        let Shift { start, length, to } = self;
        let end = start + length;
        shifted.clear();
        if to < start {
            shifted.extend_from_slice(&words[..to]);
            shifted.extend_from_slice(&words[start..end]);
            shifted.extend_from_slice(&words[to..start]);
            shifted.extend_from_slice(&words[end..]);
        } else {
            // A place inside of the piece means so many words behind it; there may be fewer.
            let after = if to > end { to } else { (length + to).min(words.len()) };
            shifted.extend_from_slice(&words[..start]);
            shifted.extend_from_slice(&words[end..after]);
            shifted.extend_from_slice(&words[start..end]);
            shifted.extend_from_slice(&words[after..]);
        }
    }

    /// How many words at the beginning stay where they are.
    fn same(self) -> usize {
        self.start.min(self.to)
    }
}

/// The shift that lowers the distance most; of those that do so equally the longest, then the one of the
/// earliest piece, then to the earliest place.
fn best_shift(
    distance: &mut EditDistance,
    reference: &[u32],
    tried: &mut usize,
    shifted: &mut Vec<u32>,
) -> Option<Shift> {
    let most_left = distance.current().checked_sub(1)?;
    let alignment = distance.alignment();
    let words = distance.words().to_vec();
    let rank = |shift: &Shift, left: u32| (!left, shift.length, !shift.start, !shift.to);
    let mut best: Option<(Shift, u32)> = None;
    for start in 0..words.len() {
        for there in start.saturating_sub(FARTHEST)..reference.len().min(start + FARTHEST + 1) {
            for length in 1..=common(&words[start..], &reference[there..]) {
                if !alignment.asks_for(start, there, length) {
                    continue;
                }
                let mut previous = None;
                for to in alignment.places(there, length) {
                    if previous.replace(to) == Some(to) {
                        continue;
                    }
                    *tried += 1;
                    let shift = Shift { start, length, to };
                    // Only what lowers the distance, and as far as the best one does, can be it.
                    let most = best.map_or(most_left, |(_, left)| left);
                    shift.apply(&words, shifted);
                    let Some(left) = distance.of(shifted, shift.same(), most) else { continue };
                    if best.is_none_or(|(best, lowest)| rank(&shift, left) > rank(&best, lowest)) {
                        best = Some((shift, left));
                    }
                }
                if *tried >= MOST_TRIED {
                    return None;
                }
            }
        }
    }
    best.map(|(shift, _)| shift)
}

/// How many words two texts begin with alike, up to the longest piece.
fn common(a: &[u32], b: &[u32]) -> usize {
    a.iter().zip(b).take(LONGEST).take_while(|(a, b)| a == b).count()
}

impl Alignment {
    /// Whether the piece of the hypothesis at `start` may be shifted to where it is in the reference:
    /// something is wrong with it, something is wrong there, and it is not there already.
    fn asks_for(&self, start: usize, there: usize, length: usize) -> bool {
        let wrong = |errors: &[bool], from: usize| errors[from..from + length].contains(&true);
        wrong(&self.hypothesis_errors, start)
            && wrong(&self.reference_errors, there)
            && !(start + 1..start + length + 1).contains(&self.after[there])
    }

    /// The places in the hypothesis that the reference's word before `there`, and each of `length - 1` after
    /// it, end at.
    fn places(&self, there: usize, length: usize) -> impl Iterator<Item = usize> {
        let before = there.checked_sub(1).map_or(0, |word| self.after[word]);
        std::iter::once(before).chain(self.after[there..there + length].iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_in_another_place_is_one_edit() {
        assert_eq!(edits(&[4, 5, 6, 1, 2, 3], &[1, 2, 3, 4, 5, 6]), 1);
        assert_eq!(edits(&[1, 2, 3, 4], &[1, 2, 3, 4]), 0);
        assert_eq!(edits(&[3, 9, 1], &[1, 2, 3]), 2 + 1);
    }

    #[test]
    fn words_stay_the_same_whatever_is_shifted() {
        let words: Vec<u32> = (0..6).collect();
        let mut shifted = Vec::new();
        for start in 0..6 {
            for length in 1..=6 - start {
                for to in 0..=6 {
                    let shift = Shift { start, length, to };
                    shift.apply(&words, &mut shifted);
                    assert_eq!(shifted[..shift.same()], words[..shift.same()], "{shift:?}");
                    shifted.sort_unstable();
                    assert_eq!(shifted, words, "{shift:?}");
                }
            }
        }
    }

    #[test]
    fn without_references_words_every_word_is_an_edit() {
        assert_eq!(edits(&[1, 2], &[]), 2);
        assert_eq!(Counts::new(&[1, 2], &[vec![]]).score(), 100.0);
        assert_eq!(Counts::new(&[], &[vec![]]).score(), 0.0);
    }

    #[test]
    fn the_closest_reference_counts_and_the_mean_of_their_lengths() {
        let counts = Counts::new(&[1, 2, 3], &[vec![9, 9, 9, 9], vec![1, 2, 4]]);
        assert_eq!(counts, Counts { edits: 1, reference_words: 3.5 });
    }
}
