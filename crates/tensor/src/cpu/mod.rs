//! The backend for the processor: each method finds the slices behind its tensors and calls a kernel.

mod memory;
mod profile;

use crate::Error;
use crate::backend::{Backend, Binary, Norm, NormGradients, ProjectionLoss, ProjectionTarget};
use crate::shape::Shape;
use crate::tensor::{Buffer, DType, Host, HostVec, Tensor};
use attentive_kernels::activation::{self, Activation};
use attentive_kernels::attention::{self, Attention, Rows, Span};
use attentive_kernels::gemm::{self, Epilogue, Matrix};
use attentive_kernels::optimizer::{self, Adam};
use attentive_kernels::{Cpu, Dropout, Random, elementwise, embedding, norm, projection, softmax};
use half::{bf16, f16};
use memory::{Memory, Number, Pool};
use profile::Profile;
pub use profile::Share;
use std::sync::Arc;
use std::time::Duration;

/// The backend that computes on the processor.
#[derive(Debug)]
pub struct CpuBackend {
    cpu: Cpu,
    pool: Arc<Pool>,
    profile: Profile,
}

impl CpuBackend {
    /// A backend on the given instruction set and threads.
    pub fn new(cpu: Cpu) -> CpuBackend {
        CpuBackend { cpu, pool: Arc::default(), profile: Profile::default() }
    }

    /// A backend on the instruction set of `ATTENTIVE_ISA`, or the best there is, and all cores.
    pub fn from_env() -> Result<CpuBackend, Error> {
        Ok(CpuBackend::new(Cpu::from_env()?))
    }

    /// The backend as everybody above takes it.
    pub fn shared(self) -> Arc<dyn Backend> {
        Arc::new(self)
    }

    /// A new tensor that `fill` writes, every number of it.
    fn build<T: Number>(&self, shape: impl Into<Shape>, fill: impl FnOnce(&mut [T])) -> Tensor {
        let shape = shape.into();
        let mut memory = self.pool.take(T::DTYPE, shape.len());
        fill(memory.view_mut().expect("the pool gives the type that was asked for"));
        Tensor::new(Buffer::new(memory), shape, T::DTYPE)
    }

    /// The gradient `into`, added to, or a new one; `add` is told which.
    fn accumulate(
        &self,
        into: Option<Tensor>,
        shape: impl Into<Shape>,
        add: impl FnOnce(&mut [f32], bool),
    ) -> Tensor {
        let shape = shape.into();
        match into {
            None => self.build(shape, |y| add(y, false)),
            Some(mut y) => {
                assert_eq!(y.shape(), shape, "accumulate: {} into {}", shape, y.shape());
                add(data_mut(&mut y), true);
                y
            }
        }
    }
}

/// The numbers of a tensor of this backend.
fn data<T: Number>(x: &Tensor) -> &[T] {
    let memory =
        x.buffer().get::<Memory>().unwrap_or_else(|| panic!("{x:?} is not in the processor's memory"));
    memory.view().unwrap_or_else(|| panic!("{:?} expected, but the tensor is {x:?}", T::DTYPE))
}

fn f32s(x: &Tensor) -> &[f32] {
    data(x)
}

fn i32s(x: &Tensor) -> &[i32] {
    data(x)
}

/// The numbers of a tensor that nobody shares.
fn data_mut<T: Number>(x: &mut Tensor) -> &mut [T] {
    let described = format!("{x:?}");
    let memory = x.buffer_mut().get_mut::<Memory>();
    let memory = memory.unwrap_or_else(|| panic!("{described} is shared, or not in the processor's memory"));
    memory.view_mut().unwrap_or_else(|| panic!("{:?} expected, but the tensor is {described}", T::DTYPE))
}

fn matrix(x: &Tensor) -> Matrix<'_> {
    Matrix::new(f32s(x), x.shape().rows(), x.shape().cols())
}

fn rows(x: &Tensor) -> Rows<'_> {
    Rows { data: f32s(x), stride: x.shape().cols() }
}

