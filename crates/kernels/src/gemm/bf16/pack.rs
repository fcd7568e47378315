//! The operands of a product of bf16 in the order in which tiles are loaded, with numbers in one part or in three.

use super::parts::{load_pairs, load_row, pairs, row};
use super::{DEPTH_COLUMNS_STAY, DEPTH_ROWS_STAY, Matrix, STEP, whole_steps};
use crate::Cpu;
use crate::amx::{PANEL, TILE};
use crate::isa::Kernel;
use crate::scratch::Scratch;
use crate::simd::{Real, Simd, load};
use crate::threads::Shared;
use half::bf16;
use std::ops::Range;

/// The left operand: rows of bf16, `N` of them for each number, that begin at cache lines and are whole steps long.
pub(super) struct Left<'a, const N: usize> {
    rows: Rows<'a>,
    /// The length of a row: `k` rounded up to whole steps.
    pub length: usize,
    pub m: usize,
    /// Whether rows stay in the L1 cache while columns stream past them (`rows_stay.rs`), or the other way round (`block.rs`).
    pub rows_stay: bool,
}

enum Rows<'a> {
    /// The caller's memory. Last rows that do not fill a tile are copied, with zeros below them.
    InPlace(&'a [bf16], Option<Scratch<bf16>>),
    /// Copied to tiles, `[stretch of k][tile of rows][step][part][16 rows][32 elements]`, with zeros up to whole tiles.
    Tiles(Scratch<bf16>),
}

/// A stretch of sixteen rows, which lie `stride` bytes apart. Each step of `k` begins `step` bytes behind the one before.
#[derive(Clone, Copy)]
pub(super) struct Tile<'a> {
    pub data: &'a [bf16],
    pub stride: usize,
    pub step: usize,
}

impl<'a> Tile<'a> {
    /// Contiguous steps, each of 1 KiB for each of `N` parts.
    #[inline(always)]
    fn packed<const N: usize>(data: &'a [bf16]) -> Tile<'a> {
        Tile { data, stride: LINE, step: N * TILE * LINE }
    }
}

/// Bytes of a step of a row: a cache line.
const LINE: usize = STEP * size_of::<bf16>();
/// Columns stay: the longest rows that are used in place. Stretches of longer rows share too few sets of the L2 cache.
const LONGEST_IN_PLACE: usize = 1024;
/// Columns stay: the longest rows that are used in place if there are [`MANY_COLUMNS`]. Copies can be prefetched, stretch by stretch.
const LONGEST_OF_ONE_PASS: usize = 512;
/// So many columns make that copy pay.
const MANY_COLUMNS: usize = 1024;
/// Rows stay: so many columns make it pay to copy long rows once, and not in each task, if they are more than the L2 cache holds.
const VERY_MANY_COLUMNS: usize = 2048;
/// Elements of rows that the L2 cache holds.
const L2_ELEMENTS: usize = 1 << 20;

impl<'a> Left<'a, 1> {
    /// For a product with `n` columns.
    pub(super) fn new(cpu: &Cpu, a: Matrix<'a, bf16>, n: usize) -> Left<'a, 1> {
        let (m, k) = (a.rows, a.cols);
        let whole = k > 0 && k.is_multiple_of(STEP) && a.data.as_ptr().addr().is_multiple_of(64);
        let rows_stay = rows_stay::<1>(cpu, m);
        let copied = if rows_stay {
            k > DEPTH_ROWS_STAY && m * k > L2_ELEMENTS && n >= VERY_MANY_COLUMNS
        } else {
            k > LONGEST_IN_PLACE || (k > LONGEST_OF_ONE_PASS && n >= MANY_COLUMNS)
        };
        if a.transposed || !whole || copied {
            return Left::tiles(cpu, a, whole_steps(k));
        }
        let last = (!m.is_multiple_of(TILE)).then(|| {
            let rest = &a.data[m / TILE * TILE * k..];
            let mut last = Scratch::take(TILE * k);
            last[..rest.len()].copy_from_slice(rest);
            last[rest.len()..].fill(bf16::ZERO);
            last
        });
        Left { rows: Rows::InPlace(a.data, last), length: k, m, rows_stay }
    }
}

/// Whether rows stay: on the tile unit, if there are at least two tiles of them. Not if numbers are in parts: three parts of 32 rows
/// would not fit into the L1 cache, and such products need less than one load each anyway.
fn rows_stay<const N: usize>(cpu: &Cpu, m: usize) -> bool {
    N == 1 && m > TILE && cpu.isa.amx().is_some()
}

impl<'a, const N: usize> Left<'a, N> {
    /// Copies rows to tiles, with zeros up to `length`, which is whole steps. That is needed for a column-major operand, for rows that
    /// have to be rounded or padded, and for rows that would drive each other out of a cache.
    pub(super) fn tiles<T: Real>(cpu: &Cpu, a: Matrix<T>, length: usize) -> Left<'a, N> {
        let m = a.rows;
        let rows = m.next_multiple_of(TILE);
        let rows_stay = rows_stay::<N>(cpu, m);
        let mut tiles = Scratch::take(N * rows * length);
        let to = Shared::new(&mut tiles);
        cpu.threads.run(rows.div_ceil(COPY_TASK_ROWS), |i| {
            let rows = i * COPY_TASK_ROWS..rows.min((i + 1) * COPY_TASK_ROWS);
            cpu.isa.dispatch(Copy::<T, N> { a, rows, to, length, max_depth: max_depth(rows_stay) });
        });
        Left { rows: Rows::Tiles(tiles), length, m, rows_stay }
    }

