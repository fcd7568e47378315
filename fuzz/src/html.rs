//! HTML, with the words of each sentence translated to themselves in the opposite order.

use crate::Reader;
use attentive_text::html::{Document, Link};

pub(crate) fn html() -> Reader {
    Box::new(|input| {
        let html = String::from_utf8_lossy(input);
        let document = Document::parse(&html);
        assert_eq!(document.render([]), html, "what is not translated stays");
        let lines: Vec<String> = document.blocks().iter().map(|block| block.line()).collect();
        let turned: Vec<(String, Vec<Link>)> = lines
            .iter()
            .map(|line| {
                let words: Vec<&str> = line.split_whitespace().rev().collect();
                let links = (0..words.len()).map(|i| (i, words.len() - 1 - i)).collect();
                (words.join(" "), links)
            })
            .collect();
        let _ = document.render(turned.iter().map(|(text, links)| (&text[..], &links[..])));
        !lines.is_empty()
    })
}
