//! The way of complete blocks of sums to `C`.

use super::Epilogue;
use super::block::Columns;
use crate::activation::Activation;
use crate::amx::{PANEL, TILE, Tiles, sum_at};
use crate::isa::Kernel;
use crate::simd::{Real, Simd, for_vectors, load, store};

/// A block's place in `C`, which is so wide.
#[derive(Clone, Copy)]
struct Place {
    row: usize,
    column: usize,
    rows: usize,
    cols: usize,
    width: usize,
}

impl<'a, C: Real, const N: usize> Columns<'a, C, N> {
    /// Where the block of `row` and `column` goes, which has `R` rows and a panel of columns.
    #[inline(always)]
    fn place<const R: usize>(&self, row: usize, column: usize) -> Place {
        let (m, n) = (self.left.m, self.n);
        let (rows, cols) = (R.min(m - row), PANEL.min(n - column));
        if self.turned {
            return Place { row: column, column: row, rows: cols, cols: rows, width: m };
        }
        Place { row, column, rows, cols, width: n }
    }

    /// The first element of it.
    #[inline(always)]
    fn first<const R: usize>(&self, row: usize, column: usize) -> *mut C {
        let Place { row, column, width, .. } = self.place::<R>(row, column);
        self.c.at(row * width + column)
    }

    /// Fetches the place of the block of sixteen rows of `row` and `column`: on most machines it takes longer to get it than to fill
    /// it.
    #[inline(always)]
    pub(super) fn fetch(&self, tiles: &Tiles, row: usize, column: usize) {
        if !self.epilogue.streamed {
            let (first, size) = (self.first::<TILE>(row, column), size_of::<C>());
            let Place { rows, cols, width, .. } = self.place::<TILE>(row, column);
            tiles.fetch_to_write(first.cast_const().cast(), width * size, rows, cols * size);
        }
    }

    /// What is in `C` already, bias and activation; then the block goes to its place, rounded to its type.
    #[inline(always)]
    fn finish<S: Simd, const R: usize>(&self, s: S, row: usize, column: usize) {
        let (at, place) = (self.sums_of::<R>(row, column), self.place::<R>(row, column));
        // Safety: the block is complete, and nobody writes to it.
        let sums = unsafe { std::slice::from_raw_parts(at.cast_const(), R * PANEL) };
        if !self.turned {
            return self.finish_rows::<S, R, PANEL>(s, place, sums);
        }
        let mut squares = Squares::new();
        for column in (0..place.rows).step_by(TILE) {
            // Safety: the tiles of sixteen columns.
            unsafe { squares.turn::<S, R>(s, sums[sum_at::<R>(0, column)..].as_ptr()) }
            for (row, square) in (0..place.cols).step_by(TILE).zip(&squares.0) {
                let (rows, cols) = (TILE.min(place.rows - column), TILE.min(place.cols - row));
                let place =
                    Place { row: place.row + column, column: place.column + row, rows, cols, ..place };
                self.finish_rows::<S, TILE, TILE>(s, place, square.as_flattened());
            }
        }
    }

