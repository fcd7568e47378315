//! The heads of a BERT: what is made of its hidden states.

use super::{Batch, Bert, BertConfig, Problem, Task};
use crate::builder::Builder;
use crate::error::Error;
use crate::layers::{Embedding, EmbeddingConfig, Head, LayerNorm, Linear};
use crate::sequences::Sequences;
use attentive_tensor::{Activation, DType, ProjectionTarget, Shape, Tape, Var};
use std::ops::Range;

/// The head of a task, if it has one.
#[derive(Debug, Clone)]
pub(super) enum Output {
    None,
    MaskedLm(MaskedLm),
    Classes(Head),
}

impl Output {
    /// The head of a task with the parameters that `builder` gives it; `tokens` is the table that a masked language model shares.
    pub fn new(
        builder: &Builder,
        config: &BertConfig,
        task: Task,
        tokens: &Embedding,
    ) -> Result<Output, Error> {
        let classes = |name, count| Head::classifier(&builder.at(name), config.d_model, count);
        Ok(match task {
            Task::Hidden => Output::None,
            Task::MaskedLm => Output::MaskedLm(MaskedLm::new(&builder.at("masked_lm"), config, tokens)?),
            Task::SequenceClassification => {
                let [_, output] = config.relative.particulars().text_class;
                Output::Classes(classes(output, config.classes())?)
            }
            Task::TokenClassification => Output::Classes(classes("classifier", config.classes())?),
            // A number for the beginning and one for the end.
            Task::QuestionAnswering => Output::Classes(classes("qa_outputs", 2)?),
        })
    }
}

/// `logits = norm(activation(W·x + b))·tableᵀ + bias`: tokens from hidden states, with the table of the embeddings and a bias that is
/// learned.
#[derive(Debug, Clone)]
pub(super) struct MaskedLm {
    dense: Linear,
    activation: Activation,
    norm: LayerNorm,
    head: Head,
}

impl MaskedLm {
    fn new(builder: &Builder, config: &BertConfig, tokens: &Embedding) -> Result<MaskedLm, Error> {
        let d = config.d_model;
        // Every token can stand behind a mask, padding too: a bias has a number for each.
        let table = EmbeddingConfig { padding: None, ..config.embedding() };
        Ok(MaskedLm {
            dense: Linear::new(&builder.at("dense"), d, d)?,
            activation: config.relative.particulars().mask_activation.unwrap_or(config.activation),
            norm: LayerNorm::new(&builder.at("norm"), d, config.epsilon)?,
            head: Head::tied(builder, tokens, &table)?.with_learned_bias(builder)?,
        })
    }

    /// Hidden states as the table of tokens expects them, `[rows, d_model]`.
    fn transform(&self, tape: &Tape, hidden: &Var) -> Var {
        self.norm.forward(tape, &self.dense.forward_with(tape, hidden, Some(self.activation)))
    }
}

impl Bert {
    /// Logits from the hidden states of all tokens: `[tokens, vocab_size]` of a masked language model, `[sequences, classes]` of
    /// texts, `[tokens, classes]` of tokens, `[tokens, 2]` of beginnings and ends of answers. They are to be read: what is learned from goes through [`Bert::loss`].
    pub fn logits(&self, tape: &Tape, hidden: &Var, sequences: &Sequences) -> Result<Var, Error> {
        match &self.output {
            Output::None => Err(no_head()),
            Output::MaskedLm(masked) => Ok(masked.head.logits(tape, &masked.transform(tape, hidden))),
            Output::Classes(head) => Ok(head.logits(tape, &self.features(tape, hidden, sequences)?)),
        }
    }

    /// [`Bert::logits`] of some rows of the hidden states alone, such as those of masks.
    pub fn logits_of_rows(&self, tape: &Tape, hidden: &Var, rows: &[i32]) -> Result<Var, Error> {
        let rows = tape.embedding(hidden, &tape.backend().upload_i32(rows), 1.0, None);
        match &self.output {
            Output::MaskedLm(masked) => Ok(masked.head.logits(tape, &masked.transform(tape, &rows))),
            Output::Classes(head) if self.task != Task::SequenceClassification => {
                Ok(head.logits(tape, &rows))
            }
            _ => Err(no_head()),
        }
    }

