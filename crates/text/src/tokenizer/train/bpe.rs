//! Byte pair encoding (Sennrich et al., 2016): the most frequent pair of neighbours becomes a symbol of its
//! own, and again.
//!
//! The counts of pairs are kept up to date: a merge touches only the words that have the pair, and there only
//! the neighbours of the place. The most frequent pair is the top of a heap; a count that has fallen since it
//! was put there is put back as it is now. Of pairs with the same count, the one of the older symbols is
//! taken.

use foldhash::fast::FixedState;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// No piece is longer, in characters, unless [`Bpe::up_to`] says so.
pub(super) const LONGEST: usize = 16;

/// Symbols, their texts and lengths, and words written in them.
pub(super) struct Bpe {
    texts: Vec<String>,
    lengths: Vec<usize>,
    known: HashMap<String, u32, FixedState>,
    words: Vec<Word>,
    pairs: HashMap<Pair, Occurrences, FixedState>,
    agenda: BinaryHeap<(u64, Reverse<Pair>)>,
    /// What continues a word begins with this, which is no part of its text.
    prefix: &'static str,
    longest: usize,
    /// The merges so far.
    merges: Vec<Pair>,
}

/// What was learned.
pub(super) struct Merged {
    /// The new symbols, the first first.
    pub symbols: Vec<String>,
    /// The texts of the pairs that were merged, in their order. Two pairs may become one symbol.
    pub pairs: Vec<[String; 2]>,
}

type Pair = (u32, u32);

struct Word {
    symbols: Vec<u32>,
    count: u64,
}

/// How often a pair occurs, and in which words. A word may be listed twice, and may have lost the pair by a merge.
#[derive(Default)]
struct Occurrences {
    count: u64,
    words: Vec<u32>,
}

impl Bpe {
    /// Words cut into symbols of one character each, which are those of the alphabet.
    pub(super) fn new<'a>(
        alphabet: Vec<String>,
        words: impl Iterator<Item = (Vec<&'a str>, u64)>,
        prefix: &'static str,
    ) -> Bpe {
        let known: HashMap<String, u32, FixedState> = alphabet.iter().cloned().zip(0..).collect();
        let words = words.map(|(symbols, count)| {
            let symbols = symbols.into_iter().map(|symbol| known[symbol]).collect();
            Word { symbols, count }
        });
        let words: Vec<Word> = words.collect();
        let lengths = vec![1; alphabet.len()];
        let (pairs, agenda) = (HashMap::default(), BinaryHeap::new());
        let (longest, merges) = (LONGEST, Vec::new());
        let mut bpe = Bpe { texts: alphabet, lengths, known, words, pairs, agenda, prefix, longest, merges };
        bpe.count();
        bpe
    }

    /// The same with pieces of up to so many characters.
    pub(super) fn up_to(self, longest: usize) -> Bpe {
        Bpe { longest, ..self }
    }

    /// Merges until there are `size` symbols or no pair occurs twice.
    pub(super) fn merge_until(mut self, size: usize) -> Merged {
        let first = self.texts.len();
        while self.texts.len() < size
            && let Some(pair) = self.most_frequent()
        {
            self.merge(pair);
            self.merges.push(pair);
        }
        let text = |symbol: u32| self.texts[symbol as usize].clone();
        let pairs = self.merges.iter().map(|&(left, right)| [text(left), text(right)]).collect();
        Merged { pairs, symbols: self.texts.split_off(first) }
    }

    fn count(&mut self) {
        for (number, word) in (0..).zip(&self.words) {
            for pair in word.symbols.windows(2) {
                let place = self.pairs.entry((pair[0], pair[1])).or_default();
                place.count += word.count;
                // Named once however often it has the pair: each name is a walk through the whole word.
                if place.words.last() != Some(&number) {
                    place.words.push(number);
                }
            }
        }
        self.agenda = self.pairs.iter().map(|(&pair, place)| (place.count, Reverse(pair))).collect();
    }

    fn most_frequent(&mut self) -> Option<Pair> {
        while let Some((count, Reverse(pair))) = self.agenda.pop() {
            let now = self.pairs.get(&pair).map_or(0, |place| place.count);
            if now < count {
                // A count that has risen since has an entry of its own.
                if now > 1 {
                    self.agenda.push((now, Reverse(pair)));
                }
                continue;
            }
            if count < 2 {
                return None;
            }
            if now == count && self.lengths[pair.0 as usize] + self.lengths[pair.1 as usize] <= self.longest {
                return Some(pair);
            }
        }
        None
    }

