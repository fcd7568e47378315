//! AVX-512: vectors of sixteen, thirty-two registers, masks.
#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "one contract for the file: the token proves that the instructions exist, and pointers are the caller's promise"
)]

use super::{Real, Simd};
use crate::isa::{Kernel, run_avx512, run_avx512bf16};
use half::bf16;
use std::arch::x86_64::*;

/// Proof that the processor has AVX-512 F, BW, DQ and VL and, with `BF16`, the extension of that name and the one
/// for dot products of int8, VNNI: a processor that has the first has the second.
#[derive(Clone, Copy)]
pub(crate) struct Avx512<const BF16: bool>(());

impl<const BF16: bool> Avx512<BF16> {
    /// The token, if the processor has the instructions.
    pub(crate) fn detect() -> Option<Self> {
        let present = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && (!BF16 || is_x86_feature_detected!("avx512bf16") && is_x86_feature_detected!("avx512vnni"));
        present.then_some(Avx512(()))
    }

    /// The token without detection.
    ///
    /// # Safety
    /// [`Self::detect`] must have succeeded.
    pub(crate) unsafe fn assume() -> Self {
        Avx512(())
    }
}

#[inline(always)]
fn first(n: usize) -> __mmask16 {
    ((1u32 << n) - 1) as __mmask16
}

/// Sixteen bits of each lane into the upper half of it.
#[inline(always)]
fn widened(x: __m256i) -> __m512 {
    unsafe { low(_mm512_cvtepu16_epi32(x)) }
}

/// The lower half of each lane as the bf16 that it is.
#[inline(always)]
fn low(x: __m512i) -> __m512 {
    unsafe { _mm512_castsi512_ps(_mm512_slli_epi32::<16>(x)) }
}

/// Bits whose upper half is `x` rounded to the nearest bf16, halves to even. The lower half is anything. A NaN becomes a quiet NaN.
#[inline(always)]
fn rounded(x: __m512) -> __m512i {
    unsafe {
        let bits = _mm512_castps_si512(x);
        let odd = _mm512_and_si512(_mm512_srli_epi32::<16>(bits), _mm512_set1_epi32(1));
        let rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
        let nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(x, x);
        _mm512_mask_or_epi32(rounded, nan, bits, _mm512_set1_epi32(0x0040_0000))
    }
}

/// The nearest bf16 of each lane.
#[inline(always)]
fn nearest<const BF16: bool>(x: __m512) -> __m256i {
    unsafe {
        if BF16 {
            return std::mem::transmute::<__m256bh, __m256i>(_mm512_cvtneps_pbh(x));
        }
        _mm512_cvtepi32_epi16(_mm512_srli_epi32::<16>(rounded(x)))
    }
}

impl<const BF16: bool> Simd for Avx512<BF16> {
    type F = __m512;
    type U = __m512i;
    type M = __mmask16;
    const LANES: usize = 16;
    const TILE_ROWS: usize = 14;
    const BESIDE_TILES: bool = BF16;

