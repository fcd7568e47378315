//! From one model folder to another: weights in another type, or in the order that Marian has.
//!
//! The paper writes sine and cosine of a frequency beside each other, Marian all sines before all cosines.
//! The two are the same model with its width in another order: whatever reads the width has its columns
//! reordered, whatever writes it its rows.

use super::config_file::{Config, not_marian};
use super::folder::Folder;
use super::names::LOGITS_BIAS;
use super::{Transformer, TransformerConfig};
use crate::builder::Builder;
use crate::checkpoint::{Stored, StoredType};
use crate::convert::{Converted, Old, Work, fields_of, must_be_free};
use crate::error::Error;
use crate::families::encoder_decoder::EncoderDecoder;
use crate::layers::PositionKind;
use attentive_tensor::{Backend, Shape};
use serde_json::{Map, Value};
use std::path::Path;
use std::sync::Arc;

/// What is to become of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conversion {
    /// The type that matrices are stored in.
    pub stored: StoredType,
    /// The order of its width.
    pub layout: Layout,
}

/// The order of a model's width.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Layout {
    /// The one that it has.
    #[default]
    AsItIs,
    /// Marian's; what Marian cannot express is refused.
    Marian,
}

/// Reads the model in the folder `from` and writes what becomes of it, with all that belongs to it, to the
/// folder `to`, which may not hold a model yet. All files are on the disk before the first takes its place.
pub fn convert(
    backend: &Arc<dyn Backend>,
    from: &Path,
    to: &Path,
    conversion: &Conversion,
) -> Result<Converted, Error> {
    must_be_free(to)?;
    let folder = Folder::open(from)?;
    let checkpoint = &folder.read.checkpoint;
    let model = Transformer::new(&Builder::shapes_of(backend, checkpoint), &folder.config)?;
    let (config, order) = laid_out(&folder.config, conversion.layout)?;

    let old = |name: &str, shape, converts| Old {
        name: name.to_owned(),
        new_name: name.to_owned(),
        shape,
        converts,
    };
    let mut tensors: Vec<Old> =
        model.parameters().iter().map(|p| old(p.name(), p.value().shape(), true)).collect();
    if checkpoint.has(LOGITS_BIAS) {
        tensors.push(old(LOGITS_BIAS, Shape::from([1, config.target_vocabulary()]), false));
    }
    // If the order does not change, the dimension of the width does not matter.
    let change = |name: &str, numbers: Stored| match order.as_ref().map(|order| (order, axis(name))) {
        Some((order, Some(axis))) => numbers.reorder(order, axis == Axis::Columns),
        _ => numbers,
    };
    let work = Work { checkpoint, stored: conversion.stored, change: &change };
    work.write([from, to], &tensors, &changed_config(from, &config, conversion.stored)?)
}

/// The configuration in another layout, and the dimensions of the old width in their new order, if that
/// changes.
fn laid_out(
    config: &TransformerConfig,
    layout: Layout,
) -> Result<(TransformerConfig, Option<Vec<usize>>), Error> {
    let same = config.clone();
    if layout == Layout::AsItIs {
        return Ok((same, None));
    }
    if let Some(reason) = not_marian(config) {
        return Err(Error::config("layout", format!("the model cannot have the Marian layout: {reason}")));
    }
    if config.positions == PositionKind::Halves {
        return Ok((same, None));
    }
    let d_model = config.d_model;
    let order = (0..d_model).step_by(2).chain((1..d_model).step_by(2)).collect();
    Ok((TransformerConfig { positions: PositionKind::Halves, ..same }, Some(order)))
}

/// `config.json` with what has changed; fields that are not ours stay.
fn changed_config(
    from: &Path,
    config: &TransformerConfig,
    stored: StoredType,
) -> Result<Map<String, Value>, Error> {
    const CHANGED: [&str; 10] = [
        "model_type",
        "architectures",
        "d_emb",
        "d_k",
        "d_v",
        "positions",
        "share_encoder_decoder_embeddings",
        "tie_word_embeddings",
        "dtype",
        "quantization_config",
    ];
    let mut fields = fields_of(from)?;
    let new = serde_json::to_value(Config::of(config, stored)).expect("a plain structure");
    for name in CHANGED {
        match new.get(name) {
            Some(value) => drop(fields.insert(name.to_owned(), value.clone())),
            None => drop(fields.shift_remove(name)),
        }
    }
    // The old name of `dtype`, which would contradict it.
    fields.shift_remove("torch_dtype");
    Ok(fields)
}

/// Where a parameter has the width of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Axis {
    Rows,
    Columns,
}

/// Where a parameter of a model that Marian can express has the model's width.
///
/// # Panics
/// If a part is unknown: its numbers would be in the wrong order.
fn axis(name: &str) -> Option<Axis> {
    let mut words = name.rsplit('.');
    let (kind, part) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    match (part, kind) {
        ("shared" | "embed_tokens" | "lm_head", _) => Some(Axis::Columns),
        ("q_proj" | "k_proj" | "v_proj" | "fc1", "weight") => Some(Axis::Columns),
        ("q_proj" | "k_proj" | "v_proj" | "fc1", "bias") => None,
        ("out_proj" | "fc2", _) => Some(Axis::Rows),
        (norm, _) if norm.ends_with("layer_norm") => Some(Axis::Rows),
        _ if name == LOGITS_BIAS => None,
        _ => panic!("convert: where `{name}` has the width of the model is not known"),
    }
}