    fn merge(&mut self, pair: Pair) {
        let union = self.union(pair);
        let Some(place) = self.pairs.remove(&pair) else { return };
        let mut risen: Vec<Pair> = Vec::new();
        for number in place.words {
            let word = &mut self.words[number as usize];
            let count = word.count;
            // What is kept moves to the front as the walk goes on: a word may be as long as a line.
            let (mut kept, mut i) = (0, 0);
            while i < word.symbols.len() {
                let symbol = word.symbols[i];
                if symbol != pair.0 || word.symbols.get(i + 1) != Some(&pair.1) {
                    word.symbols[kept] = symbol;
                    (kept, i) = (kept + 1, i + 1);
                    continue;
                }
                let left = kept.checked_sub(1).map(|left| word.symbols[left]);
                let right = word.symbols.get(i + 2).copied();
                word.symbols[kept] = union;
                (kept, i) = (kept + 1, i + 2);
                for (old, new) in [
                    left.map(|left| ((left, pair.0), (left, union))),
                    right.map(|right| ((pair.1, right), (union, right))),
                ]
                .into_iter()
                .flatten()
                {
                    if let Some(place) = self.pairs.get_mut(&old) {
                        place.count = place.count.saturating_sub(count);
                    }
                    let place = self.pairs.entry(new).or_default();
                    place.count += count;
                    if place.words.last() != Some(&number) {
                        place.words.push(number);
                    }
                    risen.push(new);
                }
            }
            word.symbols.truncate(kept);
        }
        risen.sort_unstable();
        risen.dedup();
        for pair in risen {
            if let Some(place) = self.pairs.get(&pair) {
                self.agenda.push((place.count, Reverse(pair)));
            }
        }
    }

    /// The symbol of a pair, which may have come about another way before.
    fn union(&mut self, (left, right): Pair) -> u32 {
        let end = &self.texts[right as usize];
        let text = format!("{}{}", self.texts[left as usize], end.strip_prefix(self.prefix).unwrap_or(end));
        let lengths = self.lengths[left as usize] + self.lengths[right as usize];
        *self.known.entry(text).or_insert_with_key(|text| {
            self.texts.push(text.clone());
            self.lengths.push(lengths);
            self.texts.len() as u32 - 1
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn train(words: &[(&'static str, u64)], size: usize) -> Vec<String> {
        let mut alphabet: Vec<String> =
            words.iter().flat_map(|(word, _)| word.chars().map(String::from)).collect();
        alphabet.sort();
        alphabet.dedup();
        let words = words.iter().map(|&(word, count)| {
            let characters = word.char_indices().map(|(at, c)| &word[at..at + c.len_utf8()]);
            (characters.collect(), count)
        });
        Bpe::new(alphabet, words, "").merge_until(size).symbols
    }

    #[test]
    fn the_most_frequent_pair_is_merged_first() {
        // The words of the paper: es (9), est (9), lo (7), low (7), ne (6) …
        let words = [("low", 5), ("lower", 2), ("newest", 6), ("widest", 3)];
        assert_eq!(train(&words, 10 + 5)[..2], ["es", "est"]);
        assert_eq!(train(&words, 10 + 5)[2..], ["lo", "low", "ew"]);
    }

    #[test]
    fn repeated_letters_are_counted_as_they_can_be_merged() {
        assert_eq!(train(&[("aaaa", 3)], 2), ["aa"]);
        assert_eq!(train(&[("aaaa", 3)], 9), ["aa", "aaaa"]);
    }

    #[test]
    fn pairs_that_occur_once_are_not_merged() {
        assert_eq!(train(&[("abc", 1)], 9), [""; 0]);
    }

    #[test]
    fn a_word_as_long_as_a_book_is_merged_in_a_few_walks() {
        // The square of its length would take minutes.
        let word: &'static str = "ab".repeat(200_000).leak();
        assert_eq!(train(&[(word, 1)], 9), [1, 2, 4, 8].map(|times| "ab".repeat(times)));
    }

    #[test]
    fn no_piece_is_longer_than_the_longest() {
        let pieces = train(&[("abcdefghijklmnopqrstuvwxyz", 5)], 200);
        assert_eq!(pieces.iter().map(|piece| piece.len()).max(), Some(LONGEST));
    }
}
