//! A device whose memory the host cannot read: the proof that nothing leaks through the waist.
//!
//! [`SealedBackend`] computes like another backend, but its buffers are of a type that no other code knows, and it
//! counts how often the host asks to see one. A training step that runs on it, and asks for nothing but the loss, runs on
//! any device.

use crate::backend::{
    AttentionOps, Backend, Binary, Block, Distribution, ElementwiseOps, Form, Learned, LossOps, MemoryOps,
    Norm, NormGradients, NormOps, NormWeights, OptimizerOps, ProductOps, ProjectionLoss, ProjectionTarget,
    Raw, ReduceOps, Role, RowOps, WindowOps,
};
use crate::bias::Bias;
use crate::cache::KeyValueCache;
use crate::layout::{Layout, Seen};
use crate::shape::Shape;
use crate::tensor::{Buffer, DType, Host, HostVec, Tensor};
use attentive_kernels::activation::Activation;
use attentive_kernels::attention::{Attention, KeyLists, Span};
use attentive_kernels::optimizer::Adam;
use attentive_kernels::relative::Side;
use attentive_kernels::top::{Found, TokenLists, Wanted};
use attentive_kernels::window::Window;
use attentive_kernels::{Dropout, Random};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A backend that hides the memory of another.
#[derive(Debug)]
pub struct SealedBackend {
    inner: Arc<dyn Backend>,
    downloads: AtomicUsize,
}

/// The contents of its buffers. The type is private, so that no other code can read them.
struct Vault(Tensor);

impl SealedBackend {
    /// Hides the memory of `inner`.
    pub fn new(inner: Arc<dyn Backend>) -> SealedBackend {
        SealedBackend { inner, downloads: AtomicUsize::new(0) }
    }

    /// How often the host has asked for numbers.
    pub fn downloads(&self) -> usize {
        self.downloads.load(Ordering::Relaxed)
    }
}

/// What the buffer of a layout or of lists holds.
struct Hidden<T>(T);

/// A cache of the backend that is hidden.
#[derive(Debug)]
struct SealedCache(Box<dyn KeyValueCache>);

impl KeyValueCache for SealedCache {
    fn reserve(&mut self, rows: usize) {
        self.0.reserve(rows);
    }
    fn write(&mut self, rows: &Tensor, keys: &Tensor, values: &Tensor) {
        self.0.write(&open(rows), &open(keys), &open(values));
    }
    fn attend(&self, queries: &Tensor, seen: &Seen, bias: Option<&Bias>) -> Tensor {
        let Hidden(seen) = seen.buffer().get::<Hidden<Seen>>().expect("lists of the sealed backend");
        seal(self.0.attend(&open(queries), seen, bias.map(open_bias).as_ref()))
    }
}

fn open_layout(layout: &Layout) -> &Layout {
    let Hidden(layout) = layout.buffer().get::<Hidden<Layout>>().expect("a layout of the sealed backend");
    layout
}

fn open_bias(bias: &Bias) -> Bias {
    match bias {
        Bias::Relative { table, buckets } => Bias::Relative { table: open(table), buckets: open(buckets) },
        Bias::Dense(numbers) => Bias::Dense(open(numbers)),
    }
}

fn seal(x: Tensor) -> Tensor {
    let (shape, dtype) = (x.shape(), x.dtype());
    Tensor::new(Buffer::new(Vault(x)), shape, dtype)
}

/// The tensor inside, in the shape that the one outside has been given.
fn open(x: &Tensor) -> Tensor {
    let vault = x.buffer().get::<Vault>().expect("a tensor of the sealed backend");
    vault.0.reshape(x.shape())
}

/// The tensor inside, of which no other handle is left.
fn take(x: Tensor) -> Tensor {
    open(&x)
}

fn change<T>(x: &mut Tensor, f: impl FnOnce(&mut Tensor) -> T) -> T {
    let vault = x.buffer_mut().get_mut::<Vault>().expect("a tensor of the sealed backend that nobody shares");
    f(&mut vault.0)
}

