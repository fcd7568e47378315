//! BERT: an encoder that reads a text, or two, and heads that answer.
//!
//! Embeddings of tokens, of their positions and of their types are added up and normed; the encoder is the one of the paper, with
//! norms behind the residuals. A text is its first token (`[CLS]`) through a dense layer, or the mean of all.
//!
//! RoBERTa and others are the same model with other names and heads: each is a [`Relative`], and its folder beside this one has
//! its particulars.
//!
//! On disk it is a folder as transformers writes it, for each of its [`Task`]s.

mod batch;
mod config;
mod folder;
mod heads;
mod names;
mod relatives;
mod task;

pub use super::deberta::Disentangled;
pub use super::labels::Problem;
pub use batch::Batch;
pub use config::BertConfig;
pub(super) use folder::plan;
pub(crate) use relatives::Particulars;
pub use relatives::Relative;
pub use task::Task;

use crate::builder::Builder;
use crate::error::Error;
use crate::families::deberta;
use crate::layers::{Embedding, EmbeddingConfig, Encoder, LayerNorm, Linear, PositionKind, Positions};
use crate::names::Unused;
use crate::sequences::Sequences;
use attentive_tensor::{Activation, Layout, Parameter, Tape, Var};
use heads::Output;

/// The model.
#[derive(Debug, Clone)]
pub struct Bert {
    config: BertConfig,
    task: Task,
    tokens: Embedding,
    types: Option<Embedding>,
    positions: Option<Positions>,
    norm: LayerNorm,
    encoder: Stack,
    pooler: Option<Linear>,
    output: Output,
    parameters: Vec<Parameter>,
    unused: Unused,
}

/// The layers.
#[derive(Debug, Clone)]
enum Stack {
    Plain(Encoder),
    Disentangled(deberta::Encoder),
}

impl Stack {
    fn new(builder: &Builder, config: &BertConfig) -> Result<Stack, Error> {
        Ok(match config.disentangled {
            None => Stack::Plain(Encoder::new(builder, &config.stack()?)?),
            Some(own) => Stack::Disentangled(deberta::Encoder::new(builder, &config.stack()?, own)?),
        })
    }

    /// Hidden states to hidden states; `see` is shown those behind each layer.
    fn forward(&self, tape: &Tape, x: &Var, sequences: &Sequences, mut see: impl FnMut(&Var)) -> Var {
        let layout: Layout = sequences.attending(&**tape.backend(), sequences);
        match self {
            Stack::Plain(encoder) => encoder.layers().iter().fold(x.clone(), |x, layer| {
                let x = layer.forward(tape, &x, &layout, None);
                see(&x);
                x
            }),
            Stack::Disentangled(encoder) => encoder.forward(tape, x, sequences, &layout, see),
        }
    }
}

impl Bert {
    /// A model for a task with the parameters that `builder` gives it. Random matrices are drawn as BERT has it, from N(0, 0.02).
    pub fn new(builder: &Builder, config: &BertConfig, task: Task) -> Result<Bert, Error> {
        Bert::with_head(builder, builder, config, task)
    }

    /// The same with another builder for the head, and for the pooler if `builder` has none.
    fn with_head(builder: &Builder, head: &Builder, config: &BertConfig, task: Task) -> Result<Bert, Error> {
        config.check()?;
        let (builder, head) =
            (builder.with_deviation(config.deviation), head.with_deviation(config.deviation));
        let d = config.d_model;
        let types = EmbeddingConfig { vocab_size: config.token_types, padding: None, ..config.embedding() };
        let tokens = Embedding::new(&builder.at("embed_tokens"), &config.embedding())?;
        let tokens = if task == Task::MaskedLm { tokens.tied(&builder)? } else { tokens };
        let particulars = config.relative.particulars();
        let dense = match task {
            Task::SequenceClassification => particulars.text_class[0],
            _ => "pooler",
        };
        let has_pooler = builder.has(&format!("{dense}.weight"));
        let pooler = match task {
            Task::Hidden => particulars.pools_hidden && has_pooler,
            Task::SequenceClassification => true,
            Task::MaskedLm | Task::TokenClassification | Task::QuestionAnswering => false,
        };
        let positions = || {
            let rows = config.first_position() + config.max_positions;
            Positions::new(&builder.at("embed_positions"), PositionKind::Learned, rows, d)
        };
        let (has_types, has_positions) =
            (config.token_types > 0, config.disentangled.is_none_or(|own| own.absolute));
        let of_pooler = if has_pooler { &builder } else { &head };
        Ok(Bert {
            types: has_types.then(|| Embedding::new(&builder.at("embed_types"), &types)).transpose()?,
            positions: has_positions.then(positions).transpose()?,
            norm: LayerNorm::new(&builder.at("embed_norm"), d, config.epsilon)?,
            encoder: Stack::new(&builder.at("encoder"), config)?,
            pooler: pooler.then(|| Linear::new(&of_pooler.at(dense), d, d)).transpose()?,
            output: Output::new(&head, config, task, &tokens)?,
            tokens,
            config: config.clone(),
            task,
            parameters: builder.parameters(),
            unused: Unused::default(),
        })
    }

