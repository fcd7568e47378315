//! Pairs that are held out of a corpus to validate on: nothing is learned from them.

use super::Corpus;
use attentive_tensor::Random;

/// The stream of random numbers that pairs are held out by; epochs draw from the other end.
const STREAM: u64 = u64::MAX;

/// Which pairs of the files belong to a corpus.
#[derive(Debug, Clone)]
pub(super) enum Selection {
    /// All.
    All,
    /// Those with these numbers, in ascending order.
    Only(Vec<u32>),
    /// All but some. Element `k` says how many pairs stay before the `k`-th that is held out.
    Without(Vec<u32>),
}

impl Selection {
    /// How many pairs there are, of so many in the files.
    pub(super) fn len(&self, all: usize) -> usize {
        match self {
            Selection::All => all,
            Selection::Only(numbers) => numbers.len(),
            Selection::Without(before) => all - before.len(),
        }
    }

    /// The number that a pair has in the files.
    pub(super) fn number(&self, pair: u32) -> u32 {
        match self {
            Selection::All => pair,
            Selection::Only(numbers) => numbers[pair as usize],
            Selection::Without(before) => pair + before.partition_point(|&before| before <= pair) as u32,
        }
    }
}

impl Corpus {
    /// Splits a whole corpus: the pairs to learn from, and `count` pairs that are held out. They are spread over
    /// the corpus, one from each of `count` equal parts, and follow from the seed.
    ///
    /// # Panics
    /// If no pair would be left on either side.
    pub fn hold_out(&self, count: usize, seed: u64) -> (Corpus, Corpus) {
        assert!(0 < count && count < self.len(), "hold out {count} of {} pairs", self.len());
        let held = held_out(self.len(), count, seed);
        let before = held.iter().zip(0..).map(|(number, earlier)| number - earlier).collect();
        (self.select(Selection::Without(before)), self.select(Selection::Only(held)))
    }
}

/// The numbers of the pairs, or of other examples, that are held out, in ascending order.
pub(crate) fn held_out(pairs: usize, count: usize, seed: u64) -> Vec<u32> {
    let random = Random::new(seed).split(STREAM);
    let border = |part: usize| (part as u64 * pairs as u64 / count as u64) as u32;
    let draw = |part: usize| {
        let (begin, end) = (border(part), border(part + 1));
        begin + ((u64::from(random.bits(part as u32)) * u64::from(end - begin)) >> 32) as u32
    };
    (0..count).map(draw).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn held_out_pairs_are_spread_over_the_corpus_and_the_seed_decides() {
        let held = held_out(1000, 20, 1);
        assert_eq!(held, held_out(1000, 20, 1));
        assert_ne!(held, held_out(1000, 20, 2));
        assert!(held.iter().zip(0..).all(|(number, part)| (50 * part..50 * (part + 1)).contains(number)));
        assert_eq!(held_out(3, 3, 1), [0, 1, 2]);
    }

    #[test]
    fn what_stays_and_what_is_held_out_are_the_whole_corpus() {
        for (pairs, count) in [(10, 1), (10, 9), (1000, 20), (7, 3)] {
            let held = held_out(pairs, count, 5);
            let before = held.iter().zip(0..).map(|(number, earlier)| number - earlier).collect();
            let (only, without) = (Selection::Only(held), Selection::Without(before));
            let list = |selection: &Selection| {
                (0..selection.len(pairs) as u32).map(|i| selection.number(i)).collect::<Vec<_>>()
            };
            let mut all = list(&without);
            assert!(all.is_sorted());
            all.extend(list(&only));
            all.sort_unstable();
            assert!(all.into_iter().eq(0..pairs as u32), "{pairs} {count}");
        }
    }
}
