//! One copy of a model and the sentences that it decodes, on a thread of its own.
//!
//! Decoding is many small products. Splitting each of them between cores costs more than it saves, so each core gets sentences of its
//! own. Lanes share the weights and the queue of sentences, and nothing else. The result of a sentence does not depend on the lane.

use crate::beam::BeamSearch;
use crate::greedy::GreedySearch;
use crate::hypothesis::Hypothesis;
use crate::rules::Rules;
use crate::scores::Asked;
use crate::search::{Next, Search, Sentence, Written};
use crate::seq2seq::{Row, Seq2Seq};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The sentences that wait, each with its rules.
pub(crate) type Waiting = VecDeque<(Sentence, Arc<Rules>)>;

/// A copy of a model with a slot for each sentence that it has read.
pub(crate) struct Lane {
    pub model: Box<dyn Seq2Seq>,
    /// There are more slots than [`Lane::places`]: some sentences are read before they can be decoded. So no place stays empty for long,
    /// and the model reads several sentences at once, which takes little more time than one.
    slots: Vec<Option<Taken>>,
    /// How many sentences are decoded at once.
    places: usize,
    /// How many sentences were read.
    read: u64,
    /// The numbers and results of the sentences that were finished since the caller last took them.
    pub done: Vec<(u64, Vec<Hypothesis>)>,
    rows: Vec<Row>,
    asked: Asked,
}

/// A sentence that was read.
struct Taken {
    number: u64,
    /// How many were read before it.
    turn: u64,
    rules: Arc<Rules>,
    search: Box<dyn Search>,
    /// Its first row in the last step; none before its first step.
    first: Option<usize>,
    /// Whether it has a place.
    begun: bool,
}

impl Lane {
    pub fn new(model: Box<dyn Seq2Seq>, places: usize) -> Lane {
        let slots = (0..places + places.div_ceil(4)).map(|_| None).collect();
        Lane { model, slots, places, read: 0, done: Vec::new(), rows: Vec::new(), asked: Asked::default() }
    }

    /// How many sentences have been read and are not done.
    pub fn taken(&self) -> usize {
        self.slots.iter().flatten().count()
    }

    /// Gives up a sentence, if it is in this lane; without a number, all sentences.
    pub fn give_up(&mut self, number: Option<u64>) {
        let is_meant = |running: &mut Taken| number.is_none_or(|number| running.number == number);
        for (slot, place) in self.slots.iter_mut().enumerate() {
            if place.take_if(is_meant).is_some() {
                self.model.release(slot);
            }
        }
    }

    /// Writes one token of every sentence that has a place. Waiting ones, which `lanes` lanes share, take free places
    /// first, as long as not more than `most` are in work. Returns whether there was anything to do.
    pub fn step(
        &mut self,
        waiting: &Mutex<&mut Waiting>,
        most: usize,
        lanes: usize,
        on_token: &mut dyn FnMut(&Written),
    ) -> bool {
        let places = self.begin();
        if places > 0 {
            self.admit(waiting, most, places, lanes);
            self.begin();
        }
        self.rows.clear();
        for (slot, running) in self.slots.iter_mut().enumerate() {
            if let Some(running) = running.as_mut().filter(|running| running.begun) {
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
        if self.taken() == 0 {
            return false;
        }
        self.model.step(&self.rows);
        if !self.rows.is_empty() {
            self.advance(on_token);
        }
        true
    }

    /// Lets the searches have what the model said.
    fn advance(&mut self, on_token: &mut dyn FnMut(&Written)) {
        self.asked.clear();
        let (mut count, mut wants_scores) = (0, false);
        for running in self.slots.iter_mut().flatten().filter(|running| running.begun) {
            running.search.ask(&running.rules, &mut self.asked);
            count = count.max(running.rules.candidates());
            // The score of a token of the prefix is told in any case.
            wants_scores |= running.rules.want_scores() || self.asked.has_lists();
        }
        // The logits are computed once: some sentence wants all of them, or nobody does.
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
        for (slot, place) in self.slots.iter_mut().enumerate() {
            if let Some(running) = place.as_mut().filter(|running| running.begun) {
                let (own, others) = std::mem::take(&mut scores).split_at_mut(running.search.rows().len());
                scores = others;
                running.search.advance(&running.rules, own, on_token);
                if let Some(Taken { number, search, .. }) =
                    place.take_if(|running| running.search.rows().is_empty())
                {
                    self.done.push((number, search.results()));
                    free.push(slot);
                }
            }
        }
        free.into_iter().for_each(|slot| self.model.release(slot));
    }

    /// Lets sentences that were read take free places, the first first; returns how many places are left.
    fn begin(&mut self) -> usize {
        let mut free = self.places - self.slots.iter().flatten().filter(|running| running.begun).count();
        while free > 0
            && let Some(next) = self
                .slots
                .iter_mut()
                .enumerate()
                .filter_map(|(slot, place)| {
                    place.as_mut().filter(|it| !it.begun && self.model.is_ready(slot))
                })
                .min_by_key(|it| it.turn)
        {
            next.begun = true;
            free -= 1;
        }
        free
    }

    /// Reads waiting sentences into free slots: as many as there are places for, and beyond that no more than this lane's share of
    /// them, so that none waits here while another lane has nothing to do.
    fn admit(&mut self, waiting: &Mutex<&mut Waiting>, most: usize, places: usize, lanes: usize) {
        let free = self.slots.iter().enumerate().filter(|(_, place)| place.is_none());
        let free: Vec<usize> = free.map(|(slot, _)| slot).collect();
        let room = free.len().min(most.saturating_sub(self.slots.len() - free.len()));
        let sentences: Vec<_> = {
            let mut waiting = lock(waiting);
            let count = room.min(waiting.len()).min(places.max(waiting.len() / lanes));
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
            let walks = rules.options.beam == 1 || rules.sampler.is_some();
            let search: Box<dyn Search> = if walks {
                Box::new(GreedySearch::new(&rules, sentence))
            } else {
                Box::new(BeamSearch::new(&rules, sentence))
            };
            let turn = self.read;
            self.slots[slot] = Some(Taken { number, turn, rules, search, first: None, begun: false });
            self.read += 1;
        }
    }
}

/// What is behind a lock. A panic of another lane is passed on by the threads, and is no matter here.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
