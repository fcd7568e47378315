//! Continuous batching: finished sentences leave the batch, waiting ones take their slots, and results come back in order.

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
    /// The rules of sentences that were pushed without rules of their own.
    pub(crate) rules: Arc<Rules>,
    on_token: OnToken,
    /// Sentences that were pushed and that no lane has taken yet.
    waiting: Waiting,
    /// The results of all sentences, from the next one that [`Generator::pop`] returns.
    results: VecDeque<Outcome>,
    /// The number of the next sentence.
    next: u64,
}

/// The state of a sentence.
enum Outcome {
    /// It is waiting or being decoded.
    Open,
    Done(Vec<Hypothesis>),
    /// It was taken or cancelled, but an earlier sentence is still there.
    Gone,
}

impl Generator {
    /// How many batches of sentences a caller should keep in the generator. Finished sentences wait for earlier ones, and must not keep the
    /// batch from being full.
    pub const QUEUED_BATCHES: usize = 8;
    /// How many steps a caller should make before it takes results and adds sentences.
    pub const STEPS_AT_ONCE: usize = 32;

    /// A generator with nothing to do.
    pub fn new(model: impl Seq2Seq + 'static, options: Options) -> Result<Generator, Error> {
        Generator::with_copies(vec![Box::new(model)], options)
    }

