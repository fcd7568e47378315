//! The forward pass: outputs, and on request the attention weights.

use super::bias::{Bias, HeadBias, Pairs};
use super::block::{
    BLOCK, base, copy, cut, factors, masked, multiply, multiply_add, padded, part, size, transpose,
};
use super::forward_on_tiles::{Head, forward_on_tiles};
use super::on_tiles::fits_tiles;
use super::{Attention, Rows, Span, check_len, for_heads, keys};
use crate::isa::{Isa, Kernel};
use crate::math::exp;
use crate::scratch::Scratch;
use crate::simd::{Simd, load, store};
use crate::threads::Shared;
use crate::{Cpu, Real};

/// The heads' weighted means of the values, and the logarithms of the sums of exponentials that backward
/// needs.
///
/// A query that sees nothing gets zeros, and an `lse` of minus infinity. Rows that belong to no span are left
/// as they are. Spans must not share queries; keys they may share.
///
/// # Shapes
/// - `q`: `[Tq, heads · d_k]`, `k`: `[Tk, heads · d_k]`, `v`: `[Tk, heads · d_v]`
/// - `y`: `[Tq, heads · d_v]`, `lse`: `[Tq, heads]`
///
/// # Example
/// A query takes the value of the key that it points at, or the mean where it points at several.
/// ```
/// use attentive_kernels::{Cpu, attention::*};
///
/// let q = [0.0, 10.0, 0.0, 0.0, 0.0, 10.0, 10.0, 10.0, 0.0];
/// let k = [10.0, 0.0, 0.0, 0.0, 10.0, 0.0, 0.0, 0.0, 10.0, 0.0, 0.0, 10.0];
/// let v = [1.0, 0.0, 1.0, 10.0, 0.0, 2.0, 100.0, 5.0, 0.0, 1000.0, 6.0, 0.0];
/// let rows = |data| Rows { data, stride: 3 };
///
/// let heads =
///     Attention { heads: 1, d_k: 3, d_v: 3, scale: 0.5, causal: false, window: None, cached: false, dropout: None };
/// let span = Span { query: 0, queries: 3, key: 0, keys: 4, offset: 0 };
/// let (mut y, mut lse) = ([0.0; 9], [0.0; 3]);
/// let cpu = Cpu::from_env()?;
/// attention(&cpu, &heads, &[span], None, rows(&q), rows(&k), rows(&v), &mut y, &mut lse);
///
/// let expected = [10.0, 0.0, 2.0, 550.0, 5.5, 0.0, 5.5, 0.0, 1.5];
/// assert!(y.iter().zip(expected).all(|(y, expected): (&f32, f32)| (y - expected).abs() < 1e-3));
/// # Ok::<(), attentive_kernels::IsaError>(())
/// ```
pub fn attention<T: Real>(
    cpu: &Cpu,
    attention: &Attention,
    spans: &[Span],
    bias: Option<Bias>,
    q: Rows<T>,
    k: Rows<T>,
    v: Rows<T>,
    y: &mut [T],
    lse: &mut [f32],
) {
    let &Attention { heads, d_k, d_v, .. } = attention;
    attention.check("attention", spans, q, k, lse);
    v.check("attention", "v", keys(spans), heads * d_v);
    check_len("attention", "y", y.len(), lse.len() / heads, heads * d_v);

    let biases = attention.biases("attention", bias, spans);
    let (y, lse) = (Shared::new(y), Shared::new(lse));
    if let Some(amx) = cpu.isa.amx().filter(|_| !attention.cached && fits_tiles::<T>(attention)) {
        for_heads(cpu, spans.len(), heads, |span, head| {
            let number = span;
            let span = &spans[number];
            let (query, key) = (span.query as usize, span.key as usize);
            let head = Head {
                attention,
                span,
                number: head,
                bias: biases.as_ref().map(|b| b.of(number, Pairs::from(span), head)),
                q: q.at(query, head * d_k),
                k: k.at(key, head * d_k),
                v: v.at(key, head * d_v),
                y,
                lse,
            };
            forward_on_tiles(cpu.isa, amx, head);
        });
        return;
    }
    let blocks = blocks_of_queries(spans);
    for_heads(cpu, blocks.len(), heads, |block, head| {
        let (number, block) = blocks[block];
        let span = &spans[number];
        let key = span.key as usize;
        let b = BLOCK;
        let sizes = [size(b, d_k), size(b, d_k), size(b, d_v), size(b, b), size(b, d_v), size(b, 1)];
        let mut memory = Scratch::take(sizes.iter().sum());
        let [q_block, k_block, v_block, scores, o, l] = cut(&mut memory, sizes);
        cpu.isa.dispatch(Forward {
            isa: cpu.isa,
            attention,
            span,
            bias: biases.as_ref().map(|b| b.of(number, Pairs::from(span), head)),
            block,
            head,
            q: q.at(block.row, head * d_k),
            k: k.at(key, head * d_k),
            v: v.at(key, head * d_v),
            y,
            lse,
            q_block,
            k_block,
            v_block,
            scores,
            o,
            l,
        });
    });
}

