//! The waist: everything above speaks to a device through this one trait.
//!
//! Each method is a coarse operation of a Transformer on opaque buffers. A tensor is a matrix whose columns are its last dimension.
//! A batch of sequences is packed, `[tokens, d]`, and only attention knows where a sequence begins ([`Span`]).
//! Only [`MemoryOps::download`] and [`LossOps::top_logits`] return numbers to the host: losses, norms and
//! clip factors stay scalars on the device. A method with a parameter `into` adds its result to this gradient, in the same memory if
//! it is not shared; without it, it returns a new one.
//!
//! A wrong shape is a programmer's mistake: backends panic with the name of the operation and both shapes.

use crate::bias::Bias;
use crate::cache::KeyValueCache;
use crate::layout::{Layout, Seen};
use crate::shape::Shape;
use crate::tensor::{DType, Host, HostVec, Tensor};
use attentive_kernels::activation::Activation;
use attentive_kernels::attention::{Attention, KeyLists, Span};
use attentive_kernels::norm::NormKind;
use attentive_kernels::optimizer::Adam;
use attentive_kernels::rectangle::Rectangle;
use attentive_kernels::relative::Side;
use attentive_kernels::top::{Found, TokenLists, Wanted};
use attentive_kernels::window::Window;
use attentive_kernels::{Dropout, Random};
use std::fmt::Debug;
use std::time::Duration;

/// The distribution of the numbers of [`MemoryOps::random`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Distribution {
    /// Uniform in `-bound..bound`.
    Uniform {
        /// The bound.
        bound: f32,
    },
    /// Normal around zero.
    Normal {
        /// The standard deviation.
        deviation: f32,
    },
}

/// The operations of [`ElementwiseOps::binary`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binary {
    /// `a + b`
    Add,
    /// `a · b`
    Mul,
}

/// The weights of a norm.
#[derive(Debug, Clone, Copy)]
pub struct NormWeights<'a> {
    /// Which norm it is.
    pub kind: NormKind,
    /// The scale `γ: [d]`, in f32.
    pub gamma: &'a Tensor,
    /// The shift `β: [d]`, in f32, if there is one.
    pub beta: Option<&'a Tensor>,
    /// ε, which is added to the mean of the squares.
    pub epsilon: f32,
}

/// The result of a norm, with what its gradient needs.
#[derive(Debug, Clone)]
pub struct Norm {
    /// The normalised rows.
    pub y: Tensor,
    /// The rows that were normalised: `x`, or `x + dropout(r)`.
    pub z: Tensor,
    /// Mean (zero in RMS norm) and `1/σ` of each row, `[rows, 2]`.
    pub stats: Tensor,
}

/// The gradients of a norm.
#[derive(Debug)]
pub struct NormGradients {
    /// The gradient of the rows that were normalised, and so of `x`.
    pub dz: Tensor,
    /// The gradient of `r`: `dz` through the dropout.
    pub dr: Tensor,
    /// The gradient of the scale.
    pub dgamma: Tensor,
    /// The gradient of the shift, if there is one.
    pub dbeta: Option<Tensor>,
}

/// The targets of the output projection.
#[derive(Debug, Clone, Copy)]
pub struct ProjectionTarget<'a> {
    /// The target token of each row, `[rows]` of `i32`. A row with a negative one is left out.
    pub tokens: &'a Tensor,
    /// How many rows of the table are classes: all, or all but a padding row at the end.
    pub classes: usize,
    /// ε of label smoothing.
    pub smoothing: f32,
    /// The factor of the sum of the rows' losses: one over the number of tokens makes it their mean.
    pub scale: f32,
}

/// Which gradients are computed along with a loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Learned {
    /// None.
    Nothing,
    /// Those of the hidden states and of the table.
    Table,
    /// Those of the hidden states, of the table and of the bias.
    TableAndBias,
}

/// A loss and the gradients that were computed along with it.
#[derive(Debug)]
pub struct ProjectionLoss {
    /// The loss, a scalar.
    pub loss: Tensor,
    /// The gradients of the hidden rows and of the table, if they were asked for.
    pub gradients: Option<(Tensor, Tensor)>,
    /// The gradient of the bias, if it was asked for and there is one.
    pub dbias: Option<Tensor>,
}

