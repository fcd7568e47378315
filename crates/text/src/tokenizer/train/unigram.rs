//! Unigram (Kudo, 2018): from all substrings of words down to those pieces under which the text is most
//! probable.
//!
//! In turn: expected counts of all pieces over all ways to cut each word (forward and backward sums),
//! probabilities from the counts, twice; then the pieces go whose loss the text would feel least, a quarter
//! at a time. Characters stay whatever happens, so that every word can be cut.

use super::super::sentencepiece::{DoubleArray, character_length};
use super::bpe::LONGEST;
use foldhash::fast::FixedState;
use std::collections::HashMap;

/// Substrings to begin with.
const SEEDS: usize = 1_000_000;
/// Rounds of counting between two prunings.
const ROUNDS: usize = 2;
/// What remains of the pieces when some are pruned.
const REMAINS: f64 = 0.75;
/// A piece that is expected less often is not a piece.
const LEAST_COUNT: f64 = 0.5;

struct Piece {
    text: String,
    score: f64,
    /// A single character, which stays.
    character: bool,
}

/// Learns `size` pieces with their log probabilities, the best first.
pub(super) fn train(words: &[(&str, u64)], alphabet: &[char], size: usize) -> Vec<(String, f32)> {
    let mut pieces = seeds(words, alphabet);
    // Somewhat more than wanted, so that the last choice is made by probability.
    let wanted = size + size / 10;
    loop {
        for _ in 0..ROUNDS {
            let counts = Lattices::new(&pieces).expected_counts(words);
            pieces = maximise(pieces, &counts);
        }
        if pieces.len() <= wanted {
            break;
        }
        let kept = wanted.max((pieces.len() as f64 * REMAINS) as usize);
        pieces = prune(pieces, words, kept);
    }
    choose(pieces, size)
}

/// All characters and the substrings that cover most of the text.
fn seeds(words: &[(&str, u64)], alphabet: &[char]) -> Vec<Piece> {
    let mut counts: HashMap<&str, u64, FixedState> = HashMap::default();
    for &(word, count) in words {
        let ends: Vec<usize> = word.char_indices().map(|(at, _)| at).chain([word.len()]).collect();
        for begin in 0..ends.len() {
            for end in begin + 1..ends.len().min(begin + LONGEST + 1) {
                *counts.entry(&word[ends[begin]..ends[end]]).or_default() += count;
            }
        }
    }
    let covers = |text: &str, count: u64| count * text.chars().count() as u64;
    let characters = alphabet.iter().map(|character| {
        let text = character.to_string();
        let count = counts.get(text.as_str()).copied().unwrap_or(1);
        (text, count)
    });
    let characters: Vec<(String, u64)> = characters.collect();
    let long = counts
        .into_iter()
        .filter(|&(text, count)| count > 1 && text.len() > character_length(text.as_bytes()));
    let mut long: Vec<(String, u64)> =
        long.map(|(text, count)| (text.to_owned(), covers(text, count))).collect();
    long.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    long.truncate(SEEDS);
    let total: u64 = characters.iter().chain(&long).map(|(_, count)| count).sum();
    let piece = |character| {
        move |(text, count)| Piece { text, score: (count as f64).ln() - (total as f64).ln(), character }
    };
    characters.into_iter().map(piece(true)).chain(long.into_iter().map(piece(false))).collect()
}

/// New probabilities from expected counts. The digamma function instead of the logarithm makes rare pieces
/// rarer, as a sparse prior would.
fn maximise(pieces: Vec<Piece>, counts: &[f64]) -> Vec<Piece> {
    let kept = |(piece, count): &(Piece, f64)| piece.character || *count >= LEAST_COUNT;
    let kept: Vec<(Piece, f64)> = pieces.into_iter().zip(counts.iter().copied()).filter(kept).collect();
    let total = digamma(kept.iter().map(|(_, count)| count.max(LEAST_COUNT)).sum());
    let renew =
        |(piece, count): (Piece, f64)| Piece { score: digamma(count.max(LEAST_COUNT)) - total, ..piece };
    kept.into_iter().map(renew).collect()
}