fn open_norm(norm: &Norm) -> Norm {
    Norm { y: open(&norm.y), z: open(&norm.z), stats: open(&norm.stats) }
}

fn seal_norm(norm: Norm) -> Norm {
    Norm { y: seal(norm.y), z: seal(norm.z), stats: seal(norm.stats) }
}

fn seal_gradients(g: NormGradients) -> NormGradients {
    NormGradients { dz: seal(g.dz), dr: seal(g.dr), dgamma: seal(g.dgamma), dbeta: g.dbeta.map(seal) }
}

/// Calls `f` with the weights inside.
fn with_open<T>(weights: &NormWeights, f: impl FnOnce(&NormWeights) -> T) -> T {
    let (gamma, beta) = (open(weights.gamma), weights.beta.map(open));
    f(&NormWeights { gamma: &gamma, beta: beta.as_ref(), ..*weights })
}

impl Backend for SealedBackend {
    fn name(&self) -> String {
        format!("sealed {}", self.inner.name())
    }
    fn activations(&self) -> DType {
        self.inner.activations()
    }
    fn take_profile(&self) -> Vec<(&'static str, Duration)> {
        self.inner.take_profile()
    }
}

impl MemoryOps for SealedBackend {
    fn zeros(&self, shape: Shape, dtype: DType) -> Tensor {
        seal(self.inner.zeros(shape, dtype))
    }
    fn upload(&self, data: Host, shape: Shape) -> Tensor {
        seal(self.inner.upload(data, shape))
    }
    fn written(&self, shape: Shape, write: &mut dyn FnMut(&mut [f32])) -> Tensor {
        seal(self.inner.written(shape, write))
    }
    fn download(&self, x: &Tensor) -> HostVec {
        self.downloads.fetch_add(1, Ordering::Relaxed);
        self.inner.download(&open(x))
    }
    fn copy(&self, x: &Tensor) -> Tensor {
        seal(self.inner.copy(&open(x)))
    }
    fn random(&self, shape: Shape, distribution: Distribution, random: Random) -> Tensor {
        seal(self.inner.random(shape, distribution, random))
    }
}

impl ElementwiseOps for SealedBackend {
    fn binary(&self, op: Binary, a: &Tensor, b: &Tensor) -> Tensor {
        seal(self.inner.binary(op, &open(a), &open(b)))
    }
    fn scale(&self, x: &Tensor, factor: f32) -> Tensor {
        seal(self.inner.scale(&open(x), factor))
    }
    fn cast(&self, x: &Tensor, to: DType) -> Tensor {
        seal(self.inner.cast(&open(x), to))
    }
    fn add_assign(&self, y: &mut Tensor, x: &Tensor, factor: f32) {
        change(y, |y| self.inner.add_assign(y, &open(x), factor));
    }
    fn blend(&self, y: &mut Tensor, x: &Tensor, share: f32) {
        change(y, |y| self.inner.blend(y, &open(x), share));
    }
    fn activate(&self, activation: Activation, x: &Tensor) -> Tensor {
        seal(self.inner.activate(activation, &open(x)))
    }
    fn activate_backward(&self, activation: Activation, x: &Tensor, dy: &Tensor) -> Tensor {
        seal(self.inner.activate_backward(activation, &open(x), &open(dy)))
    }
    fn dropout(&self, x: &Tensor, dropout: Dropout) -> Tensor {
        seal(self.inner.dropout(&open(x), dropout))
    }
    fn residual(&self, x: &Tensor, r: &Tensor, dropout: Option<Dropout>) -> Tensor {
        seal(self.inner.residual(&open(x), &open(r), dropout))
    }
}

