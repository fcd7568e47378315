//! AVX2 with fused multiply-add: vectors of eight, sixteen registers.
#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "one contract for the file: the token proves that the instructions exist, and pointers are the caller's promise"
)]

use super::{Real, Simd};
use crate::isa::{Kernel, run_avx2};
use half::bf16;
use std::arch::x86_64::*;

/// Proof that the processor has AVX2 and FMA.
#[derive(Clone, Copy)]
pub(crate) struct Avx2(());

impl Avx2 {
    /// The token, if the processor has the instructions.
    pub(crate) fn detect() -> Option<Self> {
        (is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")).then_some(Avx2(()))
    }

    /// The token without detection.
    ///
    /// # Safety
    /// [`Self::detect`] must have succeeded.
    pub(crate) unsafe fn assume() -> Self {
        Avx2(())
    }
}

/// All bits set in the first `n` lanes.
#[inline(always)]
fn first(n: usize) -> __m256i {
    unsafe { _mm256_cmpgt_epi32(_mm256_set1_epi32(n as i32), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)) }
}

/// Sixteen bits of each lane into the upper half of it.
#[inline(always)]
fn widened(x: __m128i) -> __m256 {
    unsafe { low(_mm256_cvtepu16_epi32(x)) }
}

/// The lower half of each lane as the bf16 that it is.
#[inline(always)]
fn low(x: __m256i) -> __m256 {
    unsafe { _mm256_castsi256_ps(_mm256_slli_epi32::<16>(x)) }
}

/// Bits whose upper half is `x` rounded to the nearest bf16, halves to even. The lower half is anything. A NaN becomes a quiet NaN.
#[inline(always)]
fn rounded(x: __m256) -> __m256i {
    unsafe {
        let bits = _mm256_castps_si256(x);
        let odd = _mm256_and_si256(_mm256_srli_epi32::<16>(bits), _mm256_set1_epi32(1));
        let rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
        let quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x0040_0000));
        let nan = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_UNORD_Q>(x, x));
        _mm256_blendv_epi8(rounded, quiet, nan)
    }
}

/// The nearest bf16 of each lane.
#[inline(always)]
fn nearest(x: __m256) -> __m128i {
    unsafe {
        let whole = _mm256_srli_epi32::<16>(rounded(x));
        // Packing works on each half of the register.
        let packed = _mm256_packus_epi32(whole, whole);
        _mm256_castsi256_si128(_mm256_permute4x64_epi64::<0b1000>(packed))
    }
}

impl Simd for Avx2 {
    type F = __m256;
    type U = __m256i;
    type M = __m256;
    const LANES: usize = 8;
    const TILE_ROWS: usize = 6;

