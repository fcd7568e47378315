//! The normalisation of trained models: NFKC and what machine translation needs beside it, as rules of
//! SentencePiece.
//!
//! Control characters go; tabs, line separators, zero-width and byte-order marks become spaces; all else is
//! what NFKC makes of it: full-width letters, ligatures, letters with marks written apart. SentencePiece
//! applies rules by the longest match and cannot reorder, so a character and its marks are composed if
//! Unicode has a letter for just them, in whatever order they stand; other sequences stay as they are. That
//! is the one difference to NFKC proper.

use super::super::sentencepiece::{DoubleArray, proto::NormalizerSpec};
use std::collections::HashMap;
use std::iter::once;
use std::ops::RangeInclusive;
use std::sync::LazyLock;
use unicode_normalization::char::canonical_combining_class;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfd_quick, is_nfkc_quick};

/// The normaliser of trained models as it stands in their files.
pub(super) fn spec() -> NormalizerSpec {
    static TABLE: LazyLock<Vec<u8>> = LazyLock::new(|| table(&rules()));
    NormalizerSpec {
        // The word that SentencePiece has for rules that are not its own.
        name: Some("user_defined".to_owned()),
        precompiled_charsmap: Some(TABLE.clone()),
        add_dummy_prefix: Some(true),
        remove_extra_whitespaces: Some(true),
        escape_whitespaces: Some(true),
    }
}

/// Where all characters are that normalisation changes: neither the ideographs nor the upper planes have any.
const CHANGING: [RangeInclusive<char>; 4] =
    ['\u{1}'..='\u{33FF}', '\u{A000}'..='\u{D7FF}', '\u{F900}'..='\u{1FFFF}', '\u{2F800}'..='\u{2FA1F}'];

/// What is replaced, and by what, sorted. Each range has a thread: the syllables of Hangul alone are ten
/// thousand.
fn rules() -> Vec<(String, String)> {
    let mut rules = std::thread::scope(|scope| {
        let threads = CHANGING.map(|range| scope.spawn(|| range.flat_map(rules_for).collect::<Vec<_>>()));
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect::<Vec<_>>()
    });
    rules.sort_unstable();
    rules.dedup();
    rules
}

/// The rules that a character gives rise to: for itself, and for all ways to spell it.
fn rules_for(character: char) -> Vec<(String, String)> {
    if let Some(replacement) = for_translation(character) {
        return vec![(character.into(), replacement.to_owned())];
    }
    let is_normal = is_nfkc_quick(once(character)) == IsNormalized::Yes;
    let is_apart = is_nfd_quick(once(character)) == IsNormalized::Yes;
    if is_normal && is_apart {
        return vec![];
    }
    let normal = once(character).nfkc().collect::<String>();
    let mut spellings = spelled_apart(character);
    spellings.retain(|spelling| spelling.nfkc().eq(normal.chars()));
    if normal.chars().ne(once(character)) {
        spellings.push(character.into());
    }
    spellings.into_iter().map(|spelling| (spelling, normal.clone())).collect()
}

/// What translation models do to characters that are not meant to be read.
fn for_translation(character: char) -> Option<&'static str> {
    match character {
        '\u{1}'..='\u{8}' | '\u{B}' | '\u{E}'..='\u{1F}' | '\u{7F}' | '\u{8F}' | '\u{9F}' => Some(""),
        '\t'
        | '\n'
        | '\u{C}'
        | '\r'
        | '\u{1680}'
        | '\u{200B}'..='\u{200F}'
        | '\u{2028}'
        | '\u{2029}'
        | '▁' => Some(" "),
        '\u{FEFF}' | '\u{FFFD}' => Some(" "),
        _ => None,
    }
}

/// All ways to write a letter as another one with marks after it, in any order of the marks.
fn spelled_apart(character: char) -> Vec<String> {
    let parts: Vec<char> = once(character).nfd().collect();
    let [base, marks @ ..] = &parts[..] else { return vec![] };
    let mut spellings = Vec::new();
    for marks in orders(marks) {
        for composed in 0..marks.len() {
            let start: String = once(*base).chain(marks[..composed].iter().copied()).nfc().collect();
            if start.chars().count() == 1 {
                spellings.push(start + &String::from_iter(&marks[composed..]));
            }
        }
    }
    spellings
}