impl ReduceOps for SealedBackend {
    fn sum_rows(&self, x: &Tensor, into: Option<Tensor>) -> Tensor {
        seal(self.inner.sum_rows(&open(x), into.map(take)))
    }
    fn mean_rows(&self, x: &Tensor, offsets: &Tensor) -> Tensor {
        seal(self.inner.mean_rows(&open(x), &open(offsets)))
    }
    fn mean_rows_backward(&self, dy: &Tensor, offsets: &Tensor, shape: Shape) -> Tensor {
        seal(self.inner.mean_rows_backward(&open(dy), &open(offsets), shape))
    }
}

impl ProductOps for SealedBackend {
    fn linear(
        &self,
        x: &Tensor,
        w: &Tensor,
        bias: Option<&Tensor>,
        activation: Option<Activation>,
    ) -> Tensor {
        seal(self.inner.linear(&open(x), &open(w), bias.map(open).as_ref(), activation))
    }
    fn prepare(&self, weights: Raw, form: Form, role: Role) -> Tensor {
        seal(match weights {
            Raw::Tensor(weights) => self.inner.prepare(Raw::Tensor(&open(weights)), form, role),
            Raw::Int8 { .. } => self.inner.prepare(weights, form, role),
        })
    }
    fn logits(&self, x: &Tensor, w: &Tensor, bias: Option<&Tensor>) -> Tensor {
        seal(self.inner.logits(&open(x), &open(w), bias.map(open).as_ref()))
    }
    fn linear_backward_input(&self, dy: &Tensor, w: &Tensor, into: Option<Tensor>) -> Tensor {
        seal(self.inner.linear_backward_input(&open(dy), &open(w), into.map(take)))
    }
    fn linear_backward_weight(&self, dy: &Tensor, x: &Tensor, into: Option<Tensor>) -> Tensor {
        seal(self.inner.linear_backward_weight(&open(dy), &open(x), into.map(take)))
    }
    fn matmul(&self, a: (&Tensor, bool), b: (&Tensor, bool)) -> Tensor {
        seal(self.inner.matmul((&open(a.0), a.1), (&open(b.0), b.1)))
    }
}

impl NormOps for SealedBackend {
    fn norm(&self, weights: &NormWeights, x: &Tensor, residual: Option<(&Tensor, Option<Dropout>)>) -> Norm {
        let residual = residual.map(|(r, dropout)| (open(r), dropout));
        let residual = residual.as_ref().map(|(r, dropout)| (r, *dropout));
        with_open(weights, |weights| seal_norm(self.inner.norm(weights, &open(x), residual)))
    }
    fn norm_backward(
        &self,
        weights: &NormWeights,
        norm: &Norm,
        dropout: Option<Dropout>,
        dy: &Tensor,
        (dgamma, dbeta): (Option<Tensor>, Option<Tensor>),
    ) -> NormGradients {
        let (norm, into) = (open_norm(norm), (dgamma.map(take), dbeta.map(take)));
        let g =
            with_open(weights, |weights| self.inner.norm_backward(weights, &norm, dropout, &open(dy), into));
        seal_gradients(g)
    }
    fn group_norm(&self, weights: &NormWeights, groups: usize, x: &Tensor, offsets: &Tensor) -> Norm {
        let (x, offsets) = (open(x), open(offsets));
        with_open(weights, |weights| seal_norm(self.inner.group_norm(weights, groups, &x, &offsets)))
    }
    fn group_norm_backward(
        &self,
        weights: &NormWeights,
        groups: usize,
        offsets: &Tensor,
        norm: &Norm,
        dy: &Tensor,
        (dgamma, dbeta): (Option<Tensor>, Option<Tensor>),
    ) -> NormGradients {
        let (norm, offsets, into) = (open_norm(norm), open(offsets), (dgamma.map(take), dbeta.map(take)));
        seal_gradients(with_open(weights, |weights| {
            self.inner.group_norm_backward(weights, groups, &offsets, &norm, &open(dy), into)
        }))
    }
}

