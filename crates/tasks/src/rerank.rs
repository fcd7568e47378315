//! How well texts fit a query, by a cross-encoder: a model with one class that reads query and text together.

use crate::classify::Classifier;
use crate::encoder::{Encoder, Texts};
use crate::error::Error;
use crate::pooling::json;
use crate::probabilities::sigmoid;
use attentive_tensor::{Backend, Form};
use attentive_text::tokenizer::Input;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

/// Scores texts for a query.
#[derive(Debug)]
pub struct Reranker {
    classifier: Classifier,
    /// Whether a score is the number itself, and not its sigmoid.
    raw: bool,
}

const CONFIG: &str = "config.json";

impl Reranker {
    /// Reads the model of a folder. A score is what sentence-transformers gives: the sigmoid of the model's number, or what
    /// `config.json` asks for instead.
    pub fn open(backend: &Arc<dyn Backend>, folder: &Path, form: Form) -> Result<Reranker, Error> {
        let raw = match json(&folder.join(CONFIG))? {
            Some(config) => {
                is_raw(&config).map_err(|problem| Error::Format { path: folder.join(CONFIG), problem })?
            }
            None => false,
        };
        Reranker::new(Classifier::open(backend, folder, form)?, raw)
    }

    fn new(classifier: Classifier, raw: bool) -> Result<Reranker, Error> {
        match classifier.labels().len() {
            1 => Ok(Reranker { classifier, raw }),
            labels => Err(Error::NotOneClass { path: classifier.encoder().folder().to_owned(), labels }),
        }
    }

    /// The same with its encoder changed.
    pub fn with_encoder(self, change: impl FnOnce(Encoder) -> Encoder) -> Reranker {
        Reranker { classifier: self.classifier.with_encoder(change), ..self }
    }

    /// The same with scores that are the model's numbers themselves.
    pub fn with_raw_scores(self) -> Reranker {
        Reranker { raw: true, ..self }
    }

    /// The model and its tokenizer.
    pub fn encoder(&self) -> &Encoder {
        self.classifier.encoder()
    }

    /// The score of each text, the higher the better it fits the query.
    pub fn scores(&self, query: &str, texts: &[&str]) -> Result<(Texts, Vec<f32>), Error> {
        let inputs: Vec<Input> = texts.iter().map(|text| Input::Pair(query, text)).collect();
        let read = self.encoder().read(&inputs)?;
        let scores = self.logits(&read)?.iter().map(|logits| self.score(logits[0])).collect();
        Ok((read, scores))
    }

    /// The number of each pair of query and text, alone in a list.
    pub fn logits(&self, texts: &Texts) -> Result<Vec<Vec<f32>>, Error> {
        self.classifier.logits(texts)
    }

    /// The score that a number is.
    pub fn score(&self, logit: f32) -> f32 {
        if self.raw { logit } else { sigmoid(logit) }
    }
}

/// Whether a `config.json` asks for the model's numbers as they are, in the words of new or of old versions of sentence-transformers.
fn is_raw(config: &Value) -> Result<bool, String> {
    let new = &config["sentence_transformers"]["activation_fn"];
    let function = if new.is_null() { &config["sbert_ce_default_activation_function"] } else { new };
    let Some(name) = function.as_str() else { return Ok(false) };
    match name.rsplit('.').next() {
        Some("Identity") => Ok(true),
        Some("Sigmoid") => Ok(false),
        _ => Err(format!("scores by `{name}` are not supported; Sigmoid and Identity are")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_function_of_scores_is_read_in_both_spellings() {
        assert_eq!(is_raw(&json!({})), Ok(false));
        let identity = "torch.nn.modules.linear.Identity";
        assert_eq!(is_raw(&json!({"sbert_ce_default_activation_function": identity})), Ok(true));
        assert_eq!(is_raw(&json!({"sentence_transformers": {"activation_fn": identity}})), Ok(true));
        let sigmoid = "torch.nn.modules.activation.Sigmoid";
        assert_eq!(is_raw(&json!({"sentence_transformers": {"activation_fn": sigmoid}})), Ok(false));
        assert!(is_raw(&json!({"sbert_ce_default_activation_function": "torch.nn.Tanh"})).is_err());
    }
}
