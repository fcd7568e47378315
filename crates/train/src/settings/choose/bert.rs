//! The rule by which open settings of a BERT, of a GPT-2, of a T5 or of a ViT are chosen.
//!
//! ```text
//! hold_out        as for a translator
//! vocab_size      as for a translator; of a GPT-2, 512 at least, of which 256 are bytes
//! preset          tiny; small from 20 million tokens on
//! epochs          3 of a model that was trained before, 10 of a new one; none where there is another limit
//! schedule        linear, to zero at the last planned step
//! warmup          a tenth of the planned steps
//! learning_rate   0.00005 of a model that was trained before, 0.0001 · 768 / d_model of a new one; of text to text, that of
//!                 a translator
//! validate_every  once an epoch, after at most 1,000 steps
//! ```
//!
//! DINO goes through its pictures 100 times, at 0.0005 · pictures of a step / 256, with the last layer frozen in the first
//! epoch, or in a tenth of a run that has fewer than ten.

use super::{Choice, Choices, Draft, Facts, Pace, two_digits};
use crate::Error;
use crate::settings::{TaskKind, USUAL_SIDE};

/// Tokens of a corpus from which on a small model is better than a tiny one.
const LARGE: u64 = 20_000_000;
/// The least default size of a GPT-2's vocabulary.
pub(super) const FEWEST_BYTE_PAIRS: usize = 512;
/// What transformers fine-tunes with.
const FURTHER: f64 = 5e-5;

/// The sizes of a model for so many tokens.
pub(super) fn preset(tokens: u64, corpus: &str) -> (&'static str, String) {
    (if tokens < LARGE { "tiny" } else { "small" }, corpus.to_owned())
}

impl Draft {
    /// Chooses how often the corpus is gone through, which the pace is needed for.
    pub(crate) fn choose_epochs(&mut self) -> Vec<Choice> {
        let mut choices = Choices::default();
        if self.is_open("epochs") && !self.settings.is_limited() {
            let (epochs, reason) = match self.settings.from {
                _ if self.settings.task == TaskKind::Dino => (100.0, "there is no other limit"),
                Some(_) => (3.0, "the model was trained before, and there is no other limit"),
                None => (10.0, "the model is new, and there is no other limit"),
            };
            self.settings.epochs = Some(epochs);
            choices.add("epochs", epochs, reason.to_owned());
        }
        choices.0
    }

