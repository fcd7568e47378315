//! A Transformer as a folder: `config.json` in Marian's words, weights with Marian's names in
//! `model.safetensors` or, as others wrote them, in `pytorch_model.bin`.

use super::{Transformer, TransformerConfig};
use crate::builder::Builder;
use crate::checkpoint::{self, Checkpoint, SCALE, Staged, WEIGHTS};
use crate::error::Error;
use crate::families::CONFIG;
use crate::layers::{PositionKind, sinusoid};
use attentive_tensor::{Backend, Shape};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// Marian adds this to the logits; on padding it keeps the token from ever being produced.
pub(super) const LOGITS_BIAS: &str = "final_logits_bias";
const NEVER: f32 = -10_000.0;

/// The tables of embeddings.
const SHARED: &str = "model.shared.weight";
const SOURCE: &str = "model.encoder.embed_tokens.weight";
const TARGET: &str = "model.decoder.embed_tokens.weight";
const OUTPUT: &str = "lm_head.weight";
/// Sinusoids, which some files have although they follow from their size.
const POSITIONS: [&str; 2] = ["model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight"];

/// The weights of a folder under the names that the model has for them, and its configuration.
pub(super) struct Folder {
    pub config: TransformerConfig,
    pub checkpoint: Checkpoint,
}

impl Folder {
    /// Opens a folder. All that can be told without reading the weights is checked.
    pub fn open(folder: &Path) -> Result<Folder, Error> {
        let mut config = TransformerConfig::load(folder)?;
        let mut checkpoint = Checkpoint::of_folder(folder)?;
        // Without tied weights, newer versions of transformers do not share tables either, whatever they call
        // them.
        if !config.tied_output && checkpoint.has(SOURCE) && checkpoint.has(TARGET) {
            config.shared_embeddings = false;
        }
        for names in tables(&config) {
            one_name(&mut checkpoint, names)?;
        }
        if config.positions != PositionKind::Learned {
            for name in POSITIONS {
                must_be_sinusoids(&checkpoint, name, &config)?;
            }
        }
        Ok(Folder { config, checkpoint })
    }

    /// What is added to the logits, if that is anything.
    pub fn logits_bias(&self) -> Result<Option<Vec<f32>>, Error> {
        if !self.checkpoint.has(LOGITS_BIAS) {
            return Ok(None);
        }
        let shape = Shape::from([1, self.config.target_vocabulary()]);
        Ok(Some(self.checkpoint.stored_as(LOGITS_BIAS, shape)?.into_f32()))
    }

    /// Names a tensor that the file has for a part which the model does not have, such as one more layer.
    pub fn refuse_surplus(&self, model: &Transformer) -> Result<(), Error> {
        let mut known: BTreeSet<String> = model.parameters().iter().map(|p| p.name().to_owned()).collect();
        known.extend(known.clone().into_iter().map(|name| name + SCALE));
        known.extend([SHARED, SOURCE, TARGET].into_iter().chain(POSITIONS).map(str::to_owned));
        let names = self.checkpoint.names();
        match names.iter().find(|name| name.starts_with("model.") && !known.contains(*name)) {
            None => Ok(()),
            Some(name) => {
                let problem =
                    format!("the tensor `{name}` does not belong to the model that {CONFIG} describes");
                Err(Error::Format { path: self.checkpoint.path().to_owned(), problem })
            }
        }
    }

    /// The model of this folder, with the parameters that `builder` gives it.
    fn load(&self, builder: Builder) -> Result<Transformer, Error> {
        let bias = self.logits_bias()?;
        let mut model = Transformer::new(&builder, &self.config)?;
        self.refuse_surplus(&model)?;
        // Padding is never produced, whatever its bias: nothing is to be added where all others are zero.
        let is_added = |bias: &Vec<f32>| {
            bias.iter().enumerate().any(|(token, &bias)| bias != 0.0 && Some(token) != self.config.pad)
        };
        if let Some(bias) = bias.filter(is_added) {
            model.head = model.head.with_bias(builder.backend().upload_f32(&bias, [bias.len()]));
        }
        Ok(model)
    }
}

