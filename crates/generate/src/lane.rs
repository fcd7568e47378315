//! A lane: one copy of a model and the sentences that it decodes, on a thread of its own.
//!
//! Decoding consists of many small products. Splitting each of them between cores costs more than it saves, so each core gets sentences of
//! its own. Lanes share the weights and the queue of waiting sentences, and nothing else. The result of a sentence does not depend on its
//! lane.
//!
//! A lane has more slots than it decodes sentences at once: a sentence in a further slot has been read by the model and waits for its turn.
//! So the batch is always full, and the model reads several sources at once, which takes little more time than reading one.

use crate::beam::BeamSearch;
use crate::greedy::GreedySearch;
use crate::hypothesis::Hypothesis;
use crate::rules::Rules;
use crate::scores::Asked;
use crate::search::{NextRow, Search, Sentence, Written};
use crate::seq2seq::{Row, Seq2Seq};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The queue of waiting sentences, each with its rules.
pub(crate) type Waiting = VecDeque<(Sentence, Arc<Rules>)>;

/// A copy of a model, and the sentences in its slots.
pub(crate) struct Lane {
    pub model: Box<dyn Seq2Seq>,
    slots: Vec<Option<Running>>,
    /// How many sentences are decoded at once: fewer than there are slots.
    batch: usize,
    /// How many sentences were admitted so far.
    admitted: u64,
    /// The numbers and results of finished sentences, until the caller takes them.
    pub done: Vec<(u64, Vec<Hypothesis>)>,
    rows: Vec<Row>,
    asked: Asked,
}

/// A sentence in a slot.
struct Running {
    number: u64,
    /// How many sentences were admitted before it.
    order: u64,
    rules: Arc<Rules>,
    search: Box<dyn Search>,
    /// Its first row in the last step; none before its first step.
    first: Option<usize>,
    /// Whether it is in the batch, or still waits for its turn.
    begun: bool,
}

impl Lane {
    pub fn new(model: Box<dyn Seq2Seq>, batch: usize) -> Lane {
        let slots = (0..batch + batch.div_ceil(4)).map(|_| None).collect();
        Lane { model, slots, batch, admitted: 0, done: Vec::new(), rows: Vec::new(), asked: Asked::default() }
    }

    /// The number of sentences in slots.
    pub fn running(&self) -> usize {
        self.slots.iter().flatten().count()
    }

    /// Cancels the sentence with this number, if it is in this lane; without a number, all sentences.
    pub fn give_up(&mut self, number: Option<u64>) {
        let is_meant = |running: &mut Running| number.is_none_or(|number| running.number == number);
        for (slot, entry) in self.slots.iter_mut().enumerate() {
            if entry.take_if(is_meant).is_some() {
                self.model.release(slot);
            }
        }
    }

    /// Admits waiting sentences to free slots, as long as not more than `most` are in slots, and writes one token of every sentence of the
    /// batch. `lanes` lanes share the waiting sentences. Returns whether there was anything to do.
    pub fn step(
        &mut self,
        waiting: &Mutex<&mut Waiting>,
        most: usize,
        lanes: usize,
        on_token: &mut dyn FnMut(&Written),
    ) -> bool {
        let free = self.begin();
        if free > 0 {
            self.admit(waiting, most, free, lanes);
            self.begin();
        }
        self.rows.clear();
        for (slot, running) in self.slots.iter_mut().enumerate() {
            if let Some(running) = running.as_mut().filter(|running| running.begun) {
                let first = self.rows.len();
                let last = running.first.replace(first);
                let row = |next: &NextRow| Row {
                    slot,
                    parent: last.map(|last| last + next.parent),
                    token: next.token,
                };
                self.rows.extend(running.search.rows().iter().map(row));
            }
        }
        if self.running() == 0 {
            return false;
        }
        self.model.step(&self.rows);
        if !self.rows.is_empty() {
            self.advance(on_token);
        }
        true
    }