    /// A generator with several copies of a model, each on a thread of its own. The copies share a batch of [`Options::batch`] sentences.
    ///
    /// # Panics
    /// If there are no copies.
    pub fn with_copies(copies: Vec<Box<dyn Seq2Seq>>, options: Options) -> Result<Generator, Error> {
        assert!(!copies.is_empty(), "at least one copy of a model is needed");
        let rules = Rules::new(options, copies[0].spec())?;
        let threads = Threads::new(copies.len());
        // Fewer sentences with wide beams: otherwise a step would take long and need much memory.
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

    /// Adds a filter after those of the options.
    pub fn with_filter(mut self, filter: impl Filter + 'static) -> Generator {
        Arc::make_mut(&mut self.rules).filters.push(Arc::new(filter));
        self
    }

    /// Adds a rule that ends sequences.
    pub fn with_stop(mut self, stop: impl Stop + 'static) -> Generator {
        Arc::make_mut(&mut self.rules).stops.push(Arc::new(stop));
        self
    }

    /// Replaces the sampler of the options.
    pub fn with_sampler(mut self, sampler: impl Sampler + 'static) -> Generator {
        Arc::make_mut(&mut self.rules).sampler = Some(Arc::new(sampler));
        self
    }

    /// Sets a function that is called for every token as soon as it is written, on any thread.
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

    /// Decodes sources lazily; the results come in the order of the sources. A source that cannot be decoded gives an error. The iterator
    /// is read at most [`Generator::QUEUED_BATCHES`] batches ahead. Sentences that were pushed before are dropped.
    pub fn generate<I>(&mut self, sources: I) -> Results<'_, I::IntoIter>
    where
        I: IntoIterator<Item: Into<Request>>,
    {
        self.clear();
        Results { generator: self, sources: sources.into_iter(), refused: VecDeque::new(), next: 0 }
    }

    /// Drops all sentences. The next one has the number 0.
    pub fn clear(&mut self) {
        for lane in &mut self.lanes {
            lane.give_up(None);
            lane.done.clear();
        }
        self.waiting.clear();
        self.results.clear();
        self.next = 0;
    }

    /// Adds a sentence to the queue, and returns its number, counted from 0.
    pub fn push(&mut self, request: impl Into<Request>) -> Result<u64, Error> {
        let sentence = self.sentence(request.into(), &self.rules.options)?;
        Ok(self.enqueue(sentence, Arc::clone(&self.rules)))
    }

    /// [`Generator::push`] with options of its own, of which [`Options::batch`] is ignored, and without the filters, stopping rules and
    /// sampler that were added to the generator. Samples follow from the seed and `stream`, not from the number of the sentence.
    pub fn push_with(
        &mut self,
        request: impl Into<Request>,
        options: Options,
        stream: u64,
    ) -> Result<u64, Error> {
        self.push_until(request, options, stream, Vec::new())
    }

    /// [`Generator::push_with`] with stopping rules of its own.
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

    /// Cancels a sentence, waiting, being decoded or finished. Does nothing if it is no longer there.
    pub fn cancel(&mut self, number: u64) {
        self.waiting.retain(|(sentence, _)| sentence.number != number);
        self.lanes.iter_mut().for_each(|lane| lane.give_up(Some(number)));
        self.replace(number, Outcome::Gone);
        self.forget();
    }

    /// The number of sentences that are waiting, being decoded, or finished and not yet taken.
    pub fn len(&self) -> usize {
        self.results.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.results.is_empty()
    }

    /// Tells the generator that the caller will push no further sentence. Of the last batch that waits, the longest sentences then begin
    /// first, so that all threads finish at about the same time. Results and their order do not change.
    pub fn expect_no_more(&mut self) {
        let last = self.waiting.len().saturating_sub(self.rules.options.batch);
        self.waiting.make_contiguous()[last..].sort_by_key(|(sentence, _)| Reverse(sentence.source.len()));
    }

    /// Makes one step: waiting sentences take free slots, then every running sentence gets a token.
    pub fn step(&mut self) {
        self.steps(1);
    }

    /// Makes `count` steps, or fewer if sentences run out or the steps take long. That is faster than single steps, because threads
    /// wait for each other only at the end. A thread that finishes early makes further steps, at most as many as it was given.
    pub fn steps(&mut self, count: usize) {
        let mut on_token = std::mem::replace(&mut self.on_token, Box::new(|_| {}));
        self.run(count, &mut *on_token);
        self.on_token = on_token;
    }

    /// [`Generator::step`] with another function that is called for every token.
    pub fn step_with(&mut self, on_token: &mut (dyn FnMut(&Written) + Send)) {
        self.run(1, on_token);
    }

    fn run(&mut self, steps: usize, on_token: &mut (dyn FnMut(&Written) + Send)) {
        let running: usize = self.lanes.iter().map(Lane::running).sum();
        // A lane takes at most its share, so that few sentences are spread over all lanes.
        let most = (running + self.waiting.len()).div_ceil(self.lanes.len());
        let (lanes, waiting, shared_on_token) =
            (self.lanes.len(), Mutex::new(&mut self.waiting), Mutex::new(on_token));
        let behind = AtomicUsize::new(lanes);
        let begin = Instant::now();
        // Whether one more step of average duration ends in time.
        let in_time = |made: usize| made == 0 || begin.elapsed() / made as u32 * (made as u32 + 1) < LONGEST;
        self.threads.for_pieces(&mut self.lanes, 1, |_, lane| {
            let mut on_token = |written: &Written| lock(&shared_on_token)(written);
            let mut step = || lane[0].step(&waiting, most, lanes, &mut on_token);
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

    /// The results of the next sentence in order, best first, if it is finished.
    pub fn pop(&mut self) -> Option<Vec<Hypothesis>> {
        match self.results.pop_front_if(|front| matches!(front, Outcome::Done(_)))? {
            Outcome::Done(results) => {
                self.forget();
                Some(results)
            }
            Outcome::Open | Outcome::Gone => None,
        }
    }

    /// The results of one sentence, best first, if it is finished. Earlier ones may still be running.
    pub fn take(&mut self, number: u64) -> Option<Vec<Hypothesis>> {
        let index = self.index(number)?;
        let outcome = &mut self.results[index];
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

    /// The index of a sentence in `results`, if it is still there.
    fn index(&self, number: u64) -> Option<usize> {
        let first = self.next - self.results.len() as u64;
        number.checked_sub(first).map(|index| index as usize).filter(|&index| index < self.results.len())
    }

    fn replace(&mut self, number: u64, outcome: Outcome) {
        if let Some(index) = self.index(number) {
            self.results[index] = outcome;
        }
    }

    /// Drops the outcomes at the front that are gone.
    fn forget(&mut self) {
        while self.results.pop_front_if(|front| matches!(front, Outcome::Gone)).is_some() {}
    }

    fn sentence(&self, request: Request, options: &Options) -> Result<Sentence, Error> {
        let max_length = request.check(options, &self.rules.spec)?;
        let Request { source, mut prefix } = request;
        // The forced first token precedes the prefix.
        if let (Some(bos), Some(first)) = (options.forced_bos, prefix.first())
            && *first != bos
        {
            prefix.insert(0, bos);
        }
        Ok(Sentence { number: self.next, stream: self.next, source, prefix, max_length })
    }
}

/// The most hypotheses in one step of a copy of a model, unless a single sentence has more.
const MOST_BRANCHES: usize = 2048;
/// How long a call of several steps may take, so that a caller can stop soon.
const LONGEST: Duration = Duration::from_millis(600);

/// The results of [`Generator::generate`].
pub struct Results<'a, I> {
    generator: &'a mut Generator,
    sources: I,
    /// The errors of sources that cannot be decoded, each with the number of its source.
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
    /// Fills the queue of the generator.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attention::{AttentionMatrix, AttentionSelector};
    use crate::inspection::Inspection;
    use crate::options::MaxLength;
    use crate::seq2seq::{Row, Sizes, Spec};
    use attentive_tensor::{Best, Found, TokenLists};

    /// A model for which 16 tokens are probable, none of which ends a target. It counts the rows of each step.
    struct Endless {
        rows: Arc<Mutex<Vec<usize>>>,
        /// How long a step takes.
        time: Duration,
    }

    impl Seq2Seq for Endless {
        fn spec(&self) -> Spec {
            Spec {
                source_vocabulary: 20,
                vocabulary: 20,
                start: 1,
                eos: 0,
                never: None,
                max_source: 9,
                max_target: 99,
                decoder_layers: 1,
                continues: false,
            }
        }

        fn admit(&mut self, _: &[(usize, &[u32])]) {}

        fn step(&mut self, rows: &[Row]) {
            std::thread::sleep(self.time);
            lock(&self.rows).push(rows.len());
        }

        fn best(&mut self, count: usize, sums: bool, apart: TokenLists) -> Found {
            let rows = *lock(&self.rows).last().unwrap();
            let best = |rank| if rank < 16 { Best { score: -1.0, token: rank + 1 } } else { Best::NONE };
            let row: Vec<Best> = (0..count as u32).map(best).collect();
            let log_sums = vec![0.0; if sums { rows } else { 0 }];
            Found { best: row.repeat(rows), log_sums, apart: vec![-9.0; apart.tokens.len()] }
        }

        fn release(&mut self, _: usize) {}

        fn logits(&mut self) -> &mut [f32] {
            unimplemented!()
        }

        fn attention(
            &self,
            _: &[(&[u32], &[u32])],
            _: AttentionSelector,
        ) -> Result<Vec<AttentionMatrix>, Error> {
            unimplemented!()
        }

        fn top(&self, _: &[(&[u32], &[u32])], _: usize) -> Vec<Vec<Vec<Best>>> {
            unimplemented!()
        }

        fn inspect(&self, _: &[u32], _: &[u32]) -> Inspection {
            unimplemented!()
        }

        fn sizes(&self) -> Sizes {
            unimplemented!()
        }
    }

    /// A generator in which many sentences wait, and the rows of each step that it makes.
    fn crowded(beam: usize, time: Duration) -> (Generator, Arc<Mutex<Vec<usize>>>) {
        let rows = Arc::new(Mutex::new(Vec::new()));
        let model = Endless { rows: Arc::clone(&rows), time };
        let options = Options { beam, max_length: MaxLength::Tokens(99), ..Options::default() };
        let mut generator = Generator::new(model, options).unwrap();
        for _ in 0..100 {
            generator.push(vec![1, 0]).unwrap();
        }
        (generator, rows)
    }

    #[test]
    fn a_step_of_wide_beams_has_fewer_sentences() {
        for (beam, expected) in
            [(4, [32, 4 * 32, 4 * 32, 4 * 32]), (256, [8, 16 * 8, MOST_BRANCHES, MOST_BRANCHES])]
        {
            let (mut generator, rows) = crowded(beam, Duration::ZERO);
            (0..4).for_each(|_| generator.step());
            assert_eq!(*lock(&rows), expected, "beam {beam}");
        }
    }

    #[test]
    fn many_steps_end_before_they_take_long() {
        let (mut generator, rows) = crowded(1, LONGEST * 2 / 3);
        generator.steps(Generator::STEPS_AT_ONCE);
        assert_eq!(*lock(&rows), [32]);
    }
}