fn same_shape(op: &str, a: &Tensor, b: &Tensor) -> Shape {
    assert_eq!(a.shape(), b.shape(), "{op}: {} and {} differ", a.shape(), b.shape());
    a.shape()
}

impl Backend for CpuBackend {
    fn name(&self) -> String {
        format!("cpu {} × {}", self.cpu.isa, self.cpu.threads.count())
    }

    fn zeros(&self, shape: Shape, dtype: DType) -> Tensor {
        self.profile.time(Share::Elementwise, || match dtype {
            DType::F32 => self.build(shape, |x| x.fill(0f32)),
            DType::Bf16 => self.build(shape, |x| x.fill(bf16::ZERO)),
            DType::F16 => self.build(shape, |x| x.fill(f16::ZERO)),
            DType::I8 => self.build(shape, |x| x.fill(0i8)),
            DType::I32 => self.build(shape, |x| x.fill(0i32)),
        })
    }

    fn upload(&self, data: Host, shape: Shape) -> Tensor {
        match data {
            Host::F32(data) => self.build(shape, |x| x.copy_from_slice(data)),
            Host::Bf16(data) => self.build(shape, |x| x.copy_from_slice(data)),
            Host::F16(data) => self.build(shape, |x| x.copy_from_slice(data)),
            Host::I8(data) => self.build(shape, |x| x.copy_from_slice(data)),
            Host::I32(data) => self.build(shape, |x| x.copy_from_slice(data)),
        }
    }

    fn download(&self, x: &Tensor) -> HostVec {
        match x.dtype() {
            DType::F32 => HostVec::F32(data(x).to_vec()),
            DType::Bf16 => HostVec::Bf16(data(x).to_vec()),
            DType::F16 => HostVec::F16(data(x).to_vec()),
            DType::I8 => HostVec::I8(data(x).to_vec()),
            DType::I32 => HostVec::I32(data(x).to_vec()),
        }
    }

    fn copy(&self, x: &Tensor) -> Tensor {
        self.profile.time(Share::Elementwise, || match x.dtype() {
            DType::F32 => self.build(x.shape(), |y: &mut [f32]| y.copy_from_slice(data(x))),
            DType::Bf16 => self.build(x.shape(), |y: &mut [bf16]| y.copy_from_slice(data(x))),
            DType::F16 => self.build(x.shape(), |y: &mut [f16]| y.copy_from_slice(data(x))),
            DType::I8 => self.build(x.shape(), |y: &mut [i8]| y.copy_from_slice(data(x))),
            DType::I32 => self.build(x.shape(), |y: &mut [i32]| y.copy_from_slice(data(x))),
        })
    }

    fn cast(&self, x: &Tensor, dtype: DType) -> Tensor {
        let shape = x.shape();
        let wide: Vec<f32> = match x.dtype() {
            DType::F32 => f32s(x).to_vec(),
            DType::Bf16 => data::<bf16>(x).iter().map(|x| x.to_f32()).collect(),
            DType::F16 => data::<f16>(x).iter().map(|x| x.to_f32()).collect(),
            DType::I8 => data::<i8>(x).iter().map(|&x| x.into()).collect(),
            DType::I32 => i32s(x).iter().map(|&x| x as f32).collect(),
        };
        let each = wide.into_iter();
        match dtype {
            DType::F32 => self.build(shape, |y: &mut [f32]| y.iter_mut().zip(each).for_each(|(y, x)| *y = x)),
            DType::Bf16 => {
                self.build(shape, |y| y.iter_mut().zip(each).for_each(|(y, x)| *y = bf16::from_f32(x)))
            }
            DType::F16 => {
                self.build(shape, |y| y.iter_mut().zip(each).for_each(|(y, x)| *y = f16::from_f32(x)))
            }
            DType::I8 => self
                .build(shape, |y| y.iter_mut().zip(each).for_each(|(y, x)| *y = x.round_ties_even() as i8)),
            DType::I32 => self
                .build(shape, |y| y.iter_mut().zip(each).for_each(|(y, x)| *y = x.round_ties_even() as i32)),
        }
    }

