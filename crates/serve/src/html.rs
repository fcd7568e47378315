//! HTML whose text is translated and whose tags stay as they are.
//!
//! Each run of text between two tags is translated for itself. Space around it stays, and so do comments, scripts, styles,
//! code, and what says `translate="no"`. It is no parser of HTML: what it does not understand it leaves alone.

/// HTML in pieces: they join to the whole again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    /// Tags, comments, space: what stays.
    Markup(&'a str),
    /// What is to be translated.
    Text(&'a str),
}

/// Elements whose content is no prose.
const OPAQUE: [&str; 6] = ["script", "style", "code", "pre", "textarea", "svg"];

/// Those of them in which a `<` begins no tag but their end.
const RAW: [&str; 3] = ["script", "style", "textarea"];

/// Elements that have no end.
const EMPTY: [&str; 14] = [
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr",
    "param",
];

/// Cuts HTML into pieces.
pub(crate) fn pieces(html: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = html;
    // The element inside which nothing is translated, and how deep inside it we are in others of its name.
    let mut opaque: Option<(String, usize)> = None;
    while !rest.is_empty() {
        let inside = opaque.as_ref().map(|(name, _)| name.as_str()).filter(|name| RAW.contains(name));
        let (piece, tail) = rest.split_at(inside.map_or_else(|| next(rest), |name| raw(rest, name)));
        rest = tail;
        let tag = Tag::read(piece);
        match (&mut opaque, tag) {
            (Some((name, depth)), Some(tag)) if tag.name == *name => match tag.closes {
                true if *depth == 0 => opaque = None,
                true => *depth -= 1,
                false if !tag.is_empty => *depth += 1,
                false => {}
            },
            (None, Some(tag)) if tag.is_opaque && !tag.closes && !tag.is_empty => {
                opaque = Some((tag.name, 0))
            }
            _ => {}
        }
        if opaque.is_some() || piece.starts_with('<') {
            pieces.push(Piece::Markup(piece));
            continue;
        }
        let text = piece.trim();
        let start = piece.len() - piece.trim_start().len();
        let around =
            [Piece::Markup(&piece[..start]), Piece::Text(text), Piece::Markup(&piece[start + text.len()..])];
        let is_something = |piece: &Piece| !matches!(piece, Piece::Markup("") | Piece::Text(""));
        pieces.extend(around.into_iter().filter(is_something));
    }
    pieces
}

/// How long the first tag, comment or run of text is.
fn next(html: &str) -> usize {
    if let Some(comment) = html.strip_prefix("<!--") {
        return comment.find("-->").map_or(html.len(), |end| 4 + end + 3);
    }
    if !is_tag(html) {
        // A `<` that begins no tag is text.
        let begin = html.char_indices().skip(1).find(|(at, c)| *c == '<' && is_tag(&html[*at..]));
        return begin.map_or(html.len(), |(at, _)| at);
    }
    // A `>` inside quotes ends no tag.
    let mut quote = None;
    for (at, character) in html.char_indices() {
        match (quote, character) {
            (None, '>') => return at + 1,
            (None, '"' | '\'') => quote = Some(character),
            (Some(open), _) if open == character => quote = None,
            _ => {}
        }
    }
    html.len()
}

/// How long the content of an element is in which nothing but its end is a tag; at its end, how long that is.
fn raw(html: &str, name: &str) -> usize {
    let ends =
        |at: usize| html.get(at + 2..at + 2 + name.len()).is_some_and(|end| end.eq_ignore_ascii_case(name));
    match html.match_indices("</").map(|(at, _)| at).find(|at| ends(*at)) {
        Some(0) => next(html),
        Some(at) => at,
        None => html.len(),
    }
}

fn is_tag(html: &str) -> bool {
    let mut characters = html.chars();
    characters.next() == Some('<')
        && characters.next().is_some_and(|c| c.is_ascii_alphabetic() || "/!?".contains(c))
}

struct Tag {
    name: String,
    closes: bool,
    is_empty: bool,
    is_opaque: bool,
}

impl Tag {
    fn read(piece: &str) -> Option<Tag> {
        let inner = piece.strip_prefix('<')?;
        let closes = inner.starts_with('/');
        let inner = inner.trim_start_matches('/');
        let end = inner.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(inner.len());
        let name = inner[..end].to_ascii_lowercase();
        if name.is_empty() {
            return None;
        }
        let attributes = inner[end..].to_ascii_lowercase().replace(['"', '\''], "");
        let says_no =
            attributes.split_whitespace().any(|word| word.trim_end_matches(['>', '/']) == "translate=no");
        let is_opaque = OPAQUE.contains(&&*name) || says_no;
        let is_empty = EMPTY.contains(&&*name) || piece.ends_with("/>");
        Some(Tag { name, closes, is_empty, is_opaque })
    }
}

/// The characters that entities stand for.
const ENTITIES: [(&str, &str); 6] =
    [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&nbsp;", "\u{a0}"), ("&amp;", "&")];

/// The text that HTML means.
pub(crate) fn unescape(html: &str) -> String {
    // The ampersand last: what it makes is no entity.
    ENTITIES.iter().fold(html.to_owned(), |text, (entity, character)| text.replace(entity, character))
}

/// The HTML that means a text.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(html: &str) -> Vec<&str> {
        let pieces = pieces(html);
        let all: String = pieces.iter().map(|(Piece::Markup(text) | Piece::Text(text))| *text).collect();
        assert_eq!(all, html);
        pieces
            .into_iter()
            .filter_map(|piece| if let Piece::Text(text) = piece { Some(text) } else { None })
            .collect()
    }

    #[test]
    fn only_text_between_tags_is_text() {
        assert_eq!(texts("<p>One <b>two</b>\n three</p>"), ["One", "two", "three"]);
        assert_eq!(texts("plain"), ["plain"]);
        assert_eq!(texts("<a title=\"a > b\" href='x'>link</a>"), ["link"]);
        assert_eq!(texts("a <!-- b <i>c</i> --> d"), ["a", "d"]);
        assert_eq!(texts("1 < 2 and 3<4"), ["1 < 2 and 3<4"]);
        assert_eq!(texts(""), [""; 0]);
        assert_eq!(texts(" <br/> "), [""; 0]);
        assert_eq!(texts("<p"), [""; 0]);
        assert_eq!(texts("<!-- never closed"), [""; 0]);
        assert_eq!(texts("ä<b>ö</b>ü<"), ["ä", "ö", "ü<"]);
    }

    #[test]
    fn what_is_no_prose_stays() {
        assert_eq!(texts("a <script>if (a<b) c();</script> b"), ["a", "b"]);
        assert_eq!(texts("<CODE>x</CODE> y <style>p{}</style>z"), ["y", "z"]);
        assert_eq!(texts("a <span translate=\"no\">b <span>c</span> d</span> e"), ["a", "e"]);
        assert_eq!(texts("<script>'</b>' + '<script>'</SCRIPT>a"), ["a"]);
        assert_eq!(texts("<pre>a"), [""; 0]);
        assert_eq!(texts("<style>a</sty"), [""; 0]);
    }

    #[test]
    fn entities_come_back_as_they_must() {
        assert_eq!(unescape("a &lt;b&gt; &amp;amp; c"), "a <b> &amp; c");
        assert_eq!(escape(&unescape("x &amp; y &lt; z")), "x &amp; y &lt; z");
    }
}