    #[inline(always)]
    fn call<K: Kernel>(self, kernel: K) -> K::Output {
        unsafe { run_avx2(kernel, self) }
    }
    #[inline(always)]
    fn splat(self, x: f32) -> __m256 {
        unsafe { _mm256_set1_ps(x) }
    }
    #[inline(always)]
    unsafe fn load(self, at: *const f32) -> __m256 {
        unsafe { _mm256_loadu_ps(at) }
    }
    #[inline(always)]
    unsafe fn load_first(self, at: *const f32, n: usize) -> __m256 {
        unsafe { _mm256_maskload_ps(at, first(n)) }
    }
    #[inline(always)]
    unsafe fn store(self, at: *mut f32, x: __m256) {
        unsafe { _mm256_storeu_ps(at, x) }
    }
    #[inline(always)]
    unsafe fn stream(self, at: *mut f32, x: __m256) {
        unsafe { _mm256_stream_ps(at, x) }
    }
    #[inline(always)]
    unsafe fn store_first(self, at: *mut f32, n: usize, x: __m256) {
        unsafe { _mm256_maskstore_ps(at, first(n), x) }
    }
    #[inline(always)]
    unsafe fn load_bf16(self, at: *const bf16) -> __m256 {
        unsafe { widened(_mm_loadu_si128(at.cast())) }
    }
    #[inline(always)]
    unsafe fn load_first_bf16(self, at: *const bf16, n: usize) -> __m256 {
        // There is no masked load of sixteen bits.
        let mut values = [bf16::ZERO; 8];
        unsafe {
            values.as_mut_ptr().copy_from_nonoverlapping(at, n);
            self.load_bf16(values.as_ptr())
        }
    }
    #[inline(always)]
    unsafe fn store_bf16(self, at: *mut bf16, x: __m256) {
        unsafe { _mm_storeu_si128(at.cast(), nearest(x)) }
    }
    #[inline(always)]
    unsafe fn store_first_bf16(self, at: *mut bf16, n: usize, x: __m256) {
        let mut values = [bf16::ZERO; 8];
        unsafe {
            self.store_bf16(values.as_mut_ptr(), x);
            at.copy_from_nonoverlapping(values.as_ptr(), n);
        }
    }
    #[inline(always)]
    unsafe fn transpose_rows<T: Real>(self, row: impl Fn(usize) -> *const T, to: *mut f32, to_stride: usize) {
        unsafe {
            let mut r = [_mm256_setzero_ps(); 8];
            for i in 0..8 {
                r[i] = T::load(self, row(i));
            }
            // Pairs of rows interleaved, then pairs of pairs, then the halves of the register exchanged.
            let mut two = [_mm256_setzero_ps(); 8];
            for i in 0..8 {
                let (a, b) = (r[i & !1], r[i | 1]);
                two[i] = if i & 1 == 0 { _mm256_unpacklo_ps(a, b) } else { _mm256_unpackhi_ps(a, b) };
            }
            let mut four = [_mm256_setzero_ps(); 8];
            for i in 0..8 {
                let (group, column) = (i & !3, i & 3);
                let (a, b) = (two[group + column / 2], two[group + 2 + column / 2]);
                four[i] = if column & 1 == 0 {
                    _mm256_shuffle_ps::<0x44>(a, b)
                } else {
                    _mm256_shuffle_ps::<0xee>(a, b)
                };
            }
            for column in 0..4 {
                let (a, b) = (four[column], four[4 + column]);
                _mm256_storeu_ps(to.add(column * to_stride), _mm256_permute2f128_ps::<0x20>(a, b));
                _mm256_storeu_ps(to.add((column + 4) * to_stride), _mm256_permute2f128_ps::<0x31>(a, b));
            }
        }
    }

