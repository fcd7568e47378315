//! A corpus of numbers in three parts: to learn from, to watch progress by, and to be tested on. No number is in two of them.
//!
//! A number is a pair of texts for each target language. All numbers below a hundred are learned from, since they are the words,
//! and those up to twenty many times over, since they are what people type first, and `zero` is a word that no other number has;
//! of larger ones some of each length are drawn, because nearly all numbers below a million have six digits, and some round
//! ones, because people say them more often than chance does.

use super::Language;
use crate::corpus::shuffle;
use attentive_model::Error;
use attentive_model::checkpoint::Staged;
use attentive_tensor::Random;
use std::collections::HashSet;
use std::path::Path;

/// Numbers that some are drawn from: every `step`th from `first` up to `end`.
struct Group {
    first: u32,
    end: u32,
    step: usize,
    /// How many are learned from, validated with, and tested on.
    drawn: [usize; 3],
}

const GROUPS: [Group; 6] = [
    Group { first: 100, end: 1_000, step: 1, drawn: [500, 19, 80] },
    Group { first: 1_000, end: 10_000, step: 1, drawn: [1_500, 40, 170] },
    Group { first: 10_000, end: 100_000, step: 1, drawn: [3_000, 50, 250] },
    Group { first: 100_000, end: 1_000_000, step: 1, drawn: [4_500, 70, 394] },
    Group { first: 1_000, end: 1_000_000, step: 100, drawn: [200, 10, 50] },
    Group { first: 1_000, end: 1_000_000, step: 1_000, drawn: [200, 10, 50] },
];

/// The last of the numbers that are learned from many times over, and how many times more than others.
const PRACTISED: (u32, usize) = (20, 50);

/// Numbers to be shown as examples. They are tested on, so that they are as new to a model as any.
pub const SHOWN: [u32; 6] = [121, 971, 4_321, 20_080, 71_200, 777_777];

/// The number that validation begins with, to be watched while a model learns: it has a crossing, and is not long.
const WATCHED: u32 = 297;

/// A number in English, with the language to translate it into, and its translation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberPair {
    /// The number.
    pub number: u32,
    /// The language of the target.
    pub language: Language,
    /// `>>de<< twenty-one`
    pub source: String,
    /// `einundzwanzig`
    pub target: String,
}

/// Pairs to learn from, to validate with and to test on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberCorpus {
    /// What is learned from.
    pub train: Vec<NumberPair>,
    /// What shows how training goes.
    pub validation: Vec<NumberPair>,
    /// What training never sees.
    pub test: Vec<NumberPair>,
}

impl NumberCorpus {
    /// The corpus that follows from a seed.
    pub fn new(seed: u64) -> NumberCorpus {
        let random = Random::new(seed);
        let mut parts: [Vec<u32>; 3] = [(0..100).collect(), vec![WATCHED], SHOWN.to_vec()];
        let mut taken: HashSet<u32> = parts.iter().flatten().copied().collect();
        for (group, place) in GROUPS.iter().zip(0..) {
            let mut numbers: Vec<u32> = (group.first..group.end).step_by(group.step).collect();
            shuffle(&mut numbers, random.split(place));
            let mut numbers = numbers.into_iter().filter(|&number| taken.insert(number));
            for (part, count) in parts.iter_mut().zip(group.drawn) {
                part.extend(numbers.by_ref().take(count));
            }
        }
        let (last, times) = PRACTISED;
        parts[0].extend((0..times).flat_map(|_| 0..=last));
        let [train, validation, test] = parts.map(|numbers| pairs(&numbers));
        NumberCorpus { train, validation, test }
    }

    /// Writes six files into a folder, a text a line: `train.source` and `train.target`, and the same for `valid` and
    /// `test`.
    pub fn write(&self, folder: &Path) -> Result<(), Error> {
        std::fs::create_dir_all(folder).map_err(|source| Error::File { path: folder.to_owned(), source })?;
        let mut staged = Vec::new();
        for (name, pairs) in [("train", &self.train), ("valid", &self.validation), ("test", &self.test)] {
            for side in ["source", "target"] {
                let text =
                    |pair: &NumberPair| if side == "source" { &pair.source } else { &pair.target }.clone();
                let lines: String = pairs.iter().map(|pair| text(pair) + "\n").collect();
                staged.push(Staged::new(&folder.join(format!("{name}.{side}")), lines.as_bytes())?);
            }
        }
        staged.into_iter().try_for_each(Staged::commit)
    }
}

impl NumberPair {
    /// A number and a language to translate it into.
    pub fn new(number: u32, language: Language) -> NumberPair {
        let source = language.ask(&Language::English.write(number));
        NumberPair { number, language, source, target: language.write(number) }
    }
}

fn pairs(numbers: &[u32]) -> Vec<NumberPair> {
    let of_number = |&number| Language::TARGETS.map(|language| NumberPair::new(number, language));
    numbers.iter().flat_map(of_number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_is_in_two_parts_and_only_the_first_ones_come_again() {
        let corpus = NumberCorpus::new(1);
        let parts = [&corpus.train, &corpus.validation, &corpus.test];
        let numbers = parts.map(|part| part.iter().map(|pair| pair.number).collect::<HashSet<u32>>());
        let all: HashSet<u32> = numbers.iter().flatten().copied().collect();
        assert_eq!(all.len(), numbers.iter().map(HashSet::len).sum::<usize>());
        let pairs: HashSet<&str> =
            parts.iter().flat_map(|part| part.iter().map(|pair| &*pair.source)).collect();
        let practised = 2 * (PRACTISED.0 as usize + 1) * PRACTISED.1;
        assert_eq!(pairs.len(), parts.iter().map(|part| part.len()).sum::<usize>() - practised);
        assert_eq!(corpus.test.len(), 2000);
        assert!(SHOWN.iter().all(|number| numbers[2].contains(number)));
        assert_eq!(corpus.validation[0].number, WATCHED);
    }

    #[test]
    fn the_seed_decides() {
        assert_eq!(NumberCorpus::new(3), NumberCorpus::new(3));
        assert_ne!(NumberCorpus::new(3).test, NumberCorpus::new(4).test);
    }

    #[test]
    fn lines_of_the_files_belong_together() {
        let folder = std::env::temp_dir().join(format!("attentive-numbers-{}", std::process::id()));
        let corpus = NumberCorpus::new(1);
        corpus.write(&folder).unwrap();
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
        for (name, pairs) in [("train", &corpus.train), ("valid", &corpus.validation), ("test", &corpus.test)]
        {
            let [sources, targets] = ["source", "target"].map(|side| read(&format!("{name}.{side}")));
            let lines: Vec<(&str, &str)> = sources.lines().zip(targets.lines()).collect();
            let expected: Vec<(&str, &str)> =
                pairs.iter().map(|pair| (&*pair.source, &*pair.target)).collect();
            assert!(lines == expected, "{name}");
        }
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 6);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
