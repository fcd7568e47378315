//! Instruction sets as proof tokens, chosen at run time.
//!
//! The only way to get an [`Isa`] is to detect it, so code that has one may use its instructions. A kernel is written once over
//! [`Simd`]; [`Isa::dispatch`] compiles it for each set and chooses one at run time.

use crate::amx::{Amx, Tiles};
use crate::simd::{Avx2, Avx512, Portable, Simd};
use std::ffi::OsString;
use std::fmt;
use std::str::FromStr;

/// What can go wrong when an instruction set is chosen by name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IsaError {
    /// The name is unknown.
    #[error("unknown instruction set `{0}` in ATTENTIVE_ISA: use portable, avx2, avx512, avx512bf16 or amx")]
    Unknown(String),
    /// The name is known, but this processor does not have it.
    #[error("this processor has no {0}, which ATTENTIVE_ISA asks for: use {best} or a lower one", best = Isa::best())]
    Missing(&'static str),
}

/// An instruction set that this processor has; lower ones compare as less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Isa(Level);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Portable,
    Avx2,
    Avx512,
    /// AVX-512 with dot products of pairs of bf16 and of groups of four int8.
    Avx512Bf16,
    /// The tile unit, beside all of the above.
    Amx,
}

impl Level {
    const ALL: [Level; 5] = [Level::Portable, Level::Avx2, Level::Avx512, Level::Avx512Bf16, Level::Amx];

    fn name(self) -> &'static str {
        match self {
            Level::Portable => "portable",
            Level::Avx2 => "avx2",
            Level::Avx512 => "avx512",
            Level::Avx512Bf16 => "avx512bf16",
            Level::Amx => "amx",
        }
    }

    fn present(self) -> bool {
        match self {
            Level::Portable => true,
            Level::Avx2 => Avx2::detect().is_some(),
            Level::Avx512 => Avx512::<false>::detect().is_some(),
            Level::Avx512Bf16 => Avx512::<true>::detect().is_some(),
            Level::Amx => Level::Avx512Bf16.present() && Amx::detect().is_some(),
        }
    }
}

/// A computation written once for every instruction set.
///
/// `run` and everything hot below it must be `#[inline(always)]`: only code that is inlined into the functions of
/// [`Isa::dispatch`] is compiled with the instructions of the set. That is true of closures, too: a closure over vectors is written
/// `#[inline(always)] |at, n| …`. Vectors must not go through `map`, `map_or` or `array::from_fn`: if these are not inlined, each
/// instruction becomes a call.
///
/// Code that is inlined in many places is compiled as often, which takes long. So a longer part, such as a whole block, is a kernel of
/// its own that the larger one calls through [`Simd::call`].
pub(crate) trait Kernel {
    /// What the computation returns.
    type Output;
    /// Whether AVX-512 without BF16 computes this faster than AVX2 does. If not, it is not compiled for that set, and AVX2 is used in its
    /// place. Kernels that wait for memory gain nothing from wider vectors, and kernels for bf16 are rarely used on such processors,
    /// because `auto` means f32 there.
    const GAINS_FROM_AVX512: bool = true;
    /// The computation, over the vectors of `S`.
    fn run<S: Simd>(self, simd: S) -> Self::Output;
}

impl Isa {
    /// The best set of this processor.
    pub fn best() -> Isa {
        *Isa::present().last().expect("portable is always present")
    }

    /// Every set of this processor, lowest first; tests walk them all.
    pub fn present() -> Vec<Isa> {
        Level::ALL.into_iter().filter(|level| level.present()).map(Isa).collect()
    }

    /// The set named by the environment variable `ATTENTIVE_ISA`, or the best one if it is not set.
    pub fn from_env() -> Result<Isa, IsaError> {
        Isa::asked_for(std::env::var_os("ATTENTIVE_ISA"))
    }

    /// The set of that name, or the best one without a name. A name that is not UTF-8 is unknown.
    fn asked_for(name: Option<OsString>) -> Result<Isa, IsaError> {
        match name {
            Some(name) if !name.is_empty() => name.to_string_lossy().parse(),
            _ => Ok(Isa::best()),
        }
    }

