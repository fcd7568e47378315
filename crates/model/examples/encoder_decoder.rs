//! Builds a small encoder-decoder from the parts and runs it: `cargo run -p attentive-model --example encoder_decoder`

use attentive_model::families::transformer::{Transformer, TransformerConfig};
use attentive_model::{Builder, Sequences};
use attentive_tensor::{CpuBackend, Tape};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let backend = CpuBackend::from_env()?.shared();
    let config = TransformerConfig { h: 2, d_ff: 256, ..TransformerConfig::preset("tiny", 100)? };
    let model = Transformer::new(&Builder::random(&backend, 1), &config)?;

    // Two source sentences of five and three tokens, packed one after the other: no padding.
    let source = backend.upload_i32(&[11, 12, 13, 14, 0, 21, 22, 0]);
    let sentences = Sequences::new([5, 3]);
    let tape = Tape::inference(&backend).watching();
    let memory = model.encode(&tape, &source, &sentences);

    // One decoder step for each, from the start token.
    let start = backend.upload_i32(&[config.start as i32; 2]);
    let mut cache = model.start(&tape, &memory, &sentences, 20);
    let hidden = model.step(&tape, &start, &Sequences::new([1, 1]), &mut cache);
    let logits = model.logits(&tape, &hidden);
    println!("{} parameters, memory {}, logits {}", model.parameter_count(), memory.shape(), logits.shape());

    // What the first head of the last layer looked at in the first sentence.
    let watched = tape.watched();
    let weights = watched.last().expect("attention was computed").of_heads(&*backend, &[0]);
    println!("attention to the source: {:.2?}", &backend.download_f32(&weights)[..5]);
    Ok(())
}
