//! Which languages a model knows.
//!
//! A folder says it in one of three ways: tokens such as `>>de<<` in its vocabulary, of which one chooses the target;
//! `source_lang` and `target_lang` in `tokenizer_config.json`; or its name, if it ends in two codes: `opus-mt-en-de`. Where it
//! says nothing, it is taken at its client's word.

use attentive_tasks::{languages_of_name, tokenizer_languages};
use std::path::Path;

/// A language: its code for clients, its name in English, and what a model calls it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Language {
    /// Its code for clients, of two letters where there is one.
    pub code: String,
    /// Its name in English, or its code if the name is not known.
    pub name: String,
    /// What the model calls it.
    pub token: String,
}

/// The languages of a model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Languages {
    /// None if it is not known.
    pub source: Option<Language>,
    /// None if they are not known.
    pub targets: Vec<Language>,
    /// Whether a token before the text says which of the targets is wanted.
    pub are_chosen_by_token: bool,
}

/// ISO 639: two letters, three letters, the name.
const NAMES: [(&str, &str, &str); 66] = [
    ("af", "afr", "Afrikaans"),
    ("ar", "ara", "Arabic"),
    ("az", "aze", "Azerbaijani"),
    ("be", "bel", "Belarusian"),
    ("bg", "bul", "Bulgarian"),
    ("bn", "ben", "Bengali"),
    ("ca", "cat", "Catalan"),
    ("cs", "ces", "Czech"),
    ("cy", "cym", "Welsh"),
    ("da", "dan", "Danish"),
    ("de", "deu", "German"),
    ("el", "ell", "Greek"),
    ("en", "eng", "English"),
    ("eo", "epo", "Esperanto"),
    ("es", "spa", "Spanish"),
    ("et", "est", "Estonian"),
    ("eu", "eus", "Basque"),
    ("fa", "fas", "Persian"),
    ("fi", "fin", "Finnish"),
    ("fr", "fra", "French"),
    ("ga", "gle", "Irish"),
    ("gl", "glg", "Galician"),
    ("gu", "guj", "Gujarati"),
    ("he", "heb", "Hebrew"),
    ("hi", "hin", "Hindi"),
    ("hr", "hrv", "Croatian"),
    ("hu", "hun", "Hungarian"),
    ("hy", "hye", "Armenian"),
    ("id", "ind", "Indonesian"),
    ("is", "isl", "Icelandic"),
    ("it", "ita", "Italian"),
    ("ja", "jpn", "Japanese"),
    ("ka", "kat", "Georgian"),
    ("kk", "kaz", "Kazakh"),
    ("ko", "kor", "Korean"),
    ("la", "lat", "Latin"),
    ("lt", "lit", "Lithuanian"),
    ("lv", "lav", "Latvian"),
    ("mk", "mkd", "Macedonian"),
    ("mr", "mar", "Marathi"),
    ("ms", "msa", "Malay"),
    ("mt", "mlt", "Maltese"),
    ("nb", "nob", "Norwegian Bokmål"),
    ("nl", "nld", "Dutch"),
    ("nn", "nno", "Norwegian Nynorsk"),
    ("no", "nor", "Norwegian"),
    ("pl", "pol", "Polish"),
    ("pt", "por", "Portuguese"),
    ("ro", "ron", "Romanian"),
    ("ru", "rus", "Russian"),
    ("sk", "slk", "Slovak"),
    ("sl", "slv", "Slovenian"),
    ("sq", "sqi", "Albanian"),
    ("sr", "srp", "Serbian"),
    ("sv", "swe", "Swedish"),
    ("sw", "swa", "Swahili"),
    ("ta", "tam", "Tamil"),
    ("te", "tel", "Telugu"),
    ("th", "tha", "Thai"),
    ("tl", "tgl", "Tagalog"),
    ("tr", "tur", "Turkish"),
    ("uk", "ukr", "Ukrainian"),
    ("ur", "urd", "Urdu"),
    ("vi", "vie", "Vietnamese"),
    ("yi", "yid", "Yiddish"),
    ("zh", "zho", "Chinese"),
];

