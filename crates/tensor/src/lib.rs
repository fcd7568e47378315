//! Tensors and their gradients.
//!
//! From the outside in: a [`Tape`] records coarse operations on [`Var`]s and walks them back for gradients
//! (`ops/`, each forward beside its backward); the operations call a [`Backend`], the one trait between everything
//! above (layers, models) and everything below (SIMD, GPUs); [`CpuBackend`] carries it out with the kernels of
//! `attentive-kernels`. A [`Tensor`] is a shape and an opaque buffer of some backend.
//!
//! ```
//! use attentive_tensor::{CpuBackend, Gradients, Parameter, Tape};
//!
//! let backend = CpuBackend::from_env()?.shared();
//! let w = Parameter::new("w", backend.upload_f32(&[1.0, 2.0, 3.0, 4.0], [2, 2]));
//! let tape = Tape::training(&backend, 1);
//! let x = tape.constant(backend.upload_f32(&[1.0, -1.0], [1, 2]));
//! let y = tape.linear(&x, &tape.parameter(&w), None, None); // x · wᵀ
//! assert_eq!(backend.download_f32(y.value()), [-1.0, -1.0]);
//!
//! let loss = tape.sum(&y);
//! let mut gradients = Gradients::default();
//! tape.backward(&loss, &mut gradients);
//! assert_eq!(backend.download_f32(gradients.get(&w).unwrap()), [1.0, -1.0, 1.0, -1.0]);
//! # Ok::<(), attentive_tensor::Error>(())
//! ```
#![forbid(unsafe_code)]

mod backend;
mod bias;
mod cache;
pub mod check;
mod cpu;
pub mod kernel_cases;
mod layout;
mod ops;
mod optimizer;
mod parameter;
pub mod sealed;
mod shape;
mod tape;
mod tensor;
mod terms;
mod watched;

pub use attentive_kernels::activation::Activation;
pub use attentive_kernels::attention::{Attention, KeyLists, Span};
pub use attentive_kernels::gemm::quantise;
pub use attentive_kernels::norm::NormKind;
pub use attentive_kernels::optimizer::Adam as AdamRule;
pub use attentive_kernels::rectangle::Rectangle;
pub use attentive_kernels::relative::Side as RelativeSide;
pub use attentive_kernels::top::{Best, Found, TokenLists, Wanted, top_of_row_without};
pub use attentive_kernels::window::Window;
pub use attentive_kernels::{Cpu, Dropout, Isa, IsaError, Random, Threads};
pub use backend::{
    AttentionOps, Backend, Binary, Block, Distribution, ElementwiseOps, Form, Learned, LossOps, MemoryOps,
    NORM_RUN, Norm, NormGradients, NormOps, NormWeights, OptimizerOps, ProductOps, ProjectionLoss,
    ProjectionTarget, Raw, ReduceOps, Role, RowOps, WindowOps,
};
pub use bias::Bias;
pub use cache::KeyValueCache;
pub use cpu::{CpuBackend, Precision};
pub use layout::{Layout, Seen};
pub use ops::norm::NormVars;
pub use ops::window::Pictures;
pub use optimizer::Adam;
pub use parameter::{Gradients, Parameter};
pub use shape::Shape;
pub use tape::{Tape, Var};
pub use tensor::{Buffer, DType, Host, HostVec, Tensor};
pub use terms::{BiasTerm, DistanceRows, ScorePart};
pub use watched::AttentionWeights;

/// What can go wrong with tensors through no fault of the programmer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The instruction set that was asked for cannot be had.
    #[error(transparent)]
    Isa(#[from] IsaError),
}
