//! Functions that the processor does not have, as polynomials over vectors.

use crate::simd::Simd;
use std::f32::consts::FRAC_2_SQRT_PI;

/// `e^x` to within 2 units in the last place for `x` from -87.336 to 88.376. Below, where the result would be subnormal, it is exactly
/// zero. Above, it stays at `e^88.376`, about 2.4e38, and never becomes infinite.
///
/// `x = n·ln 2 + r` with `|r| ≤ ln 2 / 2`, a polynomial of degree 7 for `e^r`, and `2^n` put into the exponent.
#[inline(always)]
pub(crate) fn exp<S: Simd>(s: S, x: S::F) -> S::F {
    const LOG2_E: f32 = std::f32::consts::LOG2_E;
    // ln 2 in two parts, so that n·ln 2 loses nothing: the first has few enough bits for an exact product.
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    const LOWEST: f32 = -87.336_54;
    const HIGHEST: f32 = 88.376_26;
    // The coefficients of Cephes' `expf`, from r⁷ down to r²: near Taylor's, adapted to the interval.
    const P: [f32; 6] = [1.987_569_1e-4, 1.398_2e-3, 8.333_452e-3, 4.166_579_6e-2, 0.166_666_66, 0.5];

    // `max` and `min` return their second operand if either is NaN. So a NaN gets through to the result.
    let clamped = s.max(s.splat(LOWEST), s.min(s.splat(HIGHEST), x));
    let n = s.round(s.mul(clamped, s.splat(LOG2_E)));
    let r = s.fma(n, s.splat(-LN_2_HIGH), clamped);
    let r = s.fma(n, s.splat(-LN_2_LOW), r);
    let mut p = s.splat(P[0]);
    for coefficient in &P[1..] {
        p = s.fma(p, r, s.splat(*coefficient));
    }
    let p = s.fma(s.mul(p, r), r, s.add(r, s.splat(1.0)));
    let y = s.mul(p, s.pow2(n));
    s.select(s.lt(x, s.splat(LOWEST)), s.splat(0.0), y)
}

/// `2^x` with a relative error below 1/300,000 for `x` up to 127. It takes a third less time than [`exp`]. Below -126.5 it is exactly
/// zero.
///
/// `x = n + r` with `|r| ≤ 1/2`, and the polynomial of degree 4 that is nearest to `2^r`.
#[inline(always)]
pub(crate) fn exp2_roughly<S: Simd>(s: S, x: S::F) -> S::F {
    const P: [f32; 5] = [9.570_102e-3, 5.591_786_3e-2, 0.240_247_44, 0.693_121_8, 0.999_999_3];
    // `pow2(-127)` is zero. `max` and `min` return their second operand if either is NaN.
    let clamped = s.max(s.splat(-127.0), x);
    let n = s.round(clamped);
    let r = s.sub(clamped, n);
    let mut p = s.splat(P[0]);
    for coefficient in &P[1..] {
        p = s.fma(p, r, s.splat(*coefficient));
    }
    s.mul(p, s.pow2(n))
}

/// `tanh x`: an odd polynomial near zero (Cephes' `tanhf`), `1 - 2 / (e^{2x} + 1)` elsewhere.
#[inline(always)]
pub(crate) fn tanh<S: Simd>(s: S, x: S::F) -> S::F {
    const P: [f32; 5] = [-5.704_988_7e-3, 2.063_909e-2, -5.373_971_6e-2, 0.133_314_4, -0.333_332_8];
    let square = s.mul(x, x);
    let mut p = s.splat(P[0]);
    for coefficient in &P[1..] {
        p = s.fma(p, square, s.splat(*coefficient));
    }
    let near = s.fma(s.mul(p, square), x, x);
    let far = s.sub(s.splat(1.0), s.div(s.splat(2.0), s.add(exp(s, s.add(x, x)), s.splat(1.0))));
    s.select(s.lt(square, s.splat(0.390_625)), near, far)
}

