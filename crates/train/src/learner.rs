//! A model and its optimizer: one step of learning, on the device.
//!
//! A step takes one or more batches, whose gradients add up. Each batch counts as much as it has target
//! tokens, so that several batches are as good as one of all their tokens. Dropout draws from (seed, step,
//! batch): nothing has to be remembered to draw the same again.

use crate::average::MovingAverage;
use crate::corpus::PairBatch;
use crate::settings::Settings;
use attentive_model::families::transformer::{Batch, Transformer, TransformerConfig};
use attentive_model::{Builder, Error};
use attentive_tensor::{Adam, Backend, DType, Gradients, Parameter, Random, Shape, Tape, Tensor};
use std::sync::Arc;

/// Streams of random numbers that must not meet.
const WEIGHTS: u64 = 0;
const DROPOUT: u64 = 1;

/// What learns.
#[derive(Debug)]
pub struct Learner {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) model: Transformer,
    pub(crate) adam: Adam,
    pub(crate) average: Option<MovingAverage>,
    /// The sum over all target tokens since [`Learner::take_loss`], a scalar.
    loss: Tensor,
}

impl Learner {
    /// A model that has learned nothing yet.
    pub fn new(
        backend: &Arc<dyn Backend>,
        config: &TransformerConfig,
        settings: &Settings,
    ) -> Result<Learner, Error> {
        let seed = number(Random::new(settings.seed).split(WEIGHTS));
        let model = Transformer::new(&Builder::random(backend, seed), config)?;
        let average =
            (settings.ema > 0.0).then(|| MovingAverage::new(&**backend, settings.ema, model.parameters()));
        Ok(Learner {
            adam: Adam::new(&**backend, model.parameters()),
            loss: backend.zeros(Shape::SCALAR, DType::F32),
            backend: Arc::clone(backend),
            model,
            average,
        })
    }

    /// The model as it learns.
    pub fn model(&self) -> &Transformer {
        &self.model
    }

    pub(crate) fn parameters(&self) -> &[Parameter] {
        self.model.parameters()
    }

    /// One step, counted from 1, with the given learning rate. Returns the norm of the gradient, squared, if
    /// it is wanted.
    pub fn step(
        &mut self,
        settings: &Settings,
        step: u64,
        rate: f64,
        batches: &[PairBatch],
        wants_norm: bool,
    ) -> Option<Tensor> {
        let backend = &*self.backend;
        let tokens = batches.iter().map(|batch| batch.target.len()).sum();
        let random = Random::new(settings.seed).split(DROPOUT).split(step);
        let mut gradients = Gradients::default();
        for (number_of, batch) in batches.iter().enumerate() {
            let batch = Batch::new(backend, &batch.pairs(), self.model.config().start as i32);
            let tape = Tape::training(&self.backend, number(random.split(number_of as u64)));
            let loss = self.model.partial_loss(&tape, &batch, settings.label_smoothing as f32, tokens);
            backend.add_assign(&mut self.loss, loss.value(), tokens as f32);
            tape.backward(&loss, &mut gradients);
        }
        let norm = wants_norm.then(|| backend.squared_norm(&gradients.iter().collect::<Vec<_>>()));
        let clip = (settings.clip > 0.0).then_some(settings.clip as f32);
        self.adam.step(backend, &settings.adam(rate), clip, &gradients);
        if let Some(average) = &mut self.average {
            average.update(backend, self.model.parameters(), step);
        }
        norm
    }

    /// The sum of the losses of all target tokens since it was last taken.
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
    pub fn judged<T>(&mut self, act: impl FnOnce(&Arc<dyn Backend>, &Transformer) -> T) -> T {
        let parameters = self.model.parameters();
        if let Some(average) = &mut self.average {
            average.swap(parameters);
        }
        let result = act(&self.backend, &self.model);
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

/// A seed from a stream of random numbers.
fn number(random: Random) -> u64 {
    u64::from(random.bits(0)) << 32 | u64::from(random.bits(1))
}
