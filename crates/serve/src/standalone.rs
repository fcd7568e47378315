//! A page with the attention of one sentence, in one file that needs no server: the modules of the page are in it as they are.

use crate::Token;
use crate::attention::{Attention, Vectors};
use crate::hidden::Hidden;
use crate::page::FILES;
use attentive_generate::Sizes;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::fmt::Write;

const TEMPLATE: &str = include_str!("page/inspect.html");
const BEGIN: &str = include_str!("page/inspect.js");

/// What the page draws.
#[derive(Serialize)]
struct Data<'a> {
    attention: &'a Attention,
    details: Value,
    vectors: &'a [Vectors],
    hidden: &'a [Hidden],
}

/// The page of a model of these sizes. Heads are followed step by step where their `vectors` are there, and steps show their `hidden`
/// states.
pub fn standalone(attention: &Attention, sizes: &Sizes, vectors: &[Vectors], hidden: &[Hidden]) -> String {
    let details = json!({
        "d_model": sizes.d_model,
        "h": sizes.h,
        "decoder_h": sizes.decoder_h,
        "d_ff": sizes.d_ff,
        "encoder_layers": sizes.encoder_layers,
        "decoder_layers": sizes.decoder_layers,
        "parameters": sizes.parameters,
    });
    let data = Data { attention, details, vectors, hidden };
    let [source, target] = [&attention.source, &attention.target].map(|tokens| words(tokens));
    let title = if target.is_empty() { source } else { format!("{source} → {target}") };
    let style: String =
        FILES.iter().filter(|file| file.name.ends_with(".css")).map(|file| file.text).collect();
    let own = [("inspect.js", BEGIN)];
    let modules =
        FILES.iter().map(|file| (file.name, file.text)).chain(own).filter(|(name, _)| name.ends_with(".js"));
    // Each module is an address of its own; what they call each other leads there.
    let address =
        |(name, text): (&str, &str)| (name.to_owned(), Value::from(data_url(&text.replace("\"./", "\""))));
    let modules: Map<String, Value> = modules.map(address).collect();
    let part = |name: &str| match name {
        "title" => escape(&title),
        "style" => style.clone(),
        "modules" => json!({ "imports": modules }).to_string(),
        "whole" | "attention" | "steps" => section(name).to_owned(),
        // Whatever begins with it: nothing in a script can be taken for the end of one.
        _ => serde_json::to_string(&data).unwrap_or_default().replace('<', "\\u003c"),
    };
    // In one pass, so that nothing that was put in is looked at again.
    let mut page = String::new();
    let mut rest = TEMPLATE;
    while let Some((before, (name, behind))) =
        rest.split_once('{').and_then(|(a, b)| Some((a, b.split_once('}')?)))
    {
        page.push_str(before);
        page.push_str(&part(name));
        rest = behind;
    }
    page.push_str(rest);
    page
}

/// The text of tokens. WordPiece marks what goes on with a word, the others mark what begins one.
fn words(tokens: &[Token]) -> String {
    let is_wordpiece = tokens.iter().any(|token| token.piece == "[CLS]" || token.piece.starts_with("##"));
    let mut text = String::new();
    for token in tokens.iter().filter(|token| token.word.is_some()) {
        match token.piece.strip_prefix("##") {
            Some(more) if is_wordpiece => text.push_str(more),
            None if is_wordpiece => text.extend([" ", &token.piece]),
            _ => text.push_str(&token.piece.replace('▁', " ")),
        }
    }
    with_whole_characters(text.trim())
}

/// A text in which bytes of characters that several tokens share, as `<0xE4>`, are these characters.
fn with_whole_characters(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let byte = rest.strip_prefix("<0x").filter(|digits| digits.as_bytes().get(2) == Some(&b'>'));
        match byte.and_then(|digits| u8::from_str_radix(digits.get(..2)?, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &rest["<0x00>".len()..];
            }
            None => {
                bytes.extend(next.to_string().bytes());
                rest = &rest[next.len_utf8()..];
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A part of the page.
fn section(id: &str) -> &'static str {
    let page = FILES[0].text;
    let begin = page.find(&format!("<section id=\"{id}\"")).unwrap_or(0);
    let end = page[begin..].find("</section>").map_or(page.len(), |end| begin + end + "</section>".len());
    &page[begin..end]
}

/// A script as an address that is the script.
fn data_url(script: &str) -> String {
    let mut url = "data:text/javascript;charset=utf-8,".to_owned();
    for byte in script.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.!~*'()".contains(&byte) {
            url.push(char::from(byte));
        } else {
            let _ = write!(url, "%{byte:02X}");
        }
    }
    url
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attention::Kind;
    use crate::picture::tests::small;

    #[test]
    fn characters_of_several_tokens_are_whole_in_the_text() {
        assert_eq!(with_whole_characters("a <0xE4><0xB8><0x96> é"), "a 世 é");
        assert_eq!(with_whole_characters("<0xE4> <0xé0> <0x1> <0x"), "\u{FFFD} <0xé0> <0x1> <0x");
    }

    #[test]
    fn a_page_of_its_own_has_everything_in_it_and_no_text_breaks_out() {
        let mut attention = small(Kind::Cross);
        attention.source[0].piece = "</script><b>{data}".to_owned();
        let sizes = Sizes {
            d_model: 4,
            h: 1,
            decoder_h: 1,
            d_ff: 8,
            encoder_layers: 1,
            decoder_layers: 1,
            parameters: 9,
        };
        let page = standalone(&attention, &sizes, &[], &[]);
        assert_eq!(page.matches("</script>").count(), 3);
        assert!(page.contains("\\u003c/script>\\u003cb>{data}"));
        assert!(page.contains("id=\"grid\"") && page.contains("\"attention.js\":\"data:text/javascript"));
        assert!(!page.contains("{steps}") && !page.contains("src="));
        assert!(
            ["whole", "attention", "steps"].iter().all(|id| page.contains(&format!("<section id=\"{id}\"")))
        );
    }
}
