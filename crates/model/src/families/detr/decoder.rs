//! The decoder: object queries attend to each other, and then to the feature map.
//!
//! Positions are added to queries and keys in every layer, not to values. Those of the object queries are learned, those of the feature map
//! are sinusoidal. The output of every layer passes through one shared norm before the heads.

use crate::builder::Builder;
use crate::error::Error;
use crate::layers::{FeedForwardNetwork, MultiHeadAttention, Residual, StackConfig};
use attentive_tensor::{Layout, Tape, Var};

/// The keys and values of the attentions, the same for all layers.
pub(super) struct Memory<'a> {
    /// The output of the encoder with its positions, from which keys are made.
    pub keys: &'a Var,
    /// The output of the encoder without positions, from which values are made.
    pub values: &'a Var,
    /// Self-attention: from the queries of a picture to each other.
    pub own: Layout,
    /// Cross attention: from the queries of a picture to the cells of its feature map.
    pub cross: Layout,
}

/// Self-attention, cross attention and feed-forward network, each inside a residual connection.
#[derive(Debug)]
pub(super) struct DecoderLayer {
    own: MultiHeadAttention,
    own_residual: Residual,
    cross: MultiHeadAttention,
    cross_residual: Residual,
    feed_forward: FeedForwardNetwork,
    feed_forward_residual: Residual,
}

impl DecoderLayer {
    pub fn new(builder: &Builder, config: &StackConfig) -> Result<DecoderLayer, Error> {
        let attention = |name| MultiHeadAttention::new(&builder.at(name), &config.attention);
        Ok(DecoderLayer {
            own: attention("self_attn")?,
            own_residual: config.residual(builder, "self_attn")?,
            cross: attention("encoder_attn")?,
            cross_residual: config.residual(builder, "encoder_attn")?,
            feed_forward: config.network(builder)?,
            feed_forward_residual: config.residual(builder, "final")?,
        })
    }

    /// `x` and `positions` are `[pictures · queries, d_model]`.
    pub fn forward(&self, tape: &Tape, x: &Var, positions: &Var, memory: &Memory) -> Var {
        let x = self.own_residual.forward(tape, x, |x| {
            let placed = tape.add(x, positions);
            self.own.forward_apart(tape, [&placed, &placed, x], &memory.own, None)
        });
        let x = self.cross_residual.forward(tape, &x, |x| {
            let placed = tape.add(x, positions);
            self.cross.forward_apart(tape, [&placed, memory.keys, memory.values], &memory.cross, None)
        });
        self.feed_forward_residual.forward(tape, &x, |x| self.feed_forward.forward(tape, x))
    }
}
