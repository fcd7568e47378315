//! A Transformer as a folder: `config.json` in Marian's words, weights with Marian's names in
//! `model.safetensors` or, as others wrote them, in `pytorch_model.bin`.

use super::dialect::Dialect;
use super::names::{LOGITS_BIAS, POSITIONS, SOURCE, TARGET, names};
use super::{Transformer, TransformerConfig};
use crate::builder::Builder;
use crate::checkpoint::{self, Checkpoint, Staged, save_folder};
use crate::error::Error;
use crate::families::encoder_decoder::EncoderDecoder;
use crate::layers::{PositionKind, sinusoid};
use crate::names::{Names, Read};
use attentive_tensor::{Backend, Shape};
use std::path::Path;
use std::sync::Arc;

const NEVER: f32 = -10_000.0;

/// The configuration and the weights of a folder.
pub(super) struct Folder {
    pub config: TransformerConfig,
    pub names: &'static Names,
    pub read: Read,
}

/// Why tables must not differ.
const TIED: &str =
    "config.json ties them: set tie_word_embeddings or share_encoder_decoder_embeddings to false there";

impl Folder {
    /// Opens a folder. Everything that does not need the weights is checked.
    pub fn open(folder: &Path) -> Result<Folder, Error> {
        let mut config = TransformerConfig::load(folder)?;
        let checkpoint = Checkpoint::of_folder(folder)?;
        // Without tied weights, newer versions of transformers do not share tables either, whatever they call
        // them.
        if !config.tied_output && checkpoint.has(SOURCE) && checkpoint.has(TARGET) {
            config.shared_embeddings = false;
        }
        let names = names(&config);
        let read = names.read(checkpoint)?;
        names.check_tied(&read.checkpoint, TIED)?;
        if matches!(config.positions, PositionKind::Halves | PositionKind::Interleaved) {
            for name in POSITIONS {
                must_be_sinusoids(&read.checkpoint, name, &config)?;
            }
        }
        Ok(Folder { config, names, read })
    }

    /// What is added to the logits, if that is anything.
    pub fn logits_bias(&self) -> Result<Option<Vec<f32>>, Error> {
        if !self.read.checkpoint.has(LOGITS_BIAS) {
            return Ok(None);
        }
        let shape = Shape::from([1, self.config.target_vocabulary()]);
        Ok(Some(self.read.checkpoint.stored_as(LOGITS_BIAS, shape)?.into_f32()))
    }

    /// The model of this folder, with the parameters that `builder` gives it, and what it left of the folder.
    fn load(&self, builder: &Builder) -> Result<Transformer, Error> {
        let bias = self.logits_bias()?;
        let mut model = Transformer::new(builder, &self.config)?;
        model.unused = self.names.unused(&self.read, model.parameters(), &[LOGITS_BIAS]);
        let never = self.config.outline().never;
        // Padding is never produced, whatever its bias: nothing is to be added where all others are zero.
        let is_added = |bias: &Vec<f32>| {
            bias.iter().enumerate().any(|(token, &bias)| bias != 0.0 && Some(token) != never)
        };
        if let Some(bias) = bias.filter(is_added) {
            model.head = model.head.with_bias(builder.backend().upload_f32(&bias, [bias.len()]));
        }
        Ok(model)
    }
}

/// Positions in the file are only accepted where they are those that we compute.
fn must_be_sinusoids(checkpoint: &Checkpoint, name: &str, config: &TransformerConfig) -> Result<(), Error> {
    /// They may have been rounded to bf16.
    const TOLERANCE: f32 = 4e-3;
    if !checkpoint.has(name) {
        return Ok(());
    }
    let (count, d_model) = (config.max_positions, config.d_model);
    let found = checkpoint.stored_as(name, [count, d_model].into())?.into_f32();
    let expected = sinusoid(count, d_model, config.positions == PositionKind::Halves);
    if found.iter().zip(&expected).all(|(a, b)| (a - b).abs() <= TOLERANCE) {
        return Ok(());
    }
    let problem =
        format!("`{name}` are not Marian's sinusoidal positions; others are not supported in a Marian model");
    Err(Error::Format { path: checkpoint.path().to_owned(), problem })
}

impl Transformer {
    /// Reads a model folder: one of ours, or one of a Marian model as Hugging Face has it.
    pub fn load(backend: &Arc<dyn Backend>, folder: &Path) -> Result<Transformer, Error> {
        let folder = Folder::open(folder)?;
        folder.load(&Builder::checkpoint(backend, &folder.read.checkpoint))
    }

    /// [`Transformer::load`] of a model that is to learn more, with its own dropout where none is given.
    pub fn load_to_learn(
        backend: &Arc<dyn Backend>,
        folder: &Path,
        dropout: Option<f32>,
        attention_dropout: Option<f32>,
    ) -> Result<Transformer, Error> {
        let mut folder = Folder::open(folder)?;
        let config = &mut folder.config;
        config.dropout = dropout.unwrap_or(config.dropout);
        config.attention_dropout = attention_dropout.unwrap_or(config.attention_dropout);
        folder.load(&Builder::checkpoint(backend, &folder.read.checkpoint))
    }

    /// Reads a model folder to decode with, not to be trained or saved: the weights of products are as the backend multiplies with
    /// them.
    pub fn load_packed(backend: &Arc<dyn Backend>, folder: &Path) -> Result<Transformer, Error> {
        let folder = Folder::open(folder)?;
        folder.load(&Builder::checkpoint(backend, &folder.read.checkpoint).packed())
    }

    /// Reads a model folder to decode with, not to be trained or saved: the weights of products are in int8.
    pub fn load_in_int8(backend: &Arc<dyn Backend>, folder: &Path) -> Result<Transformer, Error> {
        let folder = Folder::open(folder)?;
        folder.load(&Builder::checkpoint(backend, &folder.read.checkpoint).in_int8())
    }

    /// The model of a folder without its numbers: its parts can be listed and counted. Weights that are there must fit.
    pub fn load_shapes(backend: &Arc<dyn Backend>, folder: &Path) -> Result<Transformer, Error> {
        if Transformer::weights(folder)?.is_none() {
            return Transformer::new(&Builder::shapes(backend), &TransformerConfig::load(folder)?);
        }
        let folder = Folder::open(folder)?;
        folder.load(&Builder::shapes_of(backend, &folder.read.checkpoint))
    }

    /// The weights of a folder, if there are any.
    pub fn weights(folder: &Path) -> Result<Option<Checkpoint>, Error> {
        Checkpoint::find(folder)
    }

    /// Writes a model folder; each file is replaced at once or not at all.
    pub fn save(&self, backend: &dyn Backend, folder: &Path) -> Result<(), Error> {
        save_folder(folder, |path| self.stage_weights(backend, path), |folder| self.config().stage(folder))
    }

    /// Writes the weights as a folder's `model.safetensors` has them, to a file of any name.
    pub fn stage_weights(&self, backend: &dyn Backend, path: &Path) -> Result<Staged, Error> {
        if !Dialect::of(self.config()).has_logits_bias() {
            return checkpoint::stage(path, backend, self.parameters(), &[]);
        }
        let vocab_size = self.config().target_vocabulary();
        let mut bias = self.head.bias().map_or(vec![0.0; vocab_size], |bias| backend.download_f32(&bias));
        if let Some(never) = self.config().outline().never {
            bias[never] = NEVER;
        }
        let bias = (LOGITS_BIAS, bias, Shape::from([1, vocab_size]));
        checkpoint::stage(path, backend, self.parameters(), &[bias])
    }
}
