//! How good a classifier is: accuracy, precision, recall and F1, equal to scikit-learn's.
//!
//! ```text
//! precision = correct / found      recall = correct / expected      F1 = 2 · precision · recall / (precision + recall)
//! ```
//!
//! What would be divided by zero is 0. All scores are between 0 and 1.
//!
//! ```
//! use attentive_text::score::ClassScores;
//!
//! let mut scores = ClassScores::default();
//! for (expected, found) in [("spam", "spam"), ("spam", "ham"), ("ham", "ham"), ("ham", "ham")] {
//!     scores.add(expected, found);
//! }
//! assert_eq!(scores.accuracy(), 0.75);
//! assert_eq!(scores.classes().class("spam").recall(), 0.5);
//! assert_eq!(scores.classes().micro().f1, 0.75);
//! ```

use std::collections::BTreeMap;

/// How often a class was found, expected, and both.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// How often it was found where it was expected.
    pub correct: u64,
    /// How often it was found.
    pub found: u64,
    /// How often it was expected.
    pub expected: u64,
}

/// Precision, recall and F1 together.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Measures {
    /// The share of what was found that was expected.
    pub precision: f64,
    /// The share of what was expected that was found.
    pub recall: f64,
    /// The harmonic mean of both. Of averages over classes it is the average of their F1.
    pub f1: f64,
}

/// A tally for each class, by its name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tallies {
    classes: BTreeMap<String, Tally>,
}

/// Expected classes beside those that were found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClassScores {
    classes: Tallies,
    correct: u64,
    total: u64,
}

impl Tally {
    /// `correct / found`.
    pub fn precision(&self) -> f64 {
        ratio(self.correct, self.found)
    }

    /// `correct / expected`.
    pub fn recall(&self) -> f64 {
        ratio(self.correct, self.expected)
    }

    /// The harmonic mean of precision and recall.
    pub fn f1(&self) -> f64 {
        ratio(2 * self.correct, self.found + self.expected)
    }

    /// All three.
    pub fn measures(&self) -> Measures {
        Measures { precision: self.precision(), recall: self.recall(), f1: self.f1() }
    }
}

impl Tallies {
    /// The tally of a class, which is all zeros if it was neither found nor expected. For two classes, that of the positive one gives
    /// the usual precision, recall and F1.
    pub fn class(&self, name: &str) -> Tally {
        self.classes.get(name).copied().unwrap_or_default()
    }

    /// All classes that were found or expected, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Tally)> {
        self.classes.iter().map(|(name, tally)| (name.as_str(), *tally))
    }

    /// The measures of the sum of all tallies: each example weighs the same.
    pub fn micro(&self) -> Measures {
        let add = |sum: Tally, tally: &Tally| Tally {
            correct: sum.correct + tally.correct,
            found: sum.found + tally.found,
            expected: sum.expected + tally.expected,
        };
        self.classes.values().fold(Tally::default(), add).measures()
    }

    /// The mean of the measures of the classes: each class weighs the same.
    pub fn macro_average(&self) -> Measures {
        self.mean(|_| 1)
    }

    /// The mean of the measures of the classes, each weighing as much as it was expected.
    pub fn weighted(&self) -> Measures {
        self.mean(|tally| tally.expected)
    }

    fn mean(&self, weight: impl Fn(&Tally) -> u64) -> Measures {
        let total: u64 = self.classes.values().map(&weight).sum();
        let mean = |measure: fn(&Tally) -> f64| {
            let sum: f64 = self.classes.values().map(|tally| weight(tally) as f64 * measure(tally)).sum();
            if total == 0 { 0.0 } else { sum / total as f64 }
        };
        Measures { precision: mean(Tally::precision), recall: mean(Tally::recall), f1: mean(Tally::f1) }
    }

    pub(super) fn of(&mut self, class: &str) -> &mut Tally {
        // Looked for first: the name is copied only once for each class.
        if !self.classes.contains_key(class) {
            self.classes.insert(class.to_owned(), Tally::default());
        }
        self.classes.get_mut(class).expect("it was put there")
    }
}

impl ClassScores {
    /// Counts one example.
    pub fn add(&mut self, expected: &str, found: &str) {
        self.classes.of(expected).expected += 1;
        self.classes.of(found).found += 1;
        self.total += 1;
        if expected == found {
            self.classes.of(expected).correct += 1;
            self.correct += 1;
        }
    }

    /// The share of examples whose class was found; 0 if there are none.
    pub fn accuracy(&self) -> f64 {
        ratio(self.correct, self.total)
    }

    /// How many examples there are.
    pub fn examples(&self) -> u64 {
        self.total
    }

    /// The tallies of all classes.
    pub fn classes(&self) -> &Tallies {
        &self.classes
    }
}

/// A quotient, which is 0 where it would be undefined.
pub(super) fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_never_seen_scores_zero_and_not_nan() {
        let none = ClassScores::default();
        assert_eq!(none.accuracy(), 0.0);
        assert_eq!(none.classes().macro_average(), Measures::default());
        assert_eq!(none.classes().weighted(), Measures::default());
        assert_eq!(none.classes().class("x").measures(), Measures::default());
    }

    #[test]
    fn a_class_that_is_only_found_lowers_the_macro_average() {
        let mut scores = ClassScores::default();
        scores.add("a", "a");
        scores.add("a", "b");
        assert_eq!(scores.classes().macro_average().recall, 0.25);
        assert_eq!(scores.classes().weighted().recall, 0.5);
        assert_eq!(scores.classes().iter().map(|(name, _)| name).collect::<Vec<_>>(), ["a", "b"]);
    }
}
