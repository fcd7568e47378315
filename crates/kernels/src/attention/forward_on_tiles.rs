//! The forward pass on the tile unit, for heads in bf16 that are as wide as whole steps of it.
//!
//! Scores are products of bf16, which queries and keys are already. The weights of a block of keys are relative to the greatest score
//! so far, rounded to bf16, and multiplied with the values; sums are f32. Blocks are those of the pass on vectors, so that
//! a sequence has the same bits in any batch. They are not the bits of the pass on vectors.

use super::bias::HeadBias;
use super::block::{BLOCK, MOST_LANES, base, cut, factors, masked, part};
use super::forward::{Block, blocks_of_keys};
use super::on_tiles::{IN_TILE, Left, copy, in_blocks, multiply, pack};
use super::{Attention, Rows, Span};
use crate::Real;
use crate::amx::{Amx, PANEL, TILE, Tiles, sum_at};
use crate::gemm::bf16::{STEP, as_tiles, put, row};
use crate::isa::{Isa, Kernel};
use crate::math::exp;
use crate::scratch::Scratch;
use crate::simd::{Simd, load, store};
use crate::threads::Shared;
use half::bf16;

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
    let [rows, k_turned, v_pairs, weights] = cut(&mut operands, sizes);
    isa.dispatch(OnTiles {
        tiles: amx.tiles(),
        head,
        rows,
        k_turned,
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
    /// Queries of a block `[queries, d_k]`, and before that keys or values that are to be packed.
    rows: &'a mut [bf16],
    /// For each block of keys, their transpose as a right operand.
    k_turned: &'a mut [bf16],
    /// For each block of keys, their values as a right operand of products over keys.
    v_pairs: &'a mut [bf16],
    /// Weights after dropout: `[tile of queries][step of keys]`.
    weights: &'a mut [bf16],
    /// `[tile of queries][panel of keys]`
    scores: &'a mut [f32],
    /// `[tile of queries][panel of d_v]`: sums of values, each to be divided by its sum of weights.
    o: &'a mut [f32],
    /// The greatest score of each query so far.
    greatest: &'a mut [f32],
    /// `[queries, LANES]`: sums of weights, in parts that are added up at the end.
    l: &'a mut [f32],
}

impl<T: Real> Kernel for OnTiles<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        assert!(S::BESIDE_TILES, "tiles without the vectors beside them");
        let &Attention { d_k, d_v, .. } = self.head.attention;
        let (span, queries) = (self.head.span, self.head.span.queries as usize);
        for start in (0..span.keys as usize).step_by(BLOCK) {
            let keys = BLOCK.min(span.keys as usize - start);
            let k = copy(s, self.head.k.at(start, 0), keys, d_k, self.rows);
            pack(s, k.t(), &mut self.k_turned[start * d_k..][..BLOCK * d_k]);
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
                self.meet(s, block, start, keys);
            }
            for query in 0..block.queries {
                self.finish(s, block, query);
            }
        }
    }
}

impl<T: Real> OnTiles<'_, T> {
    /// What a block of keys adds to the sums of a block of queries.
    #[inline(always)]
    fn meet<S: Simd>(&mut self, s: S, block: Block, start: usize, keys: usize) {
        let &Attention { d_k, d_v, .. } = self.head.attention;
        let (of_queries, of_keys) = (block.queries.div_ceil(TILE), keys.div_ceil(STEP));
        let k = &self.k_turned[start * d_k..];
        let q = Left::rows(self.rows, d_k);
        multiply(&self.tiles, [of_queries, of_keys, d_k / STEP], q, k, self.scores, true);
        for query in 0..block.queries {
            match self.head.bias {
                Some(_) => self.weigh::<S, true>(s, block, query, start, keys),
                None => self.weigh::<S, false>(s, block, query, start, keys),
            }
        }
        let (weights, v) = (Left::tiles(self.weights, 1, of_keys), &self.v_pairs[start * d_v..]);
        multiply(&self.tiles, [of_queries, d_v / PANEL, of_keys], weights, v, self.o, false);
    }

    /// Turns the scores of a query with a block of keys into weights relative to the greatest score so far.
    ///
    /// With a bias it is another function, so that without one nothing is asked in the innermost loop.
    #[inline(always)]
    fn weigh<S: Simd, const BIASED: bool>(
        &mut self,
        s: S,
        block: Block,
        query: usize,
        start: usize,
        keys: usize,
    ) {
        let &Attention { scale, d_v, .. } = self.head.attention;
        let of_keys = keys.div_ceil(STEP);
        let seen = part(self.head.attention.seen(self.head.span, block.first + query), start, keys);
        let scores = &mut self.scores[query / TILE * of_keys * TILE * PANEL..][..of_keys * TILE * PANEL];
        let place = |key: usize| key / PANEL * TILE * PANEL + sum_at::<TILE>(query % TILE, key % PANEL);
        let (scale, mut here) = (s.splat(scale), s.splat(f32::NEG_INFINITY));
        for at in (0..of_keys * STEP).step_by(S::LANES) {
            let mut x = s.mul(load(s, scores, place(at), S::LANES), scale);
            // Rows of biases end with the last key.
            let there = S::LANES.min(keys.saturating_sub(at));
            if BIASED
                && there > 0
                && let Some(bias) = &self.head.bias
            {
                x = s.add(x, load(s, bias.row(block.first + query, start + at, there), 0, there));
            }
            let x = masked(s, x, at, &seen);
            here = s.max(here, x);
            store(s, scores, place(at), S::LANES, x);
        }
        // A score that is not a number may get lost here, but not below.
        let before = self.greatest[query];
        let greatest = before.max(s.greatest(here));
        self.greatest[query] = greatest;
        let mut sum = load(s, self.l, query * S::LANES, S::LANES);
        if greatest > before && before > f32::NEG_INFINITY {
            let shrink = exp(s, s.splat(before - greatest));
            sum = s.mul(sum, shrink);
            for at in (0..d_v).step_by(S::LANES) {
                let at = in_blocks(d_v)(query, at);
                let shrunk = s.mul(load(s, self.o, at, S::LANES), shrink);
                store(s, self.o, at, S::LANES, shrunk);
            }
        }
        let base = s.splat(base(greatest));
        let dropout = self.head.attention.dropout_of(block.row + query, self.head.number);
        for step in 0..of_keys {
            let tile = (query / TILE * of_keys + step) * IN_TILE;
            let weights = as_tiles::<1>(&mut self.weights[tile..][..IN_TILE]);
            for at in (0..STEP).step_by(2 * S::LANES) {
                let mut pair = [s.splat(0.0); 2];
                for (i, weight) in pair.iter_mut().enumerate() {
                    let key = step * STEP + at + i * S::LANES;
                    let p = exp(s, s.sub(load(s, scores, place(key), S::LANES), base));
                    sum = s.add(sum, p);
                    *weight = s.mul(p, factors(s, dropout, start + key));
                }
                put(s, weights, query % TILE, at / 2, row::<S, 1>(s, pair[0], pair[1]));
            }
        }
        store(s, self.l, query * S::LANES, S::LANES, sum);
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
        lse[0] = self.greatest[query] + l.ln();
    }
}
