//! The rule by which open settings are chosen, once, before the first step. Of a translator it is this; `bert` has what differs for
//! the other tasks.
//!
//! ```text
//! hold_out        2 % of the pairs, 50 to 1,000, at most a tenth; none with files to validate on
//! vocab_size      3 · √bytes, at most 32,000, at least twice the characters
//! preset          small; tiny below 10 thousand tokens; base from 20 million on with two hours or no limit of time
//!                 one size smaller as long as neither 4,000 steps nor 500 steps and 20 epochs fit into the time
//! batch_tokens    a 150th of the corpus, 2,048 to 8,192; 16,384 for base and big
//!
//! planned steps   as many as fit into --steps, --epochs and --minutes, by timed steps; of minutes at most 40 epochs or
//!                 4,000 steps, whichever is more: after them a corpus is known by heart
//! schedule        cosine to the last planned step; inverse-sqrt where no number of steps is known
//! warmup          a quarter of the planned steps, at most 4,000; ten epochs where none are planned
//! learning_rate   0.0016 · (256 / d_model)^1.2, at most 0.002
//! dropout         by how often a pair is seen: 0.3, from 12 epochs on; 0.2, from 4 on; 0.1. Large corpora
//!                 and tiny models need less
//! ema             0.999
//! validate_every  8 or 12 times in a planned run, else once an epoch
//! validate_lines  33 for each minute, 100 to 1,000, at most as many as there are
//! patience        10 validations where nothing else ends the run
//! ```
//!
//! For Multi30k (29,000 pairs) and half an hour that is nearly the recipe in `recipes/`; for millions of pairs and
//! hours it is the paper's base model. Tokens of a corpus are estimated as a quarter of its bytes.

mod bert;

use super::{Draft, Measure, PATIENCE, Settings, TaskKind, TokenizerKind};
use crate::Error;
use crate::schedule::Schedule;
use std::fmt;

/// What is known about a corpus before it has tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// All pairs or other examples, those that will be held out included.
    pub examples: usize,
    /// Bytes of all files.
    pub bytes: u64,
    /// Different characters.
    pub characters: usize,
    /// Examples in files to validate on.
    pub validation: usize,
    /// The width of the model to go on from, if there is one.
    pub d_model: Option<usize>,
}

/// How fast steps are made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace {
    /// Seconds of a step, where the time matters.
    pub seconds: Option<f64>,
    /// Steps of an epoch.
    pub epoch: f64,
}

/// A setting that was chosen, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The setting.
    pub name: &'static str,
    /// What was chosen.
    pub value: String,
    /// Why.
    pub reason: String,
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Choice { name, value, reason } = self;
        write!(f, "{name} {value}: {reason}")
    }
}

/// The share of the time that planned steps may take as timed; the rest is for validations and checkpoints. A machine that slows
/// down costs the last steps alone, in which the learning rate is near zero.
const SHARE: f64 = 0.95;
/// A model of which fewer steps or epochs fit into the time is too large: a smaller one learns more.
const FEWEST: f64 = 500.0;
const FEWEST_EPOCHS: f64 = 20.0;
/// Epochs, and steps, after which more time brings nothing: the corpus is known by heart then.
const ENOUGH_EPOCHS: f64 = 40.0;
const ENOUGH_STEPS: f64 = 4000.0;
/// Below so many minutes a run validates less often.
const SHORT: f64 = 10.0;
/// The highest learning rate of a translator that was trained before.
const FURTHER: f64 = 1e-4;
/// Minutes from which on a base model has enough time.
const LONG: f64 = 120.0;

impl Facts {
    /// Roughly.
    fn tokens(&self) -> u64 {
        self.bytes / 4
    }

    /// Pairs that are held out.
    fn held_out(&self) -> usize {
        if self.validation > 0 { 0 } else { (self.examples / 50).clamp(50, 1000).min(self.examples / 10) }
    }

    fn vocabulary(&self) -> usize {
        let size = 3.0 * (self.bytes as f64).sqrt();
        let step = if size > 1000.0 { 500.0 } else { 50.0 };
        let size = ((size / step).round() * step) as usize;
        size.min(32_000).max(2 * self.characters + 50)
    }
}