    /// The name that `ATTENTIVE_ISA` takes.
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// Runs a kernel compiled for this set.
    #[inline]
    #[cfg_attr(
        not(target_arch = "x86_64"),
        allow(unreachable_code, reason = "the tokens cannot exist there")
    )]
    pub(crate) fn dispatch<K: Kernel>(self, kernel: K) -> K::Output {
        match self.0 {
            Level::Portable => run_portable(kernel),
            // Safety: an `Isa` of this level exists only after detection, so the token does too.
            Level::Avx2 => unsafe { run_avx2(kernel, Avx2::assume()) },
            Level::Avx512 => {
                // The condition is a constant: the branch that it rules out is not compiled.
                if K::GAINS_FROM_AVX512 {
                    // Safety: as above.
                    unsafe { run_avx512(kernel, Avx512::assume()) }
                } else {
                    // Safety: as above; a processor with AVX-512 has AVX2.
                    unsafe { run_avx2(kernel, Avx2::assume()) }
                }
            }
            // Safety: as above.
            Level::Avx512Bf16 | Level::Amx => unsafe { run_avx512bf16(kernel, Avx512::assume()) },
        }
    }

    /// The tile unit, if this set has it.
    pub(crate) fn amx(self) -> Option<Amx> {
        // Safety: an `Isa` of this level exists only after detection.
        (self.0 == Level::Amx).then(|| unsafe { Amx::assume() })
    }

    /// The tiles of this thread, if this set has a tile unit, for a kernel over `S`.
    #[inline(always)]
    pub(crate) fn tiles<S: Simd>(self) -> Option<Tiles> {
        if S::BESIDE_TILES { self.amx().map(|amx| amx.tiles()) } else { None }
    }

    /// Whether products of bf16 are faster than those of f32: on the tile unit. As dot products on vectors they are
    /// slower so far (`docs/tried.md`).
    pub fn has_fast_bf16(self) -> bool {
        self.0 == Level::Amx
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Isa {
    type Err = IsaError;

    fn from_str(name: &str) -> Result<Isa, IsaError> {
        let level = Level::ALL.into_iter().find(|level| level.name() == name);
        let level = level.ok_or_else(|| IsaError::Unknown(name.to_owned()))?;
        if level.present() { Ok(Isa(level)) } else { Err(IsaError::Missing(level.name())) }
    }
}

/// Runs a kernel as a function of its own, on any processor.
#[inline(never)]
pub(crate) fn run_portable<K: Kernel>(kernel: K) -> K::Output {
    kernel.run(Portable)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn run_avx2<K: Kernel>(kernel: K, token: Avx2) -> K::Output {
    kernel.run(token)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")]
pub(crate) fn run_avx512<K: Kernel>(kernel: K, token: Avx512<false>) -> K::Output {
    kernel.run(token)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx512vnni")]
pub(crate) fn run_avx512bf16<K: Kernel>(kernel: K, token: Avx512<true>) -> K::Output {
    kernel.run(token)
}

/// On other processors the tokens cannot exist, so these are never called.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn run_avx2<K: Kernel>(_: K, token: Avx2) -> K::Output {
    match token {}
}

/// See `run_avx2`.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn run_avx512<K: Kernel>(_: K, token: Avx512<false>) -> K::Output {
    match token {}
}

/// See `run_avx2`.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn run_avx512bf16<K: Kernel>(_: K, token: Avx512<true>) -> K::Output {
    match token {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_the_set() {
        for isa in Isa::present() {
            assert_eq!(isa.name().parse::<Isa>().unwrap(), isa);
        }
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_known_ones() {
        let message = "sse9".parse::<Isa>().unwrap_err().to_string();
        assert!(message.contains("sse9") && message.contains("avx2"), "{message}");
    }

    #[test]
    fn no_name_and_an_empty_one_mean_the_best_set() {
        for name in [None, Some(OsString::new())] {
            assert_eq!(Isa::asked_for(name), Ok(Isa::best()));
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_name_that_is_no_text_is_refused() {
        use std::os::unix::ffi::OsStringExt;
        let name = OsString::from_vec(b"avx2\xff".to_vec());
        assert_eq!(Isa::asked_for(Some(name)), Err(IsaError::Unknown("avx2\u{fffd}".to_owned())));
    }
}