/// Weights before a backend has [prepared](ProductOps::prepare) them.
#[derive(Debug, Clone, Copy)]
pub enum Raw<'a> {
    /// Numbers `[out, in]`, or a bias `[out]`, in f32.
    Tensor(&'a Tensor),
    /// Rows that [`quantise`](crate::quantise) has rounded before.
    Int8 {
        /// The integers, `[out, in]`.
        rows: &'a [i8],
        /// A scale for each row.
        scales: &'a [f32],
        /// Their shape.
        shape: Shape,
    },
}

/// The number format of prepared weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The precision of the backend.
    Precise,
    /// Int8 with a scale for each output. Activations are then rounded to int8 row by row.
    Int8,
}

/// What the result of a product with prepared weights is used for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Role {
    /// Anything.
    Product,
    /// The queries of an attention whose keys and values lie in a [cache](AttentionOps::cache), and nothing else.
    Queries(Attention),
    /// Its keys.
    Keys(Attention),
    /// Its values.
    Values(Attention),
}

/// A device that carries out the operations of a Transformer. They are grouped by what they compute, so that a device can have a
/// file for each group; a device has all of them.
pub trait Backend:
    MemoryOps
    + ElementwiseOps
    + ReduceOps
    + ProductOps
    + NormOps
    + AttentionOps
    + RowOps
    + WindowOps
    + LossOps
    + OptimizerOps
    + Debug
    + Send
    + Sync
{
    /// The name of the device, with its instruction set and precision, for people.
    fn name(&self) -> String;
    /// The type of activations: that of the result of [`RowOps::embedding`]. Other inputs are [cast](ElementwiseOps::cast) to it.
    fn activations(&self) -> DType;

    /// The time spent since the last call: a name and a duration for each kind of kernel.
    fn take_profile(&self) -> Vec<(&'static str, Duration)>;
}

/// Memory: making tensors, and reading them on the host.
pub trait MemoryOps {
    /// A tensor of zeros.
    fn zeros(&self, shape: Shape, dtype: DType) -> Tensor;
    /// A tensor with the numbers of the host.
    fn upload(&self, data: Host, shape: Shape) -> Tensor;
    /// A tensor in f32 that `write` fills completely on the host, without a copy if host and device share memory.
    fn written(&self, shape: Shape, write: &mut dyn FnMut(&mut [f32])) -> Tensor;
    /// The numbers of a tensor. The host waits for the device here.
    fn download(&self, x: &Tensor) -> HostVec;
    /// A tensor with memory of its own.
    fn copy(&self, x: &Tensor) -> Tensor;
    /// Random numbers in f32.
    fn random(&self, shape: Shape, distribution: Distribution, random: Random) -> Tensor;
}

/// Elementwise operations.
pub trait ElementwiseOps {
    /// `a ∘ b`; `b` has the shape of `a`, or is one row to add to each of `a`, or a scalar to multiply with.
    fn binary(&self, op: Binary, a: &Tensor, b: &Tensor) -> Tensor;
    /// `factor · x`.
    fn scale(&self, x: &Tensor, factor: f32) -> Tensor;
    /// The same numbers in f32 or bf16, rounded to the nearest.
    fn cast(&self, x: &Tensor, to: DType) -> Tensor;
    /// `y += factor · x`.
    fn add_assign(&self, y: &mut Tensor, x: &Tensor, factor: f32);
    /// `y += share · (x - y)`: a moving average of `x`.
    fn blend(&self, y: &mut Tensor, x: &Tensor, share: f32);
    /// An activation function.
    fn activate(&self, activation: Activation, x: &Tensor) -> Tensor;
    /// `dy` times the derivative at `x`. For ReLU, `x` may also be the output.
    fn activate_backward(&self, activation: Activation, x: &Tensor, dy: &Tensor) -> Tensor;
    /// Dropout, which is its own gradient: applied to `dy` it gives `dx`.
    fn dropout(&self, x: &Tensor, dropout: Dropout) -> Tensor;
    /// `x + dropout(r)`.
    fn residual(&self, x: &Tensor, r: &Tensor, dropout: Option<Dropout>) -> Tensor;
}

/// Sums and means.
pub trait ReduceOps {
    /// The sum of all rows, `[cols]`.
    fn sum_rows(&self, x: &Tensor, into: Option<Tensor>) -> Tensor;
    /// The mean of the rows of each sequence, `[sequences, cols]`; those of sequence `s` are `offsets[s]..offsets[s + 1]`, of `i32`.
    fn mean_rows(&self, x: &Tensor, offsets: &Tensor) -> Tensor;
    /// The gradient of [`ReduceOps::mean_rows`], of the shape of `x`.
    fn mean_rows_backward(&self, dy: &Tensor, offsets: &Tensor, shape: Shape) -> Tensor;
}

/// Products with weights.
pub trait ProductOps {
    /// `activation(x · wᵀ + bias)` with `x: [rows, in]`, `w: [out, in]`.
    fn linear(&self, x: &Tensor, w: &Tensor, bias: Option<&Tensor>, activation: Option<Activation>)
    -> Tensor;
    /// Weights in the type and layout in which this device multiplies fastest. Only [`ProductOps::linear`], [`ProductOps::logits`] and
    /// [`LossOps::top_logits`] may use them; [`RowOps::embedding`] may, too, if they are in f32, so that a table that is tied to the output
    /// is kept once. The original weights cannot be restored. Products with weights in [`Form::Precise`] have the same bits as with the
    /// original weights, and are faster if there are few rows.
    ///
    /// A role lets the device choose a layout of the results. Queries, keys and values of such products may only go to attention, to a
    /// cache, or to [`MemoryOps::download`]. The bias of such weights is prepared in the same role.
    fn prepare(&self, weights: Raw, form: Form, role: Role) -> Tensor;
    /// `x · wᵀ + bias` in f32, whatever the type of `x`: logits that are rounded to bf16 would have false ties.
    fn logits(&self, x: &Tensor, w: &Tensor, bias: Option<&Tensor>) -> Tensor;
    /// `dx = dy · w`.
    fn linear_backward_input(&self, dy: &Tensor, w: &Tensor, into: Option<Tensor>) -> Tensor;
    /// `dw = dyᵀ · x`: a gradient in the type of activations, or added to one in f32.
    fn linear_backward_weight(&self, dy: &Tensor, x: &Tensor, into: Option<Tensor>) -> Tensor;
    /// `a · b` for each of a batch of matrices, `[batch, m, k] · [batch, k, n]`, either one transposed in memory.
    fn matmul(&self, a: (&Tensor, bool), b: (&Tensor, bool)) -> Tensor;
}

/// Norms over rows.
pub trait NormOps {
    /// The norm of each row of `x`, or of `x + dropout(r)` if there is a residual `(r, dropout)`.
    fn norm(&self, weights: &NormWeights, x: &Tensor, residual: Option<(&Tensor, Option<Dropout>)>) -> Norm;
    /// The gradients of a norm with these weights; `dropout` is that of `r`. `into` are the gradients `dγ` and `dβ` so far.
    fn norm_backward(
        &self,
        weights: &NormWeights,
        norm: &Norm,
        dropout: Option<Dropout>,
        dy: &Tensor,
        into: (Option<Tensor>, Option<Tensor>),
    ) -> NormGradients;
    /// The norm of each of `groups` groups of channels over all rows of a sequence; those of sequence `s` are
    /// `offsets[s]..offsets[s + 1]`, of `i32`. The kind of the weights does not matter: `μ` is the mean. Statistics are
    /// `[sequences, groups, 2]`.
    ///
    /// # Panics
    /// Without a shift.
    fn group_norm(&self, weights: &NormWeights, groups: usize, x: &Tensor, offsets: &Tensor) -> Norm;
    /// The gradients of a [`NormOps::group_norm`]; `into` as in [`NormOps::norm_backward`].
    fn group_norm_backward(
        &self,
        weights: &NormWeights,
        groups: usize,
        offsets: &Tensor,
        norm: &Norm,
        dy: &Tensor,
        into: (Option<Tensor>, Option<Tensor>),
    ) -> NormGradients;
}

/// Attention over packed sequences, and caches.
pub trait AttentionOps {
    /// Which queries attend to which keys, prepared once for the attentions of all layers.
    fn layout(&self, spans: &[Span]) -> Layout;
    /// Which rows of a cache each query attends to, prepared once for the caches of all layers.
    fn seen(&self, lists: KeyLists) -> Seen;
    /// An empty cache of keys and values.
    fn cache(&self, rule: &Attention) -> Box<dyn KeyValueCache>;
    /// `softmax(scale · q·kᵀ + bias)·v` for each head of each sequence, and the log of each softmax's denominator. The spans cover
    /// every row of `q`; rows of `k` and `v` may be left out, as the free slots of a cache are.
    fn attention(
        &self,
        rule: &Attention,
        layout: &Layout,
        bias: Option<&Bias>,
        q: &Tensor,
        k: &Tensor,
        v: &Tensor,
    ) -> (Tensor, Tensor);
    /// The gradients of `q`, `k` and `v`; here the spans cover every row of `k` and `v`, too. That of the bias, if it is wanted, is
    /// added to `dbias`, which has its shape and is in f32.
    fn attention_backward(
        &self,
        rule: &Attention,
        layout: &Layout,
        bias: (Option<&Bias>, Option<&mut Tensor>),
        qkv: [&Tensor; 3],
        y_lse: (&Tensor, &Tensor),
        dy: &Tensor,
    ) -> [Tensor; 3];
    /// A dense bias for the pairs of a layout: `b[head, query, key] = Σ x[head, row, bucket]` over all `scores`. `x: [heads, rows,
    /// buckets]` has a row for each query or for each key, and `bucket` is that of the distance `key - query`, as in [`Bias::Relative`].
    ///
    /// # Panics
    /// Without scores: they say how many heads there are.
    fn relative_bias(&self, layout: &Layout, buckets: &Tensor, scores: &[(Side, &Tensor)]) -> Tensor;
    /// The gradient of one of the `scores` of [`AttentionOps::relative_bias`], with the shape and type of `like`.
    fn relative_bias_backward(
        &self,
        layout: &Layout,
        buckets: &Tensor,
        side: Side,
        like: (Shape, DType),
        dbias: &Tensor,
    ) -> Tensor;
    /// The softmax weights of some heads, from what [`AttentionOps::attention`] gave: for each sequence and each of `heads` a
    /// matrix `[queries, keys]`, one after the other.
    fn attention_weights(
        &self,
        rule: &Attention,
        layout: &Layout,
        bias: Option<&Bias>,
        q: &Tensor,
        k: &Tensor,
        lse: &Tensor,
        heads: &[usize],
    ) -> Tensor;
}

/// A rectangle of a matrix that becomes a block of another one.
#[derive(Debug, Clone, Copy)]
pub struct Block<'a> {
    /// The matrix that it is in.
    pub x: &'a Tensor,
    /// Its position in `x`, its position in the result, and its size.
    pub place: Rectangle,
}

