//! The encoder: a stack of self-attention and feed-forward layers.

use super::norm::EPSILON;
use super::{
    FeedForwardKind, FeedForwardNetwork, LayerScale, MultiHeadAttention, MultiHeadConfig, Norm, NormKind,
    NormPlacement, Residual,
};
use crate::builder::Builder;
use crate::error::Error;
use attentive_tensor::{Activation, Bias, Layout, Tape, Var};

/// What an encoder or a decoder is made of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StackConfig {
    /// The number of layers, N in the paper.
    pub layers: usize,
    /// The sizes of its attentions.
    pub attention: MultiHeadConfig,
    /// The width between the two products of the feed-forward network.
    pub d_ff: usize,
    /// Which network that is.
    pub feed_forward: FeedForwardKind,
    /// Whether its products have biases; those of attention are said there.
    pub feed_forward_bias: bool,
    /// The function behind its first product.
    pub activation: Activation,
    /// Where norms stand.
    pub norm: NormPlacement,
    /// Which norms they are.
    pub norm_kind: NormKind,
    /// What norms add to the variance.
    pub epsilon: f32,
    /// Dropout of each sublayer's output.
    pub dropout: f32,
    /// The first value of the factors that outputs of sublayers are multiplied by, if there are such factors.
    pub layer_scale: Option<f32>,
    /// Dropout inside of the feed-forward network, which the paper does not have.
    pub inner_dropout: f32,
}

impl StackConfig {
    /// A stack as in the paper: ReLU, norms after the residual, dropout 0.1.
    pub fn new(layers: usize, attention: MultiHeadConfig, d_ff: usize) -> StackConfig {
        StackConfig {
            layers,
            attention,
            d_ff,
            feed_forward: FeedForwardKind::Plain,
            feed_forward_bias: true,
            activation: Activation::Relu,
            norm: NormPlacement::Post,
            norm_kind: NormKind::Layer,
            epsilon: EPSILON,
            dropout: 0.1,
            layer_scale: None,
            inner_dropout: 0.0,
        }
    }

    fn layer_norm(&self, builder: &Builder) -> Result<Norm, Error> {
        Norm::new(builder, self.norm_kind, self.attention.d_model, self.epsilon)
    }

    /// The connection around the sublayer of this name.
    pub(crate) fn residual(&self, builder: &Builder, sublayer: &str) -> Result<Residual, Error> {
        let norm = self.layer_norm(&builder.at(format_args!("{sublayer}_layer_norm")))?;
        let at = builder.at(format_args!("{sublayer}_layer_scale"));
        let scale = self.layer_scale.map(|initial| LayerScale::new(&at, self.attention.d_model, initial));
        Ok(Residual::new(norm, self.norm, self.dropout).with_scale(scale.transpose()?))
    }

    pub(crate) fn network(&self, builder: &Builder) -> Result<FeedForwardNetwork, Error> {
        let widths = [self.attention.d_model, self.d_ff];
        let (kind, bias) = (self.feed_forward, self.feed_forward_bias);
        let network = FeedForwardNetwork::new(builder, kind, widths, self.activation, bias)?;
        Ok(network.with_dropout(self.inner_dropout))
    }

    /// The norm behind a stack, which only pre-norm needs.
    pub fn final_norm(&self, builder: &Builder) -> Result<Option<Norm>, Error> {
        let norm = || self.layer_norm(&builder.at("layer_norm"));
        (self.norm == NormPlacement::Pre).then(norm).transpose()
    }
}

/// Self-attention, then feed-forward, each inside a residual connection. The attention may be of a family's own.
#[derive(Debug, Clone)]
pub struct EncoderLayer<A = MultiHeadAttention> {
    attention: A,
    attention_residual: Residual,
    feed_forward: FeedForwardNetwork,
    feed_forward_residual: Residual,
}

impl EncoderLayer {
    /// One layer of the stack.
    pub fn new(builder: &Builder, config: &StackConfig) -> Result<EncoderLayer, Error> {
        let attention = MultiHeadAttention::new(&builder.at("self_attn"), &config.attention)?;
        EncoderLayer::with_attention(builder, config, attention)
    }

    /// `[tokens, d_model]` to `[tokens, d_model]`; `layout` says what attends to what, and a bias is added to its scores.
    pub fn forward(&self, tape: &Tape, x: &Var, layout: &Layout, bias: Option<&Bias<Var>>) -> Var {
        self.forward_with(tape, x, |attention, x| attention.forward(tape, x, x, layout, bias))
    }
}

impl<A> EncoderLayer<A> {
    /// One layer of the stack with this attention.
    pub fn with_attention(builder: &Builder, config: &StackConfig, attention: A) -> Result<Self, Error> {
        Ok(EncoderLayer {
            attention,
            attention_residual: config.residual(builder, "self_attn")?,
            feed_forward: config.network(builder)?,
            feed_forward_residual: config.residual(builder, "final")?,
        })
    }

    /// [`EncoderLayer::forward`] with what `attend` makes of the attention and what it reads.
    pub fn forward_with(&self, tape: &Tape, x: &Var, attend: impl FnOnce(&A, &Var) -> Var) -> Var {
        let x = self.attention_residual.forward(tape, x, |x| attend(&self.attention, x));
        self.feed_forward_residual.forward(tape, &x, |x| self.feed_forward.forward(tape, x))
    }
}

/// N layers, one on top of the other. What is before them (embeddings, positions) and behind them (a norm for pre-norm) is the
/// family's own affair.
#[derive(Debug, Clone)]
pub struct Encoder {
    layers: Vec<EncoderLayer>,
}

impl Encoder {
    /// The whole stack.
    pub fn new(builder: &Builder, config: &StackConfig) -> Result<Encoder, Error> {
        let layer = |n| EncoderLayer::new(&builder.at(format_args!("layers.{n}")), config);
        Ok(Encoder { layers: (0..config.layers).map(layer).collect::<Result<_, _>>()? })
    }

    /// Hidden states `[tokens, d_model]` to hidden states of the same shape; `layout` says what attends to what, and a bias, which
    /// all layers share, is added to the scores.
    pub fn forward(&self, tape: &Tape, x: &Var, layout: &Layout, bias: Option<&Bias<Var>>) -> Var {
        self.layers.iter().fold(x.clone(), |x, layer| layer.forward(tape, &x, layout, bias))
    }

    /// The layers, the one nearest to the embeddings first.
    pub fn layers(&self) -> &[EncoderLayer] {
        &self.layers
    }
}