impl Language {
    /// A language as a model calls it: two letters, three letters, or anything.
    pub fn called(token: &str) -> Language {
        let known = NAMES.iter().find(|(two, three, _)| [*two, *three].contains(&token));
        let (code, name) = known.map_or((token, token), |(two, _, name)| (*two, *name));
        Language { code: code.to_owned(), name: name.to_owned(), token: token.to_owned() }
    }

    /// Whether a client means this one.
    pub fn is(&self, asked: &str) -> bool {
        let asked = asked.to_lowercase();
        self.code == asked || self.token == asked || Language::called(&asked).code == self.code
    }
}

impl Languages {
    /// What can be known of the languages of a model that is called `name`. `tokens` are the codes of the language tokens in its
    /// vocabulary.
    pub fn of(name: &str, folder: &Path, tokens: Vec<String>) -> Languages {
        let (source, target) = tokenizer_languages(folder);
        let named = name_pair(name);
        let source = source.or(named.map(|(source, _)| source.to_owned()));
        let target = target.or(named.map(|(_, target)| target.to_owned()));
        let are_chosen_by_token = !tokens.is_empty();
        let targets = if are_chosen_by_token { tokens } else { target.into_iter().collect() };
        Languages {
            source: source.map(|source| Language::called(&source)),
            targets: targets.iter().map(|target| Language::called(target)).collect(),
            are_chosen_by_token,
        }
    }

    /// Whether it can be asked to translate from one language into another; nothing said is nothing against it.
    pub fn translate(&self, source: Option<&str>, target: Option<&str>) -> bool {
        let source = source.zip(self.source.as_ref()).is_none_or(|(asked, own)| own.is(asked));
        source && target.is_none_or(|asked| self.targets.is_empty() || self.target(asked).is_some())
    }

    /// The codes of all targets, for a message.
    pub fn codes(&self) -> String {
        self.targets.iter().map(|target| format!("`{}`", target.code)).collect::<Vec<_>>().join(", ")
    }

    /// The target that a client means.
    pub fn target(&self, asked: &str) -> Option<&Language> {
        self.targets.iter().find(|language| language.is(asked))
    }
}

/// The last two codes of a name such as `opus-mt-en-de`, if they are codes.
fn name_pair(name: &str) -> Option<(&str, &str)> {
    let is_code = |word: &str| NAMES.iter().any(|(two, three, _)| [*two, *three].contains(&word));
    languages_of_name(name).filter(|(source, target)| is_code(source) && is_code(target))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_language_is_known_by_two_letters_and_by_three() {
        let german = Language::called("deu");
        assert_eq!((&*german.code, &*german.name, &*german.token), ("de", "German", "deu"));
        assert!(german.is("de") && german.is("deu") && german.is("DE") && !german.is("en"));
        let other = Language::called("zho_Hans");
        assert_eq!((&*other.code, &*other.name), ("zho_Hans", "zho_Hans"));
    }

    #[test]
    fn names_tell_languages_only_if_they_end_in_them() {
        assert_eq!(name_pair("opus-mt-en-de"), Some(("en", "de")));
        assert_eq!(name_pair("en_fr"), Some(("en", "fr")));
        assert_eq!(name_pair("my-model"), None);
        assert_eq!(name_pair("de"), None);
    }

    #[test]
    fn what_is_not_known_is_not_held_against_anybody() {
        let unknown = Languages::default();
        assert!(unknown.translate(Some("en"), Some("de")));
        let known = Languages {
            source: Some(Language::called("en")),
            targets: vec![Language::called("de"), Language::called("fr")],
            are_chosen_by_token: true,
        };
        assert!(known.translate(None, None) && known.translate(Some("en"), Some("fra")));
        assert!(!known.translate(Some("de"), Some("fr")) && !known.translate(Some("en"), Some("es")));
    }
}
