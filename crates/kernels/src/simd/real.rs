//! The types that activations are stored in. Kernels compute in vectors of `f32`; only loads and stores know
//! the type.

use super::Simd;
use crate::Element;
use half::bf16;

/// A type that activations are stored in: `f32`, or `bf16`, which takes half the memory and rounds when it is
/// stored.
#[expect(
    private_bounds,
    reason = "how it is loaded and stored is our own affair, and nobody else adds a type"
)]
pub trait Real: Stored {
    /// The number as it is computed with; exact.
    fn to_f32(self) -> f32;
    /// The nearest number of this type, halves to even. A NaN stays a NaN.
    fn from_f32(x: f32) -> Self;
}

/// How a [`Real`] gets into vectors and out of them.
pub(crate) trait Stored: Element {
    /// Whether storing loses nothing.
    #[cfg(test)]
    const EXACT: bool;

    /// The vector at `at`.
    ///
    /// # Safety
    /// `at` must be valid for reading `LANES` values.
    unsafe fn load<S: Simd>(s: S, at: *const Self) -> S::F;
    /// The first `n` values at `at`, zeros in the other lanes.
    ///
    /// # Safety
    /// `n < LANES`, and `at` must be valid for reading `n` values.
    unsafe fn load_first<S: Simd>(s: S, at: *const Self, n: usize) -> S::F;
    /// Writes a vector to `at`.
    ///
    /// # Safety
    /// `at` must be valid for writing `LANES` values.
    unsafe fn store<S: Simd>(s: S, at: *mut Self, x: S::F);
    /// Writes two vectors one after the other to `at`.
    ///
    /// # Safety
    /// `at` must be valid for writing twice `LANES` values.
    unsafe fn store_row<S: Simd>(s: S, at: *mut Self, first: S::F, second: S::F);
    /// Writes a vector to `at`, past the caches where that is possible; others see it after [`store_fence`](super::store_fence).
    ///
    /// # Safety
    /// `at` must be valid for writing `LANES` values, and aligned like a vector of them.
    unsafe fn stream<S: Simd>(s: S, at: *mut Self, x: S::F);
    /// [`store_row`](Stored::store_row), past the caches like [`stream`](Stored::stream).
    ///
    /// # Safety
    /// As for [`store_row`](Stored::store_row), and `at` must be aligned like what is written.
    unsafe fn stream_row<S: Simd>(s: S, at: *mut Self, first: S::F, second: S::F);
    /// Writes the first `n` lanes to `at`.
    ///
    /// # Safety
    /// `n < LANES`, and `at` must be valid for writing `n` values.
    unsafe fn store_first<S: Simd>(s: S, at: *mut Self, n: usize, x: S::F);
    /// Two vectors lane by lane as pairs of bf16: `low` in the lower and `high` in the upper half.
    ///
    /// # Safety
    /// Both must be valid for reading `LANES` values.
    unsafe fn load_pair<S: Simd>(s: S, low: *const Self, high: *const Self) -> S::U;
    /// Twice [`Simd::LANES`] neighbours as pairs of bf16, in order.
    ///
    /// # Safety
    /// `at` must be valid for reading so many values.
    unsafe fn load_row<S: Simd>(s: S, at: *const Self) -> S::U;
}

impl Real for f32 {
    #[inline(always)]
    fn to_f32(self) -> f32 {
        self
    }
    #[inline(always)]
    fn from_f32(x: f32) -> f32 {
        x
    }
}

impl Real for bf16 {
    #[inline(always)]
    fn to_f32(self) -> f32 {
        bf16::to_f32(self)
    }
    #[inline(always)]
    fn from_f32(x: f32) -> bf16 {
        bf16::from_f32(x)
    }
}

impl Stored for f32 {
    #[cfg(test)]
    const EXACT: bool = true;