/// Rows by number, and rectangles: embeddings, gathering, concatenating, slicing.
pub trait RowOps {
    /// `scale · table[ids]`.
    fn embedding(&self, table: &Tensor, ids: &Tensor, scale: f32) -> Tensor;
    /// Adds `scale · dy` to the rows `ids` of `dtable`, in order; rows of the padding token are left out.
    fn embedding_backward(
        &self,
        dtable: &mut Tensor,
        ids: &Tensor,
        scale: f32,
        padding: Option<i32>,
        dy: &Tensor,
    );
    /// A matrix of this shape that consists of blocks of other matrices, and of zeros elsewhere. Blocks may not overlap in it. With `into`,
    /// the blocks are added to it. This concatenates and slices rows and columns, and is the gradient of both.
    ///
    /// # Panics
    /// Without blocks: they say the type of the result.
    fn assemble(&self, shape: Shape, blocks: &[Block], into: Option<Tensor>) -> Tensor;
}

/// Convolution and pooling windows over packed pictures, `[pixels, channels]`, whose heights and widths are `sizes`. A convolution is a
/// product with unfolded pixels (im2col).
pub trait WindowOps {
    /// The pixels under the window at each of its positions, zeros beyond the edges: `[positions, kernel · channels]`.
    fn unfold(&self, window: &Window, sizes: &[[usize; 2]], x: &Tensor) -> Tensor;
    /// The gradient of [`WindowOps::unfold`], `[pixels, channels]`.
    fn fold(&self, window: &Window, sizes: &[[usize; 2]], dy: &Tensor) -> Tensor;
    /// The maximum of each channel under the window at each position, `[positions, channels]`, and the pixels of these maxima, in a form of
    /// the backend's own.
    fn max_pool(&self, window: &Window, sizes: &[[usize; 2]], x: &Tensor) -> (Tensor, Tensor);
    /// The gradient of [`WindowOps::max_pool`], `[pixels, channels]`.
    fn max_pool_backward(&self, window: &Window, sizes: &[[usize; 2]], from: &Tensor, dy: &Tensor) -> Tensor;
}

