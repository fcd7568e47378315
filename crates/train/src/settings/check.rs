//! Whether settings make sense, and whether they are still the same.

use super::pictures::{AUGMENTATIONS, OF_DINO};
use super::{Measure, Settings, TaskKind, TokenizerKind, USUAL_SIDE};
use crate::Error;
use crate::corpus::{CorpusFiles, is_called};
use std::path::{Path, PathBuf};

/// Settings that say nothing about the steps that were made: with them changed, a run may go on.
const CHANGEABLE: [&str; 7] = ["steps", "epochs", "minutes", "schedule_steps", "patience", "threads", "keep"];

/// Sizes of a ViT that no other model has.
const OF_VIT: [&str; 2] = ["image_size", "patch_size"];

/// Settings that only tasks of pairs have.
const OF_PAIRS: [&str; 5] = ["norm", "ratio", "source_field", "target_field", "validate_beam"];

/// Settings that only `seq2seq` has.
const OF_SEQ2SEQ: [&str; 3] = ["prefix", "source_language", "target_language"];

impl Settings {
    /// Refuses what cannot be, alone or together, before anything is read or written.
    pub fn check(&self) -> Result<(), Error> {
        match self.task {
            TaskKind::Translate | TaskKind::Seq2Seq => self.check_pairs()?,
            TaskKind::ClassifyImages => self.check_pictures()?,
            TaskKind::Detect => self.check_boxes()?,
            TaskKind::Dino => self.check_views()?,
            _ => self.check_texts()?,
        }
        self.check_numbers()?;
        self.check_model()?;
        if self.schedule.needs_steps() && self.steps.is_none() && self.schedule_steps.is_none() {
            let problem = "cosine and linear need a last step: set steps or schedule_steps";
            return Err(Error::setting("schedule", problem));
        }
        // That of a model to go on from is looked at when it is read.
        let is_trained = self.tokenizer.is_none() && self.from.is_none();
        if self.bpe_dropout > 0.0 && is_trained && self.tokenizer_kind != TokenizerKind::Bpe {
            return Err(Error::setting("bpe_dropout", "only bpe tokenizers have merges: use one"));
        }
        let measures = self.task.measures();
        if !measures.contains(&self.early_stopping) {
            let names: Vec<&str> = measures.iter().map(|measure| measure.name()).collect();
            let problem = format!("{} is judged by {}", self.task.name(), names.join(", "));
            return Err(Error::setting("early_stopping", problem));
        }
        let measure = self.early_stopping;
        let is_of_texts = matches!(measure, Measure::Bleu | Measure::Chrf | Measure::Rouge)
            || self.task == TaskKind::Answer && measure != Measure::Loss;
        if is_of_texts && self.validate_lines == 0 && self.validates() {
            let problem = format!(
                "{} needs texts that the model writes or finds: set a number above 0",
                measure.name()
            );
            return Err(Error::setting("validate_lines", problem));
        }
        if self.validation().is_some() && self.hold_out > 0 {
            let problem = "there are files to validate on already: use either the files or hold_out";
            return Err(Error::setting("hold_out", problem));
        }
        if self.validates() {
            return Ok(());
        }
        let is_chosen = self.early_stopping != Settings::of(self.task).early_stopping;
        if is_chosen || self.patience.is_some() {
            let name = if self.patience.is_some() { "patience" } else { "early_stopping" };
            return Err(Error::setting(
                name,
                "there is no validation data: give validation files, or set hold_out",
            ));
        }
        if self.patience() != self.patience {
            let problem = "the run has no limit: set steps, epochs or minutes, or give validation data";
            return Err(Error::setting("steps", problem));
        }
        Ok(())
    }

    /// Refuses files of pairs that do not belong together.
    fn check_pairs(&self) -> Result<(), Error> {
        self.check_formats()?;
        self.refuse_vit()?;
        self.refuse(&["mask_share"])?;
        if !matches!(self.tokenizer_kind, TokenizerKind::Bpe | TokenizerKind::Unigram) {
            let problem = format!("{} needs a bpe or unigram tokenizer", self.task.name());
            return Err(Error::setting("tokenizer_kind", problem));
        }
        if self.task == TaskKind::Translate {
            self.refuse(&OF_SEQ2SEQ)?;
        } else {
            self.refuse(&["norm", "ratio"])?;
            if self.from.is_none() && self.attention_dropout.is_some() {
                let problem = "a T5 has one dropout for all: use dropout";
                return Err(Error::setting("attention_dropout", problem));
            }
        }
        let is_missing = |files: CorpusFiles| match files {
            CorpusFiles::Pairs { sources, targets } => sources.is_empty() || targets.is_empty(),
            CorpusFiles::Texts(_) | CorpusFiles::Tsv(_) | CorpusFiles::Jsonl { .. } => false,
        };
        if is_missing(self.corpus()) {
            let name = if self.source.is_empty() { "source" } else { "target" };
            return Err(Error::setting(name, "no training file was given"));
        }
        if self.validation().is_some_and(is_missing) {
            let name = if self.valid_source.is_empty() { "valid_source" } else { "valid_target" };
            return Err(Error::setting(
                name,
                "no validation file was given for this side, only for the other",
            ));
        }
        Ok(())
    }

