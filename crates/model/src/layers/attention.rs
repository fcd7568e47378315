//! Scaled dot-product attention and multi-head attention.

use super::Linear;
use super::cache::{KeysValues, Seen};
use crate::builder::Builder;
use crate::error::Error;
use crate::sequences::Sequences;
use attentive_tensor::{Attention, DType, KeyLists, Span, Tape, Var};
use std::sync::Arc;

/// `softmax(scale · Q·Kᵀ)·V` of one sequence and one head: each row of `V` counts as much as its key is like the query.
///
/// `scale` is `1/√d_k` if none is given. With `causal`, a query does not see keys behind its own position.
///
/// # Shapes
/// `q: [queries, d_k]`, `k: [keys, d_k]`, `v: [keys, d_v]` to `[queries, d_v]`.
///
/// ```
/// use attentive_model::layers::scaled_dot_product_attention;
/// use attentive_tensor::{CpuBackend, Tape};
///
/// let backend = CpuBackend::from_env()?.shared();
/// let tape = Tape::inference(&backend);
/// let matrix = |rows: &[[f32; 3]]| tape.constant(backend.upload_f32(rows.as_flattened(), [rows.len(), 3]));
/// let keys = matrix(&[[10., 0., 0.], [0., 10., 0.], [0., 0., 10.], [0., 0., 10.]]);
/// let values = matrix(&[[1., 0., 1.], [10., 0., 2.], [100., 5., 0.], [1000., 6., 0.]]);
/// let look_up = |query: [f32; 3]| {
///     let y = scaled_dot_product_attention(&tape, &matrix(&[query]), &keys, &values, false, Some(0.5));
///     backend.download_f32(y.value()).iter().map(|y| format!("{y:.3}")).collect::<Vec<_>>().join(" ")
/// };
/// assert_eq!(look_up([0., 10., 0.]), "10.000 0.000 2.000"); // like the second key: its value
/// assert_eq!(look_up([0., 0., 10.]), "550.000 5.500 0.000"); // like two keys: halfway between their values
/// assert_eq!(look_up([10., 10., 0.]), "5.500 0.000 1.500");
/// # Ok::<(), attentive_tensor::Error>(())
/// ```
pub fn scaled_dot_product_attention(
    tape: &Tape,
    q: &Var,
    k: &Var,
    v: &Var,
    causal: bool,
    scale: Option<f32>,
) -> Var {
    let (d_k, d_v) = (q.shape().cols(), v.shape().cols());
    let scale = scale.unwrap_or(1.0 / (d_k as f32).sqrt());
    let rule = Attention { heads: 1, d_k, d_v, scale, causal, window: None, dropout: None };
    let [queries, keys] = [q, k].map(|x| Sequences::new([x.shape().rows()]));
    tape.attention(&rule, 0.0, &queries.attending(&keys), q, k, v)
}

/// `softmax(Q·Kᵀ)·V`, not scaled: for large d_k the dot products grow, the softmax turns peaky and its gradients vanish.
/// That is why the paper divides by √d_k.
pub fn dot_product_attention(tape: &Tape, q: &Var, k: &Var, v: &Var, causal: bool) -> Var {
    scaled_dot_product_attention(tape, q, k, v, causal, Some(1.0))
}

/// The sizes of a multi-head attention.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MultiHeadConfig {
    /// The width of what goes in and comes out.
    pub d_model: usize,
    /// The number of heads.
    pub h: usize,
    /// The width of a query and a key in each head.
    pub d_k: usize,
    /// The width of a value in each head.
    pub d_v: usize,
    /// Whether a query is kept from seeing what comes after it.
    pub causal: bool,
    /// How many keys before it (and, if not causal, after it) a query sees, itself included.
    pub window: Option<usize>,
    /// The probability that a weight is dropped in training.
    pub dropout: f32,
}

impl MultiHeadConfig {
    /// `h` heads that share `d_model` between them, `d_k = d_v = d_model / h`.
    pub fn new(d_model: usize, h: usize) -> Result<MultiHeadConfig, Error> {
        if h == 0 {
            return Err(Error::config("h", "an attention needs at least one head"));
        }
        if !d_model.is_multiple_of(h) {
            let problem = format!(
                "{h} heads do not divide d_model {d_model}: give another number of heads, or d_k and d_v"
            );
            return Err(Error::config("h", problem));
        }
        let d_k = d_model / h;
        Ok(MultiHeadConfig { d_model, h, d_k, d_v: d_k, causal: false, window: None, dropout: 0.0 })
    }
}

/// `MultiHead(Q, K, V) = Concat(head₁, …, head_h)·W^O` with `headᵢ = Attention(Q·Wᵢ^Q, K·Wᵢ^K, V·Wᵢ^V)`.
///
/// The projections of all heads are one matrix each, head after head in its rows.
///
/// ```
/// use attentive_model::layers::{MultiHeadAttention, MultiHeadConfig};
/// use attentive_model::{Builder, Sequences};
/// use attentive_tensor::{CpuBackend, Tape};
///
/// let backend = CpuBackend::from_env()?.shared();
/// let attention = MultiHeadAttention::new(&Builder::random(&backend, 1), &MultiHeadConfig::new(16, 4)?)?;
///
/// let sequences = Sequences::new([3, 2]); // two sequences, packed one after the other
/// let tape = Tape::inference(&backend).watching();
/// let x = tape.constant(backend.upload_f32(&[0.5; 5 * 16], [5, 16]));
/// let y = attention.forward(&tape, &x, &x, &sequences.attending(&sequences));
/// assert_eq!(y.shape().to_string(), "[5, 16]");
///
/// let weights = tape.watched()[0].matrix(&*backend, 1, 3); // the second sequence, the last head
/// assert_eq!(backend.download_f32(&weights), [0.5; 4]); // every token looks at both alike
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct MultiHeadAttention {
    query: Linear,
    key: Linear,
    value: Linear,
    output: Linear,
    rule: Attention,
    dropout: f32,
    /// Whether queries and keys come out of their products with their heads side by side.
    side_by_side: bool,
}

