//! A block with its translation as HTML.

use super::block::{Block, Node, NodeKind};
use super::pieces::{Link, Pieces};
use super::{aligned, place, proportional};
use std::ops::Range;

/// Writes a block with a translation of its text in it.
pub(super) fn render(html: &mut String, block: &Block, translation: &str, links: &[Link]) {
    let mut cuts: Vec<usize> =
        block.nodes.iter().flat_map(|node| [node.range.start, node.range.end]).collect();
    cuts.sort_unstable();
    cuts.dedup();
    let words_tell_nothing = links.is_empty()
        || translation.trim().is_empty()
        || proportional::has_no_spaces(&block.text)
        || proportional::has_no_spaces(translation);
    let pieces = if words_tell_nothing {
        proportional::pieces(&block.text, translation, cuts)
    } else {
        aligned::pieces(&block.text, translation, links, cuts)
    };
    let places = place::place(&block.nodes, &pieces);
    Writer { html, block, pieces: &pieces, places: &places, written: 0 }.write();
}

struct Writer<'a> {
    html: &'a mut String,
    block: &'a Block<'a>,
    pieces: &'a Pieces,
    places: &'a [Range<usize>],
    /// How many bytes of the translation have been written.
    written: usize,
}

impl Writer<'_> {
    fn write(mut self) {
        let mut children = self.children();
        // Elements that are open, with those of their children that are still to be written, the last one first.
        let mut open = vec![(0, std::mem::take(&mut children[0]))];
        while let Some((element, rest)) = open.last_mut() {
            let element = *element;
            let Some(node) = rest.pop() else {
                self.text(self.places[element].end);
                if let NodeKind::Element { close, .. } = self.block.nodes[element].kind {
                    self.html.push_str(close);
                }
                open.pop();
                continue;
            };
            self.text(self.places[node].start);
            match &self.block.nodes[node].kind {
                NodeKind::Element { open: tag, .. } => {
                    self.html.push_str(tag);
                    open.push((node, std::mem::take(&mut children[node])));
                }
                NodeKind::Point { before, markup, after, parts_words } => {
                    self.point(&self.block.nodes[node], [before, markup, after]);
                    let is_space = self.pieces.text[self.written..].starts_with(' ');
                    self.written += usize::from(*parts_words && is_space);
                }
            }
        }
    }

    /// The children of each node, the last one first. Of those at the same place points come before elements with text, and
    /// what was first in the source comes first.
    fn children(&self) -> Vec<Vec<usize>> {
        let mut children = vec![Vec::new(); self.places.len()];
        for (place, node) in self.block.nodes.iter().enumerate().skip(1) {
            children[node.parent].push(place);
        }
        for list in &mut children {
            list.sort_by_key(|node| (self.places[*node].start, self.places[*node].end, *node));
            list.reverse();
        }
        children
    }

    fn text(&mut self, until: usize) {
        if self.written < until {
            escape(self.html, &self.pieces.text[self.written..until]);
            self.written = until;
        }
    }

    /// Writes a point with its white space; on the other side of it where there is white space, or nothing, on this side
    /// though there was a word in the source.
    fn point(&mut self, node: &Node, [before, markup, after]: [&str; 3]) {
        let ends_word = |text: &str| text.chars().next_back().is_some_and(|last| !last.is_whitespace());
        let begins_word = |text: &str| text.chars().next().is_some_and(|first| !first.is_whitespace());
        let (text, source) = (&self.pieces.text, &self.block.text);
        let leaves_left = ends_word(&source[..node.range.start]) && !ends_word(&text[..self.written]);
        let leaves_right = begins_word(&source[node.range.end..]) && !begins_word(&text[self.written..]);
        let (before, after) = match () {
            _ if leaves_left && !before.is_empty() && begins_word(&text[self.written..]) => ("", before),
            _ if leaves_right && !after.is_empty() && ends_word(&text[..self.written]) => (after, ""),
            _ => (before, after),
        };
        escape(self.html, before);
        self.html.push_str(markup);
        escape(self.html, after);
    }
}

/// Writes text as HTML.
fn escape(html: &mut String, text: &str) {
    for character in text.chars() {
        match character {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '\u{a0}' => html.push_str("&nbsp;"),
            _ => html.push(character),
        }
    }
}
