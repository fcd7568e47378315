//! What a translator is, and how it came about.

use super::left::Left;
use crate::error::Error;
use crate::words;
use attentive_generate::Options;
use attentive_model::families::encoder_decoder::EncoderDecoder;
use attentive_model::families::transformer::Transformer;
use attentive_model::layers::NormPlacement;
use attentive_serve::ModelPlace;
use attentive_serve::languages::{Choice, Language, Languages};
use attentive_tensor::{Activation, CpuBackend};
use attentive_text::tokenizer::Error::{Incomplete, NoTokenizer};
use attentive_text::tokenizer::{Side, Tokenizer};
use attentive_train::metrics::{Metric, Reached, ValidationMetric};
use attentive_train::{logs, settings};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// What there is to say about a model.
#[derive(Serialize)]
pub(super) struct Report {
    family: &'static str,
    parameters: usize,
    /// What the weights are stored in; none if there are none yet.
    weights: Option<&'static str>,
    /// What commands compute in unless `--precision` says otherwise.
    precision: &'static str,
    d_model: usize,
    heads: usize,
    d_ff: usize,
    encoder_layers: usize,
    decoder_layers: usize,
    norm: &'static str,
    activation: String,
    max_positions: usize,
    vocabulary: usize,
    tokenizer: Option<&'static str>,
    languages: Known,
    /// How commands search unless flags say otherwise.
    search: String,
    #[serde(flatten)]
    left: Left,
    training: Option<Training>,
}

/// The languages of a model, as far as its folder tells them.
#[derive(Serialize)]
struct Known {
    /// None if it is not known, or if there are several.
    source: Option<String>,
    targets: Vec<String>,
    /// As people read them.
    #[serde(skip)]
    text: String,
}

/// How it was trained, if that was done here.
#[derive(Serialize)]
struct Training {
    steps: u64,
    epochs: f64,
    seconds: f64,
    loss: Option<f64>,
    validations: usize,
    best: Option<ValidationMetric>,
    source: Vec<String>,
    target: Vec<String>,
    /// What happened on the way.
    events: Vec<String>,
}

