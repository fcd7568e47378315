//! Attention over packed sequences.
//!
//! `q: [queries, h·d_k]`, `k: [keys, h·d_k]`, `v: [keys, h·d_v]` to `[queries, h·d_v]`. For the backward pass one
//! number is kept for each query and head, the log of the denominator of its softmax. The weights are computed again from it.

use crate::bias::Bias;
use crate::cache::KeyValueCache;
use crate::layout::{Layout, Seen};
use crate::tape::{Backward, Tape, Var};
use crate::tensor::{DType, Tensor};
use crate::watched::AttentionWeights;
use attentive_kernels::attention::Attention;

impl Tape {
    /// Attention of queries to the rows of a cache that each sees, for decoding, without a gradient.
    pub fn attend(
        &self,
        cache: &dyn KeyValueCache,
        queries: &Var,
        seen: &Seen,
        bias: Option<&Bias<Var>>,
    ) -> Var {
        let inputs: Vec<&Var> = [queries].into_iter().chain(bias.map(Bias::numbers)).collect();
        let bias = bias.map(values);
        self.without_gradient("attend", cache.attend(queries.value(), seen, bias.as_ref()), &inputs)
    }

    /// Attention of each sequence's queries to its keys; `dropout` is the probability that a weight is dropped. A bias is added to the
    /// scores, and its gradient is the sum over all that it was added to, in every attention that takes it.
    pub fn attention(
        &self,
        rule: &Attention,
        dropout: f32,
        layout: &Layout,
        bias: Option<&Bias<Var>>,
        [q, k, v]: [&Var; 3],
    ) -> Var {
        // What is learned from is not decoded.
        let cached = rule.cached && !self.is_training();
        let rule = Attention { dropout: self.draw(dropout), cached, ..*rule };
        let added = bias.map(values);
        let (y, lse) =
            self.backend().attention(&rule, layout, added.as_ref(), q.value(), k.value(), v.value());
        self.watch(|| AttentionWeights {
            rule,
            layout: layout.clone(),
            bias: added.clone(),
            distances: None,
            q: q.value().clone(),
            k: k.value().clone(),
            v: v.value().clone(),
            lse: lse.clone(),
        });
        let (layout, saved, vars) = (layout.clone(), y.clone(), [q.clone(), k.clone(), v.clone()]);
        let inputs: Vec<&Var> = [q, k, v].into_iter().chain(bias.map(Bias::numbers)).collect();
        let bias = bias.cloned();
        self.record(y, &inputs, move |back, dy| {
            let qkv = vars.each_ref().map(Var::value);
            let numbers = bias.as_ref().map(Bias::numbers).filter(|numbers| numbers.wants_gradient());
            let mut dbias = numbers.map(|numbers| sum_so_far(back, numbers));
            let bias = (added.as_ref(), dbias.as_mut());
            let gradients = back.backend.attention_backward(&rule, &layout, bias, qkv, (&saved, &lse), &dy);
            for (var, gradient) in vars.iter().zip(gradients) {
                back.add(var, gradient);
            }
            if let Some((numbers, dbias)) = numbers.zip(dbias) {
                put_sum(back, numbers, dbias);
            }
        })
    }
}

fn values(bias: &Bias<Var>) -> Bias {
    bias.map(|numbers| numbers.value().clone())
}

/// The gradient that is added to, in f32: what there is already, or, for an activation in bf16, zeros.
fn sum_so_far(back: &mut Backward, numbers: &Var) -> Tensor {
    match numbers.value().dtype() {
        DType::F32 => back.take_or_zeros(numbers),
        _ => back.backend.zeros(numbers.shape(), DType::F32),
    }
}

