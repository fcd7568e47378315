//! A trie in one array, in the layout of Darts-clone, which SentencePiece stores in its files.
//!
//! A node is a position in the array. Its children stand at `base XOR byte`, and a child is real if its unit
//! carries that byte as its label; `base` is the node's position XOR the offset in its unit. A key that ends
//! at a node has its value at `base XOR 0`. Bits of a unit: 0–7 label, 8 a key ends here, 9 the offset is
//! stored in steps of 256, 10–30 the offset, 31 this unit is a value.

/// A trie from byte strings to numbers below 2³¹.
#[derive(Clone, Debug)]
pub(crate) struct DoubleArray {
    units: Vec<u32>,
}

/// Where a walk through the trie stands.
#[derive(Clone, Copy)]
pub(crate) struct Node(usize);

const VALUE: u32 = 1 << 31;
const ENDS: u32 = 1 << 8;
const LABEL: u32 = VALUE | 0xFF;

fn offset(unit: u32) -> usize {
    ((unit >> 10) << ((unit & (1 << 9)) >> 6)) as usize
}

impl DoubleArray {
    /// The trie of the keys, which are sorted, distinct, not empty and without zero bytes.
    pub(crate) fn new(keys: &[(&[u8], u32)]) -> DoubleArray {
        Builder::build(keys)
    }

    /// The trie of an array in a file. Whatever the numbers are, walking through them is safe.
    pub(crate) fn from_bytes(bytes: &[u8]) -> DoubleArray {
        let unit = |chunk: &[u8]| u32::from_le_bytes(chunk.try_into().expect("four bytes"));
        DoubleArray { units: bytes.chunks_exact(4).map(unit).collect() }
    }

    /// The array as it stands in a file.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        self.units.iter().flat_map(|unit| unit.to_le_bytes()).collect()
    }

    /// For each position its label, where its children begin, and the value of the key that ends there; none
    /// where no node stands.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = Option<(u8, usize, Option<u32>)>> {
        self.units.iter().enumerate().map(|(at, &unit)| {
            let next = at ^ offset(unit);
            let value = (unit & ENDS != 0).then(|| self.units.get(next).map(|&unit| unit & !VALUE)).flatten();
            (unit & VALUE == 0).then_some((unit as u8, next, value))
        })
    }

    /// Where every walk begins.
    #[inline]
    pub(crate) fn root(&self) -> Node {
        Node(self.units.first().map_or(0, |&unit| offset(unit)))
    }

    /// One byte further, and the value of the key that ends there.
    #[inline]
    pub(crate) fn step(&self, node: Node, byte: u8) -> Option<(Node, Option<u32>)> {
        let at = node.0 ^ usize::from(byte);
        let &unit = self.units.get(at)?;
        if unit & LABEL != u32::from(byte) {
            return None;
        }
        let next = at ^ offset(unit);
        let value = if unit & ENDS == 0 { None } else { self.units.get(next).map(|&unit| unit & !VALUE) };
        Some((Node(next), value))
    }

    /// The longest key that `text` begins with: its length and its value.
    #[inline]
    pub(crate) fn longest(&self, text: &[u8]) -> Option<(usize, u32)> {
        let (mut node, mut found) = (self.root(), None);
        for (i, &byte) in text.iter().enumerate() {
            let Some((next, value)) = self.step(node, byte) else { break };
            if let Some(value) = value {
                found = Some((i + 1, value));
            }
            node = next;
        }
        found
    }

    /// The value of a key.
    pub(crate) fn get(&self, key: &[u8]) -> Option<u32> {
        let (mut node, mut found) = (self.root(), None);
        for &byte in key {
            (node, found) = self.step(node, byte)?;
        }
        found
    }
}

/// Free units are linked in a ring, so that a place for children is found without looking at taken ones.
struct Builder {
    units: Vec<u32>,
    free: Vec<Option<Link>>,
    /// Two nodes with the same base would see each other's children.
    used: Vec<bool>,
    first: Option<usize>,
}

#[derive(Clone, Copy)]
struct Link {
    next: usize,
    previous: usize,
}

const BLOCK: usize = 256;
/// Places are only looked for in the last blocks: older ones are nearly full, and looking there takes long.
const OPEN_BLOCKS: usize = 16;

/// Keys that share their first `depth` bytes, below the node at `at`.
struct Range {
    begin: usize,
    end: usize,
    depth: usize,
    at: usize,
}

impl Builder {
    fn build(keys: &[(&[u8], u32)]) -> DoubleArray {
        let mut builder = Builder { units: vec![], free: vec![], used: vec![], first: None };
        builder.grow();
        builder.take(0);
        builder.units[0] = 0;
        // Nobody's children are found from 0: an offset of 0 at the root is refused by the SentencePiece
        // library.
        builder.used[0] = true;
        let mut todo = vec![Range { begin: 0, end: keys.len(), depth: 0, at: 0 }];
        while let Some(range) = todo.pop() {
            builder.place(keys, &range, &mut todo);
        }
        DoubleArray { units: builder.units }
    }

