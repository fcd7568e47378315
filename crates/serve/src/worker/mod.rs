//! The thread that computes: it takes jobs from the queue, lets all that one model has to do share its batches, and answers.
//!
//! Between two steps of decoding it looks for new jobs, and for clients that have gone away: their sentences are given up.

mod rate;
mod translate;

use crate::app::App;
use crate::engine::Engine;
use crate::job::Job;
use crate::model::{Model, ModelPlace, Served};
use rate::Rate;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::mpsc::UnboundedReceiver;
use translate::Desk;

/// Reads the models, tells the server and `ready` about them, and computes until nobody can ask any more.
pub(crate) fn run(
    app: &Arc<App>,
    engine: &Engine,
    places: &[ModelPlace],
    ready: impl FnOnce(&[Served]),
    mut jobs: UnboundedReceiver<Job>,
) -> Result<(), crate::Error> {
    let mut desks = Vec::new();
    let mut models = Vec::new();
    for place in places {
        let (model, copies) = Model::load(engine, place)?;
        let model = Arc::new(model);
        desks.push(Desk::new(Arc::clone(&model), copies, app.settings.batch)?);
        models.push(model);
    }
    let served: Vec<Served> = models.iter().map(|model| model.served()).collect();
    app.set_models(models);
    ready(&served);
    let mut rate = Rate::new();
    let mut leaves = false;
    loop {
        // With nothing to do it sleeps; otherwise it takes what there is and goes on.
        if desks.iter().all(Desk::is_idle) {
            if leaves {
                return Ok(());
            }
            leaves |= jobs.blocking_recv().is_none_or(|job| accept(&mut desks, job));
        }
        while let Ok(job) = jobs.try_recv() {
            leaves |= accept(&mut desks, job);
        }
        for desk in &mut desks {
            desk.give_up();
            let begin = Instant::now();
            let (tokens, sentences) = desk.step();
            if tokens > 0 || sentences > 0 {
                app.metrics.stepped(tokens, sentences, begin.elapsed());
            }
            rate.count(sentences);
        }
        if let Some(sentences) = rate.per_second() {
            app.queue.set_rate(sentences);
        }
    }
}

/// Takes a job; returns whether it is the last.
fn accept(desks: &mut [Desk], job: Job) -> bool {
    match job {
        Job::Decode(decode) => desks[decode.model].decode(decode),
        Job::Inspect(inspect) => desks[inspect.model].inspect(inspect),
        Job::Leave => return true,
    }
    false
}
