//! The program of `fuzz/run`: libFuzzer with one target.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|input: &[u8]| attentive_fuzz::guided(input));

#[cfg(not(fuzzing))]
fn main() {
    eprintln!("error: this program must be built for libFuzzer: use fuzz/run");
    std::process::exit(2);
}
