//! The languages of a model, and how a request selects them.
//!
//! A folder says it in one of these ways: tokens such as `>>de<<` in its vocabulary, of which one stands before a text and chooses
//! the target; tokens such as `deu_Latn`, of which one stands before a text and one begins its translation; words for each pair of
//! languages in `task_specific_params`; `source_lang` and `target_lang` in `tokenizer_config.json`; or its name, if it ends in two
//! codes: `opus-mt-en-de`. Where it says nothing, it is taken at its client's word.

use attentive_tasks::{
    Instruction, SpokenLanguages, TargetLanguages, languages_of_name, tokenizer_languages,
};
use attentive_text::language;
use attentive_text::tokenizer::Tokenizer;
use std::path::Path;

/// How many languages a message names.
const NAMED: usize = 12;

/// A language: its code for clients, its name in English, and what a model calls it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Language {
    /// Its code for clients, of two letters where there is one. The second of two scripts stands behind it: `zh-Hant`.
    pub code: String,
    /// Its name in English, or its code if the name is not known.
    pub name: String,
    /// What the model calls it.
    pub token: String,
}

/// How a model gets the languages of a request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Choice {
    /// It is not: it translates from one language into one.
    #[default]
    None,
    /// By a token such as `>>de<<` before the text.
    Token,
    /// By a token such as `deu_Latn` before the text, and another one that begins the translation.
    Spoken,
    /// By words before the text, for some pairs of languages.
    Words(Vec<Instruction>),
}

/// The languages of a model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Languages {
    /// None if they are not known.
    pub sources: Vec<Language>,
    /// None if they are not known.
    pub targets: Vec<Language>,
    /// How one of several is chosen.
    pub choice: Choice,
}

impl Language {
    /// A language as a model calls it: `deu`, `deu_Latn`, `de_DE`, `__de__`, or anything.
    pub fn called(token: &str) -> Language {
        let (short, region) = language::parts(token);
        let (code, name) = match language::name(&short) {
            Some(name) => (short, name.to_owned()),
            None => (token.to_owned(), token.to_owned()),
        };
        // What else there is, such as an age or a dialect, makes another language of it.
        let is_plain = region.is_empty() || matches!(region.len(), 2 | 4) && !region.contains(['_', '-']);
        let (code, name) = if is_plain { (code, name) } else { (token.to_owned(), token.to_owned()) };
        Language { code, name, token: token.to_owned() }
    }

    /// Languages as a model calls them, each with a code of its own.
    fn all(tokens: &[String]) -> Vec<Language> {
        let mut all: Vec<Language> = Vec::with_capacity(tokens.len());
        for token in tokens {
            let mut own = Language::called(token);
            if all.iter().any(|other| other.code == own.code) {
                let region = token.rsplit(['_', '-']).next().unwrap_or_default();
                let script = language::script_name(region).unwrap_or(region);
                (own.code, own.name) = (format!("{}-{region}", own.code), format!("{} ({script})", own.name));
            }
            all.push(own);
        }
        all
    }

    /// Whether a client writes exactly this one.
    fn is_exactly(&self, asked: &str) -> bool {
        self.code.eq_ignore_ascii_case(asked) || self.token.eq_ignore_ascii_case(asked)
    }

    /// Whether a client means this one.
    pub fn is(&self, asked: &str) -> bool {
        self.is_exactly(asked) || language::means(asked, &self.token)
    }
}

/// The language that a client means: the one of exactly this name, or else the first that may be called so.
fn find<'a>(languages: &'a [Language], asked: &str) -> Option<&'a Language> {
    let exact = languages.iter().find(|language| language.is_exactly(asked));
    exact.or_else(|| languages.iter().find(|language| language.is(asked)))
}

/// The codes of languages, for a message.
fn codes(languages: &[Language]) -> String {
    let named: Vec<String> = languages.iter().take(NAMED).map(|one| format!("`{}`", one.code)).collect();
    match languages.len() {
        count if count > NAMED => format!("{} and {} more; see /languages", named.join(", "), count - NAMED),
        _ => named.join(", "),
    }
}

impl Languages {
    /// What can be known of the languages of a model that is called `name`.
    pub fn of(name: &str, folder: &Path, tokenizer: Option<&Tokenizer>) -> Languages {
        let spoken = tokenizer.map(SpokenLanguages::of).unwrap_or_default();
        if !spoken.is_empty() {
            let all = Language::all(&spoken.names());
            return Languages { sources: all.clone(), targets: all, choice: Choice::Spoken };
        }
        let instructions = Instruction::all_of(folder);
        if !instructions.is_empty() {
            return Languages::asked_by(instructions);
        }
        let (source, target) = tokenizer_languages(folder);
        let named = name_pair(name);
        let source = source.or(named.map(|(source, _)| source.to_owned()));
        let target = target.or(named.map(|(_, target)| target.to_owned()));
        let tokens = tokenizer.map(|tokenizer| TargetLanguages::of(tokenizer).codes().to_vec());
        let (targets, choice) = match tokens {
            Some(tokens) if !tokens.is_empty() => (tokens, Choice::Token),
            _ => (target.into_iter().collect(), Choice::None),
        };
        let sources: Vec<String> = source.into_iter().collect();
        Languages { sources: Language::all(&sources), targets: Language::all(&targets), choice }
    }

