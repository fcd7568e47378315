//! Options that several commands share.

use crate::error::Error;
use attentive_kernels::{Cpu, Isa, Threads};
use clap::Args;

/// On what a command computes.
#[derive(Args)]
pub(crate) struct Compute {
    /// How many threads compute; all cores if not given
    #[arg(long, value_name = "N", value_parser = between::<1, 1024>)]
    threads: Option<usize>,
}

impl Compute {
    /// The processor as the options and `ATTENTIVE_ISA` want it.
    pub(crate) fn cpu(&self) -> Result<Cpu, Error> {
        let isa = Isa::from_env()?;
        Ok(Cpu { isa, threads: self.threads.map_or_else(Threads::all, Threads::new) })
    }

    /// How many threads compute.
    pub(crate) fn threads(&self) -> usize {
        self.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
    }
}

/// Parses a number from `MIN` to `MAX`.
pub(crate) fn between<const MIN: usize, const MAX: usize>(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (MIN..=MAX).contains(number));
    number.ok_or_else(|| format!("a whole number from {MIN} to {MAX} is needed"))
}
