//! The decoder: masked self-attention, attention to the encoder's memory, feed-forward.

use super::branches::{Branch, BranchCache};
use super::cache::{Cache, LayerCache, Seen, Step};
use super::{FeedForward, LayerNorm, MultiHeadAttention, MultiHeadConfig, Positions, Residual, StackConfig};
use crate::builder::Builder;
use crate::error::Error;
use crate::sequences::Sequences;
use attentive_tensor::{Span, Tape, Var};
use std::sync::Arc;

/// Masked self-attention, cross attention, feed-forward, each inside a residual connection.
#[derive(Debug, Clone)]
pub struct DecoderLayer {
    own: MultiHeadAttention,
    own_residual: Residual,
    cross: MultiHeadAttention,
    cross_residual: Residual,
    feed_forward: FeedForward,
    feed_forward_residual: Residual,
}

impl DecoderLayer {
    /// One layer of the stack; its self-attention is causal whatever `config.attention` says.
    pub fn new(builder: &Builder, config: &StackConfig) -> Result<DecoderLayer, Error> {
        let causal = MultiHeadConfig { causal: true, ..config.attention };
        let cross = MultiHeadConfig { causal: false, window: None, ..config.attention };
        Ok(DecoderLayer {
            own: MultiHeadAttention::of_decoder(&builder.at("self_attn"), &causal)?,
            own_residual: config.residual(&builder.at("self_attn_layer_norm"))?,
            cross: MultiHeadAttention::of_decoder(&builder.at("encoder_attn"), &cross)?,
            cross_residual: config.residual(&builder.at("encoder_attn_layer_norm"))?,
            feed_forward: config.feed_forward(builder)?,
            feed_forward_residual: config.residual(&builder.at("final_layer_norm"))?,
        })
    }

    /// `[tokens, d_model]` to the same; `spans` leads from it to itself, `cross` to `memory: [keys, d_model]`.
    pub fn forward(
        &self,
        tape: &Tape,
        x: &Var,
        spans: &Arc<[Span]>,
        memory: &Var,
        cross: &Arc<[Span]>,
    ) -> Var {
        self.sublayers(
            tape,
            x,
            |x| self.own.forward(tape, x, x, spans),
            |x| self.cross.forward(tape, x, memory, cross),
        )
    }

    /// [`DecoderLayer::forward`] for the newest tokens alone: those before them, and the memory, are in the cache.
    fn forward_cached(&self, tape: &Tape, x: &Var, cache: &mut LayerCache, step: &Step) -> Var {
        let LayerCache { own, memory } = cache;
        self.sublayers(
            tape,
            x,
            |x| {
                let (keys, values) = match step.own {
                    Seen::Spans(_) => self.own.keys_values(tape, x),
                    Seen::Lists { .. } => self.own.listed_keys_values(tape, x),
                };
                own.write(&**tape.backend(), &step.rows, keys.value(), values.value());
                self.own.attend_cached(tape, x, own, &step.own)
            },
            |x| self.cross.attend_cached(tape, x, memory, &step.cross),
        )
    }

    fn sublayers(
        &self,
        tape: &Tape,
        x: &Var,
        own: impl FnOnce(&Var) -> Var,
        cross: impl FnOnce(&Var) -> Var,
    ) -> Var {
        let x = self.own_residual.forward(tape, x, own);
        let x = self.cross_residual.forward(tape, &x, cross);
        self.feed_forward_residual.forward(tape, &x, |x| self.feed_forward.forward(tape, x))
    }
}

/// Positions, N layers and, for pre-norm, a norm at the end.
#[derive(Debug, Clone)]
pub struct Decoder {
    positions: Positions,
    layers: Vec<DecoderLayer>,
    norm: Option<LayerNorm>,
    dropout: f32,
}