/// The weights that queries give to keys, before dropout; zero for keys that they do not see.
///
/// # Shapes
/// - `q`: `[Tq, heads · d_k]`, `k`: `[Tk, heads · d_k]`, `lse`: `[Tq, heads]`, as [`attention`] left it
/// - `out`: for each span and each of the chosen `heads`, one after the other, `[queries, keys]`
pub fn attention_weights<T: Real>(
    cpu: &Cpu,
    attention: &Attention,
    spans: &[Span],
    bias: Option<Bias>,
    q: Rows<T>,
    k: Rows<T>,
    lse: &[f32],
    heads: &[usize],
    out: &mut [f32],
) {
    let d_k = attention.d_k;
    attention.check("attention_weights", spans, q, k, lse);
    assert!(
        heads.iter().all(|&head| head < attention.heads),
        "attention_weights: heads {heads:?} of {}",
        attention.heads
    );
    let mut ends = Vec::with_capacity(spans.len());
    for span in spans {
        let elements = span.queries as usize * span.keys as usize * heads.len();
        ends.push(ends.last().unwrap_or(&0) + elements);
    }
    check_len("attention_weights", "out", out.len(), *ends.last().unwrap_or(&0), 1);
    let biases = attention.biases("attention_weights", bias, spans);

    let blocks = blocks_of_queries(spans);
    let out = Shared::new(out);
    for_heads(cpu, blocks.len(), heads.len(), |block, number| {
        let (of_span, block) = blocks[block];
        let (span, head) = (&spans[of_span], heads[number]);
        let (queries, keys) = (span.queries as usize, span.keys as usize);
        let matrix = ends[of_span] - (heads.len() - number) * queries * keys;
        // Safety: the rows of a block, for one of the heads, belong to one task.
        let out = unsafe { out.slice(matrix + block.first * keys, block.queries * keys) };
        let sizes = [size(BLOCK, d_k), size(BLOCK, d_k), size(BLOCK, BLOCK)];
        let mut memory = Scratch::take(sizes.iter().sum());
        let [q_block, k_block, scores] = cut(&mut memory, sizes);
        cpu.isa.dispatch(Weights {
            isa: cpu.isa,
            attention,
            span,
            bias: biases.as_ref().map(|b| b.of(of_span, Pairs::from(span), head)),
            block,
            q: q.at(block.row, head * d_k),
            k: k.at(span.key as usize, head * d_k),
            lse: Rows { data: lse, stride: attention.heads }.at(block.row, head),
            out,
            q_block,
            k_block,
            scores,
        });
    });
}

/// Queries of a span that are computed together, for one head.
#[derive(Clone, Copy)]
pub(super) struct Block {
    /// The first of them, counted from the first query of the span.
    pub first: usize,
    /// The same, as a row of the batch.
    pub row: usize,
    pub queries: usize,
}

impl Block {
    /// The block that begins with a query.
    pub fn of(span: &Span, first: usize) -> Block {
        let (row, queries) = (span.query as usize + first, span.queries as usize - first);
        Block { first, row, queries: BLOCK.min(queries) }
    }
}

