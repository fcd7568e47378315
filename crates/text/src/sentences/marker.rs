//! What stands before the first sentence of a line and is no part of it: the bullet of a list, a heading's or a quotation's mark.

use super::language::Language;
use super::next::Next;

/// The marks that a line begins with, with the white space behind them: `- `, `1. `, `(a) `, `## `, `> * `. In a language whose ordinals
/// have a full stop, as German has them, a number with one is no mark: it may belong to the sentence (`5. Mai`).
///
/// ```
/// assert_eq!(attentive_text::sentences::marker("- A dog runs.", Some("en")), "- ");
/// ```
pub fn marker<'a>(line: &'a str, language: Option<&str>) -> &'a str {
    let language = Language::of(language);
    let mut rest = line;
    while let Some(behind) = behind_mark(rest, language) {
        rest = behind;
    }
    // A row of marks is a text of its own, such as a horizontal rule.
    if rest.contains(char::is_alphanumeric) { &line[..line.len() - rest.len()] } else { "" }
}

/// What follows a mark and the white space that it must have behind it.
fn behind_mark<'a>(text: &'a str, language: &Language) -> Option<&'a str> {
    let (mark, behind) = text.split_once(char::is_whitespace)?;
    let is_bullet = matches!(mark, "-" | "*" | "+" | "•" | "‣" | "▪" | "◦" | "·" | "–" | "—" | ">");
    let is_heading = mark.len() <= 6 && mark.bytes().all(|byte| byte == b'#') && !mark.is_empty();
    let is_number =
        |count: &str| (1..=3).contains(&count.len()) && count.bytes().all(|byte| byte.is_ascii_digit());
    let is_letter = |count: &str| count.len() == 1 && count.as_bytes()[0].is_ascii_alphabetic();
    let is_bracketed = mark.strip_suffix(')').is_some_and(|count| {
        let count = count.strip_prefix('(').unwrap_or(count);
        is_number(count) || is_letter(count)
    });
    let next = || Next::read(behind).and_then(|next| next.plain_word());
    let is_dotted = mark.strip_suffix('.').is_some_and(is_number) && !language.has_ordinal_before(next());
    (is_bullet || is_heading || is_bracketed || is_dotted).then(|| text[mark.len()..].trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_told_from_words() {
        for (line, expected) in [
            ("- A dog.", "- "),
            ("•\u{a0}A dog.", "•\u{a0}"),
            ("> * 12) b)  A dog.", "> * 12) b)  "),
            ("### A heading", "### "),
            ("– Bonjour !", "– "),
            ("-5 degrees", ""),
            ("- - -", ""),
            ("-", ""),
            ("", ""),
            ("(a) one", "(a) "),
            ("2. One dog.", "2. "),
            ("1984. A novel.", ""),
            ("x2) one", ""),
            ("####### seven", ""),
            ("#tag is one", ""),
        ] {
            assert_eq!(marker(line, Some("en")), expected, "{line:?}");
        }
        assert_eq!(marker("5. Mai", Some("de")), "");
    }
}