impl AttentionOps for SealedBackend {
    fn layout(&self, spans: &[Span]) -> Layout {
        Layout::new(spans, Buffer::new(Hidden(self.inner.layout(spans))))
    }
    fn seen(&self, lists: KeyLists) -> Seen {
        Seen::new(lists.lists.len(), Buffer::new(Hidden(self.inner.seen(lists))))
    }
    fn cache(&self, rule: &Attention) -> Box<dyn KeyValueCache> {
        Box::new(SealedCache(self.inner.cache(rule)))
    }
    fn attention(
        &self,
        rule: &Attention,
        layout: &Layout,
        bias: Option<&Bias>,
        q: &Tensor,
        k: &Tensor,
        v: &Tensor,
    ) -> (Tensor, Tensor) {
        let (layout, bias) = (open_layout(layout), bias.map(open_bias));
        let (y, lse) = self.inner.attention(rule, layout, bias.as_ref(), &open(q), &open(k), &open(v));
        (seal(y), seal(lse))
    }
    fn attention_backward(
        &self,
        rule: &Attention,
        layout: &Layout,
        (bias, dbias): (Option<&Bias>, Option<&mut Tensor>),
        qkv: [&Tensor; 3],
        (y, lse): (&Tensor, &Tensor),
        dy: &Tensor,
    ) -> [Tensor; 3] {
        let (layout, bias) = (open_layout(layout), bias.map(open_bias));
        let (qkv, y, lse, dy) = (qkv.map(open), open(y), open(lse), open(dy));
        let inner = |dbias: Option<&mut Tensor>| {
            let bias = (bias.as_ref(), dbias);
            self.inner.attention_backward(rule, layout, bias, qkv.each_ref(), (&y, &lse), &dy)
        };
        match dbias {
            Some(dbias) => change(dbias, |dbias| inner(Some(dbias))),
            None => inner(None),
        }
        .map(seal)
    }
    fn relative_bias(&self, layout: &Layout, buckets: &Tensor, scores: &[(Side, &Tensor)]) -> Tensor {
        let opened: Vec<(Side, Tensor)> = scores.iter().map(|(side, x)| (*side, open(x))).collect();
        let scores: Vec<(Side, &Tensor)> = opened.iter().map(|(side, x)| (*side, x)).collect();
        seal(self.inner.relative_bias(open_layout(layout), &open(buckets), &scores))
    }
    fn relative_bias_backward(
        &self,
        layout: &Layout,
        buckets: &Tensor,
        side: Side,
        like: (Shape, DType),
        dbias: &Tensor,
    ) -> Tensor {
        let (layout, buckets, dbias) = (open_layout(layout), open(buckets), open(dbias));
        seal(self.inner.relative_bias_backward(layout, &buckets, side, like, &dbias))
    }
    fn attention_weights(
        &self,
        rule: &Attention,
        layout: &Layout,
        bias: Option<&Bias>,
        q: &Tensor,
        k: &Tensor,
        lse: &Tensor,
        heads: &[usize],
    ) -> Tensor {
        let (layout, bias) = (open_layout(layout), bias.map(open_bias));
        let (q, k, lse) = (open(q), open(k), open(lse));
        seal(self.inner.attention_weights(rule, layout, bias.as_ref(), &q, &k, &lse, heads))
    }
}

impl RowOps for SealedBackend {
    fn embedding(&self, table: &Tensor, ids: &Tensor, scale: f32) -> Tensor {
        seal(self.inner.embedding(&open(table), &open(ids), scale))
    }
    fn embedding_backward(
        &self,
        dtable: &mut Tensor,
        ids: &Tensor,
        scale: f32,
        padding: Option<i32>,
        dy: &Tensor,
    ) {
        change(dtable, |dtable| self.inner.embedding_backward(dtable, &open(ids), scale, padding, &open(dy)));
    }
    fn assemble(&self, shape: Shape, blocks: &[Block], into: Option<Tensor>) -> Tensor {
        let opened: Vec<Tensor> = blocks.iter().map(|block| open(block.x)).collect();
        let blocks: Vec<Block> = opened.iter().zip(blocks).map(|(x, block)| Block { x, ..*block }).collect();
        seal(self.inner.assemble(shape, &blocks, into.map(take)))
    }
}

