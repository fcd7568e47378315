//! The trained model at work: translations, and where it looks.

use crate::error::Error;
use attentive_generate::{
    AttentionKind, AttentionMatrix, AttentionSelector, EncoderDecoderSteps, Generator, MaxLength, Options,
};
use attentive_model::families::encoder_decoder::EncoderDecoder;
use attentive_model::families::transformer::Transformer;
use attentive_text::tokenizer::{Side, Tokenizer};
use attentive_train::Settings;
use std::path::Path;

/// Sentences that are decoded together.
const BATCH: usize = 128;

/// No number needs more, and what an untrained model writes has no end of its own.
const LONGEST: MaxLength = MaxLength::SourceAnd(16);

/// A model with its tokenizer.
pub(super) struct Translator {
    model: Transformer,
    generator: Generator,
    tokenizer: Tokenizer,
}

/// Where a head looked while a translation was written.
pub(super) struct Looked {
    /// The pieces of the source.
    pub read: Vec<String>,
    /// The pieces of the translation.
    pub written: Vec<String>,
    /// How much each piece that was written looked at each that was read.
    pub weights: AttentionMatrix,
    /// Counted from 0.
    pub layer: usize,
    /// Counted from 0.
    pub head: usize,
}

impl Translator {
    /// Loads a folder, for the device that the settings want.
    pub(super) fn load(folder: &Path, settings: &Settings) -> Result<Translator, Error> {
        let backend = settings.backend().map_err(attentive_train::Error::from)?;
        let model = Transformer::load_packed(&backend, folder)?;
        let options = Options { batch: BATCH, max_length: LONGEST, ..Options::greedy() };
        let generator = Generator::new(EncoderDecoderSteps::new(&backend, &model), options)?;
        Ok(Translator { model, generator, tokenizer: Tokenizer::load(folder)?.special_tokens_as_text() })
    }

    /// How many numbers were learned.
    pub(super) fn parameters(&self) -> usize {
        self.model.parameter_count()
    }

    /// The translations of sources, in order.
    pub(super) fn translate<'a>(
        &mut self,
        sources: impl Iterator<Item = &'a str>,
    ) -> Result<Vec<String>, Error> {
        let tokens = sources.map(|source| self.tokenizer.encode(source, Side::Source));
        let tokens = tokens.collect::<Result<Vec<_>, _>>()?;
        let translated = self.generator.generate(tokens).map(|found| {
            let found = found?;
            Ok(self.tokenizer.decode(found.first().map_or(&[], |best| best.content()))?)
        });
        translated.collect()
    }

    /// Translates a source and shows where one head of the cross-attention looked.
    pub(super) fn look(&mut self, source: &str) -> Result<Looked, Error> {
        let read = self.tokenizer.encode(source, Side::Source)?;
        let found = self.generator.generate([read.clone()]).next().transpose()?.unwrap_or_default();
        let written = found.into_iter().next().map(|best| best.tokens).unwrap_or_default();
        let mut best: Option<(f32, usize, usize, AttentionMatrix)> = None;
        for layer in 0..self.model.config().decoder_layers {
            for head in 0..self.model.config().decoder_heads() {
                let selector = AttentionSelector { kind: AttentionKind::Cross, layer, head: Some(head) };
                let mut found = self.generator.model().attention(&[(&read, &written)], selector)?;
                let weights = found.swap_remove(0);
                let decided = spread(&weights);
                if best.as_ref().is_none_or(|(so_far, ..)| decided > *so_far) {
                    best = Some((decided, layer, head, weights));
                }
            }
        }
        let (_, layer, head, weights) = best.expect("a decoder has a layer, and an attention a head");
        let pieces = |ids: &[u32], side| ids.iter().map(|&id| self.label(id, side)).collect();
        Ok(Looked {
            read: pieces(&read, Side::Source),
            written: pieces(&written, Side::Target),
            weights,
            layer,
            head,
        })
    }

    /// A piece as it is read, without the mark that stands for a space.
    fn label(&self, id: u32, side: Side) -> String {
        let piece = self.tokenizer.piece(id, side).unwrap_or_default();
        piece.strip_prefix('▁').map_or(piece.clone(), str::to_owned)
    }
}

/// How much the weights are spread over different pieces: the sum over what was read of the most that any piece that was written
/// looked at it. A head that goes through the source, piece by piece, has the most of this.
fn spread(weights: &AttentionMatrix) -> f32 {
    let rows = weights.weights.len() / weights.keys.max(1);
    let most = |key: usize| (0..rows).map(|row| weights.row(row)[key]).fold(0.0, f32::max);
    (0..weights.keys).map(most).sum()
}
