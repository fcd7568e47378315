//! A document as a translator sees it: text, inline tags, what is placed whole, and what ends a sentence.

use super::elements::{ends, is_block, is_opaque, is_void, may_lack_end};
use super::tokens::{Kind, Open, Token};
use std::ops::Range;

/// A token, or all tokens of an element that stays as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Item {
    pub kind: ItemKind,
    pub span: Range<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ItemKind {
    Text(String),
    /// The start tag of an inline element.
    Open(String),
    /// The end tag of an inline element.
    Close(String),
    /// Markup that stands in a sentence and stays whole: comments, images, code.
    Point,
    /// A line break in the middle of a sentence: a point that parts words.
    LineBreak,
    /// Markup that ends a sentence.
    Break,
}

/// Makes items of tokens.
pub(super) fn items(tokens: Vec<Token>) -> Vec<Item> {
    let mut items = Vec::with_capacity(tokens.len());
    let mut next = 0;
    let mut last_character = None;
    while next < tokens.len() {
        let end = match &tokens[next].kind {
            Kind::Open(open) if !open.is_empty && (open.refuses || is_opaque(&open.name)) => {
                end_of_element(&tokens, next, &open.name)
            }
            _ => next + 1,
        };
        let token = &tokens[next];
        let kind = match &token.kind {
            Kind::Text(text) => {
                last_character = text.trim_end().chars().next_back().or(last_character);
                ItemKind::Text(text.clone())
            }
            Kind::Open(open) if open.name == "br" => line_break(last_character, &tokens[end..]),
            Kind::Open(open) if is_block(&open.name) => ItemKind::Break,
            Kind::Open(open) if open.is_empty || end > next + 1 || is_opaque(&open.name) => ItemKind::Point,
            Kind::Open(open) => ItemKind::Open(open.name.clone()),
            Kind::Close(name) if is_block(name) => ItemKind::Break,
            Kind::Close(name) if is_void(name) => ItemKind::Point,
            Kind::Close(name) => ItemKind::Close(name.clone()),
            Kind::Other => ItemKind::Point,
        };
        if kind == ItemKind::Break {
            last_character = None;
        }
        items.push(Item { kind, span: token.span.start..tokens[end - 1].span.end });
        next = end;
    }
    items
}

/// Behind the last token of the element that the token at `start` opens. One that is never closed goes on to the end of the
/// document, unless it is one whose end tag may be left out.
fn end_of_element(tokens: &[Token], start: usize, name: &str) -> usize {
    let may_lack_end = may_lack_end(name);
    // The elements that are open inside it.
    let mut inside: Vec<&str> = Vec::new();
    for (place, token) in tokens.iter().enumerate().skip(start + 1) {
        match &token.kind {
            Kind::Open(Open { name: other, .. }) if inside.is_empty() && ends(other, name) => return place,
            Kind::Open(open) if !open.is_empty && (may_lack_end || open.name == name) => {
                inside.push(&open.name);
            }
            Kind::Close(other) => match inside.iter().rposition(|open| open == other) {
                Some(depth) => inside.truncate(depth),
                None if other == name => return place + 1,
                // What closes an element around this one closes this one.
                None if may_lack_end && is_block(other) => return place,
                None => {}
            },
            _ => {}
        }
    }
    tokens.len()
}

/// A line break ends a sentence, unless the sentence plainly goes on behind it: the text before it ends without a full
/// stop, and the text behind it begins with a small letter.
fn line_break(before: Option<char>, behind: &[Token]) -> ItemKind {
    let ends = before.is_none_or(|last| ".!?:;…。！？".contains(last));
    let first = || {
        for token in behind {
            match &token.kind {
                Kind::Text(text) if !text.trim().is_empty() => return text.trim_start().chars().next(),
                Kind::Open(open) if is_block(&open.name) || open.name == "br" => return None,
                Kind::Close(name) if is_block(name) => return None,
                _ => {}
            }
        }
        None
    };
    if !ends && first().is_some_and(char::is_lowercase) { ItemKind::LineBreak } else { ItemKind::Break }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::tokens::tokens;

    /// Each item as its bytes: `|` before what ends a sentence, `*` before what stays whole.
    fn told(html: &str) -> Vec<String> {
        let item = |item: Item| {
            let source = &html[item.span];
            match item.kind {
                ItemKind::Point | ItemKind::LineBreak => format!("*{source}"),
                ItemKind::Break => format!("|{source}"),
                _ => source.to_owned(),
            }
        };
        items(tokens(html)).into_iter().map(item).collect()
    }

    #[test]
    fn blocks_end_sentences_and_inline_elements_do_not() {
        assert_eq!(told("<P>a <B>b</B></P>"), ["|<P>", "a ", "<B>", "b", "</B>", "|</P>"]);
        assert_eq!(told("a<my-own>b</my-own><hr>"), ["a", "<my-own>", "b", "</my-own>", "|<hr>"]);
    }

    #[test]
    fn what_is_no_prose_stays_whole() {
        assert_eq!(told("a <code>x <b>y</b></code> b"), ["a ", "*<code>x <b>y</b></code>", " b"]);
        assert_eq!(told("<pre>a\n b</pre>c"), ["|<pre>a\n b</pre>", "c"]);
        assert_eq!(told("<i translate=no>a<i>b</i>c</i>d"), ["*<i translate=no>a<i>b</i>c</i>", "d"]);
        assert_eq!(
            told("a<script>'</b>'</script><!-- c -->b"),
            ["a", "*<script>'</b>'</script>", "*<!-- c -->", "b"]
        );
        assert_eq!(told("<code>a"), ["*<code>a"]);
        assert_eq!(told("<img alt='a'><x/><wbr>"), ["*<img alt='a'>", "*<x/>", "*<wbr>"]);
    }

    #[test]
    fn an_element_without_its_end_tag_ends_where_browsers_end_it() {
        assert_eq!(told("<p translate=no>a <b>b</b><p>c"), ["|<p translate=no>a <b>b</b>", "|<p>", "c"]);
        assert_eq!(told("<ul><li translate=no>a</ul>b"), ["|<ul>", "|<li translate=no>a", "|</ul>", "b"]);
    }

    #[test]
    fn a_line_break_ends_a_sentence_unless_it_plainly_goes_on() {
        assert_eq!(told("a man in a<br>blue shirt"), ["a man in a", "*<br>", "blue shirt"]);
        assert_eq!(told("One<br>Two"), ["One", "|<br>", "Two"]);
        assert_eq!(told("One.<br>two"), ["One.", "|<br>", "two"]);
        assert_eq!(told("one<br><br>two"), ["one", "|<br>", "|<br>", "two"]);
        assert_eq!(told("one<br> <b>two</b>"), ["one", "*<br>", " ", "<b>", "two", "</b>"]);
    }
}
