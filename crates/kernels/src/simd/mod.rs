//! Vectors of `f32` (and of `u32` for random numbers), one implementation for each instruction set.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod portable;
mod real;

#[cfg(target_arch = "x86_64")]
pub(crate) use avx2::Avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) use avx512::Avx512;
#[cfg(not(target_arch = "x86_64"))]
pub(crate) use elsewhere::{Avx2, Avx512};
pub(crate) use portable::Portable;
pub use real::Real;

use crate::isa::Kernel;
use half::bf16;

/// The operations that kernels are written in.
///
/// The implementing type is a token: it exists only where its instructions do. Methods are safe because of that,
/// except for those that follow a pointer.
pub(crate) trait Simd: Copy + Send + Sync + 'static {
    /// [`Self::LANES`] values of `f32`.
    type F: Copy;
    /// [`Self::LANES`] values of `u32`.
    type U: Copy;
    /// A yes or no for each lane.
    type M: Copy;
    /// How many values a vector holds.
    const LANES: usize;
    /// Rows of the tile of a matrix product whose sums stay in registers.
    const TILE_ROWS: usize;
    /// Whether processors with a tile unit use this set. Kernels over any other set are compiled without tiles.
    const BESIDE_TILES: bool = false;

    /// Calls a part of a kernel as a function of its own, compiled once, with the same instructions.
    fn call<K: Kernel>(self, kernel: K) -> K::Output;

    /// Every lane `x`.
    fn splat(self, x: f32) -> Self::F;
    /// The vector at `at`.
    ///
    /// # Safety
    /// `at` must be valid for reading [`Self::LANES`] values.
    unsafe fn load(self, at: *const f32) -> Self::F;
    /// The first `n` values at `at`, zeros in the other lanes.
    ///
    /// # Safety
    /// `n < LANES`, and `at` must be valid for reading `n` values.
    unsafe fn load_first(self, at: *const f32, n: usize) -> Self::F;
    /// Writes a vector to `at`.
    ///
    /// # Safety
    /// `at` must be valid for writing [`Self::LANES`] values.
    unsafe fn store(self, at: *mut f32, x: Self::F);
    /// Writes a vector to `at`, past the caches if there is an instruction for it. Other threads see it after [`store_fence`].
    ///
    /// # Safety
    /// `at` must be valid for writing [`Self::LANES`] values, and aligned like a vector of them.
    #[inline(always)]
    unsafe fn stream(self, at: *mut f32, x: Self::F) {
        // Safety: the caller's promise.
        unsafe { self.store(at, x) }
    }
    /// Writes the first `n` lanes to `at`.
    ///
    /// # Safety
    /// `n < LANES`, and `at` must be valid for writing `n` values.
    unsafe fn store_first(self, at: *mut f32, n: usize, x: Self::F);
    /// The vector at `at`, each value in the upper half of its lane.
    ///
    /// # Safety
    /// As for [`Self::load`].
    unsafe fn load_bf16(self, at: *const bf16) -> Self::F;
    /// The first `n` values at `at`, zeros in the other lanes.
    ///
    /// # Safety
    /// As for [`Self::load_first`].
    unsafe fn load_first_bf16(self, at: *const bf16, n: usize) -> Self::F;
    /// Writes a vector to `at`, each value rounded to the nearest `bf16`, halves to even. A NaN stays a NaN. Some processors have an
    /// instruction for it, which turns subnormal numbers into zeros.
    ///
    /// # Safety
    /// As for [`Self::store`].
    unsafe fn store_bf16(self, at: *mut bf16, x: Self::F);
    /// Writes the first `n` lanes to `at`, rounded.
    ///
    /// # Safety
    /// As for [`Self::store_first`].
    unsafe fn store_first_bf16(self, at: *mut bf16, n: usize, x: Self::F);
    /// Writes the transpose of the `LANES × LANES` block at `from` to `to`.
    ///
    /// # Safety
    /// Both blocks must be valid, with rows of the given strides, and must not overlap.
    #[inline(always)]
    unsafe fn transpose<T: Real>(self, from: *const T, from_stride: usize, to: *mut f32, to_stride: usize) {
        // Safety: the caller's promise.
        unsafe {
            self.transpose_rows(
                #[inline(always)]
                |i| from.add(i * from_stride),
                to,
                to_stride,
            );
        }
    }
    /// [`Self::transpose`] of `LANES` rows that lie anywhere: `row` gives the start of each.
    ///
    /// # Safety
    /// Every row must be valid for reading [`Self::LANES`] values, and the block at `to` for writing.
    unsafe fn transpose_rows<T: Real>(self, row: impl Fn(usize) -> *const T, to: *mut f32, to_stride: usize);

    /// `a + b`.
    fn add(self, a: Self::F, b: Self::F) -> Self::F;
    /// `a - b`.
    fn sub(self, a: Self::F, b: Self::F) -> Self::F;
    /// `a · b`.
    fn mul(self, a: Self::F, b: Self::F) -> Self::F;
    /// `a / b`.
    fn div(self, a: Self::F, b: Self::F) -> Self::F;
    /// `a · b + c`, rounded once where the instruction set can.
    fn fma(self, a: Self::F, b: Self::F, c: Self::F) -> Self::F;
    /// The greater of `a` and `b`; `b` if they are equal or either is NaN. So a NaN gets through as the second operand and is lost as
    /// the first, and kernels choose the order of operands by that.
    fn max(self, a: Self::F, b: Self::F) -> Self::F;
    /// The lesser of `a` and `b`, with NaN as in [`Self::max`].
    fn min(self, a: Self::F, b: Self::F) -> Self::F;
    /// `√a`.
    fn sqrt(self, a: Self::F) -> Self::F;
    /// The nearest whole number.
    fn round(self, a: Self::F) -> Self::F;
    /// `2^n` for whole `n` in `-126..=127`.
    fn pow2(self, n: Self::F) -> Self::F;
    /// `a < b`; false if either is NaN.
    fn lt(self, a: Self::F, b: Self::F) -> Self::M;
    /// `a` in lanes where the mask is true, else `b`.
    fn select(self, mask: Self::M, a: Self::F, b: Self::F) -> Self::F;
    /// Each lane becomes the sum of all lanes whose index has the same remainder modulo `period`, a power of two.
    fn fold(self, a: Self::F, period: usize) -> Self::F;
    /// The sum of all lanes, in an order that depends on the instruction set alone.
    fn sum(self, a: Self::F) -> f32;
    /// The greatest lane. If some lanes are NaN, it is any of the lanes, depending on the instruction set.
    fn greatest(self, a: Self::F) -> f32;

    /// Every lane `x`.
    fn splat_u(self, x: u32) -> Self::U;
    /// `0, 1, 2, …`
    fn iota(self) -> Self::U;
    /// `a + b`, wrapping.
    fn add_u(self, a: Self::U, b: Self::U) -> Self::U;
    /// `a · b`, wrapping.
    fn mul_u(self, a: Self::U, b: Self::U) -> Self::U;
    /// `a ^ b`.
    fn xor_u(self, a: Self::U, b: Self::U) -> Self::U;
    /// `a >> N`.
    fn shr_u<const N: i32>(self, a: Self::U) -> Self::U;
    /// `a << N`.
    fn shl_u<const N: i32>(self, a: Self::U) -> Self::U;
    /// `a < b`, for values below 2³¹.
    fn lt_u(self, a: Self::U, b: Self::U) -> Self::M;
    /// The vector at `at`.
    ///
    /// # Safety
    /// `at` must be valid for reading [`Self::LANES`] values.
    unsafe fn load_u(self, at: *const u32) -> Self::U;
    /// Writes a vector to `at`.
    ///
    /// # Safety
    /// `at` must be valid for writing [`Self::LANES`] values.
    unsafe fn store_u(self, at: *mut u32, x: Self::U);
    /// The same, past the caches if there is an instruction for it. Other threads see it after [`store_fence`].
    ///
    /// # Safety
    /// As for [`Self::store_u`], and `at` must be aligned like a vector.
    #[inline(always)]
    unsafe fn stream_u(self, at: *mut u32, x: Self::U) {
        // Safety: the caller's promise.
        unsafe { self.store_u(at, x) }
    }

    /// The inner loop of a product: `sums[row][v] += a[row] · b[v]` for `depth` steps of `k`. Rows of `a` are `APART`
    /// numbers apart, steps `a_step`; `b` has two vectors a step.
    ///
    /// # Safety
    /// `a` must be valid to read for `ROWS` rows and `depth` steps, `b` for `depth` pairs of vectors.
    #[inline(always)]
    unsafe fn multiply_rows<const ROWS: usize, const APART: usize>(
        self,
        a: *const f32,
        a_step: usize,
        b: *const f32,
        depth: usize,
        sums: &mut [[Self::F; 2]; ROWS],
    ) {
        // Safety: the caller's promise.
        unsafe { multiply_rows::<Self, ROWS, APART>(self, a, a_step, b, depth, sums) }
    }

    /// The nearest bf16 to each lane, as an f32; of two that are as near, the one further from zero. A NaN becomes anything.
    fn nearest_bf16(self, x: Self::F) -> Self::F;
    /// Both rounded to bf16, lane by lane: `low` in the lower and `high` in the upper half.
    fn pair(self, low: Self::F, high: Self::F) -> Self::U;
    /// The same for values in memory that are bf16 already.
    ///
    /// # Safety
    /// Both must be valid for reading [`Self::LANES`] values.
    unsafe fn pair_bf16(self, low: *const bf16, high: *const bf16) -> Self::U;
    /// Both rounded to bf16, one after the other, as they would lie in memory.
    fn row(self, first: Self::F, second: Self::F) -> Self::U;
    /// `sum + a.low · b.low + a.high · b.high` of pairs of bf16, in f32. How it rounds on the way depends on the
    /// instruction set.
    fn dot(self, sum: Self::F, a: Self::U, b: Self::U) -> Self::F;
    /// `sum + Σ a·b` over the four signed bytes of each lane, in 32 bits, exact.
    fn dot4(self, sum: Self::U, a: Self::U, b: Self::U) -> Self::U;
    /// The same with unsigned bytes in `a`, which some processors compute with a single instruction.
    fn dot4_unsigned(self, sum: Self::U, a: Self::U, b: Self::U) -> Self::U;
    /// Transposes the bytes of four rows. Of every sixteen bytes of a row, bytes `4j..4j + 4` go to the lanes of vector `j`, so that a lane
    /// has a byte of each row.
    fn transpose_bytes(self, rows: [Self::U; 4]) -> [Self::U; 4];
    /// Signed whole numbers as `f32`.
    fn whole(self, x: Self::U) -> Self::F;
    /// The nearest whole number, halves to even, for values from 0 to 2³¹.
    fn nearest_u(self, x: Self::F) -> Self::U;
    /// Writes a vector of numbers in `-127.5..127.5` to `at`, each rounded to the nearest whole number, halves to even.
    ///
    /// # Safety
    /// `at` must be valid for writing [`Self::LANES`] values.
    unsafe fn store_i8(self, at: *mut i8, x: Self::F);
}