    /// The length of the stretch of `k` that begins at `start`.
    #[inline(always)]
    pub(super) fn depth(&self, start: usize) -> usize {
        max_depth(self.rows_stay).min(self.length - start)
    }

    /// Whether each task has to copy its rows: they stay, are used in place, and are longer than a stretch.
    pub(super) fn are_long(&self) -> bool {
        self.rows_stay && self.length > DEPTH_ROWS_STAY && matches!(self.rows, Rows::InPlace(..))
    }

    /// How much of `k` a panel goes through before the next panel begins. All of it if columns stay and rows are short: then few sums
    /// wait for the next stretch. Otherwise one stretch: then the rows of a task stay in the L2 cache.
    #[inline(always)]
    pub(super) fn depth_of_one_pass(&self) -> usize {
        if self.rows_stay || self.length > LONGEST_OF_ONE_PASS {
            max_depth(self.rows_stay)
        } else {
            self.length
        }
    }

    /// The stretch of `k` that begins at `start` of some rows, which begin with a tile; empty if it is not contiguous.
    #[inline(always)]
    pub(super) fn tiles_of(&self, rows: &Range<usize>, start: usize) -> &[bf16] {
        let Rows::Tiles(tiles) = &self.rows else { return &[] };
        let (depth, all) = (self.depth(start), self.m.next_multiple_of(TILE));
        &tiles[N * tile_offset(all, rows.start, start, depth)..]
            [..N * rows.len().next_multiple_of(TILE) * depth]
    }

    /// The stretch of `k` that begins at `start` of the sixteen rows that begin at `row`.
    #[inline(always)]
    pub(super) fn tile(&self, row: usize, start: usize) -> Tile<'_> {
        let rows = |data| Tile { data, stride: self.length * size_of::<bf16>(), step: LINE };
        match &self.rows {
            Rows::InPlace(_, Some(last)) if row + TILE > self.m => rows(&last[start..]),
            Rows::InPlace(given, _) => rows(&given[row * self.length + start..(row + TILE) * self.length]),
            Rows::Tiles(tiles) => {
                let depth = self.depth(start);
                let start = N * tile_offset(self.m.next_multiple_of(TILE), row, start, depth);
                Tile::packed::<N>(&tiles[start..start + N * TILE * depth])
            }
        }
    }
}

/// The largest length of a stretch of `k`.
#[inline(always)]
fn max_depth(rows_stay: bool) -> usize {
    if rows_stay { DEPTH_ROWS_STAY } else { DEPTH_COLUMNS_STAY }
}

