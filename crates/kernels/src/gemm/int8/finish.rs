//! Finishing sums: `activation(sum · row scale · column scale + (row centre · column total + bias))`.

use super::{Epilogue, Int8Weights};
use crate::amx::{PANEL, sum_at};
use crate::simd::{Real, Simd, load};
use crate::threads::Shared;
use std::ops::Range;

/// What finishing a block of sums needs.
#[derive(Clone, Copy)]
pub(super) struct Finish<'a, T> {
    /// The scale and the centre of each row.
    pub scales: &'a [f32],
    pub centres: &'a [f32],
    pub w: &'a Int8Weights,
    /// Which columns of `w` are in `c`.
    pub columns: &'a Range<usize>,
    pub c: Shared<'a, T>,
    pub epilogue: Epilogue<'a>,
}

impl<T: Real> Finish<'_, T> {
    /// Where the block of `row` and `panel` begins in `C`.
    #[inline(always)]
    pub fn first(&self, row: usize, panel: usize) -> usize {
        row * self.columns.len() + panel * PANEL - self.columns.start
    }

    /// Finishes the first `rows` rows of a block of `R` rows.
    #[inline(always)]
    pub fn block<S: Simd, const R: usize>(&self, s: S, panel: usize, row: usize, rows: usize, sums: &[i32]) {
        assert!(sums.len() == R * PANEL && rows <= R);
        match self.epilogue.activation {
            None => self.write::<S, R, false>(s, panel, row, rows, sums),
            Some(_) => self.write::<S, R, true>(s, panel, row, rows, sums),
        }
    }

    /// Goes through the columns vector by vector, so that their scales and biases stay in registers.
    #[inline(always)]
    fn write<S: Simd, const R: usize, const ACTIVATE: bool>(
        &self,
        s: S,
        panel: usize,
        row: usize,
        rows: usize,
        sums: &[i32],
    ) {
        let n = self.columns.len();
        let column = panel * PANEL;
        let cols = PANEL.min(self.columns.end - column);
        let first = self.first(row, panel);
        assert!(first + (rows - 1) * n + cols <= self.c.len());
        let c = self.c.at(first);
        let of_rows = self.scales[row..][..rows].iter().zip(&self.centres[row..][..rows]);
        for at in (0..cols).step_by(S::LANES) {
            let lanes = S::LANES.min(cols - at);
            let scale = load(s, &self.w.scales, column + at, lanes);
            let total = load(s, &self.w.totals, column + at, lanes);
            let bias = self.epilogue.bias.map_or(s.splat(0.0), |bias| load(s, bias, column + at, lanes));
            for (i, (&row_scale, &centre)) in of_rows.clone().enumerate() {
                // Safety: a row of a tile is as wide as the widest vectors.
                let sum = s.whole(unsafe { s.load_u(sums.as_ptr().add(sum_at::<R>(i, at)).cast()) });
                let bias = s.add(s.mul(s.splat(centre), total), bias);
                let mut y = s.add(s.mul(s.mul(sum, s.splat(row_scale)), scale), bias);
                if ACTIVATE && let Some(activation) = self.epilogue.activation {
                    y = activation.apply(s, y);
                }
                // Safety: inside of the block that was checked above, which belongs to one task.
                unsafe {
                    let to = c.add(i * n + at);
                    if lanes < S::LANES { T::store_first(s, to, lanes, y) } else { T::store(s, to, y) }
                }
            }
        }
    }

    /// The block at `row` and `panel`, to be finished some rows at a time. None if it is not inside `C` as a whole.
    #[inline(always)]
    pub fn between_steps<S: Simd, const R: usize>(
        &self,
        s: S,
        panel: usize,
        row: usize,
        sums: *const i32,
    ) -> Option<BetweenSteps<S, T>> {
        const { assert!(!S::BESIDE_TILES || PANEL == VECTORS * S::LANES) };
        let (n, column) = (self.columns.len(), panel * PANEL);
        if row + R > self.scales.len().min(self.centres.len()) || column + PANEL > self.columns.end {
            return None;
        }
        let first = self.first(row, panel);
        assert!(first + (R - 1) * n + PANEL <= self.c.len());
        let (mut scales, mut totals, mut biases) =
            ([s.splat(0.0); VECTORS], [s.splat(0.0); VECTORS], [s.splat(0.0); VECTORS]);
        for v in 0..VECTORS {
            scales[v] = load(s, &self.w.scales, column + v * S::LANES, S::LANES);
            totals[v] = load(s, &self.w.totals, column + v * S::LANES, S::LANES);
            if let Some(bias) = self.epilogue.bias {
                biases[v] = load(s, bias, column + v * S::LANES, S::LANES);
            }
        }
        Some(BetweenSteps {
            rows: R,
            sums,
            row_scale: self.scales[row..].as_ptr(),
            centre: self.centres[row..].as_ptr(),
            c: self.c.at(first),
            n,
            scales,
            totals,
            biases,
        })
    }
}

/// Vectors in a row of a block, on processors with tiles.
const VECTORS: usize = 2;

/// A block that is finished between the steps of the next product, while the tile unit works.
pub(super) struct BetweenSteps<S: Simd, T> {
    /// How many rows are left.
    rows: usize,
    /// The next row of sums, its scale, its centre, and where it goes to.
    sums: *const i32,
    row_scale: *const f32,
    centre: *const f32,
    c: *mut T,
    n: usize,
    scales: [S::F; VECTORS],
    totals: [S::F; VECTORS],
    biases: [S::F; VECTORS],
}

impl<S: Simd, T: Real> BetweenSteps<S, T> {
    /// Finishes up to `most` rows.
    ///
    /// # Safety
    /// The sums of the block must be complete, and its rows must belong to this task.
    #[inline(always)]
    pub unsafe fn step<const R: usize>(&mut self, s: S, most: usize, epilogue: &Epilogue) {
        for _ in 0..most.min(self.rows) {
            let mut y = [s.splat(0.0); VECTORS];
            // Safety: inside of rows of tiles, of as many scales and centres, and of `C`, as was checked when the block was made.
            unsafe {
                let (row_scale, centre) = (s.splat(*self.row_scale), s.splat(*self.centre));
                for v in 0..VECTORS {
                    let sum = s.whole(s.load_u(self.sums.add(sum_at::<R>(0, v * S::LANES)).cast()));
                    let bias = s.add(s.mul(centre, self.totals[v]), self.biases[v]);
                    y[v] = s.add(s.mul(s.mul(sum, row_scale), self.scales[v]), bias);
                }
                if let Some(activation) = epilogue.activation {
                    // The closure of `map` would be compiled without the instructions of this set.
                    for y in &mut y {
                        *y = activation.apply(s, *y);
                    }
                }
                T::store_row(s, self.c, y[0], y[1]);
            }
            self.rows -= 1;
            self.sums = self.sums.wrapping_add(sum_at::<R>(1, 0));
            self.row_scale = self.row_scale.wrapping_add(1);
            self.centre = self.centre.wrapping_add(1);
            self.c = self.c.wrapping_add(self.n);
        }
    }
}
