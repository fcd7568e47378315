//! The target languages of a model for several of them: tokens such as `>>de<<`, of which one stands before each text.

use crate::error::Error;
use attentive_text::language;
use attentive_text::tokenizer::{Side, Tokenizer};
use std::borrow::Cow;

/// How many languages a message names.
const NAMED: usize = 8;

/// The target languages of a model, and the one that is wanted where a text names none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TargetLanguages {
    codes: Vec<String>,
    wanted: Option<String>,
}

impl TargetLanguages {
    /// The languages that a vocabulary has tokens for; none for most models.
    pub fn of(tokenizer: &Tokenizer) -> TargetLanguages {
        let ids = 0..tokenizer.vocabulary_size(Side::Source) as u32;
        let code = |id| {
            let piece = tokenizer.piece(id, Side::Source)?;
            let (token, rest) = split_language(&piece);
            rest.is_empty().then(|| code_of(token)).flatten().map(str::to_owned)
        };
        TargetLanguages { codes: ids.filter_map(code).collect(), wanted: None }
    }

    /// The codes of all languages: `de` of the token `>>de<<`.
    pub fn codes(&self) -> &[String] {
        &self.codes
    }

    /// Wants texts that name no language to be translated into this one.
    pub fn with_target(self, code: &str) -> Result<TargetLanguages, Error> {
        let exact = self.codes.iter().find(|known| known.eq_ignore_ascii_case(code));
        let same = || self.codes.iter().find(|known| language::means(code, known));
        match exact.or_else(same).cloned() {
            Some(code) => Ok(TargetLanguages { wanted: Some(code), ..self }),
            None => Err(self.unknown(code)),
        }
    }

    /// A line with its language token before its first word, if the model needs one. White space stays. A token that the model
    /// does not have is refused, and so is a line without any if nothing else says which of several languages is wanted.
    pub fn prepare<'a>(&self, line: &'a str) -> Result<Cow<'a, str>, Error> {
        let text = line.trim_start();
        match (code_of(text), &self.wanted) {
            _ if text.is_empty() || self.codes.is_empty() => Ok(Cow::Borrowed(line)),
            (Some(code), _) if self.codes.iter().any(|known| known == code) => Ok(Cow::Borrowed(line)),
            (Some(code), _) => Err(self.unknown(code)),
            (None, Some(wanted)) => {
                let space = &line[..line.len() - text.len()];
                Ok(Cow::Owned(format!("{space}>>{wanted}<< {text}")))
            }
            (None, None) if self.codes.len() == 1 => Ok(Cow::Borrowed(line)),
            (None, None) => Err(Error::NoLanguage { known: self.listed() }),
        }
    }

    /// The token that a text begins with as if it were a language token, although the model has none at all.
    pub fn needless<'a>(&self, text: &'a str) -> Option<&'a str> {
        let (token, _) = split_language(text.trim_start());
        (self.codes.is_empty() && !token.is_empty()).then_some(token.trim_end())
    }

    fn unknown(&self, code: &str) -> Error {
        Error::Language { code: code.to_owned(), known: self.listed() }
    }

    /// Some of the languages, and how many there are.
    fn listed(&self) -> String {
        let named: Vec<String> = self.codes.iter().take(NAMED).map(|code| format!("`{code}`")).collect();
        match self.codes.len() {
            0 => "not marked by tokens: it translates into one language".to_owned(),
            count if count > NAMED => format!("{} and {} more", named.join(", "), count - NAMED),
            _ => named.join(", "),
        }
    }
}

/// The language token that a text begins with, with the white space behind it, and the rest.
pub(crate) fn split_language(text: &str) -> (&str, &str) {
    let Some(code) = code_of(text) else { return ("", text) };
    let rest = text[code.len() + 4..].trim_start();
    text.split_at(text.len() - rest.len())
}

/// The code in the language token that a line begins with, behind white space: `de` of `>>de<< A dog runs.`
pub fn named_language(line: &str) -> Option<&str> {
    code_of(line.trim_start())
}

/// The code in the language token that a text begins with. A token has no space: `>> see << ` is text.
fn code_of(text: &str) -> Option<&str> {
    let (code, _) = text.strip_prefix(">>")?.split_once("<<")?;
    (!code.is_empty() && !code.contains(char::is_whitespace)).then_some(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn languages(codes: &[&str]) -> TargetLanguages {
        TargetLanguages { codes: codes.iter().map(|code| (*code).to_owned()).collect(), wanted: None }
    }

    #[test]
    fn a_text_gets_the_token_of_the_language_that_is_wanted() {
        let several = languages(&["de", "fr"]);
        let french = several.clone().with_target("FR").unwrap();
        assert_eq!(french.prepare("a dog").unwrap(), ">>fr<< a dog");
        assert_eq!(french.prepare("\t a dog ").unwrap(), "\t >>fr<< a dog ");
        assert_eq!(french.prepare(">> see << a dog").unwrap(), ">>fr<< >> see << a dog");
        assert_eq!(french.prepare(">>de<< a dog").unwrap(), ">>de<< a dog");
        assert_eq!(french.prepare(" ").unwrap(), " ");
        assert_eq!(several.prepare(" ").unwrap(), " ");
        assert_eq!(languages(&["de"]).prepare("a dog").unwrap(), "a dog");
        assert_eq!(languages(&[]).prepare(">>de<< a dog").unwrap(), ">>de<< a dog");
        assert_eq!(languages(&[]).needless(">>de<< a dog"), Some(">>de<<"));
        assert_eq!(languages(&[]).needless(">> see << a dog"), None);
        assert_eq!(several.needless(">>de<< a dog"), None);
    }

    #[test]
    fn a_language_token_is_split_off_with_the_white_space_behind_it() {
        assert_eq!(split_language(">>de<< \ta dog "), (">>de<< \t", "a dog "));
        assert_eq!(split_language(">>de<<a dog"), (">>de<<", "a dog"));
        assert_eq!(split_language(">>de<<"), (">>de<<", ""));
        for text in ["", " >>de<< a", ">>de", ">><< a", ">> see << a dog"] {
            assert_eq!(split_language(text), ("", text));
        }
    }

    #[test]
    fn a_language_that_is_missing_or_unknown_is_refused_with_those_that_are_known() {
        let several = languages(&["de", "fr"]);
        let message = |result: Result<Cow<str>, Error>| result.unwrap_err().to_string();
        assert!(message(several.prepare("a dog")).contains("`de`, `fr`"));
        let unknown = message(several.prepare(">>xx<< a dog"));
        assert!(unknown.contains("`xx`") && unknown.ends_with("`de`, `fr`"), "{unknown}");
        assert!(several.with_target("xx").is_err());
        let many: Vec<String> = (0..20).map(|number| format!("l{number}")).collect();
        let many = languages(&many.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(message(many.prepare("a dog")).contains("`l7` and 12 more"));
        let none = languages(&[]).with_target("de").unwrap_err().to_string();
        assert!(none.contains("`de`") && none.contains("one language"), "{none}");
    }
}
