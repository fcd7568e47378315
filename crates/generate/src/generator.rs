//! Many sentences at once: finished ones leave, waiting ones take their place, results come back in order.

use crate::error::Error;
use crate::filter::Filter;
use crate::hypothesis::Hypothesis;
use crate::lane::{Lane, Waiting, lock};
use crate::options::Options;
use crate::request::Request;
use crate::rules::Rules;
use crate::sampler::Sampler;
use crate::search::{OnToken, Sentence, Written};
use crate::seq2seq::Seq2Seq;
use crate::stop::Stop;
use attentive_tensor::Threads;
use std::cmp::Reverse;
use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Decodes sentences, [`Options::batch`] of them at a time.
///
/// [`Generator::generate`] is enough for most callers. A caller that gets sentences one by one, and wants each answer as soon as
/// possible, uses [`Generator::push`], [`Generator::step`] and [`Generator::pop`].
pub struct Generator {
    lanes: Vec<Lane>,
    threads: Threads,
    /// The rules of sentences that have none of their own.
    pub(crate) rules: Arc<Rules>,
    on_token: OnToken,
    /// Sentences that were pushed and not read yet.
    waiting: Waiting,
    /// The results of all sentences, beginning with the next one that is to be handed out.
    results: VecDeque<Outcome>,
    /// The number of the next sentence.
    next: u64,
}

/// What became of a sentence.
enum Outcome {
    /// Nothing yet.
    Open,
    Done(Vec<Hypothesis>),
    /// It was handed out or given up before those that came earlier.
    Gone,
}

impl Generator {
    /// How many batches of sentences a caller should keep in the generator. Sentences that are done wait for earlier ones, and must not
    /// keep others from beginning.
    pub const QUEUED_BATCHES: usize = 8;
    /// How many steps a caller should make before it takes results and adds sentences.
    pub const STEPS_AT_ONCE: usize = 32;

    /// A generator with nothing to do.
    pub fn new(model: impl Seq2Seq + 'static, options: Options) -> Result<Generator, Error> {
        Generator::with_copies(vec![Box::new(model)], options)
    }

    /// A generator with several copies of a model, each on a thread of its own. They share the sentences that
    /// [`Options::batch`] has room for.
    ///
    /// # Panics
    /// If there are none.
    pub fn with_copies(copies: Vec<Box<dyn Seq2Seq>>, options: Options) -> Result<Generator, Error> {
        assert!(!copies.is_empty(), "at least one copy of a model is needed");
        let rules = Rules::new(options, copies[0].spec())?;
        let threads = Threads::new(copies.len());
        // Wide beams get fewer sentences, or a step would take long and much memory.
        let most = (MOST_BRANCHES / rules.options.beam).max(1);
        let slots = rules.options.batch.div_ceil(copies.len()).min(most);
        Ok(Generator {
            lanes: copies.into_iter().map(|model| Lane::new(model, slots)).collect(),
            threads,
            rules: Arc::new(rules),
            on_token: Box::new(|_| {}),
            waiting: VecDeque::new(),
            results: VecDeque::new(),
            next: 0,
        })
    }

    /// One more filter, behind those of the options.
    pub fn with_filter(mut self, filter: impl Filter + 'static) -> Generator {
        Arc::make_mut(&mut self.rules).filters.push(Arc::new(filter));
        self
    }

    /// One more rule that ends sequences.
    pub fn with_stop(mut self, stop: impl Stop + 'static) -> Generator {
        Arc::make_mut(&mut self.rules).stops.push(Arc::new(stop));
        self
    }

    /// Another sampler than that of the options.
    pub fn with_sampler(mut self, sampler: impl Sampler + 'static) -> Generator {
        Arc::make_mut(&mut self.rules).sampler = Some(Arc::new(sampler));
        self
    }

    /// Something that is called for every token as soon as it is written, on any thread.
    pub fn on_token(mut self, on_token: impl FnMut(&Written) + Send + 'static) -> Generator {
        self.on_token = Box::new(on_token);
        self
    }

    /// The options.
    pub fn options(&self) -> &Options {
        &self.rules.options
    }

    /// The model.
    pub fn model(&self) -> &dyn Seq2Seq {
        &*self.lanes[0].model
    }

    /// Decodes sources as they are asked for; the results come in the order of the sources. What cannot be decoded gives an
    /// error in its place. Only a few times as many are read ahead as are decoded together. What was pushed before is
    /// forgotten.
    pub fn generate<I>(&mut self, sources: I) -> Results<'_, I::IntoIter>
    where
        I: IntoIterator<Item: Into<Request>>,
    {
        self.clear();
        Results { generator: self, sources: sources.into_iter(), refused: VecDeque::new(), next: 0 }
    }

