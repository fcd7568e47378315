//! chrF and chrF++ (Popović, 2015 and 2017): n-grams of up to six characters, and for chrF++ of up to two
//! words.
//!
//! ```text
//! chrF = (1 + β²) · P · R / (β² · P + R)        β = 2
//! ```
//!
//! P is the precision and R the recall of n-grams, each the mean over the lengths of which there are any on
//! both sides. White space is no character. Of several references a segment is held against the one that
//! gives it the best score.

use super::ngrams::Ngrams;
use super::tokenize::{is_space, words};
use std::collections::HashMap;

/// The longest n-grams of characters, and of words in chrF++.
const CHARACTERS: usize = 6;
const WORDS: usize = 2;
/// The lengths that each score looks at: those of words come last.
const CHRF: usize = CHARACTERS;
const CHRF_PP: usize = CHARACTERS + WORDS;

/// The counts of chrF.
pub type Chrf = Counts<CHRF>;
/// The counts of chrF++.
pub type ChrfPp = Counts<CHRF_PP>;

/// What a segment adds to chrF (six lengths) or chrF++ (eight).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts<const LENGTHS: usize> {
    /// For each length of n-grams, how many there are.
    pub lengths: [Count; LENGTHS],
}

/// n-grams of one length.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// In the hypothesis; none are counted where the reference has none.
    pub hypothesis: u64,
    /// In the reference.
    pub reference: u64,
    /// In both.
    pub matches: u64,
}

impl<const LENGTHS: usize> Default for Counts<LENGTHS> {
    fn default() -> Self {
        Counts { lengths: [Count::default(); LENGTHS] }
    }
}

impl<const LENGTHS: usize> Counts<LENGTHS> {
    pub(super) fn add(&mut self, other: &Counts<LENGTHS>) {
        for (sum, count) in self.lengths.iter_mut().zip(&other.lengths) {
            sum.hypothesis += count.hypothesis;
            sum.reference += count.reference;
            sum.matches += count.matches;
        }
    }

    /// The score in percent.
    pub fn score(&self) -> f64 {
        let there = || self.lengths.iter().filter(|count| count.hypothesis > 0 && count.reference > 0);
        let lengths = there().count().max(1) as f64;
        let precision = there().map(|n| n.matches as f64 / n.hypothesis as f64).sum::<f64>() / lengths;
        let recall = there().map(|n| n.matches as f64 / n.reference as f64).sum::<f64>() / lengths;
        if precision + recall == 0.0 {
            return 0.0;
        }
        const BETA_SQUARED: f64 = 4.0;
        100.0 * (1.0 + BETA_SQUARED) * precision * recall / (BETA_SQUARED * precision + recall)
    }
}

/// Counts a segment against its references for both scores, which share the characters.
pub(super) fn count(hypothesis: &str, references: &[&str]) -> (Chrf, ChrfPp) {
    let mut numbers = HashMap::new();
    let hypothesis = Text::new(hypothesis, &mut numbers);
    let all: Vec<_> =
        references.iter().map(|reference| hypothesis.against(Text::new(reference, &mut numbers))).collect();
    let characters = |counts: &ChrfPp| Counts { lengths: std::array::from_fn(|i| counts.lengths[i]) };
    (best(all.iter().map(characters)), best(all.iter().copied()))
}

/// The counts with the highest score, and of those the first.
fn best<const LENGTHS: usize>(all: impl Iterator<Item = Counts<LENGTHS>>) -> Counts<LENGTHS> {
    let better = |best: (f64, Counts<LENGTHS>), counts: Counts<LENGTHS>| {
        let score = counts.score();
        if score > best.0 { (score, counts) } else { best }
    };
    all.fold((-1.0, Counts::default()), better).1
}

/// A segment in characters and in words.
struct Text {
    characters: Ngrams<CHARACTERS>,
    words: Ngrams<WORDS>,
}

impl Text {
    fn new<'a>(text: &'a str, numbers: &mut HashMap<&'a str, u32>) -> Text {
        let characters: Vec<u32> = text.chars().filter(|&c| !is_space(c)).map(|c| c as u32 + 1).collect();
        let mut ids = Vec::new();
        for word in words(text).flat_map(without_punctuation) {
            let next = numbers.len() as u32 + 1;
            ids.push(*numbers.entry(word).or_insert(next));
        }
        Text { characters: Ngrams::new(&characters), words: Ngrams::new(&ids) }
    }

    fn against(&self, reference: Text) -> ChrfPp {
        let (characters, words) = ([reference.characters], [reference.words]);
        let lengths = std::array::from_fn(|i| {
            if i < CHARACTERS {
                compare(&self.characters, &characters, i + 1)
            } else {
                compare(&self.words, &words, i + 1 - CHARACTERS)
            }
        });
        Counts { lengths }
    }
}

fn compare<const N: usize>(hypothesis: &Ngrams<N>, reference: &[Ngrams<N>; 1], n: usize) -> Count {
    let total = reference[0].total(n);
    Count {
        hypothesis: if total > 0 { hypothesis.total(n) } else { 0 },
        reference: total,
        matches: hypothesis.matches(reference, n),
    }
}

/// A word, and a mark of punctuation at its end, or else at its beginning, as a word of its own.
fn without_punctuation(word: &str) -> impl Iterator<Item = &str> {
    let mark = |c: &char| c.is_ascii_punctuation();
    let one = word.chars().nth(1).is_none();
    let cut = if one {
        0
    } else if word.chars().next_back().filter(mark).is_some() {
        word.len() - 1
    } else {
        usize::from(word.chars().next().filter(mark).is_some())
    };
    let (first, second) = word.split_at(cut);
    [first, second].into_iter().filter(|part| !part.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_mark_of_punctuation_leaves_a_word_the_last_before_the_first() {
        let parts = |word| without_punctuation(word).collect::<Vec<_>>();
        assert_eq!(parts("(end)."), ["(end)", "."]);
        assert_eq!(parts("(end"), ["(", "end"]);
        assert_eq!(parts("end"), ["end"]);
        assert_eq!(parts("."), ["."]);
        assert_eq!(parts(".."), [".", "."]);
        assert_eq!(parts("„so“"), ["„so“"], "only ASCII's marks count");
    }

    #[test]
    fn a_copy_has_all_of_it_and_spaces_do_not_matter() {
        let (chrf, chrf_pp) = count("ein Hund.", &["ein  Hund."]);
        assert_eq!((chrf.score(), chrf_pp.score()), (100.0, 100.0));
        assert_eq!(count("ei nHund.", &["ein Hund."]).0.score(), 100.0);
    }

    #[test]
    fn each_score_takes_the_reference_that_is_best_for_it() {
        // The first has all characters and no word, the second all words but one.
        let (hypothesis, first, second) = ("ab cd ef gh", "a bc de fgh", "ab cd ef gx");
        let (chrf, chrf_pp) = count(hypothesis, &[first, second]);
        assert_eq!(chrf, count(hypothesis, &[first]).0);
        assert_eq!(chrf_pp, count(hypothesis, &[second]).1);
    }

    #[test]
    fn lengths_that_one_side_lacks_do_not_count() {
        assert_eq!(count("ab", &["ab"]).0.score(), 100.0);
        assert_eq!(count("", &["ab"]).0.score(), 0.0);
        assert_eq!(count("ab", &[""]).0, Counts::default());
    }
}