    /// Gives each search the scores that it asked for, and takes the results of finished searches.
    fn advance(&mut self, on_token: &mut dyn FnMut(&Written)) {
        self.asked.clear();
        let (mut count, mut wants_scores) = (0, false);
        for running in self.slots.iter_mut().flatten().filter(|running| running.begun) {
            running.search.ask(&running.rules, &mut self.asked);
            count = count.max(running.rules.candidates());
            // The scores of prefix tokens are reported even if no others are wanted.
            wants_scores |= running.rules.want_scores() || self.asked.has_lists();
        }
        // The logits are computed once: all of them for all rows if any sentence needs them, or else only the best.
        let spec = self.model.spec();
        let width = if self.asked.wants_rows() { spec.vocabulary } else { 0 };
        let (found, rows) = if width > 0 {
            let rows = self.model.logits();
            (self.asked.find(rows, width, count, spec.never), rows)
        } else {
            (self.model.best(count, wants_scores, self.asked.apart()), &mut [][..])
        };
        let mut scores = self.asked.rows(&found, rows, width);
        let (mut scores, mut free) = (&mut scores[..], Vec::new());
        for (slot, entry) in self.slots.iter_mut().enumerate() {
            if let Some(running) = entry.as_mut().filter(|running| running.begun) {
                let (own, others) = std::mem::take(&mut scores).split_at_mut(running.search.rows().len());
                scores = others;
                running.search.advance(&running.rules, own, on_token);
                if let Some(Running { number, search, .. }) =
                    entry.take_if(|running| running.search.rows().is_empty())
                {
                    self.done.push((number, search.results()));
                    free.push(slot);
                }
            }
        }
        free.into_iter().for_each(|slot| self.model.release(slot));
    }

    /// Moves sentences whose source is read into the batch, in the order of admission; returns how many more it has room for.
    fn begin(&mut self) -> usize {
        let mut free = self.batch - self.slots.iter().flatten().filter(|running| running.begun).count();
        while free > 0
            && let Some(next) = self
                .slots
                .iter_mut()
                .enumerate()
                .filter_map(|(slot, entry)| {
                    entry.as_mut().filter(|it| !it.begun && self.model.is_ready(slot))
                })
                .min_by_key(|it| it.order)
        {
            next.begun = true;
            free -= 1;
        }
        free
    }

    /// Admits waiting sentences to free slots: as many as the batch has room for (`wanted`), and beyond that no more than this lane's share
    /// of the queue, so that no sentence waits here while another lane is idle.
    fn admit(&mut self, waiting: &Mutex<&mut Waiting>, most: usize, wanted: usize, lanes: usize) {
        let free = self.slots.iter().enumerate().filter(|(_, entry)| entry.is_none());
        let free: Vec<usize> = free.map(|(slot, _)| slot).collect();
        let room = free.len().min(most.saturating_sub(self.slots.len() - free.len()));
        let sentences: Vec<_> = {
            let mut waiting = lock(waiting);
            let count = room.min(waiting.len()).min(wanted.max(waiting.len() / lanes));
            waiting.drain(..count).collect()
        };
        if sentences.is_empty() {
            return;
        }
        let sources: Vec<(usize, &[u32])> =
            free.iter().copied().zip(sentences.iter().map(|(sentence, _)| &sentence.source[..])).collect();
        self.model.admit(&sources);
        for (slot, (sentence, rules)) in free.into_iter().zip(sentences) {
            let number = sentence.number;
            let is_greedy = rules.options.beam == 1 || rules.sampler.is_some();
            let search: Box<dyn Search> = if is_greedy {
                Box::new(GreedySearch::new(&rules, sentence))
            } else {
                Box::new(BeamSearch::new(&rules, sentence))
            };
            let order = self.admitted;
            self.slots[slot] = Some(Running { number, order, rules, search, first: None, begun: false });
            self.admitted += 1;
        }
    }
}

/// Locks a mutex, also after a panic of another lane: the threads pass that panic on.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
