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
    /// Writes a vector to `at`, each value rounded to the nearest `bf16`, the even one of two; a NaN stays
    /// one.
    ///
    /// Every set does so with integers: the instruction that some processors have for it makes zeros of
    /// subnormal numbers.
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
    unsafe fn transpose<T: Real>(self, from: *const T, from_stride: usize, to: *mut f32, to_stride: usize);

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
    /// The greater of `a` and `b`.
    fn max(self, a: Self::F, b: Self::F) -> Self::F;
    /// The lesser of `a` and `b`.
    fn min(self, a: Self::F, b: Self::F) -> Self::F;
    /// `√a`.
    fn sqrt(self, a: Self::F) -> Self::F;
    /// The nearest whole number.
    fn round(self, a: Self::F) -> Self::F;
    /// `2^n` for whole `n` in `-126..=127`.
    fn pow2(self, n: Self::F) -> Self::F;
    /// `a < b`; false where either is not a number.
    fn lt(self, a: Self::F, b: Self::F) -> Self::M;
    /// `a` where the mask says yes, else `b`.
    fn select(self, mask: Self::M, a: Self::F, b: Self::F) -> Self::F;
    /// The sum of all lanes, in an order that depends on the instruction set alone.
    fn sum(self, a: Self::F) -> f32;
    /// The greatest lane.
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

    /// Both rounded to bf16, lane by lane: `low` in the lower and `high` in the upper half.
    fn pair(self, low: Self::F, high: Self::F) -> Self::U;
    /// Both rounded to bf16, one after the other, as they would lie in memory.
    fn row(self, first: Self::F, second: Self::F) -> Self::U;
    /// `sum + a.low · b.low + a.high · b.high` of pairs of bf16, in f32. How it rounds on the way depends on the
    /// instruction set.
    fn dot(self, sum: Self::F, a: Self::U, b: Self::U) -> Self::F;
    /// `sum + Σ a·b` over the four signed bytes of each lane, in 32 bits, exact.
    fn dot4(self, sum: Self::U, a: Self::U, b: Self::U) -> Self::U;
    /// Signed whole numbers as `f32`.
    fn from_i32(self, x: Self::U) -> Self::F;
}

/// Walks slices of one length a vector at a time and calls `body` with the offset and the number of lanes in use:
/// `LANES` for all but the last vector.
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
    assert!(at + n <= x.len());
    // Safety: the range was just checked.
    unsafe {
        let from = x.as_ptr().add(at);
        if n == S::LANES { T::load(simd, from) } else { T::load_first(simd, from, n) }
    }
}

/// Stores the first `n` lanes of `v` to `x` from `at` on.
#[inline(always)]
pub(crate) fn store<S: Simd, T: Real>(simd: S, x: &mut [T], at: usize, n: usize, v: S::F) {
    debug_assert!(n <= S::LANES);
    assert!(at + n <= x.len());
    // Safety: the range was just checked.
    unsafe {
        let to = x.as_mut_ptr().add(at);
        if n == S::LANES { T::store(simd, to, v) } else { T::store_first(simd, to, n, v) }
    }
}

/// Tokens that cannot exist, for processors of another architecture.
#[cfg(not(target_arch = "x86_64"))]
mod elsewhere {
    /// Never had here.
    #[derive(Clone, Copy)]
    pub(crate) enum Avx2 {}
    /// Never had here.
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
