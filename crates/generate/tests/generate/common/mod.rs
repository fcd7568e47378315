//! What the tests of generating share.

use attentive_generate::{EncoderDecoderSteps, Generator, Hypothesis, Options, Request};
use attentive_model::Builder;
use attentive_model::families::transformer::{Transformer, TransformerConfig};
use attentive_tensor::{Backend, Cpu, CpuBackend, Isa, Precision, Random, Threads};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub fn backend(precision: Precision, threads: usize) -> Arc<dyn Backend> {
    let isa = Isa::from_env().unwrap();
    CpuBackend::new(Cpu { isa, threads: Threads::new(threads) }).with_precision(precision).shared()
}

/// A file of the repository's golden ones.
pub fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden").join(name)
}

/// A folder of the shared data, or none with a word about it.
pub fn shared(name: &str) -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let path = std::env::var_os("ATTENTIVE_SHARED").map_or_else(beside, PathBuf::from).join(name);
    if !path.exists() {
        eprintln!("skipped: there is no {}; ATTENTIVE_SHARED names the folder that has it", path.display());
        return None;
    }
    Some(path)
}

/// The small golden model, which is unsure of itself: 24 tokens, of which 0 ends and 23 is padding.
pub fn unsure(backend: &Arc<dyn Backend>) -> Transformer {
    Transformer::load(backend, &golden("generate")).unwrap_or_else(|error| panic!("{error}"))
}

/// A model of odd sizes with random weights.
pub fn random_model(backend: &Arc<dyn Backend>, seed: u64) -> Transformer {
    let config = TransformerConfig {
        d_model: 36,
        h: 3,
        d_ff: 70,
        max_positions: 60,
        encoder_layers: 1,
        decoder_layers: 2,
        ..TransformerConfig::preset("tiny", 29).unwrap()
    };
    Transformer::new(&Builder::random(backend, seed), &config).unwrap()
}

/// A model whose padding is a token in the midst of the vocabulary.
pub fn padding_inside(backend: &Arc<dyn Backend>) -> Transformer {
    let config =
        TransformerConfig { pad: Some(70), start: 70, ..TransformerConfig::preset("tiny", 320).unwrap() };
    Transformer::new(&Builder::random(backend, 2), &config).unwrap()
}

/// A model in int8 with random weights, whose heads fill vectors of every instruction set.
pub fn wide_heads_in_int8(backend: &Arc<dyn Backend>) -> Transformer {
    wide_heads(&Builder::random(backend, 3).in_int8())
}

/// The same in any form.
pub fn wide_heads(builder: &Builder) -> Transformer {
    let config = TransformerConfig {
        d_model: 128,
        h: 4,
        d_ff: 64,
        max_positions: 60,
        encoder_layers: 1,
        decoder_layers: 2,
        ..TransformerConfig::preset("tiny", 29).unwrap()
    };
    Transformer::new(builder, &config).unwrap()
}

pub fn generator(backend: &Arc<dyn Backend>, model: &Transformer, options: Options) -> Generator {
    Generator::new(EncoderDecoderSteps::new(backend, model), options)
        .unwrap_or_else(|error| panic!("{error}"))
}

/// Sentences of 1 to 12 random tokens, each with the end token 0.
pub fn sources(seed: u64, count: usize, model: &Transformer) -> Vec<Vec<u32>> {
    let (random, tokens) = (Random::new(seed), model.config().vocab_size as u32 - 2);
    let source = |number: u64| {
        let random = random.split(number);
        let length = random.bits(0) % 12;
        (1..=length).map(|i| 1 + random.bits(i) % tokens).chain([0]).collect()
    };
    (0..count as u64).map(source).collect()
}

/// All results of all sources.
pub fn results<I>(generator: &mut Generator, sources: I) -> Vec<Vec<Hypothesis>>
where
    I: IntoIterator<Item: Into<Request>>,
{
    generator.generate(sources).map(|results| results.unwrap_or_else(|error| panic!("{error}"))).collect()
}
