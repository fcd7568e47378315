//! The decoder: masked self-attention, attention to the encoder's memory, feed-forward.

use super::cache::{Branch, Cache, LayerCache, Step};
use super::{FeedForwardNetwork, MultiHeadAttention, MultiHeadConfig, Residual, StackConfig};
use crate::builder::Builder;
use crate::error::Error;
use crate::sequences::Sequences;
use attentive_tensor::{Bias, Layout, Tape, Var};

/// Masked self-attention, cross attention if there is a memory, feed-forward, each inside a residual connection.
#[derive(Debug, Clone)]
pub struct DecoderLayer {
    own: MultiHeadAttention,
    own_residual: Residual,
    cross: Option<Cross>,
    feed_forward: FeedForwardNetwork,
    feed_forward_residual: Residual,
}

/// Attention to the memory of an encoder.
#[derive(Debug, Clone)]
struct Cross {
    attention: MultiHeadAttention,
    residual: Residual,
}

impl Cross {
    fn new(builder: &Builder, config: &StackConfig) -> Result<Cross, Error> {
        let heads = MultiHeadConfig { causal: false, window: None, ..config.attention };
        Ok(Cross {
            attention: MultiHeadAttention::cached(&builder.at("encoder_attn"), &heads)?,
            residual: config.residual(builder, "encoder_attn")?,
        })
    }
}

impl DecoderLayer {
    /// One layer of the stack; its self-attention is causal whatever `config.attention` says.
    pub fn new(builder: &Builder, config: &StackConfig) -> Result<DecoderLayer, Error> {
        DecoderLayer::build(builder, config, true)
    }

    /// The same without cross attention.
    pub fn without_memory(builder: &Builder, config: &StackConfig) -> Result<DecoderLayer, Error> {
        DecoderLayer::build(builder, config, false)
    }

    fn build(builder: &Builder, config: &StackConfig, memory: bool) -> Result<DecoderLayer, Error> {
        let causal = MultiHeadConfig { causal: true, ..config.attention };
        Ok(DecoderLayer {
            own: MultiHeadAttention::cached(&builder.at("self_attn"), &causal)?,
            own_residual: config.residual(builder, "self_attn")?,
            cross: memory.then(|| Cross::new(builder, config)).transpose()?,
            feed_forward: config.network(builder)?,
            feed_forward_residual: config.residual(builder, "final")?,
        })
    }

    /// `[tokens, d_model]` to the same. `own` leads from it to itself, and the bias is added to the scores of that; `memory` is
    /// what cross attention looks at, `[keys, d_model]`, and how it leads there.
    ///
    /// # Panics
    /// If the layer has cross attention and there is no memory.
    pub fn forward(
        &self,
        tape: &Tape,
        x: &Var,
        own: &Layout,
        bias: Option<&Bias<Var>>,
        memory: Option<(&Var, &Layout)>,
    ) -> Var {
        self.sublayers(
            tape,
            x,
            |x| self.own.forward(tape, x, x, own, bias),
            |cross, x| {
                let (memory, layout) = memory.expect("a decoder with cross attention has a memory");
                cross.forward(tape, x, memory, layout, None)
            },
        )
    }

    /// [`DecoderLayer::forward`] for the newest tokens alone: those before them, and the memory, are in the cache.
    fn forward_cached(
        &self,
        tape: &Tape,
        x: &Var,
        bias: Option<&Bias<Var>>,
        cache: &mut LayerCache,
        step: &Step,
    ) -> Var {
        let LayerCache { own, memory } = cache;
        self.sublayers(
            tape,
            x,
            |x| {
                self.own.write(tape, x, &step.rows, &mut **own);
                self.own.attend(tape, x, &**own, &step.own, bias)
            },
            |cross, x| {
                let (memory, seen) =
                    memory.as_deref().zip(step.cross.as_ref()).expect("sources were admitted");
                cross.attend(tape, x, memory, seen, None)
            },
        )
    }

    fn sublayers(
        &self,
        tape: &Tape,
        x: &Var,
        own: impl FnOnce(&Var) -> Var,
        cross: impl FnOnce(&MultiHeadAttention, &Var) -> Var,
    ) -> Var {
        let mut x = self.own_residual.forward(tape, x, own);
        if let Some(Cross { attention, residual }) = &self.cross {
            x = residual.forward(tape, &x, |x| cross(attention, x));
        }
        self.feed_forward_residual.forward(tape, &x, |x| self.feed_forward.forward(tape, x))
    }
}

