//! The backward pass: gradients of queries, keys and values.

use super::backward_on_tiles::backward_on_tiles;
use super::bias::{Bias, BiasGradient, HeadBias, HeadGradient, Pairs};
use super::block::{
    BLOCK, base, copy, cut, factors, masked, multiply, multiply_add, padded, part, size, transpose,
};
use super::on_tiles::fits_tiles;
use super::{Attention, Rows, Span, check_len, disjoint, for_heads, keys};
use crate::isa::{Isa, Kernel};
use crate::math::exp;
use crate::scratch::Scratch;
use crate::simd::{Simd, load, store};
use crate::threads::Shared;
use crate::{Cpu, Dropout, Real};
use std::ops::Range;

/// Gradients of [`attention`](super::attention()) with respect to queries, keys and values, from the gradient
/// `dy` and from the output `y` and the `lse` of the forward pass. The gradient of the bias, if it is wanted, is added to `dbias`, which
/// has the shape of the table or the numbers of the bias.
///
/// The mean of gradients that the scores of a query share is `dy · y`, with `y` as it was stored. Apart from that, only results are
/// rounded. (On the tile unit, weights and gradients of scores have sixteen bits in sums, and not twenty-four.)
///
/// Rows of the spans are overwritten, others left as they are. Spans must share neither queries nor keys.
///
/// # Shapes
/// - `q`: `[Tq, heads · d_k]`, `k`: `[Tk, heads · d_k]`, `v`: `[Tk, heads · d_v]`
/// - `y`, `dy`: `[Tq, heads · d_v]`, `lse`: `[Tq, heads]`
/// - `dq`: `[Tq, heads · d_k]`, `dk`: `[Tk, heads · d_k]`, `dv`: `[Tk, heads · d_v]`
pub fn attention_backward<T: Real>(
    cpu: &Cpu,
    attention: &Attention,
    spans: &[Span],
    bias: Option<Bias>,
    q: Rows<T>,
    k: Rows<T>,
    v: Rows<T>,
    y: &[T],
    lse: &[f32],
    dy: &[T],
    dq: &mut [T],
    dk: &mut [T],
    dv: &mut [T],
    dbias: Option<&mut [f32]>,
) {
    const OP: &str = "attention_backward";
    let &Attention { heads, d_k, d_v, .. } = attention;
    attention.check(OP, spans, q, k, lse);
    v.check(OP, "v", keys(spans), heads * d_v);
    let rows = lse.len() / heads;
    check_len(OP, "y", y.len(), rows, heads * d_v);
    check_len(OP, "dy", dy.len(), rows, heads * d_v);
    check_len(OP, "dq", dq.len(), rows, heads * d_k);
    let rows = keys(spans).max(dk.len() / (heads * d_k));
    check_len(OP, "dk", dk.len(), rows, heads * d_k);
    check_len(OP, "dv", dv.len(), rows, heads * d_v);
    assert!(disjoint(spans.iter().map(Span::rows_of_keys)), "{OP}: spans share rows of keys: {spans:?}");

    let biases = attention.biases(OP, bias, spans);
    let dbias = bias.zip(dbias);
    let mut dbias = dbias.map(|(bias, into)| (bias, BiasGradient::new(OP, bias, heads, spans, into)));
    let shared = dbias.as_mut().map(|(_, gradient)| gradient.shared());
    let wide = |data| Rows { data, stride: heads * d_v };
    let (dq, dk, dv) = (Shared::new(dq), Shared::new(dk), Shared::new(dv));
    for_heads(cpu, spans.len(), heads, |number, head| {
        let span = &spans[number];
        let (query, key) = (span.query as usize, span.key as usize);
        let head = Head {
            attention,
            span,
            number: head,
            q: q.at(query, head * d_k),
            k: k.at(key, head * d_k),
            v: v.at(key, head * d_v),
            y: wide(y).at(query, head * d_v),
            lse: Rows { data: lse, stride: heads }.at(query, head),
            dy: wide(dy).at(query, head * d_v),
            dq,
            dk,
            dv,
            bias: biases.as_ref().map(|biases| biases.of(number, Pairs::from(span), head)),
            dbias: shared.map(|gradient| gradient.of(number, Pairs::from(span), head)),
        };
        match cpu.isa.amx() {
            Some(amx) if fits_tiles::<T>(attention) => backward_on_tiles(cpu.isa, amx, head),
            _ => backward_on_vectors(cpu.isa, head),
        }
    });
    if let Some((bias, gradient)) = dbias {
        gradient.finish(cpu, bias, heads, spans);
    }
}

