//! Operands of a product of bf16 in the order in which tiles are loaded.

use super::{DEPTH, Matrix, STEP, whole_steps};
use crate::Cpu;
use crate::amx::TILE;
use crate::isa::Kernel;
use crate::scratch::Scratch;
use crate::simd::{Real, Simd, load};
use crate::threads::Shared;
use half::bf16;
use std::ops::Range;

/// The left operand: rows of bf16 that start at cache lines and are whole steps long.
pub(super) struct Left<'a> {
    rows: Rows<'a>,
    /// The length of a row: `k` rounded up to whole steps.
    pub length: usize,
    pub m: usize,
}

enum Rows<'a> {
    /// As they are, but for the last ones: where they do not fill a tile, they are copied, with zeros below them.
    Given(&'a [bf16], Option<Scratch<bf16>>),
    /// Copied to [`Tile`]s, `[stretch of k][tile of rows][step][16 rows][32 elements]`, with zeros up to whole ones.
    Tiles(Scratch<bf16>),
}

/// A stretch of sixteen rows: they are `stride` bytes apart, and at each step of `k` `step` bytes further.
#[derive(Clone, Copy)]
pub(super) struct Tile<'a> {
    pub data: &'a [bf16],
    pub stride: usize,
    pub step: usize,
}

impl<'a> Tile<'a> {
    /// Steps one after the other, each of 1 KiB.
    #[inline(always)]
    fn packed(data: &'a [bf16]) -> Tile<'a> {
        Tile { data, stride: LINE, step: TILE * LINE }
    }
}

/// Bytes of a step of a row: a cache line.
const LINE: usize = STEP * size_of::<bf16>();
/// Of longer rows, a stretch of many would share few places in the second cache.
const LONGEST: usize = 1024;
/// Columns for which it pays to copy rows of more than one stretch, so that the next one can be fetched.
const MANY: usize = 1024;

impl<'a> Left<'a> {
    /// For a product with `n` columns.
    pub(super) fn new(cpu: &Cpu, a: Matrix<'a, bf16>, n: usize) -> Left<'a> {
        let (m, k) = (a.rows, a.cols);
        let whole = k > 0 && k.is_multiple_of(STEP) && a.data.as_ptr().addr().is_multiple_of(64);
        if a.transposed || !whole || k > LONGEST || (k > DEPTH && n >= MANY) {
            return Left::tiles(cpu, a, whole_steps(k));
        }
        let last = (!m.is_multiple_of(TILE)).then(|| {
            let rest = &a.data[m / TILE * TILE * k..];
            let mut last = Scratch::take(TILE * k);
            last[..rest.len()].copy_from_slice(rest);
            last[rest.len()..].fill(bf16::ZERO);
            last
        });
        Left { rows: Rows::Given(a.data, last), length: k, m }
    }

    /// Rows that lie in columns, have to be rounded or lengthened, or would be in each other's way in a cache: they are copied, with
    /// zeros up to a length of whole steps.
    pub(super) fn tiles<T: Real>(cpu: &Cpu, a: Matrix<T>, length: usize) -> Left<'a> {
        let m = a.rows;
        let rows = m.next_multiple_of(TILE);
        let mut tiles = Scratch::take(rows * length);
        let to = Shared::new(&mut tiles);
        cpu.threads.run(rows.div_ceil(COPIED), |i| {
            let rows = i * COPIED..rows.min((i + 1) * COPIED);
            cpu.isa.dispatch(Copy { a, rows, to, length });
        });
        Left { rows: Rows::Tiles(tiles), length, m }
    }

    /// The stretch of `k` from `start` on of some rows, from the start of a tile on, if it lies together.
    #[inline(always)]
    pub(super) fn tiles_of(&self, rows: &Range<usize>, start: usize) -> &[bf16] {
        let Rows::Tiles(tiles) = &self.rows else { return &[] };
        let (depth, all) = (DEPTH.min(self.length - start), self.m.next_multiple_of(TILE));
        &tiles[place(all, rows.start, start, depth)..][..rows.len().next_multiple_of(TILE) * depth]
    }

    /// The stretch of `k` from `start` on of the sixteen rows from `row` on.
    #[inline(always)]
    pub(super) fn tile(&self, row: usize, start: usize) -> Tile<'_> {
        let rows = |data| Tile { data, stride: self.length * size_of::<bf16>(), step: LINE };
        match &self.rows {
            Rows::Given(_, Some(last)) if row + TILE > self.m => rows(&last[start..]),
            Rows::Given(given, _) => rows(&given[row * self.length + start..(row + TILE) * self.length]),
            Rows::Tiles(tiles) => {
                let depth = DEPTH.min(self.length - start);
                let start = place(self.m.next_multiple_of(TILE), row, start, depth);
                Tile::packed(&tiles[start..start + TILE * depth])
            }
        }
    }
}

