//! The forward pass on the tile unit, for heads in bf16 whose width is a multiple of 32.
//!
//! Queries and keys are bf16 already, so scores lose nothing in products of tiles. The weights of a block of keys are relative to the
//! greatest score so far. They are rounded to bf16 and multiplied with the values; sums are f32. Blocks are those of the pass on
//! vectors, so that a sequence has the same bits in any batch. They are not the bits of the pass on vectors.

use super::bias::HeadBias;
use super::block::{BLOCK, MOST_LANES, base, cut, masked, part};
use super::forward::{Block, blocks_of_keys};
use super::on_tiles::{IN_TILE, Left, copy, in_blocks, multiply, pack};
use super::{Attention, Rows, Span};
use crate::Real;
use crate::amx::{Amx, PANEL, TILE, Tiles, sum_at};
use crate::gemm::bf16::{STEP, as_tiles, put, row as row_of_pairs};
use crate::isa::{Isa, Kernel};
use crate::math::exp2_roughly;
use crate::scratch::Scratch;
use crate::simd::{Simd, load, store};
use crate::threads::Shared;
use half::bf16;
use std::f32::consts::{LN_2, LOG2_E};

/// One head of one span; matrices start at its first query and key.
pub(super) struct Head<'a, T> {
    pub attention: &'a Attention,
    pub span: &'a Span,
    pub number: usize,
    pub bias: Option<HeadBias<'a>>,
    pub q: Rows<'a, T>,
    pub k: Rows<'a, T>,
    pub v: Rows<'a, T>,
    /// All rows and heads, of which the span's are a part.
    pub y: Shared<'a, T>,
    pub lse: Shared<'a, f32>,
}

/// The outputs of a head that [`fits_tiles`](super::on_tiles::fits_tiles).
pub(super) fn forward_on_tiles<T: Real>(isa: Isa, amx: Amx, head: Head<T>) {
    let &Attention { d_k, d_v, .. } = head.attention;
    let keys = (head.span.keys as usize).next_multiple_of(BLOCK);
    let sizes = [BLOCK * BLOCK, BLOCK * d_v, BLOCK, BLOCK * MOST_LANES];
    let mut sums = Scratch::take(sizes.iter().sum());
    let [scores, o, greatest, l] = cut(&mut sums, sizes);
    let sizes = [BLOCK * d_k.max(d_v), keys * d_k, keys * d_v, BLOCK * BLOCK];
    let mut operands = Scratch::take(sizes.iter().sum());
    let [rows, k_transposed, v_pairs, weights] = cut(&mut operands, sizes);
    isa.dispatch(OnTiles {
        tiles: amx.tiles(),
        head,
        rows,
        k_transposed,
        v_pairs,
        weights,
        scores,
        o,
        greatest,
        l,
    });
}

struct OnTiles<'a, T> {
    tiles: Tiles,
    head: Head<'a, T>,
    /// First keys and values while they are packed, then the queries of a block: `[queries, d_k]`.
    rows: &'a mut [bf16],
    /// Of each block of keys the transpose, as a right operand.
    k_transposed: &'a mut [bf16],
    /// Of each block of keys the values, as a right operand of products over keys.
    v_pairs: &'a mut [bf16],
    /// Weights after dropout: `[tile of queries][step of keys]`.
    weights: &'a mut [bf16],
    /// `[tile of queries][panel of keys]`
    scores: &'a mut [f32],
    /// `[tile of queries][panel of d_v]`: sums of values, each to be divided by its sum of weights.
    o: &'a mut [f32],
    /// The greatest score of each query so far, times log₂ e, so that weights are powers of two.
    greatest: &'a mut [f32],
    /// `[queries, LANES]`: sums of weights, in parts that are added up at the end.
    l: &'a mut [f32],
}

impl<T: Real> Kernel for OnTiles<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        assert!(S::BESIDE_TILES && S::LANES == TILE, "tiles without the vectors beside them");
        let &Attention { d_k, d_v, .. } = self.head.attention;
        let (span, queries) = (self.head.span, self.head.span.queries as usize);
        for start in (0..span.keys as usize).step_by(BLOCK) {
            let keys = BLOCK.min(span.keys as usize - start);
            let k = copy(s, self.head.k.at(start, 0), keys, d_k, self.rows);
            pack(s, k.t(), &mut self.k_transposed[start * d_k..][..BLOCK * d_k]);
            let v = copy(s, self.head.v.at(start, 0), keys, d_v, self.rows);
            pack(s, v, &mut self.v_pairs[start * d_v..][..BLOCK * d_v]);
        }
        for first in (0..queries).step_by(BLOCK) {
            let block = Block::of(span, first);
            copy(s, self.head.q.at(first, 0), block.queries, d_k, self.rows);
            self.greatest.fill(f32::NEG_INFINITY);
            self.l.fill(0.0);
            self.o.fill(0.0);
            for (start, keys) in blocks_of_keys(self.head.attention, span, block) {
                self.add_keys(s, block, start, keys);
            }
            for query in 0..block.queries {
                self.finish(s, block, query);
            }
        }
    }
}