    /// What a classifier sees: a row for each text, or for each token.
    fn features(&self, tape: &Tape, hidden: &Var, sequences: &Sequences) -> Result<Var, Error> {
        let features = match self.task {
            Task::SequenceClassification => self.pooled(tape, hidden, sequences).ok_or_else(no_head)?,
            Task::QuestionAnswering => return Ok(hidden.clone()),
            _ => hidden.clone(),
        };
        Ok(tape.dropout(&features, self.config.head_dropout()))
    }

    /// The cross-entropy of a batch, the mean over its labels: a label for each text where texts are classified, two where answers are
    /// found in them (the places of the tokens that the answer begins and ends with), and else one for each token. A negative label leaves its text or token out.
    pub fn loss(&self, tape: &Tape, batch: &Batch, labels: &[i32]) -> Result<Var, Error> {
        self.partial_loss(tape, batch, labels, 0.0, labels.iter().filter(|label| **label >= 0).count())
    }

    /// What a batch adds to the mean over the `of` labels of several batches: their gradients add up to the one that a single
    /// batch of all of them would have. `smoothing` is ε of label smoothing.
    pub fn partial_loss(
        &self,
        tape: &Tape,
        batch: &Batch,
        labels: &[i32],
        smoothing: f32,
        of: usize,
    ) -> Result<Var, Error> {
        if self.task == Task::SequenceClassification && self.config.problem() != Problem::SingleLabel {
            let problem = "only single_label_classification, with two classes at least, can be learned";
            return Err(Error::config("problem_type", problem));
        }
        let hidden = self.encode(tape, batch);
        match &self.output {
            Output::None => Err(no_head()),
            Output::MaskedLm(masked) => {
                // The others would be computed for nothing: there are as many logits as tokens in the vocabulary.
                let rows = |wanted: fn(usize, i32) -> i32| {
                    let labelled = labels.iter().enumerate().filter(|(_, label)| **label >= 0);
                    let rows: Vec<i32> = labelled.map(|(row, &label)| wanted(row, label)).collect();
                    tape.backend().upload_i32(&rows)
                };
                let hidden = tape.embedding(&hidden, &rows(|row, _| row as i32), 1.0, None);
                let transformed = masked.transform(tape, &hidden);
                Ok(masked.head.partial_loss(tape, &transformed, &rows(|_, label| label), smoothing, of))
            }
            Output::Classes(head) if self.task == Task::QuestionAnswering => {
                Ok(answer_loss(tape, head, &hidden, &batch.sequences, labels, (smoothing, of)))
            }
            Output::Classes(head) => {
                let features = self.features(tape, &hidden, &batch.sequences)?;
                Ok(head.partial_loss(tape, &features, &tape.backend().upload_i32(labels), smoothing, of))
            }
        }
    }
}

/// The loss of the beginnings and ends of answers, two labels for each text. Their classes are the tokens of the text: so the hidden
/// states of a text are the table of a projection, and what is projected are the two rows of the head. Its biases move all logits of a
/// text alike and are left out.
fn answer_loss(
    tape: &Tape,
    head: &Head,
    hidden: &Var,
    sequences: &Sequences,
    labels: &[i32],
    (smoothing, of): (f32, usize),
) -> Var {
    let (rows, hidden) = (tape.parameter(head.table()), tape.cast(hidden, DType::F32));
    let loss = |(range, labels): (Range<usize>, &[i32])| {
        let (tokens, classes) = (tape.backend().upload_i32(labels), range.len());
        let target = ProjectionTarget { tokens: &tokens, classes, smoothing, scale: 1.0 / of.max(1) as f32 };
        tape.projection_loss(&rows, &tape.slice_rows(&hidden, range), None, &target)
    };
    assert_eq!(labels.len(), 2 * sequences.ranges().count(), "a text needs two labels");
    let losses = sequences.ranges().zip(labels.chunks_exact(2)).map(loss);
    let sum = losses.reduce(|sum, loss| tape.add(&sum, &loss));
    sum.unwrap_or_else(|| tape.constant(tape.backend().zeros(Shape::SCALAR, DType::F32)))
}

fn no_head() -> Error {
    Error::config("architectures", "the model has no head for this task")
}
