//! Byte pair encoding as SentencePiece does it: characters are merged, again and again the two neighbours whose union is
//! the piece with the best score, of equals the leftmost, until no union is a piece.
//!
//! A symbol is a piece, or a character that is no piece but part of one. All unions are known when the model is loaded, so
//! that merging looks up pairs of numbers and compares no text.

use super::double_array::DoubleArray;
use super::proto::PieceType;
use super::{Cut, Pieces, character_length};
use foldhash::fast::FixedState;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// A BPE model.
#[derive(Debug)]
pub(crate) struct Bpe {
    /// From text to symbols.
    trie: DoubleArray,
    /// User-defined symbols: found first, never merged.
    frozen: Option<DoubleArray>,
    unions: HashMap<(u32, u32), Union, FixedState>,
    /// The id of each symbol.
    ids: Vec<u32>,
    /// Whether a symbol takes part in merges only and is taken apart afterwards.
    unused: Vec<bool>,
    has_unused: bool,
    unknown: u32,
}

#[derive(Clone, Copy, Debug)]
struct Union {
    symbol: u32,
    /// The place of its score among all scores, the best first.
    rank: u32,
}

/// A symbol in its place in the text, linked to its neighbours.
#[derive(Clone, Copy)]
struct Link {
    symbol: u32,
    /// In bytes; 0 once it is part of another.
    length: u32,
    previous: u32,
    next: u32,
    frozen: bool,
}

const NONE: u32 = u32::MAX;

/// What was last seen to make each unused symbol: left, the length of left, right.
type Parts = HashMap<u32, (u32, u32, u32), FixedState>;

impl Bpe {
    pub(crate) fn new(pieces: &Pieces) -> Bpe {
        let ranks = ranks(pieces);
        let mut symbols: HashMap<&str, u32, FixedState> = HashMap::default();
        for (id, piece) in (0..).zip(pieces.iter()).filter(|(_, piece)| piece.is_text()) {
            symbols.insert(&piece.text, id);
        }
        let mut next = pieces.len() as u32;
        for piece in pieces.iter().filter(|piece| piece.is_text()) {
            for (at, character) in piece.text.char_indices() {
                let character = &piece.text[at..at + character.len_utf8()];
                symbols.entry(character).or_insert_with(|| {
                    next += 1;
                    next - 1
                });
            }
        }
        let mut unions = HashMap::default();
        for (id, piece) in (0..).zip(pieces.iter()).filter(|(_, piece)| piece.is_text()) {
            for (at, _) in piece.text.char_indices().skip(1) {
                let (left, right) = piece.text.split_at(at);
                if let (Some(&left), Some(&right)) = (symbols.get(left), symbols.get(right)) {
                    unions.insert((left, right), Union { symbol: id, rank: ranks[id as usize] });
                }
            }
        }
        let mut ids = vec![pieces.unknown; next as usize];
        let mut unused = vec![false; next as usize];
        for (&text, &symbol) in &symbols {
            ids[symbol as usize] = pieces.id(text);
            let piece = pieces.get(symbol);
            unused[symbol as usize] = piece.is_some_and(|piece| piece.kind == PieceType::Unused);
        }
        let mut keys: Vec<(&[u8], u32)> =
            symbols.iter().map(|(text, &symbol)| (text.as_bytes(), symbol)).collect();
        keys.sort_unstable();
        let has_unused = unused.contains(&true);
        let (trie, frozen) = (DoubleArray::new(&keys), pieces.user_defined());
        Bpe { trie, frozen, unions, ids, unused, has_unused, unknown: pieces.unknown }
    }

