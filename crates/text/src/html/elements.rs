//! What the elements of HTML are to a translator, by name.

/// Elements that end a sentence: those that browsers set apart from the text around them. All others, unknown ones
/// included, are inline.
const BLOCKS: [&str; 68] = [
    "address",
    "article",
    "aside",
    "audio",
    "blockquote",
    "body",
    "canvas",
    "caption",
    "center",
    "col",
    "colgroup",
    "datalist",
    "dd",
    "details",
    "dialog",
    "dir",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "frame",
    "frameset",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "head",
    "header",
    "hgroup",
    "hr",
    "html",
    "legend",
    "li",
    "listing",
    "main",
    "menu",
    "nav",
    "noframes",
    "noscript",
    "object",
    "ol",
    "optgroup",
    "option",
    "p",
    "plaintext",
    "pre",
    "search",
    "section",
    "select",
    "summary",
    "table",
    "tbody",
    "td",
    "template",
    "tfoot",
    "th",
    "thead",
    "title",
    "tr",
    "ul",
    "video",
    "xmp",
];

/// Elements whose content is no prose: it stays as it is.
const OPAQUE: [&str; 16] = [
    "code",
    "iframe",
    "kbd",
    "listing",
    "math",
    "noembed",
    "noframes",
    "plaintext",
    "pre",
    "samp",
    "script",
    "style",
    "svg",
    "textarea",
    "var",
    "xmp",
];

/// Elements that have no content and no end tag.
const VOID: [&str; 15] = [
    "area", "base", "br", "col", "embed", "frame", "hr", "img", "input", "link", "meta", "param", "source",
    "track", "wbr",
];

/// Elements whose end tag may be left out, with those that then end them by their own beginning.
const ENDED_BY: [(&str, &[&str]); 9] = [
    ("dd", &["dd", "dt"]),
    ("dt", &["dd", "dt"]),
    ("li", &["li"]),
    ("optgroup", &["optgroup"]),
    ("option", &["optgroup", "option"]),
    ("td", &["tbody", "td", "tfoot", "th", "tr"]),
    ("th", &["tbody", "td", "tfoot", "th", "tr"]),
    ("tr", &["tbody", "tfoot", "tr"]),
    // A paragraph is ended by nearly every block; these are the usual ones.
    (
        "p",
        &[
            "blockquote",
            "div",
            "dl",
            "form",
            "h1",
            "h2",
            "h3",
            "h4",
            "h5",
            "h6",
            "hr",
            "ol",
            "p",
            "pre",
            "section",
            "table",
            "ul",
        ],
    ),
];

pub(super) fn is_block(name: &str) -> bool {
    BLOCKS.contains(&name)
}

pub(super) fn is_opaque(name: &str) -> bool {
    OPAQUE.contains(&name)
}

pub(super) fn is_void(name: &str) -> bool {
    VOID.contains(&name)
}

/// The elements that end one of this name whose end tag was left out; none if it cannot be left out.
pub(super) fn ended_by(name: &str) -> Option<&'static [&'static str]> {
    ENDED_BY.iter().find(|(ended, _)| *ended == name).map(|(_, by)| *by)
}
