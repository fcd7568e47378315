//! The text of a block and its translation, both cut into pieces, and which piece comes from which.
//!
//! A piece is a part of a word or the space between two words. The source is cut wherever markup stands, so that every piece
//! of it is inside an element or outside, never both.

use std::ops::Range;

/// A word of the source and the word of the translation that comes from it, both counted from 0 by white space.
pub type Link = (usize, usize);

/// Two texts in pieces.
#[derive(Debug)]
pub(super) struct Pieces {
    /// The translation, with the white space that it gets from the source.
    pub text: String,
    pub source: Side,
    pub target: Side,
    /// For each piece of the translation, the pieces of the source that it comes from, in order.
    pub from: Vec<Vec<usize>>,
    /// For each piece of the translation, the shares that the first of those pieces have in it, and one more, and so on.
    shares: Vec<Vec<usize>>,
    /// The same the other way round, in order.
    pub to: Vec<Vec<usize>>,
}

/// One of the two texts. The pieces join to it.
#[derive(Debug)]
pub(super) struct Side {
    /// Where the pieces begin, and where the last one ends.
    bounds: Vec<usize>,
    /// How many of the pieces before each one are no white space.
    words: Vec<usize>,
}

/// Bytes of the source, and the bytes of the translation that come from them.
pub(super) type Pair = (Range<usize>, Range<usize>);

impl Pieces {
    /// Cuts both texts at the edges of pairs, and where `cuts` say.
    pub fn new(
        source: &str,
        target: String,
        pairs: &[Pair],
        [mut source_cuts, mut target_cuts]: [Vec<usize>; 2],
    ) -> Pieces {
        for (from, to) in pairs {
            source_cuts.extend([from.start, from.end]);
            target_cuts.extend([to.start, to.end]);
        }
        let (source, target_side) = (Side::new(source, source_cuts), Side::new(&target, target_cuts));
        let mut from = vec![Vec::new(); target_side.len()];
        let mut to = vec![Vec::new(); source.len()];
        for (bytes, target_bytes) in pairs {
            for target in target_side.pieces(target_bytes) {
                for source in source.pieces(bytes) {
                    from[target].push(source);
                    to[source].push(target);
                }
            }
        }
        for list in from.iter_mut().chain(&mut to) {
            list.sort_unstable();
            list.dedup();
        }
        let shares = from.iter().map(|pieces| shares(&source, pieces)).collect();
        Pieces { text: target, source, target: target_side, from, shares, to }
    }

    /// The share that all pieces of the source have in a piece of the translation, and the share of some of them.
    pub fn shares(&self, target: usize, sources: &Range<usize>) -> (usize, usize) {
        let from = &self.from[target];
        let share = |count: usize| count.checked_sub(1).map_or(0, |last| self.shares[target][last]);
        let before = |piece: usize| share(from.partition_point(|source| *source < piece));
        (share(from.len()), before(sources.end) - before(sources.start))
    }
}

/// What a word of the source counts.
const WORD: usize = 1 << 16;

/// The sums of the shares of pieces. All words count the same, and the pieces of a word, which are neighbours, by their length.
fn shares(source: &Side, pieces: &[usize]) -> Vec<usize> {
    let mut sums = Vec::with_capacity(pieces.len());
    for word in pieces.chunk_by(|left, right| left + 1 == *right) {
        let sum = sums.last().copied().unwrap_or(0);
        let (start, end) = (source.bounds[word[0]], source.bounds[word[0] + word.len()]);
        sums.extend(word.iter().map(|piece| sum + WORD * (source.bounds[piece + 1] - start) / (end - start)));
    }
    sums
}

impl Side {
    fn new(text: &str, mut bounds: Vec<usize>) -> Side {
        bounds.extend([0, text.len()]);
        bounds.sort_unstable();
        bounds.dedup();
        let mut words = vec![0];
        for piece in bounds.windows(2) {
            let is_word = !text[piece[0]..piece[1]].trim().is_empty();
            words.push(words[words.len() - 1] + usize::from(is_word));
        }
        Side { bounds, words }
    }

    /// How many pieces there are.
    pub fn len(&self) -> usize {
        self.bounds.len() - 1
    }

    /// The pieces of some bytes, at whose edges the text is cut.
    pub fn pieces(&self, bytes: &Range<usize>) -> Range<usize> {
        let place = |byte| self.bounds.partition_point(|bound| *bound < byte);
        place(bytes.start)..place(bytes.end)
    }

    /// Where a piece begins, or the last one ends.
    pub fn byte(&self, piece: usize) -> usize {
        self.bounds[piece]
    }

    /// Whether any of these pieces is more than white space.
    pub fn has_words(&self, pieces: Range<usize>) -> bool {
        self.words[pieces.end] > self.words[pieces.start]
    }

    /// Whether a piece is white space.
    pub fn is_space(&self, piece: usize) -> bool {
        !self.has_words(piece..piece + 1)
    }
}
