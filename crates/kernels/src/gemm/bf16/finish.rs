//! Finishing complete blocks of sums: what `C` holds, bias and activation are added, and the block is rounded and written to `C`.

use super::Epilogue;
use super::block::Task;
use crate::activation::Activation;
use crate::amx::{PANEL, TILE, Tiles, sum_at};
use crate::isa::Kernel;
use crate::simd::{Real, Simd, for_vectors, load, store};

/// The part of `C` that a block is written to. `width` is the length of a row of `C`.
#[derive(Clone, Copy)]
struct Target {
    row: usize,
    column: usize,
    rows: usize,
    cols: usize,
    width: usize,
}

impl<'a, C: Real, const N: usize> Task<'a, C, N> {
    /// The part of `C` for the block of `R` rows and a panel of columns at `row` and `column`.
    #[inline(always)]
    fn target<const R: usize>(&self, row: usize, column: usize) -> Target {
        let (m, n) = (self.left.m, self.n);
        let (rows, cols) = (R.min(m - row), PANEL.min(n - column));
        if self.transposed_result {
            return Target { row: column, column: row, rows: cols, cols: rows, width: m };
        }
        Target { row, column, rows, cols, width: n }
    }

    /// The first element of that part.
    #[inline(always)]
    fn first_element<const R: usize>(&self, row: usize, column: usize) -> *mut C {
        let Target { row, column, width, .. } = self.target::<R>(row, column);
        self.c.at(row * width + column)
    }

    /// Prefetches, for writing, the part of `C` of the block of sixteen rows at `row` and `column`.
    #[inline(always)]
    pub(super) fn prefetch_result(&self, tiles: &Tiles, row: usize, column: usize) {
        if !self.epilogue.streamed {
            let (first, size) = (self.first_element::<TILE>(row, column), size_of::<C>());
            let Target { rows, cols, width, .. } = self.target::<TILE>(row, column);
            tiles.prefetch_to_write(first.cast_const().cast(), width * size, rows, cols * size);
        }
    }

    /// Finishes the block of `R` rows at `row` and `column` in one go.
    #[inline(always)]
    fn finish<S: Simd, const R: usize>(&self, s: S, row: usize, column: usize) {
        let (at, target) = (self.sums_of::<R>(row, column), self.target::<R>(row, column));
        // Safety: the block is complete, and is not written to any more.
        let sums = unsafe { std::slice::from_raw_parts(at.cast_const(), R * PANEL) };
        if !self.transposed_result {
            return self.finish_rows::<S, R, PANEL>(s, target, sums);
        }
        let mut squares = Squares::new();
        for column in (0..target.rows).step_by(TILE) {
            // Safety: the tiles of sixteen columns.
            unsafe { squares.transpose::<S, R>(s, sums[sum_at::<R>(0, column)..].as_ptr()) }
            for (row, square) in (0..target.cols).step_by(TILE).zip(&squares.0) {
                let (rows, cols) = (TILE.min(target.rows - column), TILE.min(target.cols - row));
                let target =
                    Target { row: target.row + column, column: target.column + row, rows, cols, ..target };
                self.finish_rows::<S, TILE, TILE>(s, target, square.as_flattened());
            }
        }
    }

    /// Finishes a block of `R` rows and `W` columns. What the epilogue asks for is decided here, once for all rows.
    #[inline(always)]
    fn finish_rows<S: Simd, const R: usize, const W: usize>(&self, s: S, target: Target, sums: &[f32]) {
        let Epilogue { accumulate, bias, activation, .. } = self.epilogue;
        let mut wide_bias = [0.0; W];
        if let Some(bias) = bias {
            wide_bias[..target.cols].copy_from_slice(&bias[target.column..target.column + target.cols]);
        }
        match (accumulate, activation) {
            (false, None) => self.put::<S, R, W>(s, target, sums, &wide_bias, |sum, _, _| sum),
            (true, None) => self.put::<S, R, W>(
                s,
                target,
                sums,
                &wide_bias,
                #[inline(always)]
                |sum, c, lanes| s.add(sum, load(s, c, 0, lanes)),
            ),
            (_, Some(activation)) => self.put::<S, R, W>(
                s,
                target,
                sums,
                &wide_bias,
                #[inline(always)]
                |sum, c, lanes| {
                    let sum = if accumulate { s.add(sum, load(s, c, 0, lanes)) } else { sum };
                    activation.apply(s, sum)
                },
            ),
        }
    }