/// The offset in [`Rows::Tiles`] of a stretch of `k` of `depth` elements that begins at `start`, of the tile of rows that begins at
/// `row`, out of `rows` rows. In numbers, each of which is `N` elements.
#[inline(always)]
fn tile_offset(rows: usize, row: usize, start: usize, depth: usize) -> usize {
    rows * start + row * depth
}

/// Rows that a task copies: of a column-major operand in bf16, those in four cache lines.
const COPY_TASK_ROWS: usize = 128;

/// Copies some rows to tiles.
struct Copy<'a, T, const N: usize> {
    a: Matrix<'a, T>,
    rows: Range<usize>,
    to: Shared<'a, bf16>,
    length: usize,
    /// The largest length of a stretch.
    max_depth: usize,
}

impl<T: Real, const N: usize> Kernel for Copy<'_, T, N> {
    type Output = ();
    const GAINS_FROM_AVX512: bool = false;
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        only_one_part_without_tiles::<S, N>();
        let Copy { a, rows, to, length, max_depth } = self;
        let (m, k) = (a.rows, a.cols);
        let mut pairs = [Pairs::<N>::new(), Pairs::new()];
        for start in (0..length).step_by(max_depth) {
            let depth = max_depth.min(length - start);
            let tiles_at = |row: usize, step: usize| {
                let at = tile_offset(m.next_multiple_of(TILE), row, start, depth) + (step - start) * TILE;
                // Safety: a tile of rows belongs to one task.
                as_tiles(unsafe { to.slice(N * at, N * TILE * STEP) })
            };
            let steps = (start..start + depth).step_by(STEP);
            if a.transposed {
                // In a column-major operand the rows of the task are side by side, and the processor prefetches along them. So all
                // rows of a step are read before the next step. Two tiles of rows in bf16 are a cache line.
                for step in steps {
                    for row in rows.clone().step_by(2 * TILE) {
                        // Pairs along `k`, which are transposed so that the pairs of a row are side by side.
                        let [first, second] = &mut pairs;
                        merge_tiles(s, a.data, m, step..k, row, [&mut first.0, &mut second.0]);
                        for (row, pairs) in (row..rows.end).step_by(TILE).zip(&pairs) {
                            transpose(s, &pairs.0, tiles_at(row, step));
                        }
                    }
                }
            } else {
                for row in rows.clone().step_by(TILE) {
                    for step in steps.clone() {
                        let to = tiles_at(row, step);
                        for i in 0..TILE {
                            row_pairs(s, part(a.data, k, row + i..m, step..k.min(step + STEP)), to, i);
                        }
                    }
                }
            }
        }
    }
}

/// A tile of 1 KiB for each part of numbers, as sixteen rows of sixteen pairs.
pub(crate) type Parts<const N: usize> = [[[f32; TILE]; TILE]; N];

/// Memory as such tiles.
#[inline(always)]
pub(crate) fn as_tiles<const N: usize>(tiles: &mut [bf16]) -> &mut Parts<N> {
    assert!(tiles.len() == N * TILE * STEP && tiles.as_ptr().addr().is_multiple_of(64));
    // Safety: as long and as aligned as just checked, and any bits are an f32.
    unsafe { &mut *tiles.as_mut_ptr().cast() }
}

/// Writes a vector of pairs of each part to a row of its tile.
#[inline(always)]
pub(crate) fn put<S: Simd, const N: usize>(s: S, to: &mut Parts<N>, i: usize, at: usize, pairs: [S::U; N]) {
    assert!(i < TILE && at + S::LANES <= TILE);
    for part in 0..N {
        // Safety: inside of the row, as just checked.
        unsafe { s.store_u(to[part][i].as_mut_ptr().add(at).cast(), pairs[part]) }
    }
}

