//! A step of a model with an encoder and a decoder: it learns to write a target.

use super::{Lesson, SEED, Sizes, Train, check_memory, random_tokens};
use crate::error::Error;
use attentive_model::Builder;
use attentive_model::families::encoder_decoder::{Batch, EncoderDecoder, Outline};
use attentive_model::families::t5::{T5, T5Config};
use attentive_model::families::transformer::{Transformer, TransformerConfig};
use attentive_model::layers::FeedForwardKind;
use attentive_tensor::{Activation, Backend, Parameter, Tape, Var};
use std::sync::Arc;

/// Label smoothing of the original Transformer; the others have none.
const SMOOTHING: f32 = 0.1;
/// Positions that every model has, and more where sequences are longer.
const POSITIONS: usize = 1024;

/// A model and pairs of random tokens.
pub(super) struct Pairs<M> {
    model: M,
    batch: Batch,
    smoothing: f32,
}

impl Pairs<Transformer> {
    /// The original Transformer.
    pub(super) fn transformer(
        train: &Train,
        sizes: Sizes,
        backend: &Arc<dyn Backend>,
    ) -> Result<Self, Error> {
        let config = transformer(train, sizes)?;
        Pairs::new(&config.outline(), sizes, SMOOTHING, backend, |builder| Transformer::new(builder, &config))
    }

    /// BART.
    pub(super) fn bart(train: &Train, sizes: Sizes, backend: &Arc<dyn Backend>) -> Result<Self, Error> {
        let config = bart(train, sizes)?;
        Pairs::new(&config.outline(), sizes, 0.0, backend, |builder| Transformer::new(builder, &config))
    }
}

impl Pairs<T5> {
    /// T5 1.0.
    pub(super) fn t5(train: &Train, sizes: Sizes, backend: &Arc<dyn Backend>) -> Result<Self, Error> {
        let config = t5(train)?;
        Pairs::new(&config.outline(), sizes, 0.0, backend, |builder| T5::new(builder, &config))
    }
}

impl<M: EncoderDecoder> Pairs<M> {
    fn new(
        outline: &Outline,
        sizes: Sizes,
        smoothing: f32,
        backend: &Arc<dyn Backend>,
        model: impl FnOnce(&Builder) -> Result<M, attentive_model::Error>,
    ) -> Result<Self, Error> {
        check_memory(needed(outline, sizes))?;
        // None of the tokens is special, as far as the vocabulary allows.
        let first = outline.start.max(outline.eos) + 1;
        let first = if first < outline.source_vocabulary { first } else { 1 };
        let tokens = |number, length| random_tokens(number, length, first, outline.target_vocabulary);
        let pair = |i| (tokens(2 * i, sizes.source), tokens(2 * i + 1, sizes.target));
        let pairs: Vec<_> = (0..sizes.batch).map(pair).collect();
        Ok(Pairs {
            model: model(&Builder::random(backend, SEED))?,
            batch: Batch::new(&**backend, &pairs, outline.start as i32),
            smoothing,
        })
    }
}

impl<M: EncoderDecoder> Lesson for Pairs<M> {
    fn parameters(&self) -> &[Parameter] {
        self.model.parameters()
    }

    fn tokens(&self) -> usize {
        self.batch.tokens()
    }

    fn loss(&self, tape: &Tape) -> Result<Var, Error> {
        Ok(self.model.loss(tape, &self.batch, self.smoothing))
    }
}

/// The model: every token of the vocabulary is a class, there is no padding.
fn transformer(train: &Train, sizes: Sizes) -> Result<TransformerConfig, Error> {
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

fn bart(train: &Train, sizes: Sizes) -> Result<TransformerConfig, Error> {
    let (name, vocab, _) = train.preset();
    let preset = TransformerConfig::bart(name, train.vocab.unwrap_or(vocab))?;
    let d_model = train.d_model.unwrap_or(preset.d_model);
    let config = TransformerConfig {
        d_model,
        h: train.heads_of(d_model, preset.h),
        d_ff: train.d_ff.unwrap_or(4 * d_model),
        encoder_layers: train.layers.unwrap_or(preset.encoder_layers),
        decoder_layers: train.layers.unwrap_or(preset.decoder_layers),
        dropout: train.dropout,
        max_positions: preset.max_positions.max(sizes.source).max(sizes.target),
        ..preset
    };
    config.check()?;
    Ok(config)
}

/// T5 1.0: no gates, the network four times as wide as the model, and the table of the embeddings as the output.
fn t5(train: &Train) -> Result<T5Config, Error> {
    let (name, vocab, _) = train.preset();
    let preset = T5Config::preset(name, train.vocab.unwrap_or(vocab))?;
    let d_model = train.d_model.unwrap_or(preset.d_model);
    let h = train.heads_of(d_model, preset.h);
    let config = T5Config {
        d_model,
        h,
        d_kv: if train.d_model.is_some() { (d_model / h.max(1)).max(1) } else { preset.d_kv },
        d_ff: train.d_ff.unwrap_or(4 * d_model),
        encoder_layers: train.layers.unwrap_or(preset.encoder_layers),
        decoder_layers: train.layers.unwrap_or(preset.decoder_layers),
        feed_forward: FeedForwardKind::Plain,
        activation: Activation::Relu,
        tied_output: true,
        scaled_output: true,
        dropout: train.dropout,
        ..preset
    };
    config.check()?;
    Ok(config)
}

/// Bytes of the weights with their gradients and moments, and of what the layers keep for the backward pass. It is less than is used in
/// the end, never more.
fn needed(model: &Outline, sizes: Sizes) -> f64 {
    let number = |size: usize| size as f64;
    let (d, d_ff) = (number(model.d_model), number(model.d_ff));
    let (encoders, decoders) = (number(model.encoder_layers), number(model.decoder_layers));
    let weights = number(model.target_vocabulary) * d
        + encoders * (4.0 * d * d + 2.0 * d * d_ff)
        + decoders * (8.0 * d * d + 2.0 * d * d_ff);
    let kept = number(sizes.batch)
        * (number(sizes.source) * encoders * (8.0 * d + d_ff)
            + number(sizes.target) * decoders * (12.0 * d + d_ff));
    // Each layer also has a dozen small tensors, whatever their size.
    4.0 * (4.0 * weights + kept) + 4096.0 * (encoders + decoders)
}