    fn uniform(&self, shape: Shape, bound: f32, random: Random) -> Tensor {
        self.build(shape, |x| fill(x, |i| (random.uniform(i) * 2.0 - 1.0) * bound))
    }

    fn normal(&self, shape: Shape, deviation: f32, random: Random) -> Tensor {
        self.build(shape, |x| fill(x, |i| random.normal(i) * deviation))
    }

    fn broadcast(&self, scalar: &Tensor, shape: Shape) -> Tensor {
        self.build(shape, |y: &mut [f32]| y.fill(f32s(scalar)[0]))
    }

    fn binary(&self, op: Binary, a: &Tensor, b: &Tensor) -> Tensor {
        let (shape, other) = (a.shape(), b.shape());
        let (a, b) = (f32s(a), f32s(b));
        self.profile.time(Share::Elementwise, || {
            self.build(shape, |y| match op {
                Binary::Add if other == shape => elementwise::add(&self.cpu, a, b, y),
                Binary::Mul if other == shape => elementwise::mul(&self.cpu, a, b, y),
                Binary::Add if other == Shape::from([shape.cols()]) => {
                    elementwise::add_row(&self.cpu, a, b, y)
                }
                Binary::Mul if other == Shape::SCALAR => elementwise::scale(&self.cpu, a, b[0], y),
                _ => panic!("{op:?}: {shape} and {other} do not fit"),
            })
        })
    }

    fn scale(&self, x: &Tensor, factor: f32) -> Tensor {
        self.profile.time(Share::Elementwise, || {
            self.build(x.shape(), |y| elementwise::scale(&self.cpu, f32s(x), factor, y))
        })
    }

    fn add_assign(&self, y: &mut Tensor, x: &Tensor, factor: f32) {
        same_shape("add_assign", y, x);
        self.profile
            .time(Share::Elementwise, || elementwise::add_assign(&self.cpu, data_mut(y), f32s(x), factor));
    }

    fn activate(&self, activation: Activation, x: &Tensor) -> Tensor {
        self.profile.time(Share::Elementwise, || {
            self.build(x.shape(), |y| activation::activate(&self.cpu, activation, f32s(x), y))
        })
    }

    fn activate_backward(&self, activation: Activation, x: &Tensor, dy: &Tensor) -> Tensor {
        let shape = same_shape("activate_backward", x, dy);
        self.profile.time(Share::Elementwise, || {
            self.build(shape, |dx| {
                activation::activate_backward(&self.cpu, activation, f32s(x), f32s(dy), dx);
            })
        })
    }

    fn dropout(&self, x: &Tensor, dropout: Dropout) -> Tensor {
        self.profile.time(Share::Elementwise, || {
            self.build(x.shape(), |y| elementwise::dropout(&self.cpu, f32s(x), dropout, y))
        })
    }

    fn residual(&self, x: &Tensor, r: &Tensor, dropout: Option<Dropout>) -> Tensor {
        let shape = same_shape("residual", x, r);
        self.profile.time(Share::Elementwise, || {
            self.build(shape, |y| elementwise::add_dropout(&self.cpu, f32s(x), f32s(r), dropout, y))
        })
    }

    fn sum(&self, x: &Tensor) -> Tensor {
        let sum = self.profile.time(Share::Elementwise, || elementwise::sum(&self.cpu, f32s(x)));
        self.build(Shape::SCALAR, |y| y[0] = sum)
    }

    fn sum_rows(&self, x: &Tensor, into: Option<Tensor>) -> Tensor {
        let cols = x.shape().cols();
        self.profile.time(Share::Elementwise, || {
            self.accumulate(into, [cols], |y, accumulate| {
                elementwise::sum_rows(&self.cpu, f32s(x), cols, y, accumulate);
            })
        })
    }

    fn softmax(&self, x: &Tensor) -> Tensor {
        self.profile.time(Share::Elementwise, || {
            self.build(x.shape(), |y| softmax::softmax(&self.cpu, f32s(x), x.shape().cols(), y))
        })
    }

