//! Options that several commands share.

use crate::error::Error;
use crate::precision::{self, DecodingPrecision};
use crate::words;
use attentive_kernels::{Cpu, Isa, Threads};
use attentive_tasks::ModelFolder;
use attentive_tensor::{Backend, CpuBackend, Form, Precision};
use clap::Args;
use std::path::Path;
use std::sync::Arc;

/// On what a command computes.
#[derive(Args)]
pub(crate) struct Compute {
    /// Number of threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = between::<1, 1024>)]
    threads: Option<usize>,
}

impl Compute {
    /// The processor as the options and `ATTENTIVE_ISA` want it.
    pub(crate) fn cpu(&self) -> Result<Cpu, Error> {
        let isa = Isa::from_env()?;
        Ok(Cpu { isa, threads: Threads::new(self.threads()) })
    }

    /// What decodes, in the precision that was asked for, or else in the one that a model is stored in: int8 or f32.
    pub(crate) fn decoders(&self, precision: Option<DecodingPrecision>) -> Result<Decoders, Error> {
        let Cpu { isa, threads } = self.cpu()?;
        let (precision, int8) = match precision.map(|precision| precision.on(isa)) {
            Some((precision, int8)) => (precision, Some(int8)),
            None => (Precision::F32, None),
        };
        let backend =
            |_| CpuBackend::new(Cpu { isa, threads: Threads::new(1) }).with_precision(precision).shared();
        let backends = (0..threads.count()).map(backend).collect();
        Ok(Decoders { backends, int8, isa, precision, threads: threads.count() })
    }

    /// What a language model decodes on: one processor with all threads. Its weights do not fit into a cache, so that reading them
    /// is most of the work, and several copies would read them several times.
    pub(crate) fn decoder(&self, precision: DecodingPrecision) -> Result<Decoders, Error> {
        let cpu = self.cpu()?;
        let (isa, threads) = (cpu.isa, cpu.threads.count());
        let (precision, int8) = precision.on(isa);
        let backends = vec![CpuBackend::new(cpu).with_precision(precision).shared()];
        Ok(Decoders { backends, int8: Some(int8), isa, precision, threads })
    }

    /// What an encoder computes on with all threads, and what its weights become.
    pub(crate) fn encoder(&self, precision: DecodingPrecision) -> Result<(Arc<dyn Backend>, Form), Error> {
        let cpu = self.cpu()?;
        let (precision, int8) = precision.of_encoder(cpu.isa);
        let form = if int8 { Form::Int8 } else { Form::Precise };
        Ok((CpuBackend::new(cpu).with_precision(precision).shared(), form))
    }

    /// How many threads compute.
    pub(crate) fn threads(&self) -> usize {
        self.threads.unwrap_or_else(attentive_ranks::threads_each)
    }
}

/// What models decode on.
pub(crate) struct Decoders {
    /// One for each copy of a model; the copies decode side by side.
    pub backends: Vec<Arc<dyn Backend>>,
    /// Whether weights are to be in int8; as they are stored if nothing was asked for.
    pub int8: Option<bool>,
    isa: Isa,
    precision: Precision,
    threads: usize,
}

impl Decoders {
    /// Reads a model.
    pub(crate) fn open(&self, folder: &Path) -> Result<ModelFolder, Error> {
        Ok(ModelFolder::open_on(&self.backends, self.int8, folder)?)
    }

    /// What a model is computed in, and on what, in a few words.
    pub(crate) fn description(&self, int8: bool) -> String {
        let precision = if int8 { "int8" } else { precision::name(self.precision) };
        format!("{precision} on {} with {}", self.isa, words::count(self.threads, "thread"))
    }
}

/// Parses a number from `MIN` to `MAX`.
pub(crate) fn between<const MIN: usize, const MAX: usize>(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (MIN..=MAX).contains(number));
    number.ok_or_else(|| format!("a whole number from {MIN} to {MAX} is needed"))
}

/// Parses a number that a file of settings can hold.
pub(crate) fn whole<T: TryFrom<i64>>(text: &str) -> Result<T, String> {
    let number = text.parse::<i64>().ok().and_then(|number| T::try_from(number).ok());
    number.ok_or_else(|| format!("a whole number from 0 to {} is needed", i64::MAX))
}
