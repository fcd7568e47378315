//! ViT: an encoder that reads a picture as a sequence of patches, and its heads (Dosovitskiy et al. 2020).
//!
//! A linear projection makes a token of each patch. A class token precedes the patches; its hidden state after the last layer stands for
//! the picture. Norms precede the sublayers (pre-norm).
//!
//! DeiT and DINOv2 share the encoder and have some further parts: each is a [`Relative`]. The first DINO is a ViT.
//!
//! A model is stored as a folder in the format of transformers, for each of its [`Task`]s.

mod batch;
mod config;
mod dino;
mod folder;
mod heads;
mod names;
mod relatives;
mod task;
mod tokens;

pub use super::labels::Problem;
pub use batch::{Batch, Picture};
pub use config::VitConfig;
pub use dino::{Dino, dino_loss};
pub(super) use folder::plan;
pub use relatives::Relative;
pub use task::Task;

use crate::builder::Builder;
use crate::error::Error;
use crate::layers::{Encoder, Linear, Norm};
use crate::names::Unused;
use attentive_tensor::{Parameter, Tape, Var};
use heads::Output;
use tokens::Tokens;

/// The model.
#[derive(Debug, Clone)]
pub struct Vit {
    config: VitConfig,
    task: Task,
    tokens: Tokens,
    encoder: Encoder,
    norm: Norm,
    pooler: Option<Linear>,
    output: Output,
    parameters: Vec<Parameter>,
    unused: Unused,
}

impl Vit {
    /// A model for a task with the parameters that `builder` gives it. Random matrices are drawn from N(0, 0.02).
    pub fn new(builder: &Builder, config: &VitConfig, task: Task) -> Result<Vit, Error> {
        Vit::with_head(builder, builder, config, task)
    }

    /// A model for hidden states, without a head and without a pooler.
    pub fn backbone(builder: &Builder, config: &VitConfig) -> Result<Vit, Error> {
        Vit::made_of(builder, builder, config, Task::Hidden, false)
    }

    /// [`Vit::new`] with another builder for the head.
    fn with_head(builder: &Builder, head: &Builder, config: &VitConfig, task: Task) -> Result<Vit, Error> {
        let may_pool = task == Task::Hidden && !config.relative.is_dinov2();
        Vit::made_of(builder, head, config, task, may_pool && builder.has("pooler.weight"))
    }

    fn made_of(
        builder: &Builder,
        head: &Builder,
        config: &VitConfig,
        task: Task,
        has_pooler: bool,
    ) -> Result<Vit, Error> {
        config.check()?;
        if config.relative.architecture(task).is_none() {
            let problem = format!("{} has no such head", config.relative.title());
            return Err(Error::config("architectures", problem));
        }
        let (builder, head) =
            (builder.with_deviation(config.deviation), head.with_deviation(config.deviation));
        let (d, stack) = (config.d_model, config.stack()?);
        let norm = stack.final_norm(&builder)?;
        Ok(Vit {
            tokens: Tokens::new(&builder, config)?,
            encoder: Encoder::new(&builder.at("encoder"), &stack)?,
            norm: norm.expect("norms before sublayers need one behind the last"),
            pooler: has_pooler.then(|| Linear::new(&builder.at("pooler"), d, config.pooler.0)).transpose()?,
            output: Output::new(&head, config, task)?,
            config: config.clone(),
            task,
            parameters: builder.parameters(),
            unused: Unused::default(),
        })
    }

    /// What it was made from.
    pub fn config(&self) -> &VitConfig {
        &self.config
    }

    /// The task, which decides about the head.
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

    /// The hidden states of all tokens after the last norm, `[tokens, d_model]`.
    pub fn encode(&self, tape: &Tape, batch: &Batch) -> Var {
        let last = self.layers(tape, batch, |_| {});
        self.norm.forward(tape, &last)
    }

    /// The embedded tokens, and the hidden states after each layer, before the last norm: `[tokens, d_model]` each.
    pub fn hidden_states(&self, tape: &Tape, batch: &Batch) -> Vec<Var> {
        let mut states = Vec::new();
        self.layers(tape, batch, |state| states.push(state.clone()));
        states
    }

    /// The output of the last layer. `see` gets the embedded tokens, and the output of each layer.
    fn layers(&self, tape: &Tape, batch: &Batch, mut see: impl FnMut(&Var)) -> Var {
        let x = tape.dropout(&self.tokens.forward(tape, batch), self.config.dropout);
        see(&x);
        let layout = batch.sequences.attending(&**tape.backend(), &batch.sequences);
        self.encoder.layers().iter().fold(x, |x, layer| {
            let x = layer.forward(tape, &x, &layout, None);
            see(&x);
            x
        })
    }

    /// The hidden states of one of the tokens before the patches, `[pictures, d_model]`; 0 is the class token.
    fn token(&self, tape: &Tape, hidden: &Var, batch: &Batch, token: usize) -> Var {
        let rows: Vec<i32> = batch.sequences.ranges().map(|range| (range.start + token) as i32).collect();
        tape.embedding(hidden, &tape.backend().upload_i32(&rows), 1.0, None)
    }

    /// The vector of each picture: the hidden state of its class token, `[pictures, d_model]`.
    pub fn vectors(&self, tape: &Tape, hidden: &Var, batch: &Batch) -> Var {
        self.token(tape, hidden, batch, 0)
    }

    /// The output of the pooler, `tanh(W·x + b)` of each class token, `[pictures, width]`; none if the model has no pooler.
    pub fn pooled(&self, tape: &Tape, hidden: &Var, batch: &Batch) -> Option<Var> {
        let pooler = self.pooler.as_ref()?;
        Some(pooler.forward_with(tape, &self.vectors(tape, hidden, batch), Some(self.config.pooler.1)))
    }
}
