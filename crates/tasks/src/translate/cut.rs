//! A text in parts that a model reads at once, and the gaps between them: white space, and marks such as the bullet of a list.

use super::unknown::{self, UnknownWord};
use attentive_text::sentences;

/// A text in parts. [`Codec::cut`](super::Codec::cut) makes it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cut {
    /// The parts, in order; none in a text of white space.
    pub parts: Vec<Part>,
    /// What stands before each part, and behind the last.
    gaps: Vec<String>,
    /// The places of parts that go on with the word before them.
    unspaced: Vec<usize>,
    words: Words,
}

/// What a model reads at once: a line or a sentence.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Part {
    /// The tokens, with the end token.
    pub source: Vec<u32>,
    /// How many words of the text stand before its first one. Language tokens are no words.
    pub words_before: usize,
    /// The words with characters that the vocabulary has no piece for: mostly none.
    pub unknown: Vec<UnknownWord>,
}

impl Part {
    /// Whether an alignment would let unknown words be copied.
    pub fn wants_alignment(&self) -> bool {
        unknown::can_copy(&self.unknown)
    }
}

impl Cut {
    /// A text of white space.
    pub(super) fn new() -> Cut {
        Cut { gaps: vec![String::new()], ..Cut::default() }
    }

    /// Adds what is not translated.
    pub(super) fn push_gap(&mut self, space: &str) {
        self.gaps.last_mut().expect("there is one gap more than parts").push_str(space);
        self.words.push(space);
    }

    /// Lets the next part follow the last one without a space: both are of one word.
    pub(super) fn join_next_without_space(&mut self) {
        self.unspaced.push(self.parts.len());
    }

    /// Adds a part of this text, and counts the words before it.
    pub(super) fn push_part(&mut self, text: &str, part: Part) {
        self.parts.push(Part { words_before: self.words.before(text), ..part });
        self.gaps.push(String::new());
        self.words.push(text);
    }

    /// The tokens that the model reads.
    pub fn source_tokens(&self) -> usize {
        self.parts.iter().map(|part| part.source.len()).sum()
    }

    /// What stands between `text`, the translation so far, and `next`, the translation of the part at `place`: the gap
    /// of the source, or a space where `next` needs one and the language of the source does not. Pieces of a word have none.
    pub fn gap(&self, place: usize, text: &str, next: &str) -> &str {
        let gap = &*self.gaps[place];
        let is_apart = !self.unspaced.contains(&place);
        if gap.is_empty() && is_apart && sentences::need_space(text, next) { " " } else { gap }
    }

    /// What stands behind the last part.
    pub fn end(&self) -> &str {
        self.gaps.last().map_or("", String::as_str)
    }
}

/// The number of words of a text that comes piece by piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Words {
    count: usize,
    /// Whether the last word may go on.
    is_open: bool,
}

impl Words {
    /// How many words there are before the first word of `text`, which comes next.
    pub fn before(&self, text: &str) -> usize {
        let goes_on = self.is_open && !text.starts_with(char::is_whitespace);
        self.count - usize::from(goes_on)
    }

    /// Adds a piece.
    pub fn push(&mut self, text: &str) {
        if let Some(last) = text.chars().next_back() {
            self.count = self.before(text) + text.split_whitespace().count();
            self.is_open = !last.is_whitespace();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_counted_over_pieces() {
        let mut words = Words::default();
        for (piece, before) in
            [(" ", 0), ("a dog", 0), (" ", 2), ("runs.", 2), ("好。", 2), ("吧", 2), ("\n", 3), ("b", 3)]
        {
            assert_eq!(words.before(piece), before, "{piece:?}");
            words.push(piece);
        }
        assert_eq!(words.count, 4);
    }

    #[test]
    fn sentences_without_space_between_them_get_one_where_the_translation_needs_it() {
        let mut cut = Cut::new();
        cut.push_part("好。", Part::default());
        cut.push_part("是。", Part::default());
        cut.push_gap("\t");
        cut.push_part("吧。", Part::default());
        assert_eq!(cut.gap(0, "", "Good."), "");
        assert_eq!(cut.gap(1, "Good.", "Yes."), " ");
        assert_eq!(cut.gap(1, "良い。", "はい。"), "");
        assert_eq!(cut.gap(2, "Good. Yes.", "Well."), "\t");
        assert_eq!(cut.parts.iter().map(|part| part.words_before).collect::<Vec<_>>(), [0, 0, 1]);
        cut.join_next_without_space();
        cut.push_part("x", Part::default());
        assert_eq!(cut.gap(3, "Good. Yes.\tWel", "l."), "");
    }
}
