//! Several copies of a model side by side, each on a core of its own.
//!
//! Decoding is many small products. Sharing each of them between cores costs more than it saves; so the sentences are
//! shared out instead: every copy has slots of its own, and a step is one task for each copy. The copies share their
//! weights. What comes of a sentence is the same wherever it is decoded.

use crate::attention::{AttentionMatrix, Look};
use crate::error::Error;
use crate::seq2seq::{Row, Seq2Seq, Spec};
use attentive_tensor::{Best, Threads};
use std::sync::{Mutex, MutexGuard};

/// Copies of a model that take turns with the slots: slot `s` belongs to copy `s mod n`.
pub struct Parallel<M> {
    copies: Vec<Mutex<Copy<M>>>,
    threads: Threads,
    /// Of each row of the last step, the copy and the place among its rows.
    places: Vec<(usize, usize)>,
    logits: Vec<f32>,
}

struct Copy<M> {
    model: M,
    rows: Vec<Row>,
    best: Vec<Best>,
}

impl<M: Seq2Seq + Send> Parallel<M> {
    /// The models, which must be copies of one, each on a thread.
    ///
    /// # Panics
    /// If there are none.
    pub fn new(models: Vec<M>) -> Parallel<M> {
        assert!(!models.is_empty(), "at least one copy of a model is needed");
        let threads = Threads::new(models.len());
        let copy = |model| Mutex::new(Copy { model, rows: Vec::new(), best: Vec::new() });
        Parallel {
            copies: models.into_iter().map(copy).collect(),
            threads,
            places: Vec::new(),
            logits: Vec::new(),
        }
    }

    fn copy(&self, number: usize) -> MutexGuard<'_, Copy<M>> {
        lock(&self.copies[number])
    }

    /// Does something with each copy, all at the same time.
    fn each(&self, task: impl Fn(usize, &mut Copy<M>) + Sync) {
        self.threads.run(self.copies.len(), |number| task(number, &mut self.copy(number)));
    }
}

fn lock<M>(copy: &Mutex<Copy<M>>) -> MutexGuard<'_, Copy<M>> {
    copy.lock().expect("no copy of the model panicked")
}

impl<M: Seq2Seq + Send> Seq2Seq for Parallel<M> {
    fn spec(&self) -> Spec {
        self.copy(0).model.spec()
    }

    fn admit(&mut self, sources: &[(usize, &[u32])]) {
        let count = self.copies.len();
        self.each(|number, copy| {
            let own = |(slot, _): &&(usize, &[u32])| slot % count == number;
            let own = sources.iter().filter(own).map(|&(slot, tokens)| (slot / count, tokens));
            let own: Vec<(usize, &[u32])> = own.collect();
            if !own.is_empty() {
                copy.model.admit(&own);
            }
        });
    }

    fn step(&mut self, rows: &[Row]) {
        let (count, last) = (self.copies.len(), std::mem::take(&mut self.places));
        for copy in &mut self.copies {
            copy.get_mut().expect("no copy of the model panicked").rows.clear();
        }
        for row in rows {
            let number = row.slot % count;
            let own = &mut self.copies[number].get_mut().expect("no copy of the model panicked").rows;
            self.places.push((number, own.len()));
            // The parent is a row of the same sentence, and so of the same copy.
            let parent = row.parent.map(|parent| last[parent].1);
            own.push(Row { slot: row.slot / count, parent, token: row.token });
        }
        self.each(|_, copy| {
            if !copy.rows.is_empty() {
                copy.model.step(&copy.rows);
            }
        });
    }

    fn best(&mut self, count: usize) -> Vec<Best> {
        self.each(|_, copy| {
            copy.best = if copy.rows.is_empty() { Vec::new() } else { copy.model.best(count) };
        });
        let copies: Vec<_> = self.copies.iter().map(lock).collect();
        let of_row = |&(number, place): &(usize, usize)| &copies[number].best[place * count..][..count];
        self.places.iter().flat_map(of_row).copied().collect()
    }

    fn logits(&mut self) -> &mut [f32] {
        let width = self.spec().vocabulary;
        let mut copies: Vec<_> = self.copies.iter().map(lock).collect();
        let logits: Vec<&mut [f32]> = copies
            .iter_mut()
            .map(|copy| if copy.rows.is_empty() { &mut [] } else { copy.model.logits() })
            .collect();
        self.logits.clear();
        for &(number, place) in &self.places {
            self.logits.extend_from_slice(&logits[number][place * width..][..width]);
        }
        &mut self.logits
    }

    fn release(&mut self, slot: usize) {
        let count = self.copies.len();
        self.copy(slot % count).model.release(slot / count);
    }

    fn attention(&self, pairs: &[(&[u32], &[u32])], look: Look) -> Result<Vec<AttentionMatrix>, Error> {
        self.copy(0).model.attention(pairs, look)
    }
}
