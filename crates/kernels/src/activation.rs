//! Activation functions and their slopes.
//!
//! `y = f(x)` element by element, and `dx = dy · f'(x)`. The formulas also run inside matrix products, on
//! results that have just been written and are still in the L1 cache: `Activation::apply`.

use crate::math::{erf, exp, tanh};
use crate::pass::{Map, map};
use crate::simd::Simd;
use crate::{Cpu, Real};

/// The functions that a feed-forward layer may have between its two products.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Activation {
    /// `max(0, x)`.
    Relu,
    /// `x · Φ(x)`, with Φ the distribution function of the normal distribution, by way of `erf`.
    Gelu,
    /// GELU by its approximation `x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³)))`.
    GeluTanh,
    /// `x / (1 + e^-x)`, also called swish.
    Silu,
    /// `tanh x`.
    Tanh,
    /// `1 / (1 + e^-x)`.
    Sigmoid,
    /// GELU by its approximation `x / (1 + e^(-1.702 x))`.
    QuickGelu,
    /// `max(0, x)²`.
    ReluSquared,
}

impl Activation {
    /// All of them.
    pub const ALL: [Activation; 8] = [
        Activation::Relu,
        Activation::Gelu,
        Activation::GeluTanh,
        Activation::Silu,
        Activation::Tanh,
        Activation::Sigmoid,
        Activation::QuickGelu,
        Activation::ReluSquared,
    ];
}

const CUBIC: f32 = 0.044_715;
/// How steep the logistic function in [`Activation::QuickGelu`] is.
const QUICK: f32 = 1.702;
/// √(2/π).
const ROOT: f32 = 0.797_884_6;

impl Activation {
    /// The function.
    #[inline(always)]
    pub(crate) fn apply<S: Simd>(self, s: S, x: S::F) -> S::F {
        let half = s.mul(x, s.splat(0.5));
        match self {
            // In this order of operands a NaN gets through.
            Activation::Relu => s.max(s.splat(0.0), x),
            Activation::Gelu => s.fma(half, erf(s, s.mul(x, s.splat(std::f32::consts::FRAC_1_SQRT_2))), half),
            Activation::GeluTanh => s.fma(half, bent_tanh(s, x), half),
            Activation::Silu => s.mul(x, sigmoid(s, x)),
            Activation::Tanh => tanh(s, x),
            Activation::Sigmoid => sigmoid(s, x),
            Activation::QuickGelu => s.mul(x, sigmoid(s, s.mul(x, s.splat(QUICK)))),
            Activation::ReluSquared => {
                let relu = s.max(s.splat(0.0), x);
                s.mul(relu, relu)
            }
        }
    }

    /// The derivative at the input `x`. That of [`Activation::Relu`] is the same at its output, so callers that have kept only `y` may
    /// pass it instead.
    #[inline(always)]
    pub(crate) fn slope<S: Simd>(self, s: S, x: S::F) -> S::F {
        let (half, one) = (s.splat(0.5), s.splat(1.0));
        let square = s.mul(x, x);
        match self {
            // `max` is 0 wherever it is used, but for a NaN.
            Activation::Relu => s.select(s.lt(s.splat(0.0), x), one, s.max(s.splat(0.0), x)),
            Activation::Gelu => {
                // Φ(x) + x φ(x).
                const DENSITY: f32 = 0.398_942_3;
                let erf = erf(s, s.mul(x, s.splat(std::f32::consts::FRAC_1_SQRT_2)));
                let density = s.mul(exp(s, s.mul(square, s.splat(-0.5))), s.splat(DENSITY));
                s.fma(x, density, s.fma(half, erf, half))
            }
            Activation::GeluTanh => {
                let t = bent_tanh(s, x);
                let inner = s.mul(s.fma(square, s.splat(3.0 * CUBIC), one), s.splat(ROOT));
                let steep = s.mul(s.mul(s.mul(x, half), s.sub(one, s.mul(t, t))), inner);
                s.add(s.fma(half, t, half), steep)
            }
            Activation::Silu => {
                let sigmoid = sigmoid(s, x);
                s.mul(sigmoid, s.fma(x, s.sub(one, sigmoid), one))
            }
            Activation::Tanh => {
                let t = tanh(s, x);
                s.sub(one, s.mul(t, t))
            }
            Activation::Sigmoid => {
                let y = sigmoid(s, x);
                s.mul(y, s.sub(one, y))
            }
            Activation::QuickGelu => {
                let steep = s.mul(x, s.splat(QUICK));
                let sigmoid = sigmoid(s, steep);
                s.mul(sigmoid, s.fma(steep, s.sub(one, sigmoid), one))
            }
            Activation::ReluSquared => s.mul(s.splat(2.0), s.max(s.splat(0.0), x)),
        }
    }
}

/// `y = f(x)`.
pub fn activate<T: Real>(cpu: &Cpu, activation: Activation, x: &[T], y: &mut [T]) {
    map(cpu, "activate", Apply(activation), [x], y);
}

/// `dx = dy · f'(x)`; for [`Activation::Relu`], `x` may be the output `y`.
pub fn activate_backward<T: Real>(cpu: &Cpu, activation: Activation, x: &[T], dy: &[T], dx: &mut [T]) {
    map(cpu, "activate_backward", Slope(activation), [x, dy], dx);
}

/// `tanh(√(2/π) · (x + 0.044715 x³))`.
#[inline(always)]
fn bent_tanh<S: Simd>(s: S, x: S::F) -> S::F {
    let factor = s.fma(s.mul(x, x), s.splat(CUBIC), s.splat(1.0));
    tanh(s, s.mul(s.mul(x, factor), s.splat(ROOT)))
}

