//! What a person said about a run, and what is still open.

use super::{Choice, Settings, TaskKind};
use crate::Error;
use std::collections::HashSet;
use toml::Table;

/// The settings of a translator that are chosen where nothing is said about them. `choose` has the rule for each.
const TRANSLATOR: &[&str] = &[
    "hold_out",
    "vocab_size",
    "preset",
    "dropout",
    "batch_tokens",
    "schedule",
    "schedule_steps",
    "learning_rate",
    "warmup",
    "ema",
    "validate_every",
    "validate_lines",
    "early_stopping",
    "patience",
];
/// The same for a BERT.
const BERT: &[&str] = &[
    "hold_out",
    "vocab_size",
    "preset",
    "epochs",
    "schedule_steps",
    "learning_rate",
    "warmup",
    "validate_every",
];

/// The same for a ViT or a DETR.
const OF_PICTURES: &[&str] =
    &["hold_out", "preset", "epochs", "schedule_steps", "learning_rate", "warmup", "validate_every"];

/// The same for DINO.
const OF_VIEWS: &[&str] = &[
    "hold_out",
    "preset",
    "epochs",
    "schedule_steps",
    "learning_rate",
    "warmup",
    "freeze_last_layer",
    "validate_every",
];

/// Settings of which some are still open. Settings made by code have none open.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    pub(super) settings: Settings,
    pub(super) open: Vec<&'static str>,
    /// How many ranks share the batches of a step.
    pub(super) ranks: usize,
}

impl From<Settings> for Draft {
    fn from(settings: Settings) -> Draft {
        Draft { settings, open: Vec::new(), ranks: 1 }
    }
}

impl Draft {
    /// What a file says, with what else was said laid over it. What neither says is open, if there is a rule for
    /// it, and has its default otherwise.
    pub fn merge(file: Table, over: Table) -> Result<Draft, Error> {
        let said: HashSet<String> = file.keys().chain(over.keys()).cloned().collect();
        let settings = Settings::merge(file, over)?;
        let chosen = match settings.task {
            TaskKind::Translate => TRANSLATOR,
            TaskKind::ClassifyImages | TaskKind::Detect => OF_PICTURES,
            TaskKind::Dino => OF_VIEWS,
            _ => BERT,
        };
        let chosen = chosen.iter().copied().chain(["accumulate"]);
        Ok(Draft { open: chosen.filter(|name| !said.contains(*name)).collect(), settings, ranks: 1 })
    }

    /// Shares the batches of a step among so many ranks: a batch for each where nothing was said. Fewer are refused.
    pub(crate) fn share_among(&mut self, ranks: usize) -> Result<Option<Choice>, Error> {
        self.ranks = ranks;
        let choice = self.is_open("accumulate").then(|| {
            self.settings.accumulate = ranks;
            let reason = format!("a batch for each of {ranks} ranks");
            Choice { name: "accumulate", value: ranks.to_string(), reason }
        });
        let batches = self.settings.accumulate;
        if batches < ranks {
            let problem = format!("a step has {batches} batches, too few for {ranks} ranks: use fewer ranks");
            return Err(Error::setting("accumulate", problem));
        }
        Ok(choice)
    }

    /// The most batches of a step that a rank learns from.
    pub(crate) fn batches_of_a_rank(&self) -> usize {
        self.settings.accumulate.div_ceil(self.ranks)
    }

    /// The settings, with defaults for what is open.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The settings once nothing is open any more.
    pub(crate) fn into_settings(self) -> Settings {
        self.settings
    }

    /// The same draft with paths that hold wherever they are read.
    pub(crate) fn absolute(self) -> Draft {
        Draft { settings: self.settings.absolute(), ..self }
    }

    /// Whether a setting is to be chosen.
    pub(super) fn is_open(&self, name: &str) -> bool {
        self.open.contains(&name)
    }

    /// Refuses what cannot be, whatever will be chosen.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let mut settings = self.settings.clone();
        // Any number does for what will be chosen.
        if self.is_open("hold_out") && settings.validation().is_none() {
            settings.hold_out = 1;
        }
        if self.is_open("epochs") && !settings.is_limited() {
            settings.epochs = Some(1.0);
        }
        if self.is_open("schedule_steps") && settings.is_limited() {
            settings.schedule_steps = Some(1);
        }
        if self.is_open("schedule") {
            settings.last_learning_rate = 0.0;
        }
        settings.check()
    }
}