impl Decoder {
    /// The whole stack, behind these positions.
    pub fn new(builder: &Builder, config: &StackConfig, positions: Positions) -> Result<Decoder, Error> {
        let layer = |n| DecoderLayer::new(&builder.at(format_args!("layers.{n}")), config);
        let layers = (0..config.layers).map(layer).collect::<Result<_, _>>()?;
        Ok(Decoder { positions, layers, norm: config.final_norm(builder)?, dropout: config.dropout })
    }

    /// Embedded target tokens, all of them at once, to hidden states; `memory` is what the encoder made of the source.
    pub fn forward(
        &self,
        tape: &Tape,
        x: &Var,
        sequences: &Sequences,
        memory: &Var,
        memory_sequences: &Sequences,
    ) -> Var {
        sequences.check("decoder", x);
        memory_sequences.check("memory of the decoder", memory);
        let (own, cross) = (sequences.attending(sequences), sequences.attending(memory_sequences));
        let x = self.enter(tape, x, &sequences.positions());
        let x = self.layers.iter().fold(x, |x, layer| layer.forward(tape, &x, &own, memory, &cross));
        self.leave(tape, x)
    }

    /// A cache for decoding step by step, at most `capacity` tokens a sequence.
    pub fn start(&self, tape: &Tape, memory: &Var, memory_sequences: &Sequences, capacity: usize) -> Cache {
        memory_sequences.check("memory of the decoder", memory);
        let keys_values = |layer: &DecoderLayer| layer.cross.keys_values(tape, memory);
        Cache::new(self.layers.iter().map(keys_values), memory_sequences, capacity)
    }

    /// The hidden states of the next tokens, `new` of each sequence, after those in the cache, to which they are
    /// added: the same bits as from [`Decoder::forward`].
    pub fn step(&self, tape: &Tape, x: &Var, new: &Sequences, cache: &mut Cache) -> Var {
        new.check("step of the decoder", x);
        let step = cache.step(&**tape.backend(), new);
        self.forward_cached(tape, x, cache.layers_mut(), &step)
    }

    /// Puts what the encoder made of further sources into slots of a cache that branches.
    pub fn admit(
        &self,
        tape: &Tape,
        memory: &Var,
        memory_sequences: &Sequences,
        slots: &[usize],
        cache: &mut BranchCache,
    ) {
        memory_sequences.check("memory of the decoder", memory);
        let int8 = self.layers.first().is_some_and(|layer| layer.cross.is_int8());
        let rows = cache.admit(&**tape.backend(), slots, memory_sequences, self.layers.len(), int8);
        for (layer, cache) in self.layers.iter().zip(cache.layers_mut()) {
            let (keys, values) = layer.cross.listed_keys_values(tape, memory);
            cache.memory.write(&**tape.backend(), &rows, keys.value(), values.value());
        }
    }

    /// [`Decoder::step`] for sequences that branch: the hidden state of one new token for each of `branches`, which go on
    /// from those of the last step.
    pub fn step_branches(&self, tape: &Tape, x: &Var, branches: &[Branch], cache: &mut BranchCache) -> Var {
        assert_eq!(x.shape().rows(), branches.len(), "step of the decoder: {} rows", x.shape().rows());
        let step = cache.step(&**tape.backend(), branches);
        self.forward_cached(tape, x, cache.layers_mut(), &step)
    }

    fn forward_cached<'a>(
        &self,
        tape: &Tape,
        x: &Var,
        caches: impl Iterator<Item = &'a mut LayerCache>,
        step: &Step,
    ) -> Var {
        let x = self.enter(tape, x, &step.positions);
        let layers = self.layers.iter().zip(caches);
        let x = layers.fold(x, |x, (layer, cache)| layer.forward_cached(tape, &x, cache, step));
        self.leave(tape, x)
    }

    fn enter(&self, tape: &Tape, x: &Var, positions: &[i32]) -> Var {
        tape.dropout(&self.positions.forward(tape, x, positions), self.dropout)
    }

    fn leave(&self, tape: &Tape, x: Var) -> Var {
        self.norm.as_ref().map_or(x.clone(), |norm| norm.forward(tape, &x))
    }
}
