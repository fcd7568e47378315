//! Plain Rust on arrays of eight. It compiles on every processor, and the compiler uses vectors where it can.

use super::{Real, Simd};
use crate::isa::{Kernel, run_portable};
use half::bf16;

/// The token of the portable set, which every processor has.
#[derive(Clone, Copy)]
pub(crate) struct Portable;

const N: usize = 8;

#[inline(always)]
fn zip(a: [f32; N], b: [f32; N], f: impl Fn(f32, f32) -> f32) -> [f32; N] {
    std::array::from_fn(|i| f(a[i], b[i]))
}

#[inline(always)]
fn zip_u(a: [u32; N], b: [u32; N], f: impl Fn(u32, u32) -> u32) -> [u32; N] {
    std::array::from_fn(|i| f(a[i], b[i]))
}

/// Folds eight lanes as a tree: halves, quarters, the last two.
#[inline(always)]
fn tree(a: [f32; N], f: impl Fn(f32, f32) -> f32) -> f32 {
    let four: [f32; 4] = std::array::from_fn(|i| f(a[i], a[i + 4]));
    f(f(four[0], four[2]), f(four[1], four[3]))
}

/// The nearest `bf16`, halves to even, without a branch, so that the compiler can use vectors.
#[inline(always)]
fn nearest(x: f32) -> bf16 {
    let bits = x.to_bits();
    let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
    let quiet = bits >> 16 | 0x40;
    bf16::from_bits(if x.is_nan() { quiet } else { rounded } as u16)
}

#[inline(always)]
fn widened(x: bf16) -> f32 {
    f32::from_bits((x.to_bits() as u32) << 16)
}

impl Simd for Portable {
    type F = [f32; N];
    type U = [u32; N];
    type M = [bool; N];
    const LANES: usize = N;
    const TILE_ROWS: usize = 4;