/// One head of one span; matrices start at its first query and key.
pub(super) struct Head<'a, T> {
    pub attention: &'a Attention,
    pub span: &'a Span,
    pub number: usize,
    pub q: Rows<'a, T>,
    pub k: Rows<'a, T>,
    pub v: Rows<'a, T>,
    pub y: Rows<'a, T>,
    pub lse: Rows<'a>,
    pub dy: Rows<'a, T>,
    /// All rows and heads, of which the span's are a part.
    pub dq: Shared<'a, T>,
    pub dk: Shared<'a, T>,
    pub dv: Shared<'a, T>,
    pub bias: Option<HeadBias<'a>>,
    /// The gradient of the bias, if it is wanted.
    pub dbias: Option<HeadGradient<'a>>,
}

/// What is needed to compute gradients from the scores of a query with a block of keys.
pub(super) struct Query<S: Simd> {
    /// The keys of the block that it sees.
    seen: Range<usize>,
    base: S::F,
    mean: S::F,
    dropout: Option<Dropout>,
    /// The first key of the block.
    start: usize,
}

impl<T: Real> Head<'_, T> {
    /// Whether some of the `queries` from `first` on see some of the `keys` from `start` on.
    #[inline(always)]
    pub(super) fn sees_any(&self, first: usize, queries: usize, start: usize, keys: usize) -> bool {
        let from = self.attention.seen(self.span, first).start;
        let to = self.attention.seen(self.span, first + queries - 1).end;
        from < start + keys && start < to
    }

    /// The query with a block of keys, of which `mean` is the [mean of gradients](Self::mean_of_gradients).
    #[inline(always)]
    pub(super) fn query<S: Simd>(
        &self,
        s: S,
        query: usize,
        mean: f32,
        start: usize,
        keys: usize,
    ) -> Query<S> {
        Query {
            seen: part(self.attention.seen(self.span, query), start, keys),
            base: s.splat(base(self.lse.row(query, 1)[0])),
            mean: s.splat(mean),
            dropout: self.attention.dropout_of(self.span.query as usize + query, self.number),
            start,
        }
    }

    /// `dy · y`, which is the mean of the gradients of a query's weights, weighted by them.
    #[inline(always)]
    pub(super) fn mean_of_gradients<S: Simd>(&self, s: S, query: usize) -> f32 {
        let d_v = self.attention.d_v;
        let (y, dy) = (self.y.row(query, d_v), self.dy.row(query, d_v));
        let mut sum = s.splat(0.0);
        for at in (0..d_v).step_by(S::LANES) {
            let n = S::LANES.min(d_v - at);
            sum = s.fma(load(s, y, at, n), load(s, dy, at, n), sum);
        }
        s.sum(sum)
    }

    /// Scores of a query with the `keys` from `start` on, up to a vector of them, with their biases.
    #[inline(always)]
    pub(super) fn with_bias<S: Simd>(
        &self,
        s: S,
        scores: S::F,
        query: usize,
        start: usize,
        keys: usize,
    ) -> S::F {
        match &self.bias {
            Some(bias) => s.add(scores, load(s, bias.row(query, start, keys), 0, keys)),
            None => scores,
        }
    }

    /// Adds the gradients of such scores to those of their biases, if these are wanted.
    #[inline(always)]
    pub(super) fn add_to_bias<S: Simd>(&self, s: S, ds: S::F, query: usize, start: usize, keys: usize) {
        if let Some(dbias) = &self.dbias {
            // Safety: this head of this span belongs to this task.
            let to = unsafe { dbias.row(query, start, keys) };
            store(s, to, 0, keys, s.add(load(s, to, 0, keys), ds));
        }
    }

    /// Writes sums, times a factor, to this head of `rows` rows from `row` on of a result. `width` is the width of a head in the result,
    /// and `index` gives the index of the sum of a row and a column.
    ///
    /// # Safety
    /// The rows must belong to the span, and to no other task.
    #[inline(always)]
    pub(super) unsafe fn write<S: Simd>(
        &self,
        s: S,
        to: Shared<T>,
        [row, rows, width]: [usize; 3],
        sums: &[f32],
        factor: f32,
        index: impl Fn(usize, usize) -> usize,
    ) {
        for i in 0..rows {
            // Safety: the caller's promise.
            let to = unsafe { to.slice(((row + i) * self.attention.heads + self.number) * width, width) };
            for at in (0..width).step_by(S::LANES) {
                let n = S::LANES.min(width - at);
                store(s, to, at, n, s.mul(load(s, sums, index(i, at), n), s.splat(factor)));
            }
        }
    }
}

