//! Functions that the processor does not have, as polynomials over vectors.

use crate::simd::Simd;
use std::f32::consts::FRAC_2_SQRT_PI;

/// `e^x` to within 2 units in the last place for `x` from -87.336 to 88.376. Below, where the result would be
/// subnormal, it is exactly zero; above it stays at `e^88.376`, some 2.4e38, and never becomes infinite.
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
    // Those of Cephes' `expf`, from r⁷ down to r²: near Taylor's, bent to the interval but for the last.
    const P: [f32; 6] = [1.987_569_1e-4, 1.398_2e-3, 8.333_452e-3, 4.166_579_6e-2, 0.166_666_66, 0.5];

    // A comparison with a NaN answers with its second operand, so that a NaN comes through to the result.
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

/// `erf x` to within 3e-7: its series near zero, Abramowitz and Stegun's formula 7.1.26 elsewhere.
#[inline(always)]
pub(crate) fn erf<S: Simd>(s: S, x: S::F) -> S::F {
    const P: [f32; 5] = [1.061_405_4, -1.453_152, 1.421_413_7, -0.284_496_74, 0.254_829_6];
    // 2/√π · (-1)ⁿ / (n! (2n + 1)), n from 6 down to 0.
    const SERIES: [f32; 7] = [
        1.205_533_3e-4,
        -8.548_327e-4,
        5.223_977_6e-3,
        -2.686_617e-2,
        0.112_837_92,
        -0.376_126_4,
        FRAC_2_SQRT_PI,
    ];
    let square = s.mul(x, x);
    let mut near = s.splat(SERIES[0]);
    for coefficient in &SERIES[1..] {
        near = s.fma(near, square, s.splat(*coefficient));
    }
    let near = s.mul(near, x);
    let one = s.splat(1.0);
    let negative = s.lt(x, s.splat(0.0));
    let size = s.select(negative, s.sub(s.splat(0.0), x), x);
    let t = s.div(one, s.fma(size, s.splat(0.327_591_1), one));
    let mut p = s.splat(P[0]);
    for coefficient in &P[1..] {
        p = s.fma(p, t, s.splat(*coefficient));
    }
    let tail = s.mul(s.mul(p, t), exp(s, s.sub(s.splat(0.0), square)));
    let far = s.sub(one, tail);
    let far = s.select(negative, s.sub(s.splat(0.0), far), far);
    s.select(s.lt(square, s.splat(0.45)), near, far)
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
                assert!((y as f64 - crate::testing::erf(*x as f64)).abs() < 3e-7, "{isa}: erf({x}) = {y}");
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