/// Keeps `kept` pieces: those without which the text would be the least probable.
fn prune(pieces: Vec<Piece>, words: &[(&str, u64)], kept: usize) -> Vec<Piece> {
    let lattices = Lattices::new(&pieces);
    let mut counts = vec![0.0; pieces.len()];
    for &(word, count) in words {
        for id in lattices.best(word.as_bytes(), None) {
            counts[id as usize] += count as f64;
        }
    }
    let total: f64 = counts.iter().sum();
    let mut losses: Vec<(f64, usize)> = Vec::with_capacity(pieces.len());
    for (id, piece) in pieces.iter().enumerate() {
        let count = counts[id];
        if piece.character {
            losses.push((f64::INFINITY, id));
        } else if count > 0.0 {
            // Without it, its text would be cut into these.
            let instead = lattices.best(piece.text.as_bytes(), Some(id as u32));
            let total_instead = (total + count * (instead.len() as f64 - 1.0)).ln();
            let with = count.ln() - total.ln();
            let without: f64 =
                instead.iter().map(|&id| (counts[id as usize] + count).ln() - total_instead).sum();
            losses.push((count * (with - without), id));
        }
    }
    losses.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    losses.truncate(kept);
    let mut stays = vec![false; pieces.len()];
    for (_, id) in losses {
        stays[id] = true;
    }
    pieces.into_iter().zip(stays).filter_map(|(piece, stays)| stays.then_some(piece)).collect()
}

/// All characters and the most probable of the others, `size` in all.
fn choose(mut pieces: Vec<Piece>, size: usize) -> Vec<(String, f32)> {
    let order = |a: &Piece, b: &Piece| b.score.total_cmp(&a.score).then_with(|| a.text.cmp(&b.text));
    pieces.sort_unstable_by(|a, b| b.character.cmp(&a.character).then_with(|| order(a, b)));
    pieces.truncate(size);
    pieces.sort_unstable_by(order);
    pieces.into_iter().map(|piece| (piece.text, piece.score as f32)).collect()
}

/// All ways to cut words into pieces.
struct Lattices<'a> {
    pieces: &'a [Piece],
    trie: DoubleArray,
}

/// A piece in its place in a word.
struct Edge {
    begin: usize,
    end: usize,
    id: u32,
    score: f64,
}

impl Lattices<'_> {
    fn new(pieces: &[Piece]) -> Lattices<'_> {
        let mut keys: Vec<(&[u8], u32)> =
            (0..).zip(pieces).map(|(id, piece)| (piece.text.as_bytes(), id)).collect();
        keys.sort_unstable();
        Lattices { pieces, trie: DoubleArray::new(&keys) }
    }

    /// All pieces in a word, by where they begin.
    fn edges(&self, word: &[u8], edges: &mut Vec<Edge>) {
        edges.clear();
        let mut begin = 0;
        while begin < word.len() {
            let mut node = self.trie.root();
            for (end, &byte) in (begin + 1..).zip(&word[begin..]) {
                let Some((next, id)) = self.trie.step(node, byte) else { break };
                node = next;
                if let Some(id) = id {
                    edges.push(Edge { begin, end, id, score: self.pieces[id as usize].score });
                }
            }
            begin += character_length(&word[begin..]);
        }
    }

    /// How often each piece is expected: the sum over all words of the probability that it is part of the
    /// cut.
    fn expected_counts(&self, words: &[(&str, u64)]) -> Vec<f64> {
        let mut counts = vec![0.0; self.pieces.len()];
        let (mut edges, mut forward, mut backward) = (vec![], vec![], vec![]);
        for &(word, count) in words {
            let word = word.as_bytes();
            self.edges(word, &mut edges);
            for sums in [&mut forward, &mut backward] {
                sums.clear();
                sums.resize(word.len() + 1, f64::NEG_INFINITY);
            }
            forward[0] = 0.0;
            for edge in &edges {
                forward[edge.end] = log_add(forward[edge.end], forward[edge.begin] + edge.score);
            }
            backward[word.len()] = 0.0;
            for edge in edges.iter().rev() {
                backward[edge.begin] = log_add(backward[edge.begin], backward[edge.end] + edge.score);
            }
            let all = forward[word.len()];
            for edge in &edges {
                let share = forward[edge.begin] + edge.score + backward[edge.end] - all;
                counts[edge.id as usize] += count as f64 * share.exp();
            }
        }
        counts
    }

    /// The best way to cut a word, without one piece if so wanted.
    fn best(&self, word: &[u8], without: Option<u32>) -> Vec<u32> {
        let mut edges = Vec::new();
        self.edges(word, &mut edges);
        let mut best: Vec<(f64, usize)> = vec![(f64::NEG_INFINITY, 0); word.len() + 1];
        best[0].0 = 0.0;
        for (number, edge) in edges.iter().enumerate().filter(|(_, edge)| Some(edge.id) != without) {
            let score = best[edge.begin].0 + edge.score;
            if score > best[edge.end].0 {
                best[edge.end] = (score, number);
            }
        }
        let (mut ids, mut end) = (vec![], word.len());
        while end > 0 {
            let edge = &edges[best[end].1];
            ids.push(edge.id);
            end = edge.begin;
        }
        ids
    }
}