    /// Stores `finish(sum + bias, what C holds there, number of lanes)` for each vector of a block.
    #[inline(always)]
    fn put<S: Simd, const R: usize, const W: usize>(
        &self,
        s: S,
        Target { row, column, rows, cols, width }: Target,
        sums: &[f32],
        bias: &[f32; W],
        finish: impl Fn(S::F, &[C], usize) -> S::F,
    ) {
        let sum = |i, at| s.add(load(s, sums, sum_at::<R>(i, at), S::LANES), load(s, bias, at, S::LANES));
        // Safety: rows and columns belong to one task each.
        let c = |i: usize| unsafe { self.c.slice((row + i) * width + column, cols) };
        // Whole rows are the common case, and the compiler knows their length.
        if cols == W {
            for i in 0..rows {
                let c = c(i).first_chunk_mut::<W>().expect("a whole row");
                for at in (0..W).step_by(S::LANES) {
                    let y = finish(sum(i, at), &c[at..at + S::LANES], S::LANES);
                    if self.epilogue.streamed {
                        // Safety: inside of the row, and aligned like its vectors.
                        unsafe { C::stream(s, c.as_mut_ptr().add(at), y) }
                    } else {
                        store(s, c, at, S::LANES, y);
                    }
                }
            }
        } else {
            for i in 0..rows {
                let c = c(i);
                for_vectors(
                    s,
                    cols,
                    #[inline(always)]
                    |at, lanes| {
                        let y = finish(sum(i, at), &c[at..at + lanes], lanes);
                        store(s, c, at, lanes, y);
                    },
                );
            }
        }
    }

    /// How to finish whole blocks between the `steps` of the next one. None if that takes too much arithmetic: it would hold up the
    /// tiles.
    #[inline(always)]
    pub(super) fn between_steps<const R: usize>(&self, steps: usize) -> Option<BetweenSteps<C, R>> {
        let Epilogue { accumulate, bias, activation, streamed } = self.epilogue;
        let (m, n) = (self.left.m, self.n);
        // The first step of the next product stores the sums of two by two tiles.
        let steps = if R > TILE { steps - 1 } else { steps };
        if steps == 0 {
            return None;
        }
        if self.transposed_result {
            if accumulate || bias.is_some() || activation.is_some() || !streamed {
                return None;
            }
            return Some(BetweenSteps::Transposed(TransposedBlock {
                rows_each: PANEL.div_ceil(steps),
                row: 0,
                sums: std::ptr::null(),
                c: std::ptr::null_mut(),
                stride: m * size_of::<C>(),
            }));
        }
        let floor = match activation {
            None => f32::NEG_INFINITY,
            Some(Activation::Relu) => 0.0,
            Some(_) => return None,
        };
        Some(BetweenSteps::Plain(PlainBlock {
            rows_each: R.div_ceil(steps),
            rows: 0,
            sums: std::ptr::null(),
            c: std::ptr::null_mut(),
            stride: n * size_of::<C>(),
            accumulate,
            floor,
            streamed,
        }))
    }

    /// The sums of the block at `row` and `column` and where they go to, if all of the block is inside `C`.
    #[inline(always)]
    pub(super) fn whole<const R: usize>(&self, row: usize, column: usize) -> Option<WholeBlock<'a, C>> {
        let (m, n) = (self.left.m, self.n);
        assert!(m * n == self.c.len());
        if row + R > m || column + PANEL > n {
            return None;
        }
        let bias = match self.epilogue.bias {
            Some(bias) => bias[column..].first_chunk().expect("a bias for each column"),
            None => &[0.0; PANEL],
        };
        Some(WholeBlock {
            sums: self.sums_of::<R>(row, column),
            c: self.first_element::<R>(row, column),
            bias,
        })
    }
}

