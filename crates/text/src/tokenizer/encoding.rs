//! What an encoder such as BERT reads: tokens with all that tells where each comes from.
//!
//! ```text
//! one text      [CLS] a a a [SEP]
//! two texts     [CLS] a a a [SEP] b b [SEP]      types 0 0 0 0 0 1 1 1
//! ```
//!
//! The template, which says what stands around the texts and which type each token has, is the tokenizer's own.

use super::error::Error;
use std::ops::Range;

/// What is to be encoded.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// One text.
    Text(&'a str),
    /// Two texts: a premise and a hypothesis, a question and a passage.
    Pair(&'a str, &'a str),
    /// A text that is split into words already, as for tagging. Each word is encoded for itself.
    Words(&'a [&'a str]),
}

/// The tokens of an [`Input`]. The vectors have an element for each token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Encoding {
    /// The ids.
    pub ids: Vec<u32>,
    /// The token types: which segment embedding each token gets.
    pub types: Vec<u32>,
    /// Where each token comes from; none for the special tokens of the template. A `[MASK]` in a text comes from the text.
    pub sources: Vec<Option<Source>>,
    /// How many tokens of the first and of the second text were cut off.
    pub cut: [usize; 2],
}

/// Where a token comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// The text: 0 for the first, 1 for the second.
    pub text: usize,
    /// The word: its number in the list of [`Input::Words`], else the number of the word or punctuation mark in its text.
    pub word: usize,
    /// The first byte of the text, or of the word in [`Input::Words`].
    pub begin: usize,
    /// The byte behind the last.
    pub end: usize,
}

impl Encoding {
    /// How many tokens there are.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether there are none, which a template makes impossible.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Whether each token is one of the template.
    pub fn special_tokens_mask(&self) -> Vec<bool> {
        self.sources.iter().map(Option::is_none).collect()
    }

    /// The place of the first token of each of `words` words of the first text; none for a word that has no token, because it was
    /// cut off or has no character that the tokenizer keeps.
    pub fn first_of_words(&self, words: usize) -> Vec<Option<usize>> {
        let mut first = vec![None; words];
        for (place, source) in self.sources.iter().enumerate() {
            let Some(source) = source.filter(|source| source.text == 0) else { continue };
            if let Some(first) = first.get_mut(source.word) {
                first.get_or_insert(place);
            }
        }
        first
    }

    /// The places of the tokens in which these bytes of a text begin and end; none if the tokens do not have all of them.
    pub fn span(&self, text: usize, bytes: Range<usize>) -> Option<[usize; 2]> {
        let own = |(place, source): (usize, &Option<Source>)| {
            source.filter(|source| source.text == text).map(|source| (place, source))
        };
        let mut tokens = self.sources.iter().enumerate().filter_map(own);
        let (last, _) = tokens.clone().find(|(_, source)| source.end >= bytes.end)?;
        let (first, _) = tokens.rfind(|(_, source)| source.begin <= bytes.start)?;
        (first <= last).then_some([first, last])
    }

    /// The same tokens as several encodings of at most `limit` tokens: each has the template, the whole first text, and a window of
    /// the second text. A window shares its first `overlap` tokens with the one before it. None if the limit has no room for a token
    /// of the second text.
    pub fn windows(&self, limit: usize, overlap: usize) -> Option<Vec<Encoding>> {
        let is_second = |source: &Option<Source>| source.is_some_and(|source| source.text == 1);
        let length = self.sources.iter().filter(|source| is_second(source)).count();
        let room = limit.checked_sub(self.len() - length).filter(|room| *room > 0)?;
        let step = room - overlap.min(room - 1);
        let count = 1 + length.saturating_sub(room).div_ceil(step);
        let window = |number: usize| {
            let (mut seen, mut window) = (0, Encoding::default());
            for ((&id, &type_id), source) in self.ids.iter().zip(&self.types).zip(&self.sources) {
                let place = seen;
                seen += usize::from(is_second(source));
                if !is_second(source) || (number * step..number * step + room).contains(&place) {
                    window.push(id, type_id, *source);
                }
            }
            window
        };
        Some((0..count).map(window).collect())
    }

    pub(super) fn push(&mut self, id: u32, type_id: u32, source: Option<Source>) {
        self.ids.push(id);
        self.types.push(type_id);
        self.sources.push(source);
    }

    /// Cuts tokens of the texts off until there are at most `limit`: of two texts the longer one first. The template stays.
    /// `from_left` cuts at the beginning of each text instead of at its end.
    pub(super) fn cut_to(self, limit: usize, from_left: bool) -> Result<Encoding, Error> {
        if self.len() <= limit {
            return Ok(self);
        }
        let count = |text| self.sources.iter().flatten().filter(|source| source.text == text).count();
        let lengths = [count(0), count(1)];
        let template = self.len() - lengths[0] - lengths[1];
        if limit <= template {
            return Err(Error::Limit { limit, template });
        }
        let keep = longest_first(lengths, limit - template);
        let mut seen = [0; 2];
        let mut kept = Encoding { cut: [lengths[0] - keep[0], lengths[1] - keep[1]], ..Encoding::default() };
        for ((id, type_id), source) in self.ids.into_iter().zip(self.types).zip(self.sources) {
            let stays = source.is_none_or(|Source { text, .. }| {
                let place = seen[text];
                seen[text] += 1;
                if from_left { place >= kept.cut[text] } else { place < keep[text] }
            });
            if stays {
                kept.push(id, type_id, source);
            }
        }
        Ok(kept)
    }
}

