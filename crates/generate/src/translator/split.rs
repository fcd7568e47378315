//! Where a text can be cut: behind its sentences.

/// Closes a sentence together with what ends it.
const CLOSING: [char; 9] = ['"', '\'', '”', '’', '»', ')', ']', '」', '』'];

/// The sentences of a text, with the spaces behind them: they join to the text again. A sentence ends with one of `.!?…`
/// before a space, or with one of `。！？`.
pub(super) fn sentences(text: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    let mut start = 0;
    // Whether a sentence has ended, and then whether with a mark that needs no space behind it.
    let mut ended = None;
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        ended = match character {
            '。' | '！' | '？' => Some(true),
            '.' | '!' | '?' | '…' => Some(false),
            closing if CLOSING.contains(&closing) => ended,
            _ => None,
        };
        let Some((end, next)) = characters.peek().copied() else { break };
        let is_end = ended.is_some_and(|full| next.is_whitespace() || full && !CLOSING.contains(&next));
        if is_end && at >= start {
            let rest = &text[end..];
            let next = end + rest.len() - rest.trim_start().len();
            sentences.push(&text[start..next]);
            start = next;
        }
    }
    if start < text.len() {
        sentences.push(&text[start..]);
    }
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_end_with_a_mark_and_a_space() {
        let text = "One. Two (or 2.5)!  \"Three?\" she said… Four";
        assert_eq!(sentences(text), ["One. ", "Two (or 2.5)!  ", "\"Three?\" ", "she said… ", "Four"]);
        assert_eq!(sentences("一。二！」三"), ["一。", "二！」", "三"]);
        assert_eq!(sentences("no end"), ["no end"]);
        assert_eq!(sentences(""), [""; 0]);
        for text in [text, "a... b", "?!", " . ", "一。 二"] {
            assert_eq!(sentences(text).concat(), text);
        }
    }
}