/// The end of a model: the best logits, and the loss.
pub trait LossOps {
    /// The greatest of the logits `x · wᵀ + bias` of each row, greatest first, and `log Σ e^logit` of the row, as far as they are wanted.
    /// The logits never exist as a whole. Those of the tokens in `apart` are returned on their own, and are neither among the greatest nor
    /// in the sum; see [`TokenLists`]. Like [`MemoryOps::download`], this waits for the device.
    fn top_logits(
        &self,
        x: &Tensor,
        w: &Tensor,
        bias: Option<&Tensor>,
        wanted: Wanted,
        apart: TokenLists,
    ) -> Found;

    /// Label-smoothed cross-entropy of the logits `hidden · tableᵀ + bias`, which never exist as a whole, and its gradients as far
    /// as they are wanted. `bias: [rows of the table]`.
    fn projection_loss(
        &self,
        hidden: &Tensor,
        table: &Tensor,
        bias: Option<&Tensor>,
        target: &ProjectionTarget,
        learned: Learned,
    ) -> ProjectionLoss;

    /// `softmax(factor · (x - shift))` of each row in f32, with `shift: [cols]` in f32.
    fn softmax(&self, x: &Tensor, shift: &Tensor, factor: f32) -> Tensor;
    /// `scale` times the sum of the cross-entropies of `softmax(factor · logits)` against targets of the same shape, in f32: a scalar,
    /// and its gradient if it is wanted.
    fn soft_loss(
        &self,
        logits: &Tensor,
        targets: &Tensor,
        factor: f32,
        scale: f32,
        learned: bool,
    ) -> (Tensor, Option<Tensor>);
}

