//! Many sentences at once: finished ones leave, waiting ones take their place, results come back in order.

use crate::beam::BeamSearch;
use crate::error::Error;
use crate::filter::{Banned, Filter, MinLength, NoRepeatNgrams, RepetitionPenalty};
use crate::hypothesis::Hypothesis;
use crate::options::Options;
use crate::sampler::Sampler;
use crate::search::{Next, OnToken, Rules, Scores, Search, Sentence, Written};
use crate::seq2seq::{Row, Seq2Seq, Spec};
use crate::stop::Stop;
use crate::walk::Walk;
use std::collections::VecDeque;
use std::fmt;

/// What is to be decoded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Request {
    /// The tokens of the source, with the special ones that the model wants.
    pub source: Vec<u32>,
    /// What the target begins with.
    pub prefix: Vec<u32>,
}

impl From<Vec<u32>> for Request {
    fn from(source: Vec<u32>) -> Request {
        Request { source, prefix: Vec::new() }
    }
}

/// Decodes sentences, [`Options::batch`] of them at a time.
///
/// [`Generator::generate`] is all that most need. Who gets sentences one by one, and wants each answer as soon as it can be
/// had, uses [`Generator::push`], [`Generator::step`] and [`Generator::pop`].
pub struct Generator<M> {
    pub(crate) model: M,
    pub(crate) rules: Rules,
    on_token: OnToken,
    /// Pushed, but not begun.
    waiting: VecDeque<Sentence>,
    slots: Vec<Option<Running>>,
    /// The results of all sentences from the next one on that is to be handed out; none where there is none yet.
    results: VecDeque<Option<Vec<Hypothesis>>>,
    /// The number of the next sentence.
    next: u64,
    rows: Vec<Row>,
}

/// A sentence that is being decoded.
struct Running {
    number: u64,
    search: Box<dyn Search>,
    /// Its first row in the last step; none before its first.
    first: Option<usize>,
}

impl<M: Seq2Seq> Generator<M> {
    /// A generator with nothing to do.
    pub fn new(model: M, options: Options) -> Result<Generator<M>, Error> {
        let spec = model.spec();
        options.check(&spec)?;
        let slots = (0..options.batch).map(|_| None).collect();
        let sampler = options.sampling.map(|sampling| Box::new(sampling) as Box<dyn Sampler>);
        let filters = filters(&options, &spec);
        let rules = Rules { spec, options, filters, stops: Vec::new(), sampler };
        Ok(Generator {
            model,
            rules,
            on_token: Box::new(|_| {}),
            waiting: VecDeque::new(),
            slots,
            results: VecDeque::new(),
            next: 0,
            rows: Vec::new(),
        })
    }

    /// One more filter, behind those of the options.
    pub fn with_filter(mut self, filter: impl Filter + 'static) -> Generator<M> {
        self.rules.filters.push(Box::new(filter));
        self
    }

    /// One more rule that ends sequences.
    pub fn with_stop(mut self, stop: impl Stop + 'static) -> Generator<M> {
        self.rules.stops.push(Box::new(stop));
        self
    }

    /// Another sampler than that of the options.
    pub fn with_sampler(mut self, sampler: impl Sampler + 'static) -> Generator<M> {
        self.rules.sampler = Some(Box::new(sampler));
        self
    }

    /// Something that is called for every token as soon as it is written.
    pub fn on_token(mut self, on_token: impl FnMut(&Written) + 'static) -> Generator<M> {
        self.on_token = Box::new(on_token);
        self
    }

    /// The options.
    pub fn options(&self) -> &Options {
        &self.rules.options
    }

    /// The model.
    pub fn model(&self) -> &M {
        &self.model
    }

    /// Decodes sources as they are asked for; the results come in the order of the sources. What cannot be decoded gives an
    /// error in its place. Only a few times as many are read ahead as are decoded together. What was pushed before is
    /// forgotten.
    pub fn generate<I>(&mut self, sources: I) -> Results<'_, M, I::IntoIter>
    where
        I: IntoIterator<Item: Into<Request>>,
    {
        self.clear();
        Results { generator: self, sources: sources.into_iter(), refused: VecDeque::new(), next: 0 }
    }

