//! Batches without end, prepared ahead by another thread.

use super::travel;
use super::windows::{Part, Window, Windows};
use super::{Batching, CorpusSize, Error, Example, ExampleBatch, Examples, LeftOut};
use crate::ranks::Ranks;
use serde::{Deserialize, Serialize};
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::vec::IntoIter;

/// The place of a batch. Saved before a batch is taken, it brings back this batch and all that follow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Position {
    /// How often the corpus was gone through.
    pub epoch: u64,
    /// The window in the epoch.
    pub window: usize,
    /// The batch in the window.
    pub batch: usize,
    /// How many pairs of the first epoch were left out in windows before this one.
    pub left_out: LeftOut,
    /// The corpus in which this is a place.
    pub corpus: CorpusSize,
    /// How its batches are made.
    pub batching: Batching,
}

/// The batches of a corpus, epoch after epoch. As an iterator it ends only after an error.
///
/// While the batches of one window are taken, a thread prepares the next window. It ends when this is
/// dropped.
#[derive(Debug)]
pub struct Batches {
    examples: Arc<dyn Examples>,
    /// Those who share the work of encoding.
    ranks: Ranks,
    /// Of the next batch.
    position: Position,
    windows_in_epoch: usize,
    /// Whether this epoch had a batch.
    any: bool,
    /// What is left of the current window, and how many pairs it left out.
    current: IntoIter<ExampleBatch>,
    left_out: LeftOut,
    /// `None` after an error.
    ahead: Option<Ahead>,
}

impl Batches {
    /// Batches of examples from the beginning.
    pub fn new(examples: Arc<dyn Examples>, batching: Batching) -> Result<Batches, Error> {
        let (corpus, left_out) = (examples.size(), LeftOut::default());
        let start = Position { epoch: 0, window: 0, batch: 0, left_out, corpus, batching };
        Batches::start(examples, start)
    }

    /// Batches from a saved position on. Examples and settings must be those that it was saved with.
    pub fn from_position(
        examples: Arc<dyn Examples>,
        position: &Position,
        batching: Batching,
    ) -> Result<Batches, Error> {
        if !position.corpus.fits(&examples.size()) {
            return Err(Error::OtherCorpus { saved: position.corpus, found: examples.size() });
        }
        if position.batching != batching {
            return Err(Error::OtherBatching { saved: position.batching, found: batching });
        }
        if position.window >= Windows::count(&*examples, &batching) {
            return Err(no_such_position(position));
        }
        Batches::start(examples, position.clone())
    }

    /// The same batches for each of several ranks, which all take all of them: where texts are tokenized, each rank tokenizes a part of
    /// every window. From now on, to take a batch is collective.
    pub fn among(self, ranks: Ranks) -> Result<Batches, Error> {
        if ranks.size() == 1 || !self.examples.tokenizes() {
            return Ok(self);
        }
        let Batches { examples, position, ahead, .. } = self;
        drop(ahead);
        Batches::start_among(ranks, examples, position)
    }

    /// The place of the next batch. The epoch is over as soon as its last batch was taken, unless a whole
    /// window at its end is left out: that is seen only when the next batch is taken.
    pub fn next_position(&self) -> &Position {
        &self.position
    }

    /// How often the corpus was gone through, with the fraction of the epoch that is under way. Before the
    /// first batch after a saved position, the fraction is that of whole windows.
    pub fn epochs(&self) -> f64 {
        let Position { epoch, window, batch, .. } = self.position;
        let in_window = batch as f64 / (batch + self.current.len()).max(1) as f64;
        let in_window = if self.current.len() > 0 { in_window } else { 0.0 };
        epoch as f64 + (window as f64 + in_window) / self.windows_in_epoch as f64
    }

    /// How many pairs of the corpus are left out, as soon as the first epoch is over.
    pub fn left_out(&self) -> Option<LeftOut> {
        (self.position.epoch > 0).then_some(self.position.left_out)
    }

    fn start(examples: Arc<dyn Examples>, position: Position) -> Result<Batches, Error> {
        Batches::start_among(Ranks::default(), examples, position)
    }

