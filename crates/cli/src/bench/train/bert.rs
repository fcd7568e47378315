//! A step of BERT, or of a family that shares its encoder: it learns to tell two classes of texts apart.

use super::{Family, Lesson, SEED, Sizes, Stack, Train, random_tokens};
use crate::error::Error;
use attentive_model::Builder;
use attentive_model::families::bert::{Batch, Bert, BertConfig, Relative, Task};
use attentive_tensor::{Backend, Parameter, Tape, Var};
use std::sync::Arc;

/// Positions that every model has, and more where texts are longer.
const POSITIONS: usize = 512;
/// The first token that is not special.
const FIRST: usize = 5;

/// A BERT and texts of random tokens.
pub(super) struct Classification {
    model: Bert,
    batch: Batch,
    labels: Vec<i32>,
}

impl Classification {
    pub(super) fn new(
        train: &Train,
        sizes: Sizes,
        backend: &Arc<dyn Backend>,
    ) -> Result<Classification, Error> {
        let config = config(train, sizes)?;
        let tables = config.vocab_size + config.max_positions;
        Stack { d_model: config.d_model, d_ff: config.d_ff, layers: config.layers, tables }
            .check_memory(sizes)?;
        let text = |i| random_tokens(i, sizes.source, FIRST, config.vocab_size);
        let texts: Vec<Vec<i32>> = (0..sizes.batch).map(text).collect();
        Ok(Classification {
            model: Bert::new(&Builder::random(backend, SEED), &config, Task::SequenceClassification)?,
            batch: Batch::new(&**backend, &texts),
            labels: (0..sizes.batch).map(|i| (i % 2) as i32).collect(),
        })
    }
}

impl Lesson for Classification {
    fn parameters(&self) -> &[Parameter] {
        self.model.parameters()
    }

    fn tokens(&self) -> usize {
        self.batch.sequences.tokens()
    }

    fn loss(&self, tape: &Tape) -> Result<Var, Error> {
        Ok(self.model.loss(tape, &self.batch, &self.labels)?)
    }
}

fn config(train: &Train, sizes: Sizes) -> Result<BertConfig, Error> {
    let (name, vocab, _) = train.preset();
    let vocab_size = train.vocab.unwrap_or(vocab);
    if vocab_size <= FIRST {
        let problem = format!("must be above {FIRST}, not {vocab_size}");
        return Err(Error::Flag { option: "vocab", problem });
    }
    let relative = match train.family {
        Family::Roberta => Relative::Roberta,
        Family::Deberta => Relative::DebertaV2,
        _ => Relative::Bert,
    };
    let preset = BertConfig::preset_of(relative, name, vocab_size)?;
    let d_model = train.d_model.unwrap_or(preset.d_model);
    let config = BertConfig {
        d_model,
        h: train.heads_of(d_model, preset.h),
        d_ff: train.d_ff.unwrap_or(4 * d_model),
        layers: train.layers.unwrap_or(preset.layers),
        dropout: train.dropout,
        attention_dropout: train.dropout,
        max_positions: POSITIONS.max(sizes.source),
        ..preset
    };
    config.check()?;
    Ok(config)
}