fn log_add(a: f64, b: f64) -> f64 {
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    if low == f64::NEG_INFINITY { high } else { high + (low - high).exp().ln_1p() }
}

/// The derivative of the logarithm of the gamma function: ψ(x) = ψ(x + 1) − 1/x, and from 7 on its asymptotic
/// series.
fn digamma(mut x: f64) -> f64 {
    let mut result = 0.0;
    while x < 7.0 {
        result -= 1.0 / x;
        x += 1.0;
    }
    let x = x - 0.5;
    let square = 1.0 / (x * x);
    result + x.ln() + square / 24.0 - 7.0 / 960.0 * square * square + 31.0 / 8064.0 * square * square * square
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digamma_has_its_known_values() {
        // ψ(1) = −γ, ψ(1/2) = −γ − 2 ln 2.
        let gamma = 0.577_215_664_901_532_9;
        assert!((digamma(1.0) + gamma).abs() < 1e-7);
        assert!((digamma(0.5) + gamma + 2.0 * 2f64.ln()).abs() < 1e-7);
        assert!((digamma(100.0) - 4.600_161_852_738_087).abs() < 1e-9);
    }

    #[test]
    fn expected_counts_are_those_of_all_ways_to_cut() {
        let piece = |text: &str, probability: f64, character| Piece {
            text: text.into(),
            score: probability.ln(),
            character,
        };
        let pieces = [piece("a", 0.3, true), piece("b", 0.2, true), piece("ab", 0.5, false)];
        // `ab` is one piece with 0.5, two with 0.06.
        let counts = Lattices::new(&pieces).expected_counts(&[("ab", 2)]);
        for (count, expected) in counts.into_iter().zip([0.12 / 0.56, 0.12 / 0.56, 1.0 / 0.56]) {
            assert!((count - expected).abs() < 1e-12, "{count} {expected}");
        }
    }

    #[test]
    fn words_that_recur_become_pieces_and_characters_stay() {
        let words = [("▁der", 50), ("▁hund", 40), ("▁und", 60), ("▁x", 1)];
        let alphabet = ['▁', 'd', 'e', 'h', 'n', 'r', 'u', 'x'];
        let pieces = train(&words, &alphabet, 11);
        assert_eq!(pieces.len(), 11);
        for text in ["▁der", "▁und", "x", "h"] {
            assert!(pieces.iter().any(|(piece, _)| piece == text), "no {text}: {pieces:?}");
        }
        assert!(pieces.iter().all(|(_, score)| *score < 0.0), "{pieces:?}");
        assert!(pieces.is_sorted_by(|a, b| a.1 >= b.1), "{pieces:?}");
    }
}
