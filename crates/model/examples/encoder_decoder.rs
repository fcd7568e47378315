//! Builds a small encoder-decoder from the parts and runs it: `cargo run -p attentive-model --example encoder_decoder`

use attentive_model::layers::{
    Decoder, Embedding, EmbeddingConfig, Encoder, Head, MultiHeadConfig, NormPlacement, PositionKind,
    StackConfig,
};
use attentive_model::{Builder, Sequences};
use attentive_tensor::{Activation, CpuBackend, Tape};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let backend = CpuBackend::from_env()?.shared();
    let builder = Builder::random(&backend, 1);
    let (vocab_size, d_model, h) = (100, 64, 2);
    // The last token is padding, from which decoding starts.
    let tokens = EmbeddingConfig { vocab_size, d_emb: d_model, d_model, padding: true };
    let stack = StackConfig {
        layers: 2,
        attention: MultiHeadConfig::new(d_model, h)?,
        d_ff: 256,
        activation: Activation::Relu,
        norm: NormPlacement::Post,
        positions: PositionKind::Interleaved,
        max_positions: 50,
        dropout: 0.1,
    };
    let embedding = Embedding::new(&builder.at("shared"), &tokens)?;
    let encoder = Encoder::new(&builder.at("encoder"), &stack)?;
    let decoder = Decoder::new(&builder.at("decoder"), &stack)?;
    let head = Head::tied(&builder.at("head"), &embedding, &tokens)?;

    // Two source sentences of five and three tokens, packed one after the other: no padding.
    let (source, sentences) = (backend.upload_i32(&[11, 12, 13, 14, 0, 21, 22, 0]), Sequences::new([5, 3]));
    let tape = Tape::inference(&backend).watching();
    let memory = encoder.forward(&tape, &embedding.forward(&tape, &source), &sentences);

    // Two tokens for each, one after the other, from the start token on; the most likely one comes next.
    let mut cache = decoder.start(&tape, &memory, &sentences, 20);
    let mut last = vec![vocab_size as i32 - 1; 2];
    for _ in 0..2 {
        let x = embedding.forward(&tape, &backend.upload_i32(&last));
        let hidden = decoder.step(&tape, &x, &Sequences::new([1, 1]), &mut cache);
        let logits = backend.download_f32(head.logits(&tape, &hidden).value());
        let best = |row: &[f32]| (0..head.classes()).max_by(|&a, &b| row[a].total_cmp(&row[b])).unwrap_or(0);
        last = logits.chunks(vocab_size).map(|row| best(row) as i32).collect();
        println!("memory {}, hidden {}, next tokens {last:?}", memory.shape(), hidden.shape());
    }

    // What the first head of the last layer looked at in the first sentence.
    let watched = tape.watched();
    let weights = watched.last().expect("attention was computed").of_heads(&*backend, &[0]);
    println!("attention to the source: {:.2?}", &backend.download_f32(&weights)[..5]);
    Ok(())
}
