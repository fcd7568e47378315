//! The decoder: object queries that look at each other and at the picture.
//!
//! Queries and keys have positions in every layer: those of the queries are learned, those of the picture are sinusoidal. Values have
//! none. A norm stands behind the last layer, and before the heads of all others.

use crate::builder::Builder;
use crate::error::Error;
use crate::layers::{FeedForwardNetwork, MultiHeadAttention, Residual, StackConfig};
use attentive_tensor::{Layout, Tape, Var};

/// What queries look at.
pub(super) struct Sight<'a> {
    /// The hidden states of the picture, with their positions and without.
    pub memory: [&'a Var; 2],
    /// From the queries of a picture to each other.
    pub own: Layout,
    /// From them to the places of the picture.
    pub cross: Layout,
}

/// Self-attention, attention to the picture, feed-forward, each inside a residual connection.
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
    pub fn forward(&self, tape: &Tape, x: &Var, positions: &Var, sight: &Sight) -> Var {
        let x = self.own_residual.forward(tape, x, |x| {
            let placed = tape.add(x, positions);
            self.own.forward_apart(tape, [&placed, &placed, x], &sight.own, None)
        });
        let x = self.cross_residual.forward(tape, &x, |x| {
            let [keys, values] = sight.memory;
            self.cross.forward_apart(tape, [&tape.add(x, positions), keys, values], &sight.cross, None)
        });
        self.feed_forward_residual.forward(tape, &x, |x| self.feed_forward.forward(tape, x))
    }
}