impl Draft {
    /// Chooses what follows from the size of the corpus: it is needed to make a tokenizer and to time a step.
    pub(crate) fn choose_sizes(&mut self, facts: &Facts) -> Vec<Choice> {
        let mut choices = Choices::default();
        let (all, tokens) = (facts.examples, facts.tokens());
        let corpus = format!("the corpus has about {} tokens", rough(tokens));
        if self.is_open("hold_out") && facts.validation == 0 {
            let (held, examples) = (facts.held_out(), self.settings.task.examples());
            self.settings.hold_out = held;
            let reason = match held {
                0 => format!("{all} {examples} are too few to hold any out for validation"),
                _ => format!(
                    "there are no validation files, so this many of {all} {examples} are held out for validation"
                ),
            };
            choices.add("hold_out", held, reason);
        }
        if self.chooses_vocabulary() {
            let least = if self.settings.task == TaskKind::Lm { bert::FEWEST_BYTE_PAIRS } else { 0 };
            self.settings.vocab_size = facts.vocabulary().max(least);
            choices.add("vocab_size", self.settings.vocab_size, corpus.clone());
        }
        if self.is_open("preset") && self.settings.from.is_none() {
            let (preset, reason) = match self.settings.task {
                TaskKind::Translate => preset(tokens, self.settings.minutes, &corpus),
                TaskKind::Detect => ("small", "for pictures of some hundred pixels".to_owned()),
                _ => bert::preset(tokens, &corpus),
            };
            self.settings.preset = preset.to_owned();
            choices.add("preset", preset, reason);
        }
        self.choose_batch(facts, &mut choices);
        choices.0
    }

    fn choose_batch(&mut self, facts: &Facts, choices: &mut Choices) {
        if self.is_open("batch_tokens") {
            let is_large = ["base", "big"].contains(&&*self.settings.preset);
            let wanted = ((facts.tokens() / 150 + 512) / 1024 * 1024).clamp(2048, 8192) as usize;
            // A pair of the longest sentences must fit.
            let batch = if is_large { 16_384 } else { wanted }.max(2 * self.settings.longest);
            self.settings.batch_tokens = batch;
            let steps = rough(facts.tokens() / batch as u64 + 1);
            choices.add("batch_tokens", batch, format!("an epoch has about {steps} batches"));
        }
    }

    /// Whether timed steps may show that the model must be smaller: until then its sizes are not certain.
    pub(crate) fn may_shrink(&self) -> bool {
        self.smaller().is_some()
    }

