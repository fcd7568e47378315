//! Where the markup of a block goes in the translation.
//!
//! Elements first, parents before their children and otherwise in the order of the source. An element gets the run of pieces
//! that come from its text most plainly: each piece that comes from inside counts for it, each that comes from outside
//! against it, and the run with the greatest sum wins. The run lies inside that of the parent and touches no piece that a
//! sibling has. So tags are always nested as they were, and a word that was aligned wrongly costs a word, not the sentence.
//!
//! Then come points, and elements of whose text nothing is left. They stand behind what comes from the text before them, or
//! before what comes from the text behind them.

use super::block::{Node, NodeKind};
use super::pieces::Pieces;
use std::cell::Cell;
use std::ops::Range;

/// For each node the bytes of the translation that it is around.
pub(super) fn place(nodes: &[Node], pieces: &Pieces) -> Vec<Range<usize>> {
    let placed = vec![None; nodes.len()];
    let sources = nodes.iter().map(|node| pieces.source.pieces(&node.range)).collect();
    let owners = vec![0; pieces.target.len()];
    let steps = STEPS * (nodes.len() + pieces.source.len() + pieces.target.len());
    let inner = vec![0..0; nodes.len()];
    let mut places = Places { nodes, pieces, sources, placed, inner, owners, steps: Cell::new(steps) };
    places.set(0, 0..pieces.target.len());
    for node in 1..nodes.len() {
        if matches!(nodes[node].kind, NodeKind::Element { .. }) {
            places.place_element(node);
        }
    }
    for node in 1..nodes.len() {
        if places.placed[node].is_none() {
            let at = places.place_point(node);
            places.set(node, at..at);
        }
    }
    let bytes = |range: Option<Range<usize>>| {
        let range = range.unwrap_or_default();
        pieces.target.byte(range.start)..pieces.target.byte(range.end)
    };
    places.placed.into_iter().map(bytes).collect()
}

struct Places<'a> {
    nodes: &'a [Node<'a>],
    pieces: &'a Pieces,
    /// The pieces of the source that each node is around.
    sources: Vec<Range<usize>>,
    /// The pieces of the translation that it is around; none as long as it has no place.
    placed: Vec<Option<Range<usize>>>,
    /// The part of that without children that go on to an edge of it; their missing tags must stay at the edge.
    inner: Vec<Range<usize>>,
    /// The innermost element around each piece of the translation.
    owners: Vec<usize>,
    /// How many pieces may still be looked at.
    steps: Cell<usize>,
}

/// How often each piece may be looked at: as often as hundreds of elements one inside the other need it. What is deeper was
/// written to take forever. It keeps its tags; they are around nothing.
const STEPS: usize = 300;

/// What a word counts, and what white space does: enough for an element that is around nothing else.
const WORD: i64 = 2;
const SPACE: i64 = 1;

