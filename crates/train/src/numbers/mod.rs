//! Numbers in words, a translation task whose right answers are always known.
//!
//! ```text
//! 21   twenty-one      einundzwanzig           vingt et un
//! 97   ninety-seven    siebenundneunzig        quatre-vingt-dix-sept
//! ```
//!
//! English goes from large to small. German says units before tens, so two words cross in every number; French
//! counts from seventy to ninety-nine in sixties and in twenties, so one word becomes two or three. That is small enough
//! to be learned in a minute and yet has what makes translation hard: order that changes, words that depend on
//! their neighbours (`cents` but `deux cent un`, `eins` but `einundzwanzig`) and words that have no partner.
//!
//! Spelling is what schools teach: British English with `and`; German as one word, `ein` written out before
//! `hundert` and `tausend`; French of France as it was before the reform of 1990, with hyphens below a hundred only. One
//! spelling for each number, so that an answer is right or wrong.

mod corpus;
mod english;
mod french;
mod german;
mod lesson;

pub use corpus::{NumberCorpus, NumberPair, SHOWN};
pub use lesson::{prepare, settings};

use attentive_text::tokenizer::Tokenizer;
use attentive_text::tokenizer::train::of_pieces;

/// The first number that is too large to be written here.
pub const LIMIT: u32 = 1_000_000;

/// A language that numbers are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// `one hundred and twenty-one`
    English,
    /// `einhunderteinundzwanzig`
    German,
    /// `cent vingt et un`
    French,
}

impl Language {
    /// The languages that numbers are translated into; the source is English.
    pub const TARGETS: [Language; 2] = [Language::German, Language::French];

    /// Its name in English.
    pub fn name(self) -> &'static str {
        match self {
            Language::English => "English",
            Language::German => "German",
            Language::French => "French",
        }
    }

    /// Its code of two letters.
    pub fn code(self) -> &'static str {
        match self {
            Language::English => "en",
            Language::German => "de",
            Language::French => "fr",
        }
    }

    /// A number in its words.
    ///
    /// # Panics
    /// If the number is not below [`LIMIT`].
    pub fn write(self, number: u32) -> String {
        assert!(number < LIMIT, "numbers: {number} is not below {LIMIT}");
        match self {
            Language::English => english::write(number),
            Language::German => german::write(number),
            Language::French => french::write(number),
        }
    }

    /// The number that is written so in English, if any is.
    pub fn read_english(text: &str) -> Option<u32> {
        english::read(text)
    }

    /// A text as a model that translates into several languages is asked for this one: behind a token with the
    /// language's code, as OPUS-MT's models have it.
    pub fn ask(self, text: &str) -> String {
        format!("{} {text}", self.token())
    }

    fn token(self) -> String {
        format!(">>{}<<", self.code())
    }
}

/// A tokenizer whose pieces are the parts that number words are made of.
///
/// Pieces that are learned from the corpus follow what is frequent, and `undzwanzig` or `siebenhundert` is frequent. These follow
/// what is counted, so that each has one meaning, and `ein·und·zwanzig` can be seen to cross `twenty-one`.
pub fn tokenizer() -> Tokenizer {
    let mut pieces = vec!["-".to_owned()];
    for (first, further) in [english::words(), german::words(), french::words()] {
        // `▁` stands for the space before a word.
        let first = first.into_iter().map(|word| format!("▁{word}"));
        for piece in first.chain(further.into_iter().map(str::to_owned)) {
            if !pieces.contains(&piece) {
                pieces.push(piece);
            }
        }
    }
    of_pieces(&pieces, &Language::TARGETS.map(Language::token))
}

#[cfg(test)]
mod tests {
    use super::*;
    use attentive_text::tokenizer::Side;
    use std::collections::HashSet;

    #[test]
    fn no_two_numbers_are_written_alike() {
        for language in [Language::English, Language::German, Language::French] {
            let written: HashSet<String> = (0..LIMIT).step_by(7).map(|n| language.write(n)).collect();
            assert_eq!(written.len() as u32, LIMIT.div_ceil(7), "{language:?}");
        }
    }

    #[test]
    fn pieces_cover_every_number_and_each_is_needed() {
        let tokenizer = tokenizer();
        let size = tokenizer.vocabulary_size(Side::Source);
        let mut seen: HashSet<u32> = HashSet::new();
        for number in (0..1000).chain((1000..LIMIT).step_by(997)) {
            for pair in Language::TARGETS.map(|language| NumberPair::new(number, language)) {
                seen.extend(tokenizer.encode(&pair.source, Side::Source).unwrap());
                let ids = tokenizer.encode(&pair.target, Side::Target).unwrap();
                assert_eq!(tokenizer.decode(&ids).unwrap(), pair.target);
                seen.extend(ids);
            }
        }
        let special = tokenizer.special(Side::Source);
        let unseen: Vec<u32> = (0..size as u32).filter(|id| !seen.contains(id)).collect();
        assert_eq!(unseen, [special.unk.unwrap(), special.pad.unwrap()]);
    }

    #[test]
    fn tens_and_units_are_pieces_of_their_own() {
        let tokenizer = tokenizer();
        let cut = |text, side| tokenizer.encode_pieces(text, side).unwrap().join(" ");
        assert_eq!(cut(">>de<< twenty-one", Side::Source), ">>de<< ▁twenty - one </s>");
        assert_eq!(cut("einhunderteinundzwanzig", Side::Target), "▁ein hundert ein und zwanzig </s>");
        assert_eq!(cut("siebentausendeins", Side::Target), "▁sieben tausend ein s </s>");
        assert_eq!(cut("quatre-vingts", Side::Target), "▁quatre - vingt s </s>");
    }

    #[test]
    fn a_question_names_its_language() {
        assert_eq!(Language::German.ask("twenty-one"), ">>de<< twenty-one");
        assert_eq!(Language::French.ask("one"), ">>fr<< one");
    }

    #[test]
    #[should_panic(expected = "1000000 is not below")]
    fn a_million_is_refused() {
        Language::German.write(LIMIT);
    }
}
