//! HTML whose sentences are translated whole, with their tags put back.
//!
//! [`Document::parse`] cuts a document into blocks: the text between two tags that end a sentence (`<p>`, `<li>`, `<td>`, …;
//! also `<br>`, unless the text behind it begins with a small letter and so goes on with the sentence). Everything between
//! blocks stays byte for byte. A block is a text, with the characters that entities stand for, and a tree of the inline
//! markup in it: elements (`<b>…</b>`) are around some of the text, points (`<img>`, `<code>…</code>`, comments) stand
//! somewhere in it. What is no prose (`code`, `pre`, `script`, …, `translate="no"`) stays as it is, and a translator never
//! sees it.
//!
//! [`Document::render`] writes the document with a translation of each block. Links say where inline markup goes
//! between words:
//!
//! 1. Both texts are cut into pieces: words, the punctuation at their edges, and the space between them (`aligned`). The
//!    source is also cut where markup stands. Pieces of linked words are linked.
//! 2. Each element gets the run of pieces that come from its text most plainly, inside the run of its parent and beside those
//!    of its siblings; each point stands beside what comes from the text next to it (`place`). So tags are balanced and
//!    nested as they were, whatever the links are. An element of whose text nothing is left stays, empty.
//! 3. Text is written with `&`, `<`, `>` and no-break spaces escaped; markup as it was.
//!
//! Punctuation is inside an element if it was, and so is white space. White space at the edges of a block is the source's,
//! and so is white space between two words whose neighbours in the source they come from.
//!
//! Where words tell nothing, because a language writes no spaces or there are no links, markup stands in proportion to the
//! length of the text before it (`proportional`).
//!
//! ```
//! use attentive_text::html::Document;
//!
//! let document = Document::parse("<p>A <b>dog</b> runs.");
//! assert_eq!(document.blocks()[0].line(), "A dog runs.");
//! let links = [(2, 0), (0, 1), (1, 2)];
//! assert_eq!(document.render([("Rennt ein Hund.", &links[..])]), "<p>Rennt ein <b>Hund</b>.");
//! ```

mod aligned;
mod block;
mod elements;
mod items;
mod pieces;
mod place;
mod proportional;
#[cfg(test)]
mod random;
mod render;
#[cfg(test)]
mod tests;
mod tokens;

pub use block::Block;
pub use pieces::Link;

use items::ItemKind;

/// A document, cut into what is translated and what stays.
#[derive(Debug, Clone)]
pub struct Document<'a> {
    html: &'a str,
    blocks: Vec<Block<'a>>,
}

impl<'a> Document<'a> {
    /// Cuts a document, or a part of one. Nothing is refused: what is no HTML is text.
    pub fn parse(html: &'a str) -> Document<'a> {
        let items = items::items(tokens::tokens(html));
        let runs = items.split(|item| item.kind == ItemKind::Break);
        Document { html, blocks: runs.filter_map(|run| Block::new(html, run)).collect() }
    }

    /// What is translated, in order.
    pub fn blocks(&self) -> &[Block<'a>] {
        &self.blocks
    }

    /// The document with translations of its blocks, in order, each with the links between the words of [`Block::line`] and
    /// its own. Blocks behind the last translation stay as they are.
    pub fn render<'t>(&self, translations: impl IntoIterator<Item = (&'t str, &'t [Link])>) -> String {
        let mut html = String::with_capacity(2 * self.html.len());
        let mut end = 0;
        for (block, (translation, links)) in self.blocks.iter().zip(translations) {
            html.push_str(&self.html[end..block.span.start]);
            render::render(&mut html, block, translation, links);
            end = block.span.end;
        }
        html.push_str(&self.html[end..]);
        html
    }
}
