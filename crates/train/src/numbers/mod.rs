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

pub use corpus::{NumberCorpus, NumberPair};

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

    /// A text as a model that translates into several languages is asked for this one: behind a token with the
    /// language's code, as OPUS-MT's models have it.
    pub fn ask(self, text: &str) -> String {
        format!(">>{}<< {text}", self.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_two_numbers_are_written_alike() {
        for language in [Language::English, Language::German, Language::French] {
            let written: HashSet<String> = (0..LIMIT).step_by(7).map(|n| language.write(n)).collect();
            assert_eq!(written.len() as u32, LIMIT.div_ceil(7), "{language:?}");
        }
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
