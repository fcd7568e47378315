//! Builds a small encoder-decoder from the parts and runs it: `cargo run -p attentive-model --example encoder_decoder`

use attentive_model::layers::{
    Decoder, Embedding, EmbeddingConfig, Encoder, Head, MultiHeadConfig, PositionKind, Positions, StackConfig,
};
use attentive_model::{Builder, Sequences};
use attentive_tensor::{CpuBackend, Tape};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let backend = CpuBackend::from_env()?.shared();
    let builder = Builder::random(&backend, 1);
    // A hundred tokens, of which the last is padding, from which decoding starts.
    let tokens = EmbeddingConfig { vocab_size: 100, d_emb: 64, d_model: 64, padding: Some(99), scaled: true };
    let stack = StackConfig::new(2, MultiHeadConfig::new(64, 4)?, 256);
    let embedding = Embedding::new(&builder.at("shared"), &tokens)?;
    // The paper's sinusoids have nothing to learn: encoder and decoder may share them.
    let positions = Positions::new(&builder, PositionKind::Interleaved, 512, 64)?;
    let encoder = Encoder::new(&builder.at("encoder"), &stack)?;
    let decoder = Decoder::new(&builder.at("decoder"), &stack)?;
    let head = Head::tied(&builder.at("head"), &embedding, &tokens)?;

    // Two source sentences of five and three tokens, packed one after the other: no padding.
    let (source, sentences) = (backend.upload_i32(&[11, 12, 13, 14, 0, 21, 22, 0]), Sequences::new([5, 3]));
    let tape = Tape::inference(&backend).watching();
    let x = positions.forward(&tape, &embedding.forward(&tape, &source), &sentences.positions());
    let memory = encoder.forward(&tape, &x, &sentences.attending(&*backend, &sentences), None);

    // The first target token of each, from the start token; a cache would let the next ones follow one by one.
    let starts = Sequences::new([1, 1]);
    let x = embedding.forward(&tape, &backend.upload_i32(&[99, 99]));
    let x = positions.forward(&tape, &x, &starts.positions());
    let [own, cross] = [&starts, &sentences].map(|keys| starts.attending(&*backend, keys));
    let hidden = decoder.forward(&tape, &x, &own, None, Some((&memory, &cross)));
    let logits = backend.download_f32(head.logits(&tape, &hidden).value());
    let best = |row: &[f32]| (0..head.classes()).max_by(|&a, &b| row[a].total_cmp(&row[b]));
    println!("most likely tokens: {:?}", logits.chunks(100).map(best).collect::<Vec<_>>());

    // What the first head of the last layer looked at in the first sentence.
    let weights = tape.watched().pop().expect("attention was computed").matrix(&*backend, 0, 0);
    println!("attention to the source: {:.2?}", backend.download_f32(&weights));
    Ok(())
}
