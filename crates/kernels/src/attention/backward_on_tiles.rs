//! The backward pass on the tile unit, for heads in bf16 whose width is a multiple of 32.
//!
//! Queries, keys, values and `dy` are bf16 already, so they lose nothing in products of tiles. Weights and gradients of scores are
//! split into two parts, the nearest bf16 and the nearest bf16 to the rest: sixteen bits. Blocks of queries and keys are as large as on
//! vectors; tiles are padded with zeros.

use super::backward::{Head, Query};
use super::block::{BLOCK, cut};
use super::on_tiles::{IN_TILE, Left, copy, in_blocks, multiply, multiply_two_parts, pack};
use super::{Attention, Span};
use crate::Real;
use crate::amx::{Amx, PANEL, TILE, Tiles, sum_at};
use crate::gemm::bf16::{Parts, STEP, as_tiles, pairs, put, row, transpose};
use crate::isa::{Isa, Kernel};
use crate::scratch::Scratch;
use crate::simd::{Simd, load};
use half::bf16;

/// Parts of weights and of gradients of scores.
const PARTS: usize = 2;

/// The gradients of a head that [`fits_tiles`](super::on_tiles::fits_tiles).
pub(super) fn backward_on_tiles<T: Real>(isa: Isa, amx: Amx, head: Head<T>) {
    let &Attention { d_k, d_v, .. } = head.attention;
    let queries = (head.span.queries as usize).next_multiple_of(STEP);
    let (square, narrow, wider) = (BLOCK * BLOCK, BLOCK * d_k, BLOCK * d_v);
    let sizes = [queries, square, square, queries * d_k, narrow, wider];
    let mut sums = Scratch::take(sizes.iter().sum());
    let [means, scores, dp, dq_sum, dk_sum, dv_sum] = cut(&mut sums, sizes);
    let (squares, paired) = (PARTS * square, 2 * PARTS * BLOCK * STEP);
    let sizes = [
        narrow, narrow, narrow, narrow, narrow, wider, wider, wider, wider, squares, squares, squares, paired,
    ];
    let mut operands = Scratch::take(sizes.iter().sum());
    let [
        q,
        q_pairs,
        k,
        k_pairs,
        k_transposed,
        v,
        v_transposed,
        dy,
        dy_pairs,
        ds,
        p_transposed,
        ds_transposed,
        paired,
    ] = cut(&mut operands, sizes);
    isa.dispatch(OnTiles {
        tiles: amx.tiles(),
        head,
        q,
        q_pairs,
        k,
        k_pairs,
        k_transposed,
        v,
        v_transposed,
        dy,
        dy_pairs,
        ds,
        p_transposed,
        ds_transposed,
        paired,
        means,
        scores,
        dp,
        dq_sum,
        dk_sum,
        dv_sum,
    });
}

/// Left operands are tiles of 16 rows, right ones panels of 32 columns as [`pack_right`] makes them, and sums
/// are blocks of 16 × 32 ([`sum_at`]).
struct OnTiles<'a, T> {
    tiles: Tiles,
    head: Head<'a, T>,
    /// `[queries, d_k]`, and as a right operand of products over queries.
    q: &'a mut [bf16],
    q_pairs: &'a mut [bf16],
    /// `[keys, d_k]`, as a right operand of products over keys, and transposed.
    k: &'a mut [bf16],
    k_pairs: &'a mut [bf16],
    k_transposed: &'a mut [bf16],
    /// `[keys, d_v]`, and transposed.
    v: &'a mut [bf16],
    v_transposed: &'a mut [bf16],
    /// `[queries, d_v]`, and as a right operand of products over queries.
    dy: &'a mut [bf16],
    dy_pairs: &'a mut [bf16],
    /// Gradients of scores: `[tile of queries][step of keys][part]`.
    ds: &'a mut [bf16],
    /// Weights after dropout: `[tile of keys][step of queries][part]`.
    p_transposed: &'a mut [bf16],
    /// The same of gradients of scores.
    ds_transposed: &'a mut [bf16],
    /// Weights, and behind them gradients of scores, of 32 queries as pairs, before they are transposed: `[tile of keys][part]`.
    paired: &'a mut [bf16],
    /// Of each query, `dy · y`.
    means: &'a mut [f32],
    /// `[tile of queries][panel of keys]`, before they are scaled.
    scores: &'a mut [f32],
    /// The same of gradients of weights.
    dp: &'a mut [f32],
    /// `[tile of all queries][panel of d_k]`, before it is scaled.
    dq_sum: &'a mut [f32],
    /// `[tile of keys][panel of d_k]`, before it is scaled.
    dk_sum: &'a mut [f32],
    /// `[tile of keys][panel of d_v]`
    dv_sum: &'a mut [f32],
}

