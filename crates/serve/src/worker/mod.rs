//! The thread that computes: it takes jobs from the queue, lets all that one model has to do share its batches, and answers.
//!
//! A step is a token of every sentence or prompt of a model that writes, or a batch of an encoder. Between two steps the thread looks for
//! new jobs, and for clients that have gone away: their sentences and texts are given up. Models take turns, so that none waits for more
//! than one step of each other.

mod decode;
mod encode;
mod inspect;
mod rate;

use crate::app::App;
use crate::engine::Engine;
use crate::error::Error;
use crate::job::Job;
use crate::metrics::Metrics;
use crate::model::{
    self, EncoderModel, LanguageModel, Loaded, ModelPlace, PictureModel, Served, TranslationModel,
};
use rate::Rate;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::mpsc::UnboundedReceiver;

/// Reads the models, tells the server and `ready` about them, and computes until the queue is closed.
pub(crate) fn run(
    app: &Arc<App>,
    engine: &Engine,
    places: &[ModelPlace],
    ready: impl FnOnce(&[Served]),
    mut jobs: UnboundedReceiver<Job>,
) -> Result<(), Error> {
    let mut workers = Vec::new();
    let mut models = Vec::new();
    for place in places {
        let loaded = model::load(engine, place)?;
        models.push(loaded.model());
        workers.push(ModelWorker::new(loaded, app.settings.batch)?);
    }
    let served: Vec<Served> = models.iter().map(|model| model.served()).collect();
    app.set_models(models);
    ready(&served);
    let mut rate = Rate::new();
    let mut leaves = false;
    loop {
        // With nothing to do it sleeps; otherwise it takes what there is and goes on.
        if workers.iter().all(ModelWorker::is_idle) {
            if leaves {
                return Ok(());
            }
            leaves |= jobs.blocking_recv().is_none_or(|job| accept(&mut workers, job));
        }
        while let Ok(job) = jobs.try_recv() {
            leaves |= accept(&mut workers, job);
        }
        for worker in &mut workers {
            rate.count(worker.step(&app.metrics));
        }
        if let Some(sentences) = rate.per_second() {
            app.queue.set_rate(sentences);
        }
    }
}

/// Takes a job; returns whether it is the last. Handlers name a model that can do it; otherwise it is dropped, and its client hears
/// of a fault.
fn accept(workers: &mut [ModelWorker], job: Job) -> bool {
    let model = match &job {
        Job::Decode(decode) => decode.model,
        Job::Inspect(inspect) => inspect.model,
        Job::Judge(judge) => judge.model,
        Job::Encode(encode) => encode.model,
        Job::See(see) => see.model,
        Job::Leave => return true,
    };
    match (workers.get_mut(model), job) {
        (Some(ModelWorker::Decode(worker)), Job::Decode(decode)) => worker.decode(decode),
        (Some(ModelWorker::Decode(worker)), Job::Inspect(inspect)) => worker.inspect(inspect),
        (Some(ModelWorker::Decode(worker)), Job::Judge(judge)) => worker.judge(judge),
        (Some(ModelWorker::Encode(worker)), Job::Inspect(inspect)) => worker.inspect(inspect),
        (Some(ModelWorker::Encode(worker)), Job::Encode(encode)) => worker.encode(encode),
        (Some(ModelWorker::See(worker)), Job::Inspect(inspect)) => worker.inspect(inspect),
        (Some(ModelWorker::See(worker)), Job::See(see)) => worker.encode(see),
        _ => tracing::error!(model, "a job was handed to a model that cannot do it"),
    }
    false
}

/// A model and what it has to do.
enum ModelWorker {
    Decode(Box<decode::DecoderWorker>),
    Encode(encode::EncoderWorker<EncoderModel>),
    See(encode::EncoderWorker<PictureModel>),
}

impl ModelWorker {
    fn new(loaded: Loaded, batch: usize) -> Result<ModelWorker, Error> {
        Ok(match loaded {
            Loaded::Translation(model, copies) => {
                let TranslationModel { name, options, codec, .. } = &*model;
                ModelWorker::Decode(Box::new(decode::DecoderWorker::new(
                    name,
                    options,
                    Some(codec.clone()),
                    copies,
                    batch,
                )?))
            }
            Loaded::Language(model, copies) => {
                let LanguageModel { name, options, .. } = &*model;
                ModelWorker::Decode(Box::new(decode::DecoderWorker::new(name, options, None, copies, batch)?))
            }
            Loaded::Encoder(model) => ModelWorker::Encode(encode::EncoderWorker::new(model)),
            Loaded::Picture(model) => ModelWorker::See(encode::EncoderWorker::new(model)),
        })
    }

    fn is_idle(&self) -> bool {
        match self {
            ModelWorker::Decode(worker) => worker.is_idle(),
            ModelWorker::Encode(worker) => worker.is_idle(),
            ModelWorker::See(worker) => worker.is_idle(),
        }
    }

    /// Cancels requests whose clients have gone, and makes a step; returns how many sentences or texts were finished with it.
    fn step(&mut self, metrics: &Metrics) -> usize {
        let begin = Instant::now();
        match self {
            ModelWorker::Decode(worker) => {
                worker.give_up();
                let (tokens, sentences) = worker.step();
                if tokens > 0 || sentences > 0 {
                    metrics.stepped(tokens, sentences, begin.elapsed());
                }
                sentences
            }
            ModelWorker::Encode(worker) => computed(metrics, begin, worker.step()),
            ModelWorker::See(worker) => computed(metrics, begin, worker.step()),
        }
    }
}

/// Counts a batch of so many texts or pictures, if it has any; returns how many these are.
fn computed(metrics: &Metrics, begin: Instant, inputs: usize) -> usize {
    if inputs > 0 {
        metrics.computed(inputs, begin.elapsed());
    }
    inputs
}
