//! Translation: pairs of sentences in, the original Transformer out.

use super::pairs::{Kind, LearningPairs, Pairs, Reading};
use super::{Start, Task};
use crate::Error;
use crate::learner::seed_of_weights;
use crate::publish;
use crate::settings::Settings;
use attentive_generate::{MaxLength, Options};
use attentive_model::Builder;
use attentive_model::checkpoint::Staged;
use attentive_model::families::encoder_decoder::EncoderDecoder;
use attentive_model::families::transformer::{Transformer, TransformerConfig};
use attentive_tasks::source_language;
use attentive_tensor::Backend;
use serde_json::json;
use std::path::Path;
use std::sync::Arc;

/// A Transformer that learns to translate.
pub type Translate = LearningPairs<Transformer>;

impl Translate {
    /// A model that has learned nothing yet, and that nothing judges.
    pub fn new(
        backend: &Arc<dyn Backend>,
        config: &TransformerConfig,
        settings: &Settings,
    ) -> Result<Translate, Error> {
        let builder = Builder::random(backend, seed_of_weights(settings));
        Ok(LearningPairs::of(Transformer::new(&builder, config)?))
    }
}

/// Pairs of sentences.
pub(super) struct Sentences;

impl Kind for Sentences {
    fn d_model(folder: &Path) -> Result<usize, Error> {
        Ok(TransformerConfig::load(folder)?.d_model)
    }

    fn reading(_: &Settings) -> Reading {
        Reading::default()
    }

    fn task(
        pairs: &Pairs<Sentences>,
        backend: &Arc<dyn Backend>,
        settings: &Settings,
        start: Start<'_>,
    ) -> Result<Box<dyn Task>, Error> {
        let task = match &settings.from {
            Some(from) => LearningPairs::of(learned(pairs, backend, settings, from, start)?),
            None => {
                let vocabulary = pairs.tokens();
                let config = settings.model(vocabulary.size())?;
                let (pad, eos) = (vocabulary.pad(), vocabulary.eos());
                let config = TransformerConfig { pad: Some(pad), start: pad, eos, ..config };
                Translate::new(backend, &config, settings)?
            }
        };
        let (Start::First(folder) | Start::Again(folder)) = start else { return Ok(Box::new(task)) };
        if let Start::First(_) = start {
            let share = pairs.corpus.multi_sentence_share(source_language(folder).as_deref())?;
            let config = task.model().config();
            write_generation(folder, config)?;
            config.stage_with_share(folder, share)?.commit()?;
        }
        Ok(Box::new(task.judged_by(pairs, settings, Options::default())?))
    }
}

/// The Transformer in a folder, to learn more. What a run that goes on began with is in its own folder as soon as that has a model.
pub(super) fn learned<K>(
    pairs: &Pairs<K>,
    backend: &Arc<dyn Backend>,
    settings: &Settings,
    from: &Path,
    start: Start<'_>,
) -> Result<Transformer, Error> {
    // What is added to logits is no weight of a state: a run that goes on has it in its folder.
    let from = match start {
        Start::Again(folder) if publish::is_model(folder)? => folder,
        _ => from,
    };
    let [dropout, attention] =
        [settings.dropout, settings.attention_dropout].map(|dropout| dropout.map(|p| p as f32));
    let model = Transformer::load_to_learn(backend, from, dropout, attention)?;
    pairs.tokens().check_fits(&model.outline(), from)?;
    let most = model.config().max_positions;
    if settings.longest > most {
        let problem = format!("the model reads at most {most} tokens: set {most} or less");
        return Err(Error::setting("longest", problem));
    }
    Ok(model)
}

/// Writes how to generate with a model: as [`Options::default`] does. transformers knows no length
/// that follows from the source and would write 20 tokens without `max_length`, so it gets all positions.
fn write_generation(folder: &Path, config: &TransformerConfig) -> Result<(), Error> {
    let usual = Options::default();
    let beyond_source = match usual.max_length {
        MaxLength::SourceAnd(more) => Some(more),
        MaxLength::Tokens(_) => None,
    };
    let generation = json!({
        "attentive_max_tokens_beyond_source": beyond_source,
        "bad_words_ids": config.pad.map(|pad| [[pad]]),
        "decoder_start_token_id": config.start,
        "eos_token_id": config.eos,
        "forced_eos_token_id": config.eos,
        "max_length": config.max_positions,
        "num_beams": usual.beam,
        "pad_token_id": config.pad,
    });
    stage_generation(folder, &generation)
}

/// Writes `generation_config.json`.
pub(super) fn stage_generation(folder: &Path, generation: &serde_json::Value) -> Result<(), Error> {
    let text = format!("{generation:#}\n");
    Ok(Staged::new(&folder.join("generation_config.json"), text.as_bytes())?.commit()?)
}
