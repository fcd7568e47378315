//! From what a person said to settings and tokens: what is open is chosen, by the corpus and by some timed steps.

use crate::corpus::{self, Batches, ExampleBatch};
use crate::learner::Learner;
use crate::settings::{Choice, Draft, Pace, Settings};
use crate::tasks::{Material, Start};
use crate::{Error, Event};
use attentive_tensor::Backend;
use std::sync::Arc;
use std::time::Instant;

/// Steps that are not timed: the first ones ask the system for memory.
const WARM: u64 = 3;
/// Steps that are timed, at least and at most.
const FEWEST: usize = 3;
const MOST: usize = 100;
/// The share of the run's time that timed steps may take, if there are enough of them.
const SHARE: f64 = 0.02;

/// Chooses what is open. It makes the tokens that it needs to time steps; nothing is written.
pub(super) fn choose(
    mut draft: Draft,
    material: &mut dyn Material,
    backend: &Arc<dyn Backend>,
    watch: &mut dyn FnMut(&Event),
) -> Result<Settings, Error> {
    let facts = material.facts(&draft)?;
    let mut sizes = draft.choose_sizes(&facts);
    // Choices that timed steps may change are reported once, after them.
    let mut held =
        if draft.may_shrink() { split_off(&mut sizes, &["preset", "batch_tokens"]) } else { Vec::new() };
    tell(sizes, watch);
    material.hold_out(draft.settings())?;
    if !draft.settings().task.reads_pictures() {
        let is_trained = draft.settings().tokenizer.is_none() && draft.settings().from.is_none();
        let what = if is_trained { "training the tokenizer" } else { "reading the tokenizer" };
        watch(&Event::Preparing(what));
    }
    material.make_tokens(draft.settings())?;
    tell(draft.choose_epochs(), watch);
    let mut pace = None;
    while draft.needs_pace() {
        let is_timed = draft.settings().minutes.is_some();
        let what = if is_timed { "timing a few training steps" } else { "counting the steps of an epoch" };
        watch(&Event::Preparing(what));
        let measured = measure(&draft, material, backend)?;
        pace = Some(measured);
        match draft.shrink(&facts, &measured) {
            Some(choices) => {
                held.retain(|old| choices.iter().all(|new| new.name != old.name));
                held.extend(choices);
            }
            None => break,
        }
    }
    tell(held, watch);
    tell(draft.choose_course(&facts, pace.as_ref())?, watch);
    Ok(draft.into_settings())
}

/// Takes the choices of these names out of a list.
fn split_off(choices: &mut Vec<Choice>, names: &[&str]) -> Vec<Choice> {
    choices.extract_if(.., |choice| names.contains(&choice.name)).collect()
}

fn tell(choices: Vec<Choice>, watch: &mut dyn FnMut(&Event)) {
    choices.into_iter().for_each(|choice| watch(&Event::Chosen(choice)));
}

/// How fast steps are made. Where the time is limited, real steps are timed, of a model that is thrown away.
fn measure(draft: &Draft, material: &dyn Material, backend: &Arc<dyn Backend>) -> Result<Pace, Error> {
    let settings = draft.settings();
    let (examples, _) = material.examples(settings)?;
    let mut batches = Batches::new(examples, settings.batching())?;
    let mut taken = 0.0;
    let mut next = || {
        taken += 1.0;
        batches.by_ref().take(settings.accumulate).collect::<Result<Vec<_>, _>>()
    };
    let seconds = match settings.minutes {
        Some(minutes) => {
            let task = material.task(backend, settings, Start::Trial)?;
            let mut learner = Learner::new(backend, task, settings);
            let mut mine = || {
                let mut batches = next()?;
                batches.truncate(draft.batches_of_a_rank());
                Ok(batches)
            };
            Some(time(&mut learner, settings, 60.0 * minutes * SHARE, &mut mine)?)
        }
        None => next().map(|_| None)?,
    };
    Ok(Pace { seconds, epoch: taken / batches.epochs() })
}

/// The time that a step takes: the median of some, so that a few that something held up do not count.
fn time(
    learner: &mut Learner,
    settings: &Settings,
    most: f64,
    next: &mut dyn FnMut() -> Result<Vec<ExampleBatch>, corpus::Error>,
) -> Result<f64, Error> {
    let mut times: Vec<f64> = Vec::new();
    for step in 1.. {
        let batches = next()?;
        let begin = Instant::now();
        learner.step(settings, step, 1e-6, &batches, false)?;
        // Waits for the device.
        learner.loss();
        if step > WARM {
            times.push(begin.elapsed().as_secs_f64());
        }
        let is_long = times.len() >= FEWEST && times.iter().sum::<f64>() > most;
        if is_long || times.len() == MOST {
            break;
        }
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}