/// `1 / (1 + e^-x)`.
#[inline(always)]
fn sigmoid<S: Simd>(s: S, x: S::F) -> S::F {
    let one = s.splat(1.0);
    s.div(one, s.add(one, exp(s, s.sub(s.splat(0.0), x))))
}

#[derive(Clone, Copy)]
struct Apply(Activation);

impl Map<1> for Apply {
    #[inline(always)]
    fn apply<S: Simd>(self, s: S, _: usize, [x]: [S::F; 1]) -> S::F {
        self.0.apply(s, x)
    }
}

#[derive(Clone, Copy)]
struct Slope(Activation);

impl Map<2> for Slope {
    #[inline(always)]
    fn apply<S: Simd>(self, s: S, _: usize, [x, dy]: [S::F; 2]) -> S::F {
        s.mul(dy, self.0.slope(s, x))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{self, LENGTHS, bits, check, cpus, gradient, normals, stored, wide, written};
    use half::bf16;

    const ALL: [Activation; 8] = Activation::ALL;

    fn reference(activation: Activation, x: f64) -> f64 {
        match activation {
            Activation::Relu => x.max(0.0),
            Activation::Gelu => x / 2.0 * (1.0 + testing::erf(x / 2f64.sqrt())),
            Activation::GeluTanh => {
                x / 2.0 * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3))).tanh())
            }
            Activation::Silu => x / (1.0 + (-x).exp()),
            Activation::Tanh => x.tanh(),
            Activation::Sigmoid => 1.0 / (1.0 + (-x).exp()),
            Activation::QuickGelu => x / (1.0 + (-1.702 * x).exp()),
            Activation::ReluSquared => x.max(0.0).powi(2),
        }
    }

    #[test]
    fn activations_and_their_gradients_match_double_precision() {
        fn test<T: Real>() {
            for activation in ALL {
                for len in LENGTHS {
                    let (x, dy) = (normals::<T>(1, len), normals(2, len));
                    let y: Vec<f64> = wide(&x).into_iter().map(|x| reference(activation, x)).collect();
                    check(&y, 1e-6, |cpu| written(len, |y| activate(cpu, activation, &x, y)));
                    let slope = |x: f64| gradient(&[x], |x| reference(activation, x[0]))[0];
                    let dx: Vec<f64> = wide(&x).iter().zip(wide(&dy)).map(|(&x, dy)| slope(x) * dy).collect();
                    check(&dx, 2e-6, |cpu| {
                        written(len, |dx| activate_backward(cpu, activation, &x, &dy, dx))
                    });
                }
            }
        }
        test::<f32>();
        test::<bf16>();
    }

    /// torch.nn.functional.{relu, gelu, gelu(approximate="tanh"), silu, tanh, sigmoid}(torch.tensor([-1., 1.])), and of
    /// transformers.activations.ACT2FN `quick_gelu` and `relu2`.
    #[test]
    fn known_values_are_those_of_pytorch() {
        let known = [
            [0.0, 1.0],
            [-0.158_655_25, 0.841_344_77],
            [-0.158_808_01, 0.841_191_99],
            [-0.268_941_42, 0.731_058_58],
            [-0.761_594_16, 0.761_594_16],
            [0.268_941_42, 0.731_058_58],
            [-0.154_204_23, 0.845_795_75],
            [0.0, 1.0],
        ];
        for (activation, expected) in ALL.into_iter().zip(known) {
            check(&expected, 5e-7, |cpu| written(2, |y| activate(cpu, activation, &[-1.0, 1.0], y)));
        }
    }

    #[test]
    fn large_inputs_saturate() {
        for cpu in cpus() {
            for activation in
                [Activation::Gelu, Activation::GeluTanh, Activation::Silu, Activation::QuickGelu]
            {
                let x = [-1e4, -100.0, 100.0, 1e4];
                let y = written(4, |y| activate(&cpu, activation, &x, y));
                assert!(y[..2].iter().all(|y| y.abs() < 1e-30), "{activation:?}: {y:?}");
                assert_eq!(y[2..], x[2..], "{activation:?}");
                let dx = written(4, |dx| activate_backward(&cpu, activation, &x, &[1.0; 4], dx));
                assert!(dx[..2].iter().all(|dx| dx.abs() < 1e-30), "{activation:?}: {dx:?}");
                assert_eq!(dx[2..], [1.0, 1.0], "{activation:?}");
            }
        }
    }

    #[test]
    fn what_is_not_a_number_comes_through() {
        fn test<T: Real>() {
            for cpu in cpus() {
                for activation in ALL {
                    let (x, dy) = (stored::<T>(&[f32::NAN; 17]), stored(&[1.0; 17]));
                    let y = written(17, |y| activate(&cpu, activation, &x, y));
                    let dx = written(17, |dx| activate_backward(&cpu, activation, &x, &dy, dx));
                    let lost = y.iter().chain(&dx).any(|x| !x.to_f32().is_nan());
                    assert!(!lost, "{}: {activation:?}", cpu.isa);
                }
            }
        }
        test::<f32>();
        test::<bf16>();
    }

    #[test]
    fn the_slope_of_relu_is_the_same_at_its_output() {
        fn test<T: Real>() {
            let (x, dy) = (normals::<T>(1, 100), normals(2, 100));
            for cpu in cpus() {
                let y = written(100, |y| activate(&cpu, Activation::Relu, &x, y));
                let at_input = written(100, |dx| activate_backward(&cpu, Activation::Relu, &x, &dy, dx));
                let at_output = written(100, |dx| activate_backward(&cpu, Activation::Relu, &y, &dy, dx));
                assert_eq!(bits(&at_input), bits(&at_output), "{}", cpu.isa);
            }
        }
        test::<f32>();
        test::<bf16>();
    }
}
