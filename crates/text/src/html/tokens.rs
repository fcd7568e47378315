//! HTML as tags, text and the rest, each with the bytes of the source that it is.
//!
//! html5gum reads by the rules of the standard. Its tokens have exact spans; what it drops (`<p` at the end of a document)
//! is a token of its own here, so that the tokens always join to the document.

use super::elements::is_void;
use html5gum::{DefaultEmitter, StartTag, State, Tokenizer};
use std::ops::Range;

/// A piece of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    pub kind: Kind,
    pub span: Range<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// Text, with the characters that entities stand for.
    Text(String),
    /// A start tag.
    Open(Open),
    /// An end tag, with its name in lower case.
    Close(String),
    /// A comment, a doctype, or what browsers ignore.
    Other,
}

/// What matters of a start tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Open {
    /// In lower case.
    pub name: String,
    /// Whether the element has neither content nor end tag. XHTML's `<x/>` has none either.
    pub is_empty: bool,
    /// Whether it asks not to be translated.
    pub refuses: bool,
}

/// Cuts a document into tokens.
pub(super) fn tokens(html: &str) -> Vec<Token> {
    let mut reader = Tokenizer::new_with_emitter(html, DefaultEmitter::<usize>::new_with_span());
    let mut tokens = Tokens { html, list: Vec::new(), end: 0 };
    // How deep we are in SVG or MathML, where `<style>` and `<script>` are elements like others.
    let mut foreign = 0usize;
    while let Some(Ok(token)) = reader.next() {
        match token {
            html5gum::Token::StartTag(tag) => {
                let open = open(&tag);
                let is_foreign = matches!(&open.name[..], "svg" | "math") && !open.is_empty;
                foreign += usize::from(is_foreign);
                if let Some(state) = content_of(&open.name).filter(|_| foreign == 0) {
                    reader.set_state(state);
                }
                tokens.push(Kind::Open(open), tag.span.start..tag.span.end);
            }
            html5gum::Token::EndTag(tag) => {
                let name = lossy(&tag.name);
                foreign = foreign.saturating_sub(usize::from(matches!(&name[..], "svg" | "math")));
                tokens.push(Kind::Close(name), tag.span.start..tag.span.end);
            }
            html5gum::Token::String(text) => {
                // In the content of `<script>` and its like the span begins too early.
                let span = text.span.start.max(tokens.end)..text.span.end;
                let characters = with_line_ends(lossy(&text.value), &html[span.clone()]);
                tokens.push(Kind::Text(characters), span);
            }
            html5gum::Token::Comment(comment) => {
                tokens.push(Kind::Other, comment.span.start..comment.span.end)
            }
            html5gum::Token::Doctype(doctype) => {
                tokens.push(Kind::Other, doctype.span.start..doctype.span.end)
            }
            html5gum::Token::Error(_) => {}
        }
    }
    tokens.finish()
}

struct Tokens<'a> {
    html: &'a str,
    list: Vec<Token>,
    /// Where the last token ends.
    end: usize,
}

impl Tokens<'_> {
    fn push(&mut self, kind: Kind, span: Range<usize>) {
        self.cover(span.start);
        self.end = span.end;
        self.list.push(Token { kind, span });
    }

    /// Makes a token of what html5gum dropped before this position.
    fn cover(&mut self, until: usize) {
        if until > self.end {
            self.list.push(Token { kind: Kind::Other, span: self.end..until });
            self.end = until;
        }
    }

    fn finish(mut self) -> Vec<Token> {
        self.cover(self.html.len());
        self.list
    }
}

fn open(tag: &StartTag<usize>) -> Open {
    let name = lossy(&tag.name);
    let attribute = |name: &[u8]| tag.attributes.get(name).map(|value| lossy(&value.value));
    let says_no = attribute(b"translate").is_some_and(|value| value.trim().eq_ignore_ascii_case("no"));
    // Google's way to say it, older than the attribute.
    let class_says_no = attribute(b"class")
        .is_some_and(|classes| classes.split_ascii_whitespace().any(|class| class == "notranslate"));
    Open { is_empty: is_void(&name) || tag.self_closing, refuses: says_no || class_says_no, name }
}