    /// Forgets all sentences, and counts from the first again.
    pub fn clear(&mut self) {
        for lane in &mut self.lanes {
            lane.give_up(None);
            lane.done.clear();
        }
        self.waiting.clear();
        self.results.clear();
        self.next = 0;
    }

    /// Adds a sentence behind those that are there; returns its number, counted from the first.
    pub fn push(&mut self, request: impl Into<Request>) -> Result<u64, Error> {
        let sentence = self.sentence(request.into(), &self.rules.options)?;
        Ok(self.enqueue(sentence, Arc::clone(&self.rules)))
    }

    /// Adds a sentence that is decoded with options of its own, of which [`Options::batch`] has no meaning, and without the
    /// filters, stopping rules and sampler that were added to the generator. Its draws follow from the seed and `stream`,
    /// and not from its place among the sentences.
    pub fn push_with(
        &mut self,
        request: impl Into<Request>,
        options: Options,
        stream: u64,
    ) -> Result<u64, Error> {
        self.push_until(request, options, stream, Vec::new())
    }

    /// What [`Generator::push_with`] does, for a sentence with stopping rules of its own.
    pub fn push_until(
        &mut self,
        request: impl Into<Request>,
        options: Options,
        stream: u64,
        stops: Vec<Arc<dyn Stop>>,
    ) -> Result<u64, Error> {
        let rules = Rules { stops, ..Rules::new(options, self.rules.spec)? };
        let sentence = Sentence { stream, ..self.sentence(request.into(), &rules.options)? };
        Ok(self.enqueue(sentence, Arc::new(rules)))
    }

    fn enqueue(&mut self, sentence: Sentence, rules: Arc<Rules>) -> u64 {
        let number = sentence.number;
        self.next += 1;
        self.waiting.push_back((sentence, rules));
        self.results.push_back(Outcome::Open);
        number
    }

    /// Gives up a sentence, wherever it is. One that is gone already stays so.
    pub fn cancel(&mut self, number: u64) {
        self.waiting.retain(|(sentence, _)| sentence.number != number);
        self.lanes.iter_mut().for_each(|lane| lane.give_up(Some(number)));
        self.replace(number, Outcome::Gone);
        self.forget();
    }

    /// How many sentences are in here: waiting, being decoded, or finished and not handed out.
    pub fn len(&self) -> usize {
        self.results.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.results.is_empty()
    }

    /// Says that no further sentence is to be expected: the last that wait, as many as are decoded at once, begin the longest
    /// first, so that all are done at about the same time. Their results do not change, nor does the order in which they are
    /// handed out.
    pub fn expect_no_more(&mut self) {
        let last = self.waiting.len().saturating_sub(self.rules.options.batch);
        self.waiting.make_contiguous()[last..].sort_by_key(|(sentence, _)| Reverse(sentence.source.len()));
    }

    /// Writes one token of every sentence that is being decoded. Waiting ones take free places first.
    pub fn step(&mut self) {
        self.steps(1);
    }

    /// Makes `count` steps, or fewer if there is not enough to do or they take long. That is faster than single steps, because threads
    /// wait for each other only at the end. A thread that finishes early makes further steps, at most as many as it was given.
    pub fn steps(&mut self, count: usize) {
        let mut on_token = std::mem::replace(&mut self.on_token, Box::new(|_| {}));
        self.run(count, &mut *on_token);
        self.on_token = on_token;
    }

    /// [`Generator::step`], with something else that is called for every token.
    pub fn step_with(&mut self, on_token: &mut (dyn FnMut(&Written) + Send)) {
        self.run(1, on_token);
    }

    fn run(&mut self, steps: usize, on_token: &mut (dyn FnMut(&Written) + Send)) {
        let taken: usize = self.lanes.iter().map(Lane::taken).sum();
        // Where there are few sentences, no lane takes those that another one has time for.
        let most = (taken + self.waiting.len()).div_ceil(self.lanes.len());
        let (lanes, waiting, on_token) =
            (self.lanes.len(), Mutex::new(&mut self.waiting), Mutex::new(on_token));
        let behind = AtomicUsize::new(lanes);
        let begin = Instant::now();
        // Whether one more step like those that were made is done in time.
        let in_time = |made: usize| made == 0 || begin.elapsed() / made as u32 * (made as u32 + 1) < LONGEST;
        self.threads.for_pieces(&mut self.lanes, 1, |_, lane| {
            let mut tell = |written: &Written| lock(&on_token)(written);
            let mut step = || lane[0].step(&waiting, most, lanes, &mut tell);
            let busy = (0..steps).all(|made| in_time(made) && step());
            behind.fetch_sub(1, Relaxed);
            let _ =
                busy && (1..steps).all(|more| behind.load(Relaxed) > 0 && in_time(steps + more) && step());
        });
        for lane in 0..self.lanes.len() {
            for (number, results) in std::mem::take(&mut self.lanes[lane].done) {
                self.replace(number, Outcome::Done(results));
            }
        }
    }