impl Report {
    pub(super) fn read(folder: &Path) -> Result<Report, Error> {
        let backend = CpuBackend::from_env().map_err(attentive_train::Error::from)?.shared();
        let model = Transformer::load_shapes(&backend, folder)?;
        let config = model.config();
        let tokenizer = match Tokenizer::load(folder) {
            Ok(tokenizer) => Some(tokenizer),
            Err(NoTokenizer { .. } | Incomplete { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        Ok(Report {
            family: match config.model_type() {
                "bart" => "BART",
                "mbart" => "mBART",
                "m2m_100" => "M2M-100",
                _ => "the original Transformer",
            },
            parameters: model.parameter_count(),
            weights: Transformer::weights(folder)?.map(|weights| weights.stored_in()),
            precision: if Transformer::is_stored_in_int8(folder)? { "int8" } else { "f32" },
            d_model: config.d_model,
            heads: config.h,
            d_ff: config.d_ff,
            encoder_layers: config.encoder_layers,
            decoder_layers: config.decoder_layers,
            norm: match config.norm {
                NormPlacement::Post => "post",
                NormPlacement::Pre => "pre",
            },
            activation: activation(config.activation).to_owned(),
            max_positions: config.max_positions,
            vocabulary: tokenizer
                .as_ref()
                .map_or(config.vocab_size, |tokenizer| tokenizer.vocabulary_size(Side::Target)),
            tokenizer: tokenizer.as_ref().map(|tokenizer| tokenizer.description()),
            languages: Known::of(folder, tokenizer.as_ref()),
            search: match Options::load(folder, &config.outline().into()) {
                Ok(options) => words::search(&options),
                Err(error) => error.to_string(),
            },
            left: Left::of(model.unused()),
            training: Training::read(folder)?,
        })
    }

    pub(super) fn rows(&self) -> Vec<[String; 2]> {
        let row = |name: &str, value: String| [name.to_owned(), value];
        let layers = format!("{} + {}", self.encoder_layers, self.decoder_layers);
        let mut rows = vec![
            row("family", self.family.to_owned()),
            row("layers", format!("{layers} (encoder + decoder), {}-norm", self.norm)),
            row("d_model", format!("{}, {} heads", self.d_model, self.heads)),
            row("d_ff", format!("{}, {}", self.d_ff, self.activation)),
            row("positions", self.max_positions.to_string()),
            row(
                "parameters",
                format!(
                    "{}, {}",
                    words::thousands(self.parameters),
                    self.weights.map_or("no weights in the folder".to_owned(), |stored| format!(
                        "stored in {stored}"
                    ))
                ),
            ),
            row("precision", format!("{} by default; --precision overrides it", self.precision)),
            row("search", self.search.clone()),
            row("languages", self.languages.text.clone()),
            row(
                "tokenizer",
                format!("{}, {} tokens", self.tokenizer.unwrap_or("none in the folder"), self.vocabulary),
            ),
        ];
        rows.extend(self.left.rows());
        rows.extend(self.training.iter().flat_map(Training::rows).map(|(name, value)| row(name, value)));
        rows
    }
}

impl Known {
    fn of(folder: &Path, tokenizer: Option<&Tokenizer>) -> Known {
        let name = ModelPlace::folder(folder).name;
        let Languages { mut sources, targets, choice } = Languages::of(&name, folder, tokenizer);
        let source = if sources.len() == 1 { sources.pop() } else { None };
        let named = |language: &Language| match language {
            Language { code, name, .. } if code == name => code.clone(),
            Language { code, name, .. } => format!("{name} ({code})"),
        };
        let mut into: Vec<String> = targets.iter().take(SHOWN).map(named).collect();
        if targets.len() > SHOWN {
            into.push(format!("and {} more", targets.len() - SHOWN));
        }
        let text = match (&source, into.join(", ")) {
            (None, into) if into.is_empty() => {
                "not known; a folder's name such as en-de tells them".to_owned()
            }
            (None, all) if choice == Choice::Spoken => format!("among {all}"),
            (None, into) => format!("into {into}"),
            (Some(source), into) if into.is_empty() => format!("from {}", named(source)),
            (Some(source), into) => format!("from {} into {into}", named(source)),
        };
        let code = |language: Language| language.code;
        Known { source: source.map(code), targets: targets.into_iter().map(code).collect(), text }
    }
}

/// How many target languages the table names.
const SHOWN: usize = 8;

impl Training {
    /// The history that a run has left in its folder, if there was one.
    fn read(folder: &Path) -> Result<Option<Training>, Error> {
        let metrics = logs::read(folder)?;
        if !settings::path(folder).exists() {
            return Ok(None);
        }
        let settings = settings::load(folder)?;
        let reached = Reached::of(&metrics);
        let mut training = Training {
            steps: reached.step,
            epochs: reached.epoch,
            seconds: reached.seconds,
            loss: None,
            validations: 0,
            best: None,
            source: names(&settings.source),
            target: names(&settings.target),
            events: Vec::new(),
        };
        for metric in metrics {
            match metric {
                Metric::Step(step) => training.loss = Some(step.loss),
                Metric::Validation(validation) => {
                    training.validations += 1;
                    if validation.best {
                        training.best = Some(validation);
                    }
                }
                Metric::Event(event) => {
                    training.events.push(format!("step {}: {}", event.step, event.message))
                }
                Metric::End(_) => {}
            }
        }
        Ok(Some(training))
    }

    fn rows(&self) -> Vec<(&'static str, String)> {
        let Training { steps, epochs, validations, .. } = self;
        let time = words::duration(self.seconds);
        let loss = self.loss.map(|loss| format!(", last loss {loss:.3}")).unwrap_or_default();
        let mut rows = vec![
            ("trained on", format!("{} and {}", self.source.join(", "), self.target.join(", "))),
            ("training", format!("{steps} steps, {epochs:.1} epochs, {time}{loss}")),
        ];
        if let Some(best) = &self.best {
            let scores = words::scores(best);
            rows.push(("best", format!("step {}, out of {validations} validations: {scores}", best.step)));
        }
        rows.extend(self.events.iter().map(|event| ("event", event.clone())));
        rows
    }
}

fn names(files: &[PathBuf]) -> Vec<String> {
    files.iter().map(|file| file.display().to_string()).collect()
}

fn activation(activation: Activation) -> &'static str {
    match activation {
        Activation::Relu => "ReLU",
        Activation::Gelu => "GELU",
        Activation::GeluTanh => "GELU (tanh)",
        Activation::Silu => "SiLU",
        Activation::Tanh => "tanh",
        Activation::Sigmoid => "sigmoid",
        Activation::QuickGelu => "GELU (quick)",
        Activation::ReluSquared => "ReLU²",
    }
}