/// [`Simd::multiply_rows`] without assembly.
///
/// # Safety
/// As there.
#[inline(always)]
unsafe fn multiply_rows<S: Simd, const ROWS: usize, const APART: usize>(
    s: S,
    mut a: *const f32,
    a_step: usize,
    mut b: *const f32,
    depth: usize,
    sums: &mut [[S::F; 2]; ROWS],
) {
    // A copy of the caller's sums, so that they stay in registers.
    let mut held = *sums;
    for _ in 0..depth {
        // Safety: the caller's promise.
        unsafe {
            let columns = [s.load(b), s.load(b.add(S::LANES))];
            for row in 0..ROWS {
                let x = s.splat(*a.add(row * APART));
                for v in 0..2 {
                    held[row][v] = s.fma(x, columns[v], held[row][v]);
                }
            }
            a = a.add(a_step);
            b = b.add(2 * S::LANES);
        }
    }
    *sums = held;
}

/// Calls `body` with the offset and the number of lanes of each vector of a slice: `LANES` for all but the last.
#[inline(always)]
pub(crate) fn for_vectors<S: Simd>(_: S, len: usize, mut body: impl FnMut(usize, usize)) {
    let whole = len - len % S::LANES;
    let mut at = 0;
    while at < whole {
        body(at, S::LANES);
        at += S::LANES;
    }
    if at < len {
        body(at, len - at);
    }
}

