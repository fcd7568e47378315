//! The backend for the processor: each method finds the slices behind its tensors and calls a kernel.

mod cache;
mod memory;
mod order;
mod precision;
mod prepared;
mod profile;
#[cfg(test)]
mod tests;
mod view;

pub use precision::Precision;

use crate::Error;
use crate::backend::{
    Backend, Binary, Form, Learned, Norm, NormGradients, ProjectionLoss, ProjectionTarget, Raw, Role,
};
use crate::cache::KeyValueCache;
use crate::layout::{Layout, Seen};
use crate::shape::Shape;
use crate::tensor::{Buffer, DType, Host, HostVec, Tensor};
use attentive_kernels::activation::{self, Activation};
use attentive_kernels::attention::{self, Attention, KeyLists, Span};
use attentive_kernels::gemm::{self, BothWays, Epilogue, Operand, PackedWeights, Weights};
use attentive_kernels::logits::top_logits;
use attentive_kernels::optimizer::{self, Adam};
use attentive_kernels::top::{Found, TokenLists, Wanted};
use attentive_kernels::{Cpu, Dropout, Random, elementwise, embedding, mean, norm, projection, softmax};
use cache::{CpuCache, Lists};
use half::{bf16, f16};
use memory::{Memory, Number, Pool};
use profile::{Profile, Share};
use std::sync::Arc;
use std::time::Duration;
use view::{
    bias_for, by_type, covered, data, data_mut, f32s, i32s, learned_mut, linear_shape, matrix,
    order_of_outputs, pack, packed, quantised, rows, same_shape, weights,
};

/// The backend that computes on the processor.
///
/// What a product, a norm or an attention returns has the type of what it was given. Activations get the type of the
/// backend's precision where they begin: when rows are looked up in a table, or by a cast. Clones share memory and profile.
#[derive(Debug, Clone)]
pub struct CpuBackend {
    cpu: Cpu,
    precision: Precision,
    pool: Arc<Pool>,
    profile: Arc<Profile>,
}

impl CpuBackend {
    /// A backend on the given instruction set and threads, in single precision.
    pub fn new(cpu: Cpu) -> CpuBackend {
        CpuBackend { cpu, precision: Precision::F32, pool: Arc::default(), profile: Arc::default() }
    }

