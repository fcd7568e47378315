//! Validation by translating: BLEU, chrF, and a few translations to look at.

use crate::tasks::Judgement;
use crate::{Error, Sample};
use attentive_generate::{EncoderDecoderSteps, Generator, Options};
use attentive_model::families::transformer::Transformer;
use attentive_tensor::Backend;
use attentive_text::score::{self, Segments};
use attentive_text::tokenizer::Tokenizer;
use std::sync::Arc;

/// How many translations are shown.
const SAMPLES: usize = 3;
/// Sentences that are decoded together.
const BATCH: usize = 64;

/// A pair with the tokens of its source.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) source: String,
    pub(super) reference: String,
    pub(super) tokens: Vec<u32>,
}

/// The pairs that are translated.
#[derive(Debug)]
pub(super) struct Translations {
    pub(super) lines: Vec<Line>,
    pub(super) tokenizer: Arc<Tokenizer>,
    /// Whether there are enough of them to be scored.
    pub(super) scored: bool,
    pub(super) beam: usize,
}

impl Translations {
    /// How many lines are needed, to be scored and to be shown.
    pub(super) fn lines(scored: usize) -> usize {
        scored.max(SAMPLES)
    }

    /// Translates, and adds what comes of it to a judgement.
    pub(super) fn judge(
        &self,
        backend: &Arc<dyn Backend>,
        model: &Transformer,
        judgement: Judgement,
    ) -> Result<Judgement, Error> {
        let translations = self.translate(backend, model)?;
        let sample = |i: usize| {
            let Line { source, reference, .. } = &self.lines[i];
            let translation = translations[i].clone();
            Sample { source: source.clone(), reference: reference.clone(), translation }
        };
        let shown = SAMPLES.min(self.lines.len());
        let samples = (0..shown).map(|i| sample(i * self.lines.len() / shown)).collect();
        if !self.scored {
            return Ok(Judgement { samples, ..judgement });
        }
        let hypotheses: Vec<&str> = translations.iter().map(String::as_str).collect();
        let references: Vec<&str> = self.lines.iter().map(|line| line.reference.as_str()).collect();
        let scores = Segments::new(&hypotheses, &[references])?.count(score::Options::default()).scores();
        Ok(Judgement { bleu: Some(scores.bleu), chrf: Some(scores.chrf), samples, ..judgement })
    }

    fn translate(&self, backend: &Arc<dyn Backend>, model: &Transformer) -> Result<Vec<String>, Error> {
        let options = Options { batch: BATCH, beam: self.beam, scores: false, ..Options::default() };
        let mut generator = Generator::new(EncoderDecoderSteps::new(backend, model), options)?;
        let sources = self.lines.iter().map(|line| line.tokens.clone());
        let texts = generator.generate(sources).map(|hypotheses| {
            let hypotheses = hypotheses?;
            let best = hypotheses.first().map_or(&[][..], |best| best.content());
            Ok(self.tokenizer.decode(best)?)
        });
        texts.collect()
    }
}
