//! From one model folder to another: weights in another type, or in the order that Marian has.
//!
//! The paper writes sine and cosine of a frequency beside each other, Marian all sines before all cosines.
//! The two are the same model with its width in another order: whatever reads the width has its columns
//! reordered, whatever writes it its rows.
//!
//! Weights go through memory one tensor at a time. In bf16 and int8 only matrices are stored so: norms and
//! biases are few and matter. Tables of learned positions, which are never multiplied, stay in f32 where
//! matrices become int8.

use super::config_file::{Config, not_marian};
use super::folder::{Folder, LOGITS_BIAS};
use super::{Transformer, TransformerConfig};
use crate::builder::Builder;
use crate::checkpoint::{
    Checkpoint, Item, SCALE, Staged, Stored, StoredType, WEIGHTS, if_there, stage_items,
};
use crate::error::Error;
use crate::families::CONFIG;
use crate::layers::PositionKind;
use attentive_tensor::{Backend, Shape};
use half::bf16;
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

/// What a conversion has written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Converted {
    /// How many tensors there are.
    pub tensors: usize,
    /// The bytes of the file that they came from.
    pub bytes_before: u64,
    /// The bytes of the new one.
    pub bytes: u64,
}

/// Files that belong to a model and are copied as they are.
const COPIED: [&str; 11] = [
    "generation_config.json",
    "source.spm",
    "target.spm",
    "vocab.json",
    "target_vocab.json",
    "tokenizer_config.json",
    "tokenizer.json",
    "tokenizer.model",
    "special_tokens_map.json",
    "vocab.txt",
    "merges.txt",
];

/// Reads the model in the folder `from` and writes what becomes of it, with all that belongs to it, to the
/// folder `to`, which may not hold a model yet. All files are on the disk before the first takes its place.
pub fn convert(
    backend: &Arc<dyn Backend>,
    from: &Path,
    to: &Path,
    conversion: &Conversion,
) -> Result<Converted, Error> {
    let new_config = to.join(CONFIG);
    if new_config.try_exists().map_err(|source| Error::File { path: new_config.clone(), source })? {
        let problem = "the folder already has a model: choose another folder, or remove the model first";
        return Err(Error::Format { path: to.to_owned(), problem: problem.to_owned() });
    }
    let folder = Folder::open(from)?;
    let model = Transformer::new(&Builder::shapes(backend), &folder.config)?;
    model.parameters().iter().try_for_each(|p| folder.checkpoint.check(p.name(), p.value().shape()))?;
    folder.refuse_surplus(&model)?;
    let (config, order) = laid_out(&folder.config, conversion.layout)?;
    let work = Work { checkpoint: &folder.checkpoint, stored: conversion.stored, order };

    let mut pieces: Vec<Piece> =
        model.parameters().iter().flat_map(|p| work.pieces(p.name(), p.value().shape())).collect();
    if folder.checkpoint.has(LOGITS_BIAS) {
        let shape = Shape::from([1, config.target_vocabulary()]);
        let item = Item { name: LOGITS_BIAS.to_owned(), shape, stored: StoredType::F32 };
        pieces.push(Piece { of: item.name.clone(), shape, item });
    }
    // The widest numbers first, so that all of them lie at multiples of their size.
    pieces.sort_by_key(|piece| std::cmp::Reverse(piece.item.stored.dtype().bitsize()));

    let made = !to.exists();
    std::fs::create_dir_all(to).map_err(|source| Error::File { path: to.to_owned(), source })?;
    let converted = work.write(from, to, &pieces, &config).and_then(|()| {
        let bytes_before = folder.checkpoint.files().map(length).sum::<Result<u64, Error>>()?;
        Ok(Converted { tensors: pieces.len(), bytes_before, bytes: length(&to.join(WEIGHTS))? })
    });
    if converted.is_err() {
        // Without it the folder is no model, and converting again is not refused.
        let _ = std::fs::remove_file(new_config);
        if made {
            // What was staged is gone. Files that have taken their places already stay, and the folder with them.
            let _ = std::fs::remove_dir(to);
        }
    }
    converted
}