impl<T: Real> OnTiles<'_, T> {
    /// Adds a block of keys to the sums of a block of queries.
    #[inline(always)]
    fn add_keys<S: Simd>(&mut self, s: S, block: Block, start: usize, keys: usize) {
        let &Attention { d_k, d_v, .. } = self.head.attention;
        let (of_queries, of_keys) = (block.queries.div_ceil(TILE), keys.div_ceil(STEP));
        let k = &self.k_transposed[start * d_k..];
        let q = Left::rows(self.rows, d_k);
        multiply(&self.tiles, [of_queries, of_keys, d_k / STEP], q, k, self.scores, true);
        for query in 0..block.queries {
            // Beside tiles a vector has sixteen lanes.
            match (of_keys, &self.head.bias) {
                (1, None) => self.weigh::<S, 2, false>(s, block, query, start, keys),
                (1, Some(_)) => self.weigh::<S, 2, true>(s, block, query, start, keys),
                (_, None) => self.weigh::<S, 4, false>(s, block, query, start, keys),
                (_, Some(_)) => self.weigh::<S, 4, true>(s, block, query, start, keys),
            }
        }
        let (weights, v) = (Left::tiles(self.weights, 1, of_keys), &self.v_pairs[start * d_v..]);
        multiply(&self.tiles, [of_queries, d_v / PANEL, of_keys], weights, v, self.o, false);
    }

    /// Computes the weights of a query for a block of keys, relative to the greatest score so far, from its scores, which fill `V`
    /// vectors.
    ///
    /// `BIASED` is a constant, so that the innermost loop has no branch for it.
    #[inline(always)]
    fn weigh<S: Simd, const V: usize, const BIASED: bool>(
        &mut self,
        s: S,
        block: Block,
        query: usize,
        start: usize,
        keys: usize,
    ) {
        let &Attention { scale, d_v, .. } = self.head.attention;
        let of_keys = V * S::LANES / STEP;
        let (tile, row) = (query / TILE * of_keys, query % TILE);
        let seen = part(self.head.attention.seen(self.head.span, block.first + query), start, keys);
        let mut x = [s.splat(f32::NEG_INFINITY); V];
        let mut here = s.splat(f32::NEG_INFINITY);
        for v in 0..V {
            let at = v * S::LANES;
            let from = (tile + at / PANEL) * TILE * PANEL + sum_at::<TILE>(row, at % PANEL);
            x[v] = s.mul(load(s, self.scores, from, S::LANES), s.splat(scale * LOG2_E));
            // Rows of biases end with the last key.
            let there = S::LANES.min(keys.saturating_sub(at));
            if BIASED
                && there > 0
                && let Some(bias) = &self.head.bias
            {
                let bias = load(s, bias.row(block.first + query, start + at, there), 0, there);
                x[v] = s.fma(bias, s.splat(LOG2_E), x[v]);
            }
            if at < seen.start || at + S::LANES > seen.end {
                x[v] = masked(s, x[v], at, &seen);
            }
            here = s.max(here, x[v]);
        }
        // A NaN may get lost in this maximum, but not in the weights below.
        let before = self.greatest[query];
        let greatest = before.max(s.greatest(here));
        self.greatest[query] = greatest;
        let mut sum = load(s, self.l, query * S::LANES, S::LANES);
        if greatest > before && before > f32::NEG_INFINITY {
            let shrink = exp2_roughly(s, s.splat(before - greatest));
            sum = s.mul(sum, shrink);
            for at in (0..d_v).step_by(S::LANES) {
                let at = in_blocks(d_v)(query, at);
                let shrunk = s.mul(load(s, self.o, at, S::LANES), shrink);
                store(s, self.o, at, S::LANES, shrunk);
            }
        }
        let base = s.splat(base(greatest));
        for v in 0..V {
            x[v] = exp2_roughly(s, s.sub(x[v], base));
            sum = s.add(sum, x[v]);
        }
        store(s, self.l, query * S::LANES, S::LANES, sum);
        if let Some(dropout) = self.head.attention.dropout_of(block.row + query, self.head.number) {
            for v in 0..V {
                x[v] = s.mul(x[v], dropout.factors(s, (start + v * S::LANES) as u32));
            }
        }
        for v in (0..V).step_by(2) {
            let at = v * S::LANES;
            let weights = as_tiles::<1>(&mut self.weights[(tile + at / STEP) * IN_TILE..][..IN_TILE]);
            put(s, weights, row, at % STEP / 2, row_of_pairs::<S, 1>(s, x[v], x[v + 1]));
        }
    }

    /// Writes the output and the `lse` of a query.
    #[inline(always)]
    fn finish<S: Simd>(&self, s: S, block: Block, query: usize) {
        let &Attention { heads, d_v, .. } = self.head.attention;
        let at = (block.row + query) * heads + self.head.number;
        // Safety: spans do not share queries, so this head of this row belongs to this task.
        let (y, lse) = unsafe { (self.head.y.slice(at * d_v, d_v), self.head.lse.slice(at, 1)) };
        let l = s.sum(load(s, self.l, query * S::LANES, S::LANES));
        if l == 0.0 {
            y.fill(T::from_f32(0.0));
            lse[0] = f32::NEG_INFINITY;
            return;
        }
        for column in (0..d_v).step_by(S::LANES) {
            let o = load(s, self.o, in_blocks(d_v)(query, column), S::LANES);
            store(s, y, column, S::LANES, s.div(o, s.splat(l)));
        }
        lse[0] = self.greatest[query] * LN_2 + l.ln();
    }
}
