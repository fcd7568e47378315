//! The parts of a Transformer, named as in the paper.
//!
//! Every layer is a struct with its parameters, made by a [`Builder`](crate::Builder), and a `forward` that puts
//! operations on a [`Tape`](attentive_tensor::Tape). Shapes are those of a packed batch: `[tokens, d]`.

mod activation;
mod additive;
mod attention;
mod cache;
mod convolution;
mod decoder;
mod embedding;
mod encoder;
mod feed_forward;
mod grid;
mod head;
mod layer_scale;
mod linear;
mod norm;
mod patches;
mod position;
mod projection_head;
mod relative;
mod residual;
mod rows;

pub use activation::{activation_named, name_of_activation};
pub use additive::AdditiveAttention;
pub use attention::{
    MultiHeadAttention, MultiHeadConfig, ProjectionBiases, dot_product_attention,
    scaled_dot_product_attention,
};
pub use cache::{Branch, Cache, Step};
pub use convolution::Convolution;
pub(crate) use convolution::as_matrix;
pub use decoder::{Decoder, DecoderLayer};
pub use embedding::{Embedding, EmbeddingConfig};
pub use encoder::{Encoder, EncoderLayer, StackConfig};
pub use feed_forward::{FeedForward, FeedForwardKind, FeedForwardNetwork, GatedFeedForward};
pub use grid::{GridPositions, Resizing};
pub use head::Head;
pub use layer_scale::LayerScale;
pub use linear::Linear;
pub use norm::{EPSILON, LayerNorm, Norm, NormKind, RmsNorm};
pub use patches::{Patches, unfold};
pub use position::{PositionKind, Positions, sinusoid};
pub use projection_head::{ProjectionHead, ProjectionSizes};
pub use relative::{RelativeConfig, RelativePositions};
pub use residual::{NormPlacement, Residual};
