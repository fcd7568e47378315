//! How a small model learns to find shapes: what it is made of, and for how long.

use crate::schedule::Schedule;
use crate::settings::{Settings, TaskKind};
use std::path::Path;

/// The settings of a run in this folder that learns scenes for some twenty minutes on two cores. It is too short: most shapes are not found.
pub fn settings(folder: &Path, seed: u64) -> Settings {
    Settings {
        source: vec![folder.join("scenes")],
        hold_out: 100,
        preset: "tiny".to_owned(),
        d_model: Some(64),
        batch_size: Some(16),
        schedule: Schedule::Cosine,
        learning_rate: Some(1.5e-3),
        warmup: 200,
        steps: Some(4000),
        validate_every: 250,
        log_every: 20,
        keep: 1,
        seed,
        ..Settings::of(TaskKind::Detect)
    }
}
