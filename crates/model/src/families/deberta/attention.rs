//! Disentangled attention (He et al. 2021, section 3.1).
//!
//! ```text
//! s_ij = (q_i · k_j + q_i · kr_δ(i-j) + k_j · qr_δ(i-j)) / √(terms · d_k)
//! ```
//!
//! with `kr` and `qr` the projected rows of the table of distances, and `δ` the row of a distance. The first term is the product of the
//! fused attention; the others are its bias.

use super::Disentangled;
use crate::builder::{Builder, Init};
use crate::error::Error;
use crate::layers::{Linear, MultiHeadConfig};
use attentive_tensor::{
    Attention, Bias, DistanceRows, Layout, Parameter, Rectangle, RelativeSide, Tape, Tensor, Var,
};

/// Rows of the table of distances, and which of them belongs to a pair.
pub(super) struct Distances {
    /// `[rows, d_model]`
    pub rows: Var,
    /// The row of each distance `key - query`.
    pub buckets: Tensor,
}

/// The attention of one layer.
#[derive(Debug, Clone)]
pub(in crate::families) struct DisentangledAttention {
    contents: Contents,
    keys_of_distances: Option<Linear>,
    queries_of_distances: Option<Linear>,
    output: Linear,
    config: Disentangled,
    rule: Attention,
    dropout: f32,
    /// Dropout of the rows of distances.
    row_dropout: f32,
}

/// How queries, keys and values are made of tokens.
#[derive(Debug, Clone)]
enum Contents {
    Apart([Linear; 3]),
    /// One matrix with query, key and value of a head next to each other; keys have no bias.
    Fused {
        all: Linear,
        query_bias: Parameter,
        value_bias: Parameter,
    },
}

impl DisentangledAttention {
    /// An attention with its projections.
    pub fn new(
        builder: &Builder,
        heads: &MultiHeadConfig,
        config: Disentangled,
        row_dropout: f32,
    ) -> Result<DisentangledAttention, Error> {
        let &MultiHeadConfig { d_model: d, h, d_k, d_v, dropout, .. } = heads;
        let linear = |name: &str| Linear::new(&builder.at(name), d, d);
        let contents = if config.fused {
            Contents::Fused {
                all: Linear::without_bias(&builder.at("in_proj"), d, 3 * d)?,
                query_bias: builder.parameter("q_bias", [d], Init::Zeros)?,
                value_bias: builder.parameter("v_bias", [d], Init::Zeros)?,
            }
        } else {
            Contents::Apart([linear("q_proj")?, linear("k_proj")?, linear("v_proj")?])
        };
        let own = config.relative && !config.shared;
        let keys = own && config.content_to_position;
        let queries = own && config.position_to_content;
        let scale = 1.0 / ((d_k * config.terms()) as f32).sqrt();
        let keys_of_distances =
            || Linear::with_or_without_bias(&builder.at("pos_key_proj"), d, d, !config.fused);
        Ok(DisentangledAttention {
            contents,
            keys_of_distances: keys.then(keys_of_distances).transpose()?,
            queries_of_distances: queries.then(|| linear("pos_query_proj")).transpose()?,
            output: linear("out_proj")?,
            config,
            rule: Attention {
                heads: h,
                d_k,
                d_v,
                scale,
                causal: false,
                window: None,
                cached: false,
                dropout: None,
            },
            dropout,
            row_dropout,
        })
    }

    /// `[tokens, d_model]` to `[tokens, d_model]`.
    pub fn forward(&self, tape: &Tape, x: &Var, layout: &Layout, distances: Option<&Distances>) -> Var {
        let [queries, keys, values] = &self.contents(tape, x);
        let bias = distances.and_then(|distances| self.bias(tape, [queries, keys], layout, distances));
        let heads = tape.attention(&self.rule, self.dropout, layout, bias.as_ref(), [queries, keys, values]);
        self.output.forward(tape, &heads)
    }

    /// Queries, keys and values, `[tokens, d_model]` each.
    fn contents(&self, tape: &Tape, x: &Var) -> [Var; 3] {
        match &self.contents {
            Contents::Apart(projections) => {
                projections.each_ref().map(|projection| projection.forward(tape, x))
            }
            Contents::Fused { all, query_bias, value_bias } => {
                let (all, d_k) = (all.forward(tape, x), self.rule.d_k);
                let rows = all.shape().rows();
                let [queries, keys, values] = [0, 1, 2].map(|part| {
                    let place = |head| Rectangle {
                        from: [0, (3 * head + part) * d_k],
                        to: [0, head * d_k],
                        size: [rows, d_k],
                    };
                    let places: Vec<_> = (0..self.rule.heads).map(|head| (&all, place(head))).collect();
                    tape.assemble([rows, self.rule.heads * d_k], &places)
                });
                let queries = tape.add(&queries, &tape.parameter(query_bias));
                [queries, keys, tape.add(&values, &tape.parameter(value_bias))]
            }
        }
    }

    /// The terms of distances; none if the scores have no such term.
    fn bias(
        &self,
        tape: &Tape,
        [queries, keys]: [&Var; 2],
        layout: &Layout,
        distances: &Distances,
    ) -> Option<Bias<Var>> {
        let config = &self.config;
        let rows = tape.dropout(&distances.rows, self.row_dropout);
        let shared = match &self.contents {
            Contents::Apart([query, key, _]) if config.shared => [Some(query), Some(key)],
            _ => [self.queries_of_distances.as_ref(), self.keys_of_distances.as_ref()],
        };
        let wanted = [config.position_to_content, config.content_to_position];
        let [projected_queries, projected_keys] = [0, 1].map(|side| {
            let projection = shared[side].filter(|_| wanted[side])?;
            Some(projection.forward(tape, &rows))
        });
        let scores = |content: &Var, distances: Option<&Var>| {
            // The smaller factor is the one to scale.
            let distances = tape.scale(&self.head_by_head(tape, distances?), self.rule.scale);
            Some(tape.matmul(&self.head_by_head(tape, content), &distances, true))
        };
        let of_queries = scores(queries, projected_keys.as_ref());
        let of_keys = scores(keys, projected_queries.as_ref());
        let of_queries = of_queries.as_ref().map(|scores| (RelativeSide::Queries, scores));
        let terms: Vec<_> = of_queries
            .into_iter()
            .chain(of_keys.as_ref().map(|scores| (RelativeSide::Keys, scores)))
            .collect();
        (!terms.is_empty()).then(|| {
            let bias = tape.relative_bias(layout, &distances.buckets, &terms);
            let [keys, queries] = [&projected_keys, &projected_queries];
            tape.watch_distances(&bias, || DistanceRows {
                keys: keys.as_ref().map(|rows| rows.value().clone()),
                queries: queries.as_ref().map(|rows| rows.value().clone()),
                buckets: distances.buckets.clone(),
            });
            Bias::Dense(bias)
        })
    }

    /// `[rows, heads · d_k]` as `[heads, rows, d_k]`.
    fn head_by_head(&self, tape: &Tape, x: &Var) -> Var {
        let (heads, d_k, rows) = (self.rule.heads, self.rule.d_k, x.shape().rows());
        let place = |head| Rectangle { from: [0, head * d_k], to: [head * rows, 0], size: [rows, d_k] };
        let places: Vec<_> = (0..heads).map(|head| (x, place(head))).collect();
        tape.reshape(&tape.assemble([heads * rows, d_k], &places), [heads, rows, d_k])
    }
}
