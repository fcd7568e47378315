//! The sentences of a text.
//!
//! [`split`] goes through a text once. A sentence ends behind a stop (`.`, `?`, `…`, `。` and others) with the quotes and
//! brackets that it closes, or before a blank line. Whether a stop ends a sentence is decided in three files: `stop.rs` reads
//! the stop, `next.rs` what follows it, and `before.rs` the word that it belongs to, with the abbreviations of `language.rs`.
//!
//! A line break is white space like any other: a sentence may be wrapped over several lines. Callers for whom a line is a unit
//! split a line at a time.

mod before;
mod language;
mod marker;
mod next;
mod stop;

use before::Word;
use language::Language;
pub use marker::marker;
use next::Next;
use std::ops::Range;
use stop::Stop;

/// The byte ranges of the sentences of a text, in order, without white space at their ends. Between the ranges lies nothing but
/// white space, or nothing at all behind Chinese and Japanese stops. A text of white space has no sentences.
///
/// `language` is the code of the text's language: `de`, `deu` or `de-AT`. It says which abbreviations there are. Without it, or
/// if its abbreviations are not known, those of all known languages count.
///
/// ```
/// let text = "Dr. Who is 3.5 m tall.  Is he?";
/// assert_eq!(attentive_text::sentences::split(text, Some("en")), [0..22, 24..30]);
/// ```
pub fn split(text: &str, language: Option<&str>) -> Vec<Range<usize>> {
    let language = Language::of(language);
    pieces(text, |start, stop| ends_sentence(text, start, stop, language))
}

/// The byte ranges of a text behind each of its stops, whatever follows: for a sentence that is too long to be read at once, as a
/// text without capitals may seem to be. The ranges are like those of [`split`].
pub fn split_at_stops(text: &str) -> Vec<Range<usize>> {
    pieces(text, |_, stop| {
        let behind = &text[stop.end..];
        let is_apart = behind.starts_with(char::is_whitespace) || stop.needs_no_space(behind);
        is_apart && Next::read(behind).is_some()
    })
}

/// Where a text without white space around it is cut in two: at the white space nearest to its middle, else between the characters
/// there. None if there is but one character.
pub fn middle(text: &str) -> Option<usize> {
    let half = text.len() / 2;
    let distance = |at: &usize| at.abs_diff(half);
    let spaces = text.match_indices(char::is_whitespace).map(|(at, _)| at);
    let characters = || text.char_indices().map(|(at, _)| at).filter(|at| *at > 0).min_by_key(distance);
    spaces.min_by_key(distance).or_else(characters)
}

/// Cuts a text behind the stops that end a piece, given where the piece begins.
fn pieces(text: &str, ends: impl Fn(usize, &Stop) -> bool) -> Vec<Range<usize>> {
    let mut pieces = Vec::new();
    let mut start = text.len() - text.trim_start().len();
    while start < text.len() {
        let end = end_of_piece(text, start, &ends);
        pieces.push(start..end);
        start = text.len() - text[end..].trim_start().len();
    }
    pieces
}

/// Whether a space must stand between two sentences of which nothing else is known: not beside scripts without spaces.
pub fn need_space(before: &str, after: &str) -> bool {
    let is_spaced = |character: Option<char>| {
        character.is_some_and(|character| !character.is_whitespace() && !stop::is_unspaced(character))
    };
    is_spaced(before.chars().next_back()) && is_spaced(after.chars().next())
}

/// Where the piece ends that begins at `start`, with a character that is not white space.
fn end_of_piece(text: &str, start: usize, ends: impl Fn(usize, &Stop) -> bool) -> usize {
    let mut at = start;
    // A row of stops is no sentence.
    let mut has_words = false;
    while let Some(character) = text[at..].chars().next() {
        if character.is_whitespace() {
            let space = white_space(&text[at..]);
            if is_blank_line(space) || at + space.len() == text.len() {
                return at;
            }
            at += space.len();
        } else if let Some(stop) = Stop::read(text, at) {
            if has_words && ends(start, &stop) {
                return stop.end;
            }
            at = stop.end;
        } else {
            has_words |= character.is_alphanumeric();
            at += character.len_utf8();
        }
    }
    at
}

fn ends_sentence(text: &str, start: usize, stop: &Stop, language: &Language) -> bool {
    let behind = &text[stop.end..];
    let Some(next) = Next::read(behind) else { return false };
    if !behind.starts_with(char::is_whitespace) {
        return stop.needs_no_space(behind);
    }
    if stop.is_ideographic {
        return true;
    }
    if next.is_lower_case() {
        return false;
    }
    !stop.is_single_dot || Word::before(&text[start..stop.start]).may_end_sentence(&next, language)
}

/// The white space that a text begins with.
fn white_space(text: &str) -> &str {
    &text[..text.len() - text.trim_start().len()]
}

fn is_blank_line(space: &str) -> bool {
    space.contains(['\u{c}', '\u{2029}']) || space.matches('\n').nth(1).is_some()
}