    /// A block of `R` rows and `W` columns. The choices are made here, once for all rows.
    #[inline(always)]
    fn finish_rows<S: Simd, const R: usize, const W: usize>(&self, s: S, place: Place, sums: &[f32]) {
        let Epilogue { accumulate, bias, activation, .. } = self.epilogue;
        let mut wide_bias = [0.0; W];
        if let Some(bias) = bias {
            wide_bias[..place.cols].copy_from_slice(&bias[place.column..place.column + place.cols]);
        }
        match (accumulate, activation) {
            (false, None) => self.put::<S, R, W>(s, place, sums, &wide_bias, |sum, _, _| sum),
            (true, None) => self.put::<S, R, W>(
                s,
                place,
                sums,
                &wide_bias,
                #[inline(always)]
                |sum, c, lanes| s.add(sum, load(s, c, 0, lanes)),
            ),
            (_, Some(activation)) => self.put::<S, R, W>(
                s,
                place,
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

    /// Stores `finish` of each sum with its bias, what `C` holds there and the number of lanes.
    #[inline(always)]
    fn put<S: Simd, const R: usize, const W: usize>(
        &self,
        s: S,
        Place { row, column, rows, cols, width }: Place,
        sums: &[f32],
        bias: &[f32; W],
        finish: impl Fn(S::F, &[C], usize) -> S::F,
    ) {
        let sum = |i, at| s.add(load(s, sums, sum_at::<R>(i, at), S::LANES), load(s, bias, at, S::LANES));
        // Safety: rows and columns belong to one task each.
        let c = |i: usize| unsafe { self.c.slice((row + i) * width + column, cols) };
        // Whole rows are the common case, and their length is known when compiling.
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

    /// How whole blocks are finished in the `steps` of the next one, if that is possible: there is little arithmetic.
    #[inline(always)]
    pub(super) fn in_steps<const R: usize>(&self, steps: usize) -> Option<InSteps<C, R>> {
        let Epilogue { accumulate, bias, activation, streamed } = self.epilogue;
        let (m, n) = (self.left.m, self.n);
        // The sums of two by two tiles are stored in the first step of the next product.
        let steps = if R > TILE { steps - 1 } else { steps };
        if steps == 0 {
            return None;
        }
        if self.turned {
            if accumulate || bias.is_some() || activation.is_some() || !streamed {
                return None;
            }
            return Some(InSteps::Turned(Turned {
                each: PANEL.div_ceil(steps),
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
        Some(InSteps::Plain(Plain {
            each: R.div_ceil(steps),
            rows: 0,
            sums: std::ptr::null(),
            c: std::ptr::null_mut(),
            stride: n * size_of::<C>(),
            accumulate,
            floor,
            streamed,
        }))
    }

    /// The sums of the block of `row` and `column` and where they go to, if it lies in `C` whole.
    #[inline(always)]
    pub(super) fn whole<const R: usize>(&self, row: usize, column: usize) -> Option<Whole<'a, C>> {
        let (m, n) = (self.left.m, self.n);
        assert!(m * n == self.c.len());
        if row + R > m || column + PANEL > n {
            return None;
        }
        let bias = match self.epilogue.bias {
            Some(bias) => bias[column..].first_chunk().expect("a bias for each column"),
            None => &[0.0; PANEL],
        };
        Some(Whole { sums: self.sums_of::<R>(row, column), c: self.first::<R>(row, column), bias })
    }
}

/// The way of a complete block of `R` rows to `C`, as a function of its own.
pub(super) struct Finish<'a, 'c, C, const N: usize, const R: usize> {
    pub columns: &'a Columns<'c, C, N>,
    pub row: usize,
    pub column: usize,
}

impl<C: Real, const N: usize, const R: usize> Kernel for Finish<'_, '_, C, N, R> {
    type Output = ();
    const GAINS_FROM_AVX512: bool = false;
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        self.columns.finish::<S, R>(s, self.row, self.column);
    }
}

/// A block that lies in `C` whole.
#[derive(Clone, Copy)]
pub(super) struct Whole<'a, C> {
    sums: *const f32,
    c: *mut C,
    bias: &'a [f32; PANEL],
}

impl<C> Whole<'_, C> {
    /// The bias in registers, where it stays while a block is finished: at times a load, even from the first cache, holds up those of
    /// tiles.
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

/// How blocks are finished between the steps of a product: the tile unit is at work meanwhile, and the time hardly shows.
pub(super) enum InSteps<C, const R: usize> {
    Plain(Plain<C, R>),
    Turned(Turned<C, R>),
}

/// Vectors in a row of a block at most, on processors with tiles.
pub(super) const VECTORS: usize = 2;

/// Blocks: `max(floor, sum + bias)`, or that of the sum with what is in `C`.
#[derive(Clone, Copy)]
pub(super) struct Plain<C, const R: usize> {
    /// How many rows are finished in a step.
    each: usize,
    /// How many are left of the block.
    rows: usize,
    /// The next row of sums, and where it goes to; none before there is a block.
    sums: *const f32,
    c: *mut C,
    /// From row to row of `C`, in bytes.
    stride: usize,
    accumulate: bool,
    floor: f32,
    streamed: bool,
}

impl<C: Real, const R: usize> Plain<C, R> {
    /// A block.
    #[inline(always)]
    pub(super) fn block(self, block: Whole<C>) -> Self {
        Plain { rows: R, sums: block.sums, c: block.c, ..self }
    }

    /// Finishes the rows of a step.
    ///
    /// # Safety
    /// The block's sums must be complete, and its rows must lie in `C`, belong to this task and, if they are streamed, begin at
    /// cache lines.
    #[inline(always)]
    pub(super) unsafe fn step<S: Simd>(&mut self, s: S, tiles: &Tiles, bias: &[S::F; VECTORS]) {
        for _ in 0..self.each.min(self.rows) {
            // Blocks of two tiles follow one another along a row, whose next cache lines the processor fetches by itself.
            if R == TILE && !self.streamed {
                tiles.fetch_row_to_write(self.c.cast_const().cast(), self.stride, PANEL * size_of::<C>());
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

/// Blocks that are turned and streamed, with nothing added.
#[derive(Clone, Copy)]
pub(super) struct Turned<C, const R: usize> {
    /// How many rows of the turned block are finished in a step.
    each: usize,
    /// The next of them.
    row: usize,
    /// The sums of the next sixteen columns, and where the next row goes to; none before there is a block.
    sums: *const f32,
    c: *mut C,
    /// From row to row of `C`, in bytes.
    stride: usize,
}

impl<C: Real, const R: usize> Turned<C, R> {
    /// A block.
    #[inline(always)]
    pub(super) fn block(self, block: Whole<C>) -> Self {
        Turned { row: 0, sums: block.sums, c: block.c, ..self }
    }

    /// Finishes the rows of a step, by way of squares that last as long as the block.
    ///
    /// # Safety
    /// As for [`Plain::step`].
    #[inline(always)]
    pub(super) unsafe fn step<S: Simd>(&mut self, s: S, squares: &mut Squares) {
        for _ in 0..self.each.min(PANEL - self.row) {
            if self.row.is_multiple_of(TILE) {
                // Safety: the tiles of sixteen columns.
                unsafe { squares.turn::<S, R>(s, self.sums) }
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

/// Sixteen columns of sums, turned: a tile of them or two.
#[repr(C, align(64))]
pub(super) struct Squares([[[f32; TILE]; TILE]; 2]);

impl Squares {
    #[inline(always)]
    pub(super) fn new() -> Squares {
        Squares([[[0.0; TILE]; TILE]; 2])
    }

    /// A vector of a row, across both.
    #[inline(always)]
    fn vector<S: Simd>(&self, s: S, row: usize, at: usize) -> S::F {
        let sums = load(s, &self.0[at / TILE][row], at % TILE, S::LANES);
        // A zero is added as if it were a bias: it takes the sign from another zero, in every block.
        s.add(sums, s.splat(0.0))
    }

    /// Takes the tiles of sixteen columns in a block of `R` rows.
    ///
    /// # Safety
    /// `sums` must be valid for reading `R` rows of sixteen.
    #[inline(always)]
    unsafe fn turn<S: Simd, const R: usize>(&mut self, s: S, sums: *const f32) {
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
