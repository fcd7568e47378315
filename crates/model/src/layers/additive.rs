//! Additive attention, which the paper compares with the dot product.

use crate::builder::{Builder, Init};
use crate::error::Error;
use crate::sequences::Sequences;
use attentive_tensor::{Activation, Attention, Bias, Parameter, Tape, Var};

/// `softmax(wᵀ·tanh(W_q·q + W_k·k))·V`, after Bahdanau, Cho and Bengio: a small network with one hidden layer says how
/// like a key is to a query. It needs no scale, but has to visit every pair of the two.
#[derive(Debug, Clone)]
pub struct AdditiveAttention {
    query: Parameter,
    key: Parameter,
    score: Parameter,
}

impl AdditiveAttention {
    /// An attention for queries and keys of width `d_k` with `d` hidden units.
    pub fn new(builder: &Builder, d_k: usize, d: usize) -> Result<AdditiveAttention, Error> {
        Ok(AdditiveAttention {
            query: builder.parameter("query.weight", [d, d_k], Init::Xavier)?,
            key: builder.parameter("key.weight", [d, d_k], Init::Xavier)?,
            score: builder.parameter("score.weight", [1, d], Init::Xavier)?,
        })
    }

    /// The attention of one sequence.
    ///
    /// # Shapes
    /// `q: [queries, d_k]`, `k: [keys, d_k]`, `v: [keys, d_v]` to `[queries, d_v]`.
    pub fn forward(&self, tape: &Tape, q: &Var, k: &Var, v: &Var) -> Var {
        let (queries, keys, d_v) = (q.shape().rows(), k.shape().rows(), v.shape().cols());
        let project = |x: &Var, w: &Parameter| tape.linear(x, &tape.parameter(w), None, None);
        // Every pair of a query and a key, query by query: [queries · keys, d].
        let pairs = |f: fn(usize, usize) -> usize| {
            let numbers: Vec<i32> = (0..queries * keys).map(|pair| f(pair, keys) as i32).collect();
            tape.backend().upload_i32(&numbers)
        };
        let q = tape.embedding(&project(q, &self.query), &pairs(|pair, keys| pair / keys), 1.0, None);
        let k = tape.embedding(&project(k, &self.key), &pairs(|pair, keys| pair % keys), 1.0, None);
        let hidden = tape.activate(Activation::Tanh, &tape.add(&q, &k));
        let scores = Bias::Dense(project(&hidden, &self.score));
        // Queries and keys of zeros leave the scores to the bias.
        let rule = Attention {
            heads: 1,
            d_k: 1,
            d_v,
            scale: 1.0,
            causal: false,
            window: None,
            cached: false,
            dropout: None,
        };
        let [zero_q, zero_k] = [queries, keys]
            .map(|rows| tape.constant(tape.backend().zeros([rows, 1].into(), v.value().dtype())));
        let layout = Sequences::new([queries]).attending(&**tape.backend(), &Sequences::new([keys]));
        tape.attention(&rule, 0.0, &layout, Some(&scores), [&zero_q, &zero_k, v])
    }
}