/// Hands such a sum on.
fn put_sum(back: &mut Backward, numbers: &Var, sum: Tensor) {
    match numbers.value().dtype() {
        DType::F32 => back.put(numbers, sum),
        dtype => {
            let narrow = back.backend.cast(&sum, dtype);
            back.add(numbers, narrow);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{backend, check_gradients};
    use attentive_kernels::attention::Span;

    fn span(query: u32, queries: u32, key: u32, keys: u32) -> Span {
        Span { query, queries, key, keys, offset: 0 }
    }

    #[test]
    fn gradients_match_differences() {
        for (causal, dropout) in [(false, 0.0), (true, 0.0), (false, 0.3)] {
            let rule = Attention {
                heads: 2,
                d_k: 3,
                d_v: 5,
                scale: 0.6,
                causal,
                window: None,
                cached: false,
                dropout: None,
            };
            let name = format!("attention causal {causal} dropout {dropout}");
            check_gradients(&name, &[&[7, 6], &[9, 6], &[9, 10]], |tape, v| {
                let layout = tape.backend().layout(&[span(0, 3, 0, 5), span(3, 4, 5, 4)]);
                tape.attention(&rule, dropout, &layout, None, [&v[0], &v[1], &v[2]])
            });
        }
    }

    #[test]
    fn gradients_of_biases_match_differences() {
        let rule = Attention {
            heads: 2,
            d_k: 3,
            d_v: 5,
            scale: 0.6,
            causal: false,
            window: None,
            cached: false,
            dropout: None,
        };
        let shapes: [&[usize]; 4] = [&[7, 6], &[9, 6], &[9, 10], &[4, 2]];
        for (causal, dropout) in [(false, 0.0), (true, 0.3)] {
            let rule = Attention { causal, ..rule };
            check_gradients(&format!("a table, causal {causal}"), &shapes, |tape, v| {
                let layout = tape.backend().layout(&[span(0, 3, 0, 5), span(3, 4, 5, 4)]);
                let buckets = tape.backend().upload_i32(&[3, 1, 0, 2, 2]);
                let bias = Bias::Relative { table: v[3].clone(), buckets };
                // Two layers that share it.
                let once = tape.attention(&rule, dropout, &layout, Some(&bias), [&v[0], &v[1], &v[2]]);
                let twice = tape.attention(&rule, dropout, &layout, Some(&bias), [&v[0], &v[1], &v[2]]);
                tape.mul(&once, &twice)
            });
            let shapes = [shapes[0], shapes[1], shapes[2], &[2, 3 * 5 + 4 * 4]];
            check_gradients(&format!("a dense bias, causal {causal}"), &shapes, |tape, v| {
                let layout = tape.backend().layout(&[span(0, 3, 0, 5), span(3, 4, 5, 4)]);
                let bias = Bias::Dense(tape.scale(&v[3], 0.5));
                tape.attention(&rule, dropout, &layout, Some(&bias), [&v[0], &v[1], &v[2]])
            });
        }
    }

    /// The weights that are looked at afterwards have the bias in them: of one sequence, and of all.
    #[test]
    fn watched_weights_have_the_bias() {
        let backend = backend();
        let tape = Tape::inference(&backend).watching();
        let rule = Attention {
            heads: 1,
            d_k: 1,
            d_v: 1,
            scale: 1.0,
            causal: false,
            window: None,
            cached: false,
            dropout: None,
        };
        let zeros = tape.constant(backend.upload_f32(&[0.0; 3], [3, 1]));
        let layout = backend.layout(&[span(0, 1, 0, 1), span(1, 2, 1, 2)]);
        let three = 3f32.ln();
        let numbers = tape.constant(backend.upload_f32(&[7.0, 0.0, three, three, 0.0], [5]));
        let qkv = [&zeros, &zeros, &zeros];
        tape.attention(&rule, 0.0, &layout, Some(&Bias::Dense(numbers)), qkv);
        let table = tape.constant(backend.upload_f32(&[0.0, three], [2, 1]));
        let buckets = backend.upload_i32(&[1, 0, 1]);
        tape.attention(&rule, 0.0, &layout, Some(&Bias::Relative { table, buckets }), qkv);
        let near = |found: Vec<f32>, expected: &[f32]| {
            let same = found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6);
            assert!(same && found.len() == expected.len(), "{found:?}, not {expected:?}");
        };
        for attention in tape.watched() {
            near(backend.download_f32(&attention.of_heads(&*backend, &[0])), &[1.0, 0.25, 0.75, 0.75, 0.25]);
            near(backend.download_f32(&attention.matrix(&*backend, 1, 0)), &[0.25, 0.75, 0.75, 0.25]);
        }
    }
}