/// The blocks of all spans, each with the number of its span.
fn blocks_of_queries<'a>(spans: &'a [Span]) -> Vec<(usize, Block)> {
    let of_span = |(number, span): (usize, &'a Span)| {
        let starts = (0..span.queries as usize).step_by(BLOCK);
        starts.map(move |first| (number, Block::of(span, first)))
    };
    spans.iter().enumerate().flat_map(of_span).collect()
}

/// The start and the number of the keys of each block that some of the queries see. Blocks start at multiples
/// of their size from the first key on; keys after the last one that is seen are left out.
pub(super) fn blocks_of_keys(
    attention: &Attention,
    span: &Span,
    block: Block,
) -> impl Iterator<Item = (usize, usize)> {
    let start = attention.seen(span, block.first).start;
    let end = attention.seen(span, block.first + block.queries - 1).end;
    (start - start % BLOCK..end).step_by(BLOCK).map(move |at| (at, BLOCK.min(end - at)))
}

/// A block of queries of a head. Its matrices start at the first query of the block and the first key of the span.
struct Forward<'a, T> {
    isa: Isa,
    attention: &'a Attention,
    span: &'a Span,
    bias: Option<HeadBias<'a>>,
    block: Block,
    head: usize,
    q: Rows<'a, T>,
    k: Rows<'a, T>,
    v: Rows<'a, T>,
    /// All rows and heads, of which the block is a part.
    y: Shared<'a, T>,
    lse: Shared<'a, f32>,
    /// `[queries, d_k]`, scaled.
    q_block: &'a mut [f32],
    /// `[d_k, keys]`
    k_block: &'a mut [f32],
    /// `[keys, d_v]`
    v_block: &'a mut [f32],
    /// `[queries, keys]`
    scores: &'a mut [f32],
    /// `[queries, d_v]`: sums of values, each to be divided by its sum of weights.
    o: &'a mut [f32],
    /// `[queries, LANES]`: sums of weights, in parts that are added up at the end.
    l: &'a mut [f32],
}

impl<T: Real> Kernel for Forward<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        let (&Attention { d_k, d_v, scale, .. }, queries) = (self.attention, self.block.queries);
        let (q_stride, v_stride) = (padded(s, d_k), padded(s, d_v));
        let mut m = [f32::NEG_INFINITY; BLOCK];
        self.o[..queries * v_stride].fill(0.0);
        self.l[..queries * S::LANES].fill(0.0);
        copy(s, self.q, queries, d_k, scale, self.q_block);
        for (start, keys) in blocks_of_keys(self.attention, self.span, self.block) {
            let stride = padded(s, keys);
            transpose(s, self.k.at(start, 0), keys, d_k, self.k_block);
            copy(s, self.v.at(start, 0), keys, d_v, 1.0, self.v_block);
            multiply(
                self.isa,
                [queries, stride, d_k],
                self.q_block,
                [q_stride, 1],
                self.k_block,
                self.scores,
            );
            if let Some(bias) = &self.bias {
                bias.add(s, [self.block.first, queries], [start, keys], self.scores, stride);
            }
            for i in 0..queries {
                self.weigh(s, i, &mut m[i], start, keys);
            }
            multiply_add(self.isa, [queries, v_stride, keys], self.scores, [stride, 1], self.v_block, self.o);
        }
        for i in 0..queries {
            self.finish(s, i, m[i]);
        }
    }
}