impl<S: Simd> Query<S> {
    /// Weights after dropout, and gradients of scores, from scores and gradients of those weights, for the keys
    /// of the block from `at` on.
    #[inline(always)]
    pub(super) fn through_softmax(&self, s: S, at: usize, scores: S::F, dp: S::F) -> (S::F, S::F) {
        let p = exp(s, s.sub(masked(s, scores, at, &self.seen), self.base));
        let factor = factors(s, self.dropout, self.start + at);
        (s.mul(p, factor), s.mul(p, s.sub(s.mul(dp, factor), self.mean)))
    }
}

/// The gradients of a head in f32, on any instruction set.
fn backward_on_vectors<T: Real>(isa: Isa, head: Head<T>) {
    let &Attention { d_k, d_v, .. } = head.attention;
    let (square, narrow, wider) = (size(BLOCK, BLOCK), size(BLOCK, d_k), size(BLOCK, d_v));
    let all_queries = size(head.span.queries as usize, d_k);
    let sizes = [narrow, narrow, narrow, wider, wider, square, square, all_queries, narrow, wider];
    let mut memory = Scratch::take(sizes.iter().sum());
    let [q_block, k_block, k_transposed, v_transposed, dy_block, p, ds, dq_sum, dk_sum, dv_sum] =
        cut(&mut memory, sizes);
    isa.dispatch(Backward {
        isa,
        head,
        q_block,
        k_block,
        k_transposed,
        v_transposed,
        dy_block,
        p,
        ds,
        dq_sum,
        dk_sum,
        dv_sum,
    });
}

struct Backward<'a, T> {
    isa: Isa,
    head: Head<'a, T>,
    /// `[queries, d_k]`, scaled.
    q_block: &'a mut [f32],
    /// `[keys, d_k]`
    k_block: &'a mut [f32],
    /// `[d_k, keys]`
    k_transposed: &'a mut [f32],
    /// `[d_v, keys]`
    v_transposed: &'a mut [f32],
    /// `[queries, d_v]`
    dy_block: &'a mut [f32],
    /// `[queries, keys]`: scores, then weights after dropout.
    p: &'a mut [f32],
    /// `[queries, keys]`: gradients of weights, then of scores.
    ds: &'a mut [f32],
    /// `[all queries, d_k]`, before it is scaled.
    dq_sum: &'a mut [f32],
    /// `[keys, d_k]`
    dk_sum: &'a mut [f32],
    /// `[keys, d_v]`
    dv_sum: &'a mut [f32],
}

