//! The heads of a ViT: what is made of its hidden states.

use super::{Batch, Problem, Task, Vit, VitConfig};
use crate::builder::Builder;
use crate::error::Error;
use crate::layers::Head;
use attentive_tensor::{Rectangle, Tape, Var};

/// The head of a task, if it has one.
#[derive(Debug, Clone)]
pub(super) enum Output {
    None,
    Classes(Head),
    /// Of the class token, and of the token that learned from a teacher.
    Two([Head; 2]),
}

impl Output {
    /// The head of a task with the parameters that `builder` gives it.
    pub fn new(builder: &Builder, config: &VitConfig, task: Task) -> Result<Output, Error> {
        let classes = |name| Head::classifier(&builder.at(name), config.features(), config.classes());
        Ok(match task {
            Task::Hidden => Output::None,
            Task::Classes => Output::Classes(classes("classifier")?),
            Task::ClassesWithTeacher => {
                Output::Two([classes("cls_classifier")?, classes("distillation_classifier")?])
            }
        })
    }
}

impl Vit {
    /// Logits of each picture, `[pictures, classes]`, from the hidden states of all tokens. They are to be read: what is learned from
    /// goes through [`Vit::loss`].
    pub fn logits(&self, tape: &Tape, hidden: &Var, batch: &Batch) -> Result<Var, Error> {
        match &self.output {
            Output::None => Err(no_head()),
            Output::Classes(head) => Ok(head.logits(tape, &self.features(tape, hidden, batch))),
            Output::Two([own, taught]) => {
                let logits = [(own, 0), (taught, 1)]
                    .map(|(head, token)| head.logits(tape, &self.token(tape, hidden, batch, token)));
                Ok(tape.scale(&tape.add(&logits[0], &logits[1]), 0.5))
            }
        }
    }

    /// What a classifier sees of each picture: its class token, and of a DINOv2 the mean of its patches beside it.
    fn features(&self, tape: &Tape, hidden: &Var, batch: &Batch) -> Var {
        let class = self.vectors(tape, hidden, batch);
        if !self.config.relative.is_dinov2() {
            return class;
        }
        let (before, d) = (self.config.tokens_before(), self.config.d_model);
        let (mut places, mut offsets) = (Vec::new(), vec![0]);
        for range in batch.sequences.ranges() {
            let (end, own) = (offsets[offsets.len() - 1], range.len() - before);
            let place = Rectangle { from: [range.start + before, 0], to: [end as usize, 0], size: [own, d] };
            places.push((hidden, place));
            offsets.push(end + own as i32);
        }
        let patches = tape.assemble([offsets[offsets.len() - 1] as usize, d], &places);
        let mean = tape.mean_rows(&patches, &tape.backend().upload_i32(&offsets));
        tape.concat_columns(&[&class, &mean])
    }

    /// The cross-entropy of a batch, the mean over its pictures: a class for each. A negative one leaves its picture out.
    pub fn loss(&self, tape: &Tape, batch: &Batch, labels: &[i32]) -> Result<Var, Error> {
        self.partial_loss(tape, batch, labels, 0.0, labels.iter().filter(|label| **label >= 0).count())
    }

    /// What a batch adds to the mean over the `of` pictures of several batches: their gradients add up to the one that a single
    /// batch of all of them would have. `smoothing` is ε of label smoothing.
    pub fn partial_loss(
        &self,
        tape: &Tape,
        batch: &Batch,
        labels: &[i32],
        smoothing: f32,
        of: usize,
    ) -> Result<Var, Error> {
        self.mixed_loss(tape, batch, &[(1.0, labels)], smoothing, of)
    }

    /// [`Vit::partial_loss`] of pictures that are mixed of several: each has several labels, which count as much as the shares say that
    /// stand before them.
    pub fn mixed_loss(
        &self,
        tape: &Tape,
        batch: &Batch,
        labels: &[(f32, &[i32])],
        smoothing: f32,
        of: usize,
    ) -> Result<Var, Error> {
        if self.config.problem() != Problem::SingleLabel {
            let problem = "only single_label_classification, with two classes at least, can be learned";
            return Err(Error::config("problem_type", problem));
        }
        match &self.output {
            Output::None => Err(no_head()),
            Output::Two(_) => {
                Err(Error::config("architectures", "two heads cannot be learned: they need a teacher"))
            }
            Output::Classes(head) => {
                let hidden = self.encode(tape, batch);
                let features = self.features(tape, &hidden, batch);
                let loss = |labels: &[i32]| {
                    head.partial_loss(tape, &features, &tape.backend().upload_i32(labels), smoothing, of)
                };
                let losses = labels.iter().map(|&(share, labels)| match share {
                    1.0 => loss(labels),
                    share => tape.scale(&loss(labels), share),
                });
                Ok(losses.reduce(|sum, loss| tape.add(&sum, &loss)).expect("a picture has labels"))
            }
        }
    }
}

fn no_head() -> Error {
    Error::config("architectures", "the model has no head for this task")
}
