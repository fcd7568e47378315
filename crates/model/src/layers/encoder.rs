//! The encoder: a stack of self-attention and feed-forward layers.

use super::{
    FeedForward, LayerNorm, MultiHeadAttention, MultiHeadConfig, NormPlacement, PositionKind, Positions,
    Residual,
};
use crate::builder::Builder;
use crate::error::Error;
use crate::sequences::Sequences;
use attentive_tensor::{Activation, Layout, Tape, Var};

/// What an encoder or a decoder is made of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StackConfig {
    /// The number of layers, N in the paper.
    pub layers: usize,
    /// The sizes of its attentions.
    pub attention: MultiHeadConfig,
    /// The width between the two products of the feed-forward network.
    pub d_ff: usize,
    /// The function between them.
    pub activation: Activation,
    /// Where norms stand.
    pub norm: NormPlacement,
    /// The kind of positions.
    pub positions: PositionKind,
    /// How many positions there are.
    pub max_positions: usize,
    /// Dropout of the embedded input and of each sublayer's output.
    pub dropout: f32,
}

impl StackConfig {
    /// A stack as in the paper: ReLU, norms after the residual, sinusoids for 512 positions, dropout 0.1.
    pub fn new(layers: usize, attention: MultiHeadConfig, d_ff: usize) -> StackConfig {
        StackConfig {
            layers,
            attention,
            d_ff,
            activation: Activation::Relu,
            norm: NormPlacement::Post,
            positions: PositionKind::Interleaved,
            max_positions: 512,
            dropout: 0.1,
        }
    }

    pub(super) fn residual(&self, builder: &Builder) -> Result<Residual, Error> {
        Residual::new(builder, self.attention.d_model, self.norm, self.dropout)
    }

    pub(super) fn feed_forward(&self, builder: &Builder) -> Result<FeedForward, Error> {
        FeedForward::new(builder, self.attention.d_model, self.d_ff, self.activation)
    }

    pub(super) fn positions(&self, builder: &Builder) -> Result<Positions, Error> {
        let builder = builder.at("embed_positions");
        Positions::new(&builder, self.positions, self.max_positions, self.attention.d_model)
    }

    /// The norm at the end of a stack, which only pre-norm needs.
    pub(super) fn final_norm(&self, builder: &Builder) -> Result<Option<LayerNorm>, Error> {
        let norm = || LayerNorm::new(&builder.at("layer_norm"), self.attention.d_model);
        (self.norm == NormPlacement::Pre).then(norm).transpose()
    }
}

/// Self-attention, then feed-forward, each inside a residual connection.
#[derive(Debug, Clone)]
pub struct EncoderLayer {
    attention: MultiHeadAttention,
    attention_residual: Residual,
    feed_forward: FeedForward,
    feed_forward_residual: Residual,
}

impl EncoderLayer {
    /// One layer of the stack.
    pub fn new(builder: &Builder, config: &StackConfig) -> Result<EncoderLayer, Error> {
        Ok(EncoderLayer {
            attention: MultiHeadAttention::new(&builder.at("self_attn"), &config.attention)?,
            attention_residual: config.residual(&builder.at("self_attn_layer_norm"))?,
            feed_forward: config.feed_forward(builder)?,
            feed_forward_residual: config.residual(&builder.at("final_layer_norm"))?,
        })
    }

    /// `[tokens, d_model]` to `[tokens, d_model]`; `layout` says what attends to what.
    pub fn forward(&self, tape: &Tape, x: &Var, layout: &Layout) -> Var {
        let x = self.attention_residual.forward(tape, x, |x| self.attention.forward(tape, x, x, layout));
        self.feed_forward_residual.forward(tape, &x, |x| self.feed_forward.forward(tape, x))
    }
}

/// Positions, N layers and, for pre-norm, a norm at the end.
#[derive(Debug, Clone)]
pub struct Encoder {
    positions: Positions,
    layers: Vec<EncoderLayer>,
    norm: Option<LayerNorm>,
    dropout: f32,
}

impl Encoder {
    /// The whole stack.
    pub fn new(builder: &Builder, config: &StackConfig) -> Result<Encoder, Error> {
        let positions = config.positions(builder)?;
        let layer = |n| EncoderLayer::new(&builder.at(format_args!("layers.{n}")), config);
        let layers = (0..config.layers).map(layer).collect::<Result<_, _>>()?;
        Ok(Encoder { positions, layers, norm: config.final_norm(builder)?, dropout: config.dropout })
    }

    /// Embedded tokens `[tokens, d_model]` to hidden states of the same shape: the memory of a decoder.
    pub fn forward(&self, tape: &Tape, x: &Var, sequences: &Sequences) -> Var {
        sequences.check("encoder", x);
        let layout = sequences.attending(&**tape.backend(), sequences);
        let x = tape.dropout(&self.positions.forward(tape, x, &sequences.positions()), self.dropout);
        let x = self.layers.iter().fold(x, |x, layer| layer.forward(tape, &x, &layout));
        self.norm.as_ref().map_or(x.clone(), |norm| norm.forward(tape, &x))
    }
}
