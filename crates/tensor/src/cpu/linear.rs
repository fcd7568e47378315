//! Products with weights.

use super::CpuBackend;
use super::profile::Share;
use super::view::{
    bias_for, by_type, data, f32s, linear_shape, matrix, order_of_outputs, pack, packed, quantised, weights,
};
use crate::backend::{Form, ProductOps, Raw, Role};
use crate::tensor::Tensor;
use attentive_kernels::activation::Activation;
use attentive_kernels::gemm::{self, BothWays, Epilogue, Operand, PackedWeights, Weights};

impl ProductOps for CpuBackend {
    fn linear(
        &self,
        x: &Tensor,
        w: &Tensor,
        bias: Option<&Tensor>,
        activation: Option<Activation>,
    ) -> Tensor {
        let shape = linear_shape("linear", x, w);
        let bias = bias.map(|bias| bias_for(w, bias));
        let epilogue = Epilogue { bias: bias.as_deref(), activation, ..Epilogue::default() };
        let y = self.profile.time(Share::Product, || {
            by_type!(x, T => self.build(shape, |y| match weights::<T>(w) {
                Weights::Int8(w) => {
                    let x = quantised::<T>(&self.cpu, x);
                    gemm::gemm_int8_columns(&self.cpu, &x, w, 0..w.outputs(), y, epilogue);
                }
                weights => T::times_weights(&self.cpu, matrix(x), weights, y, epilogue),
            }))
        });
        self.ordered(y, order_of_outputs(w).cloned())
    }

    fn prepare(&self, weights: Raw, form: Form, role: Role) -> Tensor {
        self.prepare_weights(weights, form, role)
    }

    fn logits(&self, x: &Tensor, w: &Tensor, bias: Option<&Tensor>) -> Tensor {
        let shape = linear_shape("logits", x, w);
        let epilogue = Epilogue { bias: bias.map(f32s), ..Epilogue::default() };
        self.profile.time(Share::Product, || {
            by_type!(x, T => self.build(shape, |y| {
                T::logits(&self.cpu, matrix(x), weights(w), y, epilogue);
            }))
        })
    }

    fn linear_backward_input(&self, dy: &Tensor, w: &Tensor, into: Option<Tensor>) -> Tensor {
        let (a, b) = (dy.shape(), w.shape());
        assert_eq!(a.cols(), b.rows(), "linear_backward_input: dy {a} and w {b} do not fit");
        self.profile.time(Share::Product, || {
            by_type!(dy, T => self.accumulate(into, a.with_cols(b.cols()), |dx, accumulate| {
                let epilogue = Epilogue { accumulate, ..Epilogue::default() };
                pack::<T>(&self.cpu, w);
                let packed = packed(w).and_then(BothWays::back);
                let w = packed.map_or_else(|| Weights::F32(matrix(w)), PackedWeights::all);
                T::back_through_weights(&self.cpu, matrix(dy), w, dx, epilogue);
            }))
        })
    }

    fn linear_backward_weight(&self, dy: &Tensor, x: &Tensor, into: Option<Tensor>) -> Tensor {
        let (a, b) = (dy.shape(), x.shape());
        assert_eq!(a.rows(), b.rows(), "linear_backward_weight: dy {a} and x {b} do not fit");
        self.profile.time(Share::Product, || {
            let shape = [a.cols(), b.cols()];
            by_type!(dy, T => {
                let (dy, x) = (matrix::<T>(dy).t(), matrix::<T>(x));
                match into {
                    None => self.build(shape, |dw| T::times_activations(&self.cpu, dy, x, dw)),
                    into @ Some(_) => self.accumulate(into, shape, |dw, accumulate| {
                        T::times_activations_in_f32(&self.cpu, dy, x, dw, accumulate);
                    }),
                }
            })
        })
    }

    fn matmul(&self, (a, a_transposed): (&Tensor, bool), (b, b_transposed): (&Tensor, bool)) -> Tensor {
        let (&[batch, a_rows, a_cols], &[b_batch, b_rows, b_cols]) = (&a.shape()[..], &b.shape()[..]) else {
            panic!("matmul: {} and {} are not batches of matrices", a.shape(), b.shape());
        };
        let (m, k) = if a_transposed { (a_cols, a_rows) } else { (a_rows, a_cols) };
        let (inner, n) = if b_transposed { (b_cols, b_rows) } else { (b_rows, b_cols) };
        assert!(batch == b_batch && k == inner, "matmul: {} and {} do not fit", a.shape(), b.shape());
        self.profile.time(Share::Product, || {
            by_type!(a, T => self.build([batch, m, n], |y| {
                let (a, b) = ((data::<T>(a), a_transposed), (data(b), b_transposed));
                gemm::gemm_batched(&self.cpu, batch, [m, k, n], a, b, y);
            }))
        })
    }
}