impl<T: Real> Kernel for OnTiles<'_, T> {
    type Output = ();

    /// The same order of blocks as on vectors.
    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        assert!(S::BESIDE_TILES, "tiles without the vectors beside them");
        let &Attention { d_k, d_v, scale, .. } = self.head.attention;
        let Span { query, key, .. } = *self.head.span;
        let (queries, all_keys) = (self.head.span.queries as usize, self.head.span.keys as usize);
        for query in 0..queries {
            self.means[query] = self.head.mean_of_gradients(s, query);
        }
        self.dq_sum.fill(0.0);
        for start in (0..all_keys).step_by(BLOCK) {
            let keys = BLOCK.min(all_keys - start);
            let k = copy(s, self.head.k.at(start, 0), keys, d_k, self.k);
            pack(s, k, self.k_pairs);
            pack(s, k.t(), self.k_transposed);
            pack(s, copy(s, self.head.v.at(start, 0), keys, d_v, self.v).t(), self.v_transposed);
            self.dk_sum[..keys.next_multiple_of(STEP) * d_k].fill(0.0);
            self.dv_sum[..keys.next_multiple_of(STEP) * d_v].fill(0.0);
            for first in (0..queries).step_by(BLOCK) {
                let count = BLOCK.min(queries - first);
                if self.head.sees_any(first, count, start, keys) {
                    self.add_blocks(s, first, count, start, keys);
                }
            }
            let (row, head) = (key as usize + start, &self.head);
            // Safety: spans do not share keys, so this head of their rows belongs to this task.
            unsafe {
                head.write(s, head.dk, [row, keys, d_k], self.dk_sum, scale, in_blocks(d_k));
                head.write(s, head.dv, [row, keys, d_v], self.dv_sum, 1.0, in_blocks(d_v));
            }
        }
        // Safety: nor do they share queries.
        unsafe {
            let rows = [query as usize, queries, d_k];
            self.head.write(s, self.head.dq, rows, self.dq_sum, scale, in_blocks(d_k));
        }
    }
}

