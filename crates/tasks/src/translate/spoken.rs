//! The languages of a model of which tokens say what it reads and what it is to write: `en_XX` (mBART), `__en__` (M2M-100) or
//! `eng_Latn` (NLLB). One stands before each source, and one begins each target. People say `en`.

use crate::error::Error;
use attentive_text::language;
use attentive_text::tokenizer::{Side, Tokenizer};
use std::sync::Arc;

/// How many languages a message names.
const NAMED: usize = 5;

/// The languages that a vocabulary has tokens for; none in most models.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SpokenLanguages {
    tokens: Arc<[(String, u32)]>,
}

impl SpokenLanguages {
    /// Those of a tokenizer: its special tokens that look like a language.
    pub fn of(tokenizer: &Tokenizer) -> SpokenLanguages {
        let token = |id| Some((tokenizer.piece(id, Side::Source)?, id));
        let special = tokenizer.special_ids().into_iter().filter_map(token);
        SpokenLanguages { tokens: special.filter(|(token, _)| code_of(token).is_some()).collect() }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// Whether a token is a language.
    pub fn has(&self, token: u32) -> bool {
        self.tokens.iter().any(|(_, id)| *id == token)
    }

    /// The tokens, as the model calls them.
    pub fn names(&self) -> Vec<String> {
        self.tokens.iter().map(|(token, _)| token.clone()).collect()
    }

    /// The token of a language in any of its spellings: `fr`, `fra`, `fr_XX`, `fra_Latn` or `__fr__`. One that
    /// is not there is refused with those that are nearest.
    pub fn find(&self, asked: &str) -> Result<u32, Error> {
        let exact = self.tokens.iter().find(|(token, _)| token.eq_ignore_ascii_case(asked));
        let by_code = || self.tokens.iter().find(|(token, _)| language::means(asked, token));
        exact.or_else(by_code).map(|(_, id)| *id).ok_or_else(|| self.unknown(asked))
    }

    fn unknown(&self, asked: &str) -> Error {
        let wanted = asked.to_lowercase();
        let far = |token: &String| {
            let own = code_of(token).unwrap_or_default();
            [distance(&wanted, language::short(own)), distance(&wanted, own)].into_iter().min()
        };
        let mut near: Vec<&String> = self.tokens.iter().map(|(token, _)| token).collect();
        near.sort_by_key(|token| far(token));
        let named: Vec<String> = near.iter().take(NAMED).map(|token| format!("`{token}`")).collect();
        let more = self.tokens.len().saturating_sub(named.len());
        let known = match more {
            0 => named.join(", "),
            more => format!("{} and {more} more", named.join(", ")),
        };
        Error::SpokenLanguage { code: asked.to_owned(), known }
    }

    /// The error for a missing target language.
    pub fn none_wanted(&self) -> Error {
        let named: Vec<String> =
            self.tokens.iter().take(NAMED).map(|(token, _)| format!("`{token}`")).collect();
        let more = self.tokens.len().saturating_sub(named.len());
        Error::NoSpokenLanguage { known: format!("{} and {more} more", named.join(", ")) }
    }
}

/// The code of the language in a token, without script or region; none if it is no language.
fn code_of(token: &str) -> Option<&str> {
    let is_word = |word: &str| (2..=3).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_lowercase());
    if let Some(code) = token.strip_prefix("__").and_then(|rest| rest.strip_suffix("__")) {
        return is_word(code).then_some(code);
    }
    let (code, region) = token.split_once('_')?;
    let is_region = matches!(region.len(), 2 | 4)
        && region.bytes().all(|b| b.is_ascii_alphabetic())
        && region.starts_with(|c: char| c.is_ascii_uppercase());
    (is_word(code) && is_region).then_some(code)
}

/// How many letters must be changed, added or left out to make one word of the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, other) in b.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *other);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn languages(tokens: &[&str]) -> SpokenLanguages {
        SpokenLanguages { tokens: tokens.iter().map(|token| (*token).to_owned()).zip(10..).collect() }
    }

    #[test]
    fn a_language_is_found_by_every_spelling_of_it() {
        let mbart = languages(&["de_DE", "en_XX", "fr_XX", "zh_CN"]);
        let m2m = languages(&["__de__", "__en__", "__fr__", "__zh__"]);
        let nllb = languages(&["deu_Latn", "eng_Latn", "fra_Latn", "zho_Hans", "zho_Hant"]);
        for (place, spellings) in
            [["de", "deu"], ["en", "ENG"], ["fr", "fra"], ["zh", "zho"]].iter().enumerate()
        {
            for model in [&mbart, &m2m, &nllb] {
                for asked in spellings {
                    assert_eq!(model.find(asked).unwrap(), 10 + place as u32, "{asked}");
                }
            }
        }
        assert_eq!(nllb.find("zh-Hant").unwrap(), 14);
        assert_eq!(nllb.find("zho_Hant").unwrap(), 14);
        assert_eq!(mbart.find("fr_XX").unwrap(), 12);
        assert_eq!(m2m.find("__fr__").unwrap(), 12);
    }

    #[test]
    fn an_unknown_language_is_refused_with_the_nearest() {
        let nllb =
            languages(&["deu_Latn", "dan_Latn", "eng_Latn", "fra_Latn", "zho_Hans", "zho_Hant", "ukr_Cyrl"]);
        let error = nllb.find("dn").unwrap_err().to_string();
        assert!(error.contains("`dn`") && error.contains("nearest") && error.contains("dan_Latn"), "{error}");
        assert!(error.ends_with("and 2 more"), "{error}");
    }

    #[test]
    fn what_looks_like_no_language_is_none() {
        for token in ["<s>", "<mask>", "extra_id", "__x__", "de_", "de_xx", "madeupword0000", "a_B"] {
            assert_eq!(code_of(token), None, "{token}");
        }
    }

    #[test]
    fn distances_count_letters() {
        assert_eq!((distance("", "abc"), distance("kitten", "sitting"), distance("ab", "ab")), (3, 3, 0));
    }
}