    /// The next smaller model, where time may ask for it.
    fn smaller(&self) -> Option<&'static str> {
        let is_fixed = self.settings.task != TaskKind::Translate || self.settings.from.is_some();
        self.settings.minutes.filter(|_| self.is_open("preset") && !is_fixed)?;
        match &*self.settings.preset {
            "base" => Some("small"),
            "small" => Some("tiny"),
            _ => None,
        }
    }

    /// Takes the next smaller model if too few steps of this one fit into the time. None if it stays.
    pub(crate) fn shrink(&mut self, facts: &Facts, pace: &Pace) -> Option<Vec<Choice>> {
        let smaller = self.smaller()?;
        let (minutes, seconds) = self.settings.minutes.zip(pace.seconds)?;
        let fit = SHARE * 60.0 * minutes / seconds;
        let needed = (FEWEST_EPOCHS * pace.epoch).clamp(FEWEST, ENOUGH_STEPS);
        // Who wants fewer gets them.
        let wanted =
            [self.settings.steps.map(|steps| steps as f64), self.settings.epochs.map(|n| n * pace.epoch)];
        if fit >= wanted.into_iter().flatten().fold(needed, f64::min) {
            return None;
        }
        let mut choices = Choices::default();
        let (model, epochs) = (&self.settings.preset, fit / pace.epoch);
        let reason =
            format!("only {fit:.0} steps ({epochs:.1} epochs) of the {model} model fit into the time");
        self.settings.preset = smaller.to_owned();
        choices.add("preset", smaller, reason);
        if smaller == "small" {
            self.choose_batch(facts, &mut choices);
        }
        Some(choices.0)
    }

    /// Whether the size of the vocabulary is to be chosen.
    pub(crate) fn chooses_vocabulary(&self) -> bool {
        let has_one = self.settings.tokenizer.is_some() || self.settings.from.is_some();
        self.is_open("vocab_size") && !has_one && self.settings.tokenizer_kind != TokenizerKind::Characters
    }

    /// Whether choices are left that need to know how fast steps are made.
    pub(crate) fn needs_pace(&self) -> bool {
        let asks =
            ["dropout", "schedule", "learning_rate", "warmup", "ema", "validate_every", "freeze_last_layer"];
        asks.iter().any(|name| self.is_open(name)) || self.plans()
    }

    /// Whether the schedule leads to a last step that is not known yet.
    fn plans(&self) -> bool {
        let Settings { schedule, epochs, minutes, .. } = self.settings;
        let may_need = self.is_open("schedule") || schedule.needs_steps();
        may_need && self.is_open("schedule_steps") && (epochs.is_some() || minutes.is_some())
    }

    /// Chooses the course of the run, and refuses what came of it if it cannot be.
    pub(crate) fn choose_course(&mut self, facts: &Facts, pace: Option<&Pace>) -> Result<Vec<Choice>, Error> {
        if self.settings.task != TaskKind::Translate {
            return self.choose_course_of_bert(facts, pace);
        }
        let mut choices = Choices::default();
        if let Some(pace) = pace {
            let planned = self.settings.planned(pace);
            self.choose_schedule(planned, &mut choices);
            self.choose_rate(planned, facts, pace, &mut choices)?;
            self.choose_dropout(planned, facts, pace, &mut choices);
            self.choose_validations(planned, pace, &mut choices);
        }
        self.choose_measure(facts, &mut choices);
        self.settings.check()?;
        Ok(choices.0)
    }

    fn choose_schedule(&mut self, planned: Option<u64>, choices: &mut Choices) {
        if self.is_open("schedule") {
            let (schedule, reason) = match planned {
                Some(steps) => {
                    (Schedule::Cosine, format!("the learning rate falls to zero over {steps} steps"))
                }
                None => (Schedule::InverseSqrt, "there is no limit, so the last step is unknown".to_owned()),
            };
            self.settings.schedule = schedule;
            choices.add("schedule", schedule.name(), reason);
        }
        if self.plans() && self.settings.schedule.needs_steps() {
            self.settings.schedule_steps = planned;
            let limit = if self.settings.minutes.is_some() { "time" } else { "epochs" };
            let reason = format!("this many steps fit into the {limit} given, or are enough for this corpus");
            choices.add("schedule_steps", planned.unwrap_or_default(), reason);
        }
    }

    fn choose_rate(
        &mut self,
        planned: Option<u64>,
        facts: &Facts,
        pace: &Pace,
        choices: &mut Choices,
    ) -> Result<(), Error> {
        if self.is_open("warmup") {
            let (warmup, reason) = match planned {
                Some(steps) => {
                    ((steps / 4).clamp(1, 4000), format!("a quarter of {steps} steps, at most 4000"))
                }
                None => (
                    (10.0 * pace.epoch).clamp(200.0, 4000.0) as u64,
                    "ten epochs, from 200 to 4000 steps".to_owned(),
                ),
            };
            self.settings.warmup = warmup;
            choices.add("warmup", warmup, reason);
        }
        if self.is_open("learning_rate") {
            let d_model = match facts.d_model {
                Some(d_model) => d_model,
                None => self.settings.model(self.settings.vocab_size)?.d_model,
            };
            let is_trained = self.settings.from.is_some();
            let peak = if is_trained { FURTHER } else { peak(d_model) };
            let rate = match self.settings.schedule {
                Schedule::Paper => {
                    // The factor with which the paper's curve has this peak, if it would be higher.
                    let paper = (d_model as f64 * self.settings.warmup.max(1) as f64).powf(-0.5);
                    two_digits((peak / paper).min(1.0))
                }
                _ => peak,
            };
            self.settings.learning_rate = Some(rate);
            let reason = if is_trained {
                "for a trained model".to_owned()
            } else {
                format!("for a model of width {d_model}")
            };
            choices.add("learning_rate", rate, reason);
        }
        if self.is_open("ema") {
            self.settings.ema = 0.999;
            choices.add("ema", 0.999, "averaged weights translate better".to_owned());
        }
        Ok(())
    }

    fn choose_dropout(&mut self, planned: Option<u64>, facts: &Facts, pace: &Pace, choices: &mut Choices) {
        if !self.is_open("dropout") || self.settings.from.is_some() {
            return;
        }
        let by_size = match facts.tokens() {
            0..5_000_000 => 0.3,
            5_000_000..20_000_000 => 0.2,
            _ => 0.1,
        };
        let epochs = planned.map(|steps| steps as f64 / pace.epoch);
        let (by_epochs, reason) = match epochs {
            None => (0.3, format!("the corpus has about {} tokens", rough(facts.tokens()))),
            Some(epochs) => {
                let dropout = if epochs < 4.0 {
                    0.1
                } else if epochs < 12.0 {
                    0.2
                } else {
                    0.3
                };
                (dropout, format!("each pair is seen about {epochs:.1} times"))
            }
        };
        // A tiny model has nothing to spare.
        let by_model = if self.settings.preset == "tiny" { 0.2 } else { 0.3 };
        let dropout = f64::min(by_epochs, by_size).min(by_model);
        self.settings.dropout = Some(dropout);
        choices.add("dropout", dropout, reason);
    }

    fn choose_validations(&mut self, planned: Option<u64>, pace: &Pace, choices: &mut Choices) {
        let is_short = self.settings.minutes.is_some_and(|minutes| minutes < SHORT);
        if self.is_open("validate_every") {
            let (every, reason) = match planned {
                Some(steps) => {
                    let times = if is_short { 8 } else { 12 };
                    (steps.div_ceil(times).max(1), format!("at most {times} validations in {steps} steps"))
                }
                None => {
                    (pace.epoch.clamp(100.0, 2000.0) as u64, "one epoch, from 100 to 2000 steps".to_owned())
                }
            };
            self.settings.validate_every = every;
            choices.add("validate_every", every, reason);
        }
        if self.is_open("patience") && !self.settings.is_limited() && self.settings.validates() {
            self.settings.patience = Some(PATIENCE);
            let reason = "there is no limit, so the run ends when validation stops improving".to_owned();
            choices.add("patience", PATIENCE, reason);
        }
    }

    /// What is translated to judge a model, and what makes one better.
    fn choose_measure(&mut self, facts: &Facts, choices: &mut Choices) {
        if !self.settings.validates() {
            return;
        }
        let there = facts.validation.max(self.settings.hold_out).max(1);
        if self.is_open("validate_lines") {
            let minutes = self.settings.minutes.unwrap_or(f64::INFINITY);
            let lines = (33.0 * minutes).clamp(100.0, 1000.0) as usize;
            let reason = if lines < there {
                format!("this many of {there} validation pairs keep validation short")
            } else {
                "there are no more validation pairs".to_owned()
            };
            self.settings.validate_lines = lines.min(there);
            choices.add("validate_lines", self.settings.validate_lines, reason);
        }
        if self.is_open("early_stopping") && self.settings.validate_lines > 0 {
            let pairs = there.min(self.settings.validate_lines);
            let (measure, reason) = match pairs {
                500.. => (Measure::Bleu, format!("{pairs} translations are enough for BLEU")),
                _ => (Measure::Chrf, format!("{pairs} translations are few: chrF varies less than BLEU")),
            };
            self.settings.early_stopping = measure;
            choices.add("early_stopping", measure.name(), reason);
        }
    }
}