impl<T: Real> OnTiles<'_, T> {
    /// Adds a block of queries and a block of keys to the gradients.
    #[inline(always)]
    fn add_blocks<S: Simd>(&mut self, s: S, first: usize, queries: usize, start: usize, keys: usize) {
        let &Attention { d_k, d_v, .. } = self.head.attention;
        let (of_queries, of_keys) = (queries.div_ceil(STEP), keys.div_ceil(STEP));
        pack(s, copy(s, self.head.q.at(first, 0), queries, d_k, self.q), self.q_pairs);
        pack(s, copy(s, self.head.dy.at(first, 0), queries, d_v, self.dy), self.dy_pairs);
        let (q, dy) = (Left::rows(self.q, d_k), Left::rows(self.dy, d_v));
        multiply(&self.tiles, [2 * of_queries, of_keys, d_k / STEP], q, self.k_transposed, self.scores, true);
        multiply(&self.tiles, [2 * of_queries, of_keys, d_v / STEP], dy, self.v_transposed, self.dp, true);
        match self.head.bias {
            Some(_) => self.through_softmax::<S, true>(s, first, queries, start, keys),
            None => self.through_softmax::<S, false>(s, first, queries, start, keys),
        }
        let tiles = &self.tiles;
        let (p, ds) = (
            Left::tiles(self.p_transposed, PARTS, of_queries),
            Left::tiles(self.ds_transposed, PARTS, of_queries),
        );
        multiply_two_parts(tiles, [2 * of_keys, d_v / PANEL, of_queries], p, self.dy_pairs, self.dv_sum);
        multiply_two_parts(tiles, [2 * of_keys, d_k / PANEL, of_queries], ds, self.q_pairs, self.dk_sum);
        let (ds, dq_sum) = (Left::tiles(self.ds, PARTS, of_keys), &mut self.dq_sum[first * d_k..]);
        multiply_two_parts(tiles, [2 * of_queries, d_k / PANEL, of_keys], ds, self.k_pairs, dq_sum);
    }

    /// Computes weights after dropout from scores, and gradients of scores from gradients of those weights, two queries at a time:
    /// operands of products over queries are paired along queries, and then transposed.
    ///
    /// `BIASED` is a constant, so that the innermost loop has no branch for it.
    #[inline(always)]
    fn through_softmax<S: Simd, const BIASED: bool>(
        &mut self,
        s: S,
        first: usize,
        queries: usize,
        start: usize,
        keys: usize,
    ) {
        let scale = s.splat(self.head.attention.scale);
        let (of_queries, of_keys) = (queries.div_ceil(STEP), keys.div_ceil(STEP));
        let (weights, gradients) = self.paired.split_at_mut(PARTS * BLOCK * STEP);
        for step in 0..of_queries {
            for pair in 0..TILE {
                let number = step * STEP + 2 * pair;
                // There is no second query below the last one: it adds zeros.
                let mut both: [Option<Query<S>>; 2] = [None, None];
                for i in 0..2 {
                    if number + i < queries {
                        let query = first + number + i;
                        both[i] = Some(self.head.query(s, query, self.means[query], start, keys));
                    }
                }
                for panel in 0..of_keys {
                    // The block of sums, and the tile of gradients, in which both queries are neighbouring rows.
                    let block = number / TILE * of_keys + panel;
                    for at in (0..PANEL).step_by(2 * S::LANES) {
                        let (mut p, mut ds) = ([[s.splat(0.0); 2]; 2], [[s.splat(0.0); 2]; 2]);
                        for i in 0..2 {
                            for v in 0..2 {
                                let Some(query) = &both[i] else { continue };
                                let at = at + v * S::LANES;
                                let from = block * TILE * PANEL + sum_at::<TILE>(number % TILE + i, at);
                                let mut scores = s.mul(load(s, self.scores, from, S::LANES), scale);
                                let dp = load(s, self.dp, from, S::LANES);
                                let key = panel * PANEL + at;
                                // Rows of biases end with the last key.
                                let there = S::LANES.min(keys.saturating_sub(key));
                                if BIASED && there > 0 {
                                    scores = self.head.with_bias(
                                        s,
                                        scores,
                                        first + number + i,
                                        start + key,
                                        there,
                                    );
                                }
                                (p[i][v], ds[i][v]) = query.through_softmax(s, key, scores, dp);
                                if BIASED && there > 0 {
                                    self.head.add_to_bias(
                                        s,
                                        ds[i][v],
                                        first + number + i,
                                        start + key,
                                        there,
                                    );
                                }
                            }
                            let ds = row::<S, PARTS>(s, ds[i][0], ds[i][1]);
                            put(s, parts(self.ds, block), number % TILE + i, at / 2, ds);
                        }
                        for v in 0..2 {
                            let (tile, at) =
                                (2 * panel + (at + v * S::LANES) / TILE, (at + v * S::LANES) % TILE);
                            put(s, parts(weights, tile), pair, at, pairs(s, p[0][v], p[1][v]));
                            put(s, parts(gradients, tile), pair, at, pairs(s, ds[0][v], ds[1][v]));
                        }
                    }
                }
            }
            for tile in 0..2 * of_keys {
                let to = tile * of_queries + step;
                transpose(s, parts(weights, tile), parts(self.p_transposed, to));
                transpose(s, parts(gradients, tile), parts(self.ds_transposed, to));
            }
        }
    }
}

/// The parts of a tile.
#[inline(always)]
fn parts(tiles: &mut [bf16], tile: usize) -> &mut Parts<PARTS> {
    as_tiles(&mut tiles[tile * PARTS * IN_TILE..][..PARTS * IN_TILE])
}