    /// The results of the next sentence in order, best first, if they are there.
    pub fn pop(&mut self) -> Option<Vec<Hypothesis>> {
        match self.results.pop_front_if(|front| matches!(front, Outcome::Done(_)))? {
            Outcome::Done(results) => {
                self.forget();
                Some(results)
            }
            Outcome::Open | Outcome::Gone => None,
        }
    }

    /// The results of one sentence, best first, if they are there, though earlier ones may not be.
    pub fn take(&mut self, number: u64) -> Option<Vec<Hypothesis>> {
        let place = self.place(number)?;
        let outcome = &mut self.results[place];
        match std::mem::replace(outcome, Outcome::Gone) {
            Outcome::Done(results) => {
                self.forget();
                Some(results)
            }
            other => {
                *outcome = other;
                None
            }
        }
    }

    /// Where the outcome of a sentence is, if it is not forgotten.
    fn place(&self, number: u64) -> Option<usize> {
        let forgotten = self.next - self.results.len() as u64;
        number.checked_sub(forgotten).map(|place| place as usize).filter(|&place| place < self.results.len())
    }

    fn replace(&mut self, number: u64, outcome: Outcome) {
        if let Some(place) = self.place(number) {
            self.results[place] = outcome;
        }
    }

    /// Forgets the sentences in front that are gone.
    fn forget(&mut self) {
        while self.results.pop_front_if(|front| matches!(front, Outcome::Gone)).is_some() {}
    }

    fn sentence(&self, request: Request, options: &Options) -> Result<Sentence, Error> {
        let max_length = request.check(options, &self.rules.spec)?;
        let Request { source, mut prefix } = request;
        // What every target begins with stands before what this one begins with.
        if let (Some(bos), Some(first)) = (options.forced_bos, prefix.first())
            && *first != bos
        {
            prefix.insert(0, bos);
        }
        Ok(Sentence { number: self.next, stream: self.next, source, prefix, max_length })
    }
}

/// The most hypotheses that a copy of a model follows in one step, if not for a single sentence.
const MOST_BRANCHES: usize = 2048;
/// How long several steps may take: whoever wants to stop does not wait for the rest.
const LONGEST: Duration = Duration::from_millis(600);

/// The results of [`Generator::generate`].
pub struct Results<'a, I> {
    generator: &'a mut Generator,
    sources: I,
    /// What cannot be decoded, by its place among the sources.
    refused: VecDeque<(u64, Error)>,
    /// The place of the next result.
    next: u64,
}

impl<I: Iterator<Item: Into<Request>>> Iterator for Results<'_, I> {
    type Item = Result<Vec<Hypothesis>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if self.refused.front().is_some_and(|(place, _)| *place == self.next) {
                self.next += 1;
                return self.refused.pop_front().map(|(_, error)| Err(error));
            }
            if let Some(results) = self.generator.pop() {
                self.next += 1;
                return Some(Ok(results));
            }
            self.fill();
            if self.generator.is_empty() && self.refused.is_empty() {
                return None;
            }
            self.generator.steps(Generator::STEPS_AT_ONCE);
        }
    }
}

impl<I: Iterator<Item: Into<Request>>> Results<'_, I> {
    /// Keeps more sentences in the generator than it decodes at once.
    fn fill(&mut self) {
        let enough = Generator::QUEUED_BATCHES * self.generator.options().batch;
        while self.generator.len() + self.refused.len() < enough {
            let Some(source) = self.sources.next() else {
                self.generator.expect_no_more();
                return;
            };
            let place = self.next + (self.generator.len() + self.refused.len()) as u64;
            if let Err(error) = self.generator.push(source) {
                self.refused.push_back((place, error));
            }
        }
    }
}

impl fmt::Debug for Generator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let spec = self.model().spec();
        f.debug_struct("Generator")
            .field("model", &spec)
            .field("options", self.options())
            .finish_non_exhaustive()
    }
}