    #[inline(always)]
    fn call<K: Kernel>(self, kernel: K) -> K::Output {
        unsafe { if BF16 { run_avx512bf16(kernel, Avx512(())) } else { run_avx512(kernel, Avx512(())) } }
    }
    #[inline(always)]
    fn splat(self, x: f32) -> __m512 {
        unsafe { _mm512_set1_ps(x) }
    }
    #[inline(always)]
    unsafe fn load(self, at: *const f32) -> __m512 {
        unsafe { _mm512_loadu_ps(at) }
    }
    #[inline(always)]
    unsafe fn load_first(self, at: *const f32, n: usize) -> __m512 {
        unsafe { _mm512_maskz_loadu_ps(first(n), at) }
    }
    #[inline(always)]
    unsafe fn store(self, at: *mut f32, x: __m512) {
        unsafe { _mm512_storeu_ps(at, x) }
    }
    #[inline(always)]
    unsafe fn stream(self, at: *mut f32, x: __m512) {
        unsafe { _mm512_stream_ps(at, x) }
    }
    #[inline(always)]
    unsafe fn store_first(self, at: *mut f32, n: usize, x: __m512) {
        unsafe { _mm512_mask_storeu_ps(at, first(n), x) }
    }
    #[inline(always)]
    unsafe fn load_bf16(self, at: *const bf16) -> __m512 {
        unsafe { widened(_mm256_loadu_si256(at.cast())) }
    }
    #[inline(always)]
    unsafe fn load_first_bf16(self, at: *const bf16, n: usize) -> __m512 {
        unsafe { widened(_mm256_maskz_loadu_epi16(first(n), at.cast())) }
    }
    #[inline(always)]
    unsafe fn store_bf16(self, at: *mut bf16, x: __m512) {
        unsafe { _mm256_storeu_si256(at.cast(), nearest::<BF16>(x)) }
    }
    #[inline(always)]
    unsafe fn store_first_bf16(self, at: *mut bf16, n: usize, x: __m512) {
        unsafe { _mm256_mask_storeu_epi16(at.cast(), first(n), nearest::<BF16>(x)) }
    }
    #[inline(always)]
    unsafe fn transpose_rows<T: Real>(self, row: impl Fn(usize) -> *const T, to: *mut f32, to_stride: usize) {
        unsafe {
            let mut r = [_mm512_setzero_ps(); 16];
            for i in 0..16 {
                r[i] = T::load(self, row(i));
            }
            // Inside each quarter of the register: pairs of rows interleaved, then pairs of pairs …
            let mut two = [_mm512_setzero_ps(); 16];
            for i in 0..16 {
                let (a, b) = (r[i & !1], r[i | 1]);
                two[i] = if i & 1 == 0 { _mm512_unpacklo_ps(a, b) } else { _mm512_unpackhi_ps(a, b) };
            }
            let mut four = [_mm512_setzero_ps(); 16];
            for i in 0..16 {
                let (group, column) = (i & !3, i & 3);
                let (a, b) = (two[group + column / 2], two[group + 2 + column / 2]);
                four[i] = if column & 1 == 0 {
                    _mm512_shuffle_ps::<0x44>(a, b)
                } else {
                    _mm512_shuffle_ps::<0xee>(a, b)
                };
            }
            // … so that `four[4g + c]` holds columns c, 4 + c, 8 + c, 12 + c of rows 4g to 4g + 3; then the quarters.
            for c in 0..4 {
                let (a, b, d, e) = (four[c], four[4 + c], four[8 + c], four[12 + c]);
                let (ab_even, ab_odd) =
                    (_mm512_shuffle_f32x4::<0x88>(a, b), _mm512_shuffle_f32x4::<0xdd>(a, b));
                let (de_even, de_odd) =
                    (_mm512_shuffle_f32x4::<0x88>(d, e), _mm512_shuffle_f32x4::<0xdd>(d, e));
                let columns = [
                    _mm512_shuffle_f32x4::<0x88>(ab_even, de_even),
                    _mm512_shuffle_f32x4::<0x88>(ab_odd, de_odd),
                    _mm512_shuffle_f32x4::<0xdd>(ab_even, de_even),
                    _mm512_shuffle_f32x4::<0xdd>(ab_odd, de_odd),
                ];
                for quarter in 0..4 {
                    _mm512_storeu_ps(to.add((4 * quarter + c) * to_stride), columns[quarter]);
                }
            }
        }
    }