    /// What it was made from.
    pub fn config(&self) -> &BertConfig {
        &self.config
    }

    /// What it is for.
    pub fn task(&self) -> Task {
        self.task
    }

    /// Everything that is learned.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// How many numbers that is.
    pub fn parameter_count(&self) -> usize {
        self.parameters.iter().map(|parameter| parameter.value().shape().len()).sum()
    }

    /// The tensors of its folder that it did not take.
    pub fn unused(&self) -> &Unused {
        &self.unused
    }

    /// The hidden states of all tokens behind the last layer, `[tokens, d_model]`.
    pub fn encode(&self, tape: &Tape, batch: &Batch) -> Var {
        let x = self.embed(tape, batch);
        tape.watch_state(self.encoder.forward(tape, &x, &batch.sequences, |_| {}))
    }

    /// The embedded tokens, and the hidden states behind each layer, `[tokens, d_model]` each.
    pub fn hidden_states(&self, tape: &Tape, batch: &Batch) -> Vec<Var> {
        let x = self.embed(tape, batch);
        let mut states = vec![x.clone()];
        self.encoder.forward(tape, &x, &batch.sequences, |state| states.push(state.clone()));
        states
    }

    /// Tokens, types and positions, added up and normed.
    fn embed(&self, tape: &Tape, batch: &Batch) -> Var {
        let x = self.tokens.forward(tape, &batch.tokens);
        batch.sequences.check("bert", &x);
        let x =
            self.types.as_ref().map_or(x.clone(), |types| tape.add(&x, &types.forward(tape, &batch.types)));
        let first = self.config.first_position() as i32;
        let places: Vec<i32> = batch.sequences.positions().iter().map(|place| first + place).collect();
        let x = self.positions.as_ref().map_or(x.clone(), |positions| positions.forward(tape, &x, &places));
        tape.watch_state(tape.dropout(&self.norm.forward(tape, &x), self.config.dropout))
    }

    /// `tanh(W·x + b)` of the first token of each text, `[sequences, d_model]`, or another function of a DeBERTa; none if the model has no
    /// such layer.
    ///
    /// # Panics
    /// If a text has no tokens.
    pub fn pooled(&self, tape: &Tape, hidden: &Var, sequences: &Sequences) -> Option<Var> {
        let pooler = self.pooler.as_ref()?;
        let first = |rows: std::ops::Range<usize>| {
            assert!(!rows.is_empty(), "a text without tokens has no first one");
            rows.start as i32
        };
        let first: Vec<i32> = sequences.ranges().map(first).collect();
        let rows = tape.embedding(hidden, &tape.backend().upload_i32(&first), 1.0, None);
        let classifies = self.task == Task::SequenceClassification;
        let rows = if classifies { tape.dropout(&rows, self.config.first_dropout()) } else { rows };
        let activation = self.config.disentangled.map_or(Activation::Tanh, |own| own.pooler.1);
        Some(pooler.forward_with(tape, &rows, Some(activation)))
    }

    /// The mean of the hidden states of each text, `[sequences, d_model]`.
    pub fn mean(&self, tape: &Tape, hidden: &Var, sequences: &Sequences) -> Var {
        tape.mean_rows(hidden, &tape.backend().upload_i32(&sequences.offsets()))
    }
}
