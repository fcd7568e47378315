//! HTML to HTML: sentences are translated whole, and inline tags follow the words that they were around.

use super::{Translation, Translator};
use crate::attention::Look;
use crate::error::Error;
use attentive_text::html::{Block, Document};

/// A document that was translated.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TranslatedHtml {
    /// The document.
    pub html: String,
    /// How many tokens were cut off because a sentence was too long.
    pub cut: usize,
}

impl Translator {
    /// Translates the text of a document and leaves its markup as it is; see [`attentive_text::html`]. What was pushed before
    /// must have been popped. `goes_on` is asked now and then, with the share of the document that is translated; none comes
    /// back if the answer is no.
    pub fn translate_html(
        &mut self,
        html: &str,
        mut goes_on: impl FnMut(f64) -> bool,
    ) -> Result<Option<TranslatedHtml>, Error> {
        let document = Document::parse(html);
        let blocks = document.blocks();
        // Tags are placed by alignment, whether or not somebody else wants to see it.
        let look = self.look.replace(Look::for_alignment(&self.generator.model().spec()));
        let lines = blocks.iter().map(Block::line);
        let translations = self.translate_while(lines, |done| goes_on(done as f64 / blocks.len() as f64));
        self.look = look;
        Ok(translations?.map(|translations| TranslatedHtml {
            html: render(&document, &translations),
            cut: translations.iter().map(|translation| translation.cut).sum(),
        }))
    }
}

fn render(document: &Document, translations: &[Translation]) -> String {
    let best = translations.iter().map(|translation| translation.best.first());
    document.render(best.map(|best| best.map_or(("", &[][..]), |best| (&best.text, &best.alignment))))
}
