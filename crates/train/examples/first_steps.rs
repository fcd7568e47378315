//! The first steps of training on two text files, in both precisions, side by side.
//!
//! ```sh
//! cargo run --release -p attentive-train --example first_steps -- train.en train.de 200
//! ```
//!
//! Everything but the precision is the same: the tokenizer, the batches, the weights at the start, the dropout. So the
//! difference of the losses is what rounding to bf16 costs.

use attentive_model::Builder;
use attentive_model::families::encoder_decoder::EncoderDecoder;
use attentive_model::families::transformer::{Batch, Transformer, TransformerConfig};
use attentive_tensor::{Adam, AdamRule, CpuBackend, Gradients, Precision, Tape};
use attentive_text::tokenizer::train::{Kind, Trainer};
use attentive_text::tokenizer::{Side, Tokenizer};
use attentive_train::corpus::{Batching, Corpus, CorpusFiles, Encode, Encoded};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const VOCABULARY: usize = 8000;
const WARM_UP: f32 = 400.0;
/// Steps whose losses are averaged, because batches differ.
const AVERAGED: usize = 20;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [source, target, rest @ ..] = &arguments[..] else {
        return Err("give a source file, a target file and, if you like, the number of steps".into());
    };
    let steps = rest.first().map_or(Ok(200), |steps| steps.parse())?;
    let (source, target) = (PathBuf::from(source), PathBuf::from(target));

    let mut trainer = Trainer::new(Kind::Bpe, VOCABULARY);
    trainer.file(&source, Side::Source)?;
    trainer.file(&target, Side::Target)?;
    let tokenizer = Arc::new(trainer.joint()?);
    let files = CorpusFiles::Pairs { sources: vec![source], targets: vec![target] };
    let corpus = Arc::new(Corpus::open(&files, Path::new("."))?);

    println!("{:>5}  {:>8}  {:>8}", "step", "f32", "bf16");
    let f32_losses = losses(Precision::F32, &corpus, &tokenizer, steps)?;
    let bf16_losses = losses(Precision::Bf16, &corpus, &tokenizer, steps)?;
    let mean = |losses: &[f32]| losses.iter().sum::<f32>() / losses.len() as f32;
    for (i, (one, other)) in f32_losses.chunks(AVERAGED).zip(bf16_losses.chunks(AVERAGED)).enumerate() {
        println!("{:>5}  {:>8.4}  {:>8.4}", (i * AVERAGED + one.len()), mean(one), mean(other));
    }
    Ok(())
}

/// The loss of each step.
fn losses(
    precision: Precision,
    corpus: &Arc<Corpus>,
    tokenizer: &Arc<Tokenizer>,
    steps: usize,
) -> Result<Vec<f32>, Box<dyn Error>> {
    let backend = CpuBackend::from_env()?.with_precision(precision).shared();
    let config = TransformerConfig::preset("small", tokenizer.vocabulary_size(Side::Target))?;
    let model = Transformer::new(&Builder::random(&backend, 1), &config)?;
    let mut adam = Adam::new(&*backend, model.parameters());

    let encode = |side| -> Arc<dyn Encode> {
        let tokenizer = Arc::clone(tokenizer);
        Arc::new(move |text: &str, _| -> Encoded { Ok(tokenizer.encode(text, side)?) })
    };
    let batches = corpus.batches(
        Batching { tokens: 4096, ..Batching::default() },
        encode(Side::Source),
        encode(Side::Target),
    )?;
    let mut losses = Vec::new();
    for (batch, step) in batches.take(steps).zip(1..) {
        let batch = Batch::new(&*backend, &batch?.pairs(), config.start as i32);
        let tape = Tape::training(&backend, step as u64);
        let loss = model.loss(&tape, &batch, 0.1);
        let mut gradients = Gradients::default();
        tape.backward(&loss, &mut gradients);
        let step = step as f32;
        let rate = (config.d_model as f32).powf(-0.5) * step.powf(-0.5).min(step * WARM_UP.powf(-1.5));
        let rule = AdamRule { rate, beta1: 0.9, beta2: 0.98, epsilon: 1e-9, weight_decay: 0.0 };
        adam.step(&*backend, &rule, None, &gradients);
        losses.push(backend.download_f32(loss.value())[0]);
    }
    Ok(losses)
}