impl Settings {
    /// The steps that fit into all limits, if there is one.
    fn planned(&self, pace: &Pace) -> Option<u64> {
        let by_epochs = self.epochs.map(|epochs| epochs * pace.epoch);
        let enough = (ENOUGH_EPOCHS * pace.epoch).max(ENOUGH_STEPS);
        let by_time =
            self.minutes.zip(pace.seconds).map(|(minutes, step)| enough.min(SHARE * 60.0 * minutes / step));
        let steps = [by_epochs, by_time, self.steps.map(|steps| steps as f64)];
        let fewest = steps.into_iter().flatten().reduce(f64::min)?;
        Some(fewest.ceil().clamp(1.0, u32::MAX.into()) as u64)
    }

    /// Where the schedule ends if a run has come so far and goes on with other limits than `then`: none if that
    /// changes nothing. The pace is that of the steps that were made.
    pub(crate) fn prolonged(&self, then: &Settings, step: u64, epoch: f64, seconds: f64) -> Option<u64> {
        let end = then.schedule_end().filter(|_| self.schedule_steps == then.schedule_steps)?;
        let limits = |settings: &Settings| (settings.steps, settings.epochs, settings.minutes);
        if limits(self) == limits(then) || step == 0 || epoch <= 0.0 || seconds <= 0.0 {
            return None;
        }
        let by_epochs = self.epochs.map(|epochs| (epochs - epoch) * step as f64 / epoch);
        // This pace has validations and checkpoints in it.
        let by_time = self.minutes.map(|minutes| 0.97 * (60.0 * minutes - seconds) * step as f64 / seconds);
        let by_steps = self.steps.map(|steps| steps as f64 - step as f64);
        let more = [by_epochs, by_time, by_steps].into_iter().flatten().reduce(f64::min)?;
        let new = step + more.max(0.0) as u64;
        (new > end).then_some(new)
    }
}

