//! A model and its optimizer: one step of learning, on the device.
//!
//! A step takes one or more batches, whose gradients add up. Each batch counts as much as it has answers, such as the tokens of
//! its targets, so that several batches are as good as one of all their answers. Dropout draws from (seed, step,
//! batch): nothing has to be remembered to draw the same again.

use crate::Error;
use crate::average::MovingAverage;
use crate::corpus::ExampleBatch;
use crate::settings::Settings;
use crate::tasks::Task;
use attentive_tensor::{Adam, Backend, DType, Gradients, Parameter, Random, Shape, Tape, Tensor};
use std::sync::Arc;

/// Streams of random numbers that must not meet.
const WEIGHTS: u64 = 0;
const DROPOUT: u64 = 1;

/// What learns.
#[derive(Debug)]
pub struct Learner {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) task: Box<dyn Task>,
    pub(crate) adam: Adam,
    pub(crate) average: Option<MovingAverage>,
    /// The sum over all answers since [`Learner::take_loss`], a scalar.
    loss: Tensor,
}

impl Learner {
    /// What is to learn, before its first step.
    pub fn new(backend: &Arc<dyn Backend>, task: Box<dyn Task>, settings: &Settings) -> Learner {
        let average =
            (settings.ema > 0.0).then(|| MovingAverage::new(&**backend, settings.ema, task.parameters()));
        Learner {
            adam: Adam::new(&**backend, task.parameters()),
            loss: backend.zeros(Shape::SCALAR, DType::F32),
            backend: Arc::clone(backend),
            task,
            average,
        }
    }

    /// Everything that is learned.
    pub fn parameters(&self) -> &[Parameter] {
        self.task.parameters()
    }

    /// One step, counted from 1, with the given learning rate. Returns the norm of the gradient, squared, if
    /// it is wanted.
    pub fn step(
        &mut self,
        settings: &Settings,
        step: u64,
        rate: f64,
        batches: &[ExampleBatch],
        wants_norm: bool,
    ) -> Result<Option<Tensor>, Error> {
        let backend = &*self.backend;
        let answers = batches.iter().map(ExampleBatch::answers).sum();
        let random = Random::new(settings.seed).split(DROPOUT).split(step);
        let mut gradients = Gradients::default();
        for (number_of, batch) in batches.iter().enumerate() {
            let tape = Tape::training(&self.backend, number(random.split(number_of as u64)));
            let loss = self.task.partial_loss(&tape, batch, settings.label_smoothing as f32, answers)?;
            backend.add_assign(&mut self.loss, loss.value(), answers as f32);
            tape.backward(&loss, &mut gradients);
        }
        let norm = wants_norm.then(|| backend.squared_norm(&gradients.iter().collect::<Vec<_>>()));
        let clip = (settings.clip > 0.0).then_some(settings.clip as f32);
        self.adam.step(backend, &settings.adam(rate), clip, &gradients);
        if let Some(average) = &mut self.average {
            average.update(backend, self.task.parameters(), step);
        }
        Ok(norm)
    }

    /// The sum of the losses of all answers since it was last taken.
    pub fn loss(&self) -> f64 {
        self.backend.download_f32(&self.loss)[0].into()
    }

    /// The same, and begins a new sum.
    pub fn take_loss(&mut self) -> f64 {
        let loss = self.loss();
        self.set_loss(0.0);
        loss
    }

    pub(crate) fn set_loss(&mut self, loss: f64) {
        self.loss = self.backend.upload_f32(&[loss as f32], Shape::SCALAR);
    }

    /// Does something with the model that is judged and saved: the moving average, if there is one.
    pub fn judged<T>(&mut self, act: impl FnOnce(&Arc<dyn Backend>, &dyn Task) -> T) -> T {
        let parameters = self.task.parameters();
        if let Some(average) = &mut self.average {
            average.swap(parameters);
        }
        let result = act(&self.backend, &*self.task);
        if let Some(average) = &mut self.average {
            average.swap(parameters);
        }
        result
    }

    /// Whether all weights are numbers.
    pub(crate) fn is_finite(&self) -> bool {
        let values: Vec<Tensor> = self.parameters().iter().map(Parameter::value).collect();
        let norm = self.backend.squared_norm(&values.iter().collect::<Vec<_>>());
        self.backend.download_f32(&norm)[0].is_finite()
    }
}

/// Where the first weights of a run come from.
pub(crate) fn seed_of_weights(settings: &Settings) -> u64 {
    number(Random::new(settings.seed).split(WEIGHTS))
}

/// A seed from a stream of random numbers.
fn number(random: Random) -> u64 {
    u64::from(random.bits(0)) << 32 | u64::from(random.bits(1))
}
