//! Scaled dot-product attention and multi-head attention.

use super::Linear;
use crate::builder::Builder;
use crate::error::Error;
use crate::sequences::Sequences;
use attentive_tensor::{Attention, Bias, KeyValueCache, Layout, Role, Seen, Tape, Tensor, Var};

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
    let rule = Attention { heads: 1, d_k, d_v, scale, causal, window: None, cached: false, dropout: None };
    let [queries, keys] = [q, k].map(|x| Sequences::new([x.shape().rows()]));
    let layout = queries.attending(&**tape.backend(), &keys);
    tape.attention(&rule, 0.0, &layout, None, [q, k, v])
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
    /// What products of query and key are multiplied by: 1/√d_k if none is given. T5 has 1.
    pub scale: Option<f32>,
    /// Which of its projections have biases.
    pub biases: ProjectionBiases,
    /// Whether a query is kept from seeing what comes after it.
    pub causal: bool,
    /// How many keys before it (and, if not causal, after it) a query sees, itself included.
    pub window: Option<usize>,
    /// The probability that a weight is dropped in training.
    pub dropout: f32,
}

/// Which projections of a multi-head attention have biases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProjectionBiases {
    /// All four, as in the paper's code.
    #[default]
    All,
    /// The last one alone, as in GPT-Neo.
    Output,
    /// None, as in T5.
    None,
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
        Ok(MultiHeadConfig::with_widths(d_model, h, d_k, d_k))
    }

    /// `h` heads of any width.
    pub fn with_widths(d_model: usize, h: usize, d_k: usize, d_v: usize) -> MultiHeadConfig {
        MultiHeadConfig {
            d_model,
            h,
            d_k,
            d_v,
            scale: None,
            biases: ProjectionBiases::All,
            causal: false,
            window: None,
            dropout: 0.0,
        }
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
/// let y = attention.forward(&tape, &x, &x, &sequences.attending(&*backend, &sequences), None);
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
}

impl MultiHeadAttention {
    /// An attention with its four projections.
    pub fn new(builder: &Builder, config: &MultiHeadConfig) -> Result<MultiHeadAttention, Error> {
        MultiHeadAttention::in_roles(builder, config, [Role::Product; 3])
    }

    /// The same for a decoder, whose keys and values lie in a cache: the backend may prepare its projections for that.
    pub fn cached(builder: &Builder, config: &MultiHeadConfig) -> Result<MultiHeadAttention, Error> {
        let rule = Attention { cached: true, ..rule(config) };
        let roles = [Role::Queries(rule), Role::Keys(rule), Role::Values(rule)];
        Ok(MultiHeadAttention { rule, ..MultiHeadAttention::in_roles(builder, config, roles)? })
    }

    fn in_roles(
        builder: &Builder,
        config: &MultiHeadConfig,
        [query, key, value]: [Role; 3],
    ) -> Result<MultiHeadAttention, Error> {
        let &MultiHeadConfig { d_model, h, d_k, d_v, biases, dropout, .. } = config;
        let project = |name, role, width| {
            let has_bias = biases == ProjectionBiases::All;
            Linear::with_or_without_bias(&builder.at(name).in_role(role), d_model, width, has_bias)
        };
        let output_bias = biases != ProjectionBiases::None;
        Ok(MultiHeadAttention {
            query: project("q_proj", query, h * d_k)?,
            key: project("k_proj", key, h * d_k)?,
            value: project("v_proj", value, h * d_v)?,
            output: Linear::with_or_without_bias(&builder.at("out_proj"), h * d_v, d_model, output_bias)?,
            rule: rule(config),
            dropout,
        })
    }

    /// From each sequence of `x` to its partner in `memory`, which is `x` itself in self-attention. A bias is added to the scores.
    ///
    /// # Shapes
    /// `x: [queries, d_model]`, `memory: [keys, d_model]` to `[queries, d_model]`.
    pub fn forward(
        &self,
        tape: &Tape,
        x: &Var,
        memory: &Var,
        layout: &Layout,
        bias: Option<&Bias<Var>>,
    ) -> Var {
        self.forward_apart(tape, [x, memory, memory], layout, bias)
    }

    /// The same where queries, keys and values are made of different inputs: those of DETR's queries and keys have positions, and
    /// those of its values have none.
    ///
    /// # Shapes
    /// `[queries, d_model]`, `[keys, d_model]` and `[keys, d_model]` to `[queries, d_model]`.
    pub fn forward_apart(
        &self,
        tape: &Tape,
        [queries, keys, values]: [&Var; 3],
        layout: &Layout,
        bias: Option<&Bias<Var>>,
    ) -> Var {
        let keys = self.key.forward(tape, keys);
        let values = self.value.forward(tape, values);
        let queries = self.query.forward(tape, queries);
        let heads = tape.attention(&self.rule, self.dropout, layout, bias, [&queries, &keys, &values]);
        self.output.forward(tape, &heads)
    }

    /// An empty cache for the keys and values of this attention.
    pub fn cache(&self, tape: &Tape) -> Box<dyn KeyValueCache> {
        tape.backend().cache(&self.rule)
    }

    /// Writes the keys and values of `memory: [keys, d_model]` to rows of a cache.
    pub fn write(&self, tape: &Tape, memory: &Var, rows: &Tensor, cache: &mut dyn KeyValueCache) {
        let [keys, values] = [&self.key, &self.value].map(|projection| projection.forward(tape, memory));
        cache.write(rows, keys.value(), values.value());
    }

    /// [`MultiHeadAttention::forward`] with keys and values in a cache, without gradients.
    pub fn attend(
        &self,
        tape: &Tape,
        x: &Var,
        cache: &dyn KeyValueCache,
        seen: &Seen,
        bias: Option<&Bias<Var>>,
    ) -> Var {
        let queries = self.query.forward(tape, x);
        let heads = tape.attend(cache, &queries, seen, bias);
        self.output.forward(tape, &heads)
    }
}

/// What an attention of these sizes computes.
fn rule(config: &MultiHeadConfig) -> Attention {
    let &MultiHeadConfig { h, d_k, d_v, scale, causal, window, .. } = config;
    let scale = scale.unwrap_or(1.0 / (d_k as f32).sqrt());
    Attention { heads: h, d_k, d_v, scale, causal, window, cached: false, dropout: None }
}