/// Finishes a complete block of `R` rows, as a function that is called and not inlined.
pub(super) struct Finish<'a, 'c, C, const N: usize, const R: usize> {
    pub task: &'a Task<'c, C, N>,
    pub row: usize,
    pub column: usize,
}

impl<C: Real, const N: usize, const R: usize> Kernel for Finish<'_, '_, C, N, R> {
    type Output = ();
    const GAINS_FROM_AVX512: bool = false;
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        self.task.finish::<S, R>(s, self.row, self.column);
    }
}

/// A block that is inside `C` as a whole.
#[derive(Clone, Copy)]
pub(super) struct WholeBlock<'a, C> {
    sums: *const f32,
    c: *mut C,
    bias: &'a [f32; PANEL],
}

impl<C> WholeBlock<'_, C> {
    /// The bias, to be kept in registers while a block is finished: even a load from the L1 cache may hold up the loads of tiles.
    #[inline(always)]
    pub(super) fn bias<S: Simd>(&self, s: S) -> [S::F; VECTORS] {
        const { assert!(!S::BESIDE_TILES || PANEL <= VECTORS * S::LANES) };
        let mut bias = [s.splat(0.0); VECTORS];
        for (i, at) in (0..PANEL).step_by(S::LANES).enumerate() {
            bias[i] = load(s, self.bias, at, S::LANES);
        }
        bias
    }
}

/// How blocks are finished between the steps of a product. The tile unit works meanwhile, so this takes hardly any time.
pub(super) enum BetweenSteps<C, const R: usize> {
    Plain(PlainBlock<C, R>),
    Transposed(TransposedBlock<C, R>),
}

/// The largest number of vectors in a row of a block, on processors with tiles.
pub(super) const VECTORS: usize = 2;

/// A block that becomes `max(floor, sum + bias)`, or with `accumulate` `max(floor, C + sum + bias)`.
#[derive(Clone, Copy)]
pub(super) struct PlainBlock<C, const R: usize> {
    /// How many rows are finished in a step.
    rows_each: usize,
    /// How many rows of the block are left.
    rows: usize,
    /// The next row of sums, and where it goes to; null as long as there is no block.
    sums: *const f32,
    c: *mut C,
    /// Bytes from row to row of `C`.
    stride: usize,
    accumulate: bool,
    floor: f32,
    streamed: bool,
}

impl<C: Real, const R: usize> PlainBlock<C, R> {
    /// The same for a block.
    #[inline(always)]
    pub(super) fn block(self, block: WholeBlock<C>) -> Self {
        PlainBlock { rows: R, sums: block.sums, c: block.c, ..self }
    }

    /// Finishes the rows of a step.
    ///
    /// # Safety
    /// The block's sums must be complete, and its rows must lie in `C`, belong to this task and, if they are streamed, begin at
    /// cache lines.
    #[inline(always)]
    pub(super) unsafe fn step<S: Simd>(&mut self, s: S, tiles: &Tiles, bias: &[S::F; VECTORS]) {
        for _ in 0..self.rows_each.min(self.rows) {
            // Blocks of two tiles of rows follow one another along a row of `C`, which the processor prefetches by itself.
            if R == TILE && !self.streamed {
                tiles.prefetch_row_to_write(self.c.cast_const().cast(), self.stride, PANEL * size_of::<C>());
            }
            for at in (0..PANEL).step_by(2 * S::LANES) {
                // Safety: inside of rows of tiles and of `C`; rows that are streamed are whole cache lines.
                unsafe {
                    let c = self.c.add(at);
                    let (first, second) = (self.finished(s, at, bias), self.finished(s, at + S::LANES, bias));
                    if self.streamed {
                        C::stream_row(s, c, first, second);
                    } else {
                        C::store_row(s, c, first, second);
                    }
                }
            }
            self.rows -= 1;
            self.sums = self.sums.wrapping_add(sum_at::<R>(1, 0));
            self.c = self.c.wrapping_byte_add(self.stride);
        }
    }

