//! Files of a training run.

use crate::Reader;
use crate::scratch::Scratch;
use attentive_train::{Draft, Run, Settings, logs, settings};
use std::sync::atomic::AtomicBool;
use toml::Table;

/// `train.toml`.
pub(crate) fn settings() -> Reader {
    let scratch = Scratch::new("train_toml");
    Box::new(move |input| {
        let Ok(table) = settings::read(&scratch.write("train.toml", input)) else { return };
        if let Ok(draft) = Draft::merge(table, Table::new()) {
            let _ = draft.settings().check();
        }
    })
}

/// `metrics.jsonl`.
pub(crate) fn metrics() -> Reader {
    let scratch = Scratch::new("metrics");
    Box::new(move |input| {
        scratch.write("metrics.jsonl", input);
        let _ = logs::read(scratch.folder());
    })
}

/// `checkpoints/state.safetensors`, from which a run goes on by a step if it can.
pub(crate) fn state() -> Reader {
    let scratch = Scratch::new("state");
    let settings = smallest(&scratch);
    let folder = scratch.path("run");
    let mut run = Run::begin(&folder, settings.clone(), &mut |_| {}).expect("a run");
    run.train(&AtomicBool::new(false), &mut |_| {}).expect("two steps");
    drop(run);
    let state = folder.join("checkpoints/state.safetensors");
    Box::new(move |input| {
        std::fs::write(&state, input).expect("room for a small file");
        // It holds the scratch folder, too.
        let _ = &scratch;
        if let Ok(mut run) = Run::resume(&folder, settings.clone(), &mut |_| {}) {
            let _ = run.train(&AtomicBool::new(true), &mut |_| {});
        }
    })
}

/// A run of two steps with a model of some hundred weights.
fn smallest(scratch: &Scratch) -> Settings {
    let text = "ab cab\nbad ab\ncad add\nadd dab bad\n";
    Settings {
        source: vec![scratch.write("source", text.as_bytes())],
        target: vec![scratch.write("target", text.as_bytes())],
        vocab_size: 12,
        preset: "tiny".to_owned(),
        encoder_layers: Some(1),
        decoder_layers: Some(1),
        d_model: Some(2),
        heads: Some(1),
        d_ff: Some(2),
        batch_tokens: 50,
        warmup: 2,
        steps: Some(2),
        threads: Some(1),
        ..Settings::default()
    }
}