/// `erf x` to within 5e-7: `x·P(x²)/Q(x²)`, the quotient with the least relative error. From 4 on it is 1.
#[inline(always)]
pub(crate) fn erf<S: Simd>(s: S, x: S::F) -> S::F {
    const LAST: f32 = 4.0;
    // From x¹⁰ down to 1.
    const P: [f32; 6] =
        [2.050_090_4e-6, 2.848_812_1e-4, 3.765_566_3e-3, 5.274_856e-2, 0.190_405_34, FRAC_2_SQRT_PI];
    const Q: [f32; 6] = [3.809_167e-5, 1.162_522_6e-3, 1.496_911_3e-2, 0.114_108_64, 0.502_075_1, 1.0];
    // `max` and `min` return their second operand if either is NaN.
    let x = s.max(s.splat(-LAST), s.min(s.splat(LAST), x));
    let square = s.mul(x, x);
    let (mut p, mut q) = (s.splat(P[0]), s.splat(Q[0]));
    for i in 1..P.len() {
        p = s.fma(p, square, s.splat(P[i]));
        q = s.fma(q, square, s.splat(Q[i]));
    }
    s.max(s.splat(-1.0), s.min(s.splat(1.0), s.div(s.mul(x, p), q)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::{Isa, Kernel};
    use crate::simd::{for_vectors, load, store};

    struct Map<'a> {
        name: &'a str,
        x: &'a [f32],
        y: &'a mut [f32],
    }

    impl Kernel for Map<'_> {
        type Output = ();
        #[inline(always)]
        fn run<S: Simd>(self, s: S) {
            for_vectors(
                s,
                self.x.len(),
                #[inline(always)]
                |at, n| {
                    let x = load(s, self.x, at, n);
                    let y = match self.name {
                        "exp" => exp(s, x),
                        "exp2_roughly" => exp2_roughly(s, x),
                        "tanh" => tanh(s, x),
                        _ => erf(s, x),
                    };
                    store(s, self.y, at, n, y);
                },
            );
        }
    }

    fn map(isa: Isa, name: &str, x: &[f32]) -> Vec<f32> {
        let mut y = vec![0.0; x.len()];
        isa.dispatch(Map { name, x, y: &mut y });
        y
    }

    #[test]
    fn functions_match_double_precision() {
        let x: Vec<f32> = (-3900..3900).map(|i| i as f32 * 1e-3 + 3e-4).collect();
        for isa in Isa::present() {
            for (x, y) in x.iter().zip(map(isa, "tanh", &x)) {
                assert!((y as f64 / (*x as f64).tanh() - 1.0).abs() < 4e-7, "{isa}: tanh({x}) = {y}");
            }
            for (x, y) in x.iter().zip(map(isa, "erf", &x)) {
                assert!((y as f64 - crate::testing::erf(*x as f64)).abs() < 5e-7, "{isa}: erf({x}) = {y}");
            }
        }
    }

    #[test]
    fn the_exponential_is_within_two_units_in_the_last_place() {
        let fine = (-3900..3900).map(|i| i as f32 * 1e-3 + 3e-4);
        let wide = (-87_330..88_370).map(|i| i as f32 * 1e-3);
        let x: Vec<f32> = fine.chain(wide).chain([-87.336_5, 88.376_2]).collect();
        for isa in Isa::present() {
            for (x, y) in x.iter().zip(map(isa, "exp", &x)) {
                let expected = (*x as f64).exp();
                let unit = ((expected as f32).next_up() - expected as f32) as f64;
                assert!((y as f64 - expected).abs() <= 2.0 * unit, "{isa}: exp({x}) = {y}, not {expected}");
            }
        }
    }

    #[test]
    fn powers_of_two_are_as_exact_as_promised() {
        let x: Vec<f32> = (-126_400..0).map(|i| i as f32 * 1e-3).collect();
        for isa in Isa::present() {
            for (x, y) in x.iter().zip(map(isa, "exp2_roughly", &x)) {
                assert!((y as f64 / (*x as f64).exp2() - 1.0).abs() < 3.3e-6, "{isa}: 2^{x} = {y}");
            }
            let y = map(isa, "exp2_roughly", &[f32::NEG_INFINITY, -1000.0, -126.6, f32::NAN]);
            assert!(y[..3] == [0.0; 3] && y[3].is_nan(), "{isa}: {y:?}");
        }
    }

    #[test]
    fn the_ends_are_exact() {
        for isa in Isa::present() {
            let y = map(isa, "exp", &[f32::NEG_INFINITY, -1000.0, -87.337, 0.0]);
            assert_eq!(y, [0.0, 0.0, 0.0, 1.0], "{isa}");
            let y = map(isa, "exp", &[88.377, 1000.0, f32::INFINITY]);
            assert!(y.iter().all(|x| (2.4e38..2.5e38).contains(x) && *x == y[0]), "{isa}: {y:?}");
            assert!(map(isa, "exp", &[f32::NAN])[0].is_nan(), "{isa}");
            assert_eq!(map(isa, "tanh", &[-50.0, 0.0, 50.0]), [-1.0, 0.0, 1.0], "{isa}");
        }
    }
}
