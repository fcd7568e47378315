//! A model and its optimizer: one step of learning, on the device.
//!
//! A step takes one or more batches, whose gradients add up. Each batch counts as much as it has answers, such as the tokens of
//! its targets, so that several batches are as good as one of all their answers. Dropout draws from (seed, step,
//! batch): nothing has to be remembered to draw the same again.
//!
//! The gradient of each batch is computed for itself and then added to the sum of those before it, parameter by parameter as the
//! backward pass finishes them. So several ranks, each of which learns from some of the batches, come to the same sum. During the
//! last backward pass of a rank, what is finished travels.

use crate::Error;
use crate::average::MovingAverage;
use crate::corpus::ExampleBatch;
use crate::ranks::{BUCKET, Ranks, SharedAdam, run_of};
use crate::settings::Settings;
use crate::tasks::Task;
use attentive_ranks::Group;
use attentive_tensor::{Adam, AdamRule, Backend, DType, Gradients, Parameter, Random, Shape, Tape, Tensor};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

/// Streams of random numbers that must not meet.
const WEIGHTS: u64 = 0;
const DROPOUT: u64 = 1;

/// What learns.
#[derive(Debug)]
pub struct Learner {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) task: Box<dyn Task>,
    optimizer: Optimizer,
    pub(crate) average: Option<MovingAverage>,
    /// The sum over all answers since [`Learner::take_loss`], a scalar.
    loss: Tensor,
}

/// What changes the weights.
#[derive(Debug)]
enum Optimizer {
    /// Of all weights.
    Alone(Adam),
    /// Shared among several ranks.
    Shared(Box<SharedAdam>),
}

impl Optimizer {
    /// The group of ranks, if there are several.
    fn group(&self) -> Option<&Rc<dyn Group>> {
        match self {
            Optimizer::Alone(_) => None,
            Optimizer::Shared(shared) => Some(shared.group()),
        }
    }

    /// The batches of a step that each rank learns from.
    fn runs(&self, batches: usize) -> Vec<Range<usize>> {
        let size = self.group().map_or(1, |group| group.size());
        (0..size).map(|rank| run_of(batches, rank, size)).collect()
    }

    /// The losses of all batches of a step, given those of the batches that were learned from here.
    fn losses(&self, backend: &dyn Backend, mine: Vec<Tensor>, batches: usize) -> Result<Vec<Tensor>, Error> {
        match self {
            Optimizer::Alone(_) => Ok(mine),
            Optimizer::Shared(shared) => {
                let mine: Vec<f32> = mine.iter().flat_map(|loss| backend.download_f32(loss)).collect();
                let lengths: Vec<usize> = self.runs(batches).into_iter().map(|run| run.len()).collect();
                let all = shared.losses(&mine, &lengths)?;
                Ok(all.into_iter().map(|loss| backend.upload_f32(&[loss], Shape::SCALAR)).collect())
            }
        }
    }

    /// Takes the gradient of a parameter that no batch here will add to, if that is of use before the step.
    fn take(&mut self, backend: &dyn Backend, parameter: &Parameter, gradients: &mut Gradients) {
        if let Optimizer::Shared(shared) = self {
            shared.take(backend, parameter, gradients.take(parameter));
        }
    }

    /// A step; see [`Adam::step`]. Returns the norm of the gradient, squared, if it is wanted.
    fn step(
        &mut self,
        backend: &dyn Backend,
        rule: &AdamRule,
        clip: Option<f32>,
        wants_norm: bool,
        gradients: Gradients,
        parameters: &[Parameter],
    ) -> Result<Option<Tensor>, Error> {
        match self {
            Optimizer::Alone(adam) => {
                let norm = wants_norm.then(|| backend.squared_norm(&gradients.of(parameters)));
                adam.step(backend, rule, clip, &gradients);
                Ok(norm)
            }
            Optimizer::Shared(shared) => shared.step(backend, rule, clip, wants_norm, gradients),
        }
    }
}

impl Learner {
    /// What is to learn, before its first step.
    pub fn new(backend: &Arc<dyn Backend>, task: Box<dyn Task>, settings: &Settings) -> Learner {
        let average =
            settings.averages().then(|| MovingAverage::new(&**backend, task.parameters(), task.teacher()));
        let waits = task.parameters().iter().map(|parameter| task.waits(parameter) as u32);
        let adam = Adam::new(&**backend, task.parameters()).waiting(waits.collect());
        Learner {
            optimizer: Optimizer::Alone(adam),
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

    /// Becomes one of several that learn together, all of which are the same so far. From now on a step is collective, and each of them
    /// is given all batches.
    pub fn join(&mut self, group: Rc<dyn Group>) {
        self.join_in_buckets(group, BUCKET);
    }

    /// The same; gradients travel when so many numbers of them are finished. It changes no bits.
    pub fn join_in_buckets(&mut self, group: Rc<dyn Group>, bucket: usize) {
        if let Optimizer::Alone(adam) = &self.optimizer {
            let shared = SharedAdam::new(group, &*self.backend, self.task.parameters(), adam, bucket);
            self.optimizer = Optimizer::Shared(Box::new(shared));
        }
    }

    /// Those that learn together with this one, if there are any.
    pub(crate) fn group(&self) -> Option<&Rc<dyn Group>> {
        self.optimizer.group()
    }

    /// The same as those who share other work.
    pub(crate) fn ranks(&self) -> Ranks {
        Ranks::of(self.group().cloned())
    }

    /// Collective: the moments of all parameters; none but at rank 0.
    pub(crate) fn moments(&self) -> Result<Vec<[Tensor; 2]>, Error> {
        match &self.optimizer {
            Optimizer::Alone(adam) => Ok(adam.moments().to_vec()),
            Optimizer::Shared(shared) => shared.moments(&*self.backend),
        }
    }

    /// Goes on after so many steps, from these moments of all parameters.
    pub(crate) fn restore(&mut self, step: u32, moments: Vec<[Tensor; 2]>) {
        match &mut self.optimizer {
            Optimizer::Alone(adam) => adam.restore(step, moments),
            Optimizer::Shared(shared) => shared.restore(&*self.backend, step, &moments),
        }
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
        self.task.before_step(step);
        let mut gradients = Gradients::default();
        let mut losses = Vec::new();
        let rank = self.group().map_or(0, |group| group.rank());
        let mine = self.optimizer.runs(batches.len()).swap_remove(rank);
        for number_of in mine.clone() {
            let batch = &batches[number_of];
            let tape = Tape::training(&self.backend, number(random.split(number_of as u64)));
            let loss = self.task.partial_loss(&tape, batch, settings.label_smoothing as f32, answers)?;
            losses.push(loss.value().clone());
            let is_last = number_of + 1 == mine.end;
            tape.backward_each(&loss, &mut |parameter, gradient| {
                gradients.add(backend, parameter, gradient);
                if is_last {
                    self.optimizer.take(backend, parameter, &mut gradients);
                }
            });
        }
        for loss in self.optimizer.losses(backend, losses, batches.len())? {
            backend.add_assign(&mut self.loss, &loss, answers as f32);
        }
        let clip = (settings.clip > 0.0).then_some(settings.clip as f32);
        let (rule, parameters) = (settings.adam(rate, step), self.task.parameters());
        let norm = self.optimizer.step(backend, &rule, clip, wants_norm, gradients, parameters)?;
        if let Some(average) = &self.average {
            average.update(backend, self.task.parameters(), settings.decay(step));
        }
        self.task.after_step(backend);
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
        if let Some(average) = &self.average {
            average.swap(parameters);
        }
        let result = act(&self.backend, &*self.task);
        if let Some(average) = &self.average {
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