/// How many tokens of two texts stay if `room` may: the shorter text is cut only if both are longer than half of the room. Of an odd
/// room the longer text has one token more; of two texts of the same length it is the second. This is the rule
/// `longest_first` of transformers.
fn longest_first(lengths: [usize; 2], room: usize) -> [usize; 2] {
    let [first, second] = lengths;
    let (short, long) = (first.min(second), first.max(second));
    if short + long <= room {
        return lengths;
    }
    let half = room / 2;
    let (short, long) = if short <= half { (short, room - short) } else { (half, room - half) };
    if first > second { [long, short] } else { [short, long] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longer_text_is_cut_first() {
        assert_eq!(longest_first([3, 4], 7), [3, 4]);
        assert_eq!(longest_first([3, 40], 10), [3, 7]);
        assert_eq!(longest_first([40, 3], 10), [7, 3]);
        assert_eq!(longest_first([40, 30], 11), [6, 5]);
        assert_eq!(longest_first([30, 40], 11), [5, 6]);
        assert_eq!(longest_first([40, 40], 11), [5, 6]);
        assert_eq!(longest_first([9, 0], 4), [4, 0]);
        for first in 0..12 {
            for second in 0..12 {
                for room in 1..20 {
                    let [a, b] = longest_first([first, second], room);
                    assert_eq!(a + b, room.min(first + second));
                    assert!(a <= first && b <= second);
                }
            }
        }
    }

    fn encoding(texts: &[usize]) -> Encoding {
        let mut encoding = Encoding::default();
        encoding.push(100, 0, None);
        for (text, &count) in texts.iter().enumerate() {
            for word in 0..count {
                let source = Source { text, word, begin: word, end: word + 1 };
                encoding.push((10 * text + word) as u32, text as u32, Some(source));
            }
            encoding.push(101, text as u32, None);
        }
        encoding
    }

    #[test]
    fn the_template_stays_and_what_was_cut_is_counted() {
        let cut = encoding(&[5, 2]).cut_to(7, false).unwrap();
        assert_eq!((&cut.ids[..], cut.cut), (&[100, 0, 1, 101, 10, 11, 101][..], [3, 0]));
        assert_eq!(cut.types, [0, 0, 0, 0, 1, 1, 1]);
        assert_eq!(cut.special_tokens_mask(), [true, false, false, true, false, false, true]);
        let cut = encoding(&[5]).cut_to(4, true).unwrap();
        assert_eq!((&cut.ids[..], cut.cut), (&[100, 3, 4, 101][..], [3, 0]));
        assert_eq!(encoding(&[5]).cut_to(7, false).unwrap(), encoding(&[5]));
        let error = encoding(&[5]).cut_to(2, false).unwrap_err().to_string();
        assert!(error.contains("2 tokens"), "{error}");
    }

    #[test]
    fn windows_overlap_and_cover_the_second_text() {
        let whole = encoding(&[2, 7]);
        let windows = whole.windows(9, 1).unwrap();
        let second = |window: &Encoding| {
            let own = window.sources.iter().flatten().filter(|source| source.text == 1);
            own.map(|source| source.word).collect::<Vec<_>>()
        };
        assert_eq!(windows.iter().map(second).collect::<Vec<_>>(), [[0, 1, 2, 3], [3, 4, 5, 6]]);
        assert_eq!(windows[1].ids, [100, 0, 1, 101, 13, 14, 15, 16, 101]);
        assert_eq!(windows[1].types, [0, 0, 0, 0, 1, 1, 1, 1, 1]);
        assert_eq!(whole.windows(12, 3), Some(vec![whole.clone()]));
        assert_eq!(whole.windows(5, 0), None);
        // An overlap that leaves no room to go on is made smaller.
        assert_eq!(whole.windows(6, 9).unwrap().len(), 7);
        for (limit, overlap) in [(7, 0), (8, 1), (9, 3), (10, 2)] {
            let windows = whole.windows(limit, overlap).unwrap();
            assert!(windows.iter().all(|window| window.len() <= limit));
            let mut words: Vec<usize> = windows.iter().flat_map(second).collect();
            words.dedup();
            words.sort();
            words.dedup();
            assert_eq!(words, [0, 1, 2, 3, 4, 5, 6]);
        }
    }

    #[test]
    fn bytes_have_the_tokens_that_they_begin_and_end_in() {
        let mut encoding = Encoding::default();
        encoding.push(100, 0, None);
        for (text, begin, end) in [(0, 0, 4), (1, 0, 3), (1, 3, 8), (1, 9, 12)] {
            encoding.push(0, 0, Some(Source { text, word: 0, begin, end }));
        }
        assert_eq!(encoding.span(1, 0..3), Some([2, 2]));
        assert_eq!(encoding.span(1, 4..10), Some([3, 4]));
        assert_eq!(encoding.span(1, 4..13), None);
        let window = Encoding { sources: encoding.sources[3..].to_vec(), ..Encoding::default() };
        assert_eq!([window.span(1, 0..4), window.span(1, 9..12)], [None, Some([1, 1])]);
    }

    #[test]
    fn the_first_token_of_a_word_is_found_and_a_word_without_one_is_told() {
        let mut encoding = encoding(&[3]);
        encoding.sources[2].as_mut().unwrap().word = 0;
        assert_eq!(encoding.first_of_words(4), [Some(1), None, Some(3), None]);
    }
}
