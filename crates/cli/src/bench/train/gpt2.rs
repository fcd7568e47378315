//! A step of GPT-2: it learns to predict the next token.

use super::{Lesson, SEED, Sizes, Stack, Train, random_tokens};
use crate::error::Error;
use attentive_model::Builder;
use attentive_model::families::gpt2::{Batch, Gpt2, Gpt2Config};
use attentive_tensor::{Backend, Parameter, Tape, Var};
use std::sync::Arc;

/// A GPT-2 and texts of random tokens.
pub(super) struct NextToken {
    model: Gpt2,
    batch: Batch,
}

impl NextToken {
    pub(super) fn new(train: &Train, sizes: Sizes, backend: &Arc<dyn Backend>) -> Result<NextToken, Error> {
        let config = config(train, sizes)?;
        let tables = config.vocab_size + config.max_positions;
        Stack { d_model: config.d_model, d_ff: config.d_ff, layers: config.layers, tables }
            .check_memory(sizes)?;
        let text = |i| random_tokens(i, sizes.source, 0, config.vocab_size);
        let texts: Vec<Vec<i32>> = (0..sizes.batch).map(text).collect();
        Ok(NextToken {
            model: Gpt2::new(&Builder::random(backend, SEED), &config)?,
            batch: Batch::new(&**backend, &texts),
        })
    }
}

impl Lesson for NextToken {
    fn parameters(&self) -> &[Parameter] {
        self.model.parameters()
    }

    fn tokens(&self) -> usize {
        self.batch.sequences.tokens()
    }

    fn loss(&self, tape: &Tape) -> Result<Var, Error> {
        Ok(self.model.loss(tape, &self.batch, 0.0))
    }
}

fn config(train: &Train, sizes: Sizes) -> Result<Gpt2Config, Error> {
    // The last token of a text is predicted and not read, so one token would leave nothing to do.
    if sizes.source < 2 {
        return Err(Error::Flag { option: "source", problem: "must be at least 2 for gpt2".to_owned() });
    }
    let (name, vocab, _) = train.preset();
    let preset = Gpt2Config::preset(name, train.vocab.unwrap_or(vocab))?;
    let d_model = train.d_model.unwrap_or(preset.d_model);
    let config = Gpt2Config {
        d_model,
        h: train.heads_of(d_model, preset.h),
        d_ff: train.d_ff.unwrap_or(4 * d_model),
        layers: train.layers.unwrap_or(preset.layers),
        dropout: train.dropout,
        embedding_dropout: train.dropout,
        attention_dropout: train.dropout,
        max_positions: preset.max_positions.max(sizes.source),
        ..preset
    };
    config.check()?;
    Ok(config)
}