    fn softmax_backward(&self, y: &Tensor, dy: &Tensor) -> Tensor {
        let shape = same_shape("softmax_backward", y, dy);
        self.profile.time(Share::Elementwise, || {
            self.build(shape, |dx| softmax::softmax_backward(&self.cpu, f32s(y), f32s(dy), shape.cols(), dx))
        })
    }

    fn linear(
        &self,
        x: &Tensor,
        w: &Tensor,
        bias: Option<&Tensor>,
        activation: Option<Activation>,
    ) -> Tensor {
        assert_eq!(
            x.shape().cols(),
            w.shape().cols(),
            "linear: x {} and w {} do not fit",
            x.shape(),
            w.shape()
        );
        let epilogue = Epilogue { accumulate: false, bias: bias.map(f32s), activation };
        self.profile.time(Share::Product, || {
            self.build(x.shape().with_cols(w.shape().rows()), |y| {
                gemm::gemm(&self.cpu, matrix(x), matrix(w).t(), y, epilogue);
            })
        })
    }

    fn linear_backward_input(&self, dy: &Tensor, w: &Tensor, into: Option<Tensor>) -> Tensor {
        let (a, b) = (dy.shape(), w.shape());
        assert_eq!(a.cols(), b.rows(), "linear_backward_input: dy {a} and w {b} do not fit");
        self.profile.time(Share::Product, || {
            self.accumulate(into, a.with_cols(b.cols()), |dx, accumulate| {
                let epilogue = Epilogue { accumulate, ..Epilogue::default() };
                gemm::gemm(&self.cpu, matrix(dy), matrix(w), dx, epilogue);
            })
        })
    }

