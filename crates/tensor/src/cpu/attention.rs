//! Attention.

use super::cache::CpuCache;
use super::profile::Share;
use super::seen::Lists;
use super::view::{by_type, covered, data, data_mut, f32s, i32s, rows};
use super::{CpuBackend, filled, view_mut};
use crate::backend::{AttentionOps, ElementwiseOps};
use crate::bias::Bias;
use crate::cache::KeyValueCache;
use crate::layout::{Layout, Seen};
use crate::shape::Shape;
use crate::tensor::{Buffer, DType, Tensor};
use attentive_kernels::attention::{self, Attention, KeyLists, Span};
use attentive_kernels::relative::{self, Relative, Side};

impl AttentionOps for CpuBackend {
    fn layout(&self, spans: &[Span]) -> Layout {
        // What the host knows of it is in the processor's memory already.
        Layout::new(spans, Buffer::new(()))
    }

    fn seen(&self, lists: KeyLists) -> Seen {
        Lists::seen(lists)
    }

    fn cache(&self, rule: &Attention) -> Box<dyn KeyValueCache> {
        Box::new(CpuCache::new(self.clone(), rule))
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
        let bias = bias.map(|bias| self.wide(bias));
        let bias = bias.as_ref().map(numbers);
        let (queries, spans) = (q.shape().rows(), layout.spans());
        let [q, k, v] = &[q, k, v].map(|x| self.head_by_head(x));
        covered("attention", "queries", q, spans.iter().map(|span| span.queries));
        self.profile.time(Share::Attention, || {
            let shape = Shape::from([queries, rule.heads * rule.d_v]);
            let mut y = self.pool.take(q.dtype(), shape.len());
            let lse = self.build([queries, rule.heads], |lse| {
                by_type!(q, T => {
                    let y = view_mut::<T>(&mut y);
                    attention::attention(&self.cpu, rule, spans, bias, rows(q), rows(k), rows(v), y, lse);
                });
            });
            (Tensor::new(Buffer::new(y), shape, q.dtype()), lse)
        })
    }

    fn attention_backward(
        &self,
        rule: &Attention,
        layout: &Layout,
        (bias, dbias): (Option<&Bias>, Option<&mut Tensor>),
        [q, k, v]: [&Tensor; 3],
        (y, lse): (&Tensor, &Tensor),
        dy: &Tensor,
    ) -> [Tensor; 3] {
        let bias = bias.map(|bias| self.wide(bias));
        let spans = layout.spans();
        covered("attention_backward", "queries", q, spans.iter().map(|span| span.queries));
        covered("attention_backward", "keys", k, spans.iter().map(|span| span.keys));
        self.profile.time(Share::Attention, || {
            let (mut dq, mut dk, mut dv) = (self.room(q), self.room(k), self.room(v));
            by_type!(q, T => attention::attention_backward(
                &self.cpu,
                rule,
                spans,
                bias.as_ref().map(numbers),
                rows::<T>(q),
                rows(k),
                rows(v),
                data(y),
                f32s(lse),
                data(dy),
                view_mut(&mut dq),
                view_mut(&mut dk),
                view_mut(&mut dv),
                dbias.map(data_mut),
            ));
            [filled(dq, q), filled(dk, k), filled(dv, v)]
        })
    }

    fn relative_bias(&self, layout: &Layout, buckets: &Tensor, scores: &[(Side, &Tensor)]) -> Tensor {
        let spans = layout.spans();
        let pairs: usize = spans.iter().map(|span| span.queries as usize * span.keys as usize).sum();
        let (_, first) = scores.first().expect("relative_bias: no scores");
        self.profile.time(Share::Attention, || {
            self.build([first.shape()[0] * pairs], |bias: &mut [f32]| {
                bias.fill(0.0);
                for (side, x) in scores {
                    let rule = relative_rule(x.shape(), *side, buckets);
                    by_type!(x, T => relative::relative(&self.cpu, rule, spans, data::<T>(x), bias));
                }
            })
        })
    }

    fn relative_bias_backward(
        &self,
        layout: &Layout,
        buckets: &Tensor,
        side: Side,
        (shape, dtype): (Shape, DType),
        dbias: &Tensor,
    ) -> Tensor {
        let rule = relative_rule(shape, side, buckets);
        self.profile.time(Share::Attention, || {
            let mut dx = self.unwritten(shape, dtype);
            by_type!(dx, T => {
                let dx = data_mut::<T>(&mut dx);
                relative::relative_backward(&self.cpu, rule, layout.spans(), f32s(dbias), dx);
            });
            dx
        })
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
        let bias = bias.map(|bias| self.wide(bias));
        let bias = bias.as_ref().map(numbers);
        let spans = layout.spans();
        let [q, k] = &[q, k].map(|x| self.head_by_head(x));
        let len: usize = spans.iter().map(|span| span.queries as usize * span.keys as usize).sum();
        self.profile.time(Share::Attention, || {
            self.build([len * heads.len()], |out| {
                by_type!(q, T => {
                    let (q, k) = (rows::<T>(q), rows(k));
                    attention::attention_weights(&self.cpu, rule, spans, bias, q, k, f32s(lse), heads, out);
                });
            })
        })
    }
}

/// What scores of this shape are scores of.
fn relative_rule<'a>(shape: Shape, side: Side, buckets: &'a Tensor) -> Relative<'a> {
    let &[heads, rows, places] = &shape[..] else {
        panic!("relative_bias: {shape} is not [heads, rows, places]");
    };
    Relative { heads, rows, places, side, buckets: i32s(buckets) }
}

impl CpuBackend {
    /// A bias in f32, in which scores are.
    pub(super) fn wide(&self, bias: &Bias) -> Bias {
        bias.map(|numbers| self.cast(numbers, DType::F32))
    }
}

/// A bias as kernels take it.
pub(super) fn numbers(bias: &Bias) -> attention::Bias<'_> {
    match bias {
        Bias::Relative { table, buckets } => {
            attention::Bias::Relative { table: f32s(table), buckets: i32s(buckets) }
        }
        Bias::Dense(numbers) => attention::Bias::Dense(f32s(numbers)),
    }
}