/// The right operand. It is not a type parameter of the product, because only packing depends on the stored type.
#[derive(Clone, Copy)]
pub(in crate::gemm) enum Right<'a> {
    /// To be packed by each task: a stretch of one panel at a time, or, if rows stay, of all its panels.
    F32(Matrix<'a, f32>),
    /// The same in bf16.
    Bf16(Matrix<'a, bf16>),
    /// Packed panels, each for all of `k`.
    Packed(&'a [bf16]),
}

impl<'a> From<Matrix<'a, f32>> for Right<'a> {
    fn from(matrix: Matrix<'a, f32>) -> Right<'a> {
        Right::F32(matrix)
    }
}

impl<'a> From<Matrix<'a, bf16>> for Right<'a> {
    fn from(matrix: Matrix<'a, bf16>) -> Right<'a> {
        Right::Bf16(matrix)
    }
}

/// Packs a stretch of a panel of columns, which begins at row `start`.
pub(super) struct PackPanel<'a, T, const N: usize> {
    pub b: Matrix<'a, T>,
    pub column: usize,
    pub start: usize,
    pub to: &'a mut [bf16],
}

impl<T: Real, const N: usize> Kernel for PackPanel<'_, T, N> {
    type Output = ();
    const GAINS_FROM_AVX512: bool = false;
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        only_one_part_without_tiles::<S, N>();
        pack_right::<_, _, N>(s, self.b, self.column, self.start, self.to);
    }
}

/// Numbers in parts are multiplied on tiles only. For other instruction sets, what follows is not compiled.
#[inline(always)]
pub(super) fn only_one_part_without_tiles<S: Simd, const N: usize>() {
    if const { N > 1 } {
        assert!(S::BESIDE_TILES, "numbers in parts are for tiles");
    }
}

/// Packs a panel of columns of `B`, beginning at row `start`, to `[step][2 tiles][part][16 pairs][16 columns]`.
#[inline(always)]
pub(crate) fn pack_right<S: Simd, T: Real, const N: usize>(
    s: S,
    b: Matrix<T>,
    column: usize,
    start: usize,
    to: &mut [bf16],
) {
    let (k, n) = (b.rows, b.cols);
    let steps = to.chunks_exact_mut(N * PANEL * STEP).map(|to| {
        let (first, second) = to.split_at_mut(N * TILE * STEP);
        [as_tiles::<N>(first), as_tiles::<N>(second)]
    });
    let steps = (start..).step_by(STEP).zip(steps);
    if !b.transposed {
        for (step, tiles) in steps {
            merge_tiles(s, b.data, n, step..k, column, tiles);
        }
        return;
    }
    let mut pairs = Pairs::<N>::new();
    for (step, tiles) in steps {
        for (first, to) in (column..).step_by(TILE).zip(tiles) {
            for i in 0..TILE {
                row_pairs(s, part(b.data, k, first + i..n, step..k.min(step + STEP)), &mut pairs.0, i);
            }
            transpose(s, &pairs.0, to);
        }
    }
}

/// Packs a stretch of `depth` rows of some columns of `B`, panel after panel.
pub(super) struct PackPanels<'a, T> {
    pub b: Matrix<'a, T>,
    pub columns: Range<usize>,
    pub start: usize,
    pub depth: usize,
    pub to: &'a mut [bf16],
}

impl<T: Real> Kernel for PackPanels<'_, T> {
    type Output = ();
    const GAINS_FROM_AVX512: bool = false;
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let PackPanels { b, columns, start, depth, to } = self;
        // A row-major operand is read one step of `k` at a time for all panels: the processor prefetches along a row, but not the
        // next row. A column-major operand is read panel after panel.
        let piece = if b.transposed { depth } else { STEP };
        for begin in (0..depth).step_by(piece) {
            for (column, to) in columns.clone().step_by(PANEL).zip(to.chunks_exact_mut(depth * PANEL)) {
                let to = &mut to[begin * PANEL..][..piece * PANEL];
                pack_right::<_, _, 1>(s, b, column, start + begin, to);
            }
        }
    }
}

/// Some columns of row `rows.start`, or nothing if there is no such row.
#[inline(always)]
fn part<T>(data: &[T], stride: usize, rows: Range<usize>, columns: Range<usize>) -> &[T] {
    if rows.is_empty() || columns.is_empty() { &[] } else { &data[rows.start * stride..][columns] }
}

