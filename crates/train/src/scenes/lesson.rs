//! The settings of a short run in which a small model learns to find shapes.

use crate::schedule::Schedule;
use crate::settings::{Settings, TaskKind};
use std::path::Path;

/// The settings of a run in this folder that learns scenes in a quarter of an hour on two cores. `recipes/scenes.toml` takes longer and
/// reaches a higher AP.
pub fn settings(folder: &Path, seed: u64) -> Settings {
    Settings {
        source: vec![folder.join("scenes")],
        hold_out: 100,
        preset: "small".to_owned(),
        batch_size: Some(8),
        schedule: Schedule::Cosine,
        learning_rate: Some(5e-4),
        warmup: 200,
        steps: Some(4000),
        validate_every: 250,
        log_every: 20,
        keep: 1,
        seed,
        ..Settings::of(TaskKind::Detect)
    }
}