    /// Those of a model that is asked in words.
    fn asked_by(instructions: Vec<Instruction>) -> Languages {
        let each = |code: fn(&Instruction) -> &String| {
            let mut codes: Vec<String> = Vec::new();
            for code in instructions.iter().map(code).cloned() {
                if !codes.contains(&code) {
                    codes.push(code);
                }
            }
            Language::all(&codes)
        };
        let (sources, targets) = (each(|one| &one.source), each(|one| &one.target));
        Languages { sources, targets, choice: Choice::Words(instructions) }
    }

    /// Whether a request must or may say which of several languages is wanted.
    pub fn are_chosen(&self) -> bool {
        self.choice != Choice::None
    }

    /// Whether it can be asked to translate from one language into another; nothing said is nothing against it.
    pub fn translate(&self, source: Option<&str>, target: Option<&str>) -> bool {
        let source = source.map(|asked| (asked, self.source(asked)));
        let target = target.map(|asked| (asked, self.target(asked)));
        let knows = |known: &[Language], asked: &Option<(&str, Option<&Language>)>| {
            known.is_empty() || asked.is_none_or(|(_, found)| found.is_some())
        };
        let pair = || match (source.and_then(|(_, found)| found), target.and_then(|(_, found)| found)) {
            (Some(source), Some(target)) => self.has_pair(source, target),
            _ => true,
        };
        knows(&self.sources, &source) && knows(&self.targets, &target) && pair()
    }

    /// Whether it translates from one of its languages into another.
    pub fn has_pair(&self, source: &Language, target: &Language) -> bool {
        match &self.choice {
            Choice::Words(pairs) => {
                pairs.iter().any(|pair| pair.source == source.token && pair.target == target.token)
            }
            Choice::Spoken => source.token != target.token,
            Choice::None | Choice::Token => true,
        }
    }

    /// The codes of all sources, for a message.
    pub fn source_codes(&self) -> String {
        codes(&self.sources)
    }

    /// The codes of all targets, for a message.
    pub fn target_codes(&self) -> String {
        codes(&self.targets)
    }

    /// The source that a client means.
    pub fn source(&self, asked: &str) -> Option<&Language> {
        find(&self.sources, asked)
    }

    /// The target that a client means.
    pub fn target(&self, asked: &str) -> Option<&Language> {
        find(&self.targets, asked)
    }
}

/// The last two codes of a name such as `opus-mt-en-de`, if they are codes.
fn name_pair(name: &str) -> Option<(&str, &str)> {
    let is_code = |word: &str| language::name(word).is_some();
    languages_of_name(name).filter(|(source, target)| is_code(source) && is_code(target))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(tokens: &[&str]) -> Vec<Language> {
        Language::all(&tokens.iter().map(|token| (*token).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn a_language_is_known_by_two_letters_and_by_three() {
        for token in ["deu", "deu_Latn", "de_DE", "__de__"] {
            let german = Language::called(token);
            assert_eq!((&*german.code, &*german.name, &*german.token), ("de", "German", token));
            assert!(german.is("de") && german.is("deu") && german.is("DE") && !german.is("en"));
        }
        for token in ["qqq", "eng_Latn_old"] {
            let other = Language::called(token);
            assert_eq!((&*other.code, &*other.name), (token, token));
        }
    }

    #[test]
    fn a_second_script_has_a_code_of_its_own() {
        let chinese = all(&["zho_Hans", "zho_Hant"]);
        let codes: Vec<_> = chinese.iter().map(|one| (&*one.code, &*one.name)).collect();
        assert_eq!(codes, [("zh", "Chinese"), ("zh-Hant", "Chinese (traditional)")]);
        let found = |asked| find(&chinese, asked).map(|one| &*one.token);
        for asked in ["zh", "zho", "zh-Hans", "zh_CN"] {
            assert_eq!(found(asked), Some("zho_Hans"), "{asked}");
        }
        assert_eq!(
            (found("zh-Hant"), found("zho_Hant"), found("ja")),
            (Some("zho_Hant"), Some("zho_Hant"), None)
        );
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
        let known = Languages { sources: all(&["en"]), targets: all(&["de", "fr"]), choice: Choice::Token };
        assert!(known.translate(None, None) && known.translate(Some("en"), Some("fra")));
        assert!(!known.translate(Some("de"), Some("fr")) && !known.translate(Some("en"), Some("es")));
    }

    #[test]
    fn pairs_are_those_that_there_are_words_for() {
        let pair = |source: &str, target: &str| Instruction {
            source: source.to_owned(),
            target: target.to_owned(),
            words: format!("{source} to {target}: "),
            task: String::new(),
        };
        let known = Languages::asked_by(vec![pair("en", "de"), pair("en", "fr"), pair("de", "en")]);
        assert_eq!(
            (known.source_codes(), known.target_codes()),
            ("`en`, `de`".into(), "`de`, `fr`, `en`".into())
        );
        assert!(known.translate(Some("en"), Some("fr")) && known.translate(None, Some("fr")));
        assert!(!known.translate(Some("de"), Some("fr")) && !known.translate(Some("fr"), None));
    }
}