    #[inline(always)]
    fn call<K: Kernel>(self, kernel: K) -> K::Output {
        run_portable(kernel)
    }
    #[inline(always)]
    fn splat(self, x: f32) -> Self::F {
        [x; N]
    }
    #[inline(always)]
    unsafe fn load(self, at: *const f32) -> Self::F {
        // Safety: the caller's promise.
        unsafe { at.cast::<[f32; N]>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn load_first(self, at: *const f32, n: usize) -> Self::F {
        // Safety: the caller's promise.
        std::array::from_fn(|i| if i < n { unsafe { *at.add(i) } } else { 0.0 })
    }
    #[inline(always)]
    unsafe fn store(self, at: *mut f32, x: Self::F) {
        // Safety: the caller's promise.
        unsafe { at.cast::<[f32; N]>().write_unaligned(x) }
    }
    #[inline(always)]
    unsafe fn store_first(self, at: *mut f32, n: usize, x: Self::F) {
        for i in 0..n {
            // Safety: the caller's promise.
            unsafe { *at.add(i) = x[i] }
        }
    }
    #[inline(always)]
    unsafe fn load_bf16(self, at: *const bf16) -> Self::F {
        // Safety: the caller's promise.
        unsafe { at.cast::<[bf16; N]>().read_unaligned() }.map(widened)
    }
    #[inline(always)]
    unsafe fn load_first_bf16(self, at: *const bf16, n: usize) -> Self::F {
        // Safety: the caller's promise.
        std::array::from_fn(|i| if i < n { widened(unsafe { *at.add(i) }) } else { 0.0 })
    }
    #[inline(always)]
    unsafe fn store_bf16(self, at: *mut bf16, x: Self::F) {
        // Safety: the caller's promise.
        unsafe { at.cast::<[bf16; N]>().write_unaligned(x.map(nearest)) }
    }
    #[inline(always)]
    unsafe fn store_first_bf16(self, at: *mut bf16, n: usize, x: Self::F) {
        for i in 0..n {
            // Safety: the caller's promise.
            unsafe { *at.add(i) = nearest(x[i]) }
        }
    }
    #[inline(always)]
    unsafe fn transpose_rows<T: Real>(self, row: impl Fn(usize) -> *const T, to: *mut f32, to_stride: usize) {
        for i in 0..N {
            for j in 0..N {
                // Safety: the caller's promise.
                unsafe { *to.add(j * to_stride + i) = (*row(i).add(j)).to_f32() }
            }
        }
    }

    #[inline(always)]
    fn add(self, a: Self::F, b: Self::F) -> Self::F {
        zip(a, b, |a, b| a + b)
    }
    #[inline(always)]
    fn sub(self, a: Self::F, b: Self::F) -> Self::F {
        zip(a, b, |a, b| a - b)
    }
    #[inline(always)]
    fn mul(self, a: Self::F, b: Self::F) -> Self::F {
        zip(a, b, |a, b| a * b)
    }
    #[inline(always)]
    fn div(self, a: Self::F, b: Self::F) -> Self::F {
        zip(a, b, |a, b| a / b)
    }
    /// Rounded twice, because a fused operation without an instruction for it is a slow library call.
    #[inline(always)]
    fn fma(self, a: Self::F, b: Self::F, c: Self::F) -> Self::F {
        std::array::from_fn(|i| a[i] * b[i] + c[i])
    }
    #[inline(always)]
    fn max(self, a: Self::F, b: Self::F) -> Self::F {
        zip(a, b, |a, b| if a > b { a } else { b })
    }
    #[inline(always)]
    fn min(self, a: Self::F, b: Self::F) -> Self::F {
        zip(a, b, |a, b| if a < b { a } else { b })
    }
    #[inline(always)]
    fn sqrt(self, a: Self::F) -> Self::F {
        a.map(f32::sqrt)
    }
    #[inline(always)]
    fn round(self, a: Self::F) -> Self::F {
        // Adding and taking away 1.5 · 2²³ leaves the nearest whole number, for |a| < 2²².
        const MAGIC: f32 = 12_582_912.0;
        a.map(|a| (a + MAGIC) - MAGIC)
    }
    #[inline(always)]
    fn pow2(self, n: Self::F) -> Self::F {
        n.map(|n| f32::from_bits(((n as i32 + 127) as u32) << 23))
    }
    #[inline(always)]
    fn lt(self, a: Self::F, b: Self::F) -> Self::M {
        std::array::from_fn(|i| a[i] < b[i])
    }
    #[inline(always)]
    fn select(self, mask: Self::M, a: Self::F, b: Self::F) -> Self::F {
        std::array::from_fn(|i| if mask[i] { a[i] } else { b[i] })
    }
    #[inline(always)]
    fn fold(self, mut a: Self::F, period: usize) -> Self::F {
        let mut apart = N / 2;
        while apart >= period {
            a = std::array::from_fn(|i| a[i] + a[i ^ apart]);
            apart /= 2;
        }
        a
    }
    #[inline(always)]
    fn sum(self, a: Self::F) -> f32 {
        tree(a, |a, b| a + b)
    }
    #[inline(always)]
    fn greatest(self, a: Self::F) -> f32 {
        tree(a, f32::max)
    }

    #[inline(always)]
    fn splat_u(self, x: u32) -> Self::U {
        [x; N]
    }
    #[inline(always)]
    fn iota(self) -> Self::U {
        std::array::from_fn(|i| i as u32)
    }
    #[inline(always)]
    fn add_u(self, a: Self::U, b: Self::U) -> Self::U {
        zip_u(a, b, u32::wrapping_add)
    }
    #[inline(always)]
    fn mul_u(self, a: Self::U, b: Self::U) -> Self::U {
        zip_u(a, b, u32::wrapping_mul)
    }
    #[inline(always)]
    fn xor_u(self, a: Self::U, b: Self::U) -> Self::U {
        zip_u(a, b, |a, b| a ^ b)
    }
    #[inline(always)]
    fn shr_u<const BITS: i32>(self, a: Self::U) -> Self::U {
        a.map(|a| a >> BITS)
    }
    #[inline(always)]
    fn shl_u<const BITS: i32>(self, a: Self::U) -> Self::U {
        a.map(|a| a << BITS)
    }
    #[inline(always)]
    fn lt_u(self, a: Self::U, b: Self::U) -> Self::M {
        std::array::from_fn(|i| a[i] < b[i])
    }

    #[inline(always)]
    unsafe fn load_u(self, at: *const u32) -> Self::U {
        // Safety: the caller's promise.
        unsafe { at.cast::<[u32; N]>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn store_u(self, at: *mut u32, x: Self::U) {
        // Safety: the caller's promise.
        unsafe { at.cast::<[u32; N]>().write_unaligned(x) }
    }
    #[inline(always)]
    fn nearest_bf16(self, x: Self::F) -> Self::F {
        x.map(|x| f32::from_bits(x.to_bits().wrapping_add(0x8000) & 0xffff_0000))
    }
    #[inline(always)]
    fn pair(self, low: Self::F, high: Self::F) -> Self::U {
        std::array::from_fn(|i| rounded(low[i]) | rounded(high[i]) << 16)
    }
    #[inline(always)]
    unsafe fn pair_bf16(self, low: *const bf16, high: *const bf16) -> Self::U {
        let bits = |x: *const bf16, i: usize| {
            // Safety: the caller's promise.
            unsafe { (*x.add(i)).to_bits() as u32 }
        };
        std::array::from_fn(|i| bits(low, i) | bits(high, i) << 16)
    }
    #[inline(always)]
    fn row(self, first: Self::F, second: Self::F) -> Self::U {
        std::array::from_fn(|i| {
            let (half, at) = if i < N / 2 { (first, 2 * i) } else { (second, 2 * i - N) };
            rounded(half[at]) | rounded(half[at + 1]) << 16
        })
    }
    #[inline(always)]
    fn dot(self, sum: Self::F, a: Self::U, b: Self::U) -> Self::F {
        let (low, high) = (|x: u32| f32::from_bits(x << 16), |x: u32| f32::from_bits(x & 0xffff_0000));
        std::array::from_fn(|i| sum[i] + low(a[i]) * low(b[i]) + high(a[i]) * high(b[i]))
    }
    #[inline(always)]
    fn dot4(self, sum: Self::U, a: Self::U, b: Self::U) -> Self::U {
        std::array::from_fn(|i| {
            let (a, b) = (a[i].to_ne_bytes(), b[i].to_ne_bytes());
            let product = |j: usize| a[j] as i8 as i32 * b[j] as i8 as i32;
            (sum[i] as i32 + product(0) + product(1) + product(2) + product(3)) as u32
        })
    }
    #[inline(always)]
    fn dot4_unsigned(self, sum: Self::U, a: Self::U, b: Self::U) -> Self::U {
        std::array::from_fn(|i| {
            let (a, b) = (a[i].to_ne_bytes(), b[i].to_ne_bytes());
            let product = |j: usize| a[j] as i32 * b[j] as i8 as i32;
            sum[i].wrapping_add((product(0) + product(1) + product(2) + product(3)) as u32)
        })
    }
    #[inline(always)]
    fn transpose_bytes(self, rows: [Self::U; 4]) -> [Self::U; 4] {
        // Lane `i` of vector `j` is byte `i % 4` of lane `j` of its sixteen bytes.
        let lane = |j: usize, i: usize| rows.map(|row| row[i / 4 * 4 + j].to_ne_bytes()[i % 4]);
        [0, 1, 2, 3].map(|j| std::array::from_fn(|i| u32::from_ne_bytes(lane(j, i))))
    }
    #[inline(always)]
    fn whole(self, x: Self::U) -> Self::F {
        x.map(|x| x as i32 as f32)
    }
    #[inline(always)]
    fn nearest_u(self, x: Self::F) -> Self::U {
        x.map(|x| x.round_ties_even() as u32)
    }
    #[inline(always)]
    unsafe fn store_i8(self, at: *mut i8, x: Self::F) {
        // Safety: the caller's promise.
        unsafe { at.cast::<[i8; N]>().write_unaligned(x.map(|x| x.round_ties_even() as i8)) }
    }
}

fn rounded(x: f32) -> u32 {
    nearest(x).to_bits().into()
}