    /// Chooses the course of the run, and refuses what came of it if it cannot be.
    pub(super) fn choose_course_of_bert(
        &mut self,
        facts: &Facts,
        pace: Option<&Pace>,
    ) -> Result<Vec<Choice>, Error> {
        let mut choices = Choices::default();
        if let Some(pace) = pace {
            let planned = self.settings.planned(pace);
            self.choose_schedule(planned, &mut choices);
            if let Some(steps) = planned.filter(|_| self.is_open("warmup")) {
                self.settings.warmup = (steps / 10).max(1);
                choices.add("warmup", self.settings.warmup, format!("a tenth of {steps} steps"));
            }
            if self.is_open("validate_every") {
                self.settings.validate_every = pace.epoch.round().clamp(1.0, 1000.0) as u64;
                let reason = "one epoch, at most 1000 steps".to_owned();
                choices.add("validate_every", self.settings.validate_every, reason);
            }
            if self.is_open("freeze_last_layer") {
                let epoch = pace.epoch.round() as u64;
                self.settings.freeze_last_layer = planned.map_or(epoch, |steps| epoch.min(steps / 10));
                let reason = "one epoch, at most a tenth of the steps".to_owned();
                choices.add("freeze_last_layer", self.settings.freeze_last_layer, reason);
            }
        }
        if self.is_open("learning_rate") {
            let tokens = self.settings.vocab_size;
            let new = |d_model: usize, rate: f64| (rate, format!("for a model of width {d_model}"));
            let of_width = |d_model: usize| new(d_model, two_digits(1e-4 * 768.0 / d_model as f64));
            let (rate, reason) = match (facts.d_model, self.settings.task) {
                (_, TaskKind::Dino) => {
                    let pictures = self.settings.batch_size.unwrap_or(64) * self.settings.accumulate;
                    (two_digits(5e-4 * pictures as f64 / 256.0), format!("for {pictures} pictures in a step"))
                }
                (Some(_), TaskKind::Seq2Seq) => (super::FURTHER, "for a trained model".to_owned()),
                (Some(_), _) => (FURTHER, "for a trained model".to_owned()),
                (None, TaskKind::Seq2Seq) => {
                    let d_model = self.settings.t5(tokens)?.d_model;
                    new(d_model, super::peak(d_model))
                }
                (None, TaskKind::ClassifyImages) => {
                    let side = self.settings.image_size.unwrap_or(USUAL_SIDE);
                    of_width(self.settings.vit([side; 2])?.d_model)
                }
                (None, TaskKind::Detect) => of_width(self.settings.detr(vec!["thing".to_owned()])?.d_model),
                (None, TaskKind::Lm) => of_width(self.settings.gpt2(tokens)?.d_model),
                (None, _) => of_width(self.settings.bert(tokens)?.d_model),
            };
            self.settings.learning_rate = Some(rate);
            choices.add("learning_rate", rate, reason);
        }
        self.settings.check()?;
        Ok(choices.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::Schedule;
    use crate::settings::Settings;
    use toml::Table;

    fn chosen(said: &str, facts: &Facts) -> Settings {
        let said: Table = format!("source = [\"a\"]\n{said}").parse().unwrap();
        let mut draft = Draft::merge(said, Table::new()).unwrap();
        draft.check().unwrap();
        draft.choose_sizes(facts);
        draft.choose_epochs();
        let pace = draft.needs_pace().then_some(Pace { seconds: None, epoch: 216.0 });
        draft.choose_course(facts, pace.as_ref()).unwrap();
        draft.into_settings()
    }

    #[test]
    fn a_trained_model_gets_three_epochs_and_a_new_one_more_of_everything() {
        let facts =
            Facts { examples: 7000, bytes: 700_000, characters: 80, validation: 872, d_model: Some(384) };
        let settings = chosen("task = \"classify\"\nfrom = \"model\"", &facts);
        assert_eq!((settings.epochs, settings.learning_rate), (Some(3.0), Some(5e-5)));
        assert_eq!((settings.schedule, settings.schedule_steps), (Schedule::Linear, Some(648)));
        assert_eq!((settings.warmup, settings.validate_every, settings.hold_out), (64, 216, 0));
        let new = chosen("task = \"tag\"", &Facts { validation: 0, d_model: None, ..facts });
        assert_eq!((new.epochs, new.learning_rate, new.hold_out), (Some(10.0), Some(6e-4), 140));
        assert_eq!((&*new.preset, new.vocab_size), ("tiny", 2500));
    }

    #[test]
    fn a_run_of_dino_learns_its_last_layer_however_short_it_is() {
        let facts = Facts { examples: 60_000, bytes: 1, characters: 0, validation: 100, d_model: None };
        let frozen = |said: &str| chosen(&format!("task = \"dino\"\n{said}"), &facts).freeze_last_layer;
        assert_eq!([frozen(""), frozen("steps = 50"), frozen("steps = 5000")], [216, 5, 216]);
        assert_eq!(frozen("steps = 50\nfreeze_last_layer = 40"), 40);
    }

    #[test]
    fn what_is_said_is_not_chosen() {
        let facts =
            Facts { examples: 100, bytes: 10_000, characters: 80, validation: 10, d_model: Some(384) };
        let said = "task = \"mlm\"\nfrom = \"model\"\nsteps = 50\nwarmup = 7\nlearning_rate = 0.1";
        let settings = chosen(said, &facts);
        assert_eq!((settings.epochs, settings.steps, settings.warmup), (None, Some(50), 7));
        assert_eq!(settings.learning_rate, Some(0.1));
    }
}
