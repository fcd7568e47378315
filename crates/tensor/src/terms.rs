//! The terms of attention scores, apart from each other: what contents say, and what is added to it.
//!
//! ```text
//! s_ij = scale · q_i · k_j + Σ b_ij    weights = softmax(s)
//! ```
//!
//! They are for people who look at a model. A forward pass computes none of them.

use crate::backend::Backend;
use crate::bias::Bias;
use crate::tensor::{HostVec, Tensor};
use crate::watched::AttentionWeights;
use attentive_kernels::attention::Span;

/// A term that a bias adds to scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BiasTerm {
    /// A learned number for the distance of the two tokens, as in T5.
    Distance,
    /// The query against a vector of the distance, as in DeBERTa.
    ContentToPosition,
    /// The key against a vector of the distance, as in DeBERTa.
    PositionToContent,
    /// A number for each pair of tokens, of which no more is known.
    Pairs,
}

/// One part of the scores of an attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScorePart {
    /// Queries against keys.
    Content,
    /// What is added to that.
    Bias,
}

/// The vectors of distances that a dense bias was made of: `b_ij = scale · (q_i · keys[place] + k_j · queries[place])`.
#[derive(Debug, Clone)]
pub struct DistanceRows {
    /// `[places, h·d_k]`, if queries are compared with distances.
    pub keys: Option<Tensor>,
    /// `[places, h·d_k]`, if keys are compared with distances.
    pub queries: Option<Tensor>,
    /// The place of each distance `key - query`, as [`Bias::Relative`] has its buckets.
    pub buckets: Tensor,
}

impl AttentionWeights {
    /// The terms of its bias; none without one.
    pub fn terms(&self) -> Vec<BiasTerm> {
        match (&self.bias, &self.distances) {
            (None, _) => Vec::new(),
            (Some(Bias::Relative { .. }), _) => vec![BiasTerm::Distance],
            (Some(Bias::Dense(_)), None) => vec![BiasTerm::Pairs],
            (Some(Bias::Dense(_)), Some(rows)) => {
                let queries = rows.keys.as_ref().map(|_| BiasTerm::ContentToPosition);
                let keys = rows.queries.as_ref().map(|_| BiasTerm::PositionToContent);
                queries.into_iter().chain(keys).collect()
            }
        }
    }

    /// The numbers of each of [`AttentionWeights::terms`] in one head of one sequence, `[queries, keys]`, as they are added to the
    /// scores.
    pub fn bias_terms(
        &self,
        backend: &dyn Backend,
        sequence: usize,
        head: usize,
    ) -> Vec<(BiasTerm, Vec<f32>)> {
        let span = self.spans()[sequence];
        let (heads, d_k) = (self.rule.heads, self.rule.d_k);
        let all = |term| match (&self.bias, &self.distances) {
            (Some(Bias::Relative { table, buckets }), _) => {
                let (table, places) = (backend.download_f32(table), download_i32(backend, buckets));
                of_pairs(&span, &places, |_, _, place| table[place * heads + head])
            }
            (Some(Bias::Dense(_)), Some(rows)) => {
                let is_of_queries = term == BiasTerm::ContentToPosition;
                let [contents, distances] = match is_of_queries {
                    true => [Some(&self.q), rows.keys.as_ref()],
                    false => [Some(&self.k), rows.queries.as_ref()],
                };
                let [contents, distances] = [contents, distances]
                    .map(|rows| rows.map(|rows| backend.download_f32(rows)).unwrap_or_default());
                let places = download_i32(backend, &rows.buckets);
                let row = |row: usize| (row * heads + head) * d_k..(row * heads + head + 1) * d_k;
                of_pairs(&span, &places, |query, key, place| {
                    let token =
                        if is_of_queries { span.query as usize + query } else { span.key as usize + key };
                    let products =
                        contents[row(token)].iter().zip(&distances[row(place)]).map(|(x, y)| x * y);
                    self.rule.scale * products.sum::<f32>()
                })
            }
            (Some(bias @ Bias::Dense(_)), None) => {
                let pairs = (span.queries * span.keys) as usize;
                let numbers = backend.download_f32(self.bias_of(backend, bias, sequence).numbers());
                numbers[head * pairs..][..pairs].to_vec()
            }
            (None, _) => Vec::new(),
        };
        self.terms().into_iter().map(|term| (term, all(term))).collect()
    }

