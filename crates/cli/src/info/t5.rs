//! What a T5 is.

use super::left::Left;
use crate::error::Error;
use crate::words;
use attentive_model::families::encoder_decoder::EncoderDecoder;
use attentive_model::families::t5::T5;
use attentive_model::layers::{FeedForwardKind, name_of_activation};
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
    d_kv: usize,
    d_ff: usize,
    activation: &'static str,
    gated: bool,
    encoder_layers: usize,
    decoder_layers: usize,
    buckets: usize,
    max_distance: usize,
    vocabulary: usize,
    tied_output: bool,
    tokenizer: Option<&'static str>,
    #[serde(flatten)]
    left: Left,
}

impl Report {
    pub(super) fn read(folder: &Path) -> Result<Report, Error> {
        let backend = CpuBackend::from_env().map_err(attentive_train::Error::from)?.shared();
        let model = T5::load_shapes(&backend, folder)?;
        let config = model.config();
        let tokenizer = match Tokenizer::load(folder) {
            Ok(tokenizer) => Some(tokenizer.description()),
            Err(NoTokenizer { .. } | Incomplete { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        Ok(Report {
            family: "T5",
            command: "generate",
            parameters: model.parameter_count(),
            d_model: config.d_model,
            heads: config.h,
            d_kv: config.d_kv,
            d_ff: config.d_ff,
            activation: name_of_activation(config.activation),
            gated: config.feed_forward == FeedForwardKind::Gated,
            encoder_layers: config.encoder_layers,
            decoder_layers: config.decoder_layers,
            buckets: config.buckets,
            max_distance: config.max_distance,
            vocabulary: config.vocab_size,
            tied_output: config.tied_output,
            tokenizer,
            left: Left::of(model.unused()),
        })
    }

    pub(super) fn rows(&self) -> Vec<[String; 2]> {
        let row = |name: &str, value: String| [name.to_owned(), value];
        let output = if self.tied_output { "the table of the embeddings" } else { "a table of its own" };
        let gate = if self.gated { " with a gate" } else { "" };
        let mut rows = vec![
            row("family", self.family.to_owned()),
            row("command", format!("attentive {}", self.command)),
            row("layers", format!("{} + {} (encoder + decoder)", self.encoder_layers, self.decoder_layers)),
            row("d_model", format!("{}, {} heads of {}", self.d_model, self.heads, self.d_kv)),
            row("d_ff", format!("{}, {}{gate}", self.d_ff, self.activation)),
            row(
                "positions",
                format!("relative, {} buckets up to a distance of {}", self.buckets, self.max_distance),
            ),
            row("parameters", words::thousands(self.parameters)),
            row("vocabulary", self.vocabulary.to_string()),
            row("output", output.to_owned()),
            row("tokenizer", self.tokenizer.unwrap_or("none in the folder").to_owned()),
        ];
        rows.extend(self.left.rows());
        rows
    }
}
