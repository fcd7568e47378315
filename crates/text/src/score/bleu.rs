//! BLEU (Papineni et al., 2002): how many of the n-grams of up to four words are in a reference.
//!
//! ```text
//! BLEU = BP · exp( ¼ Σₙ ln pₙ )        pₙ = matches of length n / n-grams of length n
//! BP   = min(1, exp(1 − r / c))        c words in the hypothesis, r in the closest references
//! ```
//!
//! A length without matches counts as a half of one match, the next such length as a quarter, and so on
//! (smoothing `exp`). The score is of the whole corpus: counts are summed first, and all four lengths count.

use super::ngrams::Ngrams;

/// The longest n-grams.
const ORDER: usize = 4;

/// What a segment adds to BLEU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// n-grams of each length that are in a reference, too.
    pub matches: [u64; ORDER],
    /// n-grams of each length.
    pub totals: [u64; ORDER],
    /// Words of the hypothesis.
    pub words: u64,
    /// Words of the reference that is closest to it in length.
    pub reference_words: u64,
}

impl Counts {
    /// Counts the words of a hypothesis against those of its references; words are numbers above zero.
    pub(super) fn new(hypothesis: &[u32], references: &[Vec<u32>]) -> Counts {
        let ngrams = Ngrams::<ORDER>::new(hypothesis);
        let others: Vec<_> = references.iter().map(|reference| Ngrams::new(reference)).collect();
        let distance = |length: &usize| (length.abs_diff(hypothesis.len()), *length);
        let closest = references.iter().map(Vec::len).min_by_key(distance).unwrap_or(0);
        Counts {
            matches: std::array::from_fn(|i| ngrams.matches(&others, i + 1)),
            totals: std::array::from_fn(|i| ngrams.total(i + 1)),
            words: hypothesis.len() as u64,
            reference_words: closest as u64,
        }
    }

    pub(super) fn add(&mut self, other: &Counts) {
        for i in 0..ORDER {
            self.matches[i] += other.matches[i];
            self.totals[i] += other.totals[i];
        }
        self.words += other.words;
        self.reference_words += other.reference_words;
    }

    /// The score in percent.
    pub fn score(&self) -> f64 {
        if self.matches[0] == 0 || self.totals[ORDER - 1] == 0 {
            return 0.0;
        }
        let mut smoothing = 1.0;
        let logarithms = self.matches.iter().zip(self.totals).map(|(&matches, total)| {
            let matches = if matches > 0 {
                matches as f64
            } else {
                smoothing /= 2.0;
                smoothing
            };
            (100.0 * matches / total as f64).ln()
        });
        let mean = logarithms.sum::<f64>() / ORDER as f64;
        self.brevity_penalty() * mean.exp()
    }

    fn brevity_penalty(&self) -> f64 {
        if self.words >= self.reference_words {
            return 1.0;
        }
        (1.0 - self.reference_words as f64 / self.words as f64).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_all_of_it() {
        let text = vec![1, 2, 3, 2, 5];
        assert!((Counts::new(&text, std::slice::from_ref(&text)).score() - 100.0).abs() < 1e-12);
    }

    #[test]
    fn lengths_without_matches_halve_again_and_again() {
        // One word of four in its place: p = 1/4, then 1/2 · 1/3, 1/4 · 1/2, 1/8 · 1.
        let score = Counts::new(&[1, 2, 3, 4], &[vec![1, 9, 8, 7]]).score();
        let expected = 100.0 * (0.25f64 / 6.0 / 8.0 / 8.0).powf(0.25);
        assert!((score - expected).abs() < 1e-12, "{score} {expected}");
    }

    #[test]
    fn of_two_references_that_are_as_close_the_shorter_counts() {
        let counts = Counts::new(&[1, 2, 3], &[vec![1, 2, 3, 4], vec![1, 2]]);
        assert_eq!(counts.reference_words, 2);
    }

    #[test]
    fn fewer_than_four_words_in_all_have_no_score() {
        assert_eq!(Counts::new(&[1, 2, 3], &[vec![1, 2, 3]]).score(), 0.0);
        assert_eq!(Counts::new(&[], &[vec![1, 2, 3]]).score(), 0.0);
    }
}
