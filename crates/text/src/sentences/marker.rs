//! What stands before the first sentence of a line and is no part of it: the bullet of a list, a heading's or a quotation's mark.

/// The marks that a line begins with, with the white space behind them: `- `, `1) `, `## `, `> * `. A number with a dot is none,
/// because it may belong to the sentence: `5. Mai`. (A sentence does not end behind such a number either; see `before.rs`.)
///
/// ```
/// assert_eq!(attentive_text::sentences::marker("- A dog runs."), "- ");
/// ```
pub fn marker(line: &str) -> &str {
    let mut rest = line;
    while let Some(behind) = behind_mark(rest) {
        rest = behind;
    }
    // A row of marks is a text of its own, such as a horizontal rule.
    if rest.contains(char::is_alphanumeric) { &line[..line.len() - rest.len()] } else { "" }
}

/// What follows a mark and the white space that it must have behind it.
fn behind_mark(text: &str) -> Option<&str> {
    let (mark, _) = text.split_once(char::is_whitespace)?;
    let is_bullet = matches!(mark, "-" | "*" | "+" | "•" | "‣" | "▪" | "◦" | "·" | "–" | "—" | ">");
    let is_heading = mark.len() <= 6 && mark.bytes().all(|byte| byte == b'#') && !mark.is_empty();
    let is_counted = mark.strip_suffix(')').is_some_and(|count| {
        let is_number = count.len() <= 3 && count.bytes().all(|byte| byte.is_ascii_digit());
        !count.is_empty() && (is_number || count.len() == 1 && count.as_bytes()[0].is_ascii_alphabetic())
    });
    (is_bullet || is_heading || is_counted).then(|| text[mark.len()..].trim_start())
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
            ("5. Mai", ""),
            ("- - -", ""),
            ("-", ""),
            ("", ""),
            ("(a) one", ""),
            ("x2) one", ""),
            ("####### seven", ""),
            ("#tag is one", ""),
        ] {
            assert_eq!(marker(line), expected, "{line:?}");
        }
    }
}
