//! Which word a token belongs to. Words are what spaces set apart in the text.

use super::sentencepiece::SPACE;
use super::{Kind, Side, Tokenizer};

/// How pieces tell where a word begins.
#[derive(Clone, Copy)]
enum Marks {
    /// A piece with this in front begins one.
    Begins(&'static str),
    /// A piece with this in front goes on with one.
    Continues(&'static str),
}

impl Tokenizer {
    /// The word of each token, counted from 0; none for tokens that add no text: special and language tokens, and of a
    /// translation what is unknown. A space that is a token of its own belongs to the word behind it.
    pub fn words(&self, ids: &[u32], side: Side) -> Vec<Option<usize>> {
        let marks = self.marks();
        let (mut count, mut is_begun) = (0, false);
        let word = |&id: &u32| {
            let piece = self.text_piece(id, side)?;
            let (begins, text) = match marks {
                Marks::Begins(mark) => (piece.starts_with(mark), piece.trim_start_matches(mark)),
                Marks::Continues(mark) => (!piece.starts_with(mark), &piece[..]),
            };
            is_begun &= !begins;
            if text.is_empty() {
                return Some(count);
            }
            count += usize::from(!is_begun);
            is_begun = true;
            Some(count - 1)
        };
        let mut words: Vec<Option<usize>> = ids.iter().map(word).collect();
        // A space at the end belongs to nothing.
        words.iter_mut().for_each(|word| *word = word.filter(|&word| word < count));
        words
    }

    fn marks(&self) -> Marks {
        match &self.kind {
            Kind::SentencePiece(_) | Kind::Marian(_) | Kind::Numbered(_) => Marks::Begins(SPACE),
            Kind::Pipeline(pipeline) => {
                // A space is a letter of GPT-2's alphabet; BERT marks the pieces that begin no word.
                let mark = [SPACE, "Ġ"].into_iter().find(|mark| pipeline.id(mark).is_some());
                mark.map_or(Marks::Continues("##"), Marks::Begins)
            }
        }
    }

    /// The piece of a token that is text.
    fn text_piece(&self, id: u32, side: Side) -> Option<String> {
        let special = self.special(side);
        if [special.bos, special.eos, special.pad].contains(&Some(id)) {
            return None;
        }
        if matches!(&self.kind, Kind::Numbered(numbered) if numbered.is_added(id)) {
            return None;
        }
        let piece = self.piece(id, side)?;
        let is_marian = matches!(self.kind, Kind::Marian(_));
        let is_lost = side == Side::Target && special.unk == Some(id);
        let is_language = piece.starts_with(">>") && piece.ends_with("<<");
        (!is_marian || !is_lost && !is_language).then_some(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn words(model: &str, text: &str) -> Vec<Option<usize>> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/text").join(model);
        let tokenizer = Tokenizer::load(folder).unwrap_or_else(|error| panic!("{error}"));
        let ids = tokenizer.encode(text, Side::Source).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(tokenizer.words(&ids, Side::Source).len(), ids.len());
        tokenizer.words(&ids, Side::Source)
    }

    #[test]
    fn every_word_has_tokens_and_they_are_in_order() {
        for model in ["unigram.model", "gpt2"] {
            let words: Vec<usize> =
                words(model, "a running dog, schlaeft. qq").into_iter().flatten().collect();
            assert!(words.is_sorted() && words.iter().all(|&word| word < 5), "{model}: {words:?}");
            assert!((0..5).all(|word| words.contains(&word)), "{model}: {words:?}");
        }
    }

    #[test]
    fn what_is_no_text_belongs_to_no_word() {
        let words = words("marian", ">>fra<< a dog");
        assert_eq!((words.first(), words.last()), (Some(&None), Some(&None)));
        assert_eq!(words.iter().flatten().max(), Some(&1));
    }

    #[test]
    fn wordpieces_belong_to_the_word_that_they_continue() {
        assert_eq!(words("bert", "a dog runs"), [None, Some(0), Some(1), Some(2), None]);
        let long: Vec<usize> = words("bert", "dogdog dog").into_iter().flatten().collect();
        assert_eq!(long.last(), Some(&1), "{long:?}");
    }
}