/// How the content of an element is read, if `<` begins no tag in it.
fn content_of(name: &str) -> Option<State> {
    match name {
        "script" => Some(State::ScriptData),
        "iframe" | "noembed" | "noframes" | "style" | "xmp" => Some(State::RawText),
        "textarea" | "title" => Some(State::RcData),
        "plaintext" => Some(State::PlainText),
        _ => None,
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The standard reads every line end as a line feed; white space is to stay as it was.
fn with_line_ends(text: String, source: &str) -> String {
    if source.contains("\r\n") { text.replace('\n', "\r\n") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(html: &str) -> Vec<String> {
        let text = |token: Token| if let Kind::Text(text) = token.kind { Some(text) } else { None };
        tokens(html).into_iter().filter_map(text).collect()
    }

    #[test]
    fn tokens_join_to_the_document_whatever_it_is() {
        let bits = [
            "a",
            " ",
            "\r\n",
            "\r",
            "<b>",
            "</b>",
            "<b x='>'>",
            "<i a=\"q\">",
            "<!-- c -->",
            "<!--",
            "-->",
            "<",
            ">",
            "</",
            "&amp;",
            "&",
            "&#x41;",
            "ä",
            "日",
            "<script>",
            "</script>",
            "<title>",
            "</title>",
            "<style>",
            "</style>",
            "</>",
            "<?x?>",
            "<!DOCTYPE html>",
            "<br/>",
            "<![CDATA[",
            "]]>",
            "\0",
            "\"",
            "<b",
            "<svg>",
            "</svg>",
            "</b x=1>",
            "<plaintext>",
            "<textarea>",
            "</textarea>",
        ];
        let mut random = crate::html::random::Random(1);
        for _ in 0..5_000 {
            let html: String = (0..random.below(9)).map(|_| bits[random.below(bits.len())]).collect();
            let mut end = 0;
            for token in tokens(&html) {
                assert_eq!(token.span.start, end, "{html:?}");
                end = token.span.end;
                let source = &html[token.span];
                match token.kind {
                    Kind::Open(_) | Kind::Close(_) => {
                        assert!(source.starts_with('<') && source.ends_with('>'), "{source:?} in {html:?}");
                    }
                    Kind::Text(_) => assert!(!source.is_empty(), "{html:?}"),
                    Kind::Other => {}
                }
            }
            assert_eq!(end, html.len(), "{html:?}");
        }
    }

    #[test]
    fn entities_are_read_as_characters() {
        assert_eq!(texts("a &lt;b&gt; &amp;amp; &eacute;&#233;&#xe9;&nbsp;"), ["a <b> &amp; ééé\u{a0}"]);
        assert_eq!(texts("AT&T &unknown; 1 < 2"), ["AT&T &unknown; 1 < 2"]);
        assert_eq!(texts("<title>a &amp; <b></title>"), ["a & <b>"]);
    }

    #[test]
    fn line_ends_stay_as_they_were() {
        assert_eq!(texts("a\r\nb &amp; c\r\n"), ["a\r\nb & c\r\n"]);
        assert_eq!(texts("a\nb"), ["a\nb"]);
    }

    #[test]
    fn a_script_ends_at_its_end_tag_only() {
        assert_eq!(texts("<script>if (a<b) '</b>'</script>x"), ["if (a<b) '</b>'", "x"]);
        assert_eq!(texts("<svg><style/></svg>x"), ["x"]);
    }

    #[test]
    fn who_refuses_to_be_translated_is_known() {
        for (html, refuses) in [
            ("<b translate=no>", true),
            ("<b TRANSLATE='No'>", true),
            ("<b translate>", false),
            ("<b translate=yes>", false),
            ("<b class='x notranslate'>", true),
            ("<b class='notranslated'>", false),
            ("<b title='translate=no'>", false),
        ] {
            let Kind::Open(open) = &tokens(html)[0].kind else { panic!("{html}") };
            assert_eq!(open.refuses, refuses, "{html}");
        }
    }
}
