//! Text to text: pairs of texts in, a T5 or BART out. A summary, an answer or a translation is learned alike; what is asked for can
//! stand before each source (`prefix`).
//!
//! A model of several languages learns one pair of them: each text begins with the token of its language, as when it translates.

use super::pairs::{Kind, Learned, LearningPairs, Pairs, Reading};
use super::translate::{learned, stage_generation};
use super::{Start, Task};
use crate::Error;
use crate::learner::seed_of_weights;
use crate::publish;
use crate::settings::Settings;
use attentive_generate::{Options, Spec};
use attentive_model::Builder;
use attentive_model::checkpoint::Staged;
use attentive_model::families::Family;
use attentive_model::families::encoder_decoder::EncoderDecoder;
use attentive_model::families::t5::{T5, T5Config};
use attentive_model::families::transformer::TransformerConfig;
use attentive_tensor::Backend;
use serde_json::json;
use std::path::Path;
use std::sync::Arc;

/// The families that turn a text into another.
const FAMILIES: &[Family] = &[Family::T5, Family::Transformer];
const GENERATION: &str = "generation_config.json";

/// Pairs of texts.
pub(super) struct Texts;

impl Kind for Texts {
    fn d_model(folder: &Path) -> Result<usize, Error> {
        Ok(match Family::among(folder, FAMILIES)? {
            Family::T5 => T5Config::load(folder)?.d_model,
            _ => TransformerConfig::load(folder)?.d_model,
        })
    }

    fn reading(settings: &Settings) -> Reading {
        Reading {
            prefix: settings.prefix.clone(),
            languages: [settings.source_language.clone(), settings.target_language.clone()],
            longest: Some(settings.longest),
        }
    }

    fn task(
        pairs: &Pairs<Texts>,
        backend: &Arc<dyn Backend>,
        settings: &Settings,
        start: Start<'_>,
    ) -> Result<Box<dyn Task>, Error> {
        // A run that goes on has a configuration of its own.
        let origin = match start {
            Start::Again(folder) => Some(folder),
            Start::First(_) | Start::Trial => settings.from.as_deref(),
        };
        let family = origin.map_or(Ok(Family::T5), |origin| Family::among(origin, FAMILIES))?;
        match (family, &settings.from) {
            (Family::Transformer, Some(from)) => {
                let model = learned(pairs, backend, settings, from, start)?;
                if let Start::First(folder) = start {
                    model.config().stage_like(folder, from)?.commit()?;
                }
                judged(model, pairs, settings, start)
            }
            _ => {
                if settings.attention_dropout.is_some() {
                    let problem = "a T5 has one dropout for all: use dropout";
                    return Err(Error::setting("attention_dropout", problem));
                }
                let model = t5(pairs, backend, settings, start)?;
                if let (Start::First(folder), from) = (start, &settings.from) {
                    let config = model.config();
                    match from {
                        Some(from) => config.stage_like(folder, from)?.commit()?,
                        None => {
                            write_generation(folder, config)?;
                            config.stage(folder)?.commit()?;
                        }
                    }
                }
                judged(model, pairs, settings, start)
            }
        }
    }
}

/// A new T5, or the one to go on from.
fn t5(
    pairs: &Pairs<Texts>,
    backend: &Arc<dyn Backend>,
    settings: &Settings,
    start: Start<'_>,
) -> Result<T5, Error> {
    let vocabulary = pairs.tokens();
    let Some(from) = &settings.from else {
        let (pad, eos) = (vocabulary.pad(), vocabulary.eos());
        let config = T5Config { pad, start: pad, eos, ..settings.t5(vocabulary.size())? };
        return Ok(T5::new(&Builder::random(backend, seed_of_weights(settings)), &config)?);
    };
    // The weights say whether the output has a table of its own, so that those of the run are asked as soon as there are some.
    let from = match start {
        Start::Again(folder) if publish::is_model(folder)? => folder,
        _ => from,
    };
    let model = T5::load_to_learn(backend, from, settings.dropout.map(|p| p as f32))?;
    vocabulary.check_fits(&model.outline(), from)?;
    Ok(model)
}

/// What learns, judged by what is held out, with the options that its folder asks for.
fn judged<M: Learned>(
    model: M,
    pairs: &Pairs<Texts>,
    settings: &Settings,
    start: Start<'_>,
) -> Result<Box<dyn Task>, Error> {
    let (Start::First(folder) | Start::Again(folder)) = start else {
        return Ok(Box::new(LearningPairs::of(model)));
    };
    if let (Start::First(_), Some(from)) = (start, &settings.from) {
        copy_generation(from, folder)?;
    }
    let options = Options::load(folder, &Spec::from(model.outline()))?;
    let options = Options {
        forced_bos: pairs.tokens().target_language().or(options.forced_bos),
        // A new model does not know yet where a text ends.
        max_length: if settings.from.is_some() { options.max_length } else { Options::default().max_length },
        ..options
    };
    Ok(Box::new(LearningPairs::of(model).judged_by(pairs, settings, options)?))
}

/// How the first model of a run wants to be decoded is how the new one does.
fn copy_generation(from: &Path, folder: &Path) -> Result<(), Error> {
    let path = from.join(GENERATION);
    match std::fs::read(&path) {
        // Older models have it in their `config.json`.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        read => {
            let text = read.map_err(Error::file(&path))?;
            Ok(Staged::new(&folder.join(GENERATION), &text)?.commit()?)
        }
    }
}

/// Writes how to generate with a new T5.
fn write_generation(folder: &Path, config: &T5Config) -> Result<(), Error> {
    let generation = json!({
        "bad_words_ids": [[config.pad]],
        "decoder_start_token_id": config.start,
        "eos_token_id": config.eos,
        "max_length": config.trained_length,
        "num_beams": Options::default().beam,
        "pad_token_id": config.pad,
    });
    stage_generation(folder, &generation)
}
