//! The set of labels, and the examples that have them.

use super::super::Error;
use super::{File, Labelled, shown};
use std::collections::{HashMap, HashSet};

/// The most labels: with more, a text is taken for a label.
const MOST_LABELS: usize = 10_000;
/// How many labels a message names.
const MOST_SHOWN: usize = 10;

/// Labels with their numbers, which are those of a model's classes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Labels {
    names: Vec<String>,
    numbers: HashMap<String, usize>,
}

impl Labels {
    /// Sorted labels: by their value if all are whole numbers, else by their characters. A label that comes twice is one.
    pub fn sorted(names: impl IntoIterator<Item = String>) -> Labels {
        let mut names: Vec<String> = names.into_iter().collect::<HashSet<_>>().into_iter().collect();
        names.sort();
        // The sort is stable: "1" and "01" keep the order of their characters.
        if names.iter().all(|name| name.parse::<i64>().is_ok()) {
            names.sort_by_key(|name| name.parse::<i64>().unwrap_or_default());
        }
        Labels::in_order(names)
    }

    /// Labels in the order that a model has given them.
    pub fn in_order(names: Vec<String>) -> Labels {
        let numbers = names.iter().cloned().zip(0..).collect();
        Labels { names, numbers }
    }

    /// The labels, by their numbers.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The number of a label.
    pub fn number(&self, name: &str) -> Option<usize> {
        self.numbers.get(name).copied()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The first labels, for a message.
    fn list(&self) -> String {
        let names: Vec<String> =
            self.names.iter().take(MOST_SHOWN).map(|name| format!("`{}`", shown(name))).collect();
        let more = if self.len() > MOST_SHOWN {
            format!(" and {} more", self.len() - MOST_SHOWN)
        } else {
            String::new()
        };
        names.join(", ") + &more
    }
}

/// Takes in the examples of files, and checks their labels.
pub(super) struct Collector<'a, T> {
    pub(super) examples: Vec<T>,
    known: Option<&'a Labels>,
    found: HashSet<String>,
    bytes: u64,
    checksum: crc32fast::Hasher,
}

impl<'a, T> Collector<'a, T> {
    pub(super) fn new(known: Option<&'a Labels>) -> Collector<'a, T> {
        let (examples, found, checksum) = (Vec::new(), HashSet::new(), crc32fast::Hasher::new());
        Collector { examples, known, found, bytes: 0, checksum }
    }

    /// Takes note of the bytes of a line.
    pub(super) fn count(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.checksum.update(bytes);
    }

    /// Checks a label, or says what is wrong with it.
    pub(super) fn label(&mut self, label: &str) -> Result<(), String> {
        if label.is_empty() {
            return Err("has an empty label: give it one, or remove the line".to_owned());
        }
        if let Some(known) = self.known {
            return match known.number(label) {
                Some(_) => Ok(()),
                None => Err(format!(
                    "has the label `{}`, which training never saw: correct it, or train with it; known are {}",
                    shown(label),
                    known.list()
                )),
            };
        }
        if !self.found.contains(label) {
            if self.found.len() == MOST_LABELS {
                return Err(format!(
                    "has one more than {MOST_LABELS} different labels, `{}`: put labels, not texts, where labels belong",
                    shown(label)
                ));
            }
            self.found.insert(label.to_owned());
        }
        Ok(())
    }

    pub(super) fn finish(self, files: &[File<'_>]) -> Result<Labelled<T>, Error> {
        if self.examples.is_empty() {
            return Err(Error::Empty { paths: files.iter().map(|file| file.named.to_owned()).collect() });
        }
        let labels = self.known.cloned().unwrap_or_else(|| Labels::sorted(self.found));
        Ok(Labelled {
            examples: self.examples,
            labels,
            bytes: self.bytes,
            checksum: self.checksum.finalize(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(names: &[&str]) -> Vec<String> {
        Labels::sorted(names.iter().map(|&name| name.to_owned())).names
    }

    #[test]
    fn labels_are_sorted_and_numbers_by_their_value() {
        assert_eq!(sorted(&["O", "I-PER", "B-PER", "O"]), ["B-PER", "I-PER", "O"]);
        assert_eq!(sorted(&["10", "2", "-1", "02"]), ["-1", "02", "2", "10"]);
        assert_eq!(sorted(&["10", "2", "x"]), ["10", "2", "x"]);
    }

    #[test]
    fn labels_have_the_numbers_of_their_places() {
        let labels = Labels::in_order(vec!["b".to_owned(), "a".to_owned()]);
        assert_eq!((labels.number("a"), labels.number("b"), labels.number("c")), (Some(1), Some(0), None));
    }

    #[test]
    fn too_many_labels_are_texts() {
        let mut all = Collector::<()>::new(None);
        for i in 0..MOST_LABELS {
            all.label(&i.to_string()).unwrap();
        }
        all.label("7").unwrap();
        assert!(all.label("x\u{1b}[2J").unwrap_err().contains(r"`x\u{1b}[2J`"));
    }
}
