//! What the tests of models with an encoder and a decoder share.

use super::{Golden, bits};
use attentive_model::Sequences;
use attentive_model::families::encoder_decoder::{Batch, EncoderDecoder};
use attentive_model::layers::{Branch, Cache};
use attentive_tensor::{Backend, Tape};
use std::sync::Arc;

/// A source and its target.
pub type Pair = (Vec<i32>, Vec<i32>);

/// Sources and targets of a golden file.
pub fn pairs(answers: &Golden) -> Vec<Pair> {
    let side = |name: &str| answers.sentences(&format!("{name}.ids"), &format!("{name}.lengths"));
    side("source").into_iter().zip(side("target")).collect()
}

pub fn batch(backend: &dyn Backend, model: &impl EncoderDecoder, pairs: &[Pair]) -> Batch {
    Batch::new(backend, pairs, model.outline().start as i32)
}

/// The logits of all target tokens.
pub fn logits(tape: &Tape, model: &impl EncoderDecoder, batch: &Batch) -> Vec<f32> {
    let memory = model.encode(tape, &batch.source, &batch.source_sequences);
    let hidden = model.decode(tape, &batch.input, &batch.target_sequences, &memory, &batch.source_sequences);
    tape.backend().download_f32(model.logits(tape, &hidden).value())
}

/// The logits of a batch have the same bits pair by pair, and token by token with the cache.
pub fn assert_same_bits(name: &str, backend: &Arc<dyn Backend>, model: &impl EncoderDecoder, pairs: &[Pair]) {
    let (tape, vocabulary) = (Tape::inference(backend), model.outline().target_vocabulary);
    let of = |pairs: &[Pair]| logits(&tape, model, &batch(&**backend, model, pairs));
    let whole = of(pairs);
    let alone: Vec<f32> = pairs.iter().flat_map(|pair| of(std::slice::from_ref(pair))).collect();
    assert_eq!(bits(&alone), bits(&whole), "{name}");
    let mut cache = Cache::default();
    let mut before = 0;
    for (slot, (source, target)) in pairs.iter().enumerate() {
        let sequences = Sequences::new([source.len()]);
        model.admit(&tape, &backend.upload_i32(source), &sequences, &[slot], &mut cache);
        let mut last = model.outline().start as i32;
        for (position, &token) in target.iter().enumerate() {
            let branch = Branch::token(slot, (position > 0).then_some(0));
            let hidden = model.step(&tape, &backend.upload_i32(&[last]), &[branch], &mut cache);
            let found = backend.download_f32(model.logits(&tape, &hidden).value());
            let expected = &whole[(before + position) * vocabulary..][..vocabulary];
            assert_eq!(bits(&found), bits(expected), "{name}, pair {slot}, token {position}");
            last = token;
        }
        before += target.len();
    }
}