fn length(path: &Path) -> Result<u64, Error> {
    let metadata = std::fs::metadata(path);
    Ok(metadata.map_err(|source| Error::File { path: path.to_owned(), source })?.len())
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
fn changed_config(from: &Path, config: &TransformerConfig, stored: StoredType) -> Result<String, Error> {
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
    let path = from.join(CONFIG);
    let text = std::fs::read_to_string(&path).map_err(|source| Error::File { path: path.clone(), source })?;
    let old: Result<Map<String, Value>, _> = serde_json::from_str(&text);
    let mut fields = old.map_err(|error| Error::Format { path, problem: error.to_string() })?;
    let new = serde_json::to_value(Config::of(config, stored)).expect("a plain structure");
    for name in CHANGED {
        match new.get(name) {
            Some(value) => drop(fields.insert(name.to_owned(), value.clone())),
            None => drop(fields.shift_remove(name)),
        }
    }
    // The old name of `dtype`, which would contradict it.
    fields.shift_remove("torch_dtype");
    Ok(serde_json::to_string_pretty(&fields).expect("a plain structure") + "\n")
}

/// Where weights come from and what becomes of them.
struct Work<'a> {
    checkpoint: &'a Checkpoint,
    stored: StoredType,
    order: Option<Vec<usize>>,
}

/// A tensor of the new file, and the one of the old file that it is made of.
struct Piece {
    item: Item,
    of: String,
    shape: Shape,
}

impl Work<'_> {
    /// Writes a folder. Nothing takes its place before all is on the disk.
    fn write(
        &self,
        from: &Path,
        to: &Path,
        pieces: &[Piece],
        config: &TransformerConfig,
    ) -> Result<(), Error> {
        let items: Vec<Item> = pieces.iter().map(|piece| piece.item.clone()).collect();
        let mut staged = vec![stage_items(&to.join(WEIGHTS), &items, None, |i| self.bytes(&pieces[i]))?];
        for name in COPIED {
            let path = from.join(name);
            let contents = if_there(std::fs::read(&path)).map_err(|source| Error::File { path, source })?;
            staged.extend(contents.map(|contents| Staged::new(&to.join(name), &contents)).transpose()?);
        }
        // Last, since with it the folder is a model.
        let config = changed_config(from, config, self.stored)?;
        staged.push(Staged::new(&to.join(CONFIG), config.as_bytes())?);
        staged.into_iter().try_for_each(Staged::commit)
    }

    /// What a parameter becomes: itself, or in int8 its rows and their scales.
    fn pieces(&self, name: &str, shape: Shape) -> Vec<Piece> {
        let stored = match self.stored {
            _ if shape[..].len() != 2 => StoredType::F32,
            StoredType::Int8 if name.ends_with("embed_positions.weight") => StoredType::F32,
            stored => stored,
        };
        let piece = |item| Piece { item, of: name.to_owned(), shape };
        let mut pieces = vec![piece(Item { name: name.to_owned(), shape, stored })];
        if stored == StoredType::Int8 {
            let name = format!("{name}{SCALE}");
            pieces.push(piece(Item { name, shape: [shape.rows()].into(), stored: StoredType::F32 }));
        }
        pieces
    }

    /// The bytes of a piece.
    fn bytes(&self, piece: &Piece) -> Result<Vec<u8>, Error> {
        let scales = piece.item.name != piece.of;
        let stored = if scales { StoredType::Int8 } else { piece.item.stored };
        let old = self.checkpoint.stored_as(&piece.of, piece.shape)?;
        let new = match (&self.order, axis(&piece.of)) {
            (Some(order), Some(axis)) => old.reorder(order, axis == Axis::Columns),
            _ => old,
        };
        let new = self.cast(new, stored, piece)?;
        match new {
            Stored::Int8 { scales: numbers, .. } if scales => Ok(Stored::F32(numbers).to_bytes()),
            new => Ok(new.to_bytes()),
        }
    }

    /// The numbers in another type, which must be able to express them.
    fn cast(&self, old: Stored, stored: StoredType, piece: &Piece) -> Result<Stored, Error> {
        let fits = |x: &f32| x.abs() <= bf16::MAX.to_f32();
        if let Stored::F32(numbers) = &old
            && stored != StoredType::F32
            && let Some(number) = numbers.iter().find(|x| !fits(x))
        {
            let problem = format!("`{}` contains {number}, which {} cannot store", piece.of, name(stored));
            return Err(Error::Format { path: self.checkpoint.path().to_owned(), problem });
        }
        Ok(old.into_type(stored, piece.shape.cols()))
    }
}

fn name(stored: StoredType) -> &'static str {
    match stored {
        StoredType::F32 => "f32",
        StoredType::Bf16 => "bf16",
        StoredType::Int8 => "int8",
    }
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
/// If nobody has said so of a part: its numbers would be in the wrong order.
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
