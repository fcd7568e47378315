//! The heads of a ViT, and their losses.

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
    /// Of the class token, and of the distillation token.
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
    /// Logits of each picture, `[pictures, classes]`, from the hidden states of all tokens. They have no gradients; training uses
    /// [`Vit::loss`].
    pub fn logits(&self, tape: &Tape, hidden: &Var, batch: &Batch) -> Result<Var, Error> {
        match &self.output {
            Output::None => Err(no_head()),
            Output::Classes(head) => Ok(head.logits(tape, &self.features(tape, hidden, batch))),
            Output::Two([class, distilled]) => {
                let logits = [(class, 0), (distilled, 1)]
                    .map(|(head, token)| head.logits(tape, &self.token(tape, hidden, batch, token)));
                Ok(tape.scale(&tape.add(&logits[0], &logits[1]), 0.5))
            }
        }
    }

    /// The input of the classifier, a row for each picture: the class token; for DINOv2 also the mean of the patches, concatenated.
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

    /// The mean cross-entropy over the pictures of a batch, with a class for each. A picture with a negative class is left out.
    pub fn loss(&self, tape: &Tape, batch: &Batch, labels: &[i32]) -> Result<Var, Error> {
        self.partial_loss(tape, batch, labels, 0.0, labels.iter().filter(|label| **label >= 0).count())
    }

    /// The contribution of a batch to the mean loss over the `of` pictures of several batches, so that the gradients of the batches add up
    /// to that of one large batch. `smoothing` is ε of label smoothing.
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

    /// [`Vit::partial_loss`] of pictures with mixup: each picture has several labels, and each list of labels is weighted by the share
    /// before it.
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