    /// Forgets all sentences, and counts from the first again.
    pub fn clear(&mut self) {
        for (slot, place) in self.slots.iter_mut().enumerate() {
            if place.take().is_some() {
                self.model.release(slot);
            }
        }
        self.waiting.clear();
        self.results.clear();
        self.next = 0;
    }

    /// Adds a sentence behind those that are there; returns its number, counted from the first.
    pub fn push(&mut self, request: impl Into<Request>) -> Result<u64, Error> {
        let sentence = self.sentence(request.into())?;
        let number = sentence.number;
        self.next += 1;
        self.waiting.push_back(sentence);
        self.results.push_back(None);
        Ok(number)
    }

    /// How many sentences are in here: waiting, being decoded, or finished and not handed out.
    pub fn len(&self) -> usize {
        self.results.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.results.is_empty()
    }

    /// Writes one token of every sentence that is being decoded. Waiting ones take free places first.
    pub fn step(&mut self) {
        self.admit();
        self.rows.clear();
        for (slot, running) in self.slots.iter_mut().enumerate() {
            if let Some(running) = running {
                let first = self.rows.len();
                let last = running.first.replace(first);
                let row = |next: &Next| Row {
                    slot,
                    parent: last.map(|last| last + next.parent),
                    token: next.token,
                };
                self.rows.extend(running.search.rows().iter().map(row));
            }
        }
        if self.rows.is_empty() {
            return;
        }
        self.model.step(&self.rows);
        let count = if self.rules.want_rows() { 0 } else { self.rules.candidates() };
        let best = if count > 0 { self.model.best(count) } else { Vec::new() };
        let wants_rows = |slot: &Option<Running>| slot.as_ref().is_some_and(|it| it.search.wants_rows());
        let wants_rows = self.rules.want_rows() || self.slots.iter().any(wants_rows);
        let (mut best, mut logits) = (&best[..], if wants_rows { self.model.logits() } else { &mut [] });
        let width = if wants_rows { self.rules.spec.vocabulary } else { 0 };
        let mut done = Vec::new();
        for (slot, place) in self.slots.iter_mut().enumerate() {
            if let Some(running) = place {
                let rows = running.search.rows().len();
                let (own_best, other_best) = best.split_at(rows * count);
                let (own, others) = std::mem::take(&mut logits).split_at_mut(rows * width);
                (best, logits) = (other_best, others);
                let mut scores = Scores { best: own_best, rows: own };
                running.search.advance(&self.rules, &mut scores, &mut *self.on_token);
                if running.search.rows().is_empty() {
                    done.extend(place.take().map(|running| (slot, running)));
                }
            }
        }
        for (slot, running) in done {
            self.model.release(slot);
            self.finish(running.number, running.search.results());
        }
    }

    /// The results of the next sentence in order, best first, if they are there.
    pub fn pop(&mut self) -> Option<Vec<Hypothesis>> {
        if let Some(Some(_)) = self.results.front() { self.results.pop_front().flatten() } else { None }
    }

    fn finish(&mut self, number: u64, results: Vec<Hypothesis>) {
        let handed_out = self.next - self.results.len() as u64;
        self.results[(number - handed_out) as usize] = Some(results);
    }

    /// Lets waiting sentences take free places, several at a time, since the model reads several in little more time than one.
    fn admit(&mut self) {
        let free = self.slots.iter().filter(|slot| slot.is_none()).count();
        if self.waiting.is_empty() || free * 4 < self.slots.len() {
            return;
        }
        let mut admitted = Vec::new();
        for (slot, place) in self.slots.iter_mut().enumerate() {
            if place.is_none()
                && let Some(sentence) = self.waiting.pop_front()
            {
                admitted.push((slot, sentence));
            }
        }
        let sources: Vec<(usize, &[u32])> =
            admitted.iter().map(|(slot, sentence)| (*slot, &sentence.source[..])).collect();
        self.model.admit(&sources);
        for (slot, sentence) in admitted {
            let number = sentence.number;
            let walks = self.rules.options.beam == 1 || self.rules.sampler.is_some();
            let search: Box<dyn Search> = if walks {
                Box::new(Walk::new(&self.rules, sentence))
            } else {
                Box::new(BeamSearch::new(&self.rules, sentence))
            };
            self.slots[slot] = Some(Running { number, search, first: None });
        }
    }