    /// Refuses what a task of pictures has no use for.
    fn check_pictures(&self) -> Result<(), Error> {
        self.refuse(&OF_DINO)?;
        self.check_vit()
    }

    /// Refuses what a task of pictures without labels has no use for.
    fn check_views(&self) -> Result<(), Error> {
        self.refuse(&["scale", "mixup", "label_smoothing"])?;
        let its_own =
            "the teacher is the moving average of the weights: remove this setting, or set momentum_teacher";
        self.refuse_said(&["ema", "average"], its_own)?;
        self.check_dino()?;
        self.check_vit()
    }

    /// Refuses what no ViT has a use for.
    fn check_vit(&self) -> Result<(), Error> {
        self.refuse_texts()?;
        self.refuse_said(&["decoder_layers"], "a ViT has no decoder: remove this setting")?;
        self.check_augmentations()
    }

    /// Refuses what a task of pictures with boxes has no use for.
    fn check_boxes(&self) -> Result<(), Error> {
        self.refuse_texts()?;
        self.refuse(&["label_smoothing"])?;
        self.refuse_vit()
    }

    /// Refuses, for another task, what only a ViT has.
    fn refuse_vit(&self) -> Result<(), Error> {
        self.refuse(&OF_VIT)?;
        self.refuse(&AUGMENTATIONS)?;
        self.refuse(&OF_DINO)
    }

    /// Refuses, for a task of pictures, what only texts have.
    fn refuse_texts(&self) -> Result<(), Error> {
        self.check_sides()?;
        self.refuse(&OF_PAIRS)?;
        self.refuse(&OF_SEQ2SEQ)?;
        const OF_TEXTS: [&str; 8] = [
            "validate_lines",
            "longest",
            "tokenizer",
            "tokenizer_kind",
            "vocab_size",
            "character_coverage",
            "bpe_dropout",
            "mask_share",
        ];
        self.refuse(&OF_TEXTS)
    }

    /// Refuses files that a task of BERT has no use for.
    fn check_texts(&self) -> Result<(), Error> {
        self.check_sides()?;
        self.refuse_vit()?;
        self.refuse(&OF_PAIRS)?;
        self.refuse(&OF_SEQ2SEQ)?;
        if self.task != TaskKind::Answer {
            self.refuse(&["validate_lines"])?;
        }
        let of_other_stack = if self.task == TaskKind::Lm { "encoder_layers" } else { "decoder_layers" };
        self.refuse_said(&[of_other_stack], "the model has no such layers: remove this setting")?;
        if self.task != TaskKind::Mlm {
            self.refuse(&["mask_share"])?;
        }
        if self.bpe_dropout > 0.0 {
            let problem = format!("{} cannot skip merges: set it to 0", self.task.name());
            return Err(Error::setting("bpe_dropout", problem));
        }
        if self.tokenizer.is_none() && self.from.is_none() { self.check_trained_tokenizer() } else { Ok(()) }
    }

    /// Refuses files for a side that only translators have.
    fn check_sides(&self) -> Result<(), Error> {
        if self.source.is_empty() {
            return Err(Error::setting("source", "no training file was given"));
        }
        for (name, files) in [("target", &self.target), ("valid_target", &self.valid_target)] {
            if !files.is_empty() {
                let problem = format!("{} has no target files: remove this setting", self.task.name());
                return Err(Error::setting(name, problem));
            }
        }
        Ok(())
    }

    /// Refuses to train a tokenizer that the task has no use for.
    fn check_trained_tokenizer(&self) -> Result<(), Error> {
        let (is_possible, kinds) = match (self.task, self.tokenizer_kind) {
            (TaskKind::Lm, kind) => {
                (matches!(kind, TokenizerKind::Bpe | TokenizerKind::Characters), "bpe or characters")
            }
            (_, kind) => (kind == TokenizerKind::WordPiece, "wordpiece"),
        };
        if !is_possible {
            let problem = format!("{} needs a {kinds} tokenizer", self.task.name());
            return Err(Error::setting("tokenizer_kind", problem));
        }
        if self.tokenizer_kind == TokenizerKind::Characters {
            self.refuse_said(&["vocab_size"], "each character of the text has a token: remove this setting")?;
        }
        Ok(())
    }