/// N layers, one on top of the other. What is before them (embeddings, positions, dropout) and behind them (a norm for pre-norm) is
/// the family's own affair.
#[derive(Debug, Clone)]
pub struct Decoder {
    layers: Vec<DecoderLayer>,
}

impl Decoder {
    /// The whole stack.
    pub fn new(builder: &Builder, config: &StackConfig) -> Result<Decoder, Error> {
        Decoder::build(builder, config.layers, |builder, _| DecoderLayer::new(builder, config))
    }

    /// The same without cross attention: a decoder that is the whole model. `window` says how many keys a query of each layer sees, where
    /// that is not all before it.
    pub fn without_memory(
        builder: &Builder,
        config: &StackConfig,
        window: impl Fn(usize) -> Option<usize>,
    ) -> Result<Decoder, Error> {
        let layer = |builder: &Builder, n: usize| {
            let attention = MultiHeadConfig { window: window(n), ..config.attention };
            DecoderLayer::without_memory(builder, &StackConfig { attention, ..*config })
        };
        Decoder::build(builder, config.layers, layer)
    }

    fn build(
        builder: &Builder,
        layers: usize,
        layer: impl Fn(&Builder, usize) -> Result<DecoderLayer, Error>,
    ) -> Result<Decoder, Error> {
        let layer = |n| layer(&builder.at(format_args!("layers.{n}")), n);
        Ok(Decoder { layers: (0..layers).map(layer).collect::<Result<_, _>>()? })
    }

    /// Embedded target tokens, all of them at once, to hidden states: [`DecoderLayer::forward`] of all layers, which share the bias.
    pub fn forward(
        &self,
        tape: &Tape,
        x: &Var,
        own: &Layout,
        bias: Option<&Bias<Var>>,
        memory: Option<(&Var, &Layout)>,
    ) -> Var {
        self.layers.iter().fold(x.clone(), |x, layer| layer.forward(tape, &x, own, bias, memory))
    }

    /// Puts what the encoder made of further sources into slots of a cache.
    pub fn admit(
        &self,
        tape: &Tape,
        memory: &Var,
        memory_sequences: &Sequences,
        slots: &[usize],
        cache: &mut Cache,
    ) {
        memory_sequences.check("memory of the decoder", memory);
        let rows = cache.admit(&**tape.backend(), slots, memory_sequences);
        let caches = cache.layers_mut(|| self.caches(tape));
        for (layer, cache) in self.layers.iter().zip(caches) {
            if let Some((cross, cache)) = layer.cross.as_ref().zip(cache.memory.as_deref_mut()) {
                cross.attention.write(tape, memory, &rows, cache);
            }
        }
    }

    /// Begins a step: makes room for the new tokens of each of `branches`, which go on from those of the last step, and tells where
    /// they stand. [`Decoder::step`] must follow.
    pub fn begin(&self, tape: &Tape, branches: &[Branch], cache: &mut Cache) -> Step {
        let cross = self.layers.iter().any(|layer| layer.cross.is_some());
        cache.step(&**tape.backend(), branches, cross)
    }

    /// The hidden states of the new tokens of a step, from `x: [tokens, d_model]`, in which they are embedded: the same bits as from
    /// [`Decoder::forward`].
    pub fn step(
        &self,
        tape: &Tape,
        x: &Var,
        step: &Step,
        bias: Option<&Bias<Var>>,
        cache: &mut Cache,
    ) -> Var {
        let (rows, new) = (x.shape().rows(), step.positions.len());
        assert_eq!(rows, new, "step of the decoder: {rows} rows for {new} tokens");
        let layers = self.layers.iter().zip(cache.layers_mut(|| self.caches(tape)));
        layers.fold(x.clone(), |x, (layer, cache)| layer.forward_cached(tape, &x, bias, cache, step))
    }

    fn caches(&self, tape: &Tape) -> Vec<LayerCache> {
        let cache = |layer: &DecoderLayer| LayerCache {
            own: layer.own.cache(tape),
            memory: layer.cross.as_ref().map(|cross| cross.attention.cache(tape)),
        };
        self.layers.iter().map(cache).collect()
    }
}