    #[inline(always)]
    unsafe fn load<S: Simd>(s: S, at: *const f32) -> S::F {
        // Safety: the caller's promise.
        unsafe { s.load(at) }
    }
    #[inline(always)]
    unsafe fn load_first<S: Simd>(s: S, at: *const f32, n: usize) -> S::F {
        // Safety: the caller's promise.
        unsafe { s.load_first(at, n) }
    }
    #[inline(always)]
    unsafe fn store<S: Simd>(s: S, at: *mut f32, x: S::F) {
        // Safety: the caller's promise.
        unsafe { s.store(at, x) }
    }
    #[inline(always)]
    unsafe fn store_row<S: Simd>(s: S, at: *mut f32, first: S::F, second: S::F) {
        // Safety: the caller's promise.
        unsafe {
            s.store(at, first);
            s.store(at.add(S::LANES), second);
        }
    }
    #[inline(always)]
    unsafe fn stream<S: Simd>(s: S, at: *mut f32, x: S::F) {
        // Safety: the caller's promise.
        unsafe { s.stream(at, x) }
    }
    #[inline(always)]
    unsafe fn stream_row<S: Simd>(s: S, at: *mut f32, first: S::F, second: S::F) {
        // Safety: the caller's promise.
        unsafe {
            s.stream(at, first);
            s.stream(at.add(S::LANES), second);
        }
    }
    #[inline(always)]
    unsafe fn store_first<S: Simd>(s: S, at: *mut f32, n: usize, x: S::F) {
        // Safety: the caller's promise.
        unsafe { s.store_first(at, n, x) }
    }
    #[inline(always)]
    unsafe fn load_pair<S: Simd>(s: S, low: *const f32, high: *const f32) -> S::U {
        // Safety: the caller's promise.
        unsafe { s.pair(s.load(low), s.load(high)) }
    }
    #[inline(always)]
    unsafe fn load_row<S: Simd>(s: S, at: *const f32) -> S::U {
        // Safety: the caller's promise.
        unsafe { s.row(s.load(at), s.load(at.add(S::LANES))) }
    }
}

impl Stored for bf16 {
    #[cfg(test)]
    const EXACT: bool = false;

    #[inline(always)]
    unsafe fn load<S: Simd>(s: S, at: *const bf16) -> S::F {
        // Safety: the caller's promise.
        unsafe { s.load_bf16(at) }
    }
    #[inline(always)]
    unsafe fn load_first<S: Simd>(s: S, at: *const bf16, n: usize) -> S::F {
        // Safety: the caller's promise.
        unsafe { s.load_first_bf16(at, n) }
    }
    #[inline(always)]
    unsafe fn store<S: Simd>(s: S, at: *mut bf16, x: S::F) {
        // Safety: the caller's promise.
        unsafe { s.store_bf16(at, x) }
    }
    #[inline(always)]
    unsafe fn store_row<S: Simd>(s: S, at: *mut bf16, first: S::F, second: S::F) {
        // Safety: the caller's promise.
        unsafe { s.store_u(at.cast(), s.row(first, second)) }
    }
    #[inline(always)]
    unsafe fn stream<S: Simd>(s: S, at: *mut bf16, x: S::F) {
        // Half a vector: there is no instruction for it.
        // Safety: the caller's promise.
        unsafe { s.store_bf16(at, x) }
    }
    #[inline(always)]
    unsafe fn stream_row<S: Simd>(s: S, at: *mut bf16, first: S::F, second: S::F) {
        // Safety: the caller's promise.
        unsafe { s.stream_u(at.cast(), s.row(first, second)) }
    }
    #[inline(always)]
    unsafe fn store_first<S: Simd>(s: S, at: *mut bf16, n: usize, x: S::F) {
        // Safety: the caller's promise.
        unsafe { s.store_first_bf16(at, n, x) }
    }
    #[inline(always)]
    unsafe fn load_pair<S: Simd>(s: S, low: *const bf16, high: *const bf16) -> S::U {
        // Safety: the caller's promise.
        unsafe { s.pair_bf16(low, high) }
    }
    #[inline(always)]
    unsafe fn load_row<S: Simd>(s: S, at: *const bf16) -> S::U {
        // Safety: the caller's promise.
        unsafe { s.load_u(at.cast()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aligned::Aligned;
    use crate::isa::{Isa, Kernel};
    use crate::simd::{load, store, store_fence};

    /// Copies runs of `lanes` elements, the widest vector of a set if that is more than it has.
    struct Copy<'a, A, B> {
        from: &'a [A],
        lanes: usize,
        to: &'a mut [B],
    }

    impl<A: Real, B: Real> Kernel for Copy<'_, A, B> {
        type Output = ();
        #[inline(always)]
        fn run<S: Simd>(self, s: S) {
            let lanes = self.lanes.min(S::LANES);
            for at in (0..self.to.len()).step_by(lanes) {
                let n = lanes.min(self.to.len() - at);
                store(s, self.to, at, n, load(s, self.from, at, n));
            }
        }
    }

    /// Copies two vectors at a time, as far as there are two; streamed, `to` must be aligned.
    struct CopyRows<'a, A, B> {
        from: &'a [A],
        streamed: bool,
        to: &'a mut [B],
    }

