//! The thread that computes: it takes jobs from the queue, lets all that one model has to do share its batches, and answers.
//!
//! Between two steps of decoding it looks for new jobs, and for clients that have gone away: their sentences are given up.

use crate::app::App;
use crate::decoded::{Decoded, Found};
use crate::model::{Model, ModelPlace, Served};
use crate::queue::Places;
use crate::refusal::Refusal;
use attentive_generate::{
    AttentionMatrix, Codec, Generator, HeadVectors, Hypothesis, Look, Options, Request, Seq2Seq,
};
use attentive_tensor::Backend;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{Sender, UnboundedReceiver};
use tokio::sync::oneshot;

/// Something to be computed.
pub(crate) enum Job {
    Decode(Decode),
    Inspect(Inspect),
    /// No more will come.
    Leave,
}

/// Sentences that belong to one text.
pub(crate) struct Decode {
    /// The place of the model among all.
    pub model: usize,
    pub sentences: Vec<Sentence>,
    /// Who wants to see how far they are. Whoever reads too slowly misses drafts: the next one has all that they had.
    pub progress: Option<Sender<Draft>>,
    pub reply: oneshot::Sender<Result<Decoded, Refusal>>,
    pub places: Places,
}

/// One sentence, and how to decode it.
pub(crate) struct Sentence {
    pub request: Request,
    pub options: Options,
    /// What numbers its draws.
    pub stream: u64,
    /// Whether its words are to be aligned.
    pub align: bool,
    /// How many of the most probable tokens are wanted in the place of each token.
    pub top: usize,
}

/// What has been written of a sentence.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Draft {
    /// Which of the sentences.
    pub place: usize,
    pub tokens: Vec<u32>,
    /// How many of the tokens cannot change any more.
    pub settled: usize,
    /// Whether it is the last.
    pub finished: bool,
}

/// A look into a sentence.
pub(crate) struct Inspect {
    pub model: usize,
    pub source: Vec<u32>,
    pub target: Vec<u32>,
    pub looks: Vec<Look>,
    pub vectors: Option<Look>,
    pub reply: oneshot::Sender<Result<Inspected, Refusal>>,
    pub places: Places,
}

/// What was seen.
#[derive(Debug)]
pub(crate) struct Inspected {
    pub weights: Vec<AttentionMatrix>,
    pub vectors: Option<HeadVectors>,
}

