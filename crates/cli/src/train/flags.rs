//! The settings of a run as flags. What is not given is left to the file and to the defaults of the library.

use crate::options::between;
use clap::Args;
use serde::Serialize;
use std::path::PathBuf;
use toml::Table;

/// A flag for each setting; the names are those of `train.toml`, with `-` for `_`.
#[derive(Args, Serialize)]
pub(super) struct Flags {
    /// Text to learn from, a sentence a line; or files with both sides, .tsv or .jsonl. All may be packed
    /// as .gz or .zst
    #[arg(long, value_name = "FILES", num_args = 1.., help_heading = "Data")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    source: Vec<PathBuf>,
    /// Its translation, line by line
    #[arg(long, value_name = "FILES", num_args = 1.., help_heading = "Data")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    target: Vec<PathBuf>,
    /// Text to validate on
    #[arg(long, value_name = "FILES", num_args = 1.., help_heading = "Data")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    valid_source: Vec<PathBuf>,
    /// Its translation, line by line
    #[arg(long, value_name = "FILES", num_args = 1.., help_heading = "Data")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    valid_target: Vec<PathBuf>,
    /// Pairs of the corpus to hold out and validate on, where there are no files for it [default: chosen]
    #[arg(long, value_name = "N", help_heading = "Data")]
    hold_out: Option<usize>,
    /// The field of the source in .jsonl [default: source]
    #[arg(long, value_name = "NAME", help_heading = "Data")]
    source_field: Option<String>,
    /// The field of the target in .jsonl [default: target]
    #[arg(long, value_name = "NAME", help_heading = "Data")]
    target_field: Option<String>,
    /// The most tokens of a sentence; longer ones are left out [default: 256]
    #[arg(long, value_name = "N", help_heading = "Data")]
    longest: Option<usize>,
    /// How many times as long one side may be as the other [default: 9]
    #[arg(long, value_name = "X", help_heading = "Data")]
    ratio: Option<f64>,

    /// A tokenizer to use, a folder or a file; without it one is trained
    #[arg(long, value_name = "DIR|FILE", help_heading = "Tokenizer")]
    tokenizer: Option<PathBuf>,
    /// What to train [default: bpe]
    #[arg(long, visible_alias = "kind", value_name = "KIND", value_parser = ["bpe", "unigram"])]
    #[arg(help_heading = "Tokenizer")]
    tokenizer_kind: Option<String>,
    /// How many tokens to train, for both sides together, the special ones included [default: chosen]
    #[arg(long, value_name = "N", value_parser = between::<8, 1_000_000>, help_heading = "Tokenizer")]
    vocab_size: Option<usize>,
    /// The share of the text whose characters get pieces [default: 1]
    #[arg(long, value_name = "SHARE", help_heading = "Tokenizer")]
    character_coverage: Option<f64>,
    /// The probability that a merge is skipped while the model learns, so that it sees words cut in many
    /// ways; 0.1 helps small corpora [default: 0]
    #[arg(long, value_name = "P", help_heading = "Tokenizer")]
    bpe_dropout: Option<f64>,

    /// The sizes of the model [default: chosen]
    #[arg(long, value_name = "NAME", value_parser = ["tiny", "small", "base", "big"], help_heading = "Model")]
    preset: Option<String>,
    /// The width of the model, if not the preset's
    #[arg(long, value_name = "N", help_heading = "Model")]
    d_model: Option<usize>,
    /// Heads of an attention, if not the preset's
    #[arg(long, value_name = "N", help_heading = "Model")]
    heads: Option<usize>,
    /// The width of the feed-forward network, if not the preset's
    #[arg(long, value_name = "N", help_heading = "Model")]
    d_ff: Option<usize>,
    /// Layers of the encoder, if not the preset's
    #[arg(long, value_name = "N", help_heading = "Model")]
    encoder_layers: Option<usize>,
    /// Layers of the decoder, if not the preset's
    #[arg(long, value_name = "N", help_heading = "Model")]
    decoder_layers: Option<usize>,
    /// Dropout of embeddings and sublayers [default: chosen]
    #[arg(long, value_name = "P", help_heading = "Model")]
    dropout: Option<f64>,
    /// Dropout of attention weights [default: 0]
    #[arg(long, value_name = "P", help_heading = "Model")]
    attention_dropout: Option<f64>,
    /// Where norms stand, after a sublayer as in the paper or before it [default: post]
    #[arg(long, value_name = "PLACE", value_parser = ["post", "pre"], help_heading = "Model")]
    norm: Option<String>,