    fn linear_backward_weight(&self, dy: &Tensor, x: &Tensor, into: Option<Tensor>) -> Tensor {
        let (a, b) = (dy.shape(), x.shape());
        assert_eq!(a.rows(), b.rows(), "linear_backward_weight: dy {a} and x {b} do not fit");
        self.profile.time(Share::Product, || {
            self.accumulate(into, [a.cols(), b.cols()], |dw, accumulate| {
                let epilogue = Epilogue { accumulate, ..Epilogue::default() };
                gemm::gemm(&self.cpu, matrix(dy).t(), matrix(x), dw, epilogue);
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
        let (a, b) = ((f32s(a), a_transposed), (f32s(b), b_transposed));
        self.profile.time(Share::Product, || {
            self.build([batch, m, n], |y| gemm::gemm_batched(&self.cpu, batch, [m, k, n], a, b, y, false))
        })
    }

    fn layer_norm(&self, x: &Tensor, gamma: &Tensor, beta: &Tensor, epsilon: f32) -> Norm {
        self.profile.time(Share::Norm, || {
            let mut y = None;
            let stats = self.build([x.shape().rows(), 2], |stats| {
                y = Some(self.build(x.shape(), |y| {
                    norm::layer_norm(&self.cpu, f32s(x), f32s(gamma), f32s(beta), epsilon, y, stats);
                }));
            });
            Norm { y: y.expect("just built"), z: x.clone(), stats }
        })
    }

    fn residual_layer_norm(
        &self,
        x: &Tensor,
        r: &Tensor,
        dropout: Option<Dropout>,
        gamma: &Tensor,
        beta: &Tensor,
        epsilon: f32,
    ) -> Norm {
        let shape = same_shape("residual_layer_norm", x, r);
        let (x, r, gamma, beta) = (f32s(x), f32s(r), f32s(gamma), f32s(beta));
        self.profile.time(Share::Norm, || {
            let [mut y, mut z] = [(); 2].map(|()| self.pool.take(DType::F32, shape.len()));
            let stats = self.build([shape.rows(), 2], |stats| {
                let (y, z) = (view_mut(&mut y), view_mut(&mut z));
                norm::residual_layer_norm(&self.cpu, x, r, dropout, gamma, beta, epsilon, z, y, stats);
            });
            let [y, z] = [y, z].map(|memory| Tensor::new(Buffer::new(memory), shape, DType::F32));
            Norm { y, z, stats }
        })
    }

    fn layer_norm_backward(
        &self,
        norm: &Norm,
        dropout: Option<Dropout>,
        gamma: &Tensor,
        dy: &Tensor,
        (dgamma, dbeta): (Option<Tensor>, Option<Tensor>),
    ) -> NormGradients {
        let shape = same_shape("layer_norm_backward", &norm.z, dy);
        let fresh = || self.zeros(gamma.shape(), DType::F32);
        let (mut dgamma, mut dbeta) = (dgamma.unwrap_or_else(fresh), dbeta.unwrap_or_else(fresh));
        let (z, gamma, stats, dy) = (f32s(&norm.z), f32s(gamma), f32s(&norm.stats), f32s(dy));
        self.profile.time(Share::Norm, || {
            let (dg, db) = (data_mut(&mut dgamma), data_mut(&mut dbeta));
            let mut dr = None;
            let dz = self.build(shape, |dz| match dropout {
                None => norm::layer_norm_backward(&self.cpu, z, gamma, stats, dy, dz, dg, db, true),
                Some(dropout) => {
                    dr = Some(self.build(shape, |dr| {
                        norm::residual_layer_norm_backward(
                            &self.cpu, z, dropout, gamma, stats, dy, dz, dr, dg, db, true,
                        );
                    }));
                }
            });
            let dr = dr.unwrap_or_else(|| dz.clone());
            NormGradients { dz, dr, dgamma, dbeta }
        })
    }

    fn attention(
        &self,
        rule: &Attention,
        spans: &[Span],
        q: &Tensor,
        k: &Tensor,
        v: &Tensor,
    ) -> (Tensor, Tensor) {
        let queries = q.shape().rows();
        self.profile.time(Share::Attention, || {
            let mut y = None;
            let lse = self.build([queries, rule.heads], |lse| {
                y = Some(self.build([queries, rule.heads * rule.d_v], |y| {
                    attention::attention(&self.cpu, rule, spans, rows(q), rows(k), rows(v), y, lse);
                }));
            });
            (y.expect("just built"), lse)
        })
    }

    fn attention_backward(
        &self,
        rule: &Attention,
        spans: &[Span],
        [q, k, v]: [&Tensor; 3],
        (y, lse): (&Tensor, &Tensor),
        dy: &Tensor,
    ) -> [Tensor; 3] {
        self.profile.time(Share::Attention, || {
            let mut out = [q, k, v].map(|x| self.pool.take(DType::F32, x.shape().len()));
            let [dq, dk, dv] = out.each_mut().map(view_mut);
            let (q_rows, k_rows, v_rows) = (rows(q), rows(k), rows(v));
            let (y, lse, dy) = (f32s(y), f32s(lse), f32s(dy));
            attention::attention_backward(
                &self.cpu, rule, spans, q_rows, k_rows, v_rows, y, lse, dy, dq, dk, dv,
            );
            let mut shapes = [q, k, v].map(Tensor::shape).into_iter();
            out.map(|memory| {
                Tensor::new(Buffer::new(memory), shapes.next().expect("one for each"), DType::F32)
            })
        })
    }

    fn attention_weights(
        &self,
        rule: &Attention,
        spans: &[Span],
        q: &Tensor,
        k: &Tensor,
        lse: &Tensor,
        heads: &[usize],
    ) -> Tensor {
        let len: usize = spans.iter().map(|span| span.queries as usize * span.keys as usize).sum();
        self.profile.time(Share::Attention, || {
            self.build([len * heads.len()], |out| {
                attention::attention_weights(&self.cpu, rule, spans, rows(q), rows(k), f32s(lse), heads, out);
            })
        })
    }

    fn embedding(&self, table: &Tensor, ids: &Tensor, scale: f32) -> Tensor {
        let (d, ids) = (table.shape().cols(), i32s(ids));
        self.profile.time(Share::Embedding, || {
            self.build([ids.len(), d], |y: &mut [f32]| {
                embedding::embedding(&self.cpu, f32s(table), d, ids, scale, y);
            })
        })
    }

    fn embedding_backward(
        &self,
        dtable: &mut Tensor,
        ids: &Tensor,
        scale: f32,
        padding: Option<i32>,
        dy: &Tensor,
    ) {
        let d = dtable.shape().cols();
        self.profile.time(Share::Embedding, || {
            embedding::embedding_backward(
                &self.cpu,
                i32s(ids),
                scale,
                padding,
                f32s(dy),
                d,
                data_mut(dtable),
            );
        });
    }

    fn write_rows(&self, y: &mut Tensor, rows: &Tensor, x: &Tensor) {
        let d = y.shape().cols();
        assert_eq!(x.shape().cols(), d, "write_rows: x {} and y {} do not fit", x.shape(), y.shape());
        self.profile.time(Share::Embedding, || {
            embedding::write_rows(&self.cpu, f32s(x), d, i32s(rows), data_mut(y));
        });
    }

    fn projection_loss(
        &self,
        hidden: &Tensor,
        table: &Tensor,
        target: &ProjectionTarget,
        gradient: bool,
    ) -> ProjectionLoss {
        let (h, t) = (hidden.shape(), table.shape());
        assert_eq!(h.cols(), t.cols(), "projection_loss: hidden {h} and table {t} do not fit");
        let rule = projection::Projection {
            d: h.cols(),
            classes: target.classes,
            smoothing: target.smoothing,
            scale: target.scale,
        };
        let (x, w, tokens) = (f32s(hidden), f32s(table), i32s(target.tokens));
        self.profile.time(Share::Loss, || {
            let mut gradients = gradient.then(|| [h, t].map(|shape| self.pool.take(DType::F32, shape.len())));
            let into = gradients.as_mut().map(|[dh, dt]| (view_mut(dh), view_mut(dt)));
            let sum = projection::projection_loss(&self.cpu, &rule, x, w, tokens, into);
            let loss = self.build(Shape::SCALAR, |y| y[0] = sum);
            let gradients = gradients.map(|[dh, dt]| {
                (Tensor::new(Buffer::new(dh), h, DType::F32), Tensor::new(Buffer::new(dt), t, DType::F32))
            });
            ProjectionLoss { loss, gradients }
        })
    }

    fn squared_norm(&self, tensors: &[&Tensor]) -> Tensor {
        let sum: f64 = self.profile.time(Share::Optimizer, || {
            tensors.iter().map(|x| optimizer::squared_norm(&self.cpu, f32s(x))).sum()
        });
        self.build(Shape::SCALAR, |y| y[0] = sum as f32)
    }

    fn clip_factor(&self, squared_norm: &Tensor, limit: f32) -> Tensor {
        let norm = f32s(squared_norm)[0].sqrt();
        self.build(Shape::SCALAR, |y| y[0] = if norm > limit { limit / norm } else { 1.0 })
    }

    fn adam(
        &self,
        rule: &Adam,
        step: u32,
        factor: Option<&Tensor>,
        p: &mut Tensor,
        g: &Tensor,
        [m, v]: [&mut Tensor; 2],
    ) {
        same_shape("adam", p, g);
        let factor = factor.map_or(1.0, |factor| f32s(factor)[0]);
        self.profile.time(Share::Optimizer, || {
            optimizer::adam(&self.cpu, rule, step, factor, data_mut(p), f32s(g), data_mut(m), data_mut(v));
        });
    }

    fn take_profile(&self) -> Vec<(&'static str, Duration)> {
        self.profile.take()
    }
}

fn view_mut(memory: &mut Memory) -> &mut [f32] {
    memory.view_mut().expect("taken from the pool as f32")
}

fn fill(x: &mut [f32], f: impl Fn(u32) -> f32) {
    for (i, x) in x.iter_mut().enumerate() {
        *x = f(i as u32);
    }
}