    /// Checks a request.
    pub(crate) fn sentence(&self, request: Request) -> Result<Sentence, Error> {
        let (spec, Request { source, prefix }) = (self.rules.spec, request);
        if source.is_empty() {
            return Err(Error::EmptySource);
        }
        if source.len() > spec.max_source {
            return Err(Error::LongSource { tokens: source.len(), most: spec.max_source });
        }
        for (tokens, vocabulary) in [(&source, spec.source_vocabulary), (&prefix, spec.vocabulary)] {
            if let Some(&token) = tokens.iter().find(|&&token| token as usize >= vocabulary) {
                return Err(Error::Token { token, vocabulary });
            }
        }
        let max_length = self.rules.options.max_length.of(source.len()).min(spec.max_target);
        if prefix.len() >= max_length {
            return Err(Error::LongPrefix { tokens: prefix.len(), most: max_length });
        }
        Ok(Sentence { number: self.next, source, prefix, max_length })
    }
}

/// The filters that options ask for, in the order in which transformers has them.
fn filters(options: &Options, spec: &Spec) -> Vec<Box<dyn Filter>> {
    let mut filters: Vec<Box<dyn Filter>> = Vec::new();
    if options.repetition_penalty != 1.0 {
        filters.push(Box::new(RepetitionPenalty(options.repetition_penalty)));
    }
    if options.no_repeat_ngram > 0 {
        filters.push(Box::new(NoRepeatNgrams(options.no_repeat_ngram)));
    }
    // The end token cannot be banned: nothing would ever end. Many models ban padding, which is never written anyway.
    let matters =
        |sequence: &&Vec<u32>| **sequence != [spec.eos] && sequence.as_slice() != spec.never.as_slice();
    let banned: Vec<Vec<u32>> = options.banned.iter().filter(matters).cloned().collect();
    if !banned.is_empty() {
        filters.push(Box::new(Banned(banned)));
    }
    if options.min_length > 0 {
        filters.push(Box::new(MinLength(options.min_length)));
    }
    filters
}

/// How many times the sentences that are decoded together [`Generator::generate`] keeps at most.
const AHEAD: usize = 4;

/// The results of [`Generator::generate`].
pub struct Results<'a, M, I> {
    generator: &'a mut Generator<M>,
    sources: I,
    /// What cannot be decoded, by its place among the sources.
    refused: VecDeque<(u64, Error)>,
    /// The place of the next result.
    next: u64,
}

impl<M: Seq2Seq, I: Iterator<Item: Into<Request>>> Iterator for Results<'_, M, I> {
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
            self.generator.step();
        }
    }
}

impl<M: Seq2Seq, I: Iterator<Item: Into<Request>>> Results<'_, M, I> {
    /// Keeps more sentences in the generator than it decodes at once: those that are done, but not handed out because an
    /// earlier one is not, must not keep others from being begun.
    fn fill(&mut self) {
        let enough = AHEAD * self.generator.options().batch;
        while self.generator.len() + self.refused.len() < enough
            && let Some(source) = self.sources.next()
        {
            let place = self.next + (self.generator.len() + self.refused.len()) as u64;
            if let Err(error) = self.generator.push(source) {
                self.refused.push_back((place, error));
            }
        }
    }
}

impl<M: fmt::Debug> fmt::Debug for Generator<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Generator { model, rules, .. } = self;
        f.debug_struct("Generator")
            .field("model", model)
            .field("options", &rules.options)
            .finish_non_exhaustive()
    }
}