    #[inline(always)]
    fn add(self, a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_add_ps(a, b) }
    }
    #[inline(always)]
    fn sub(self, a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_sub_ps(a, b) }
    }
    #[inline(always)]
    fn mul(self, a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_mul_ps(a, b) }
    }
    #[inline(always)]
    fn div(self, a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_div_ps(a, b) }
    }
    #[inline(always)]
    fn fma(self, a: __m512, b: __m512, c: __m512) -> __m512 {
        unsafe { _mm512_fmadd_ps(a, b, c) }
    }
    #[inline(always)]
    fn max(self, a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_max_ps(a, b) }
    }
    #[inline(always)]
    fn min(self, a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_min_ps(a, b) }
    }
    #[inline(always)]
    fn sqrt(self, a: __m512) -> __m512 {
        unsafe { _mm512_sqrt_ps(a) }
    }
    #[inline(always)]
    fn round(self, a: __m512) -> __m512 {
        unsafe { _mm512_roundscale_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(a) }
    }
    #[inline(always)]
    fn pow2(self, n: __m512) -> __m512 {
        unsafe {
            let exponent = _mm512_add_epi32(_mm512_cvtps_epi32(n), _mm512_set1_epi32(127));
            _mm512_castsi512_ps(_mm512_slli_epi32::<23>(exponent))
        }
    }
    #[inline(always)]
    fn lt(self, a: __m512, b: __m512) -> __mmask16 {
        unsafe { _mm512_cmp_ps_mask::<_CMP_LT_OQ>(a, b) }
    }
    #[inline(always)]
    fn select(self, mask: __mmask16, a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_mask_blend_ps(mask, b, a) }
    }
    #[inline(always)]
    fn fold(self, mut a: __m512, period: usize) -> __m512 {
        unsafe {
            if period < 16 {
                a = _mm512_add_ps(a, _mm512_shuffle_f32x4::<0b01_00_11_10>(a, a));
            }
            if period < 8 {
                a = _mm512_add_ps(a, _mm512_shuffle_f32x4::<0b10_11_00_01>(a, a));
            }
            if period < 4 {
                a = _mm512_add_ps(a, _mm512_permute_ps::<0b01_00_11_10>(a));
            }
            if period < 2 {
                a = _mm512_add_ps(a, _mm512_permute_ps::<0b10_11_00_01>(a));
            }
            a
        }
    }
    #[inline(always)]
    fn sum(self, a: __m512) -> f32 {
        unsafe {
            let eight = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps::<1>(a));
            let four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps::<1>(eight));
            let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
        }
    }
    #[inline(always)]
    fn greatest(self, a: __m512) -> f32 {
        unsafe { _mm512_reduce_max_ps(a) }
    }

    #[inline(always)]
    fn splat_u(self, x: u32) -> __m512i {
        unsafe { _mm512_set1_epi32(x as i32) }
    }
    #[inline(always)]
    fn iota(self) -> __m512i {
        unsafe { _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) }
    }
    #[inline(always)]
    fn add_u(self, a: __m512i, b: __m512i) -> __m512i {
        unsafe { _mm512_add_epi32(a, b) }
    }
    #[inline(always)]
    fn mul_u(self, a: __m512i, b: __m512i) -> __m512i {
        unsafe { _mm512_mullo_epi32(a, b) }
    }
    #[inline(always)]
    fn xor_u(self, a: __m512i, b: __m512i) -> __m512i {
        unsafe { _mm512_xor_si512(a, b) }
    }
    #[inline(always)]
    fn shr_u<const BITS: i32>(self, a: __m512i) -> __m512i {
        unsafe { _mm512_srl_epi32(a, _mm_cvtsi32_si128(BITS)) }
    }
    #[inline(always)]
    fn shl_u<const BITS: i32>(self, a: __m512i) -> __m512i {
        unsafe { _mm512_sll_epi32(a, _mm_cvtsi32_si128(BITS)) }
    }
    #[inline(always)]
    fn lt_u(self, a: __m512i, b: __m512i) -> __mmask16 {
        unsafe { _mm512_cmplt_epu32_mask(a, b) }
    }

    #[inline(always)]
    unsafe fn load_u(self, at: *const u32) -> __m512i {
        unsafe { _mm512_loadu_si512(at.cast()) }
    }
    #[inline(always)]
    unsafe fn store_u(self, at: *mut u32, x: __m512i) {
        unsafe { _mm512_storeu_si512(at.cast(), x) }
    }
    #[inline(always)]
    unsafe fn stream_u(self, at: *mut u32, x: __m512i) {
        unsafe { _mm512_stream_si512(at.cast(), x) }
    }
    #[inline(always)]
    unsafe fn multiply_rows<const ROWS: usize, const APART: usize>(
        self,
        a: *const f32,
        a_step: usize,
        b: *const f32,
        depth: usize,
        sums: &mut [[__m512; 2]; ROWS],
    ) {
        if ROWS != 14 || depth == 0 {
            return unsafe { super::multiply_rows::<Self, ROWS, APART>(self, a, a_step, b, depth, sums) };
        }
        let sums: &mut [[__m512; 2]] = sums;
        let sums = sums.try_into().expect("fourteen rows");
        unsafe { multiply_fourteen::<APART>(a, a_step, b, depth, sums) }
    }
    #[inline(always)]
    fn nearest_bf16(self, x: __m512) -> __m512 {
        unsafe {
            let bits = _mm512_add_epi32(_mm512_castps_si512(x), _mm512_set1_epi32(0x8000));
            _mm512_castsi512_ps(_mm512_and_si512(bits, _mm512_set1_epi32(0xffff_0000u32 as i32)))
        }
    }
    #[inline(always)]
    fn pair(self, low: __m512, high: __m512) -> __m512i {
        unsafe {
            if BF16 {
                let interleaved = _mm512_set_epi16(
                    31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6, 21, 5, 20, 4,
                    19, 3, 18, 2, 17, 1, 16, 0,
                );
                return _mm512_permutexvar_epi16(interleaved, self.row(low, high));
            }
            let (low, high) = (rounded(low), rounded(high));
            _mm512_mask_blend_epi16(0xaaaa_aaaa, _mm512_srli_epi32::<16>(low), high)
        }
    }
    #[inline(always)]
    unsafe fn pair_bf16(self, low: *const bf16, high: *const bf16) -> __m512i {
        unsafe {
            let low = _mm512_cvtepu16_epi32(_mm256_loadu_si256(low.cast()));
            let high = _mm512_cvtepu16_epi32(_mm256_loadu_si256(high.cast()));
            _mm512_or_si512(low, _mm512_slli_epi32::<16>(high))
        }
    }
    #[inline(always)]
    fn row(self, first: __m512, second: __m512) -> __m512i {
        unsafe {
            if BF16 {
                return std::mem::transmute::<__m512bh, __m512i>(_mm512_cvtne2ps_pbh(second, first));
            }
            let odd = _mm512_set_epi16(
                63, 61, 59, 57, 55, 53, 51, 49, 47, 45, 43, 41, 39, 37, 35, 33, 31, 29, 27, 25, 23, 21, 19,
                17, 15, 13, 11, 9, 7, 5, 3, 1,
            );
            _mm512_permutex2var_epi16(rounded(first), odd, rounded(second))
        }
    }
    #[inline(always)]
    fn dot(self, sum: __m512, a: __m512i, b: __m512i) -> __m512 {
        unsafe {
            if BF16 {
                let (a, b) = (
                    std::mem::transmute::<__m512i, __m512bh>(a),
                    std::mem::transmute::<__m512i, __m512bh>(b),
                );
                return _mm512_dpbf16_ps(sum, a, b);
            }
            let high = _mm512_set1_epi32(0xffff_0000u32 as i32);
            let sum = _mm512_fmadd_ps(low(a), low(b), sum);
            let (a, b) = (_mm512_and_si512(a, high), _mm512_and_si512(b, high));
            _mm512_fmadd_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b), sum)
        }
    }
    #[inline(always)]
    fn dot4(self, sum: __m512i, a: __m512i, b: __m512i) -> __m512i {
        unsafe {
            if BF16 {
                // The instruction takes the first operand as unsigned. So 128 is added to it, and its share of the sum is subtracted.
                let sign = _mm512_set1_epi8(-128);
                let shifted = _mm512_dpbusd_epi32(sum, _mm512_xor_si512(a, sign), b);
                return _mm512_sub_epi32(shifted, _mm512_dpbusd_epi32(_mm512_setzero_si512(), sign, b));
            }
            let a_even = _mm512_srai_epi16::<8>(_mm512_slli_epi16::<8>(a));
            dot_halves(sum, a_even, _mm512_srai_epi16::<8>(a), b)
        }
    }
    #[inline(always)]
    fn dot4_unsigned(self, sum: __m512i, a: __m512i, b: __m512i) -> __m512i {
        unsafe {
            if BF16 {
                return _mm512_dpbusd_epi32(sum, a, b);
            }
            let a_even = _mm512_and_si512(a, _mm512_set1_epi16(0xff));
            dot_halves(sum, a_even, _mm512_srli_epi16::<8>(a), b)
        }
    }
    #[inline(always)]
    fn transpose_bytes(self, [a, b, c, d]: [__m512i; 4]) -> [__m512i; 4] {
        unsafe {
            let (ab, cd) = (_mm512_unpacklo_epi8(a, b), _mm512_unpacklo_epi8(c, d));
            let (ab_high, cd_high) = (_mm512_unpackhi_epi8(a, b), _mm512_unpackhi_epi8(c, d));
            [
                _mm512_unpacklo_epi16(ab, cd),
                _mm512_unpackhi_epi16(ab, cd),
                _mm512_unpacklo_epi16(ab_high, cd_high),
                _mm512_unpackhi_epi16(ab_high, cd_high),
            ]
        }
    }
    #[inline(always)]
    fn whole(self, x: __m512i) -> __m512 {
        unsafe { _mm512_cvtepi32_ps(x) }
    }
    #[inline(always)]
    fn nearest_u(self, x: __m512) -> __m512i {
        unsafe { _mm512_cvtps_epi32(x) }
    }
    #[inline(always)]
    unsafe fn store_i8(self, at: *mut i8, x: __m512) {
        unsafe { _mm_storeu_si128(at.cast(), _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(x))) }
    }
}

