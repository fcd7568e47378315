//! Whether settings make sense, and whether they are still the same.

use super::{Measure, Settings, TokenizerKind, is_called};
use crate::Error;
use crate::corpus::CorpusFiles;
use std::path::{Path, PathBuf};

/// Settings that say nothing about the steps that were made: with them changed, a run may go on.
const CHANGEABLE: [&str; 7] = ["steps", "epochs", "minutes", "schedule_steps", "patience", "threads", "keep"];

impl Settings {
    /// Refuses what cannot be, alone or together, before anything is read or written.
    pub fn check(&self) -> Result<(), Error> {
        self.check_formats()?;
        let is_missing = |files: CorpusFiles| match files {
            CorpusFiles::Pairs { sources, targets } => sources.is_empty() || targets.is_empty(),
            CorpusFiles::Tsv(_) | CorpusFiles::Jsonl { .. } => false,
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
        self.check_numbers()?;
        // Another number of tokens would not make it possible.
        self.model(self.vocab_size).map_err(named_as_a_setting)?;
        if self.schedule.needs_steps() && self.steps.is_none() && self.schedule_steps.is_none() {
            let problem = "cosine and linear need a last step: set steps or schedule_steps";
            return Err(Error::setting("schedule", problem));
        }
        if self.bpe_dropout > 0.0 && self.tokenizer.is_none() && self.tokenizer_kind != TokenizerKind::Bpe {
            return Err(Error::setting(
                "bpe_dropout",
                "unigram tokenizers have no merges: use a bpe tokenizer",
            ));
        }
        if self.early_stopping != Measure::Loss && self.validate_lines == 0 {
            let problem = "BLEU and chrF need translations: set a number above 0";
            return Err(Error::setting("validate_lines", problem));
        }
        if self.validation().is_some() && self.hold_out > 0 {
            let problem = "there are files to validate on already: use either the files or hold_out";
            return Err(Error::setting("hold_out", problem));
        }
        if self.validates() {
            return Ok(());
        }
        if self.early_stopping != Measure::Loss || self.patience.is_some() {
            let name = if self.patience.is_some() { "patience" } else { "early_stopping" };
            return Err(Error::setting(
                name,
                "there is no validation data: give validation files, or hold out pairs",
            ));
        }
        if self.patience() != self.patience {
            let problem = "the run has no limit: set steps, epochs or minutes, or give validation data";
            return Err(Error::setting("steps", problem));
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
            ("accumulate", self.accumulate as u64, 1, 1 << 16),
            ("schedule_steps", self.schedule_steps.unwrap_or(1), 1, STEPS),
            ("warmup", self.warmup, 0, STEPS),
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
        ];
        for (name, number) in above_zero {
            if !(number > 0.0 && number.is_finite()) {
                return Err(Error::setting(name, format!("must be above 0, not {number}")));
            }
        }
        let not_negative = [("weight_decay", self.weight_decay), ("clip", self.clip)];
        for (name, number) in not_negative {
            if !(number >= 0.0 && number.is_finite()) {
                return Err(Error::setting(name, format!("must be 0 or above, not {number}")));
            }
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
        if self.ratio.is_nan() || self.ratio < 1.0 {
            return Err(Error::setting("ratio", format!("must be at least 1, not {}", self.ratio)));
        }
        Ok(())
    }

    /// Refuses to go on with a run that began with other settings, unless they are some that may change.
    pub fn refuse_changes(&self, then: &Settings, folder: &Path) -> Result<(), Error> {
        let (now, then) = (super::file::values(self), super::file::values(then));
        let changed = now.iter().find(|(name, value)| {
            !CHANGEABLE.contains(&name.as_str()) && then.get(name.as_str()) != Some(*value)
        });
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
}

/// A mistake in the sizes of a model, under the name that the setting has.
fn named_as_a_setting(error: attentive_model::Error) -> Error {
    match error {
        attentive_model::Error::Config { field, problem } => {
            Error::setting(if field == "h" { "heads" } else { field }, problem)
        }
        other => other.into(),
    }
}
