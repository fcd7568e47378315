//! Validation by translating, or by writing whatever targets are: BLEU, chrF, ROUGE, and a few texts to look at.

use crate::tasks::{Judgement, Ranks};
use crate::{Error, Sample};
use attentive_generate::{EncoderDecoderSteps, Generator, Options};
use attentive_model::families::encoder_decoder::EncoderDecoder;
use attentive_tensor::Backend;
use attentive_text::score::{self, Segments, rouge};
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
    /// How the model is asked.
    pub(super) options: Options,
    /// Whether ROUGE is counted, too.
    pub(super) rouge: bool,
}

impl Translations {
    /// How many lines are needed, to be scored and to be shown.
    pub(super) fn lines(scored: usize) -> usize {
        scored.max(SAMPLES)
    }

    /// Collective: translates, and adds what comes of it to a judgement.
    pub(super) fn judge(
        &self,
        backend: &Arc<dyn Backend>,
        model: &impl EncoderDecoder,
        ranks: &Ranks,
        judgement: Judgement,
    ) -> Result<Judgement, Error> {
        let lines: Vec<&Line> = self.lines.iter().collect();
        let translations = ranks.share(&lines, |mine| self.translate(backend, model, mine))?;
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
        let scores = Segments::new(&hypotheses, &[&references])?.count(score::Options::default()).scores();
        let rouge = self.rouge.then(|| rouge(&hypotheses, &[&references])).transpose()?;
        Ok(Judgement {
            bleu: Some(scores.bleu),
            chrf: Some(scores.chrf),
            rouge: rouge.map(|scores| scores.rouge_l.f1),
            samples,
            ..judgement
        })
    }

    fn translate(
        &self,
        backend: &Arc<dyn Backend>,
        model: &impl EncoderDecoder,
        lines: &[&Line],
    ) -> Result<Vec<String>, Error> {
        let options = Options { batch: BATCH, scores: false, sampling: None, ..self.options.clone() };
        let mut generator = Generator::new(EncoderDecoderSteps::new(backend, model), options)?;
        let sources = lines.iter().map(|line| line.tokens.clone());
        let texts = generator.generate(sources).map(|hypotheses| {
            let hypotheses = hypotheses?;
            let best = hypotheses.first().map_or(&[][..], |best| best.content());
            Ok(self.tokenizer.decode(best)?)
        });
        texts.collect()
    }
}