/// `sum + Σ a·b` over the four signed bytes of each lane of `b`, with `a` as numbers of 16 bits. Products are added in pairs.
#[inline(always)]
fn dot_halves(sum: __m512i, a_even: __m512i, a_odd: __m512i, b: __m512i) -> __m512i {
    unsafe {
        let (b_even, b_odd) = (_mm512_srai_epi16::<8>(_mm512_slli_epi16::<8>(b)), _mm512_srai_epi16::<8>(b));
        let pairs = _mm512_add_epi32(_mm512_madd_epi16(a_even, b_even), _mm512_madd_epi16(a_odd, b_odd));
        _mm512_add_epi32(sum, pairs)
    }
}

/// Fourteen rows fill the registers. Each multiply-add broadcasts its number of `a` from memory. The compiler would load and broadcast it
/// once for both vectors, which is one more operation for every two multiply-adds.
///
/// # Safety
/// As for [`Simd::multiply_rows`], with a `depth` of at least one.
#[target_feature(enable = "avx512f")]
unsafe fn multiply_fourteen<const APART: usize>(
    a: *const f32,
    a_step: usize,
    b: *const f32,
    depth: usize,
    sums: &mut [[__m512; 2]; 14],
) {
    unsafe {
        std::arch::asm!(
            "2:",
            "vmovups zmm28, [{b}]",
            "vmovups zmm29, [{b} + 64]",
            "vfmadd231ps zmm0, zmm28, dword ptr [{a}]{{1to16}}",
            "vfmadd231ps zmm1, zmm29, dword ptr [{a}]{{1to16}}",
            "vfmadd231ps zmm2, zmm28, dword ptr [{a} + 1 * {apart}]{{1to16}}",
            "vfmadd231ps zmm3, zmm29, dword ptr [{a} + 1 * {apart}]{{1to16}}",
            "vfmadd231ps zmm4, zmm28, dword ptr [{a} + 2 * {apart}]{{1to16}}",
            "vfmadd231ps zmm5, zmm29, dword ptr [{a} + 2 * {apart}]{{1to16}}",
            "vfmadd231ps zmm6, zmm28, dword ptr [{a} + 3 * {apart}]{{1to16}}",
            "vfmadd231ps zmm7, zmm29, dword ptr [{a} + 3 * {apart}]{{1to16}}",
            "vfmadd231ps zmm8, zmm28, dword ptr [{a} + 4 * {apart}]{{1to16}}",
            "vfmadd231ps zmm9, zmm29, dword ptr [{a} + 4 * {apart}]{{1to16}}",
            "vfmadd231ps zmm10, zmm28, dword ptr [{a} + 5 * {apart}]{{1to16}}",
            "vfmadd231ps zmm11, zmm29, dword ptr [{a} + 5 * {apart}]{{1to16}}",
            "vfmadd231ps zmm12, zmm28, dword ptr [{a} + 6 * {apart}]{{1to16}}",
            "vfmadd231ps zmm13, zmm29, dword ptr [{a} + 6 * {apart}]{{1to16}}",
            "vfmadd231ps zmm14, zmm28, dword ptr [{a} + 7 * {apart}]{{1to16}}",
            "vfmadd231ps zmm15, zmm29, dword ptr [{a} + 7 * {apart}]{{1to16}}",
            "vfmadd231ps zmm16, zmm28, dword ptr [{a} + 8 * {apart}]{{1to16}}",
            "vfmadd231ps zmm17, zmm29, dword ptr [{a} + 8 * {apart}]{{1to16}}",
            "vfmadd231ps zmm18, zmm28, dword ptr [{a} + 9 * {apart}]{{1to16}}",
            "vfmadd231ps zmm19, zmm29, dword ptr [{a} + 9 * {apart}]{{1to16}}",
            "vfmadd231ps zmm20, zmm28, dword ptr [{a} + 10 * {apart}]{{1to16}}",
            "vfmadd231ps zmm21, zmm29, dword ptr [{a} + 10 * {apart}]{{1to16}}",
            "vfmadd231ps zmm22, zmm28, dword ptr [{a} + 11 * {apart}]{{1to16}}",
            "vfmadd231ps zmm23, zmm29, dword ptr [{a} + 11 * {apart}]{{1to16}}",
            "vfmadd231ps zmm24, zmm28, dword ptr [{a} + 12 * {apart}]{{1to16}}",
            "vfmadd231ps zmm25, zmm29, dword ptr [{a} + 12 * {apart}]{{1to16}}",
            "vfmadd231ps zmm26, zmm28, dword ptr [{a} + 13 * {apart}]{{1to16}}",
            "vfmadd231ps zmm27, zmm29, dword ptr [{a} + 13 * {apart}]{{1to16}}",
            "add {a}, {a_step}",
            "add {b}, 128",
            "dec {depth}",
            "jnz 2b",
            a = inout(reg) a => _,
            b = inout(reg) b => _,
            depth = inout(reg) depth => _,
            a_step = in(reg) 4 * a_step,
            apart = const 4 * APART,
            inout("zmm0") sums[0][0],
            inout("zmm1") sums[0][1],
            inout("zmm2") sums[1][0],
            inout("zmm3") sums[1][1],
            inout("zmm4") sums[2][0],
            inout("zmm5") sums[2][1],
            inout("zmm6") sums[3][0],
            inout("zmm7") sums[3][1],
            inout("zmm8") sums[4][0],
            inout("zmm9") sums[4][1],
            inout("zmm10") sums[5][0],
            inout("zmm11") sums[5][1],
            inout("zmm12") sums[6][0],
            inout("zmm13") sums[6][1],
            inout("zmm14") sums[7][0],
            inout("zmm15") sums[7][1],
            inout("zmm16") sums[8][0],
            inout("zmm17") sums[8][1],
            inout("zmm18") sums[9][0],
            inout("zmm19") sums[9][1],
            inout("zmm20") sums[10][0],
            inout("zmm21") sums[10][1],
            inout("zmm22") sums[11][0],
            inout("zmm23") sums[11][1],
            inout("zmm24") sums[12][0],
            inout("zmm25") sums[12][1],
            inout("zmm26") sums[13][0],
            inout("zmm27") sums[13][1],
            out("zmm28") _,
            out("zmm29") _,
            options(readonly, nostack),
        );
    }
}