    /// Appends the pieces of a normalised text to `cuts`.
    pub(crate) fn cut(&self, text: &[u8], cuts: &mut Vec<Cut>) {
        let mut links = self.characters(text);
        let mut parts = Parts::default();
        let mut agenda = BinaryHeap::with_capacity(links.len());
        for right in 1..links.len() as u32 {
            self.consider(&links, right - 1, right, &mut agenda, &mut parts);
        }
        while let Some(Reverse((_, left, length))) = agenda.pop() {
            let Link { length: left_length, next: right, .. } = links[left as usize];
            // What has been merged since is no longer this pair.
            if left_length == 0 || right == NONE || left_length + links[right as usize].length != length {
                continue;
            }
            self.merge(&mut links, left, right);
            let Link { previous, next, .. } = links[left as usize];
            self.consider(&links, previous, left, &mut agenda, &mut parts);
            self.consider(&links, left, next, &mut agenda, &mut parts);
        }
        let mut at = if links.is_empty() { NONE } else { 0 };
        while at != NONE {
            let Link { symbol, length, next, .. } = links[at as usize];
            if self.has_unused {
                self.take_apart(symbol, length, &parts, cuts);
            } else {
                cuts.push(Cut { id: self.id(symbol), length });
            }
            at = next;
        }
    }

    /// The text as a chain of characters and user-defined symbols.
    fn characters(&self, text: &[u8]) -> Vec<Link> {
        let mut links = Vec::with_capacity(text.len());
        let mut begin = 0;
        while begin < text.len() {
            let rest = &text[begin..];
            let frozen = self.frozen.as_ref().and_then(|frozen| frozen.longest(rest));
            let length = frozen.map_or_else(|| character_length(rest), |(length, _)| length);
            let symbol = self.trie.get(&rest[..length]).unwrap_or(NONE);
            let at = links.len() as u32;
            let previous = at.wrapping_sub(1);
            let frozen = frozen.is_some();
            links.push(Link { symbol, length: length as u32, previous, next: at + 1, frozen });
            begin += length;
        }
        if let Some(last) = links.last_mut() {
            last.next = NONE;
        }
        links
    }

    /// Puts a pair of neighbours on the agenda if their union is a piece.
    #[inline]
    fn consider(
        &self,
        links: &[Link],
        left: u32,
        right: u32,
        agenda: &mut BinaryHeap<Reverse<(u32, u32, u32)>>,
        parts: &mut Parts,
    ) {
        if left == NONE || right == NONE {
            return;
        }
        let (a, b) = (links[left as usize], links[right as usize]);
        if a.frozen || b.frozen {
            return;
        }
        let Some(union) = self.unions.get(&(a.symbol, b.symbol)) else { return };
        agenda.push(Reverse((union.rank, left, a.length + b.length)));
        if self.has_unused && self.unused[union.symbol as usize] {
            parts.insert(union.symbol, (a.symbol, a.length, b.symbol));
        }
    }

    fn merge(&self, links: &mut [Link], left: u32, right: u32) {
        let (a, b) = (links[left as usize], links[right as usize]);
        let union = self.unions[&(a.symbol, b.symbol)];
        links[right as usize].length = 0;
        links[left as usize] = Link { symbol: union.symbol, length: a.length + b.length, next: b.next, ..a };
        if b.next != NONE {
            links[b.next as usize].previous = left;
        }
    }

    /// Appends a symbol, or what an unused one was last seen to consist of.
    fn take_apart(&self, symbol: u32, length: u32, parts: &Parts, cuts: &mut Vec<Cut>) {
        let of = (symbol != NONE && self.unused[symbol as usize]).then(|| parts.get(&symbol)).flatten();
        let Some(&(left, left_length, right)) = of else {
            cuts.push(Cut { id: self.id(symbol), length });
            return;
        };
        self.take_apart(left, left_length, parts, cuts);
        self.take_apart(right, length - left_length, parts, cuts);
    }

    #[inline]
    fn id(&self, symbol: u32) -> u32 {
        if symbol == NONE { self.unknown } else { self.ids[symbol as usize] }
    }
}

/// The place of each piece's score among all scores, the best first; equal scores share a place.
fn ranks(pieces: &Pieces) -> Vec<u32> {
    let score = |id: u32| pieces.get(id).map_or(0.0, |piece| piece.score);
    let mut order: Vec<u32> = (0..pieces.len() as u32).collect();
    order.sort_by(|&a, &b| score(b).total_cmp(&score(a)));
    let mut ranks = vec![0; order.len()];
    for pair in order.windows(2) {
        let step = u32::from(score(pair[0]) != score(pair[1]));
        ranks[pair[1] as usize] = ranks[pair[0] as usize] + step;
    }
    ranks
}
