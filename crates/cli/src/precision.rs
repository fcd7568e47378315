//! The precision that people ask for, and the one that they get.

use crate::error::Error;
use clap::ValueEnum;
use std::fmt;

/// What `--precision` takes.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum PrecisionChoice {
    /// Single precision throughout
    F32,
    /// Operands of matrix products rounded to bf16, sums in f32
    Bf16,
    /// The fastest that this build has for this machine
    Auto,
}

/// What is computed with.
#[derive(Debug, Clone, Copy, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Precision {
    F32,
}

impl PrecisionChoice {
    /// The precision that this build computes with when asked so.
    pub(crate) fn resolve(self) -> Result<Precision, Error> {
        match self {
            PrecisionChoice::F32 | PrecisionChoice::Auto => Ok(Precision::F32),
            PrecisionChoice::Bf16 => Err(Error::Precision),
        }
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Precision::F32 => f.write_str("f32"),
        }
    }
}
