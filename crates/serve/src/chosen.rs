//! The translation model that a request is for.

use crate::aside::aside;
use crate::detect::sample;
use crate::document::Format;
use crate::languages::{Choice, Language};
use crate::model::TranslationModel;
use crate::refusal::Refusal;
use attentive_generate::Options;
use attentive_tasks::{Cut, Split, named_language};
use attentive_text::language::detect_among;
use std::sync::Arc;

/// A translation model that a request is for.
#[derive(Debug, Clone)]
pub(crate) struct Chosen {
    /// Its place among all.
    pub place: usize,
    pub model: Arc<TranslationModel>,
    /// From which of its languages, if a request says so and there are several.
    pub source: Option<Language>,
    /// Into which of its languages, where there are several.
    pub target: Option<Language>,
}

impl Chosen {
    /// How the model wants to be decoded for the languages.
    pub fn options(&self) -> Options {
        self.model.options_for(self.source.as_ref(), self.target.as_ref())
    }

    /// The same for texts of which no request says the language, of a model that reads several: the one that they are in.
    pub fn for_texts(self, format: Format, texts: &[impl AsRef<str>]) -> Chosen {
        let languages = &self.model.languages;
        if self.source.is_some() || languages.choice != Choice::Spoken {
            return self;
        }
        let target = self.target.as_ref();
        let is_able = |source: &&Language| target.is_none_or(|target| languages.has_pair(source, target));
        let able: Vec<&Language> = languages.sources.iter().filter(is_able).collect();
        let codes: Vec<&str> = able.iter().map(|source| &*source.code).collect();
        let found = detect_among(&sample(format, texts), &codes);
        let source = found.and_then(|found| able.into_iter().find(|source| source.is(found.code))).cloned();
        Chosen { source, ..self }
    }

    /// Cuts a text into what the model reads at once, each part with its language.
    pub fn cut(&self, text: &str, split: Split) -> Result<Cut, Refusal> {
        let languages = &self.model.languages;
        let unknown = |code: &&str| {
            languages.choice == Choice::Token && languages.targets.iter().all(|own| own.token != **code)
        };
        if let Some(code) = text.lines().filter_map(named_language).find(unknown) {
            let problem = format!(
                "a line begins with >>{code}<<, but the model does not translate into this language; its languages are {}",
                languages.target_codes()
            );
            return Err(Refusal::field("text", problem));
        }
        let (source, target) = (self.source.as_ref(), self.target.as_ref());
        let before = self.model.before_line(source, target);
        Ok(self.model.codec_for(source).cut(text, &before, split)?)
    }

    /// The same, away from the threads that answer connections.
    pub async fn cut_aside(&self, text: &str, split: Split) -> Result<Cut, Refusal> {
        let (chosen, text) = (self.clone(), text.to_owned());
        aside(move || chosen.cut(&text, split)).await
    }
}