/// The names of each table, that of the model first.
fn tables(config: &TransformerConfig) -> &'static [&'static [&'static str]] {
    match (config.shared_embeddings, config.tied_output) {
        (true, true) => &[&[SHARED, SOURCE, TARGET, OUTPUT]],
        (true, false) => &[&[SHARED, SOURCE, TARGET]],
        (false, true) => &[&[TARGET, OUTPUT]],
        (false, false) => &[],
    }
}

/// Gives a table the first of its names. Where a file has it under several, they must not contradict each
/// other.
fn one_name(checkpoint: &mut Checkpoint, names: &[&str]) -> Result<(), Error> {
    let present: Vec<&str> = names.iter().copied().filter(|name| checkpoint.has(name)).collect();
    let Some((&first, others)) = present.split_first() else { return Ok(()) };
    for other in others {
        if !checkpoint.same(first, other)? {
            let problem = format!(
                "`{other}` differs from `{first}`, but {CONFIG} ties them: set tie_word_embeddings or \
                 share_encoder_decoder_embeddings to false there"
            );
            return Err(Error::Format { path: checkpoint.path().to_owned(), problem });
        }
    }
    checkpoint.rename(first, names[0]);
    checkpoint.rename(&format!("{first}{SCALE}"), &format!("{}{SCALE}", names[0]));
    Ok(())
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
        folder.load(Builder::checkpoint(backend, &folder.checkpoint))
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
        folder.load(Builder::checkpoint(backend, &folder.checkpoint))
    }

    /// Reads a model folder to decode with, not to be trained or saved: the weights of products are as the backend multiplies with
    /// them.
    pub fn load_packed(backend: &Arc<dyn Backend>, folder: &Path) -> Result<Transformer, Error> {
        let folder = Folder::open(folder)?;
        folder.load(Builder::checkpoint(backend, &folder.checkpoint).packed())
    }

    /// Reads a model folder to decode with, not to be trained or saved: the weights of products are in int8.
    pub fn load_in_int8(backend: &Arc<dyn Backend>, folder: &Path) -> Result<Transformer, Error> {
        let folder = Folder::open(folder)?;
        folder.load(Builder::checkpoint(backend, &folder.checkpoint).in_int8())
    }

    /// The model of a folder without its numbers: its parts can be listed and counted. Weights that are there must fit.
    pub fn load_shapes(backend: &Arc<dyn Backend>, folder: &Path) -> Result<Transformer, Error> {
        let builder = Builder::shapes(backend);
        if Transformer::weights(folder)?.is_none() {
            return Transformer::new(&builder, &TransformerConfig::load(folder)?);
        }
        let folder = Folder::open(folder)?;
        let model = Transformer::new(&builder, &folder.config)?;
        for parameter in model.parameters() {
            folder.checkpoint.check(parameter.name(), parameter.value().shape())?;
        }
        folder.refuse_surplus(&model)?;
        Ok(model)
    }

    /// The weights of a folder, if there are any.
    pub fn weights(folder: &Path) -> Result<Option<Checkpoint>, Error> {
        Checkpoint::find(folder)
    }

    /// Writes a model folder; each file is replaced at once or not at all.
    pub fn save(&self, backend: &dyn Backend, folder: &Path) -> Result<(), Error> {
        std::fs::create_dir_all(folder).map_err(|source| Error::File { path: folder.to_owned(), source })?;
        // Both are on the disk before either takes its place: what is left to fail between them is a rename.
        let weights = self.stage_weights(backend, &folder.join(WEIGHTS))?;
        let config = self.config().stage(folder)?;
        weights.commit()?;
        config.commit()
    }

    /// Writes the weights as a folder's `model.safetensors` has them, to a file of any name.
    pub fn stage_weights(&self, backend: &dyn Backend, path: &Path) -> Result<Staged, Error> {
        let vocab_size = self.config().target_vocabulary();
        let mut bias = self.head.bias().map_or(vec![0.0; vocab_size], |bias| backend.download_f32(&bias));
        if let Some(pad) = self.config().pad {
            bias[pad] = NEVER;
        }
        let bias = (LOGITS_BIAS, bias, Shape::from([1, vocab_size]));
        checkpoint::stage(path, backend, self.parameters(), &[bias])
    }
}
