//! The settings of a run as flags. What is not given is left to the file and to the defaults of the library.

use crate::error::Error;
use crate::model;
use crate::options::{between, whole};
use attentive_hub::Need;
use clap::Args;
use serde::Serialize;
use std::path::PathBuf;
use toml::{Table, Value};

/// A flag for each setting; the names are those of `train.toml`, with `-` for `_`.
#[derive(Args, Serialize)]
pub(super) struct Flags {
    /// What to learn [default: translate]
    #[arg(long, value_name = "TASK", help_heading = "Task")]
    #[arg(value_parser = ["translate", "seq2seq", "lm", "mlm", "classify", "tag", "answer", "classify-images", "detect", "dino"])]
    task: Option<String>,
    /// Model folder to start from, or a name on the Hugging Face Hub [default: random weights]
    #[arg(long, value_name = "DIR|NAME", help_heading = "Task")]
    from: Option<PathBuf>,

    /// Training text, one sentence per line; or .tsv or .jsonl files with both sides. For other tasks: text for mlm, .tsv or
    /// .jsonl with labels for classify, CoNLL or .jsonl with tags for tag; for classify-images and dino a folder with a folder for
    /// each class, a .tsv of paths and labels, or an idx3-ubyte file; for detect COCO's annotations in JSON; for these three also the
    /// word `scenes`, for pictures of shapes that the program draws. Files of texts may be compressed (.gz, .zst), idx3-ubyte files too (.gz)
    #[arg(long, visible_alias = "data", value_name = "FILES", num_args = 1.., help_heading = "Data")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    source: Vec<PathBuf>,
    /// Translation of the training text, line by line
    #[arg(long, value_name = "FILES", num_args = 1.., help_heading = "Data")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    target: Vec<PathBuf>,
    /// Validation text, one sentence per line; for other tasks a file like --source
    #[arg(long, visible_alias = "valid-data", value_name = "FILES", num_args = 1.., help_heading = "Data")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    valid_source: Vec<PathBuf>,
    /// Translation of the validation text, line by line
    #[arg(long, value_name = "FILES", num_args = 1.., help_heading = "Data")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    valid_target: Vec<PathBuf>,
    /// Number of training examples to hold out for validation, without --valid-source [default: chosen]
    #[arg(long, value_name = "N", value_parser = whole::<usize>, help_heading = "Data")]
    hold_out: Option<usize>,
    /// JSON field of the source in .jsonl files [default: source]
    #[arg(long, value_name = "NAME", help_heading = "Data")]
    source_field: Option<String>,
    /// JSON field of the target in .jsonl files [default: target]
    #[arg(long, value_name = "NAME", help_heading = "Data")]
    target_field: Option<String>,
    /// Text to put before each source, for seq2seq, such as `summarize: `
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, help_heading = "Data")]
    prefix: Option<String>,
    /// Language of the sources, for seq2seq from a model of several languages, such as en
    #[arg(long, value_name = "LANG", help_heading = "Data")]
    source_language: Option<String>,
    /// Language of the targets
    #[arg(long, value_name = "LANG", help_heading = "Data")]
    target_language: Option<String>,
    /// Maximum length of a sentence in tokens; longer pairs are skipped, texts of other tasks are cut [default: 256; other tasks
    /// 512, or what the model reads]
    #[arg(long, value_name = "N", value_parser = whole::<usize>, help_heading = "Data")]
    longest: Option<usize>,
    /// Maximum ratio of the lengths of source and target; other pairs are skipped [default: 9]
    #[arg(long, value_name = "X", help_heading = "Data")]
    ratio: Option<f64>,

    /// Tokenizer to use [default: that of --from, or train one on the corpus]
    #[arg(long, value_name = "DIR|FILE|NAME", help_heading = "Tokenizer")]
    tokenizer: Option<PathBuf>,
    /// Kind of tokenizer to train; bpe of lm is GPT-2's, of bytes [default: bpe; seq2seq unigram; the tasks of BERT
    /// wordpiece]
    #[arg(long, visible_alias = "kind", value_name = "KIND", help_heading = "Tokenizer")]
    #[arg(value_parser = ["bpe", "unigram", "wordpiece", "characters"])]
    tokenizer_kind: Option<String>,
    /// A token for each character of the text, for lm: the same as --tokenizer-kind characters
    #[arg(long, conflicts_with_all = ["tokenizer_kind", "tokenizer", "from"], help_heading = "Tokenizer")]
    #[serde(skip)]
    characters: bool,
    /// Vocabulary size of the tokenizer, shared by source and target [default: chosen]
    #[arg(long, value_name = "N", value_parser = between::<8, 1_000_000>, help_heading = "Tokenizer")]
    vocab_size: Option<usize>,
    /// Share of the characters of the text that the vocabulary covers [default: 1]
    #[arg(long, value_name = "SHARE", help_heading = "Tokenizer")]
    character_coverage: Option<f64>,
    /// BPE dropout: probability of skipping a merge in training; 0.1 helps small corpora [default: 0]
    #[arg(long, value_name = "P", help_heading = "Tokenizer")]
    bpe_dropout: Option<f64>,

    /// Size of the model; for lm also a row of GPT-3's table 2.1: gpt3-125m, -350m, -760m, -1.3b, -2.7b, -6.7b, -13b, -175b, which
    /// becomes a GPT-Neo folder [default: chosen]
    #[arg(long, value_name = "NAME", help_heading = "Model")]
    #[arg(value_parser = ["tiny", "small", "base", "big", "gpt3-125m", "gpt3-350m", "gpt3-760m", "gpt3-1.3b", "gpt3-2.7b", "gpt3-6.7b",
        "gpt3-13b", "gpt3-175b"])]
    preset: Option<String>,
    /// Width of the model [default: the preset's]
    #[arg(long, value_name = "N", value_parser = whole::<usize>, help_heading = "Model")]
    d_model: Option<usize>,
    /// Number of attention heads [default: the preset's]
    #[arg(long, value_name = "N", value_parser = whole::<usize>, help_heading = "Model")]
    heads: Option<usize>,
    /// Width of the feed-forward network [default: the preset's]
    #[arg(long, value_name = "N", value_parser = whole::<usize>, help_heading = "Model")]
    d_ff: Option<usize>,
    /// Number of encoder layers [default: the preset's]
    #[arg(long, value_name = "N", value_parser = whole::<usize>, help_heading = "Model")]
    encoder_layers: Option<usize>,
    /// Number of decoder layers [default: the preset's]
    #[arg(long, value_name = "N", value_parser = whole::<usize>, help_heading = "Model")]
    decoder_layers: Option<usize>,
    /// Dropout probability of embeddings and sublayers [default: chosen, or that of the model in --from]
    #[arg(long, value_name = "P", help_heading = "Model")]
    dropout: Option<f64>,
    /// Dropout probability of attention weights [default: that of the model in --from, else 0; other tasks 0.1]
    #[arg(long, value_name = "P", help_heading = "Model")]
    attention_dropout: Option<f64>,
    /// Layer normalization after each sublayer (post, as in the paper) or before it (pre) [default: post]
    #[arg(long, value_name = "PLACE", value_parser = ["post", "pre"], help_heading = "Model")]
    norm: Option<String>,
    /// Height and width of the pictures that a new model reads [default: 224, or that of the pictures of an idx3-ubyte file]
    #[arg(long, value_name = "PIXELS", value_parser = whole::<usize>, help_heading = "Model")]
    image_size: Option<usize>,
    /// Height and width of a patch of a new model [default: 16; 8 for pictures up to 96 pixels, 4 up to 48]
    #[arg(long, value_name = "PIXELS", value_parser = whole::<usize>, help_heading = "Model")]
    patch_size: Option<usize>,

    /// See random parts of pictures, whose share of the area is from MIN to MAX, in the size that the model reads [default: 1 1,
    /// whole pictures]
    #[arg(long, value_names = ["MIN", "MAX"], num_args = 2, help_heading = "Augmentation of pictures")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    scale: Vec<f64>,
    /// Probability to see a picture in a mirror [default: 0]
    #[arg(long, value_name = "P", help_heading = "Augmentation of pictures")]
    hflip: Option<f64>,
    /// Vary brightness, contrast and saturation by factors from 1 - X to 1 + X: one number for all, or one for each, and a fourth
    /// one for the hue, at most 0.5 [default: none]
    #[arg(long, value_name = "X", num_args = 1..=4, help_heading = "Augmentation of pictures")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    color_jitter: Vec<f64>,
    /// Probability to vary the colours [default: 1]
    #[arg(long, value_name = "P", help_heading = "Augmentation of pictures")]
    color_jitter_prob: Option<f64>,
    /// Probability to take the colours away [default: 0]
    #[arg(long, value_name = "P", help_heading = "Augmentation of pictures")]
    grayscale_prob: Option<f64>,
    /// Probability of a Gaussian blur, of a standard deviation from 0.1 to 2 pixels [default: 0]
    #[arg(long, value_name = "P", help_heading = "Augmentation of pictures")]
    gaussian_blur_prob: Option<f64>,
    /// Probability to invert all levels from 128 on [default: 0]
    #[arg(long, value_name = "P", help_heading = "Augmentation of pictures")]
    solarize_prob: Option<f64>,
    /// Probability to erase a random part, of 2 to 33 % of the area [default: 0]
    #[arg(long, value_name = "P", help_heading = "Augmentation of pictures")]
    reprob: Option<f64>,
    /// Mix pairs of pictures and their labels with shares from Beta(ALPHA, ALPHA), for classify-images; 0 turns it off [default: 0]
    #[arg(long, value_name = "ALPHA", help_heading = "Augmentation of pictures")]
    mixup: Option<f64>,

    /// Share of a picture's area that each of the two global views has, for dino [default: 0.4 1]
    #[arg(long, value_names = ["MIN", "MAX"], num_args = 2, help_heading = "DINO")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    global_crops_scale: Vec<f64>,
    /// Share of the area that a local view has [default: 0.05 0.4]
    #[arg(long, value_names = ["MIN", "MAX"], num_args = 2, help_heading = "DINO")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    local_crops_scale: Vec<f64>,
    /// Number of local views beside the two global ones [default: 8]
    #[arg(long, value_name = "N", value_parser = whole::<usize>, help_heading = "DINO")]
    local_crops_number: Option<usize>,
    /// Height and width of a local view [default: 96 where the model reads 224, or as much less]
    #[arg(long, value_name = "PIXELS", value_parser = whole::<usize>, help_heading = "DINO")]
    local_crops_size: Option<usize>,
    /// Number of logits of the head [default: 4096; DINO's code has 65536]
    #[arg(long, value_name = "N", value_parser = whole::<usize>, help_heading = "DINO")]
    out_dim: Option<usize>,
    /// Width of the layers in the head [default: 2048]
    #[arg(long, value_name = "N", value_parser = whole::<usize>, help_heading = "DINO")]
    hidden_dim: Option<usize>,
    /// Width of what the last layer of the head reads [default: 256]
    #[arg(long, value_name = "N", value_parser = whole::<usize>, help_heading = "DINO")]
    bottleneck_dim: Option<usize>,
    /// How much of the teacher stays at the first step; it rises to 1 along half a cosine [default: 0.996]
    #[arg(long, value_name = "X", help_heading = "DINO")]
    momentum_teacher: Option<f64>,
    /// Temperature of the teacher at the first step [default: 0.04]
    #[arg(long, value_name = "X", help_heading = "DINO")]
    warmup_teacher_temp: Option<f64>,
    /// Temperature of the teacher after its warm-up [default: 0.04]
    #[arg(long, value_name = "X", help_heading = "DINO")]
    teacher_temp: Option<f64>,
    /// Steps over which the temperature of the teacher changes [default: 0]
    #[arg(long, value_name = "N", value_parser = whole::<u64>, help_heading = "DINO")]
    warmup_teacher_temp_steps: Option<u64>,
    /// Steps in which the last layer of the head stays as it is [default: chosen, one epoch, at most a tenth of the steps]
    #[arg(long, value_name = "N", value_parser = whole::<u64>, help_heading = "DINO")]
    freeze_last_layer: Option<u64>,

    /// Tokens per batch, source and target together [default: chosen]
    #[arg(long, value_name = "N", value_parser = whole::<usize>, help_heading = "Optimization")]
    batch_tokens: Option<usize>,
    /// Maximum number of examples per batch [default: no limit; other tasks 32, pictures 64]
    #[arg(long, value_name = "N", value_parser = whole::<usize>, help_heading = "Optimization")]
    batch_size: Option<usize>,
    /// Share of the tokens that a masked language model has to guess [default: 0.15]
    #[arg(long, value_name = "SHARE", help_heading = "Optimization")]
    mask_share: Option<f64>,
    /// Batches per step: gradients are accumulated over N batches [default: 1, or a batch for each rank]
    #[arg(long, value_name = "N", value_parser = whole::<usize>, help_heading = "Optimization")]
    accumulate: Option<usize>,
    /// Learning rate schedule [default: chosen]
    #[arg(long, value_name = "NAME", help_heading = "Optimization")]
    #[arg(value_parser = ["paper", "noam", "inverse-sqrt", "cosine", "linear", "constant"])]
    schedule: Option<String>,
    /// Step at which a cosine or linear schedule reaches its end and the run ends [default: --steps, or chosen]
    #[arg(long, value_name = "N", value_parser = whole::<u64>, help_heading = "Optimization")]
    schedule_steps: Option<u64>,
    /// Peak learning rate; a factor for the schedules paper and noam [default: chosen]
    #[arg(long, value_name = "X", help_heading = "Optimization")]
    learning_rate: Option<f64>,
    /// Learning rate at the end of a cosine or linear schedule [default: 0]
    #[arg(long, value_name = "X", help_heading = "Optimization")]
    last_learning_rate: Option<f64>,
    /// Warm-up steps [default: chosen]
    #[arg(long, value_name = "N", value_parser = whole::<u64>, help_heading = "Optimization")]
    warmup: Option<u64>,
    /// β₁ of Adam [default: 0.9]
    #[arg(long, value_name = "X", help_heading = "Optimization")]
    beta1: Option<f64>,
    /// β₂ of Adam [default: 0.98; other tasks 0.999]
    #[arg(long, value_name = "X", help_heading = "Optimization")]
    beta2: Option<f64>,
    /// ε of Adam [default: 1e-9; other tasks 1e-8]
    #[arg(long, value_name = "X", help_heading = "Optimization")]
    epsilon: Option<f64>,
    /// Weight decay (AdamW) of matrices; biases and norms do not decay [default: 0; dino 0.04]
    #[arg(long, value_name = "X", help_heading = "Optimization")]
    weight_decay: Option<f64>,
    /// Weight decay at the last step, to which it goes along half a cosine [default: that of --weight-decay; dino 0.4]
    #[arg(long, value_name = "X", help_heading = "Optimization")]
    weight_decay_end: Option<f64>,
    /// Maximum gradient norm; 0 turns clipping off [default: 0; other tasks 1, dino 3]
    #[arg(long, value_name = "X", help_heading = "Optimization")]
    clip: Option<f64>,
    /// Label smoothing [default: 0.1; other tasks 0]
    #[arg(long, value_name = "X", help_heading = "Optimization")]
    label_smoothing: Option<f64>,
    /// Decay of the exponential moving average of the weights, which is validated and saved; 0 turns it off
    /// [default: chosen]
    #[arg(long, value_name = "X", help_heading = "Optimization")]
    ema: Option<f64>,
    /// Number of last checkpoints to average at the end; 0 turns it off [default: 0]
    #[arg(long, value_name = "N", value_parser = whole::<usize>, help_heading = "Optimization")]
    average: Option<usize>,

    /// Stop after N steps
    #[arg(long, value_name = "N", value_parser = whole::<u64>, help_heading = "Limits and validation")]
    steps: Option<u64>,
    /// Stop after X epochs
    #[arg(long, value_name = "X", help_heading = "Limits and validation")]
    epochs: Option<f64>,
    /// Stop after X minutes of training, including earlier sessions of the run
    #[arg(long, value_name = "X", help_heading = "Limits and validation")]
    minutes: Option<f64>,
    /// Stop after N validations without improvement [default: 10 if there is no other limit]
    #[arg(long, value_name = "N", value_parser = whole::<u64>, help_heading = "Limits and validation")]
    patience: Option<u64>,
    /// Validation measure that decides which model is best, also for --patience [default: chosen]
    #[arg(long, value_name = "MEASURE", help_heading = "Limits and validation")]
    #[arg(value_parser = ["loss", "bleu", "chrf", "rouge", "accuracy", "exact", "f1", "ap"])]
    early_stopping: Option<String>,
    /// Validate every N steps [default: chosen]
    #[arg(long, value_name = "N", value_parser = whole::<u64>, help_heading = "Limits and validation")]
    validate_every: Option<u64>,
    /// Number of validation pairs to translate for BLEU and chrF, or of questions to answer; 0 means none [default: chosen; seq2seq
    /// 200, answer 1000]
    #[arg(long, value_name = "N", value_parser = whole::<usize>, help_heading = "Limits and validation")]
    validate_lines: Option<usize>,
    /// Beam size in validation; 1 is greedy search [default: 1]
    #[arg(long, value_name = "N", value_parser = whole::<usize>, help_heading = "Limits and validation")]
    validate_beam: Option<usize>,
    /// Save a checkpoint every N steps [default: --validate-every]
    #[arg(long, value_name = "N", value_parser = whole::<u64>, help_heading = "Limits and validation")]
    save_every: Option<u64>,
    /// Number of last checkpoints to keep beside the best [default: 3]
    #[arg(long, value_name = "N", value_parser = whole::<usize>, help_heading = "Limits and validation")]
    keep: Option<usize>,
    /// Log every N steps [default: 50]
    #[arg(long, value_name = "N", value_parser = whole::<u64>, help_heading = "Limits and validation")]
    log_every: Option<u64>,

    /// Random seed of initial weights, order of pairs and dropout [default: 1]
    #[arg(long, value_name = "N", value_parser = whole::<u64>, help_heading = "Compute")]
    seed: Option<u64>,
    /// Precision of matrix products; auto is bf16 on processors with AMX, else f32 [default: auto]
    #[arg(long, value_name = "NAME", value_parser = ["f32", "bf16", "auto"], help_heading = "Compute")]
    precision: Option<String>,
    /// Number of threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = between::<1, 1024>, help_heading = "Compute")]
    threads: Option<usize>,
}

impl Flags {
    /// Those that were given, as settings. Names on the Hub become folders.
    pub(super) fn table(&self) -> Result<Table, Error> {
        let mut table = Table::try_from(self).expect("flags are a table");
        if self.characters {
            table.insert("tokenizer_kind".to_owned(), "characters".into());
        }
        for (flag, path, need) in
            [("from", &self.from, Need::Model), ("tokenizer", &self.tokenizer, Need::Tokenizer)]
        {
            if let Some(path) = path {
                let folder = model::folder(path, need)?;
                table.insert(flag.to_owned(), Value::try_from(folder).expect("a path that was text"));
            }
        }
        Ok(table)
    }
}
