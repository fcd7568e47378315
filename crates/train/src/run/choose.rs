//! From what a person said to settings and tokens: what is open is chosen, by the corpus and by some timed steps.

use crate::corpus::{self, Corpus, PairBatch};
use crate::learner::Learner;
use crate::settings::{Choice, Draft, Facts, Pace, Settings};
use crate::vocabulary::{self, Vocabulary};
use crate::{Error, Event};
use attentive_tensor::Backend;
use attentive_text::tokenizer::Side;
use std::sync::Arc;
use std::time::Instant;

/// Steps that are not timed: the first ones ask the system for memory.
const WARM: u64 = 3;
/// Steps that are timed, at least and at most.
const FEWEST: usize = 3;
const MOST: usize = 30;
/// The share of the run's time that timed steps may take, if there are enough of them.
const SHARE: f64 = 0.02;

/// What a run begins with once everything is chosen.
pub(super) struct Chosen {
    pub(super) settings: Settings,
    pub(super) corpus: Arc<Corpus>,
    pub(super) validation: Option<Corpus>,
}

/// Chooses what is open, and returns the tokenizer, which it needs to time steps. Nothing is written.
pub(super) fn choose(
    mut draft: Draft,
    corpus: Corpus,
    validation: Option<Corpus>,
    backend: &Arc<dyn Backend>,
    watch: &mut dyn FnMut(&Event),
) -> Result<(Chosen, Vocabulary), Error> {
    let facts = Facts {
        pairs: corpus.len(),
        bytes: corpus.size().bytes,
        characters: if draft.chooses_vocabulary() { vocabulary::characters(&corpus)? } else { 0 },
        validation_pairs: validation.as_ref().map_or(0, Corpus::len),
    };
    let mut sizes = draft.choose_sizes(&facts);
    // What timed steps may change is told once, behind them.
    let mut held =
        if draft.may_shrink() { split_off(&mut sizes, &["preset", "batch_tokens"]) } else { Vec::new() };
    tell(sizes, watch);
    let (corpus, validation) = hold_out(corpus, validation, draft.settings())?;
    watch(&Event::Preparing("training the tokenizer"));
    let vocabulary = Vocabulary::make(draft.settings(), &corpus)?;
    let mut pace = None;
    while draft.needs_pace() {
        let is_timed = draft.settings().minutes.is_some();
        let what = if is_timed { "timing a few training steps" } else { "counting the steps of an epoch" };
        watch(&Event::Preparing(what));
        let measured = measure(draft.settings(), &corpus, &vocabulary, backend)?;
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
    Ok((Chosen { settings: draft.into_settings(), corpus, validation }, vocabulary))
}

/// Takes the choices of these names out of a list.
fn split_off(choices: &mut Vec<Choice>, names: &[&str]) -> Vec<Choice> {
    choices.extract_if(.., |choice| names.contains(&choice.name)).collect()
}

fn tell(choices: Vec<Choice>, watch: &mut dyn FnMut(&Event)) {
    choices.into_iter().for_each(|choice| watch(&Event::Chosen(choice)));
}

/// Separates the pairs that are held out, if there are to be any.
pub(super) fn hold_out(
    corpus: Corpus,
    validation: Option<Corpus>,
    settings: &Settings,
) -> Result<(Arc<Corpus>, Option<Corpus>), Error> {
    let (pairs, held) = (corpus.len(), settings.hold_out);
    if held == 0 {
        return Ok((Arc::new(corpus), validation));
    }
    if held >= pairs {
        let problem = format!("cannot hold out {held} of {pairs} pairs: set a smaller number");
        return Err(Error::setting("hold_out", problem));
    }
    let (corpus, held) = corpus.hold_out(held, settings.seed);
    Ok((Arc::new(corpus), Some(held)))
}

/// How fast steps are made. Where the time is limited, real steps are timed, of a model that is thrown away.
fn measure(
    settings: &Settings,
    corpus: &Arc<Corpus>,
    vocabulary: &Vocabulary,
    backend: &Arc<dyn Backend>,
) -> Result<Pace, Error> {
    let encoder = |side| vocabulary.encoder(side, settings.bpe_dropout);
    let mut batches = corpus.batches(settings.batching(), encoder(Side::Source), encoder(Side::Target))?;
    let mut taken = 0.0;
    let mut next = || {
        taken += 1.0;
        batches.by_ref().take(settings.accumulate).collect::<Result<Vec<_>, _>>()
    };
    let seconds = match settings.minutes {
        Some(minutes) => {
            let config = vocabulary.apply(settings.model(vocabulary.size())?);
            let mut learner = Learner::new(backend, &config, settings)?;
            Some(time(&mut learner, settings, 60.0 * minutes * SHARE, &mut next)?)
        }
        None => next().map(|_| None)?,
    };
    Ok(Pace { seconds, epoch: taken / batches.epochs() })
}

/// The mean time of some steps.
fn time(
    learner: &mut Learner,
    settings: &Settings,
    most: f64,
    next: &mut dyn FnMut() -> Result<Vec<PairBatch>, corpus::Error>,
) -> Result<f64, Error> {
    let mut times: Vec<f64> = Vec::new();
    for step in 1.. {
        let batches = next()?;
        let begin = Instant::now();
        learner.step(settings, step, 1e-6, &batches, false);
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
    Ok(times.iter().sum::<f64>() / times.len() as f64)
}