impl Places<'_> {
    fn place_element(&mut self, node: usize) {
        let Some(around) = self.placed[self.nodes[node].parent].clone() else { return };
        let run = self.whole(node, around.clone()).unwrap_or_else(|| {
            let NodeKind::Element { open, close } = &self.nodes[node].kind else { return 0..0 };
            match (open.is_empty(), close.is_empty()) {
                (true, _) => self.at_the_start(node, around),
                (_, true) => self.at_the_end(node, around),
                _ => self.best(node, around),
            }
        });
        let NodeKind::Element { open, close } = self.nodes[node].kind else { return };
        let inner = &mut self.inner[self.nodes[node].parent];
        if open.is_empty() {
            inner.start = run.end;
        } else if close.is_empty() {
            inner.end = run.start;
        }
        if !run.is_empty() || open.is_empty() || close.is_empty() {
            self.set(node, run);
        }
    }

    fn set(&mut self, node: usize, run: Range<usize>) {
        self.owners[run.clone()].fill(node);
        self.inner[node] = run.clone();
        self.placed[node] = Some(run);
    }

    /// All of the parent, for an element that is around all words of the parent.
    fn whole(&self, node: usize, around: Range<usize>) -> Option<Range<usize>> {
        let (own, parent) = (&self.sources[node], &self.sources[self.nodes[node].parent]);
        let source = &self.pieces.source;
        let has_all = !source.has_words(parent.start..own.start) && !source.has_words(own.end..parent.end);
        if !has_all || !source.has_words(own.clone()) {
            return None;
        }
        let is_other = |piece: usize| self.pieces.target.is_space(piece) && self.score(node, piece) < 0;
        let mut run = around;
        while !run.is_empty() && is_other(run.start) {
            run.start += 1;
        }
        while !run.is_empty() && is_other(run.end - 1) {
            run.end -= 1;
        }
        (self.may_look(run.len()) && run.clone().all(|piece| self.is_free(node, piece))).then_some(run)
    }

    /// The run at the end of the parent that comes from an element most plainly.
    fn at_the_end(&self, node: usize, around: Range<usize>) -> Range<usize> {
        let (mut sum, mut best) = (0, (0, around.end));
        let may_take = |piece: &usize| self.may_look(1) && self.is_free(node, *piece);
        for piece in around.clone().rev().take_while(may_take) {
            sum += self.score(node, piece);
            if sum > best.0 {
                best = (sum, piece);
            }
        }
        best.1..around.end
    }

    /// The same at its start.
    fn at_the_start(&self, node: usize, around: Range<usize>) -> Range<usize> {
        let (mut sum, mut best) = (0, (0, around.start));
        let may_take = |piece: &usize| self.may_look(1) && self.is_free(node, *piece);
        for piece in around.clone().take_while(may_take) {
            sum += self.score(node, piece);
            if sum > best.0 {
                best = (sum, piece + 1);
            }
        }
        around.start..best.1
    }

    /// The run that comes from an element most plainly; of equals the one with more pieces that do, and then the first.
    fn best(&self, node: usize, around: Range<usize>) -> Range<usize> {
        if !self.may_look(self.sources[node].len()) {
            return 0..0;
        }
        let own = || self.pieces.to[self.sources[node].clone()].iter().flatten().copied();
        let own = || own().filter(|piece| around.contains(piece));
        let (Some(first), Some(last)) = (own().min(), own().max()) else { return 0..0 };
        let (mut best, mut best_run) = ((0, 0), 0..0);
        let (mut sum, mut count, mut start) = (0, 0, first);
        for piece in (first..=last).take_while(|_| self.may_look(1)) {
            let score = self.score(node, piece);
            if !self.is_free(node, piece) || sum + score < 0 {
                (sum, count, start) = (0, 0, piece + 1);
                continue;
            }
            if count == 0 && score <= 0 {
                start = piece + 1;
                continue;
            }
            sum += score;
            count += usize::from(score > 0);
            if (sum, count) > best {
                (best, best_run) = ((sum, count), start..piece + 1);
            }
        }
        best_run
    }

    /// How much a piece of the translation speaks for being inside an element.
    fn score(&self, node: usize, piece: usize) -> i64 {
        let weight = if self.pieces.target.is_space(piece) { SPACE } else { WORD };
        let (all, own) = self.pieces.shares(piece, &self.sources[node]);
        match () {
            _ if all == 0 => 0,
            // A piece that comes from both as much belongs to the element that takes it first.
            _ if 2 * own >= all => weight,
            _ => -weight,
        }
    }

    /// Whether so many more pieces may be looked at.
    fn may_look(&self, pieces: usize) -> bool {
        let left = self.steps.get().checked_sub(pieces);
        self.steps.set(left.unwrap_or(0));
        left.is_some()
    }

    fn is_free(&self, node: usize, piece: usize) -> bool {
        self.owners[piece] == self.nodes[node].parent
    }

    /// The piece before which a point, or an element without text, stands.
    fn place_point(&self, node: usize) -> usize {
        let parent = self.nodes[node].parent;
        let around = self.inner[parent].clone();
        if around.is_empty() {
            return around.start;
        }
        let (own, all) = (&self.sources[node], &self.sources[parent]);
        let (source, target) = (&self.pieces.source, &self.pieces.target);
        if !source.has_words(all.start..own.start) {
            let precedes = |piece: usize| self.pieces.from[piece].iter().any(|from| *from < own.start);
            let spaces = around.clone().take_while(|piece| target.is_space(*piece) && precedes(*piece));
            return self.outside(parent, around.start + spaces.count(), false);
        }
        if !source.has_words(own.end..all.end) {
            let follows = |piece: usize| self.pieces.from[piece].iter().any(|from| *from >= own.end);
            let spaces = around.clone().rev().take_while(|piece| target.is_space(*piece) && follows(*piece));
            return self.outside(parent, around.end - spaces.count(), true);
        }
        let (at, is_behind) = self.beside(own, all, &around);
        let at = self.outside(parent, at, is_behind);
        self.past_space(node, at, is_behind, &around)
    }

    /// The place in the translation beside the nearest text before or behind some of the source, and whether it is behind
    /// that text.
    fn beside(&self, own: &Range<usize>, all: &Range<usize>, around: &Range<usize>) -> (usize, bool) {
        let targets =
            |source: usize| self.pieces.to[source].iter().copied().filter(|piece| around.contains(piece));
        let left = |source: usize| targets(source).max().map(|piece| (piece + 1, true));
        let right = |source: usize| targets(source).min().map(|piece| (piece, false));
        let is_word = |source: usize| !self.pieces.source.is_space(source);
        let (mut before, mut behind) = (own.start, own.end);
        // Markup that touches the word behind it and not the one before it belongs to the word behind it.
        if before > all.start && behind < all.end && !is_word(before - 1) && is_word(behind) {
            if let Some(found) = right(behind) {
                return found;
            }
            behind += 1;
        }
        while (before > all.start || behind < all.end) && self.may_look(2) {
            if before > all.start {
                before -= 1;
                if let Some(found) = left(before) {
                    return found;
                }
            }
            if behind < all.end {
                if let Some(found) = right(behind) {
                    return found;
                }
                behind += 1;
            }
        }
        (around.end, true)
    }

    /// The nearest place that is inside no child of an element, in one direction.
    fn outside(&self, parent: usize, at: usize, forward: bool) -> usize {
        if at == 0 || at == self.owners.len() {
            return at;
        }
        // The child of the parent around the piece before the place.
        let mut node = self.owners[at - 1];
        while node != 0 && self.nodes[node].parent != parent {
            if !self.may_look(1) {
                return self.inner[parent].end;
            }
            node = self.nodes[node].parent;
        }
        match &self.placed[node] {
            Some(run) if node != 0 && run.start < at && at < run.end => {
                if forward {
                    run.end
                } else {
                    run.start
                }
            }
            _ => at,
        }
    }

    /// Markup that has white space before it stands before white space; with white space behind it, behind.
    fn past_space(&self, node: usize, at: usize, is_behind: bool, around: &Range<usize>) -> usize {
        let NodeKind::Point { before, after, .. } = &self.nodes[node].kind else { return at };
        let is_free = |piece: usize| self.pieces.target.is_space(piece) && self.is_free(node, piece);
        if !before.is_empty() && !is_behind && at > around.start && is_free(at - 1) {
            return at - 1;
        }
        if !after.is_empty() && is_behind && at < around.end && is_free(at) {
            return at + 1;
        }
        at
    }
}
