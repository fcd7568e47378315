//! The precision that people ask for, and the one that they get.

use attentive_tensor::{Isa, Precision};
use clap::ValueEnum;

/// What `--precision` takes.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum PrecisionChoice {
    /// 32-bit floating point
    F32,
    /// Matrix products in bf16 with sums in f32
    Bf16,
    /// bf16 on processors with AMX, else f32
    Auto,
}

impl PrecisionChoice {
    /// The precision that an instruction set computes in when asked so.
    pub(crate) fn on(self, isa: Isa) -> Precision {
        match self {
            PrecisionChoice::F32 => Precision::F32,
            PrecisionChoice::Bf16 => Precision::Bf16,
            PrecisionChoice::Auto => Precision::fastest(isa),
        }
    }
}

/// What `--precision` takes where nothing is learned.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum DecodingPrecision {
    /// 32-bit floating point
    F32,
    /// Matrix products in bf16 with sums in f32
    Bf16,
    /// Matrix products in int8
    Int8,
    /// int8 on processors with AMX, else f32
    Auto,
}

impl DecodingPrecision {
    /// The precision of activations, and whether weights are in int8, on an instruction set.
    pub(crate) fn on(self, isa: Isa) -> (Precision, bool) {
        match self {
            DecodingPrecision::F32 => (Precision::F32, false),
            DecodingPrecision::Bf16 => (Precision::Bf16, false),
            DecodingPrecision::Int8 => (Precision::F32, true),
            DecodingPrecision::Auto => (Precision::F32, Precision::fastest(isa) == Precision::Bf16),
        }
    }

    /// The same for an encoder. Beside int8 products its activations are in the fastest precision: attention over whole texts,
    /// which is computed in the precision of activations, is a large part of its work.
    pub(crate) fn of_encoder(self, isa: Isa) -> (Precision, bool) {
        let (precision, int8) = self.on(isa);
        (if int8 { Precision::fastest(isa) } else { precision }, int8)
    }
}

/// Its name on the command line.
pub(crate) fn name(precision: Precision) -> &'static str {
    match precision {
        Precision::F32 => "f32",
        Precision::Bf16 => "bf16",
    }
}