    /// Tokens of a batch, sources and targets together [default: chosen]
    #[arg(long, value_name = "N", help_heading = "Learning")]
    batch_tokens: Option<usize>,
    /// Batches of a step, each weighted by its target tokens [default: 1]
    #[arg(long, value_name = "N", help_heading = "Learning")]
    accumulate: Option<usize>,
    /// How the learning rate changes [default: chosen]
    #[arg(long, value_name = "NAME", help_heading = "Learning")]
    #[arg(value_parser = ["paper", "noam", "inverse-sqrt", "cosine", "linear", "constant"])]
    schedule: Option<String>,
    /// The step at which a cosine or a line reaches zero, where the run ends [default: chosen, or --steps]
    #[arg(long, value_name = "N", help_heading = "Learning")]
    schedule_steps: Option<u64>,
    /// The factor of the paper's schedule, or the peak of the others [default: chosen]
    #[arg(long, value_name = "X", help_heading = "Learning")]
    learning_rate: Option<f64>,
    /// Steps over which the learning rate rises [default: chosen]
    #[arg(long, value_name = "N", help_heading = "Learning")]
    warmup: Option<u64>,
    /// β₁ of Adam [default: 0.9]
    #[arg(long, value_name = "X", help_heading = "Learning")]
    beta1: Option<f64>,
    /// β₂ of Adam [default: 0.98]
    #[arg(long, value_name = "X", help_heading = "Learning")]
    beta2: Option<f64>,
    /// ε of Adam [default: 1e-9]
    #[arg(long, value_name = "X", help_heading = "Learning")]
    epsilon: Option<f64>,
    /// The decay of weights; above 0 it is AdamW [default: 0]
    #[arg(long, value_name = "X", help_heading = "Learning")]
    weight_decay: Option<f64>,
    /// The greatest norm of a gradient; 0 is no limit [default: 0]
    #[arg(long, value_name = "X", help_heading = "Learning")]
    clip: Option<f64>,
    /// ε of label smoothing [default: 0.1]
    #[arg(long, value_name = "X", help_heading = "Learning")]
    label_smoothing: Option<f64>,
    /// Validate and save a moving average of the weights, of which so much stays from step to step, say
    /// 0.999; 0 for none [default: chosen]
    #[arg(long, value_name = "X", help_heading = "Learning")]
    ema: Option<f64>,
    /// Average so many of the last checkpoints at the end [default: 0]
    #[arg(long, value_name = "N", help_heading = "Learning")]
    average: Option<usize>,

    /// Stop after so many steps
    #[arg(long, value_name = "N", help_heading = "Course")]
    steps: Option<u64>,
    /// Stop when the corpus was gone through so often
    #[arg(long, value_name = "X", help_heading = "Course")]
    epochs: Option<f64>,
    /// Stop after so many minutes of training, over all sessions
    #[arg(long, value_name = "X", help_heading = "Course")]
    minutes: Option<f64>,
    /// Stop after so many validations without a better one [default: 10 where nothing else ends the run]
    #[arg(long, value_name = "N", help_heading = "Course")]
    patience: Option<u64>,
    /// What makes a model better, for --patience and for the model that is kept [default: chosen]
    #[arg(long, value_name = "MEASURE", value_parser = ["loss", "bleu", "chrf"], help_heading = "Course")]
    early_stopping: Option<String>,
    /// Steps between two validations [default: chosen]
    #[arg(long, value_name = "N", help_heading = "Course")]
    validate_every: Option<u64>,
    /// Validation pairs that are translated for BLEU and chrF; 0 for none [default: chosen]
    #[arg(long, value_name = "N", help_heading = "Course")]
    validate_lines: Option<usize>,
    /// Hypotheses that validation keeps while it translates; 1 is greedy [default: 1]
    #[arg(long, value_name = "N", help_heading = "Course")]
    validate_beam: Option<usize>,
    /// Steps between two checkpoints, if not those between two validations
    #[arg(long, value_name = "N", help_heading = "Course")]
    save_every: Option<u64>,
    /// How many checkpoints are kept beside the best [default: 3]
    #[arg(long, value_name = "N", help_heading = "Course")]
    keep: Option<usize>,
    /// Steps between two lines of the log [default: 50]
    #[arg(long, value_name = "N", help_heading = "Course")]
    log_every: Option<u64>,

    /// Where first weights, the order of pairs and dropout come from [default: 1]
    #[arg(long, value_name = "N", help_heading = "Computing")]
    seed: Option<u64>,
    /// What matrix products are computed in [default: auto]
    #[arg(long, value_name = "NAME", value_parser = ["f32", "bf16", "auto"], help_heading = "Computing")]
    precision: Option<String>,
    /// How many threads compute; all cores if not given
    #[arg(long, value_name = "N", value_parser = between::<1, 1024>, help_heading = "Computing")]
    threads: Option<usize>,
}

impl Flags {
    /// Those that were given, as settings.
    pub(super) fn table(&self) -> Table {
        Table::try_from(self).expect("flags are a table")
    }
}