/// All orders of a few marks; there is but one where they are the letters of a syllable.
fn orders(marks: &[char]) -> Vec<Vec<char>> {
    if marks.len() < 2 || marks.iter().any(|&mark| canonical_combining_class(mark) == 0) {
        return if marks.is_empty() { vec![] } else { vec![marks.to_vec()] };
    }
    let mut all = Vec::new();
    for (i, &first) in marks.iter().enumerate() {
        let others: Vec<char> =
            marks.iter().enumerate().filter(|(j, _)| *j != i).map(|(_, &mark)| mark).collect();
        all.extend(orders(&others).into_iter().map(|order| once(first).chain(order).collect()));
    }
    all
}

/// Rules as SentencePiece stores them: the length of a trie, the trie, the replacements.
fn table(rules: &[(String, String)]) -> Vec<u8> {
    let mut strings = Vec::new();
    let mut places: HashMap<&str, u32> = HashMap::new();
    let mut keys: Vec<(&[u8], u32)> = Vec::with_capacity(rules.len());
    for (from, to) in rules {
        let place = *places.entry(to).or_insert_with(|| {
            let place = strings.len() as u32;
            strings.extend(to.as_bytes());
            strings.push(0);
            place
        });
        keys.push((from.as_bytes(), place));
    }
    let trie = DoubleArray::new(&keys).to_bytes();
    let mut table = (trie.len() as u32).to_le_bytes().to_vec();
    table.extend(trie);
    table.extend(strings);
    table
}

#[cfg(test)]
mod tests {
    use super::super::super::sentencepiece::Normalizer;
    use super::*;

    fn normal(text: &str) -> String {
        let spec =
            NormalizerSpec { add_dummy_prefix: Some(false), escape_whitespaces: Some(false), ..spec() };
        String::from_utf8(Normalizer::new(&spec, None, false).unwrap().normalize(text)).unwrap()
    }

    #[test]
    fn single_characters_are_as_in_nfkc() {
        assert_eq!(normal("ﬁ Ａ ① ㌔ … é\u{3000}x"), "fi A 1 キロ ... é x");
    }

    #[test]
    fn marks_are_composed_in_any_order() {
        for text in ["ệ", "e\u{302}\u{323}", "e\u{323}\u{302}", "ê\u{323}", "ẹ\u{302}"] {
            assert_eq!(normal(text), "ệ");
        }
        assert_eq!(normal("A\u{308}b u\u{308}"), "Äb ü");
        assert_eq!(normal("한\u{1112}\u{1161}\u{11AB}"), "한한");
    }

    #[test]
    fn what_cannot_be_read_goes_and_spaces_are_spaces() {
        assert_eq!(normal("a\u{1}b\u{7F}\tc\u{200B}d\u{A0}\u{FEFF}e▁f"), "ab c d e f");
    }

    #[test]
    fn every_character_is_as_in_nfkc() {
        let rules: HashMap<String, String> = rules().into_iter().collect();
        for character in '\u{1}'..=char::MAX {
            if for_translation(character).is_none() {
                let expected: String = once(character).nfkc().collect();
                let found = rules.get(&character.to_string()).cloned().unwrap_or(character.into());
                assert_eq!(found, expected, "{character:?}");
                let apart: String = once(character).nfd().collect();
                let found = rules.get(&apart).cloned().unwrap_or(apart);
                assert_eq!(found.nfkc().collect::<String>(), expected, "{character:?} written apart");
            }
        }
    }

    #[test]
    fn the_text_of_the_world_is_as_in_nfkc() {
        for text in [
            "Zwölf Boxkämpfer jagen Viktor",
            "Москва́ й",
            "東京タワー",
            "مرحبا بالعالم",
            "नमस्ते दुनिया",
            "½ kg ™",
        ] {
            assert_eq!(normal(text), text.nfkc().collect::<String>());
        }
    }
}
