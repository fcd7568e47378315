//! HTML to HTML: sentences are translated whole, and inline tags follow the words that they were around.

use super::languages::TargetLanguages;
use super::{Translated, Translation, Translator};
use crate::error::Error;
use attentive_generate::AttentionSelector;
use attentive_text::html::Document;

/// A document that was translated.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TranslatedHtml {
    /// The document.
    pub html: String,
    /// The best translation of each block of text, in the order of the document.
    pub blocks: Vec<Translated>,
}

impl Translator {
    /// Translates the text of a document into the language that `languages` wants, and leaves its markup as it is; see
    /// [`attentive_text::html`]. What was pushed before must have been popped. `goes_on` is asked now and then, with the share of the
    /// document that is translated; none comes back if the answer is no.
    pub fn translate_html(
        &mut self,
        html: &str,
        languages: &TargetLanguages,
        mut goes_on: impl FnMut(f64) -> bool,
    ) -> Result<Option<TranslatedHtml>, Error> {
        let document = Document::parse(html);
        let blocks = document.blocks();
        let lines = blocks.iter().map(|block| Ok(languages.prepare(&block.line())?.into_owned()));
        let lines = lines.collect::<Result<Vec<String>, Error>>()?;
        // Tags are placed by alignment, even if the caller does not want alignments.
        let selector =
            self.selector.replace(AttentionSelector::for_alignment(&self.generator.model().spec()));
        let translations = self.translate_while(lines, |done| goes_on(done as f64 / blocks.len() as f64));
        self.selector = selector;
        Ok(translations?.map(|translations| {
            let best = |translation: Translation| translation.best.into_iter().next().unwrap_or_default();
            let blocks: Vec<Translated> = translations.into_iter().map(best).collect();
            let html = document.render(blocks.iter().map(|block| (&*block.text, &*block.alignment)));
            TranslatedHtml { html, blocks }
        }))
    }
}
