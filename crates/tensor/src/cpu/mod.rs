//! The backend for the processor: each method finds the slices behind its tensors and calls a kernel.

mod attention;
mod cache;
mod elementwise;
mod embedding;
mod group_norm;
mod linear;
mod loss;
mod memory;
mod norm;
mod optimizer;
mod order;
mod precision;
mod prepared;
mod profile;
mod reduce;
mod seen;
#[cfg(test)]
mod tests;
mod view;
mod window;

pub use precision::Precision;

use crate::Error;
use crate::backend::{Backend, Distribution, MemoryOps};
use crate::shape::Shape;
use crate::tensor::{Buffer, DType, Host, HostVec, Tensor};
use attentive_kernels::{Cpu, Random};
use half::{bf16, f16};
use memory::{Memory, Number, Pool};
use profile::{Profile, Share};
use std::sync::Arc;
use std::time::Duration;
use view::{data, data_mut};

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

    /// A new tensor of any numbers, all of which must be written.
    fn unwritten(&self, shape: Shape, dtype: DType) -> Tensor {
        Tensor::new(Buffer::new(self.pool.take(dtype, shape.len())), shape, dtype)
    }

    /// The gradient `into`, added to, or a new one; the flag of `add` says which.
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

    fn take_profile(&self) -> Vec<(&'static str, Duration)> {
        self.profile.take()
    }
}

impl MemoryOps for CpuBackend {
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

    fn written(&self, shape: Shape, write: &mut dyn FnMut(&mut [f32])) -> Tensor {
        self.build(shape, write)
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

    fn random(&self, shape: Shape, distribution: Distribution, random: Random) -> Tensor {
        self.build(shape, |x| match distribution {
            Distribution::Uniform { bound } => fill(x, |i| (random.uniform(i) * 2.0 - 1.0) * bound),
            Distribution::Normal { deviation } => fill(x, |i| random.normal(i) * deviation),
        })
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