    fn start_among(ranks: Ranks, examples: Arc<dyn Examples>, position: Position) -> Result<Batches, Error> {
        Ok(Batches {
            windows_in_epoch: Windows::count(&*examples, &position.batching),
            any: (position.window, position.batch) != (0, 0),
            current: Vec::new().into_iter(),
            left_out: LeftOut::default(),
            ahead: Some(Ahead::start(Arc::clone(&examples), &position, (ranks.rank(), ranks.size()))?),
            examples,
            ranks,
            position,
        })
    }

    fn next_batch(&mut self, ahead: &mut Ahead) -> Result<ExampleBatch, Error> {
        loop {
            if let Some(batch) = self.current.next() {
                self.position.batch += 1;
                self.any = true;
                self.end_window_if_over()?;
                return Ok(batch);
            }
            let Window { batches, left_out } = self.whole(ahead.next()?)?;
            let skipped = self.position.batch;
            if skipped > 0 && skipped >= batches.len() {
                return Err(no_such_position(&self.position));
            }
            self.current = batches.into_iter();
            self.current.by_ref().take(skipped).for_each(drop);
            self.left_out = left_out;
            self.end_window_if_over()?;
        }
    }

    /// Collective: the window of which each rank has a part.
    fn whole(&self, part: Part) -> Result<Window, Error> {
        let Part { places, examples } = part;
        let examples = travel::gather(&self.ranks, examples)?;
        let mut in_order = vec![Example::default(); places.len()];
        for (place, example) in places.into_iter().zip(examples) {
            in_order[place] = example;
        }
        let Position { epoch, window, batching, .. } = &self.position;
        Ok(Window::of(in_order, *epoch, *window, batching))
    }

    fn end_window_if_over(&mut self) -> Result<(), Error> {
        if self.current.len() > 0 {
            return Ok(());
        }
        let position = &mut self.position;
        if position.epoch == 0 {
            position.left_out.add(self.left_out);
        }
        (position.window, position.batch) = (position.window + 1, 0);
        if position.window == self.windows_in_epoch {
            (position.epoch, position.window) = (position.epoch + 1, 0);
            if !std::mem::take(&mut self.any) {
                return Err(Error::AllLeftOut { left_out: position.left_out });
            }
        }
        Ok(())
    }
}

impl Iterator for Batches {
    type Item = Result<ExampleBatch, Error>;

    fn next(&mut self) -> Option<Result<ExampleBatch, Error>> {
        let mut ahead = self.ahead.take()?;
        let batch = self.next_batch(&mut ahead);
        if batch.is_ok() {
            self.ahead = Some(ahead);
        }
        Some(batch)
    }
}

fn no_such_position(position: &Position) -> Error {
    Error::NoSuchPosition { window: position.window, batch: position.batch }
}

/// The thread that is a window ahead.
#[derive(Debug)]
struct Ahead {
    /// Hands a window over only when it is asked for, so that no more than one waits.
    windows: Option<Receiver<Result<Part, Error>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Ahead {
    fn start(examples: Arc<dyn Examples>, from: &Position, share: (usize, usize)) -> Result<Ahead, Error> {
        let (send, windows) = sync_channel(0);
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, batching, epoch, first) = (stop.clone(), from.batching, from.epoch, from.window);
        let work = move || {
            let mut windows = Windows::new(&*examples, batching, share);
            let numbers = 0..Windows::count(&*examples, &batching);
            let epochs = (epoch..).flat_map(|epoch| numbers.clone().map(move |number| (epoch, number)));
            for (epoch, number) in epochs.skip(first) {
                let window = windows.part(epoch, number, &stopped);
                let over = window.is_err();
                // Nobody takes it when all batches that were wanted are there.
                if send.send(window).is_err() || over {
                    break;
                }
            }
        };
        let thread = Builder::new().name("corpus".to_owned()).spawn(work);
        let thread = thread.map_err(|source| Error::Thread { source })?;
        Ok(Ahead { windows: Some(windows), stop, thread: Some(thread) })
    }

    fn next(&mut self) -> Result<Part, Error> {
        match self.windows.as_ref().and_then(|windows| windows.recv().ok()) {
            Some(window) => window,
            // It ended without a word: a tokenizer has panicked, and so does whoever asked.
            None => match self.thread.take().map(JoinHandle::join) {
                Some(Err(panic)) => resume_unwind(panic),
                _ => unreachable!("the thread sends an error before it ends"),
            },
        }
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // With the receiver gone, a thread that waits to hand over goes on, and ends.
        self.windows = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