    /// The same attention as if one part of its scores were all of them. Without a bias it is the same.
    pub fn of_part(&self, backend: &dyn Backend, part: ScorePart) -> AttentionWeights {
        if self.bias.is_none() {
            return self.clone();
        }
        let alone = match part {
            ScorePart::Content => AttentionWeights { bias: None, distances: None, ..self.clone() },
            ScorePart::Bias => {
                AttentionWeights { q: backend.zeros(self.q.shape(), self.q.dtype()), ..self.clone() }
            }
        };
        let AttentionWeights { rule, layout, bias, q, k, v, .. } = &alone;
        let (_, lse) = backend.attention(rule, layout, bias.as_ref(), q, k, v);
        AttentionWeights { lse, ..alone }
    }
}

/// A number for each pair of a span, from a query, a key and the place of their distance.
fn of_pairs(span: &Span, places: &[i32], number: impl Fn(usize, usize, usize) -> f32) -> Vec<f32> {
    let far = (places.len() / 2) as i64;
    let pair = |query: u32, key: u32| {
        let distance = i64::from(key) - i64::from(span.offset + query);
        let place = places[(distance.clamp(-far, far) + far) as usize];
        number(query as usize, key as usize, place as usize)
    };
    (0..span.queries)
        .flat_map(|query| (0..span.keys).map(move |key| (query, key)))
        .map(|(query, key)| pair(query, key))
        .collect()
}

