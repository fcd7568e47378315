//! A step of the original Transformer: it learns to translate, with label smoothing.

use super::{Lesson, SEED, Sizes, Train, check_memory, random_tokens};
use crate::error::Error;
use attentive_model::Builder;
use attentive_model::families::encoder_decoder::EncoderDecoder;
use attentive_model::families::transformer::{Batch, Transformer, TransformerConfig};
use attentive_tensor::{Backend, Parameter, Tape, Var};
use std::sync::Arc;

const SMOOTHING: f32 = 0.1;
/// Positions that every model has, and more where sequences are longer.
const POSITIONS: usize = 1024;

/// A Transformer and pairs of random tokens.
pub(super) struct Translation {
    model: Transformer,
    batch: Batch,
}

impl Translation {
    pub(super) fn new(train: &Train, sizes: Sizes, backend: &Arc<dyn Backend>) -> Result<Translation, Error> {
        let config = config(train, sizes)?;
        check_memory(needed(&config, sizes))?;
        // None of the tokens is the start token.
        let tokens = |number, length| random_tokens(number, length, 1, config.vocab_size);
        let pair = |i| (tokens(2 * i, sizes.source), tokens(2 * i + 1, sizes.target));
        let pairs: Vec<_> = (0..sizes.batch).map(pair).collect();
        Ok(Translation {
            model: Transformer::new(&Builder::random(backend, SEED), &config)?,
            batch: Batch::new(&**backend, &pairs, config.start as i32),
        })
    }
}

impl Lesson for Translation {
    fn parameters(&self) -> &[Parameter] {
        self.model.parameters()
    }

    fn tokens(&self) -> usize {
        self.batch.tokens()
    }

    fn loss(&self, tape: &Tape) -> Result<Var, Error> {
        Ok(self.model.loss(tape, &self.batch, SMOOTHING))
    }
}

/// The model: every token of the vocabulary is a class, there is no padding.
fn config(train: &Train, sizes: Sizes) -> Result<TransformerConfig, Error> {
    let (name, vocab, _) = train.preset();
    let preset = TransformerConfig::preset(name, train.vocab.unwrap_or(vocab))?;
    let config = TransformerConfig {
        d_model: train.d_model.unwrap_or(preset.d_model),
        h: train.heads.unwrap_or(preset.h),
        d_ff: train.d_ff.unwrap_or(preset.d_ff),
        encoder_layers: train.layers.unwrap_or(preset.encoder_layers),
        decoder_layers: train.layers.unwrap_or(preset.decoder_layers),
        dropout: train.dropout,
        max_positions: POSITIONS.max(sizes.source).max(sizes.target),
        pad: None,
        eos: 0,
        start: 0,
        ..preset
    };
    config.check()?;
    Ok(config)
}

/// Bytes of the weights with their gradients and moments, and of what the layers keep for the way back. It is less than is used in
/// the end, never more.
fn needed(config: &TransformerConfig, sizes: Sizes) -> f64 {
    let number = |size: usize| size as f64;
    let (d, d_ff) = (number(config.d_model), number(config.d_ff));
    let (encoders, decoders) = (number(config.encoder_layers), number(config.decoder_layers));
    let weights = number(config.vocab_size) * d
        + encoders * (4.0 * d * d + 2.0 * d * d_ff)
        + decoders * (8.0 * d * d + 2.0 * d * d_ff);
    let positions = 2.0 * number(config.max_positions) * d;
    let kept = number(sizes.batch)
        * (number(sizes.source) * encoders * (8.0 * d + d_ff)
            + number(sizes.target) * decoders * (12.0 * d + d_ff));
    // Each layer also has a dozen small tensors, whatever their size.
    4.0 * (4.0 * weights + positions + kept) + 4096.0 * (encoders + decoders)
}
