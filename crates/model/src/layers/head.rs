//! The output: from the last hidden state to classes, such as tokens, with the table of the embedding or one of its own.

use super::{Embedding, EmbeddingConfig, Linear};
use crate::builder::{Builder, Init};
use crate::error::Error;
use attentive_tensor::{Found, Parameter, ProjectionTarget, Tape, Tensor, TokenLists, Var, Wanted};

/// Logits as dot products with the rows of a table, which is that of an embedding if the two are tied, and a bias if the model has
/// one.
#[derive(Debug, Clone)]
pub struct Head {
    table: Parameter,
    bias: Option<Bias>,
    dense: Option<Linear>,
    classes: usize,
}

/// What is added to the logits, a number for each row of the table.
#[derive(Debug, Clone)]
enum Bias {
    Fixed(Tensor),
    Learned(Parameter),
}

impl Bias {
    fn var(&self, tape: &Tape) -> Var {
        match self {
            Bias::Fixed(bias) => tape.constant(bias.clone()),
            Bias::Learned(bias) => tape.parameter(bias),
        }
    }
}

impl Head {
    /// The output that belongs to an embedding that is [tied](Embedding::tied). Padding at the end of the vocabulary is no class: it is never produced.
    pub fn tied(builder: &Builder, embedding: &Embedding, config: &EmbeddingConfig) -> Result<Head, Error> {
        Head::new(builder, embedding.output().clone(), config)
    }

    /// An output like that of an embedding, with a table of its own.
    pub fn untied(builder: &Builder, config: &EmbeddingConfig) -> Result<Head, Error> {
        let &EmbeddingConfig { vocab_size, d_emb, .. } = config;
        let init = Init::Normal((d_emb as f32).powf(-0.5));
        Head::new(builder, builder.product_parameter("weight", [vocab_size, d_emb], init)?, config)
    }

    /// An output of `classes` classes with a table and a learned bias of its own.
    pub fn classifier(builder: &Builder, d_model: usize, classes: usize) -> Result<Head, Error> {
        let table = builder.product_parameter("weight", [classes, d_model], Init::Xavier)?;
        Head { table, bias: None, dense: None, classes }.with_learned_bias(builder)
    }

    fn new(builder: &Builder, table: Parameter, config: &EmbeddingConfig) -> Result<Head, Error> {
        let &EmbeddingConfig { vocab_size, d_emb, d_model, padding, .. } = config;
        let dense =
            (d_emb != d_model).then(|| Linear::new(&builder.at("dense"), d_model, d_emb)).transpose()?;
        let classes = vocab_size - usize::from(padding.is_some_and(|padding| padding + 1 == vocab_size));
        Ok(Head { table, bias: None, dense, classes })
    }

    /// The same output with this added to the logits, `[vocab_size]`; it is not learned.
    pub fn with_bias(self, bias: Tensor) -> Head {
        Head { bias: Some(Bias::Fixed(bias)), ..self }
    }

    /// The same output with a bias that is learned: a number for each row of the table, zeros at first.
    pub fn with_learned_bias(self, builder: &Builder) -> Result<Head, Error> {
        let bias = builder.parameter("bias", [self.table.value().shape().rows()], Init::Zeros)?;
        Ok(Head { bias: Some(Bias::Learned(bias)), ..self })
    }

    /// What is added to the logits.
    pub fn bias(&self) -> Option<Tensor> {
        self.bias.as_ref().map(|bias| match bias {
            Bias::Fixed(bias) => bias.clone(),
            Bias::Learned(bias) => bias.value(),
        })
    }

    /// The table.
    pub fn table(&self) -> &Parameter {
        &self.table
    }

    /// The number of classes: the first tokens of the vocabulary.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// `[tokens, d_model]` to `[tokens, vocab_size]` in f32; only the first [`Head::classes`] columns are classes. They
    /// have no gradient; training uses [`Head::loss`].
    pub fn logits(&self, tape: &Tape, hidden: &Var) -> Var {
        let bias = self.bias.as_ref().map(|bias| bias.var(tape));
        tape.logits(&self.reach(tape, hidden), &tape.parameter(&self.table), bias.as_ref())
    }

    /// The greatest logits of each row, greatest first, and the logarithms of the sums of exponentials, as far as they are
    /// wanted, and the logits of the tokens in `apart`; logits never exist as a whole. See
    /// [`Backend::top_logits`](attentive_tensor::LossOps::top_logits).
    pub fn best(&self, tape: &Tape, hidden: &Var, wanted: Wanted, apart: TokenLists) -> Found {
        let (hidden, table) = (self.reach(tape, hidden), tape.parameter(&self.table));
        tape.backend().top_logits(hidden.value(), table.value(), self.bias().as_ref(), wanted, apart)
    }

    /// The mean of the label-smoothed cross-entropy over the target tokens, a scalar; logits never exist as a whole.
    pub fn loss(&self, tape: &Tape, hidden: &Var, targets: &Tensor, smoothing: f32) -> Var {
        self.partial_loss(tape, hidden, targets, smoothing, targets.shape().len())
    }

    /// What these target tokens add to the mean over `of` tokens, of which they are a part; those that are negative add nothing.
    pub fn partial_loss(
        &self,
        tape: &Tape,
        hidden: &Var,
        targets: &Tensor,
        smoothing: f32,
        of: usize,
    ) -> Var {
        let scale = 1.0 / of.max(1) as f32;
        let target = ProjectionTarget { tokens: targets, classes: self.classes, smoothing, scale };
        let bias = self.bias.as_ref().map(|bias| bias.var(tape));
        let (hidden, table) = (self.reach(tape, hidden), tape.parameter(&self.table));
        tape.projection_loss(&hidden, &table, bias.as_ref(), &target)
    }

    /// The hidden state in the width of the table.
    fn reach(&self, tape: &Tape, hidden: &Var) -> Var {
        self.dense.as_ref().map_or(hidden.clone(), |dense| dense.forward(tape, hidden))
    }
}