/// Where the stretch of `k` from `start` on, which has `depth` elements, of the tile of rows from `row` on begins, if there are
/// `rows` rows.
#[inline(always)]
fn place(rows: usize, row: usize, start: usize, depth: usize) -> usize {
    rows * start + row * depth
}

/// Rows copied by one task: from columns of bf16, as many as lie in four cache lines.
const COPIED: usize = 128;

/// Copies some rows to their tiles.
struct Copy<'a, T> {
    a: Matrix<'a, T>,
    rows: Range<usize>,
    to: Shared<'a, bf16>,
    length: usize,
}

impl<T: Real> Kernel for Copy<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Copy { a, rows, to, length } = self;
        let (m, k) = (a.rows, a.cols);
        let mut pairs = [Pairs::new(), Pairs::new()];
        for start in (0..length).step_by(DEPTH) {
            let depth = DEPTH.min(length - start);
            let tile_at = |row: usize, step: usize| {
                let at = place(m.next_multiple_of(TILE), row, start, depth) + (step - start) * TILE;
                // Safety: a tile of rows belongs to one task.
                tile_of(unsafe { to.slice(at, TILE * STEP) })
            };
            // Two tiles of rows at a time: if these lie in columns of bf16, so many are a cache line.
            for row in rows.clone().step_by(2 * TILE) {
                for step in (start..start + depth).step_by(STEP) {
                    if a.transposed {
                        // Pairs along `k` of the rows, turned so that each row's lie side by side.
                        let [first, second] = &mut pairs;
                        merge_tiles(s, a.data, m, step..k, row, [&mut first.0, &mut second.0]);
                    }
                    for (row, pairs) in (row..rows.end).step_by(TILE).zip(&pairs) {
                        let to = tile_at(row, step);
                        if a.transposed {
                            // Safety: a tile has sixteen rows of sixteen pairs.
                            unsafe { pairs.transpose(s, to.as_mut_ptr().cast(), TILE) }
                        } else {
                            for (i, to) in to.iter_mut().enumerate() {
                                row_pairs(s, part(a.data, k, row + i..m, step..k.min(step + STEP)), to);
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A tile of 1 KiB as sixteen rows of sixteen pairs.
fn tile_of(tile: &mut [bf16]) -> &mut [[f32; TILE]; TILE] {
    assert!(tile.len() == TILE * STEP && tile.as_ptr().addr().is_multiple_of(64));
    // Safety: as long and as aligned as just checked, and any bits are an f32.
    unsafe { &mut *tile.as_mut_ptr().cast() }
}

/// The right operand.
#[derive(Clone, Copy)]
pub(super) enum Right<'a, T> {
    /// To be packed, one stretch of a panel after the other.
    Matrix(Matrix<'a, T>),
    /// In panels that were packed before, each for all of `k`.
    Packed(&'a [bf16]),
}

/// Packs a panel of columns for all of `k`.
pub(super) struct PackPanel<'a, T> {
    pub b: Matrix<'a, T>,
    pub column: usize,
    pub to: &'a mut [bf16],
}

impl<T: Real> Kernel for PackPanel<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        pack_right(s, self.b, self.column, 0, self.to);
    }
}

/// Packs a panel of columns of `B`, from row `start` on: `[step][2][16 pairs][16 columns]`.
#[inline(always)]
pub(in crate::gemm) fn pack_right<S: Simd, T: Real>(
    s: S,
    b: Matrix<T>,
    column: usize,
    start: usize,
    to: &mut [bf16],
) {
    let (k, n) = (b.rows, b.cols);
    let mut pairs = Pairs::new();
    for (i, to) in to.chunks_exact_mut(2 * TILE * STEP).enumerate() {
        let step = start + i * STEP;
        let (first, second) = to.split_at_mut(TILE * STEP);
        let tiles = [tile_of(first), tile_of(second)];
        if !b.transposed {
            merge_tiles(s, b.data, n, step..k, column, tiles);
            continue;
        }
        for (first, to) in (column..).step_by(TILE).zip(tiles) {
            for i in 0..TILE {
                row_pairs(s, part(b.data, k, first + i..n, step..k.min(step + STEP)), pairs.row(i));
            }
            // Safety: `to` has sixteen rows of sixteen.
            unsafe { pairs.transpose(s, to.as_mut_ptr().cast(), TILE) }
        }
    }
}

/// The columns `columns` of row `rows.start`, or nothing if that is not below `rows.end`.
#[inline(always)]
fn part<T>(data: &[T], stride: usize, rows: Range<usize>, columns: Range<usize>) -> &[T] {
    if rows.is_empty() || columns.is_empty() { &[] } else { &data[rows.start * stride..][columns] }
}

/// Up to 32 numbers as sixteen pairs, in order, with zeros behind them.
#[inline(always)]
fn row_pairs<S: Simd, T: Real>(s: S, from: &[T], to: &mut [f32; TILE]) {
    if let Some(from) = from.first_chunk::<STEP>() {
        for at in (0..TILE).step_by(S::LANES) {
            // Safety: LANES pairs from `at` on lie inside of both.
            unsafe { s.store_u(to.as_mut_ptr().add(at).cast(), T::load_row(s, from.as_ptr().add(2 * at))) }
        }
        return;
    }
    for at in (0..TILE).step_by(S::LANES) {
        let (x, y) = (vector(s, from, 2 * at), vector(s, from, 2 * at + S::LANES));
        // Safety: LANES pairs from `at` on lie inside the row.
        unsafe { s.store_u(to.as_mut_ptr().add(at).cast(), s.row(x, y)) }
    }
}

/// Sixteen columns from `column` on, and the next sixteen, of sixteen pairs of rows from `rows.start` on, below `rows.end`; rows
/// have `stride` columns.
#[inline(always)]
fn merge_tiles<S: Simd, T: Real>(
    s: S,
    data: &[T],
    stride: usize,
    rows: Range<usize>,
    column: usize,
    to: [&mut [[f32; TILE]; TILE]; 2],
) {
    let columns = [column, column + TILE];
    if rows.len() < STEP || column + 2 * TILE > stride {
        for (column, to) in columns.into_iter().zip(to) {
            for (p, to) in to.iter_mut().enumerate() {
                merge_rows(s, data, stride, rows.start + 2 * p..rows.end, column, to);
            }
        }
        return;
    }
    // The common case: all of them are there. A row's are read at once: rows of a power of two drive each other out of a cache.
    let from = &data[rows.start * stride + column..][..(STEP - 1) * stride + 2 * TILE];
    let [first, second] = to;
    for p in 0..TILE {
        // Safety: thirty-two rows of thirty-two columns, as just checked.
        unsafe {
            let (low, high) = (from.as_ptr().add(2 * p * stride), from.as_ptr().add((2 * p + 1) * stride));
            for at in (0..TILE).step_by(S::LANES) {
                let next = TILE + at;
                s.store_u(first[p].as_mut_ptr().add(at).cast(), T::load_pair(s, low.add(at), high.add(at)));
                s.store_u(
                    second[p].as_mut_ptr().add(at).cast(),
                    T::load_pair(s, low.add(next), high.add(next)),
                );
            }
        }
    }
}

/// Sixteen columns from `column` on, as far as there are so many, of the rows `rows.start` and the next, below `rows.end`, as
/// pairs.
#[inline(always)]
fn merge_rows<S: Simd, T: Real>(
    s: S,
    data: &[T],
    stride: usize,
    rows: Range<usize>,
    column: usize,
    to: &mut [f32; TILE],
) {
    let columns = column..stride.min(column + TILE);
    let low = part(data, stride, rows.clone(), columns.clone());
    let high = part(data, stride, rows.start + 1..rows.end, columns);
    for at in (0..TILE).step_by(S::LANES) {
        let pair = s.pair(vector(s, low, at), vector(s, high, at));
        // Safety: LANES pairs from `at` on lie inside the row.
        unsafe { s.store_u(to.as_mut_ptr().add(at).cast(), pair) }
    }
}

/// The vector from `at` on, with zeros for what is past the end.
#[inline(always)]
fn vector<S: Simd, T: Real>(s: S, from: &[T], at: usize) -> S::F {
    if at + S::LANES <= from.len() {
        load(s, from, at, S::LANES)
    } else if at < from.len() {
        load(s, from, at, from.len() - at)
    } else {
        s.splat(0.0)
    }
}

/// Sixteen rows of sixteen pairs of bf16, about to be turned.
#[repr(C, align(64))]
struct Pairs([[f32; TILE]; TILE]);

impl Pairs {
    #[inline(always)]
    fn new() -> Pairs {
        Pairs([[0.0; TILE]; TILE])
    }

    #[inline(always)]
    fn row(&mut self, row: usize) -> &mut [f32; TILE] {
        &mut self.0[row]
    }

    /// # Safety
    /// `to` must be valid for writing sixteen rows of sixteen, `stride` apart.
    #[inline(always)]
    unsafe fn transpose<S: Simd>(&self, s: S, to: *mut f32, stride: usize) {
        for i in (0..TILE).step_by(S::LANES) {
            for j in (0..TILE).step_by(S::LANES) {
                // Safety: blocks of LANES × LANES inside of both.
                unsafe { s.transpose(self.0[i].as_ptr().add(j), TILE, to.add(j * stride + i), stride) }
            }
        }
    }
}
