//! Texts, or pairs of texts, to labels.

use crate::encoder::{Encoder, Texts};
use crate::error::Error;
use crate::probabilities::{greatest, sigmoid, softmax};
use attentive_model::families::bert::{Problem, Task};
use attentive_tensor::{Backend, Form};
use attentive_text::tokenizer::Input;
use std::path::Path;
use std::sync::Arc;

/// Tells the class of a text.
#[derive(Debug)]
pub struct Classifier {
    encoder: Encoder,
}

/// All labels with their scores, the best first: probabilities, or of a regression the number itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Classified {
    /// A label and its score.
    pub scores: Vec<(String, f32)>,
}

impl Classifier {
    /// Reads the model of a folder.
    pub fn open(backend: &Arc<dyn Backend>, folder: &Path, form: Form) -> Result<Classifier, Error> {
        Encoder::must_be(folder, "classify", Task::SequenceClassification)?;
        Ok(Classifier { encoder: Encoder::open(backend, folder, Task::SequenceClassification, form)? })
    }

    /// The task of a model that is there already, and that has the head for it.
    pub fn new(encoder: Encoder) -> Classifier {
        Classifier { encoder }
    }

    /// The same with its encoder changed.
    pub fn with_encoder(self, change: impl FnOnce(Encoder) -> Encoder) -> Classifier {
        Classifier { encoder: change(self.encoder) }
    }

    /// The model and its tokenizer.
    pub fn encoder(&self) -> &Encoder {
        &self.encoder
    }

    /// The classes of texts or of pairs.
    pub fn classify(&self, inputs: &[Input]) -> Result<(Texts, Vec<Classified>), Error> {
        let texts = self.encoder.read(inputs)?;
        let classified = self.classes(&texts)?;
        Ok((texts, classified))
    }

    /// The classes of texts that were read.
    pub fn classes(&self, texts: &Texts) -> Result<Vec<Classified>, Error> {
        let logits = self.logits(texts)?;
        Ok(logits.iter().map(|logits| self.ranked(&self.scores(logits))).collect())
    }

    /// What the model says of each class of each text, before it becomes a score.
    pub fn logits(&self, texts: &Texts) -> Result<Vec<Vec<f32>>, Error> {
        self.encoder.answer(texts, |tape, _, batch, hidden| {
            let logits = self.encoder.model().logits(tape, hidden, &batch.sequences)?;
            let width = logits.shape().cols();
            Ok(self.encoder.download(&logits).chunks_exact(width).map(<[f32]>::to_vec).collect())
        })
    }

    /// The scores of the classes of a text: probabilities, or of a regression the numbers themselves.
    pub fn scores(&self, logits: &[f32]) -> Vec<f32> {
        scores(self.encoder.model().config().problem(), logits)
    }

    /// Numbers of the classes of a text with their labels, the greatest first.
    pub fn ranked(&self, scores: &[f32]) -> Classified {
        ranked(self.labels(), scores)
    }

    /// The labels, in the order of the model.
    pub fn labels(&self) -> &[String] {
        &self.encoder.model().config().labels
    }
}

/// What becomes of the logits of some classes: probabilities, or of a regression the numbers themselves.
pub(crate) fn scores(problem: Problem, logits: &[f32]) -> Vec<f32> {
    match problem {
        Problem::SingleLabel => softmax(logits),
        Problem::MultiLabel => logits.iter().map(|&logit| sigmoid(logit)).collect(),
        Problem::Regression => logits.to_vec(),
    }
}

/// Numbers of classes with their labels, the greatest first.
pub(crate) fn ranked(labels: &[String], scores: &[f32]) -> Classified {
    let order = greatest(scores, scores.len());
    Classified { scores: order.into_iter().map(|i| (labels[i].clone(), scores[i])).collect() }
}