impl<T: Real> Forward<'_, T> {
    /// Computes the weights of a query for a block of keys, relative to the greatest score so far, from its scores.
    #[inline(always)]
    fn weigh<S: Simd>(&mut self, s: S, i: usize, m: &mut f32, start: usize, keys: usize) {
        let (stride, v_stride) = (padded(s, keys), padded(s, self.attention.d_v));
        let scores = &mut self.scores[i * stride..][..stride];
        let seen = part(self.attention.seen(self.span, self.block.first + i), start, keys);
        let mut greatest = s.splat(f32::NEG_INFINITY);
        for at in (0..stride).step_by(S::LANES) {
            let x = masked(s, load(s, scores, at, S::LANES), at, &seen);
            greatest = s.max(greatest, x);
            store(s, scores, at, S::LANES, x);
        }
        // A NaN may get lost in this maximum, but not in the weights below.
        let before = *m;
        *m = before.max(s.greatest(greatest));
        let mut l = load(s, self.l, i * S::LANES, S::LANES);
        if *m > before && before > f32::NEG_INFINITY {
            let shrink = exp(s, s.splat(before - *m));
            l = s.mul(l, shrink);
            let o = &mut self.o[i * v_stride..][..v_stride];
            for at in (0..v_stride).step_by(S::LANES) {
                store(s, o, at, S::LANES, s.mul(load(s, o, at, S::LANES), shrink));
            }
        }
        let base = s.splat(base(*m));
        let dropout = self.attention.dropout_of(self.block.row + i, self.head);
        for at in (0..stride).step_by(S::LANES) {
            let p = exp(s, s.sub(load(s, scores, at, S::LANES), base));
            l = s.add(l, p);
            store(s, scores, at, S::LANES, s.mul(p, factors(s, dropout, start + at)));
        }
        store(s, self.l, i * S::LANES, S::LANES, l);
    }

    /// Writes the output and the `lse` of a query.
    #[inline(always)]
    fn finish<S: Simd>(&self, s: S, i: usize, m: f32) {
        let &Attention { heads, d_v, .. } = self.attention;
        let at = (self.block.row + i) * heads + self.head;
        // Safety: spans do not share queries, so this head of this row belongs to this task.
        let (y, lse) = unsafe { (self.y.slice(at * d_v, d_v), self.lse.slice(at, 1)) };
        let o = &self.o[i * padded(s, d_v)..][..d_v];
        let l = s.sum(load(s, self.l, i * S::LANES, S::LANES));
        if l == 0.0 {
            y.fill(T::from_f32(0.0));
            lse[0] = f32::NEG_INFINITY;
        } else {
            for at in (0..d_v).step_by(S::LANES) {
                let n = S::LANES.min(d_v - at);
                store(s, y, at, n, s.div(load(s, o, at, n), s.splat(l)));
            }
            lse[0] = m + l.ln();
        }
    }
}

/// The weights of one block of queries of one head.
struct Weights<'a, T> {
    isa: Isa,
    attention: &'a Attention,
    span: &'a Span,
    bias: Option<HeadBias<'a>>,
    block: Block,
    q: Rows<'a, T>,
    k: Rows<'a, T>,
    lse: Rows<'a>,
    /// `[queries, keys of the span]`
    out: &'a mut [f32],
    q_block: &'a mut [f32],
    k_block: &'a mut [f32],
    scores: &'a mut [f32],
}

impl<T: Real> Kernel for Weights<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Weights { isa, attention, span, bias, block, q, k, lse, out, q_block, k_block, scores } = self;
        let (d_k, queries) = (attention.d_k, block.queries);
        out.fill(0.0);
        copy(s, q, queries, d_k, attention.scale, q_block);
        for (start, keys) in blocks_of_keys(attention, span, block) {
            let stride = padded(s, keys);
            transpose(s, k.at(start, 0), keys, d_k, k_block);
            multiply(isa, [queries, stride, d_k], q_block, [padded(s, d_k), 1], k_block, scores);
            if let Some(bias) = &bias {
                bias.add(s, [block.first, queries], [start, keys], scores, stride);
            }
            for i in 0..queries {
                let seen = part(attention.seen(span, block.first + i), start, keys);
                let base = s.splat(base(lse.row(i, 1)[0]));
                let out = &mut out[i * span.keys as usize + start..][..keys];
                for at in (0..keys).step_by(S::LANES) {
                    let n = S::LANES.min(keys - at);
                    let x = masked(s, load(s, scores, i * stride + at, n), at, &seen);
                    store(s, out, at, n, exp(s, s.sub(x, base)));
                }
            }
        }
    }
}
