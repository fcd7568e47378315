//! DINO: learning from pictures without labels.
//!
//! The student learns by gradients. The teacher is its moving average, which the [`Learner`](crate::Learner) keeps; validation and the
//! saved folder use the teacher. The centre of the teacher's logits is a buffer, `c ← 0.9·c + 0.1·mean`, with the mean over all logits of a
//! step.

use super::{Neighbours, as_batch};
use crate::Error;
use crate::corpus::ExampleBatch;
use crate::settings::Settings;
use crate::tasks::{Judgement, Ranks, Task};
use attentive_image::{Pixels, Processor};
use attentive_model::checkpoint::Staged;
use attentive_model::families::vit::{Dino, dino_loss};
use attentive_tensor::{Backend, DType, Parameter, Tape, Tensor, Var};
use std::cell::{Cell, RefCell};
use std::path::Path;
use std::sync::Arc;

/// The temperature of the student.
const STUDENT_TEMP: f32 = 0.1;

/// The momentum of the centre.
const CENTRE_MOMENTUM: f32 = 0.9;

/// A student and its teacher.
#[derive(Debug)]
pub struct LearningDino {
    student: Dino,
    teacher: Dino,
    processor: Processor,
    settings: Settings,
    /// The centre of the teacher's logits, `[out]`.
    buffers: [Parameter; 1],
    /// The number of the current step.
    step: Cell<u64>,
    /// The sum of the teacher's logits in the current step so far, and the number of its rows.
    logit_sum: RefCell<Option<(Tensor, usize)>>,
    neighbours: Option<Neighbours>,
}

impl LearningDino {
    /// A student and a teacher of the same sizes, without validation, and the processor of their pictures.
    pub fn new(
        backend: &dyn Backend,
        [student, teacher]: [Dino; 2],
        processor: Processor,
        settings: &Settings,
    ) -> LearningDino {
        let centre = backend.zeros([settings.out_dim].into(), DType::F32);
        LearningDino {
            student,
            teacher,
            processor,
            settings: settings.clone(),
            buffers: [Parameter::new("centre", centre)],
            step: Cell::new(1),
            logit_sum: RefCell::new(None),
            neighbours: None,
        }
    }

    /// Adds validation by nearest neighbours.
    pub(super) fn judged_by(self, neighbours: Option<Neighbours>) -> LearningDino {
        LearningDino { neighbours, ..self }
    }

    /// The views of a batch as pixels: the first view of all examples, then the second, and so on.
    fn pixels(&self, batch: &ExampleBatch) -> Vec<Pixels> {
        let views = batch.examples.first().map_or(0, |example| example.pictures.len());
        let of_view = |view: usize| batch.examples.iter().map(move |example| &example.pictures[view].picture);
        (0..views).flat_map(of_view).map(|picture| self.processor.numbers(picture)).collect()
    }

    /// The teacher's probabilities for the global views, `[2 · pictures, out]`. Adds its logits to the sum for the next centre.
    fn teacher_probabilities(&self, backend: &Arc<dyn Backend>, pixels: &[Pixels]) -> Tensor {
        let batch = as_batch(&**backend, self.teacher.vit().config(), pixels);
        let logits = self.teacher.logits(&Tape::inference(backend), &batch, false);
        let (before, rows) = self.logit_sum.take().map_or((None, 0), |(sum, rows)| (Some(sum), rows));
        let sum = backend.sum_rows(logits.value(), before);
        self.logit_sum.replace(Some((sum, rows + logits.shape().rows())));
        let temperature = self.settings.teacher_temp(self.step.get());
        backend.softmax(logits.value(), &self.buffers[0].value(), (1.0 / temperature) as f32)
    }
}

impl Task for LearningDino {
    fn parameters(&self) -> &[Parameter] {
        self.student.parameters()
    }

    fn d_model(&self) -> usize {
        self.student.vit().config().d_model
    }

    fn partial_loss(&self, tape: &Tape, batch: &ExampleBatch, _: f32, of: usize) -> Result<Var, Error> {
        let (backend, pixels) = (tape.backend(), self.pixels(batch));
        let targets = self.teacher_probabilities(backend, &pixels[..2 * batch.examples.len()]);
        let views = as_batch(&**backend, self.student.vit().config(), &pixels);
        let learns = self.step.get() > self.settings.freeze_last_layer;
        let logits = self.student.logits(tape, &views, learns);
        Ok(dino_loss(tape, &logits, &targets, STUDENT_TEMP, of))
    }

    fn teacher(&self) -> Option<&[Parameter]> {
        Some(self.teacher.parameters())
    }

    fn buffers(&self) -> &[Parameter] {
        &self.buffers
    }

    fn waits(&self, parameter: &Parameter) -> u64 {
        let is_last = parameter.name() == self.student.last_layer().name();
        if is_last { self.settings.freeze_last_layer } else { 0 }
    }

    fn before_step(&self, step: u64) {
        self.step.set(step);
        self.logit_sum.take();
    }

    fn after_step(&self, backend: &dyn Backend) {
        let Some((sum, rows)) = self.logit_sum.take() else { return };
        let mean = backend.scale(&sum, 1.0 / rows as f32);
        self.buffers[0].update(|centre| {
            let mut centre = backend.own(centre);
            backend.blend(&mut centre, &mean, 1.0 - CENTRE_MOMENTUM);
            centre
        });
    }

    fn held(&self) -> usize {
        self.neighbours.as_ref().map_or(0, Neighbours::held)
    }

    fn judge(&self, backend: &Arc<dyn Backend>, ranks: &Ranks) -> Result<Option<Judgement>, Error> {
        self.neighbours
            .as_ref()
            .map(|neighbours| neighbours.judge(backend, self.student.vit(), ranks))
            .transpose()
    }

    fn stage_weights(&self, backend: &dyn Backend, path: &Path) -> Result<Staged, Error> {
        Ok(self.student.vit().stage_weights(backend, path)?)
    }

    fn read_weights(&self, backend: &dyn Backend, path: &Path) -> Result<Vec<Tensor>, Error> {
        Ok(self.student.vit().read_weights(backend, path)?)
    }
}