    /// Gives the node of a range its children.
    fn place(&mut self, keys: &[(&[u8], u32)], range: &Range, todo: &mut Vec<Range>) {
        let label = |i: usize| keys[i].0.get(range.depth).copied().unwrap_or(0);
        let mut starts: Vec<usize> = vec![];
        for i in range.begin..range.end {
            if starts.last().is_none_or(|&last| label(last) != label(i)) {
                starts.push(i);
            }
        }
        let labels: Vec<u8> = starts.iter().map(|&i| label(i)).collect();
        let Some(&first) = labels.first() else { return };
        let base = self.find(range.at, first, &labels);
        self.used[base] = true;
        let distance = (range.at ^ base) as u32;
        self.units[range.at] |= if distance < 1 << 21 { distance << 10 } else { distance << 2 | 1 << 9 };
        for (i, &begin) in starts.iter().enumerate() {
            let at = base ^ usize::from(labels[i]);
            self.take(at);
            if labels[i] == 0 {
                self.units[range.at] |= ENDS;
                self.units[at] = VALUE | keys[begin].1;
            } else {
                self.units[at] = u32::from(labels[i]);
                let end = starts.get(i + 1).copied().unwrap_or(range.end);
                todo.push(Range { begin, end, depth: range.depth + 1, at });
            }
        }
    }

    /// A base that has room for all labels and that an offset from `at` can reach.
    fn find(&mut self, at: usize, first: u8, labels: &[u8]) -> usize {
        let mut unit = self.first;
        while let Some(candidate) = unit {
            let base = candidate ^ usize::from(first);
            let distance = at ^ base;
            let reachable = distance < 1 << 21 || distance & 0xFF == 0;
            let fits = |&label: &u8| self.free[base ^ usize::from(label)].is_some();
            if reachable && !self.used[base] && labels.iter().all(fits) {
                return base;
            }
            let next = self.free[candidate].expect("a free unit is linked").next;
            unit = Some(next).filter(|&next| Some(next) != self.first);
        }
        // In a new block every base is possible; this one is reachable from anywhere.
        let block = self.units.len();
        self.grow();
        block | (at & 0xFF)
    }

    /// Adds a block of free units and closes an old one.
    fn grow(&mut self) {
        let begin = self.units.len();
        // A unit that no parent uses is a value, and so no child.
        self.units.resize(begin + BLOCK, VALUE);
        self.used.resize(begin + BLOCK, false);
        for at in begin..begin + BLOCK {
            self.free.push(None);
            self.link(at);
        }
        if let Some(closed) = self.units.len().checked_sub((OPEN_BLOCKS + 1) * BLOCK) {
            for at in closed..closed + BLOCK {
                self.unlink(at);
            }
        }
    }

    fn take(&mut self, at: usize) {
        self.unlink(at);
    }

    fn link(&mut self, at: usize) {
        let Some(first) = self.first else {
            self.first = Some(at);
            self.free[at] = Some(Link { next: at, previous: at });
            return;
        };
        let last = self.free[first].expect("a free unit is linked").previous;
        self.free[at] = Some(Link { next: first, previous: last });
        self.set(last, |link| link.next = at);
        self.set(first, |link| link.previous = at);
    }

    fn unlink(&mut self, at: usize) {
        let Some(Link { next, previous }) = self.free[at].take() else { return };
        if next == at {
            self.first = None;
            return;
        }
        self.set(previous, |link| link.next = next);
        self.set(next, |link| link.previous = previous);
        if self.first == Some(at) {
            self.first = Some(next);
        }
    }

    fn set(&mut self, at: usize, change: impl FnOnce(&mut Link)) {
        change(self.free[at].as_mut().expect("a free unit is linked"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trie(keys: &[&str]) -> DoubleArray {
        let keys: Vec<(&[u8], u32)> = keys.iter().zip(0..).map(|(key, i)| (key.as_bytes(), i)).collect();
        DoubleArray::new(&keys)
    }

    #[test]
    fn finds_every_key_and_nothing_else() {
        let trie = trie(&["a", "ab", "abc", "b", "ä", "▁a"]);
        assert_eq!(trie.get(b"ab"), Some(1));
        assert_eq!(trie.get("▁a".as_bytes()), Some(5));
        for missing in ["", "abcd", "bc", "▁", "c", "\0", "a\0"] {
            assert_eq!(trie.get(missing.as_bytes()), None, "{missing:?}");
        }
    }

    #[test]
    fn the_longest_prefix_wins() {
        let trie = trie(&["a", "abc"]);
        assert_eq!(trie.longest(b"abcd"), Some((3, 1)));
        assert_eq!(trie.longest(b"abd"), Some((1, 0)));
        assert_eq!(trie.longest(b"xa"), None);
    }

    #[test]
    fn many_keys_survive_the_way_to_bytes_and_back() {
        let mut keys: Vec<String> =
            (0..40_000u32).map(|i| format!("{:x}", i.wrapping_mul(2_654_435_761))).collect();
        keys.sort();
        keys.dedup();
        let pairs: Vec<(&[u8], u32)> = keys.iter().zip(0..).map(|(key, i)| (key.as_bytes(), i)).collect();
        let trie = DoubleArray::from_bytes(&DoubleArray::new(&pairs).to_bytes());
        for (key, value) in pairs {
            assert_eq!(trie.get(key), Some(value));
        }
    }

    #[test]
    fn an_empty_trie_and_a_broken_array_answer_nothing() {
        assert_eq!(trie(&[]).longest(b"a"), None);
        let noise: Vec<u8> = (0..999u32).map(|i| (i * i / 7) as u8).collect();
        let broken = DoubleArray::from_bytes(&noise);
        for byte in 0..=255u8 {
            broken.longest(&[byte; 40]);
        }
        assert_eq!(DoubleArray::from_bytes(&[]).longest(b"a"), None);
    }
}
