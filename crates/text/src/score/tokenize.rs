//! How BLEU cuts a line into words: the tokenizers of sacreBLEU by their names.
//!
//! Each is a short list of rules that run over the line one after the other; `13a` and `intl` are those of
//! NIST's `mteval-v13a` and of its international variant. A rule that replaces pairs of characters takes them
//! from left to right without overlap, so a character is at most in one pair of a rule; the next rule sees
//! what this one wrote.

use std::borrow::Cow;
use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};

/// A tokenizer of sacreBLEU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Tokenize {
    /// NIST's `mteval-v13a`: the punctuation of ASCII stands alone. sacreBLEU's default.
    #[default]
    V13a,
    /// Punctuation and symbols of all scripts stand alone.
    International,
    /// Every character is a word.
    Character,
    /// White space alone separates words.
    Nothing,
}

impl Tokenize {
    /// All of them.
    pub const ALL: [Tokenize; 4] =
        [Tokenize::V13a, Tokenize::International, Tokenize::Character, Tokenize::Nothing];

    /// The name in signatures and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Tokenize::V13a => "13a",
            Tokenize::International => "intl",
            Tokenize::Character => "char",
            Tokenize::Nothing => "none",
        }
    }

    /// The line with spaces between its words.
    pub fn apply(self, line: &str) -> Cow<'_, str> {
        let line = line.trim_end_matches(is_space);
        match self {
            Tokenize::V13a => Cow::Owned(v13a(line)),
            Tokenize::International => Cow::Owned(international(line)),
            Tokenize::Character => Cow::Owned(line.chars().flat_map(|c| [c, ' ']).collect()),
            Tokenize::Nothing => Cow::Borrowed(line),
        }
    }
}

/// The words of a line between white space.
pub fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(is_space).filter(|word| !word.is_empty())
}

/// White space as Python sees it: Unicode's, and the four separators of ASCII.
pub(super) fn is_space(c: char) -> bool {
    match c {
        ' ' | '\t'..='\r' | '\x1c'..='\x1f' => true,
        _ => !c.is_ascii() && c.is_whitespace(),
    }
}

fn v13a(line: &str) -> String {
    let plain = unescaped(line);
    let mut text = String::with_capacity(plain.len() * 3 / 2);
    // The rules look at neighbours: at both ends there is a space.
    text.push(' ');
    alone(
        &plain,
        &mut text,
        |c| matches!(c, '{'..='~' | '['..='`' | ' '..='&' | '('..='+' | ':'..='@' | '/'),
    );
    text.push(' ');
    let stop = |c| matches!(c, '.' | ',');
    let digit = |c: char| c.is_ascii_digit();
    if text.contains(stop) {
        text = pairs(&text, |c| !digit(c), stop, Spaces::AroundSecond);
        text = pairs(&text, stop, |c| !digit(c), Spaces::AroundFirst);
    }
    if text.contains('-') {
        text = pairs(&text, digit, |c| c == '-', Spaces::AroundSecond);
    }
    text
}

/// Takes out what the files of NIST's campaigns had in their lines.
fn unescaped(line: &str) -> Cow<'_, str> {
    let mut line = Cow::Borrowed(line);
    // One after the other: what the second leaves behind is there for the third.
    let replacements = [("<skipped>", ""), ("&quot;", "\""), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">")];
    if line.contains(['&', '<']) {
        for (from, to) in replacements {
            if line.contains(from) {
                line = Cow::Owned(line.replace(from, to));
            }
        }
    }
    line
}

fn international(line: &str) -> String {
    use GeneralCategoryGroup::{Number, Punctuation, Symbol};
    let is = |group| move |c: char| c.general_category_group() == group;
    let isnt = |group| move |c: char| c.general_category_group() != group;
    let text = pairs(line, isnt(Number), is(Punctuation), Spaces::AroundSecond);
    let text = pairs(&text, is(Punctuation), isnt(Number), Spaces::AroundFirst);
    let mut out = String::with_capacity(text.len() * 3 / 2);
    alone(&text, &mut out, is(Symbol));
    out
}

/// Which character of a pair gets the spaces.
#[derive(Clone, Copy)]
enum Spaces {
    AroundFirst,
    AroundSecond,
}

/// Puts spaces around one of two neighbours wherever `first` holds for one and `second` for the next.
fn pairs(text: &str, first: impl Fn(char) -> bool, second: impl Fn(char) -> bool, spaces: Spaces) -> String {
    let mut out = String::with_capacity(text.len() * 3 / 2);
    let mut rest = text.chars();
    while let Some(a) = rest.next() {
        let next = rest.clone().next();
        match next.filter(|&b| first(a) && second(b)) {
            Some(b) => {
                let spaced = match spaces {
                    Spaces::AroundFirst => [' ', a, ' ', b],
                    Spaces::AroundSecond => [a, ' ', b, ' '],
                };
                out.extend(spaced);
                rest.next();
            }
            None => out.push(a),
        }
    }
    out
}

/// Puts spaces around every character for which `apart` holds.
fn alone(text: &str, out: &mut String, apart: impl Fn(char) -> bool) {
    for c in text.chars() {
        if apart(c) {
            out.extend([' ', c, ' ']);
        } else {
            out.push(c);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(tokenize: Tokenize, line: &str) -> String {
        words(&tokenize.apply(line)).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn thirteen_a_keeps_numbers_together_and_dashes_in_words() {
        let line = r#"It cost $1,234.50, i.e. 3-4 well-known "things"... .5 5."#;
        let expected = r#"It cost $ 1,234.50 , i . e . 3 - 4 well-known " things " . . . . 5 5 ."#;
        assert_eq!(tokens(Tokenize::V13a, line), expected);
    }

    #[test]
    fn thirteen_a_reads_escapes_in_their_order() {
        assert_eq!(tokens(Tokenize::V13a, "&quot;Hi&amp;lt; <skipped>x &apos;"), "\" Hi < x & apos ;");
    }

    #[test]
    fn international_knows_the_punctuation_of_every_script_and_leaves_it_beside_numbers() {
        let line = "“Ja”—日本語。5個 €6 5. x";
        assert_eq!(tokens(Tokenize::International, line), "“ Ja ” — 日本語 。 5個 € 6 5 . x");
        assert_eq!(tokens(Tokenize::International, "'5 or 5."), "'5 or 5.", "nothing stands beyond the ends");
    }

    #[test]
    fn characters_and_nothing() {
        assert_eq!(tokens(Tokenize::Character, " né 日本\u{3000}x "), "n é 日 本 x");
        assert_eq!(tokens(Tokenize::Nothing, "a,b\u{1c}c \u{85}d\u{a0}e"), "a,b c d e");
    }
}
