//! What the elements of HTML are to a translator, by name.

/// Headings of all ranks.
const HEADINGS: [&str; 6] = ["h1", "h2", "h3", "h4", "h5", "h6"];

/// Elements that end a sentence, beside headings: those that browsers set apart from the text around them. All others, unknown
/// ones included, are inline.
const BLOCKS: [&str; 62] = [
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
    // A paragraph is ended by nearly every block; these are the usual ones, beside headings.
    ("p", &["blockquote", "div", "dl", "form", "hr", "ol", "p", "pre", "section", "table", "ul"]),
];

pub(super) fn is_block(name: &str) -> bool {
    BLOCKS.contains(&name) || HEADINGS.contains(&name)
}

pub(super) fn is_opaque(name: &str) -> bool {
    OPAQUE.contains(&name)
}

pub(super) fn is_void(name: &str) -> bool {
    VOID.contains(&name)
}

/// Whether the end tag of an element may be left out.
pub(super) fn may_lack_end(name: &str) -> bool {
    ENDED_BY.iter().any(|(ended, _)| *ended == name)
}

/// Whether an element ends another, whose end tag was left out, by its own beginning.
pub(super) fn ends(name: &str, other: &str) -> bool {
    let is_listed = ENDED_BY.iter().any(|(ended, by)| *ended == other && by.contains(&name));
    is_listed || other == "p" && HEADINGS.contains(&name)
}