impl WindowOps for SealedBackend {
    fn unfold(&self, window: &Window, sizes: &[[usize; 2]], x: &Tensor) -> Tensor {
        seal(self.inner.unfold(window, sizes, &open(x)))
    }
    fn fold(&self, window: &Window, sizes: &[[usize; 2]], dy: &Tensor) -> Tensor {
        seal(self.inner.fold(window, sizes, &open(dy)))
    }
    fn max_pool(&self, window: &Window, sizes: &[[usize; 2]], x: &Tensor) -> (Tensor, Tensor) {
        let (y, from) = self.inner.max_pool(window, sizes, &open(x));
        (seal(y), seal(from))
    }
    fn max_pool_backward(&self, window: &Window, sizes: &[[usize; 2]], from: &Tensor, dy: &Tensor) -> Tensor {
        seal(self.inner.max_pool_backward(window, sizes, &open(from), &open(dy)))
    }
}

impl LossOps for SealedBackend {
    fn top_logits(
        &self,
        x: &Tensor,
        w: &Tensor,
        bias: Option<&Tensor>,
        wanted: Wanted,
        apart: TokenLists,
    ) -> Found {
        self.downloads.fetch_add(1, Ordering::Relaxed);
        self.inner.top_logits(&open(x), &open(w), bias.map(open).as_ref(), wanted, apart)
    }
    fn projection_loss(
        &self,
        hidden: &Tensor,
        table: &Tensor,
        bias: Option<&Tensor>,
        target: &ProjectionTarget,
        learned: Learned,
    ) -> ProjectionLoss {
        let (tokens, bias) = (open(target.tokens), bias.map(open));
        let target = ProjectionTarget { tokens: &tokens, ..*target };
        let (hidden, table) = (open(hidden), open(table));
        let result = self.inner.projection_loss(&hidden, &table, bias.as_ref(), &target, learned);
        let gradients = result.gradients.map(|(dhidden, dtable)| (seal(dhidden), seal(dtable)));
        ProjectionLoss { loss: seal(result.loss), gradients, dbias: result.dbias.map(seal) }
    }
    fn softmax(&self, x: &Tensor, shift: &Tensor, factor: f32) -> Tensor {
        seal(self.inner.softmax(&open(x), &open(shift), factor))
    }
    fn soft_loss(
        &self,
        logits: &Tensor,
        targets: &Tensor,
        factor: f32,
        scale: f32,
        learned: bool,
    ) -> (Tensor, Option<Tensor>) {
        let (loss, gradient) = self.inner.soft_loss(&open(logits), &open(targets), factor, scale, learned);
        (seal(loss), gradient.map(seal))
    }
}

impl OptimizerOps for SealedBackend {
    fn squared_norm(&self, tensors: &[&Tensor]) -> Tensor {
        let tensors: Vec<Tensor> = tensors.iter().map(|x| open(x)).collect();
        seal(self.inner.squared_norm(&tensors.iter().collect::<Vec<_>>()))
    }
    fn squared_norms(&self, x: &Tensor) -> Tensor {
        seal(self.inner.squared_norms(&open(x)))
    }
    fn clip_factor(&self, squared_norm: &Tensor, limit: f32) -> Tensor {
        seal(self.inner.clip_factor(&open(squared_norm), limit))
    }
    fn adam(
        &self,
        rule: &Adam,
        step: u32,
        factor: Option<&Tensor>,
        p: &mut Tensor,
        g: &Tensor,
        [m, v]: [&mut Tensor; 2],
    ) {
        let factor = factor.map(open);
        change(p, |p| {
            change(m, |m| {
                change(v, |v| self.inner.adam(rule, step, factor.as_ref(), p, &open(g), [m, v]));
            });
        });
    }
}