/// Loads `n` lanes of `x` from `at` on; lanes past `n` are zero.
#[inline(always)]
pub(crate) fn load<S: Simd, T: Real>(simd: S, x: &[T], at: usize, n: usize) -> S::F {
    debug_assert!(n <= S::LANES);
    assert!(n <= x.len() && at <= x.len() - n);
    // Safety: the range was just checked.
    unsafe {
        let from = x.as_ptr().add(at);
        if n < S::LANES { T::load_first(simd, from, n) } else { T::load(simd, from) }
    }
}

/// Stores the first `n` lanes of `v` to `x` from `at` on.
#[inline(always)]
pub(crate) fn store<S: Simd, T: Real>(simd: S, x: &mut [T], at: usize, n: usize, v: S::F) {
    debug_assert!(n <= S::LANES);
    assert!(n <= x.len() && at <= x.len() - n);
    // Safety: the range was just checked.
    unsafe {
        let to = x.as_mut_ptr().add(at);
        if n < S::LANES { T::store_first(simd, to, n, v) } else { T::store(simd, to, v) }
    }
}

/// Prefetches the cache line of `at` to the L2 cache. The address need not be valid.
#[inline(always)]
pub(crate) fn prefetch<T>(at: *const T) {
    #[cfg(target_arch = "x86_64")]
    // Safety: a hint, which does nothing where there is no memory.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T1>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// Waits until other threads can see all that this thread wrote past the caches.
pub(crate) fn store_fence() {
    #[cfg(target_arch = "x86_64")]
    // Safety: every processor of this architecture has the instruction.
    unsafe {
        std::arch::x86_64::_mm_sfence()
    }
}

/// Tokens that cannot exist, for processors of another architecture.
#[cfg(not(target_arch = "x86_64"))]
mod elsewhere {
    /// Has no value here.
    #[derive(Clone, Copy)]
    pub(crate) enum Avx2 {}
    /// Has no value here.
    #[derive(Clone, Copy)]
    pub(crate) enum Avx512<const BF16: bool> {}

    impl Avx2 {
        pub(crate) fn detect() -> Option<Self> {
            None
        }
        pub(crate) unsafe fn assume() -> Self {
            unreachable!("no AVX2 on this architecture")
        }
    }

    impl<const BF16: bool> Avx512<BF16> {
        pub(crate) fn detect() -> Option<Self> {
            None
        }
        pub(crate) unsafe fn assume() -> Self {
            unreachable!("no AVX-512 on this architecture")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::Isa;

    /// `max` and `min` of two numbers, the same in every lane.
    struct MaxMin(f32, f32);

    impl Kernel for MaxMin {
        type Output = [f32; 2];
        #[inline(always)]
        fn run<S: Simd>(self, s: S) -> [f32; 2] {
            let (a, b) = (s.splat(self.0), s.splat(self.1));
            let mut lanes = [[0.0; 16]; 2];
            store(s, &mut lanes[0], 0, S::LANES, s.max(a, b));
            store(s, &mut lanes[1], 0, S::LANES, s.min(a, b));
            for lanes in &lanes {
                assert!(lanes[1..S::LANES].iter().all(|x| x.to_bits() == lanes[0].to_bits()), "{lanes:?}");
            }
            lanes.map(|lanes| lanes[0])
        }
    }

    /// The greatest of as many numbers as there are lanes.
    struct Greatest<'a>(&'a [f32; 16]);

    impl Kernel for Greatest<'_> {
        type Output = (f32, usize);
        #[inline(always)]
        fn run<S: Simd>(self, s: S) -> (f32, usize) {
            (s.greatest(load(s, self.0, 0, S::LANES)), S::LANES)
        }
    }

    #[test]
    fn max_and_min_answer_with_their_second_operand_unless_the_first_is_beyond_it() {
        let max_min = |isa: Isa, a: f32, b: f32| isa.dispatch(MaxMin(a, b));
        for isa in Isa::present() {
            assert_eq!(max_min(isa, 2.0, -3.0), [2.0, -3.0], "{isa}");
            assert_eq!(max_min(isa, -3.0, 2.0), [2.0, -3.0], "{isa}");
            for number in [1.0, 0.0, f32::INFINITY, f32::NEG_INFINITY] {
                assert_eq!(max_min(isa, f32::NAN, number), [number; 2], "{isa}");
                assert!(max_min(isa, number, f32::NAN).iter().all(|x| x.is_nan()), "{isa}, {number}");
            }
            for (a, b) in [(0.0f32, -0.0f32), (-0.0, 0.0)] {
                assert_eq!(max_min(isa, a, b).map(f32::to_bits), [b.to_bits(); 2], "{isa}");
            }
        }
    }

    /// Vectors of whole numbers.
    struct Bytes<'a>(&'a [[u32; 16]; 4]);

    /// `dot4_unsigned`, all four vectors of `transpose_bytes`, `fold` with every period, `shl_u` and `nearest_u`.
    impl Kernel for Bytes<'_> {
        type Output = (usize, Vec<[u32; 16]>, Vec<[f32; 16]>);
        #[inline(always)]
        fn run<S: Simd>(self, s: S) -> Self::Output {
            let lanes = |x: S::U| {
                let mut lanes = [0; 16];
                // Safety: room for the widest vectors.
                unsafe { s.store_u(lanes.as_mut_ptr(), x) }
                lanes
            };
            // Safety: there is a whole vector in each.
            let rows = self.0.each_ref().map(|row| unsafe { s.load_u(row.as_ptr()) });
            let mut whole = vec![lanes(s.dot4_unsigned(rows[0], rows[1], rows[2]))];
            whole.extend(s.transpose_bytes(rows).map(lanes));
            whole.push(lanes(s.shl_u::<8>(rows[3])));
            let small = s.whole(s.shr_u::<8>(rows[3]));
            whole.push(lanes(s.nearest_u(s.mul(small, s.splat(0.5)))));
            let folded = [1, 2, 4, 8, 16].map(|period| {
                let mut lanes = [0.0; 16];
                store(s, &mut lanes, 0, S::LANES, s.fold(small, period));
                lanes
            });
            (S::LANES, whole, folded.to_vec())
        }
    }

    #[test]
    fn bytes_are_multiplied_and_transposed_and_lanes_folded_as_they_say() {
        let random = crate::Random::new(3);
        let rows: [[u32; 16]; 4] =
            std::array::from_fn(|i| std::array::from_fn(|j| random.bits((i * 16 + j) as u32)));
        let byte = |row: usize, at: usize| rows[row][at / 4].to_ne_bytes()[at % 4];
        for isa in Isa::present() {
            let (lanes, whole, folded) = isa.dispatch(Bytes(&rows));
            for lane in 0..lanes {
                let product =
                    |i: usize| i32::from(byte(1, 4 * lane + i)) * i32::from(byte(2, 4 * lane + i) as i8);
                let dot = (0..4).map(product).sum::<i32>().wrapping_add(rows[0][lane] as i32);
                assert_eq!(whole[0][lane], dot as u32, "{isa}");
                for j in 0..4 {
                    let at = lane / 4 * 16 + 4 * j + lane % 4;
                    let transposed = u32::from_ne_bytes([0, 1, 2, 3].map(|row| byte(row, at)));
                    assert_eq!(whole[1 + j][lane], transposed, "{isa}");
                }
                assert_eq!(whole[5][lane], rows[3][lane] << 8, "{isa}");
                let small = |lane: usize| (rows[3][lane] >> 8) as f32;
                assert_eq!(whole[6][lane], (small(lane) / 2.0).round_ties_even() as u32, "{isa}");
                for (folded, period) in folded.iter().zip([1, 2, 4, 8, 16]) {
                    let sum: f64 =
                        (lane % period..lanes).step_by(period).map(|lane| f64::from(small(lane))).sum();
                    let error = (f64::from(folded[lane]) - sum).abs();
                    assert!(error <= sum * 1e-6, "{isa}, {period}: {} for {sum}", folded[lane]);
                }
            }
        }
    }

    #[test]
    fn the_greatest_lane_is_found_anywhere_and_beside_a_nan_it_is_one_of_the_lanes() {
        for isa in Isa::present() {
            let lanes = isa.dispatch(Greatest(&[0.0; 16])).1;
            for place in 0..lanes {
                let mut x: [f32; 16] = std::array::from_fn(|i| -1.0 - i as f32);
                x[place] = -0.5;
                assert_eq!(isa.dispatch(Greatest(&x)).0, -0.5, "{isa}, lane {place}");
                x[place] = f32::NAN;
                let y = isa.dispatch(Greatest(&x)).0;
                assert!(y.is_nan() || x[..lanes].contains(&y), "{isa}, lane {place}: {y}");
            }
            assert!(isa.dispatch(Greatest(&[f32::NAN; 16])).0.is_nan(), "{isa}");
        }
    }
}