    /// A vector of the next row.
    ///
    /// # Safety
    /// There must be a next row, and `at` must be the start of one of its vectors.
    #[inline(always)]
    unsafe fn finished<S: Simd>(&self, s: S, at: usize, bias: &[S::F; VECTORS]) -> S::F {
        // Safety: the caller's promise.
        unsafe {
            let mut y = s.add(s.load(self.sums.add(sum_at::<R>(0, at))), bias[at / S::LANES]);
            if self.accumulate {
                y = s.add(y, C::load(s, self.c.add(at)));
            }
            s.max(s.splat(self.floor), y)
        }
    }
}

/// A block that is transposed and written past the caches, with nothing added.
#[derive(Clone, Copy)]
pub(super) struct TransposedBlock<C, const R: usize> {
    /// How many rows of the transposed block are finished in a step.
    rows_each: usize,
    /// The next of them.
    row: usize,
    /// The sums of the next sixteen columns, and where the next row goes to; null as long as there is no block.
    sums: *const f32,
    c: *mut C,
    /// Bytes from row to row of `C`.
    stride: usize,
}

impl<C: Real, const R: usize> TransposedBlock<C, R> {
    /// The same for a block.
    #[inline(always)]
    pub(super) fn block(self, block: WholeBlock<C>) -> Self {
        TransposedBlock { row: 0, sums: block.sums, c: block.c, ..self }
    }

    /// Finishes the rows of a step. `squares` must be the same for all steps of a block.
    ///
    /// # Safety
    /// As for [`PlainBlock::step`].
    #[inline(always)]
    pub(super) unsafe fn step<S: Simd>(&mut self, s: S, squares: &mut Squares) {
        for _ in 0..self.rows_each.min(PANEL - self.row) {
            if self.row.is_multiple_of(TILE) {
                // Safety: the tiles of sixteen columns.
                unsafe { squares.transpose::<S, R>(s, self.sums) }
                self.sums = self.sums.wrapping_add(sum_at::<R>(0, TILE));
            }
            let row = self.row % TILE;
            // Safety: inside of a row of `C`, aligned like its vectors.
            unsafe {
                if R < 2 * S::LANES {
                    C::stream(s, self.c, squares.vector(s, row, 0));
                } else {
                    for at in (0..R).step_by(2 * S::LANES) {
                        let [first, second] = [at, at + S::LANES].map(|at| squares.vector(s, row, at));
                        C::stream_row(s, self.c.add(at), first, second);
                    }
                }
            }
            self.row += 1;
            self.c = self.c.wrapping_byte_add(self.stride);
        }
    }
}

/// Sixteen columns of sums, transposed: one tile or two.
#[repr(C, align(64))]
pub(super) struct Squares([[[f32; TILE]; TILE]; 2]);

impl Squares {
    #[inline(always)]
    pub(super) fn new() -> Squares {
        Squares([[[0.0; TILE]; TILE]; 2])
    }

    /// The vector at column `at` of a row, counted across both tiles.
    #[inline(always)]
    fn vector<S: Simd>(&self, s: S, row: usize, at: usize) -> S::F {
        let sums = load(s, &self.0[at / TILE][row], at % TILE, S::LANES);
        // Every other block gets a bias, zero if there is none, which turns -0 into 0. So zero is added here, too.
        s.add(sums, s.splat(0.0))
    }

    /// Transposes the tiles of sixteen columns of a block of `R` rows.
    ///
    /// # Safety
    /// `sums` must be valid for reading `R` rows of sixteen.
    #[inline(always)]
    unsafe fn transpose<S: Simd, const R: usize>(&mut self, s: S, sums: *const f32) {
        const { assert!(R <= 2 * TILE) };
        for (first, square) in (0..R).step_by(TILE).zip(&mut self.0) {
            let to = square.as_flattened_mut().as_mut_ptr();
            for i in (0..TILE).step_by(S::LANES) {
                for j in (0..TILE).step_by(S::LANES) {
                    // Safety: squares of LANES × LANES inside of both.
                    unsafe { s.transpose(sums.add((first + i) * TILE + j), TILE, to.add(j * TILE + i), TILE) }
                }
            }
        }
    }
}
