//! A model that reads texts and makes numbers of them: vectors, or scores of classes.

use crate::engine::Engine;
use crate::error::Error;
use attentive_tasks::{
    Answerer, Classifier, Embedder, Encoder, Kind, MaskFiller, Reranker, Tagged, Tagger, Texts, Vectors,
};
use attentive_tensor::Form;
use attentive_text::tokenizer::Encoding;
use std::path::Path;

/// An encoder. The threads that answer connections read texts with its tokenizer; only the thread that computes calls
/// [`EncoderModel::compute`].
pub(crate) struct EncoderModel {
    pub name: String,
    /// Whether its weights are in int8.
    pub int8: bool,
    /// What it is computed in, in the words of PyTorch.
    pub dtype: &'static str,
    pub task: Task,
}

/// What it does.
pub(crate) enum Task {
    Embed(Embedder),
    /// The layers below the head make vectors, too; both share their weights.
    FillMask(Box<MaskFiller>, Embedder),
    /// The same of the layers below this head.
    Answer(Box<Answerer>, Embedder),
    Classify(Classifier),
    Rerank(Reranker),
    Tag(Tagger),
}

impl EncoderModel {
    /// Reads the model of a folder, of which `kind` is known.
    pub(super) fn open(
        engine: &Engine,
        name: &str,
        folder: &Path,
        kind: Kind,
    ) -> Result<EncoderModel, Error> {
        let failed = |source| Error::Model { name: name.to_owned(), source: Box::new(source) };
        let int8 = engine.int8.unwrap_or(false);
        let form = if int8 { Form::Int8 } else { Form::Precise };
        let task = match kind {
            Kind::Embed => Task::Embed(Embedder::open(&engine.encoder, folder, form).map_err(failed)?),
            Kind::Answer => {
                let answerer = Answerer::open(&engine.encoder, folder, form).map_err(failed)?;
                let embedder = Embedder::with(answerer.encoder().clone()).map_err(failed)?;
                Task::Answer(Box::new(answerer), embedder)
            }
            Kind::FillMask => {
                let filler = MaskFiller::open(&engine.encoder, folder, form).map_err(failed)?;
                let embedder = Embedder::with(filler.encoder().clone()).map_err(failed)?;
                Task::FillMask(Box::new(filler), embedder)
            }
            Kind::Classify => {
                Task::Classify(Classifier::open(&engine.encoder, folder, form).map_err(failed)?)
            }
            Kind::Rerank => Task::Rerank(Reranker::open(&engine.encoder, folder, form).map_err(failed)?),
            Kind::Tag => Task::Tag(Tagger::open(&engine.encoder, folder, form).map_err(failed)?),
        };
        Ok(EncoderModel { name: name.to_owned(), int8, dtype: engine.dtype_of_encoders(), task })
    }

    /// The model and its tokenizer.
    pub fn encoder(&self) -> &Encoder {
        match &self.task {
            Task::Embed(embedder) | Task::FillMask(_, embedder) | Task::Answer(_, embedder) => {
                embedder.encoder()
            }
            Task::Classify(classifier) => classifier.encoder(),
            Task::Rerank(reranker) => reranker.encoder(),
            Task::Tag(tagger) => tagger.encoder(),
        }
    }

    /// What it does.
    pub fn kind(&self) -> Kind {
        match self.task {
            Task::Embed(_) => Kind::Embed,
            Task::FillMask(..) => Kind::FillMask,
            Task::Answer(..) => Kind::Answer,
            Task::Classify(_) => Kind::Classify,
            Task::Rerank(_) => Kind::Rerank,
            Task::Tag(_) => Kind::Tag,
        }
    }

    /// Whether it does this, also beside something else.
    pub fn can(&self, kind: Kind) -> bool {
        self.kind() == kind || kind == Kind::Embed && self.embedder().is_some()
    }

    /// What makes vectors, if it does.
    pub fn embedder(&self) -> Option<&Embedder> {
        match &self.task {
            Task::Embed(embedder) | Task::FillMask(_, embedder) | Task::Answer(_, embedder) => Some(embedder),
            Task::Classify(_) | Task::Rerank(_) | Task::Tag(_) => None,
        }
    }

