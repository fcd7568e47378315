//! Feed-forward networks: the paper's and the gated one.

mod gated;
mod plain;

pub use gated::GatedFeedForward;
pub use plain::FeedForward;

use crate::builder::Builder;
use crate::error::Error;
use attentive_tensor::{Activation, Tape, Var};

/// The kinds of feed-forward networks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FeedForwardKind {
    /// Two products, as in the paper.
    #[default]
    Plain,
    /// Three products, of which one is the gate of another.
    Gated,
}

/// The network that a family has chosen.
#[derive(Debug, Clone)]
pub enum FeedForwardNetwork {
    /// [`FeedForwardKind::Plain`]
    Plain(FeedForward),
    /// [`FeedForwardKind::Gated`]
    Gated(GatedFeedForward),
}

impl FeedForwardNetwork {
    /// A network of this kind from `d_model` to `d_ff` and back.
    pub fn new(
        builder: &Builder,
        kind: FeedForwardKind,
        [d_model, d_ff]: [usize; 2],
        activation: Activation,
        bias: bool,
    ) -> Result<Self, Error> {
        Ok(match kind {
            FeedForwardKind::Plain => {
                FeedForwardNetwork::Plain(FeedForward::new(builder, d_model, d_ff, activation, bias)?)
            }
            FeedForwardKind::Gated => {
                FeedForwardNetwork::Gated(GatedFeedForward::new(builder, d_model, d_ff, activation, bias)?)
            }
        })
    }

    /// The same with dropout of the inner numbers.
    pub fn with_dropout(self, dropout: f32) -> Self {
        match self {
            FeedForwardNetwork::Plain(network) => FeedForwardNetwork::Plain(network.with_dropout(dropout)),
            FeedForwardNetwork::Gated(network) => FeedForwardNetwork::Gated(network.with_dropout(dropout)),
        }
    }

    /// `[tokens, d_model]` to `[tokens, d_model]`.
    pub fn forward(&self, tape: &Tape, x: &Var) -> Var {
        match self {
            FeedForwardNetwork::Plain(network) => network.forward(tape, x),
            FeedForwardNetwork::Gated(network) => network.forward(tape, x),
        }
    }
}
