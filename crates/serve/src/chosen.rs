//! The translation model that a request is for.

use crate::aside::aside;
use crate::languages::Language;
use crate::model::TranslationModel;
use crate::refusal::Refusal;
use attentive_tasks::{Cut, Split, named_language};
use std::sync::Arc;

/// A translation model that a request is for.
#[derive(Debug, Clone)]
pub(crate) struct Chosen {
    /// Its place among all.
    pub place: usize,
    pub model: Arc<TranslationModel>,
    /// Into which of its languages, where there are several.
    pub target: Option<Language>,
}

impl Chosen {
    /// Cuts a text into what the model reads at once, each part with its language.
    pub fn cut(&self, text: &str, split: Split) -> Result<Cut, Refusal> {
        let languages = &self.model.languages;
        let unknown = |code: &&str| {
            languages.are_chosen_by_token && languages.targets.iter().all(|own| own.token != **code)
        };
        if let Some(code) = text.lines().filter_map(named_language).find(unknown) {
            let problem = format!(
                "a line begins with >>{code}<<, but the model does not translate into this language; its languages are {}",
                languages.codes()
            );
            return Err(Refusal::field("text", problem));
        }
        let language = self.model.language_token(self.target.as_ref());
        Ok(self.model.codec.cut(text, &language, split)?)
    }

    /// The same, away from the threads that answer connections.
    pub async fn cut_aside(&self, text: &str, split: Split) -> Result<Cut, Refusal> {
        let (chosen, text) = (self.clone(), text.to_owned());
        aside(move || chosen.cut(&text, split)).await
    }
}