    #[inline(always)]
    fn add(self, a: __m256, b: __m256) -> __m256 {
        unsafe { _mm256_add_ps(a, b) }
    }
    #[inline(always)]
    fn sub(self, a: __m256, b: __m256) -> __m256 {
        unsafe { _mm256_sub_ps(a, b) }
    }
    #[inline(always)]
    fn mul(self, a: __m256, b: __m256) -> __m256 {
        unsafe { _mm256_mul_ps(a, b) }
    }
    #[inline(always)]
    fn div(self, a: __m256, b: __m256) -> __m256 {
        unsafe { _mm256_div_ps(a, b) }
    }
    #[inline(always)]
    fn fma(self, a: __m256, b: __m256, c: __m256) -> __m256 {
        unsafe { _mm256_fmadd_ps(a, b, c) }
    }
    #[inline(always)]
    fn max(self, a: __m256, b: __m256) -> __m256 {
        unsafe { _mm256_max_ps(a, b) }
    }
    #[inline(always)]
    fn min(self, a: __m256, b: __m256) -> __m256 {
        unsafe { _mm256_min_ps(a, b) }
    }
    #[inline(always)]
    fn sqrt(self, a: __m256) -> __m256 {
        unsafe { _mm256_sqrt_ps(a) }
    }
    #[inline(always)]
    fn round(self, a: __m256) -> __m256 {
        unsafe { _mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(a) }
    }
    #[inline(always)]
    fn pow2(self, n: __m256) -> __m256 {
        unsafe {
            let exponent = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
            _mm256_castsi256_ps(_mm256_slli_epi32::<23>(exponent))
        }
    }
    #[inline(always)]
    fn lt(self, a: __m256, b: __m256) -> __m256 {
        unsafe { _mm256_cmp_ps::<_CMP_LT_OQ>(a, b) }
    }
    #[inline(always)]
    fn select(self, mask: __m256, a: __m256, b: __m256) -> __m256 {
        unsafe { _mm256_blendv_ps(b, a, mask) }
    }
    #[inline(always)]
    fn fold(self, mut a: __m256, period: usize) -> __m256 {
        unsafe {
            if period < 8 {
                a = _mm256_add_ps(a, _mm256_permute2f128_ps::<1>(a, a));
            }
            if period < 4 {
                a = _mm256_add_ps(a, _mm256_permute_ps::<0b01_00_11_10>(a));
            }
            if period < 2 {
                a = _mm256_add_ps(a, _mm256_permute_ps::<0b10_11_00_01>(a));
            }
            a
        }
    }
    #[inline(always)]
    fn sum(self, a: __m256) -> f32 {
        unsafe {
            let four = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps::<1>(a));
            let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
        }
    }
    #[inline(always)]
    fn greatest(self, a: __m256) -> f32 {
        unsafe {
            let four = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps::<1>(a));
            let two = _mm_max_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)))
        }
    }

    #[inline(always)]
    fn splat_u(self, x: u32) -> __m256i {
        unsafe { _mm256_set1_epi32(x as i32) }
    }
    #[inline(always)]
    fn iota(self) -> __m256i {
        unsafe { _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7) }
    }
    #[inline(always)]
    fn add_u(self, a: __m256i, b: __m256i) -> __m256i {
        unsafe { _mm256_add_epi32(a, b) }
    }
    #[inline(always)]
    fn mul_u(self, a: __m256i, b: __m256i) -> __m256i {
        unsafe { _mm256_mullo_epi32(a, b) }
    }
    #[inline(always)]
    fn xor_u(self, a: __m256i, b: __m256i) -> __m256i {
        unsafe { _mm256_xor_si256(a, b) }
    }
    #[inline(always)]
    fn shr_u<const BITS: i32>(self, a: __m256i) -> __m256i {
        unsafe { _mm256_srli_epi32::<BITS>(a) }
    }
    #[inline(always)]
    fn shl_u<const BITS: i32>(self, a: __m256i) -> __m256i {
        unsafe { _mm256_slli_epi32::<BITS>(a) }
    }
    #[inline(always)]
    fn lt_u(self, a: __m256i, b: __m256i) -> __m256 {
        unsafe { _mm256_castsi256_ps(_mm256_cmpgt_epi32(b, a)) }
    }

    #[inline(always)]
    unsafe fn load_u(self, at: *const u32) -> __m256i {
        unsafe { _mm256_loadu_si256(at.cast()) }
    }
    #[inline(always)]
    unsafe fn store_u(self, at: *mut u32, x: __m256i) {
        unsafe { _mm256_storeu_si256(at.cast(), x) }
    }
    #[inline(always)]
    unsafe fn stream_u(self, at: *mut u32, x: __m256i) {
        unsafe { _mm256_stream_si256(at.cast(), x) }
    }
    #[inline(always)]
    fn nearest_bf16(self, x: __m256) -> __m256 {
        unsafe {
            let bits = _mm256_add_epi32(_mm256_castps_si256(x), _mm256_set1_epi32(0x8000));
            _mm256_castsi256_ps(_mm256_and_si256(bits, _mm256_set1_epi32(0xffff_0000u32 as i32)))
        }
    }
    #[inline(always)]
    fn pair(self, low: __m256, high: __m256) -> __m256i {
        unsafe {
            let (low, high) = (rounded(low), rounded(high));
            _mm256_blend_epi16::<0xaa>(_mm256_srli_epi32::<16>(low), high)
        }
    }
    #[inline(always)]
    unsafe fn pair_bf16(self, low: *const bf16, high: *const bf16) -> __m256i {
        unsafe {
            let low = _mm256_cvtepu16_epi32(_mm_loadu_si128(low.cast()));
            let high = _mm256_cvtepu16_epi32(_mm_loadu_si128(high.cast()));
            _mm256_or_si256(low, _mm256_slli_epi32::<16>(high))
        }
    }
    #[inline(always)]
    fn row(self, first: __m256, second: __m256) -> __m256i {
        unsafe {
            let (first, second) =
                (_mm256_srli_epi32::<16>(rounded(first)), _mm256_srli_epi32::<16>(rounded(second)));
            // Packing works on each half of the register: the middle quarters change places.
            _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packus_epi32(first, second))
        }
    }
    #[inline(always)]
    fn dot(self, sum: __m256, a: __m256i, b: __m256i) -> __m256 {
        unsafe {
            let high = _mm256_set1_epi32(0xffff_0000u32 as i32);
            let sum = _mm256_fmadd_ps(low(a), low(b), sum);
            let (a, b) = (_mm256_and_si256(a, high), _mm256_and_si256(b, high));
            _mm256_fmadd_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), sum)
        }
    }
    #[inline(always)]
    fn dot4(self, sum: __m256i, a: __m256i, b: __m256i) -> __m256i {
        unsafe {
            let a_even = _mm256_srai_epi16::<8>(_mm256_slli_epi16::<8>(a));
            dot_halves(sum, a_even, _mm256_srai_epi16::<8>(a), b)
        }
    }
    #[inline(always)]
    fn dot4_unsigned(self, sum: __m256i, a: __m256i, b: __m256i) -> __m256i {
        unsafe {
            let a_even = _mm256_and_si256(a, _mm256_set1_epi16(0xff));
            dot_halves(sum, a_even, _mm256_srli_epi16::<8>(a), b)
        }
    }
    #[inline(always)]
    fn transpose_bytes(self, [a, b, c, d]: [__m256i; 4]) -> [__m256i; 4] {
        unsafe {
            let (ab, cd) = (_mm256_unpacklo_epi8(a, b), _mm256_unpacklo_epi8(c, d));
            let (ab_high, cd_high) = (_mm256_unpackhi_epi8(a, b), _mm256_unpackhi_epi8(c, d));
            [
                _mm256_unpacklo_epi16(ab, cd),
                _mm256_unpackhi_epi16(ab, cd),
                _mm256_unpacklo_epi16(ab_high, cd_high),
                _mm256_unpackhi_epi16(ab_high, cd_high),
            ]
        }
    }
    #[inline(always)]
    fn whole(self, x: __m256i) -> __m256 {
        unsafe { _mm256_cvtepi32_ps(x) }
    }
    #[inline(always)]
    fn nearest_u(self, x: __m256) -> __m256i {
        unsafe { _mm256_cvtps_epi32(x) }
    }
    #[inline(always)]
    unsafe fn store_i8(self, at: *mut i8, x: __m256) {
        unsafe {
            let whole = _mm256_cvtps_epi32(x);
            let halves = _mm_packs_epi32(_mm256_castsi256_si128(whole), _mm256_extracti128_si256::<1>(whole));
            _mm_storel_epi64(at.cast(), _mm_packs_epi16(halves, halves));
        }
    }
}

/// `sum + Σ a·b` over the four signed bytes of each lane of `b`, with `a` as numbers of 16 bits. Products are added in pairs.
#[inline(always)]
fn dot_halves(sum: __m256i, a_even: __m256i, a_odd: __m256i, b: __m256i) -> __m256i {
    unsafe {
        let (b_even, b_odd) = (_mm256_srai_epi16::<8>(_mm256_slli_epi16::<8>(b)), _mm256_srai_epi16::<8>(b));
        let pairs = _mm256_add_epi32(_mm256_madd_epi16(a_even, b_even), _mm256_madd_epi16(a_odd, b_odd));
        _mm256_add_epi32(sum, pairs)
    }
}