    /// What fills masks, if it does.
    pub fn filler(&self) -> Option<&MaskFiller> {
        match &self.task {
            Task::FillMask(filler, _) => Some(filler.as_ref()),
            _ => None,
        }
    }

    /// What answers questions, if it does.
    pub fn answerer(&self) -> Option<&Answerer> {
        match &self.task {
            Task::Answer(answerer, _) => Some(answerer.as_ref()),
            _ => None,
        }
    }

    /// The names of its classes, or of the labels of words.
    pub fn labels(&self) -> Option<&[String]> {
        match &self.task {
            Task::Embed(_) | Task::FillMask(..) | Task::Answer(..) => None,
            Task::Rerank(reranker) => Some(&reranker.encoder().model().config().labels),
            Task::Classify(classifier) => Some(classifier.labels()),
            Task::Tag(tagger) => Some(tagger.labels()),
        }
    }

    /// The numbers of each text. `kind` says which, of a model that can do more than one thing:
    ///
    /// - embeddings: a vector that is not divided by its length;
    /// - classes: a logit for each; entities: a logit for each label of each word;
    /// - ranking: a logit for a query and a text;
    /// - masks: a logit for each token in the place of each mask;
    /// - answers: two logits for each token of a window.
    pub fn compute(&self, kind: Kind, texts: &Texts) -> Result<Vec<Vec<f32>>, attentive_tasks::Error> {
        match &self.task {
            Task::FillMask(filler, _) if kind == Kind::FillMask => filler.logits(texts),
            Task::Answer(answerer, _) if kind == Kind::Answer => answerer.logits(texts),
            Task::Embed(embedder) | Task::FillMask(_, embedder) | Task::Answer(_, embedder) => {
                Ok(embedder.pooled(texts)?.rows().map(<[f32]>::to_vec).collect())
            }
            Task::Classify(classifier) => classifier.logits(texts),
            Task::Rerank(reranker) => reranker.logits(texts),
            Task::Tag(tagger) => tagger.logits(texts),
        }
    }

    /// The vectors that clients get of those that were computed, divided by their lengths if `normalise` says so, or else if the
    /// folder of the model does.
    pub fn finished(&self, pooled: Vec<Vec<f32>>, normalise: Option<bool>) -> Vectors {
        let vectors = Vectors { width: self.encoder().model().config().d_model, numbers: pooled.concat() };
        let own = self.embedder().is_some_and(|embedder| embedder.pools().normalised);
        if normalise.unwrap_or(own) { vectors.normalised() } else { vectors }
    }

    /// The labels of a text, best first, with their scores, or with what was computed if `raw` says so.
    pub fn ranked(&self, logits: &[f32], raw: bool) -> Vec<(String, f32)> {
        match &self.task {
            Task::Classify(classifier) if raw => classifier.ranked(logits).scores,
            Task::Classify(classifier) => classifier.ranked(&classifier.scores(logits)).scores,
            _ => Vec::new(),
        }
    }

    /// The places of texts and how well they fit a query, the best first, by what was computed; by the model's own numbers if `raw`
    /// says so. Of texts that fit as well, the first comes first.
    pub fn by_rank(&self, logits: &[Vec<f32>], raw: bool) -> Vec<(usize, f32)> {
        let score = |logit: f32| match &self.task {
            Task::Rerank(reranker) if !raw => reranker.score(logit),
            _ => logit,
        };
        let mut ranks: Vec<(usize, f32)> = logits.iter().map(|logits| score(logits[0])).enumerate().collect();
        ranks.sort_by(|a, b| b.1.total_cmp(&a.1));
        ranks
    }

    /// The words of a text and its entities, by what was computed.
    pub fn tagged(&self, text: &Encoding, logits: &[f32]) -> Tagged {
        match &self.task {
            Task::Tag(tagger) => tagger.tagged(text, logits),
            _ => Tagged::default(),
        }
    }
}

impl std::fmt::Debug for EncoderModel {
    fn fmt(&self, formatter: &mut std::fmt::Formatter) -> std::fmt::Result {
        formatter.debug_struct("EncoderModel").field("name", &self.name).finish_non_exhaustive()
    }
}