/// Up to 32 numbers as sixteen pairs, in order, padded with zeros.
#[inline(always)]
fn row_pairs<S: Simd, T: Real, const N: usize>(s: S, from: &[T], to: &mut Parts<N>, i: usize) {
    if let Some(from) = from.first_chunk::<STEP>() {
        for at in (0..TILE).step_by(S::LANES) {
            // Safety: twice LANES numbers from twice `at` on lie inside of the chunk.
            put(s, to, i, at, unsafe { load_row(s, from.as_ptr().add(2 * at)) });
        }
        return;
    }
    for at in (0..TILE).step_by(S::LANES) {
        let (x, y) = (vector(s, from, 2 * at), vector(s, from, 2 * at + S::LANES));
        put(s, to, i, at, row(s, x, y));
    }
}

/// Interleaves sixteen pairs of rows from `rows.start` on, those below `rows.end`: of sixteen columns from `column` on, and of the next
/// sixteen. Rows have `stride` columns.
#[inline(always)]
fn merge_tiles<S: Simd, T: Real, const N: usize>(
    s: S,
    data: &[T],
    stride: usize,
    rows: Range<usize>,
    column: usize,
    to: [&mut Parts<N>; 2],
) {
    let columns = [column, column + TILE];
    if rows.len() < STEP || column + 2 * TILE > stride {
        for (column, to) in columns.into_iter().zip(to) {
            for p in 0..TILE {
                merge_rows(s, data, stride, rows.start + 2 * p..rows.end, column, to, p);
            }
        }
        return;
    }
    // The common case: no edge. Both tiles of a row are read at once, because rows whose distance is a power of two drive each other
    // out of a cache.
    let from = &data[rows.start * stride + column..][..(STEP - 1) * stride + 2 * TILE];
    let [first, second] = to;
    for p in 0..TILE {
        // Safety: thirty-two rows of thirty-two columns, as just checked.
        unsafe {
            let (low, high) = (from.as_ptr().add(2 * p * stride), from.as_ptr().add((2 * p + 1) * stride));
            for at in (0..TILE).step_by(S::LANES) {
                let next = TILE + at;
                put(s, first, p, at, load_pairs(s, low.add(at), high.add(at)));
                put(s, second, p, at, load_pairs(s, low.add(next), high.add(next)));
            }
        }
    }
}

/// Interleaves the rows `rows.start` and `rows.start + 1`, if they are below `rows.end`, of up to sixteen columns from `column` on.
#[inline(always)]
fn merge_rows<S: Simd, T: Real, const N: usize>(
    s: S,
    data: &[T],
    stride: usize,
    rows: Range<usize>,
    column: usize,
    to: &mut Parts<N>,
    i: usize,
) {
    let columns = column..stride.min(column + TILE);
    let low = part(data, stride, rows.clone(), columns.clone());
    let high = part(data, stride, rows.start + 1..rows.end, columns);
    for at in (0..TILE).step_by(S::LANES) {
        put(s, to, i, at, pairs(s, vector(s, low, at), vector(s, high, at)));
    }
}

/// The vector that begins at `at`, with zeros past the end.
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

/// Sixteen rows of sixteen pairs of bf16 for each part, to be transposed.
#[repr(C, align(64))]
struct Pairs<const N: usize>(Parts<N>);

impl<const N: usize> Pairs<N> {
    #[inline(always)]
    fn new() -> Pairs<N> {
        Pairs([[[0.0; TILE]; TILE]; N])
    }
}

/// Transposes sixteen rows of sixteen pairs, for each part.
#[inline(always)]
pub(crate) fn transpose<S: Simd, const N: usize>(s: S, from: &Parts<N>, to: &mut Parts<N>) {
    for part in 0..N {
        for i in (0..TILE).step_by(S::LANES) {
            for j in (0..TILE).step_by(S::LANES) {
                let (from, to) = (from[part][i].as_ptr(), to[part][j].as_mut_ptr());
                // Safety: blocks of LANES × LANES inside of both.
                unsafe { s.transpose(from.add(j), TILE, to.add(i), TILE) }
            }
        }
    }
}
