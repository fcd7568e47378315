//! n-grams of one text, counted against those of others.
//!
//! A text is a list of numbers, for words or for characters. The n-gram that begins at a place is written
//! into one `u128`, its first item in the highest bits, with zeros where the text has ended. Sorted, these
//! numbers have equal n-grams side by side, for the longest n and all shorter ones at once.

/// All n-grams of a text up to `N`, of items with at most `128 / N` bits.
pub(super) struct Ngrams<const N: usize> {
    items: usize,
    sorted: Vec<u128>,
}

impl<const N: usize> Ngrams<N> {
    const BITS: usize = 128 / N;

    /// Those of `items`, each above zero and below `2^(128 / N)`.
    pub(super) fn new(items: &[u32]) -> Ngrams<N> {
        let mut sorted = Vec::with_capacity(items.len());
        let mut window = 0u128;
        for &item in items.iter().rev() {
            debug_assert!(item > 0 && (Self::BITS >= 32 || item >> Self::BITS == 0));
            window = window >> Self::BITS | u128::from(item) << (Self::BITS * (N - 1));
            sorted.push(window);
        }
        sorted.sort_unstable();
        Ngrams { items: items.len(), sorted }
    }

    /// How many n-grams of length `n` there are.
    pub(super) fn total(&self, n: usize) -> u64 {
        (self.items + 1).saturating_sub(n) as u64
    }

    /// How many n-grams of length `n` are in one of `others` too, each at most as often as it is there.
    pub(super) fn matches(&self, others: &[Ngrams<N>], n: usize) -> u64 {
        let shift = (Self::BITS * (N - n)) as u32;
        let ends_early = |ngram: u128| ngram & ((1 << Self::BITS) - 1) == 0;
        let mut cursors = vec![0; others.len()];
        let mut matches = 0;
        for group in self.sorted.chunk_by(|a, b| a >> shift == b >> shift) {
            let ngram = group[0] >> shift;
            if ends_early(ngram) {
                continue;
            }
            let counts = others.iter().zip(&mut cursors).map(|(other, cursor)| {
                *cursor += other.sorted[*cursor..].iter().take_while(|&&x| x >> shift < ngram).count();
                let same = other.sorted[*cursor..].iter().take_while(|&&x| x >> shift == ngram).count();
                *cursor += same;
                same
            });
            matches += counts.max().unwrap_or(0).min(group.len()) as u64;
        }
        matches
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// The definition, word for word.
    fn plainly(text: &[u32], others: &[Vec<u32>], n: usize) -> u64 {
        let count = |text: &[u32]| {
            let mut counts = HashMap::<Vec<u32>, u64>::new();
            text.windows(n).for_each(|ngram| *counts.entry(ngram.to_vec()).or_default() += 1);
            counts
        };
        let others: Vec<_> = others.iter().map(|other| count(other)).collect();
        let most = |ngram: &Vec<u32>| others.iter().filter_map(|other| other.get(ngram)).max().copied();
        count(text).iter().map(|(ngram, &times)| times.min(most(ngram).unwrap_or(0))).sum()
    }

    #[test]
    fn matches_are_those_of_the_definition() {
        let mut state = 1u32;
        let mut text = |longest: u32, items: u32| -> Vec<u32> {
            let mut next = || {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                state >> 16
            };
            let length = next() % (longest + 1);
            (0..length).map(|_| 1 + next() % items).collect()
        };
        let mut found = 0;
        for round in 0..300 {
            let hypothesis = text(12, 3);
            let references: Vec<_> = (0..1 + round % 3).map(|_| text(12, 3)).collect();
            let others: Vec<_> = references.iter().map(|other| Ngrams::<4>::new(other)).collect();
            for n in 1..=4 {
                let ngrams = Ngrams::<4>::new(&hypothesis);
                let expected = plainly(&hypothesis, &references, n);
                assert_eq!(ngrams.matches(&others, n), expected, "{hypothesis:?} {references:?} {n}");
                assert_eq!(ngrams.total(n), hypothesis.windows(n).count() as u64);
                found += expected;
            }
        }
        assert!(found > 1000);
    }

    #[test]
    fn six_characters_of_the_last_plane_fit() {
        let last = char::MAX as u32 + 1;
        let text = Ngrams::<6>::new(&[last; 7]);
        let other = [Ngrams::<6>::new(&[last; 6])];
        assert_eq!((1..=6).map(|n| text.matches(&other, n)).collect::<Vec<_>>(), [6, 5, 4, 3, 2, 1]);
    }
}