    /// The same backend in another precision.
    pub fn with_precision(self, precision: Precision) -> CpuBackend {
        CpuBackend { precision, ..self }
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
    fn accumulate<T: Number>(
        &self,
        into: Option<Tensor>,
        shape: impl Into<Shape>,
        add: impl FnOnce(&mut [T], bool),
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

impl Backend for CpuBackend {
    fn name(&self) -> String {
        format!("cpu {} {} × {}", self.cpu.isa, self.precision, self.cpu.threads.count())
    }

    fn activations(&self) -> DType {
        self.precision.dtype()
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
        assert_eq!(data.len(), shape.len(), "upload: {} numbers for the shape {shape}", data.len());
        match data {
            Host::F32(data) => self.build(shape, |x| x.copy_from_slice(data)),
            Host::Bf16(data) => self.build(shape, |x| x.copy_from_slice(data)),
            Host::F16(data) => self.build(shape, |x| x.copy_from_slice(data)),
            Host::I8(data) => self.build(shape, |x| x.copy_from_slice(data)),
            Host::I32(data) => self.build(shape, |x| x.copy_from_slice(data)),
        }
    }

    fn download(&self, x: &Tensor) -> HostVec {
        let x = &self.head_by_head(x);
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

    fn uniform(&self, shape: Shape, bound: f32, random: Random) -> Tensor {
        self.build(shape, |x| fill(x, |i| (random.uniform(i) * 2.0 - 1.0) * bound))
    }

    fn normal(&self, shape: Shape, deviation: f32, random: Random) -> Tensor {
        self.build(shape, |x| fill(x, |i| random.normal(i) * deviation))
    }

    fn broadcast(&self, scalar: &Tensor, shape: Shape, dtype: DType) -> Tensor {
        let number = f32s(scalar)[0];
        match dtype {
            DType::F32 => self.build(shape, |y| y.fill(number)),
            DType::Bf16 => self.build(shape, |y| y.fill(bf16::from_f32(number))),
            _ => panic!("broadcast: {dtype:?} cannot hold a number like {number}"),
        }
    }

    fn binary(&self, op: Binary, a: &Tensor, b: &Tensor) -> Tensor {
        let (shape, other) = (a.shape(), b.shape());
        self.profile.time(Share::Elementwise, || {
            by_type!(a, T => {
                let x = data::<T>(a);
                self.build(shape, |y| match op {
                    Binary::Add if other == shape => elementwise::add(&self.cpu, x, data(b), y),
                    Binary::Mul if other == shape => elementwise::mul(&self.cpu, x, data(b), y),
                    Binary::Add if other == Shape::from([shape.cols()]) => {
                        elementwise::add_row(&self.cpu, x, f32s(b), y);
                    }
                    Binary::Mul if other == Shape::SCALAR => elementwise::scale(&self.cpu, x, f32s(b)[0], y),
                    _ => panic!("{op:?}: {shape} and {other} do not fit"),
                })
            })
        })
    }

    fn scale(&self, x: &Tensor, factor: f32) -> Tensor {
        self.profile.time(Share::Elementwise, || {
            by_type!(x, T => {
                self.build(x.shape(), |y| elementwise::scale(&self.cpu, data::<T>(x), factor, y))
            })
        })
    }

    fn cast(&self, x: &Tensor, to: DType) -> Tensor {
        if x.dtype() == to {
            return x.clone();
        }
        self.profile.time(Share::Elementwise, || {
            by_type!(x, T => match to {
                DType::F32 => {
                    self.build(x.shape(), |y: &mut [f32]| elementwise::cast(&self.cpu, data::<T>(x), y))
                }
                DType::Bf16 => {
                    self.build(x.shape(), |y: &mut [bf16]| elementwise::cast(&self.cpu, data::<T>(x), y))
                }
                _ => panic!("cast: {x:?} to {to:?}"),
            })
        })
    }

    fn add_assign(&self, y: &mut Tensor, x: &Tensor, factor: f32) {
        same_shape("add_assign", y, x);
        self.profile.time(Share::Elementwise, || {
            by_type!(x, T => elementwise::add_assign(&self.cpu, data_mut(y), data::<T>(x), factor));
        });
    }

    fn blend(&self, y: &mut Tensor, x: &Tensor, share: f32) {
        same_shape("blend", y, x);
        self.profile.time(Share::Elementwise, || {
            by_type!(x, T => elementwise::blend(&self.cpu, data_mut(y), data::<T>(x), share));
        });
    }

    fn activate(&self, activation: Activation, x: &Tensor) -> Tensor {
        self.profile.time(Share::Elementwise, || {
            by_type!(x, T => {
                self.build(x.shape(), |y| activation::activate(&self.cpu, activation, data::<T>(x), y))
            })
        })
    }

    fn activate_backward(&self, activation: Activation, x: &Tensor, dy: &Tensor) -> Tensor {
        let shape = same_shape("activate_backward", x, dy);
        self.profile.time(Share::Elementwise, || {
            by_type!(x, T => self.build(shape, |dx| {
                activation::activate_backward(&self.cpu, activation, data::<T>(x), data(dy), dx);
            }))
        })
    }

    fn dropout(&self, x: &Tensor, dropout: Dropout) -> Tensor {
        self.profile.time(Share::Elementwise, || {
            by_type!(x, T => {
                self.build(x.shape(), |y| elementwise::dropout(&self.cpu, data::<T>(x), dropout, y))
            })
        })
    }

    fn residual(&self, x: &Tensor, r: &Tensor, dropout: Option<Dropout>) -> Tensor {
        let shape = same_shape("residual", x, r);
        self.profile.time(Share::Elementwise, || {
            by_type!(x, T => {
                self.build(shape, |y| elementwise::add_dropout(&self.cpu, data::<T>(x), data(r), dropout, y))
            })
        })
    }

    fn sum(&self, x: &Tensor) -> Tensor {
        let sum = self
            .profile
            .time(Share::Elementwise, || by_type!(x, T => elementwise::sum(&self.cpu, data::<T>(x))));
        self.build(Shape::SCALAR, |y| y[0] = sum)
    }

    fn sum_rows(&self, x: &Tensor, into: Option<Tensor>) -> Tensor {
        let cols = x.shape().cols();
        self.profile.time(Share::Elementwise, || {
            self.accumulate(into, [cols], |y, accumulate| {
                by_type!(x, T => elementwise::sum_rows(&self.cpu, data::<T>(x), cols, y, accumulate));
            })
        })
    }

    fn mean_rows(&self, x: &Tensor, offsets: &Tensor) -> Tensor {
        let (d, offsets) = (x.shape().cols(), i32s(offsets));
        self.profile.time(Share::Elementwise, || {
            by_type!(x, T => self.build([offsets.len().saturating_sub(1), d], |y| {
                mean::mean_rows(&self.cpu, data::<T>(x), d, offsets, y);
            }))
        })
    }

    fn mean_rows_backward(&self, dy: &Tensor, offsets: &Tensor, shape: Shape) -> Tensor {
        assert_eq!(dy.shape().cols(), shape.cols(), "mean_rows_backward: dy {} for {shape}", dy.shape());
        self.profile.time(Share::Elementwise, || {
            by_type!(dy, T => self.build(shape, |dx| {
                mean::mean_rows_backward(&self.cpu, data::<T>(dy), shape.cols(), i32s(offsets), dx);
            }))
        })
    }

    fn softmax(&self, x: &Tensor) -> Tensor {
        self.profile.time(Share::Elementwise, || {
            by_type!(x, T => {
                self.build(x.shape(), |y| softmax::softmax(&self.cpu, data::<T>(x), x.shape().cols(), y))
            })
        })
    }

    fn softmax_backward(&self, y: &Tensor, dy: &Tensor) -> Tensor {
        let shape = same_shape("softmax_backward", y, dy);
        self.profile.time(Share::Elementwise, || {
            by_type!(y, T => self.build(shape, |dx| {
                softmax::softmax_backward(&self.cpu, data::<T>(y), data(dy), shape.cols(), dx);
            }))
        })
    }

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
        let (a, b) = ((f32s(a), a_transposed), (f32s(b), b_transposed));
        self.profile.time(Share::Product, || {
            self.build([batch, m, n], |y| gemm::gemm_batched(&self.cpu, batch, [m, k, n], a, b, y))
        })
    }

    fn layer_norm(&self, x: &Tensor, gamma: &Tensor, beta: &Tensor, epsilon: f32) -> Norm {
        self.profile.time(Share::Norm, || {
            let mut y = self.room(x);
            let stats = self.build([x.shape().rows(), 2], |stats| {
                by_type!(x, T => {
                    let y = view_mut::<T>(&mut y);
                    norm::layer_norm(&self.cpu, data(x), f32s(gamma), f32s(beta), epsilon, y, stats);
                });
            });
            Norm { y: filled(y, x), z: x.clone(), stats }
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
        let (gamma, beta) = (f32s(gamma), f32s(beta));
        self.profile.time(Share::Norm, || {
            let (mut y, mut z) = (self.room(x), self.room(x));
            let stats = self.build([shape.rows(), 2], |stats| {
                by_type!(x, T => {
                    let (y, z) = (view_mut::<T>(&mut y), view_mut(&mut z));
                    let (x, r) = (data(x), data(r));
                    norm::residual_layer_norm(&self.cpu, x, r, dropout, gamma, beta, epsilon, z, y, stats);
                });
            });
            Norm { y: filled(y, x), z: filled(z, x), stats }
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
        same_shape("layer_norm_backward", &norm.z, dy);
        let fresh = || self.zeros(gamma.shape(), DType::F32);
        let (mut dgamma, mut dbeta) = (dgamma.unwrap_or_else(fresh), dbeta.unwrap_or_else(fresh));
        let (gamma, stats) = (f32s(gamma), f32s(&norm.stats));
        self.profile.time(Share::Norm, || {
            let (dg, db) = (data_mut(&mut dgamma), data_mut(&mut dbeta));
            let (mut dz, mut dr) = (self.room(dy), dropout.map(|_| self.room(dy)));
            by_type!(dy, T => {
                let (z, dy, dz) = (data(&norm.z), data(dy), view_mut::<T>(&mut dz));
                match (dropout, &mut dr) {
                    (Some(dropout), Some(dr)) => norm::residual_layer_norm_backward(
                        &self.cpu,
                        z,
                        dropout,
                        gamma,
                        stats,
                        dy,
                        dz,
                        view_mut(dr),
                        dg,
                        db,
                        true,
                    ),
                    _ => norm::layer_norm_backward(&self.cpu, z, gamma, stats, dy, dz, dg, db, true),
                }
            });
            let dz = filled(dz, dy);
            let dr = dr.map_or_else(|| dz.clone(), |dr| filled(dr, dy));
            NormGradients { dz, dr, dgamma, dbeta }
        })
    }

    fn layout(&self, spans: &[Span]) -> Layout {
        // What the host knows of it is in the processor's memory already.
        Layout::new(spans, Buffer::new(()))
    }

    fn seen(&self, lists: KeyLists) -> Seen {
        Lists::seen(lists)
    }

    fn cache(&self, rule: &Attention) -> Box<dyn KeyValueCache> {
        Box::new(CpuCache::new(self.clone(), rule))
    }

    fn attention(
        &self,
        rule: &Attention,
        layout: &Layout,
        q: &Tensor,
        k: &Tensor,
        v: &Tensor,
    ) -> (Tensor, Tensor) {
        let (queries, spans) = (q.shape().rows(), layout.spans());
        let [q, k, v] = &[q, k, v].map(|x| self.head_by_head(x));
        covered("attention", "queries", q, spans.iter().map(|span| span.queries));
        self.profile.time(Share::Attention, || {
            let shape = Shape::from([queries, rule.heads * rule.d_v]);
            let mut y = self.pool.take(q.dtype(), shape.len());
            let lse = self.build([queries, rule.heads], |lse| {
                by_type!(q, T => {
                    let y = view_mut::<T>(&mut y);
                    attention::attention(&self.cpu, rule, spans, rows(q), rows(k), rows(v), y, lse);
                });
            });
            (Tensor::new(Buffer::new(y), shape, q.dtype()), lse)
        })
    }

    fn attention_backward(
        &self,
        rule: &Attention,
        layout: &Layout,
        [q, k, v]: [&Tensor; 3],
        (y, lse): (&Tensor, &Tensor),
        dy: &Tensor,
    ) -> [Tensor; 3] {
        let spans = layout.spans();
        covered("attention_backward", "queries", q, spans.iter().map(|span| span.queries));
        covered("attention_backward", "keys", k, spans.iter().map(|span| span.keys));
        self.profile.time(Share::Attention, || {
            let (mut dq, mut dk, mut dv) = (self.room(q), self.room(k), self.room(v));
            by_type!(q, T => attention::attention_backward(
                &self.cpu,
                rule,
                spans,
                rows::<T>(q),
                rows(k),
                rows(v),
                data(y),
                f32s(lse),
                data(dy),
                view_mut(&mut dq),
                view_mut(&mut dk),
                view_mut(&mut dv),
            ));
            [filled(dq, q), filled(dk, k), filled(dv, v)]
        })
    }

    fn attention_weights(
        &self,
        rule: &Attention,
        layout: &Layout,
        q: &Tensor,
        k: &Tensor,
        lse: &Tensor,
        heads: &[usize],
    ) -> Tensor {
        let spans = layout.spans();
        let [q, k] = &[q, k].map(|x| self.head_by_head(x));
        let len: usize = spans.iter().map(|span| span.queries as usize * span.keys as usize).sum();
        self.profile.time(Share::Attention, || {
            self.build([len * heads.len()], |out| {
                by_type!(q, T => {
                    let (q, k) = (rows::<T>(q), rows(k));
                    attention::attention_weights(&self.cpu, rule, spans, q, k, f32s(lse), heads, out);
                });
            })
        })
    }

    fn embedding(&self, table: &Tensor, ids: &Tensor, scale: f32) -> Tensor {
        let (d, ids) = (table.shape().cols(), i32s(ids));
        self.profile.time(Share::Embedding, || {
            let shape = [ids.len(), d];
            by_type!(table, W => {
                let table = data::<W>(table);
                match self.precision.dtype() {
                    DType::Bf16 => self.build(shape, |y: &mut [bf16]| {
                        embedding::embedding(&self.cpu, table, d, ids, scale, y);
                    }),
                    _ => self.build(shape, |y: &mut [f32]| {
                        embedding::embedding(&self.cpu, table, d, ids, scale, y);
                    }),
                }
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
            by_type!(dy, T => {
                let dy = data::<T>(dy);
                embedding::embedding_backward(&self.cpu, i32s(ids), scale, padding, dy, d, data_mut(dtable));
            });
        });
    }

    fn write_rows(&self, y: &mut Tensor, rows: &Tensor, x: &Tensor) {
        let d = y.shape().cols();
        assert_eq!(x.shape().cols(), d, "write_rows: x {} and y {} do not fit", x.shape(), y.shape());
        self.profile.time(Share::Embedding, || {
            by_type!(x, T => embedding::write_rows::<T>(data(x), d, i32s(rows), data_mut(y)));
        });
    }

    fn top_logits(
        &self,
        x: &Tensor,
        w: &Tensor,
        bias: Option<&Tensor>,
        wanted: Wanted,
        apart: TokenLists,
    ) -> Found {
        linear_shape("top_logits", x, w);
        let bias = bias.map(f32s);
        self.profile.time(
            Share::Product,
            || by_type!(x, T => top_logits(&self.cpu, matrix::<T>(x), weights(w), bias, wanted, apart)),
        )
    }

    fn projection_loss(
        &self,
        hidden: &Tensor,
        table: &Tensor,
        bias: Option<&Tensor>,
        target: &ProjectionTarget,
        learned: Learned,
    ) -> ProjectionLoss {
        let (h, t) = (hidden.shape(), table.shape());
        assert_eq!(h.cols(), t.cols(), "projection_loss: hidden {h} and table {t} do not fit");
        let rule = projection::Projection {
            d: h.cols(),
            classes: target.classes,
            bias: bias.map(f32s),
            smoothing: target.smoothing,
            scale: target.scale,
        };
        self.profile.time(Share::Loss, || {
            let gradient = learned != Learned::Nothing;
            let mut gradients = gradient.then(|| (self.room(hidden), self.room(table)));
            let bias = bias.filter(|_| learned == Learned::TableAndBias);
            let mut dbias = bias.map(|bias| self.room(bias));
            let sum = by_type!(hidden, T => {
                let into = gradients.as_mut().map(|(dh, dt)| projection::Gradients {
                    hidden: view_mut::<T>(dh),
                    table: view_mut(dt),
                    bias: dbias.as_mut().map(view_mut),
                });
                if gradient {
                    pack::<T>(&self.cpu, table);
                }
                let (hidden, table, tokens) = (data(hidden), (f32s(table), packed(table)), i32s(target.tokens));
                projection::projection_loss(&self.cpu, &rule, hidden, table, tokens, into)
            });
            let loss = self.build(Shape::SCALAR, |y| y[0] = sum);
            let gradients = gradients.map(|(dh, dt)| (filled(dh, hidden), filled(dt, table)));
            let dbias = dbias.zip(bias).map(|(dbias, bias)| filled(dbias, bias));
            ProjectionLoss { loss, gradients, dbias }
        })
    }

    fn squared_norm(&self, tensors: &[&Tensor]) -> Tensor {
        let sum: f64 = self.profile.time(Share::Optimizer, || {
            let square = |x: &&Tensor| by_type!(x, T => optimizer::squared_norm(&self.cpu, data::<T>(x)));
            tensors.iter().map(square).sum()
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
        let (m, v) = (data_mut(m), data_mut(v));
        let (p, packed) = learned_mut(p);
        self.profile.time(Share::Optimizer, || {
            by_type!(g, T => optimizer::adam(&self.cpu, rule, step, factor, p, data::<T>(g), m, v, packed));
        });
    }

    fn take_profile(&self) -> Vec<(&'static str, Duration)> {
        self.profile.take()
    }
}

impl CpuBackend {
    /// Memory for a tensor like `x`, to be written and then made one with [`filled`].
    fn room(&self, x: &Tensor) -> Memory {
        self.pool.take(x.dtype(), x.shape().len())
    }
}

/// The tensor of the shape and type of `like` that now lies in `memory`.
fn filled(memory: Memory, like: &Tensor) -> Tensor {
    Tensor::new(Buffer::new(memory), like.shape(), like.dtype())
}

fn view_mut<T: Number>(memory: &mut Memory) -> &mut [T] {
    memory.view_mut().expect("taken from the pool as this type")
}

fn fill(x: &mut [f32], f: impl Fn(u32) -> f32) {
    for (i, x) in x.iter_mut().enumerate() {
        *x = f(i as u32);
    }
}
