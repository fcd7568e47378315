//! Files of a training run.

use crate::Reader;
use crate::scratch::Scratch;
use attentive_train::settings::TaskKind;
use attentive_train::{Draft, Run, Settings, logs, settings};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use toml::Table;

/// `train.toml`.
pub(crate) fn settings() -> Reader {
    let scratch = Scratch::new("train_toml");
    Box::new(move |input| {
        let table = settings::read(&scratch.write("train.toml", input));
        let draft = table.and_then(|table| Draft::merge(table, Table::new()));
        draft.is_ok_and(|draft| draft.settings().check().is_ok())
    })
}

/// `metrics.jsonl`.
pub(crate) fn metrics() -> Reader {
    let scratch = Scratch::new("metrics");
    Box::new(move |input| {
        scratch.write("metrics.jsonl", input);
        logs::read(scratch.folder()).is_ok_and(|metrics| !metrics.is_empty())
    })
}

/// `checkpoints/state.safetensors`, from which a run goes on to its end if it can. The seed is of two steps of the same run.
pub(crate) fn state() -> Reader {
    let scratch = Scratch::new("state");
    let settings = smallest(&scratch);
    let folder = scratch.path("run");
    let mut run = Run::begin(&folder, settings.clone(), &mut |_| {}).expect("a run");
    run.train(&AtomicBool::new(false), &mut |_| {}).expect("some steps");
    drop(run);
    let checkpoints = folder.join("checkpoints");
    let files = std::fs::read_dir(&checkpoints)
        .expect("the folder of a run")
        .map(|file| file.expect("a file").path());
    // A state names weights that were kept, and has others removed.
    let kept: Vec<(PathBuf, Vec<u8>)> =
        files.map(|path| (path.clone(), std::fs::read(path).expect("a file"))).collect();
    Box::new(move |input| {
        for (path, bytes) in kept.iter().filter(|(path, _)| !path.exists()) {
            std::fs::write(path, bytes).expect("room for a small file");
        }
        std::fs::write(checkpoints.join("state.safetensors"), input).expect("room for a small file");
        // It holds the scratch folder, too.
        let _ = &scratch;
        let run = Run::resume(&folder, settings.clone(), &mut |_| {});
        run.is_ok_and(|mut run| run.train(&AtomicBool::new(false), &mut |_| {}).is_ok())
    })
}

/// Pictures in IDX beside labels of three, and a step that learns from them.
pub(crate) fn idx() -> Reader {
    let scratch = Scratch::new("idx");
    scratch.write("labels-idx1-ubyte", &[0, 0, 8, 1, 0, 0, 0, 3, 5, 7, 5]);
    Box::new(move |input| {
        let images = scratch.write("images-idx3-ubyte", input);
        let settings = Settings {
            source: vec![images],
            preset: "tiny".to_owned(),
            encoder_layers: Some(1),
            d_model: Some(4),
            heads: Some(1),
            d_ff: Some(4),
            patch_size: Some(2),
            batch_size: Some(2),
            steps: Some(1),
            threads: Some(1),
            ..Settings::of(TaskKind::ClassifyImages)
        };
        let folder = scratch.path("run");
        let _ = std::fs::remove_dir_all(&folder);
        let run = Run::begin(&folder, settings, &mut |_| {});
        run.is_ok_and(|mut run| run.train(&AtomicBool::new(false), &mut |_| {}).is_ok())
    })
}

/// A run of three steps with a model of some hundred weights.
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
        steps: Some(3),
        validate_every: 1,
        threads: Some(1),
        ..Settings::default()
    }
}
