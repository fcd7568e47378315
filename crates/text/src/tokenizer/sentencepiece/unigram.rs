//! Unigram (Kudo, 2018): of all ways to cut a text into pieces, the one whose log probabilities have the
//! greatest sum.
//!
//! The best way to each position is kept while walking from left to right (Viterbi); the pieces that begin at
//! a position are found in a trie. A character that is no piece costs the least score of all less 10. A
//! user-defined symbol costs next to nothing, so that it is always taken. Sums are f32 and of equal ways the
//! one found first is kept, as in the SentencePiece library: the same ids must come out.
//!
//! Where no piece reaches over the beginning of a word, every way passes there, and words are cut one by one. A
//! word that is a piece, and as such better than in any other way by more than rounding could make good, is taken
//! at once: that is most of a text.

use super::proto::PieceType;
use super::{Cut, Pieces, character_length, words};

/// A Unigram model.
#[derive(Debug)]
pub(crate) struct Unigram {
    /// The trie of pieces, each node with all that is asked of it: a step is one visit to memory.
    nodes: Vec<Node>,
    root: u32,
    /// Whether words can be cut one by one.
    by_word: bool,
    /// By id: whether a word that is this piece is this piece whatever stands before it.
    whole: Vec<bool>,
    unknown: u32,
    unknown_score: f32,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    /// The byte that leads here; `NOTHING` where no node stands.
    label: u32,
    children: u32,
    /// The piece that ends here, `NOTHING` if none does, and its score.
    id: u32,
    score: f32,
}

const NOTHING: u32 = u32::MAX;

/// How the best path to a position ends.
#[derive(Clone, Copy)]
struct Best {
    score: f32,
    id: u32,
    /// Where its last piece begins; `NOWHERE` if no path is known.
    from: u32,
}

const NOWHERE: u32 = u32::MAX;
const UNKNOWN_PENALTY: f32 = 10.0;
/// By so much must a word be better as one piece than otherwise. Adding a score to a sum rounds it by at most
/// 2⁻²⁴ of the sum, which adds up to 0.01 for the longest word after the largest sum, on either way.
const MARGIN: f32 = 0.05;
const LONGEST: usize = 32;
const FAR: f32 = 5_000.0;
/// The score of user-defined symbols.
const USER_DEFINED: f32 = -0.1;

impl Unigram {
    pub(crate) fn new(pieces: &Pieces) -> Unigram {
        let score = |id: u32| match pieces.get(id) {
            Some(piece) if piece.kind == PieceType::UserDefined => USER_DEFINED,
            piece => piece.map_or(0.0, |piece| piece.score),
        };
        let normal = pieces.iter().filter(|piece| piece.kind == PieceType::Normal);
        let least = normal.map(|piece| piece.score).fold(f32::MAX, f32::min);
        let trie = pieces.trie(|piece| piece.is_text() && piece.kind != PieceType::Unused);
        let nodes = trie.nodes().map(|node| {
            let Some((label, children, id)) = node else {
                return Node { label: NOTHING, children: 0, id: NOTHING, score: 0.0 };
            };
            let score = id.map_or(0.0, score);
            Node { label: label.into(), children: children as u32, id: id.unwrap_or(NOTHING), score }
        });
        let nodes: Vec<Node> = nodes.collect();
        let root = nodes[0].children;
        let (by_word, whole) = (pieces.stay_in_words(), vec![]);
        let (unknown, unknown_score) = (pieces.unknown, least - UNKNOWN_PENALTY);
        let mut unigram = Unigram { nodes, root, by_word, whole, unknown, unknown_score };
        unigram.whole = unigram.whole_pieces(pieces);
        unigram
    }

    /// Appends the pieces of a normalised text to `cuts`.
    pub(crate) fn cut(&self, text: &[u8], cuts: &mut Vec<Cut>) {
        let mut best = Vec::new();
        if !self.by_word {
            self.cut_from(0.0, text, None, &mut best, cuts);
            return;
        }
        let mut sum = 0.0f32;
        for word in words(text) {
            match self.find(word) {
                Some(piece) if self.whole[piece.id as usize] && sum.abs() < FAR => {
                    sum += piece.score;
                    cuts.push(Cut { id: piece.id, length: word.len() as u32 });
                }
                _ => sum = self.cut_from(sum, word, None, &mut best, cuts),
            }
        }
    }

    /// Appends the best pieces of a text that stands after others with the score `sum`, and gives the sum
    /// then; without one piece if so wanted.
    fn cut_from(
        &self,
        sum: f32,
        text: &[u8],
        without: Option<u32>,
        best: &mut Vec<Best>,
        cuts: &mut Vec<Cut>,
    ) -> f32 {
        best.clear();
        best.resize(text.len() + 1, Best { score: sum, id: 0, from: NOWHERE });
        let mut begin = 0;
        while begin < text.len() {
            let so_far = best[begin].score;
            let character = character_length(&text[begin..]);
            let mut character_is_piece = false;
            let mut children = self.root;
            for (end, &byte) in (begin + 1..).zip(&text[begin..]) {
                let Some(node) = self.step(children, byte) else { break };
                children = node.children;
                if node.id == NOTHING || Some(node.id) == without {
                    continue;
                }
                best[end].improve(so_far + node.score, node.id, begin);
                character_is_piece |= end - begin == character;
            }
            if !character_is_piece {
                best[begin + character].improve(so_far + self.unknown_score, self.unknown, begin);
            }
            begin += character;
        }
        let first = cuts.len();
        let mut end = text.len();
        while end > 0 {
            let Best { id, from, .. } = best[end];
            cuts.push(Cut { id, length: end as u32 - from });
            end = from as usize;
        }
        cuts[first..].reverse();
        best[text.len()].score
    }

    #[inline]
    fn step(&self, children: u32, byte: u8) -> Option<&Node> {
        let node = self.nodes.get((children ^ u32::from(byte)) as usize)?;
        (node.label == u32::from(byte)).then_some(node)
    }

    /// The piece that a text is.
    #[inline]
    fn find(&self, text: &[u8]) -> Option<&Node> {
        let (mut children, mut last) = (self.root, None);
        for &byte in text {
            let node = self.step(children, byte)?;
            children = node.children;
            last = Some(node);
        }
        last.filter(|node| node.id != NOTHING)
    }

    fn whole_pieces(&self, pieces: &Pieces) -> Vec<bool> {
        let (mut best, mut cuts) = (Vec::new(), Vec::new());
        let whole = (0..).zip(pieces.iter()).map(|(id, piece)| {
            let text = piece.text.as_bytes();
            let Some(node) = self.find(text).filter(|node| node.id == id && text.len() <= LONGEST) else {
                return false;
            };
            let otherwise = self.cut_from(0.0, text, Some(id), &mut best, &mut cuts);
            cuts.clear();
            node.score > otherwise + MARGIN
        });
        whole.collect()
    }
}

impl Best {
    #[inline]
    fn improve(&mut self, score: f32, id: u32, from: usize) {
        if self.from == NOWHERE || score > self.score {
            *self = Best { score, id, from: from as u32 };
        }
    }
}
