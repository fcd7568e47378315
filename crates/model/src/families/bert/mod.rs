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
mod convert;
mod folder;
mod heads;
mod names;
mod relatives;
mod task;

pub use batch::Batch;
pub use config::{BertConfig, Problem};
pub use convert::convert;
pub(crate) use relatives::Particulars;
pub use relatives::Relative;
pub use task::Task;

use crate::builder::Builder;
use crate::error::Error;
use crate::layers::{Embedding, EmbeddingConfig, Encoder, LayerNorm, Linear, PositionKind, Positions};
use crate::names::Unused;
use crate::sequences::Sequences;
use attentive_tensor::{Activation, Parameter, Tape, Var};
use heads::Output;

/// The model.
#[derive(Debug, Clone)]
pub struct Bert {
    config: BertConfig,
    task: Task,
    tokens: Embedding,
    types: Embedding,
    positions: Positions,
    norm: LayerNorm,
    encoder: Encoder,
    pooler: Option<Linear>,
    output: Output,
    parameters: Vec<Parameter>,
    unused: Unused,
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
        let particulars = config.relative.particulars();
        let dense = match task {
            Task::SequenceClassification => particulars.text_class[0],
            _ => "pooler",
        };
        let has_pooler = builder.has(&format!("{dense}.weight"));
        let pooler = match task {
            Task::Hidden => has_pooler,
            Task::SequenceClassification => true,
            Task::MaskedLm | Task::TokenClassification | Task::QuestionAnswering => false,
        };
        let of_pooler = if has_pooler { &builder } else { &head };
        Ok(Bert {
            types: Embedding::new(&builder.at("embed_types"), &types)?,
            positions: Positions::new(
                &builder.at("embed_positions"),
                PositionKind::Learned,
                config.first_position() + config.max_positions,
                d,
            )?,
            norm: LayerNorm::new(&builder.at("embed_norm"), d, config.epsilon)?,
            encoder: Encoder::new(&builder.at("encoder"), &config.stack()?)?,
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
        let layout = batch.sequences.attending(&**tape.backend(), &batch.sequences);
        self.encoder.forward(tape, &x, &layout, None)
    }

    /// The embedded tokens, and the hidden states behind each layer, `[tokens, d_model]` each.
    pub fn hidden_states(&self, tape: &Tape, batch: &Batch) -> Vec<Var> {
        let layout = batch.sequences.attending(&**tape.backend(), &batch.sequences);
        let mut states = vec![self.embed(tape, batch)];
        for layer in self.encoder.layers() {
            states.push(layer.forward(tape, &states[states.len() - 1], &layout, None));
        }
        states
    }

    /// Tokens, types and positions, added up and normed.
    fn embed(&self, tape: &Tape, batch: &Batch) -> Var {
        let x = self.tokens.forward(tape, &batch.tokens);
        batch.sequences.check("bert", &x);
        let x = tape.add(&x, &self.types.forward(tape, &batch.types));
        let first = self.config.first_position() as i32;
        let positions: Vec<i32> = batch.sequences.positions().iter().map(|place| first + place).collect();
        let x = self.positions.forward(tape, &x, &positions);
        tape.dropout(&self.norm.forward(tape, &x), self.config.dropout)
    }

    /// `tanh(W·x + b)` of the first token of each text, `[sequences, d_model]`; none if the model has no such layer.
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
        let dropout = self.config.relative.particulars().drops_first && self.task.has_labels();
        let rows = if dropout { tape.dropout(&rows, self.config.head_dropout()) } else { rows };
        Some(pooler.forward_with(tape, &rows, Some(Activation::Tanh)))
    }

    /// The mean of the hidden states of each text, `[sequences, d_model]`.
    pub fn mean(&self, tape: &Tape, hidden: &Var, sequences: &Sequences) -> Var {
        tape.mean_rows(hidden, &tape.backend().upload_i32(&sequences.offsets()))
    }
}
