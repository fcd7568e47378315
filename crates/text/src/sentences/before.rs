//! The word that a full stop belongs to: an abbreviation, an initial or a number, or the last word of a sentence.

use super::language::{Kind, Language};
use super::next::Next;

/// The word before a full stop.
pub(super) struct Word<'a> {
    /// The sentence up to the full stop.
    sentence: &'a str,
    /// Letters, digits and hyphens.
    word: &'a str,
}

/// The parts that an abbreviation has at most: `u. s. w.` has three.
const PARTS: usize = 4;
/// How long a word can be to be looked at, in characters.
const LONGEST: usize = 16;

impl<'a> Word<'a> {
    /// The last word of a sentence up to its full stop.
    pub fn before(sentence: &'a str) -> Word<'a> {
        Word { sentence, word: last_word(sentence) }
    }

    /// Whether a sentence may end here if `next` follows, which does not begin in lower case.
    pub fn may_end_sentence(&self, next: &Next, language: &Language) -> bool {
        if self.is_list_marker() {
            return false;
        }
        let begins_sentence = || next.plain_word().is_some_and(|word| language.is_first(&word));
        if self.is_small_number() {
            return !language.has_ordinal_before(next.plain_word()) || begins_sentence();
        }
        match self.kind(language) {
            Some(Kind::Never) => false,
            Some(Kind::Number) if next.is_number() => false,
            Some(Kind::Maybe) => begins_sentence(),
            _ if self.is_initial(next, language) => begins_sentence(),
            _ => true,
        }
    }

    /// `1.`, `2.1.` and `a.` at the beginning of a sentence, or behind a colon or a bracket, count what follows.
    fn is_list_marker(&self) -> bool {
        let is_marker = |marker: &str| {
            let is_number = |part: &str| (1..=3).contains(&part.len()) && is_digits(part);
            let is_letter = || marker.chars().count() == 1 && marker.chars().all(char::is_alphabetic);
            marker.split('.').all(is_number) || is_letter() || is_roman(marker)
        };
        let begin = self.sentence.rfind(char::is_whitespace).unwrap_or(0);
        let (before, token) = self.sentence.split_at(begin);
        let token = token.trim_start();
        let begins = before.trim_end().is_empty();
        let is_behind_colon = || is_digits(token) && before.trim_end().ends_with([':', ';']);
        (begins || is_behind_colon()) && is_marker(token.trim_start_matches(['(', '[', '"', '„', '“', '«']))
    }

    /// Whether it is a small number of one part, in digits or Roman: `3.` and `II.` but not `2.3.`.
    fn is_small_number(&self) -> bool {
        let before = &self.sentence[..self.sentence.len() - self.word.len()];
        (self.word.chars().count() <= 3 && is_digits(self.word) || is_roman(self.word))
            && before.ends_with(|before: char| before.is_whitespace() || before == '(')
    }

    /// What kind of abbreviation it is, alone or with the parts before it.
    fn kind(&self, language: &Language) -> Option<Kind> {
        let mut key = self.word.to_lowercase();
        let mut rest = &self.sentence[..self.sentence.len() - self.word.len()];
        let mut strongest = language.kind(key.trim_start_matches('-'));
        for _ in 1..PARTS {
            let Some((before, part)) = dotted_part(rest) else { break };
            key = format!("{}.{key}", part.to_lowercase());
            strongest = strongest.max(language.kind(&key));
            rest = before;
        }
        strongest
    }

    /// A single letter: `J.` of `J. R. R. Tolkien`, `S.` of `U.S.`
    fn is_initial(&self, next: &Next, language: &Language) -> bool {
        let mut letters = self.word.chars();
        let (Some(letter), None) = (letters.next(), letters.next()) else { return false };
        if !letter.is_lowercase() && !letter.is_uppercase() {
            return false;
        }
        // A word of one letter is an initial beside other names only: `Isaac I. Rabi`, but `So do I.`
        let word = letter.to_lowercase().to_string();
        !language.is_letter(&word) || self.follows_capital() || next.plain_word().is_none()
    }

    fn follows_capital(&self) -> bool {
        let rest = &self.sentence[..self.sentence.len() - self.word.len()];
        last_word(rest.trim_end().trim_end_matches('.')).starts_with(char::is_uppercase)
    }
}

/// The letters, digits and hyphens at the end of a text; empty if there are too many for an abbreviation.
fn last_word(text: &str) -> &str {
    let is_word = |character: char| character.is_alphanumeric() || matches!(character, '-' | 'ª' | 'º' | '№');
    let mut characters = text.char_indices().rev().take(LONGEST + 1);
    match characters.find(|(_, character)| !is_word(*character)) {
        Some((at, character)) => &text[at + character.len_utf8()..],
        None if text.chars().rev().nth(LONGEST).is_none() => text,
        None => "",
    }
}

/// The part of an abbreviation at the end of a text, with its full stop and at most one space behind it, and what is before.
fn dotted_part(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_suffix(char::is_whitespace).unwrap_or(text).strip_suffix('.')?;
    let part = last_word(text);
    (!part.is_empty()).then(|| (&text[..text.len() - part.len()], part))
}

/// Whether it is a Roman number of two digits and more. One digit looks like an initial.
fn is_roman(text: &str) -> bool {
    (2..=6).contains(&text.len()) && text.chars().all(|digit| matches!(digit, 'I' | 'V' | 'X'))
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.chars().all(char::is_numeric)
}
