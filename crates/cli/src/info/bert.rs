//! What a BERT is, or one of its relatives.

use super::left::Left;
use crate::error::Error;
use crate::words;
use attentive_model::families::bert::{Bert, Task};
use attentive_tasks::{Pooling, Pools};
use attentive_tensor::CpuBackend;
use attentive_text::tokenizer::Error::{Incomplete, NoTokenizer};
use attentive_text::tokenizer::Tokenizer;
use serde::Serialize;
use std::path::Path;

/// What there is to say about a model.
#[derive(Serialize)]
pub(super) struct Report {
    family: &'static str,
    architecture: &'static str,
    /// The command that it is for.
    command: &'static str,
    parameters: usize,
    d_model: usize,
    heads: usize,
    d_ff: usize,
    layers: usize,
    max_positions: usize,
    vocabulary: usize,
    tokenizer: Option<&'static str>,
    /// The most tokens of a text that `embed` reads, and how it makes a vector of them.
    max_tokens: usize,
    pooling: &'static str,
    labels: Vec<String>,
    #[serde(flatten)]
    left: Left,
}

impl Report {
    pub(super) fn read(folder: &Path) -> Result<Report, Error> {
        let backend = CpuBackend::from_env().map_err(attentive_train::Error::from)?.shared();
        let task = Task::of(folder)?;
        let model = Bert::load_shapes(&backend, folder, task)?;
        let (config, pools) = (model.config(), Pools::of(folder)?);
        let tokenizer = match Tokenizer::load(folder) {
            Ok(tokenizer) => Some(tokenizer.description()),
            Err(NoTokenizer { .. } | Incomplete { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        Ok(Report {
            family: config.relative.title(),
            architecture: config.relative.architecture(task),
            command: match task {
                Task::Hidden => "embed",
                Task::MaskedLm => "fill-mask",
                Task::SequenceClassification => "classify",
                Task::TokenClassification => "tag",
                Task::QuestionAnswering => "answer",
            },
            parameters: model.parameter_count(),
            d_model: config.d_model,
            heads: config.h,
            d_ff: config.d_ff,
            layers: config.layers,
            max_positions: config.max_positions,
            vocabulary: config.vocab_size,
            tokenizer,
            max_tokens: pools.limit.map_or(config.max_positions, |limit| limit.min(config.max_positions)),
            pooling: match pools.pooling {
                Pooling::Mean => "mean",
                Pooling::First => "cls",
            },
            labels: if task.has_labels() { config.labels.clone() } else { Vec::new() },
            left: Left::of(model.unused()),
        })
    }

    pub(super) fn rows(&self) -> Vec<[String; 2]> {
        let row = |name: &str, value: String| [name.to_owned(), value];
        let mut rows = vec![
            row("family", format!("{} ({})", self.family, self.architecture)),
            row("command", format!("attentive {}", self.command)),
            row("layers", self.layers.to_string()),
            row("d_model", format!("{}, {} heads", self.d_model, self.heads)),
            row("d_ff", self.d_ff.to_string()),
            row("positions", self.max_positions.to_string()),
            row("parameters", words::thousands(self.parameters)),
            row("vocabulary", self.vocabulary.to_string()),
            row("tokenizer", self.tokenizer.unwrap_or("none in the folder").to_owned()),
        ];
        if self.command == "embed" {
            rows.push(row("vectors", format!("{} of at most {} tokens", self.pooling, self.max_tokens)));
        }
        if !self.labels.is_empty() {
            rows.push(row("labels", self.labels.join(", ")));
        }
        rows.extend(self.left.rows());
        rows
    }
}
