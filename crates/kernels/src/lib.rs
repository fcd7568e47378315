//! The CPU kernels of a Transformer: slices in, slices out, for every instruction set.
//!
//! Everything here is a plain function over slices that takes a [`Cpu`]: which instructions to use and how many
//! threads. Three promises hold for all of them, for one instruction set:
//!
//! - any number of threads gives the same bits: work is cut by the size of the problem, sums have a fixed order;
//! - a row is computed to the same bits whatever other rows share the call;
//! - random numbers come from a seed and a counter ([`Random`]).
//!
//! All `unsafe` of the CPU side lives in this crate.

pub mod activation;
mod aligned;
pub mod allocator;
mod amx;
pub mod attention;
pub mod elementwise;
pub mod embedding;
pub mod gemm;
mod isa;
pub mod limits;
pub mod logits;
pub mod loss;
mod math;
pub mod mean;
pub mod norm;
pub mod optimizer;
mod pass;
pub mod projection;
mod random;
pub mod rectangle;
pub mod relative;
mod scratch;
mod simd;
pub mod soft;
#[cfg(test)]
mod testing;
mod threads;
pub mod top;
pub mod window;

pub use aligned::{ALIGNMENT, Aligned, Element};
pub use isa::{Isa, IsaError};
pub use random::{Dropout, Random};
pub use simd::Real;
pub use threads::Threads;

/// What a kernel runs on: an instruction set and a pool of threads.
#[derive(Debug, Clone)]
pub struct Cpu {
    /// The instructions that kernels use.
    pub isa: Isa,
    /// The threads that share their work.
    pub threads: Threads,
}

impl Cpu {
    /// The instruction set of `ATTENTIVE_ISA`, or the best of this processor, on all of its cores.
    pub fn from_env() -> Result<Cpu, IsaError> {
        Ok(Cpu { isa: Isa::from_env()?, threads: Threads::all() })
    }
}