/// The sizes of a model for so many tokens.
fn preset(tokens: u64, minutes: Option<f64>, corpus: &str) -> (&'static str, String) {
    const LARGE: u64 = 20_000_000;
    match tokens {
        ..10_000 => ("tiny", corpus.to_owned()),
        LARGE.. if minutes.is_none_or(|minutes| minutes >= LONG) => ("base", corpus.to_owned()),
        LARGE.. => ("small", format!("{corpus}, but a larger model needs {LONG} minutes or more")),
        _ => ("small", corpus.to_owned()),
    }
}

/// The highest learning rate of a model of this width.
fn peak(d_model: usize) -> f64 {
    two_digits((0.0016 * (256.0 / d_model as f64).powf(1.2)).min(0.002))
}

/// A number with its first two digits, as a person would write it down.
fn two_digits(number: f64) -> f64 {
    format!("{number:.1e}").parse().expect("a number was just written")
}

/// A number of tokens as people say it.
fn rough(number: u64) -> String {
    match number {
        0..10_000 => number.to_string(),
        10_000..1_000_000 => format!("{} thousand", number / 1000),
        _ => format!("{:.1} million", number as f64 / 1e6),
    }
}

/// What was chosen so far.
#[derive(Default)]
struct Choices(Vec<Choice>);

