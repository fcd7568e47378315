//! What a GPT-2 is.

use super::left::Left;
use crate::error::Error;
use crate::words;
use attentive_model::families::gpt2::{Gpt2, Version};
use attentive_tensor::CpuBackend;
use attentive_text::tokenizer::Error::{Incomplete, NoTokenizer};
use attentive_text::tokenizer::Tokenizer;
use serde::Serialize;
use std::path::Path;

/// What there is to say about a model.
#[derive(Serialize)]
pub(super) struct Report {
    family: &'static str,
    /// The command that it is for.
    command: &'static str,
    parameters: usize,
    d_model: usize,
    heads: usize,
    d_ff: usize,
    layers: usize,
    max_positions: usize,
    vocabulary: usize,
    tied_output: bool,
    tokenizer: Option<&'static str>,
    #[serde(flatten)]
    left: Left,
}

impl Report {
    pub(super) fn read(folder: &Path) -> Result<Report, Error> {
        let backend = CpuBackend::from_env().map_err(attentive_train::Error::from)?.shared();
        let model = Gpt2::load_shapes(&backend, folder)?;
        let config = model.config();
        let tokenizer = match Tokenizer::load(folder) {
            Ok(tokenizer) => Some(tokenizer.description()),
            Err(NoTokenizer { .. } | Incomplete { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        Ok(Report {
            family: match config.version {
                Version::Gpt1 => "GPT-1",
                Version::Gpt2 => "GPT-2",
                Version::GptNeo => "GPT-Neo",
            },
            command: "generate",
            parameters: model.parameter_count(),
            d_model: config.d_model,
            heads: config.h,
            d_ff: config.d_ff,
            layers: config.layers,
            max_positions: config.max_positions,
            vocabulary: config.vocab_size,
            tied_output: config.tied_output,
            tokenizer,
            left: Left::of(model.unused()),
        })
    }

    pub(super) fn rows(&self) -> Vec<[String; 2]> {
        let row = |name: &str, value: String| [name.to_owned(), value];
        let output = if self.tied_output { "the table of the embeddings" } else { "a table of its own" };
        let mut rows = vec![
            row("family", self.family.to_owned()),
            row("command", format!("attentive {}", self.command)),
            row("layers", self.layers.to_string()),
            row("d_model", format!("{}, {} heads", self.d_model, self.heads)),
            row("d_ff", self.d_ff.to_string()),
            row("positions", self.max_positions.to_string()),
            row("parameters", words::thousands(self.parameters)),
            row("vocabulary", self.vocabulary.to_string()),
            row("output", output.to_owned()),
            row("tokenizer", self.tokenizer.unwrap_or("none in the folder").to_owned()),
        ];
        rows.extend(self.left.rows());
        rows
    }
}
