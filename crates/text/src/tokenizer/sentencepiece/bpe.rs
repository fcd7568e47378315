//! Byte pair encoding as SentencePiece does it: characters are merged, again and again the two neighbours
//! whose union is the piece with the best score, of equals the leftmost, until no union is a piece.
//!
//! A symbol is a piece, or a character that is no piece but part of one. All unions are known when the model
//! is loaded, so that merging looks up pairs of numbers and compares no text. Where no piece reaches over the
//! beginning of a word, words are merged one by one: for a few neighbours, looking at all of them is faster
//! than a queue.
//!
//! Merges may be skipped at random, so that a word is cut now in one way and now in another: BPE-dropout
//! (Provilkov, Emelianenko and Voita, 2020), with SentencePiece's reading of it, by which a skipped pair has its
//! next chance when one of the two is merged with another neighbour.

use super::double_array::DoubleArray;
use super::proto::PieceType;
use super::{Cut, Pieces, Skip, character_length, words};
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
    /// Whether words, each from its `▁` on, can be merged one by one.
    by_word: bool,
    /// Whether merging the characters of a piece gives that piece: most words need nothing more.
    whole: Vec<bool>,
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

/// A word of no more bytes is merged without a queue.
const SHORT: usize = 48;

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
        let by_word = !has_unused && frozen.is_none() && pieces.stay_in_words();
        let (unknown, whole) = (pieces.unknown, vec![]);
        let mut bpe = Bpe { trie, frozen, unions, ids, unused, has_unused, by_word, whole, unknown };
        bpe.whole = bpe.whole_pieces(pieces);
        bpe
    }

    /// Appends the pieces of a normalised text to `cuts`, without the merges that `skip` wants skipped.
    pub(crate) fn cut(&self, text: &[u8], skip: Skip<'_>, cuts: &mut Vec<Cut>) {
        if let Some(skip) = skip {
            return self.cut_all(text, skip, cuts);
        }
        if !self.by_word {
            return self.cut_all(text, || false, cuts);
        }
        for word in words(text) {
            match self.trie.get(word) {
                Some(piece) if self.whole[piece as usize] => {
                    cuts.push(Cut { id: self.id(piece), length: word.len() as u32 });
                }
                _ if word.len() <= SHORT => self.cut_word(word, cuts),
                _ => self.cut_all(word, || false, cuts),
            }
        }
    }

    fn whole_pieces(&self, pieces: &Pieces) -> Vec<bool> {
        let mut whole = vec![false; self.ids.len()];
        let mut cuts = Vec::new();
        for (piece, whole) in pieces.iter().zip(&mut whole).filter(|(piece, _)| piece.is_text()) {
            cuts.clear();
            self.cut_all(piece.text.as_bytes(), || false, &mut cuts);
            *whole = cuts.len() == 1;
        }
        whole
    }

    /// Merges the characters of a short word, looking at all pairs each time.
    fn cut_word(&self, word: &[u8], cuts: &mut Vec<Cut>) {
        const NO_UNION: Union = Union { symbol: NONE, rank: NONE };
        let union = |left, right| self.unions.get(&(left, right)).copied().unwrap_or(NO_UNION);
        let (mut symbols, mut lengths) = ([NONE; SHORT], [0; SHORT]);
        // The union of each symbol with the next.
        let mut unions = [NO_UNION; SHORT];
        let (mut count, mut begin) = (0, 0);
        while begin < word.len() {
            let length = character_length(&word[begin..]);
            symbols[count] = self.trie.get(&word[begin..begin + length]).unwrap_or(NONE);
            lengths[count] = length as u32;
            if count > 0 {
                unions[count - 1] = union(symbols[count - 1], symbols[count]);
            }
            count += 1;
            begin += length;
        }
        loop {
            let (mut best, mut rank) = (0, NONE);
            for (at, union) in unions[..count - 1].iter().enumerate() {
                if union.rank < rank {
                    (best, rank) = (at, union.rank);
                }
            }
            if rank == NONE {
                break;
            }
            symbols[best] = unions[best].symbol;
            lengths[best] += lengths[best + 1];
            symbols.copy_within(best + 2..count, best + 1);
            lengths.copy_within(best + 2..count, best + 1);
            unions.copy_within(best + 1..count, best);
            count -= 1;
            unions[count - 1] = NO_UNION;
            if best > 0 {
                unions[best - 1] = union(symbols[best - 1], symbols[best]);
            }
            if best + 1 < count {
                unions[best] = union(symbols[best], symbols[best + 1]);
            }
        }
        cuts.extend((0..count).map(|at| Cut { id: self.id(symbols[at]), length: lengths[at] }));
    }

    /// Merges a text of any length, the best pair being the first of a queue.
    fn cut_all(&self, text: &[u8], mut skip: impl FnMut() -> bool, cuts: &mut Vec<Cut>) {
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
            if skip() {
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
