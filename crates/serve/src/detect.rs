//! The language of the texts of a request.

use crate::app::App;
use crate::document::Format;
use crate::languages::Language;
use crate::model::Model;
use crate::refusal::Refusal;
use attentive_text::html::{Block, Document};
use attentive_text::language::detect_among;
use serde::Serialize;

/// How much of texts is looked at: more would tell nothing new.
const ENOUGH: usize = 4096;

/// A language that was detected, in LibreTranslate's words.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Detected {
    /// From 0 to 100.
    pub confidence: f32,
    pub language: String,
}

impl Detected {
    /// What a detector says of a language with this code.
    pub fn new(language: &str, confidence: f32) -> Detected {
        Detected { confidence: (confidence * 100.0).round(), language: language.to_owned() }
    }
}

/// The beginning of texts, without the markup of documents.
pub(crate) fn sample(format: Format, texts: &[impl AsRef<str>]) -> String {
    let mut sample = String::new();
    for text in texts {
        if sample.len() >= ENOUGH {
            break;
        }
        let text = text.as_ref();
        match format {
            Format::Text => sample.push_str(beginning(text, ENOUGH)),
            Format::Html => {
                // Where markup is cut off, it is read as far as it goes.
                let document = Document::parse(beginning(text, 4 * ENOUGH));
                let lines: Vec<String> = document.blocks().iter().map(Block::line).collect();
                sample.push_str(&lines.join("\n"));
            }
        }
        sample.push('\n');
    }
    sample
}

/// The first bytes of a text, as many as are whole characters.
fn beginning(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

impl App {
    /// The language of texts that are to be translated into `target`: one of the languages from which the model `name`, or without a
    /// name any model, translates into it. None if no model says which these are. If the texts tell nothing, the first of them with
    /// confidence 0.
    pub fn detect_source(
        &self,
        name: Option<&str>,
        target: &str,
        format: Format,
        texts: &[String],
    ) -> Result<Option<Detected>, Refusal> {
        let models = self.models()?.iter().filter_map(Model::translation);
        let is_asked = |asked: &str, own: &str| {
            asked == own || asked.rsplit_once(':').is_some_and(|(asked, _)| asked == own)
        };
        let models = models.filter(|model| name.is_none_or(|asked| is_asked(asked, &model.name)));
        let mut sources: Vec<&Language> = Vec::new();
        for languages in models.map(|model| &model.languages) {
            let own = languages.sources.iter();
            let able = own.filter(|source| languages.translate(Some(&source.code), Some(target)));
            let new = able.filter(|source| sources.iter().all(|known| known.code != source.code));
            sources.extend(new.collect::<Vec<_>>());
        }
        let codes: Vec<&str> = sources.iter().map(|source| &*source.code).collect();
        let Some(first) = codes.first() else { return Ok(None) };
        let found = detect_among(&sample(format, texts), &codes);
        let found = found.and_then(|found| {
            let own = sources.iter().find(|source| source.is(found.code))?;
            Some(Detected::new(&own.code, found.confidence))
        });
        Ok(Some(found.unwrap_or_else(|| Detected::new(first, 0.0))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_no_language_and_long_texts_are_looked_at_in_part() {
        let html = "<p class=\"Überschrift der Seite\">A <b>dog</b> runs.</p><script>var hund;</script>";
        assert_eq!(sample(Format::Html, &[html]).trim(), "A dog runs.");
        assert_eq!(sample(Format::Text, &["<b>"]), "<b>\n");
        let long = "é".repeat(ENOUGH);
        let sample = sample(Format::Text, &[&long, &long]);
        assert!(sample.len() <= ENOUGH + 1, "{}", sample.len());
    }
}
