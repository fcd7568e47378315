//! The decoder: masked self-attention, attention to the encoder's memory, feed-forward.

use super::cache::{Branch, Cache, LayerCache, Step};
use super::{FeedForwardNetwork, MultiHeadAttention, MultiHeadConfig, Norm, Positions, Residual, StackConfig};
use crate::builder::Builder;
use crate::error::Error;
use crate::sequences::Sequences;
use attentive_tensor::{Layout, Tape, Var};

/// Masked self-attention, cross attention, feed-forward, each inside a residual connection.
#[derive(Debug, Clone)]
pub struct DecoderLayer {
    own: MultiHeadAttention,
    own_residual: Residual,
    cross: MultiHeadAttention,
    cross_residual: Residual,
    feed_forward: FeedForwardNetwork,
    feed_forward_residual: Residual,
}

impl DecoderLayer {
    /// One layer of the stack; its self-attention is causal whatever `config.attention` says.
    pub fn new(builder: &Builder, config: &StackConfig) -> Result<DecoderLayer, Error> {
        let causal = MultiHeadConfig { causal: true, ..config.attention };
        let cross = MultiHeadConfig { causal: false, window: None, ..config.attention };
        Ok(DecoderLayer {
            own: MultiHeadAttention::cached(&builder.at("self_attn"), &causal)?,
            own_residual: config.residual(&builder.at("self_attn_layer_norm"))?,
            cross: MultiHeadAttention::cached(&builder.at("encoder_attn"), &cross)?,
            cross_residual: config.residual(&builder.at("encoder_attn_layer_norm"))?,
            feed_forward: config.network(builder)?,
            feed_forward_residual: config.residual(&builder.at("final_layer_norm"))?,
        })
    }

    /// `[tokens, d_model]` to the same; `own` leads from it to itself, `cross` to `memory: [keys, d_model]`.
    pub fn forward(&self, tape: &Tape, x: &Var, own: &Layout, memory: &Var, cross: &Layout) -> Var {
        self.sublayers(
            tape,
            x,
            |x| self.own.forward(tape, x, x, own, None),
            |x| self.cross.forward(tape, x, memory, cross, None),
        )
    }

    /// [`DecoderLayer::forward`] for the newest tokens alone: those before them, and the memory, are in the cache.
    fn forward_cached(&self, tape: &Tape, x: &Var, cache: &mut LayerCache, step: &Step) -> Var {
        let LayerCache { own, memory } = cache;
        self.sublayers(
            tape,
            x,
            |x| {
                self.own.write(tape, x, &step.rows, &mut **own);
                self.own.attend(tape, x, &**own, &step.own, None)
            },
            |x| {
                let (memory, seen) =
                    memory.as_deref().zip(step.cross.as_ref()).expect("sources were admitted");
                self.cross.attend(tape, x, memory, seen, None)
            },
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
    norm: Option<Norm>,
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
        let attending = |memory| sequences.attending(&**tape.backend(), memory);
        let (own, cross) = (attending(sequences), attending(memory_sequences));
        let x = self.enter(tape, x, &sequences.positions());
        let x = self.layers.iter().fold(x, |x, layer| layer.forward(tape, &x, &own, memory, &cross));
        self.leave(tape, x)
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
            let cache = cache.memory.as_deref_mut().expect("every layer looks at the memory");
            layer.cross.write(tape, memory, &rows, cache);
        }
    }

    /// The hidden states of the new tokens of each of `branches`, which go on from those of the last step: the same bits as from
    /// [`Decoder::forward`].
    pub fn step(&self, tape: &Tape, x: &Var, branches: &[Branch], cache: &mut Cache) -> Var {
        let (rows, new) = (x.shape().rows(), branches.iter().map(|branch| branch.tokens).sum::<usize>());
        assert_eq!(rows, new, "step of the decoder: {rows} rows for {new} tokens");
        let step = cache.step(&**tape.backend(), branches, true);
        let x = self.enter(tape, x, &step.positions);
        let layers = self.layers.iter().zip(cache.layers_mut(|| self.caches(tape)));
        let x = layers.fold(x, |x, (layer, cache)| layer.forward_cached(tape, &x, cache, &step));
        self.leave(tape, x)
    }

    fn caches(&self, tape: &Tape) -> Vec<LayerCache> {
        let cache = |layer: &DecoderLayer| LayerCache {
            own: layer.own.cache(tape),
            memory: Some(layer.cross.cache(tape)),
        };
        self.layers.iter().map(cache).collect()
    }

    fn enter(&self, tape: &Tape, x: &Var, positions: &[i32]) -> Var {
        tape.dropout(&self.positions.forward(tape, x, positions), self.dropout)
    }

    fn leave(&self, tape: &Tape, x: Var) -> Var {
        self.norm.as_ref().map_or(x.clone(), |norm| norm.forward(tape, &x))
    }
}