fn download_i32(backend: &dyn Backend, x: &Tensor) -> Vec<i32> {
    match backend.download(x) {
        HostVec::I32(numbers) => numbers,
        other => panic!("places are i32, not {other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::backend;
    use crate::tape::{Tape, Var};
    use attentive_kernels::attention::Attention;
    use std::sync::Arc;

    const RULE: Attention = Attention {
        heads: 2,
        d_k: 2,
        d_v: 2,
        scale: 0.5,
        causal: false,
        window: None,
        cached: false,
        dropout: None,
    };

    fn span(query: u32, queries: u32, key: u32, keys: u32) -> Span {
        Span { query, queries, key, keys, offset: 0 }
    }

    fn rows(tape: &Tape, backend: &Arc<dyn Backend>, count: usize, from: f32) -> Var {
        let numbers: Vec<f32> = (0..count * 4).map(|i| (from + i as f32 * 0.7).sin()).collect();
        tape.constant(backend.upload_f32(&numbers, [count, 4]))
    }

    /// An attention between five queries and seven keys in two sequences.
    fn watched(
        backend: &Arc<dyn Backend>,
        bias: impl FnOnce(&Tape) -> Option<Bias<Var>>,
    ) -> AttentionWeights {
        let tape = Tape::inference(backend).watching();
        let layout = backend.layout(&[span(0, 2, 0, 3), span(2, 3, 3, 4)]);
        let bias = bias(&tape);
        let [q, k, v] = [(5, 0.0), (7, 1.0), (7, 2.0)].map(|(count, from)| rows(&tape, backend, count, from));
        tape.attention(&RULE, 0.0, &layout, bias.as_ref(), [&q, &k, &v]);
        tape.watched().remove(0)
    }

    /// The scores of the second head in the second sequence that contents alone give.
    fn content(attention: &AttentionWeights, backend: &Arc<dyn Backend>) -> Vec<f32> {
        let [q, k, _] = attention.vectors().map(|x| backend.download_f32(x));
        let dot = |i: usize, j: usize| RULE.scale * (2..4).map(|d| q[4 * i + d] * k[4 * j + d]).sum::<f32>();
        (2..5).flat_map(|i| (3..7).map(move |j| (i, j))).map(|(i, j)| dot(i, j)).collect()
    }

    fn softmax(scores: &[f32]) -> Vec<f32> {
        let row = |row: &[f32]| {
            let sum: f32 = row.iter().map(|score| score.exp()).sum();
            row.iter().map(|score| score.exp() / sum).collect::<Vec<_>>()
        };
        scores.chunks_exact(4).flat_map(row).collect()
    }

    fn near(found: &[f32], expected: &[f32]) {
        let same = found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6);
        assert!(same && found.len() == expected.len(), "{found:?}, not {expected:?}");
    }

    /// Checks that contents and terms are the scores that the weights come from, and that each part has weights of its own.
    fn check(backend: &Arc<dyn Backend>, attention: &AttentionWeights, terms: &[BiasTerm]) {
        assert_eq!(attention.terms(), terms);
        let matrix = |attention: &AttentionWeights| backend.download_f32(&attention.matrix(&**backend, 1, 1));
        let content = content(attention, backend);
        let mut bias = vec![0.0; content.len()];
        let found = attention.bias_terms(&**backend, 1, 1);
        assert_eq!(found.iter().map(|(term, _)| *term).collect::<Vec<_>>(), terms);
        for (_, numbers) in found {
            assert_eq!(numbers.len(), bias.len());
            bias.iter_mut().zip(numbers).for_each(|(sum, number)| *sum += number);
        }
        let scores: Vec<f32> = content.iter().zip(&bias).map(|(a, b)| a + b).collect();
        near(&matrix(attention), &softmax(&scores));
        near(&matrix(&attention.of_part(&**backend, ScorePart::Content)), &softmax(&content));
        let of_bias = if terms.is_empty() { &content } else { &bias };
        near(&matrix(&attention.of_part(&**backend, ScorePart::Bias)), &softmax(of_bias));
    }

    #[test]
    fn contents_and_terms_are_the_scores() {
        let backend = &backend();
        check(backend, &watched(backend, |_| None), &[]);
        let table = |tape: &Tape| {
            let table = tape.constant(backend.upload_f32(&[0.3, -1.0, 0.8, 0.1, -0.6, 1.3], [3, 2]));
            Some(Bias::Relative { table, buckets: backend.upload_i32(&[0, 0, 1, 2, 2]) })
        };
        check(backend, &watched(backend, table), &[BiasTerm::Distance]);
        let dense = |tape: &Tape| {
            let numbers: Vec<f32> = (0..36).map(|i| (i as f32).cos()).collect();
            Some(Bias::Dense(tape.constant(backend.upload_f32(&numbers, [36]))))
        };
        check(backend, &watched(backend, dense), &[BiasTerm::Pairs]);
    }

    #[test]
    fn a_bias_of_distances_is_told_term_by_term() {
        use attentive_kernels::relative::Side;
        let backend = &backend();
        let buckets = &backend.upload_i32(&[0, 1, 1, 2, 2, 3, 3]);
        // Of each head `[rows, places]`: its columns of the contents against those of the distances.
        let product = |tape: &Tape, contents: &Var, distances: &Var| {
            let [x, y] = [contents, distances].map(|x| backend.download_f32(x.value()));
            let (rows, places) = (x.len() / 4, y.len() / 4);
            let dot = |head: usize, i: usize, j: usize| {
                RULE.scale * (2 * head..2 * head + 2).map(|d| x[4 * i + d] * y[4 * j + d]).sum::<f32>()
            };
            let mut numbers = Vec::new();
            for head in 0..2 {
                numbers.extend((0..rows * places).map(|at| dot(head, at / places, at % places)));
            }
            tape.constant(backend.upload_f32(&numbers, [2, rows, places]))
        };
        let bias = |tape: &Tape| {
            let layout = backend.layout(&[span(0, 2, 0, 3), span(2, 3, 3, 4)]);
            let [q, k] = [(5, 0.0), (7, 1.0)].map(|(count, from)| rows(tape, backend, count, from));
            let [keys, queries] = [3.0, 4.0].map(|from| rows(tape, backend, 4, from));
            let (of_queries, of_keys) = (product(tape, &q, &keys), product(tape, &k, &queries));
            let scores = [(Side::Queries, &of_queries), (Side::Keys, &of_keys)];
            let bias = tape.relative_bias(&layout, buckets, &scores);
            let [keys, queries] = [keys, queries].map(|rows| Some(rows.value().clone()));
            tape.watch_distances(&bias, || DistanceRows { keys, queries, buckets: buckets.clone() });
            Some(Bias::Dense(bias))
        };
        check(backend, &watched(backend, bias), &[BiasTerm::ContentToPosition, BiasTerm::PositionToContent]);
    }
}
