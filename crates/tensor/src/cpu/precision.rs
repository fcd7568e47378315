//! What the backend for the processor computes in.

use crate::tensor::DType;
use attentive_kernels::Isa;
use std::fmt;

/// What activations are stored in, and operands of products rounded to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// Single precision throughout.
    F32,
    /// Activations and operands of products in bf16. Sums, norms, softmax and loss are computed in f32, and weights
    /// and the optimizer's state are kept in it. A gradient of weights is stored in bf16 as long as nothing is added to it.
    Bf16,
}

impl Precision {
    /// The faster one on this instruction set.
    pub fn fastest(isa: Isa) -> Precision {
        if isa.has_fast_bf16() { Precision::Bf16 } else { Precision::F32 }
    }

    pub(super) fn dtype(self) -> DType {
        match self {
            Precision::F32 => DType::F32,
            Precision::Bf16 => DType::Bf16,
        }
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Precision::F32 => "f32",
            Precision::Bf16 => "bf16",
        })
    }
}