impl<T: Real> Kernel for Backward<'_, T> {
    type Output = ();

    /// Walks the blocks of keys, and for each one the blocks of queries: gradients of keys and values are
    /// summed up for a block, those of queries for the span.
    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        let &Attention { d_k, d_v, scale, .. } = self.head.attention;
        let Span { query, key, .. } = *self.head.span;
        let (queries, all_keys) = (self.head.span.queries as usize, self.head.span.keys as usize);
        self.dq_sum.fill(0.0);
        for start in (0..all_keys).step_by(BLOCK) {
            let keys = BLOCK.min(all_keys - start);
            copy(s, self.head.k.at(start, 0), keys, d_k, 1.0, self.k_block);
            transpose(s, self.head.k.at(start, 0), keys, d_k, self.k_transposed);
            transpose(s, self.head.v.at(start, 0), keys, d_v, self.v_transposed);
            self.dk_sum[..keys * padded(s, d_k)].fill(0.0);
            self.dv_sum[..keys * padded(s, d_v)].fill(0.0);
            for first in (0..queries).step_by(BLOCK) {
                let count = BLOCK.min(queries - first);
                if self.head.sees_any(first, count, start, keys) {
                    self.pair(s, first, count, start, keys);
                }
            }
            let (row, head) = (key as usize + start, &self.head);
            // Safety: spans do not share keys, so this head of their rows belongs to this task.
            unsafe {
                head.write(s, head.dk, [row, keys, d_k], self.dk_sum, 1.0, dense(s, d_k));
                head.write(s, head.dv, [row, keys, d_v], self.dv_sum, 1.0, dense(s, d_v));
            }
        }
        // Safety: nor do they share queries.
        unsafe {
            let rows = [query as usize, queries, d_k];
            self.head.write(s, self.head.dq, rows, self.dq_sum, scale, dense(s, d_k));
        }
    }
}

/// Where columns of padded rows are.
#[inline(always)]
fn dense<S: Simd>(s: S, width: usize) -> impl Fn(usize, usize) -> usize {
    let stride = padded(s, width);
    #[inline(always)]
    move |row, column| row * stride + column
}

impl<T: Real> Backward<'_, T> {
    /// What a block of queries and a block of keys add to the gradients.
    #[inline(always)]
    fn pair<S: Simd>(&mut self, s: S, first: usize, queries: usize, start: usize, keys: usize) {
        let &Attention { d_k, d_v, scale, .. } = self.head.attention;
        let (stride, k_stride, v_stride) = (padded(s, keys), padded(s, d_k), padded(s, d_v));
        copy(s, self.head.q.at(first, 0), queries, d_k, scale, self.q_block);
        copy(s, self.head.dy.at(first, 0), queries, d_v, 1.0, self.dy_block);
        multiply(self.isa, [queries, stride, d_k], self.q_block, [k_stride, 1], self.k_transposed, self.p);
        multiply(self.isa, [queries, stride, d_v], self.dy_block, [v_stride, 1], self.v_transposed, self.ds);
        if let Some(bias) = &self.head.bias {
            bias.add(s, [first, queries], [start, keys], self.p, stride);
        }
        for i in 0..queries {
            let mean = self.head.mean_of_gradients(s, first + i);
            let query = self.head.query(s, first + i, mean, start, keys);
            let p_row = &mut self.p[i * stride..][..stride];
            let ds_row = &mut self.ds[i * stride..][..stride];
            for at in (0..stride).step_by(S::LANES) {
                let (scores, dp) = (load(s, p_row, at, S::LANES), load(s, ds_row, at, S::LANES));
                let (p, ds) = query.through_softmax(s, at, scores, dp);
                store(s, p_row, at, S::LANES, p);
                store(s, ds_row, at, S::LANES, ds);
            }
        }
        if let Some(dbias) = &self.head.dbias {
            // Safety: this head of this span belongs to this task.
            unsafe { dbias.add(s, [first, queries], [start, keys], self.ds, stride) }
        }
        multiply_add(self.isa, [keys, v_stride, queries], self.p, [1, stride], self.dy_block, self.dv_sum);
        multiply_add(self.isa, [keys, k_stride, queries], self.ds, [1, stride], self.q_block, self.dk_sum);
        let dq_sum = &mut self.dq_sum[first * k_stride..];
        multiply_add(self.isa, [queries, k_stride, keys], self.ds, [stride, 1], self.k_block, dq_sum);
    }
}
