//! Scaled dot-product attention and multi-head attention.

use super::Linear;
use super::cache::{KeysValues, Seen};
use crate::builder::Builder;
use crate::error::Error;
use crate::sequences::Sequences;
use attentive_tensor::{Attention, KeyLists, Span, Tape, Var};
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
            return Err(Error::config("h", "must be at least 1, not 0"));
        }
        if !d_model.is_multiple_of(h) {
            let problem = format!(
                "d_model {d_model} is not divisible by {h} heads: choose another number of heads, or set d_k and d_v"
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
    order: Order,
}

/// The order in which queries, keys and values come out of their products.
#[derive(Debug, Clone)]
enum Order {
    /// Head after head, as they are learned.
    HeadByHead,
    /// Queries and keys element by element, the heads side by side, as a cache has them.
    SideBySide,
    /// As a cache in int8 has them: which column of heads one after the other each place has.
    Int8 { keys: Arc<[usize]>, values: Arc<[usize]> },
}

impl MultiHeadAttention {
    /// An attention with its four projections.
    pub fn new(builder: &Builder, config: &MultiHeadConfig) -> Result<MultiHeadAttention, Error> {
        MultiHeadAttention::in_order(builder, config, Order::HeadByHead)
    }

    /// An attention of a decoder. If it can do nothing else than decode, because its weights are packed, its projections have
    /// their rows in the order in which a cache has keys and values, so that nothing is turned at each step.
    pub(super) fn of_decoder(
        builder: &Builder,
        config: &MultiHeadConfig,
    ) -> Result<MultiHeadAttention, Error> {
        let int8 = if builder.is_int8() { builder.backend().int8_order(&rule(config)) } else { None };
        let order = match int8 {
            _ if builder.is_plain() => Order::HeadByHead,
            None => Order::SideBySide,
            Some([keys, values]) => Order::Int8 { keys: keys.into(), values: values.into() },
        };
        MultiHeadAttention::in_order(builder, config, order)
    }

    fn in_order(
        builder: &Builder,
        config: &MultiHeadConfig,
        order: Order,
    ) -> Result<MultiHeadAttention, Error> {
        let &MultiHeadConfig { d_model, h, d_k, d_v, dropout, .. } = config;
        let [mut query, mut key, mut value] = ["q_proj", "k_proj", "v_proj"].map(|name| builder.at(name));
        match &order {
            Order::HeadByHead => {}
            Order::SideBySide => {
                let rows: Vec<usize> = (0..h * d_k).map(|row| row % h * d_k + row / h).collect();
                (query, key) = (query.reordered(&rows[..]), key.reordered(&rows[..]));
            }
            Order::Int8 { keys, values } => {
                (query, key) = (query.reordered(&keys[..]), key.reordered(&keys[..]));
                value = value.reordered(&values[..]);
            }
        }
        Ok(MultiHeadAttention {
            query: Linear::new(&query, d_model, h * d_k)?,
            key: Linear::new(&key, d_model, h * d_k)?,
            value: Linear::new(&value, d_model, h * d_v)?,
            output: Linear::new(&builder.at("out_proj"), h * d_v, d_model)?,
            rule: rule(config),
            dropout,
            order,
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

    /// The keys and values of `memory`, `[keys, h·d_k]` and `[keys, h·d_v]`, head after head.
    pub fn keys_values(&self, tape: &Tape, memory: &Var) -> (Var, Var) {
        let (keys, values) = (self.key.forward(tape, memory), self.value.forward(tape, memory));
        let values = match &self.order {
            Order::Int8 { values: order, .. } => tape.reorder_columns(&values, &places(order)),
            Order::HeadByHead | Order::SideBySide => values,
        };
        (self.head_by_head(tape, keys), values)
    }

    /// Queries or keys as their projection gave them, head after head.
    fn head_by_head(&self, tape: &Tape, x: Var) -> Var {
        match &self.order {
            Order::HeadByHead => x,
            // Elements and heads change places, as they do on the way there.
            Order::SideBySide => tape.heads_side_by_side(&x, self.rule.d_k),
            Order::Int8 { keys, .. } => tape.reorder_columns(&x, &places(keys)),
        }
    }

    /// The same as a cache has them whose rows are listed for each query.
    fn as_listed(&self, tape: &Tape, x: Var) -> Var {
        match self.order {
            Order::HeadByHead => tape.heads_side_by_side(&x, self.rule.heads),
            Order::SideBySide | Order::Int8 { .. } => x,
        }
    }

    /// [`MultiHeadAttention::keys_values`] for a cache whose rows are listed for each query.
    pub(super) fn listed_keys_values(&self, tape: &Tape, memory: &Var) -> (Var, Var) {
        (self.as_listed(tape, self.key.forward(tape, memory)), self.value.forward(tape, memory))
    }

    /// Whether a cache should have keys and values in int8: those of weights in int8 are not worth more, and reading them takes as
    /// long as reading the weights.
    pub(super) fn is_int8(&self) -> bool {
        matches!(self.order, Order::Int8 { .. })
    }

    /// [`MultiHeadAttention::forward`] to keys and values that are there already.
    pub fn attend(&self, tape: &Tape, x: &Var, keys: &Var, values: &Var, spans: &Arc<[Span]>) -> Var {
        let queries = self.head_by_head(tape, self.query.forward(tape, x));
        let heads = tape.attention(&self.rule, self.dropout, spans, &queries, keys, values);
        self.output.forward(tape, &heads)
    }

    /// The same to those in a cache.
    pub(super) fn attend_cached(&self, tape: &Tape, x: &Var, cache: &KeysValues, seen: &Seen) -> Var {
        let (keys, values) = cache.vars(tape);
        match seen {
            Seen::Spans(spans) => self.attend(tape, x, &keys, &values, spans),
            Seen::Lists { rows, ends } => {
                let queries = self.as_listed(tape, self.query.forward(tape, x));
                let (lists, keys_values) = (KeyLists { rows, ends }, [&keys, &values]);
                let heads = tape.attention_to_lists(&self.rule, lists, &queries, keys_values, cache.scales());
                self.output.forward(tape, &heads)
            }
        }
    }
}

/// What an attention of these sizes computes.
fn rule(config: &MultiHeadConfig) -> Attention {
    let &MultiHeadConfig { h, d_k, d_v, causal, window, .. } = config;
    Attention { heads: h, d_k, d_v, scale: 1.0 / (d_k as f32).sqrt(), causal, window, dropout: None }
}

/// Which place each column has, of an order that says which column is in each place.
fn places(order: &[usize]) -> Vec<usize> {
    let mut places = vec![0; order.len()];
    order.iter().enumerate().for_each(|(place, &column)| places[column] = place);
    places
}
