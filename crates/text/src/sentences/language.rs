//! What is known of a language: its abbreviations, and the words that its sentences begin with. `languages/README.md` describes
//! the files.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

/// What an abbreviation says of the stop behind it. The greater one decides if an abbreviation is of two kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// It ends a sentence if the next word is one that sentences begin with.
    Maybe,
    /// It ends no sentence if a number follows.
    Number,
    /// It ends no sentence.
    Never,
}

/// The words of a language.
#[derive(Debug, Default)]
pub(super) struct Language {
    abbreviations: HashMap<&'static str, Kind>,
    first: HashSet<&'static str>,
    letters: HashSet<&'static str>,
    after_ordinals: HashSet<&'static str>,
    /// Whether every small number with a full stop is an ordinal unless a sentence begins behind it: where nouns are
    /// capitalised.
    has_ordinals: bool,
}

/// ISO 639: two letters, three letters, and the file.
const FILES: [(&str, &str, &str); 8] = [
    ("de", "deu", include_str!("languages/de.txt")),
    ("en", "eng", include_str!("languages/en.txt")),
    ("es", "spa", include_str!("languages/es.txt")),
    ("fr", "fra", include_str!("languages/fr.txt")),
    ("it", "ita", include_str!("languages/it.txt")),
    ("nl", "nld", include_str!("languages/nl.txt")),
    ("pt", "por", include_str!("languages/pt.txt")),
    ("ru", "rus", include_str!("languages/ru.txt")),
];

static KNOWN: LazyLock<Vec<Language>> = LazyLock::new(|| {
    let language = |(_, _, file): &(_, _, &'static str)| {
        let mut language = Language::default();
        language.read(file, true);
        language.has_ordinals = !language.after_ordinals.is_empty();
        language
    };
    FILES.iter().map(language).collect()
});

/// All languages together, for a text whose language is not known.
static ANY: LazyLock<Language> = LazyLock::new(|| {
    let mut any = Language::default();
    FILES.iter().for_each(|(_, _, file)| any.read(file, false));
    any
});

impl Language {
    /// The language of a code, as [`split`](super::split) takes it.
    pub fn of(code: Option<&str>) -> &'static Language {
        let code = code.unwrap_or_default();
        let code = code.split(|character: char| !character.is_alphabetic()).next().unwrap_or_default();
        let code = code.to_lowercase();
        let place = FILES.iter().position(|(two, three, _)| [*two, *three].contains(&&*code));
        place.map_or(&ANY, |place| &KNOWN[place])
    }

    /// Adds the words of a file; those with a star only if the language `is_known`.
    fn read(&mut self, file: &'static str, is_known: bool) {
        let lines = file.lines().map(|line| line.split('#').next().unwrap_or_default());
        for (key, words) in lines.filter_map(|line| line.split_once(':')) {
            for word in words.split_whitespace() {
                match word.strip_prefix('*') {
                    Some(word) if is_known => self.add(key, word),
                    Some(_) => (),
                    None => self.add(key, word),
                }
            }
        }
    }

    fn add(&mut self, key: &str, word: &'static str) {
        let mut abbreviation = |kind: Kind| {
            let known = self.abbreviations.entry(word).or_insert(kind);
            *known = kind.max(*known);
        };
        match key {
            "never" => abbreviation(Kind::Never),
            "number" => abbreviation(Kind::Number),
            "maybe" => abbreviation(Kind::Maybe),
            "first" => drop(self.first.insert(word)),
            "letter" => drop(self.letters.insert(word)),
            "ordinal" => drop(self.after_ordinals.insert(word)),
            _ => unreachable!("a test reads every file"),
        }
    }

    /// The kind of an abbreviation in lower case, without its last full stop and without spaces.
    pub fn kind(&self, abbreviation: &str) -> Option<Kind> {
        self.abbreviations.get(abbreviation).copied()
    }

    /// Whether sentences often begin with a word, given in lower case.
    pub fn is_first(&self, word: &str) -> bool {
        self.first.contains(word)
    }

    /// Whether a letter in lower case is a word.
    pub fn is_letter(&self, letter: &str) -> bool {
        self.letters.contains(letter)
    }

    /// Whether a small number with a full stop is an ordinal if this word follows.
    pub fn has_ordinal_before(&self, word: Option<String>) -> bool {
        self.has_ordinals || word.is_some_and(|word| self.after_ordinals.contains(&*word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_may_have_two_letters_or_three_and_a_region() {
        for code in ["de", "deu", "DE", "de-AT", "de_DE", "deu_Latn"] {
            assert_eq!(Language::of(Some(code)).kind("bzw"), Some(Kind::Never), "{code}");
            assert_eq!(Language::of(Some(code)).kind("mme"), None, "{code}");
        }
        for unknown in [None, Some(""), Some("sv"), Some("x")] {
            assert!(["bzw", "mme", "mr"].iter().all(|word| Language::of(unknown).kind(word).is_some()));
        }
    }

    #[test]
    fn common_words_count_as_abbreviations_only_where_the_language_is_known() {
        assert_eq!(Language::of(Some("fr")).kind("me"), Some(Kind::Never));
        assert_eq!(Language::of(None).kind("me"), None);
    }

    #[test]
    fn every_line_of_a_file_is_a_key_and_words_in_lower_case_without_a_last_stop() {
        for (code, _, file) in FILES {
            assert!(!Language::of(Some(code)).first.is_empty(), "{code}");
            for line in file.lines() {
                assert!(line.contains(": "), "{code}: {line}");
                assert!(
                    line == line.to_lowercase() && !line.contains(". ") && !line.ends_with('.'),
                    "{line}"
                );
            }
        }
    }
}