    /// Refuses settings that the task does not have.
    fn refuse(&self, names: &[&'static str]) -> Result<(), Error> {
        self.refuse_said(names, &format!("{} does not have it: remove this setting", self.task.name()))
    }

    /// Refuses settings that have another value than the task's default.
    fn refuse_said(&self, names: &[&'static str], problem: &str) -> Result<(), Error> {
        let (own, usual) = (super::file::values(self), super::file::values(&Settings::of(self.task)));
        match names.iter().find(|name| own.get(**name) != usual.get(**name)) {
            Some(name) => Err(Error::setting(name, problem)),
            None => Ok(()),
        }
    }

    /// Refuses sizes of a model that cannot be, and those that a model to go on from has already.
    fn check_model(&self) -> Result<(), Error> {
        if self.from.is_none() {
            // Another number of tokens would not make it possible.
            let checked = match self.task {
                TaskKind::Translate => self.model(self.vocab_size).map(drop),
                TaskKind::Seq2Seq => self.t5(self.vocab_size).map(drop),
                TaskKind::Lm => self.gpt2(self.vocab_size).map(drop),
                TaskKind::ClassifyImages | TaskKind::Dino => {
                    self.vit([self.image_size.unwrap_or(USUAL_SIDE); 2]).map(drop)
                }
                TaskKind::Detect => self.detr(vec!["thing".to_owned()]).map(drop),
                _ => self.bert(self.vocab_size).map(drop),
            };
            return checked.map_err(|error| self.named_as_a_setting(error));
        }
        let sizes = [
            ("d_model", self.d_model),
            ("heads", self.heads),
            ("d_ff", self.d_ff),
            ("encoder_layers", self.encoder_layers),
            ("decoder_layers", self.decoder_layers),
            ("image_size", self.image_size),
            ("patch_size", self.patch_size),
        ];
        if let Some((name, _)) = sizes.into_iter().find(|(_, size)| size.is_some()) {
            return Err(Error::setting(
                name,
                "the model to start from has its own sizes: remove this setting",
            ));
        }
        let of_model = ["preset", "norm", "vocab_size", "tokenizer_kind", "character_coverage"];
        self.refuse_said(&of_model, "the model to start from has its own: remove this setting")?;
        if self.tokenizer.is_some() {
            let problem = "the model to start from has its own tokenizer: remove this setting";
            return Err(Error::setting("tokenizer", problem));
        }
        Ok(())
    }

    /// Refuses to hold out so many examples that none would be left.
    pub(crate) fn check_hold_out(&self, all: usize, what: &str) -> Result<(), Error> {
        let held = self.hold_out;
        if held >= all {
            let problem = format!("cannot hold out {held} of {all} {what}: set a smaller number");
            return Err(Error::setting("hold_out", problem));
        }
        Ok(())
    }

    /// Refuses files with both sides where a file for the other side is given as well.
    fn check_formats(&self) -> Result<(), Error> {
        for (sources, targets, name) in
            [(&self.source, &self.target, "target"), (&self.valid_source, &self.valid_target, "valid_target")]
        {
            let has_both = |path: &&PathBuf| [".tsv", ".jsonl"].iter().any(|end| is_called(path, end));
            let both = sources.iter().chain(targets).find(has_both);
            if let Some(path) = both.filter(|_| !targets.is_empty()) {
                let problem = format!(
                    "{} has both sides, so no target file is needed: remove this setting, or rename the \
                     file if it has only one side",
                    path.display()
                );
                return Err(Error::setting(name, problem));
            }
        }
        Ok(())
    }

    fn check_numbers(&self) -> Result<(), Error> {
        const STEPS: u64 = u32::MAX as u64;
        let numbers = [
            ("hold_out", self.hold_out as u64, 0, STEPS),
            ("longest", self.longest as u64, 1, 1 << 16),
            ("vocab_size", self.vocab_size as u64, 1, 1 << 24),
            ("batch_tokens", self.batch_tokens as u64, 1, 1 << 24),
            ("batch_size", self.batch_size.unwrap_or(1) as u64, 1, 1 << 24),
            ("accumulate", self.accumulate as u64, 1, 1 << 16),
            ("schedule_steps", self.schedule_steps.unwrap_or(1), 1, STEPS),
            ("warmup", self.warmup, 0, STEPS),
            ("warmup_teacher_temp_steps", self.warmup_teacher_temp_steps, 0, STEPS),
            ("freeze_last_layer", self.freeze_last_layer, 0, STEPS),
            ("average", self.average as u64, 0, 1 << 16),
            ("steps", self.steps.unwrap_or(1), 1, STEPS),
            ("patience", self.patience.unwrap_or(1), 1, STEPS),
            ("validate_every", self.validate_every, 1, STEPS),
            ("validate_lines", self.validate_lines as u64, 0, STEPS),
            ("validate_beam", self.validate_beam as u64, 1, 1024),
            ("save_every", self.save_every(), 1, STEPS),
            ("keep", self.keep as u64, 0, STEPS),
            ("log_every", self.log_every, 1, STEPS),
            // What a file of settings can say.
            ("seed", self.seed, 0, i64::MAX as u64),
            ("threads", self.threads.unwrap_or(1) as u64, 1, 1024),
        ];
        for (name, number, least, most) in numbers {
            if number < least {
                return Err(Error::setting(name, format!("must be at least {least}, not {number}")));
            }
            if number > most {
                return Err(Error::setting(name, format!("must be at most {most}, not {number}")));
            }
        }
        let above_zero = [
            ("learning_rate", self.learning_rate.unwrap_or(1.0)),
            ("epochs", self.epochs.unwrap_or(1.0)),
            ("minutes", self.minutes.unwrap_or(1.0)),
            ("epsilon", self.epsilon),
            ("character_coverage", self.character_coverage),
            ("mask_share", self.mask_share),
        ];
        for (name, number) in above_zero {
            if !(number > 0.0 && number.is_finite()) {
                return Err(Error::setting(name, format!("must be above 0, not {number}")));
            }
        }
        let not_negative = [
            ("weight_decay", self.weight_decay),
            ("weight_decay_end", self.weight_decay_end.unwrap_or_default()),
            ("clip", self.clip),
            ("last_learning_rate", self.last_learning_rate),
        ];
        for (name, number) in not_negative {
            if !(number >= 0.0 && number.is_finite()) {
                return Err(Error::setting(name, format!("must be 0 or above, not {number}")));
            }
        }
        if self.last_learning_rate > 0.0 && !self.schedule.needs_steps() {
            let problem = "only cosine and linear schedules have a last rate: remove this setting";
            return Err(Error::setting("last_learning_rate", problem));
        }
        let below_one = [
            ("beta1", self.beta1),
            ("beta2", self.beta2),
            ("label_smoothing", self.label_smoothing),
            ("ema", self.ema),
            ("bpe_dropout", self.bpe_dropout),
        ];
        for (name, number) in below_one {
            if !(0.0..1.0).contains(&number) {
                return Err(Error::setting(name, format!("must be from 0 to below 1, not {number}")));
            }
        }
        if self.mask_share >= 1.0 {
            return Err(Error::setting("mask_share", format!("must be below 1, not {}", self.mask_share)));
        }
        if self.ratio.is_nan() || self.ratio < 1.0 {
            return Err(Error::setting("ratio", format!("must be at least 1, not {}", self.ratio)));
        }
        Ok(())
    }

    /// Refuses to go on with a run that began with other settings, unless they are some that may change.
    pub fn refuse_changes(&self, then: &Settings, folder: &Path) -> Result<(), Error> {
        let (now, then) = (super::file::values(self), super::file::values(then));
        // Not to say how much attention is dropped out was to say 0.
        let dropped =
            |value: Option<&serde_json::Value>| value.and_then(serde_json::Value::as_f64).unwrap_or(0.0);
        let is_same = |name: &str, now: &serde_json::Value| match then.get(name) {
            before
                if name == "attention_dropout" && self.from.is_none() && self.task == TaskKind::Translate =>
            {
                dropped(before) == dropped(Some(now))
            }
            before => before == Some(now),
        };
        let changed =
            now.iter().find(|(name, value)| !CHANGEABLE.contains(&name.as_str()) && !is_same(name, value));
        let Some((name, value)) = changed else { return Ok(()) };
        let text = |value: Option<&serde_json::Value>| match value {
            None | Some(serde_json::Value::Null) => "not set".to_owned(),
            Some(value) => value.to_string(),
        };
        Err(Error::Changed {
            folder: folder.to_owned(),
            name: name.clone(),
            then: text(then.get(name)),
            now: text(Some(value)),
        })
    }

    /// A mistake in the sizes of a model, under the name that the setting has.
    fn named_as_a_setting(&self, error: attentive_model::Error) -> Error {
        match error {
            attentive_model::Error::Config { field, problem } => {
                let name = match field {
                    "h" => "heads",
                    "layers" if self.task == TaskKind::Lm => "decoder_layers",
                    "layers" => "encoder_layers",
                    "max_positions" | "trained_length" => "longest",
                    field => field,
                };
                Error::setting(name, problem)
            }
            other => other.into(),
        }
    }
}