    impl<A: Real, B: Real> Kernel for CopyRows<'_, A, B> {
        type Output = ();
        #[inline(always)]
        fn run<S: Simd>(self, s: S) {
            for (from, to) in self.from.chunks_exact(2 * S::LANES).zip(self.to.chunks_exact_mut(2 * S::LANES))
            {
                let (first, second) = (load(s, from, 0, S::LANES), load(s, from, S::LANES, S::LANES));
                // Safety: `to` has room for two vectors, and is aligned where that is needed.
                unsafe {
                    if self.streamed {
                        B::stream_row(s, to.as_mut_ptr(), first, second);
                    } else {
                        B::store_row(s, to.as_mut_ptr(), first, second);
                    }
                }
            }
            store_fence();
        }
    }

    /// Whole vectors of every set, one or two at a time, and every number of first lanes.
    fn copies<A: Real, B: Real>(from: &[A], zero: B, check: impl Fn(&str, &[B])) {
        for isa in Isa::present() {
            for lanes in 1..=16 {
                let mut to = vec![zero; from.len()];
                isa.dispatch(Copy { from, lanes, to: &mut to });
                check(&format!("{isa}, {lanes} lanes"), &to);
            }
            for streamed in [false, true] {
                let mut to = Aligned::zeros(from.len());
                isa.dispatch(CopyRows { from, streamed, to: &mut to });
                check(&format!("{isa}, two vectors, streamed: {streamed}"), &to);
            }
        }
    }

    #[test]
    fn every_bf16_is_loaded_as_the_number_it_is() {
        let all: Vec<bf16> = (0..=u16::MAX).map(bf16::from_bits).collect();
        copies(&all, 0f32, |what, loaded| {
            for (x, y) in all.iter().zip(loaded) {
                let same = x.to_f32() == *y || x.is_nan() && y.is_nan();
                assert!(same, "{what}: {x:?} is loaded as {y}");
            }
        });
    }

    #[test]
    fn every_set_rounds_to_the_nearest_bf16_and_to_the_even_one_of_two() {
        const LOW: [u32; 8] = [0, 1, 0x5555, 0x7fff, 0x8000, 0x8001, 0xaaaa, 0xffff];
        let high = 0..=u16::MAX as u32;
        let all: Vec<f32> = high.flat_map(|high| LOW.map(|low| f32::from_bits(high << 16 | low))).collect();
        copies(&all, bf16::ZERO, |what, stored| {
            for (x, y) in all.iter().zip(stored) {
                // A NaN keeps its sign and becomes a quiet one, as it does there; a subnormal number may become zero.
                let zero =
                    x.is_subnormal() && *y == bf16::ZERO && y.is_sign_negative() == x.is_sign_negative();
                assert!(y.to_bits() == bf16::from_f32(*x).to_bits() || zero, "{what}: {x} is stored as {y}");
            }
        });
    }

    #[test]
    fn storing_the_first_lanes_leaves_what_follows_alone() {
        for isa in Isa::present() {
            for n in 0..16 {
                let (from, mut to) = ([1f32; 16], [bf16::ZERO; 16]);
                isa.dispatch(Copy { from: &from[..n], lanes: 16, to: &mut to[..n] });
                let ones = to.iter().take_while(|x| **x == bf16::ONE).count();
                assert!(ones == n && to[n..].iter().all(|x| *x == bf16::ZERO), "{isa}, {n}: {to:?}");
            }
        }
    }
}