/// What computes.
#[derive(Debug, Clone)]
pub struct Engine {
    /// On each of them a copy of every model decodes; they share their memory.
    pub backends: Vec<Arc<dyn Backend>>,
    /// Whether weights are in int8; without a word those are that a folder has stored so.
    pub int8: Option<bool>,
}

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
        let batch = app.settings.batch * engine.backends.len();
        let options = Options { batch, ..model.options.clone() };
        let generator = Generator::with_copies(copies, options)
            .map_err(|source| crate::Error::Model { name: model.name.clone(), source })?;
        let model = Arc::new(model);
        desks.push(Desk {
            model: Arc::clone(&model),
            generator,
            jobs: HashMap::new(),
            sentences: HashMap::new(),
        });
        models.push(model);
    }
    let served: Vec<Served> = models.iter().map(|model| model.served()).collect();
    app.set_models(models);
    ready(&served);
    let mut rate = Rate::new();
    let mut leaves = false;
    loop {
        // With nothing to do it sleeps; otherwise it takes what there is and goes on.
        if desks.iter().all(|desk| desk.jobs.is_empty()) {
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

/// A model and what it has to do.
struct Desk {
    model: Arc<Model>,
    generator: Generator<Box<dyn Seq2Seq>>,
    /// By the number of their first sentence.
    jobs: HashMap<u64, Open>,
    /// Which job a sentence belongs to, and its place there, of those that are watched.
    sentences: HashMap<u64, (u64, usize)>,
}

/// A job that is being done.
struct Open {
    job: Decode,
    /// The numbers of its sentences, and what came of each.
    results: Vec<(u64, Option<Outcome>)>,
}

/// The translations of a sentence.
type Outcome = Result<Vec<Found>, Refusal>;

impl Desk {
    fn decode(&mut self, mut job: Decode) {
        let mut results = Vec::with_capacity(job.sentences.len());
        for sentence in &mut job.sentences {
            let (request, options) = (sentence.request.clone(), std::mem::take(&mut sentence.options));
            match self.generator.push_with(request, options, sentence.stream) {
                Ok(number) => results.push((number, None)),
                Err(error) => {
                    results.iter().for_each(|(number, _)| self.generator.cancel(*number));
                    let _ = job.reply.send(Err(error.into()));
                    return;
                }
            }
        }
        let Some(&(first, _)) = results.first() else {
            let _ = job.reply.send(Ok(Decoded::default()));
            return;
        };
        if job.progress.is_some() {
            self.sentences
                .extend(results.iter().enumerate().map(|(place, (number, _))| (*number, (first, place))));
        }
        self.jobs.insert(first, Open { job, results });
    }

    /// Looks into a sentence. The weights are computed here, not where they are waited for, because the backend computes them, and
    /// only one thread computes.
    fn inspect(&self, Inspect { source, target, looks, vectors, reply, places, .. }: Inspect) {
        if reply.is_closed() {
            return;
        }
        let inspection = self.generator.model().inspect(&source, &target);
        let weights = looks.into_iter().map(|look| inspection.weights(look)).collect::<Result<Vec<_>, _>>();
        let vectors = vectors.map(|look| inspection.vectors(look)).transpose();
        let seen = weights.and_then(|weights| Ok(Inspected { weights, vectors: vectors? }));
        drop(places);
        let _ = reply.send(seen.map_err(Refusal::from));
    }

    /// Gives up what nobody waits for any more.
    fn give_up(&mut self) {
        let gone = self.jobs.extract_if(|_, open| open.job.reply.is_closed());
        for (_, open) in gone {
            for (number, result) in open.results {
                self.sentences.remove(&number);
                if result.is_none() {
                    self.generator.cancel(number);
                }
            }
        }
    }

    /// Writes a token of every sentence; returns how many tokens and sentences were finished with it.
    fn step(&mut self) -> (usize, usize) {
        let (jobs, sentences) = (&self.jobs, &self.sentences);
        let mut tokens = 0;
        self.generator.step_with(&mut |written| {
            tokens += 1;
            // Draws go their own ways; the first is shown.
            if let Some(&(job, place)) = sentences.get(&written.sentence)
                && written.draw == 0
                && let Some(Open { job: Decode { progress: Some(progress), .. }, results }) = jobs.get(&job)
                // The last draft of each sentence must find room.
                && progress.capacity() > results.len()
            {
                let (tokens, settled) = (written.tokens.to_vec(), written.settled());
                let _ = progress.try_send(Draft { place, tokens, settled, finished: false });
            }
        });
        let mut finished = 0;
        let mut done = Vec::new();
        for (first, open) in &mut self.jobs {
            for (place, (number, result)) in open.results.iter_mut().enumerate() {
                if result.is_some() {
                    continue;
                }
                let Some(found) = self.generator.take(*number) else { continue };
                finished += 1;
                if let Some(progress) = &open.job.progress {
                    let tokens = found.first().map_or(Vec::new(), |best| best.tokens.clone());
                    let settled = tokens.len();
                    let _ = progress.try_send(Draft { place, tokens, settled, finished: true });
                }
                let sentence = &open.job.sentences[place];
                *result = Some(look_back(self.generator.model(), &self.model.codec, sentence, found));
            }
            if open.results.iter().all(|(_, result)| result.is_some()) {
                done.push(*first);
            }
        }
        for first in done {
            if let Some(open) = self.jobs.remove(&first) {
                self.answer(open);
            }
        }
        (tokens, finished)
    }

    fn answer(&mut self, Open { job, results }: Open) {
        for (number, _) in &results {
            self.sentences.remove(number);
        }
        let found = results.into_iter().filter_map(|(_, result)| result).collect::<Result<Vec<_>, _>>();
        // Whoever reads the answer and asks again at once must find the places free.
        drop(job.places);
        let _ = job.reply.send(found.map(Decoded));
    }
}

/// The translations of a sentence, with all else that is wanted of them.
///
/// Only the model knows the weights that alignments are made from, and how probable other tokens were, and only this thread has the
/// model. Both are computed for each sentence as soon as it is finished, so that nobody waits for all sentences of a document at
/// once. Alignments are made here too: that takes little time beside the weights, which need much more memory.
fn look_back(
    steps: &impl Seq2Seq,
    codec: &Codec,
    sentence: &Sentence,
    hypotheses: Vec<Hypothesis>,
) -> Result<Vec<Found>, Refusal> {
    let source = &sentence.request.source[..];
    let pairs: Vec<(&[u32], &[u32])> = hypotheses.iter().map(|one| (source, &one.tokens[..])).collect();
    let mut links = vec![Vec::new(); hypotheses.len()];
    if sentence.align {
        let matrices = steps.attention(&pairs, Look::for_alignment(&steps.spec()))?;
        let align = |(matrix, (source, target)): (&AttentionMatrix, &(&[u32], &[u32]))| {
            codec.align(matrix, source, target)
        };
        links = matrices.iter().zip(&pairs).map(align).collect();
    }
    let mut top = vec![Vec::new(); hypotheses.len()];
    if sentence.top > 0 {
        top = steps.top(&pairs, sentence.top);
    }
    let found = hypotheses.into_iter().zip(links).zip(top);
    Ok(found.map(|((hypothesis, links), top)| Found { hypothesis, links, top }).collect())
}

/// How many sentences a second are finished.
struct Rate {
    since: Instant,
    sentences: usize,
}

impl Rate {
    fn new() -> Rate {
        Rate { since: Instant::now(), sentences: 0 }
    }

    fn count(&mut self, sentences: usize) {
        self.sentences += sentences;
    }

    /// The rate, whenever a second has passed.
    fn per_second(&mut self) -> Option<u64> {
        let passed = self.since.elapsed();
        if passed < Duration::from_secs(1) {
            return None;
        }
        let rate = (self.sentences as f64 / passed.as_secs_f64()).ceil() as u64;
        *self = Rate::new();
        Some(rate)
    }
}
