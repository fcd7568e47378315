//! A run's folder is a model folder: what Hugging Face's `MarianMTModel` looks for in it.

use crate::Error;
use attentive_model::checkpoint::Staged;
use attentive_model::families::transformer::TransformerConfig;
use serde_json::json;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Where a folder has its weights.
pub(crate) fn weights(folder: &Path) -> PathBuf {
    folder.join("model.safetensors")
}

/// Whether there are weights in a folder.
pub(crate) fn is_model(folder: &Path) -> bool {
    weights(folder).exists()
}

/// Writes what says how to load the model and how to generate with it. `multi_sentence_share` is the share of training lines
/// that have several sentences.
pub(crate) fn write_configs(
    folder: &Path,
    config: &TransformerConfig,
    multi_sentence_share: f64,
) -> Result<(), Error> {
    let generation = json!({
        "bad_words_ids": config.pad.map(|pad| [[pad]]),
        "decoder_start_token_id": config.start,
        "eos_token_id": config.eos,
        "forced_eos_token_id": config.eos,
        "max_length": config.max_positions,
        "num_beams": 5,
        "pad_token_id": config.pad,
    });
    let text = format!("{generation:#}\n");
    Staged::new(&folder.join("generation_config.json"), text.as_bytes())?.commit()?;
    Ok(config.stage_with_share(folder, multi_sentence_share)?.commit()?)
}

/// Lets the weights in `file` be those of the folder: a second name for the same file, where the system has
/// such, or else a copy. The old ones are replaced at once.
pub(crate) fn publish(folder: &Path, file: &Path) -> Result<(), Error> {
    let path = weights(folder);
    let beside = folder.join(format!(".model.safetensors.{}.link.part", std::process::id()));
    let linked = std::fs::hard_link(file, &beside).or_else(|_| {
        std::fs::copy(file, &beside)?;
        File::open(&beside)?.sync_all()
    });
    let renamed = linked.and_then(|()| std::fs::rename(&beside, &path));
    // After renaming one name of a file to another of the same file, both are there.
    let _ = std::fs::remove_file(&beside);
    renamed.and_then(|()| File::open(folder)?.sync_all()).map_err(Error::file(&path))
}