/// The length of a run of [`OptimizerOps::squared_norms`].
pub const NORM_RUN: usize = 1 << 14;

/// The optimizer.
pub trait OptimizerOps {
    /// The sum of the squares of all numbers of all tensors, a scalar: in double precision, of the [sums of
    /// runs](OptimizerOps::squared_norms) in order.
    fn squared_norm(&self, tensors: &[&Tensor]) -> Tensor;
    /// The sums of the squares of runs of [`NORM_RUN`] numbers, the last one shorter, in f32. The sum of a run does not depend on the
    /// others, so ranks that each have some runs of a tensor get the same bits.
    fn squared_norms(&self, x: &Tensor) -> Tensor;
    /// `min(1, limit / √squared_norm)`: the factor that limits the norm of gradients to `limit`.
    fn clip_factor(&self, squared_norm: &Tensor, limit: f32) -> Tensor;
    /// One step of Adam on a parameter, with the gradient multiplied by `factor` first; `step` counts from 1.
    fn adam(
        &self,
        rule: &Adam,
        step: u32,
        factor: Option<&Tensor>,
        p: &mut Tensor,
        g: &Tensor,
        mv: [&mut Tensor; 2],
    );
}

/// Short forms of frequent calls.
impl dyn Backend + '_ {
    /// [`MemoryOps::upload`] of `f32`.
    pub fn upload_f32(&self, data: &[f32], shape: impl Into<Shape>) -> Tensor {
        self.upload(Host::F32(data), shape.into())
    }

    /// [`MemoryOps::upload`] of a list of `i32`.
    pub fn upload_i32(&self, data: &[i32]) -> Tensor {
        self.upload(Host::I32(data), [data.len()].into())
    }

    /// [`MemoryOps::download`] as `f32`, of a tensor that holds them or their bf16.
    pub fn download_f32(&self, x: &Tensor) -> Vec<f32> {
        match self.download(x) {
            HostVec::F32(data) => data,
            HostVec::Bf16(data) => data.into_iter().map(|x| x.to_f32()).collect(),
            other => panic!("download: f32 expected, but {x:?} holds {other:?}"),
        }
    }

    /// A tensor that may be written to: `x` itself if its memory is not shared, or else a copy.
    pub fn own(&self, mut x: Tensor) -> Tensor {
        if x.buffer_mut().is_unique() { x } else { self.copy(&x) }
    }
}