impl MultiHeadAttention {
    /// An attention with its four projections.
    pub fn new(builder: &Builder, config: &MultiHeadConfig) -> Result<MultiHeadAttention, Error> {
        MultiHeadAttention::with_heads(builder, config, false)
    }

    /// An attention of a decoder. If it can do nothing else than decode, because its weights are packed, the projections of
    /// queries and keys have their rows in the order in which a cache has them, so that nothing is turned at each step.
    pub(super) fn of_decoder(
        builder: &Builder,
        config: &MultiHeadConfig,
    ) -> Result<MultiHeadAttention, Error> {
        MultiHeadAttention::with_heads(builder, config, !builder.is_plain())
    }

    fn with_heads(
        builder: &Builder,
        config: &MultiHeadConfig,
        side_by_side: bool,
    ) -> Result<MultiHeadAttention, Error> {
        let &MultiHeadConfig { d_model, h, d_k, d_v, causal, window, dropout } = config;
        let scale = 1.0 / (d_k as f32).sqrt();
        let turned = |name| {
            let builder = builder.at(name);
            if side_by_side {
                builder.reordered((0..h * d_k).map(|row| row % h * d_k + row / h).collect::<Vec<_>>())
            } else {
                builder
            }
        };
        Ok(MultiHeadAttention {
            query: Linear::new(&turned("q_proj"), d_model, h * d_k)?,
            key: Linear::new(&turned("k_proj"), d_model, h * d_k)?,
            value: Linear::new(&builder.at("v_proj"), d_model, h * d_v)?,
            output: Linear::new(&builder.at("out_proj"), h * d_v, d_model)?,
            rule: Attention { heads: h, d_k, d_v, scale, causal, window, dropout: None },
            dropout,
            side_by_side,
        })
    }

    /// From each sequence of `x` to its partner in `memory`, which is `x` itself in self-attention.
    ///
    /// # Shapes
    /// `x: [queries, d_model]`, `memory: [keys, d_model]` to `[queries, d_model]`.
    pub fn forward(&self, tape: &Tape, x: &Var, memory: &Var, spans: &Arc<[Span]>) -> Var {
        let (keys, values) = self.keys_values(tape, memory);
        self.attend(tape, x, &keys, &values, spans)
    }

    /// The keys and values of `memory`, `[keys, h·d_k]` and `[keys, h·d_v]`: what a cache keeps.
    pub fn keys_values(&self, tape: &Tape, memory: &Var) -> (Var, Var) {
        (self.one_after_the_other(tape, self.key.forward(tape, memory)), self.value.forward(tape, memory))
    }

    /// Queries or keys as their projection gave them, head after head.
    fn one_after_the_other(&self, tape: &Tape, x: Var) -> Var {
        // Elements and heads change places, as they do on the way there.
        if self.side_by_side { tape.heads_side_by_side(&x, self.rule.d_k) } else { x }
    }

    /// The same element by element, the heads side by side.
    fn side_by_side(&self, tape: &Tape, x: Var) -> Var {
        if self.side_by_side { x } else { tape.heads_side_by_side(&x, self.rule.heads) }
    }

    /// The same for a cache whose rows are listed for each query: the heads of its keys lie side by side.
    pub(super) fn listed_keys_values(&self, tape: &Tape, memory: &Var) -> (Var, Var) {
        (self.side_by_side(tape, self.key.forward(tape, memory)), self.value.forward(tape, memory))
    }

    /// The type that a cache should round keys and values to, if not their own: those of weights in int8 are not worth more
    /// than bf16, and reading them takes as long as reading the weights.
    pub(super) fn cache_dtype(&self) -> Option<DType> {
        self.key.is_int8().then_some(DType::Bf16)
    }

    /// [`MultiHeadAttention::forward`] to keys and values that are there already.
    pub fn attend(&self, tape: &Tape, x: &Var, keys: &Var, values: &Var, spans: &Arc<[Span]>) -> Var {
        let queries = self.one_after_the_other(tape, self.query.forward(tape, x));
        let heads = tape.attention(&self.rule, self.dropout, spans, &queries, keys, values);
        self.output.forward(tape, &heads)
    }

    /// The same to those in a cache.
    pub(super) fn attend_cached(&self, tape: &Tape, x: &Var, cache: &KeysValues, seen: &Seen) -> Var {
        let (keys, values) = cache.vars(tape);
        match seen {
            Seen::Spans(spans) => self.attend(tape, x, &keys, &values, spans),
            Seen::Lists { rows, ends } => {
                let queries = self.side_by_side(tape, self.query.forward(tape, x));
                let lists = KeyLists { rows, ends };
                let heads = tape.attention_to_lists(&self.rule, lists, &queries, &keys, &values);
                self.output.forward(tape, &heads)
            }
        }
    }
}