impl Choices {
    fn add(&mut self, name: &'static str, value: impl ToString, reason: String) {
        self.0.push(Choice { name, value: value.to_string(), reason });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toml::Table;

    /// English and German captions: so many bytes for each pair.
    fn captions(pairs: usize) -> Facts {
        Facts { examples: pairs, bytes: 135 * pairs as u64, characters: 90, validation: 0, d_model: None }
    }

    /// Settings chosen for a corpus when this was said, on a machine that learns from so many tokens a second.
    fn chosen(said: &str, facts: &Facts, speed: f64) -> (Settings, Vec<Choice>) {
        let said: Table = format!("source = [\"a\"]\ntarget = [\"b\"]\n{said}").parse().unwrap();
        let mut draft = Draft::merge(said, Table::new()).unwrap();
        draft.check().unwrap();
        let mut choices = draft.choose_sizes(facts);
        let batch = draft.settings().batch_tokens as f64;
        let pace = Pace {
            seconds: draft.settings().minutes.map(|_| batch / speed),
            epoch: facts.tokens() as f64 / batch,
        };
        let pace = draft.needs_pace().then_some(pace);
        choices.extend(draft.choose_course(facts, pace.as_ref()).unwrap());
        (draft.into_settings(), choices)
    }

    #[test]
    fn a_small_corpus_and_half_an_hour_get_nearly_the_recipe() {
        let (settings, _) = chosen("minutes = 30", &captions(29_000), 30_000.0);
        assert_eq!((settings.preset.as_str(), settings.vocab_size, settings.hold_out), ("small", 6000, 580));
        assert_eq!((settings.batch_tokens, settings.dropout, settings.ema), (6144, Some(0.3), 0.999));
        assert_eq!((settings.schedule, settings.learning_rate), (Schedule::Cosine, Some(0.0016)));
        let steps = settings.schedule_steps.unwrap();
        assert!((6000..7000).contains(&steps) && settings.warmup == steps / 4, "{settings:?}");
        assert_eq!((settings.validate_lines, settings.early_stopping), (580, Measure::Bleu));
        assert_eq!((settings.validate_every, settings.patience), (steps.div_ceil(12), None));
    }

    #[test]
    fn three_thousand_pairs_and_three_minutes_get_a_short_warm_up_and_many_epochs() {
        let (settings, _) = chosen("minutes = 3", &captions(3000), 30_000.0);
        assert_eq!((settings.preset.as_str(), settings.vocab_size), ("small", 2000));
        assert_eq!((settings.batch_tokens, settings.dropout, settings.hold_out), (2048, Some(0.3), 60));
        let steps = settings.schedule_steps.unwrap();
        assert!((2000..2600).contains(&steps) && settings.warmup == steps / 4, "{settings:?}");
        assert_eq!(settings.early_stopping, Measure::Chrf);
    }

    #[test]
    fn no_more_lines_are_validated_than_there_are() {
        let lines = |said: &str, facts: &Facts| {
            let (settings, choices) = chosen(said, facts, 30_000.0);
            let choice = choices.into_iter().find(|choice| choice.name == "validate_lines").unwrap();
            assert_eq!(choice.value, settings.validate_lines.to_string());
            (settings.validate_lines, choice.reason)
        };
        let few = "there are no more validation pairs".to_owned();
        assert_eq!(lines("minutes = 3", &captions(3000)), (60, few.clone()));
        let files = "minutes = 3\nvalid_source = [\"c\"]\nvalid_target = [\"d\"]";
        assert_eq!(lines(files, &Facts { validation: 100, ..captions(3000) }), (100, few));
        let many = "this many of 1000 validation pairs keep validation short".to_owned();
        assert_eq!(lines("minutes = 5", &captions(900_000)), (165, many));
    }

    #[test]
    fn millions_of_pairs_and_hours_get_the_papers_base_model() {
        let (settings, _) = chosen("minutes = 600", &captions(4_500_000), 10_000.0);
        assert_eq!((settings.preset.as_str(), settings.vocab_size), ("base", 32_000));
        assert_eq!((settings.dropout, settings.learning_rate), (Some(0.1), Some(0.0007)));
        assert_eq!((settings.batch_tokens, settings.warmup, settings.hold_out), (16_384, 4000, 1000));
        let (hasty, _) = chosen("minutes = 20", &captions(4_500_000), 10_000.0);
        assert_eq!((hasty.preset.as_str(), hasty.dropout), ("small", Some(0.1)));
    }

    #[test]
    fn a_model_of_which_too_few_steps_fit_into_the_time_becomes_a_smaller_one() {
        let said: Table = "source = [\"a\"]\ntarget = [\"b\"]\nminutes = 120".parse().unwrap();
        let draft = Draft::merge(said.clone(), Table::new()).unwrap();
        let facts = captions(4_500_000);
        let pace = |seconds| Pace { seconds: Some(seconds), epoch: 9000.0 };
        let (mut slow, mut fast) = (draft.clone(), draft.clone());
        slow.choose_sizes(&facts);
        fast.choose_sizes(&facts);
        assert_eq!(fast.shrink(&facts, &pace(1.5)), None);
        let names = |choices: Option<Vec<Choice>>| -> Vec<String> {
            choices.unwrap().iter().map(|choice| format!("{} {}", choice.name, choice.value)).collect()
        };
        assert_eq!(names(slow.shrink(&facts, &pace(60.0))), ["preset small", "batch_tokens 8192"]);
        assert_eq!(names(slow.shrink(&facts, &pace(30.0))), ["preset tiny"]);
        assert_eq!(slow.shrink(&facts, &pace(30.0)), None);
        let over = "preset = \"base\"".parse().unwrap();
        assert_eq!(Draft::merge(said, over).unwrap().shrink(&facts, &pace(60.0)), None);
    }

    /// In 30 minutes on two old cores, eight epochs of the small model come to BLEU 21 on Multi30k.
    #[test]
    fn a_model_that_would_see_each_pair_a_few_times_becomes_a_smaller_one() {
        let said: Table = "source = [\"a\"]\ntarget = [\"b\"]\nminutes = 30".parse().unwrap();
        let facts = captions(29_000);
        let shrinks = |more: &str, seconds| {
            let mut draft = Draft::merge(said.clone(), more.parse().unwrap()).unwrap();
            draft.choose_sizes(&facts);
            draft.shrink(&facts, &Pace { seconds: Some(seconds), epoch: 150.0 }).is_some()
        };
        assert_eq!([0.2, 0.5, 1.3].map(|seconds| shrinks("", seconds)), [false, false, true]);
        assert_eq!(["epochs = 5.0", "steps = 900"].map(|more| shrinks(more, 1.3)), [false; 2]);
    }

    #[test]
    fn without_a_limit_the_run_validates_each_epoch_and_stops_early() {
        let (settings, _) = chosen("", &captions(29_000), 30_000.0);
        assert_eq!((settings.schedule, settings.schedule_steps), (Schedule::InverseSqrt, None));
        assert_eq!((settings.patience, settings.dropout), (Some(10), Some(0.3)));
        assert_eq!((settings.validate_every, settings.warmup), (159, 1593));
    }

    #[test]
    fn a_handful_of_pairs_can_be_learned_too() {
        let facts = Facts { examples: 4, bytes: 100, characters: 20, validation: 0, d_model: None };
        let (settings, _) = chosen("steps = 10", &facts, 30_000.0);
        assert_eq!((settings.preset.as_str(), settings.vocab_size, settings.hold_out), ("tiny", 90, 0));
        assert_eq!((settings.warmup, settings.validate_every), (2, 1));
        assert_eq!(settings.early_stopping, Measure::Loss);
    }

    #[test]
    fn many_characters_make_a_larger_vocabulary() {
        let facts = Facts { characters: 3000, ..captions(3000) };
        assert_eq!(chosen("steps = 10", &facts, 30_000.0).0.vocab_size, 6050);
    }

    #[test]
    fn what_was_said_is_never_chosen_and_each_choice_has_a_reason() {
        let all = "hold_out = 7\nvocab_size = 111\npreset = \"tiny\"\ndropout = 0.25\nbatch_tokens = 999\n\
                   schedule = \"linear\"\nschedule_steps = 77\nlearning_rate = 0.5\nwarmup = 3\nema = 0.5\n\
                   validate_every = 9\nvalidate_lines = 8\nearly_stopping = \"loss\"\npatience = 5\nminutes = 3\n";
        let said: Vec<&str> = all.lines().collect();
        for line in &said {
            let name = line.split(' ').next().unwrap();
            let limited = if name == "minutes" { String::new() } else { "minutes = 3\n".to_owned() };
            let (settings, choices) = chosen(&format!("{limited}{line}"), &captions(3000), 30_000.0);
            assert!(
                choices.iter().all(|choice| choice.name != name && !choice.reason.is_empty()),
                "{choices:?}"
            );
            let value = super::super::file::values(&settings)[name].to_string();
            assert!(line.ends_with(value.trim_end_matches(".0")), "{name} is {value}");
        }
        let (_, choices) = chosen(all, &captions(3000), 30_000.0);
        assert_eq!(choices, []);
    }

    #[test]
    fn a_run_that_goes_on_for_longer_has_its_schedule_prolonged() {
        let then = Settings {
            minutes: Some(3.0),
            schedule: Schedule::Cosine,
            schedule_steps: Some(1000),
            ..Settings::default()
        };
        let longer = Settings { minutes: Some(30.0), ..then.clone() };
        // 1,000 steps took 160 s, and 1,640 s are left.
        assert_eq!(longer.prolonged(&then, 1000, 20.0, 160.0), Some(1000 + 9942));
        assert_eq!(then.prolonged(&then, 1000, 20.0, 160.0), None);
        let shorter = Settings { minutes: Some(1.0), ..then.clone() };
        assert_eq!(shorter.prolonged(&then, 1000, 20.0, 160.0), None);
        let own = Settings { schedule_steps: Some(2000), ..longer };
        assert_eq!(own.prolonged(&then, 1000, 20.0, 160.0), None);
        let planned_by_steps = Settings { schedule_steps: None, steps: Some(1000), ..then.clone() };
        let more = Settings { steps: Some(2000), ..planned_by_steps.clone() };
        assert_eq!(more.prolonged(&planned_by_steps, 1000, 20.0, 160.0), None);
    }
}
