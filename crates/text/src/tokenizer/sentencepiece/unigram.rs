//! Unigram (Kudo, 2018): of all ways to cut a text into pieces, the one whose log probabilities have the
//! greatest sum.
//!
//! The best way to each position is kept while walking from left to right (Viterbi); the pieces that begin at
//! a position are found in a trie. A character that is no piece costs the least score of all less 10. A
//! user-defined symbol costs next to nothing, so that it is always taken. Sums are f32 and of equal ways the
//! one found first is kept, as in the SentencePiece library: the same ids must come out.

use super::proto::PieceType;
use super::{Cut, Pieces, character_length};

/// A Unigram model.
#[derive(Debug)]
pub(crate) struct Unigram {
    /// The trie of pieces, each node with all that is asked of it: a step is one visit to memory.
    nodes: Vec<Node>,
    root: u32,
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
        Unigram { nodes, root, unknown: pieces.unknown, unknown_score: least - UNKNOWN_PENALTY }
    }

    /// Appends the pieces of a normalised text to `cuts`.
    pub(crate) fn cut(&self, text: &[u8], cuts: &mut Vec<Cut>) {
        let mut best = vec![Best { score: 0.0, id: 0, from: NOWHERE }; text.len() + 1];
        let mut begin = 0;
        while begin < text.len() {
            let so_far = best[begin].score;
            let character = character_length(&text[begin..]);
            let mut character_is_piece = false;
            let mut children = self.root;
            for (end, &byte) in (begin + 1..).zip(&text[begin..]) {
                let Some(node) = self.nodes.get((children ^ u32::from(byte)) as usize) else { break };
                if node.label != u32::from(byte) {
                    break;
                }
                children = node.children;
                if node.id == NOTHING {
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
