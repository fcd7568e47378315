//! The queue before the thread that computes: so many sentences may be in the server, and no more.

use crate::job::{Job, Places};
use crate::refusal::Refusal;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// The queue.
#[derive(Debug)]
pub(crate) struct Queue {
    /// It has no bound of its own: every job in it has its places.
    sender: UnboundedSender<Job>,
    places: Arc<Semaphore>,
    size: usize,
    /// How many sentences have been decoded in the last second or so.
    rate: AtomicU64,
}

impl Queue {
    /// A queue for so many sentences, and its other end.
    pub fn new(size: usize) -> (Queue, UnboundedReceiver<Job>) {
        let (sender, receiver) = unbounded_channel();
        let places = Arc::new(Semaphore::new(size));
        (Queue { sender, places, size, rate: AtomicU64::new(0) }, receiver)
    }

    /// Places for so many sentences, or texts of an encoder, if there are any left. `field` is what they are called in the request.
    pub fn enter(&self, field: &str, sentences: usize) -> Result<Places, Refusal> {
        if sentences > self.size {
            let problem = format!(
                "the request has {sentences} texts, lines or sentences, but the maximum is {}: send fewer",
                self.size
            );
            return Err(Refusal::too_large(field, problem));
        }
        let places = Arc::clone(&self.places).try_acquire_many_owned(sentences as u32);
        places.map_err(|_| Refusal::full(self.patience()))
    }

    /// Hands a job to the thread that computes.
    pub fn push(&self, job: Job) -> Result<(), Refusal> {
        self.sender.send(job).map_err(|_| Refusal::busy("the server is shutting down", 1))
    }

    /// How many sentences are in the server.
    pub fn len(&self) -> usize {
        self.size - self.places.available_permits()
    }

    /// How many can be.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Tells how many sentences a second are being decoded.
    pub fn set_rate(&self, sentences: u64) {
        self.rate.store(sentences, Ordering::Relaxed);
    }

    /// In how many seconds about half of those who wait will have gone.
    fn patience(&self) -> u64 {
        let rate = self.rate.load(Ordering::Relaxed).max(1);
        (self.size as u64 / 2 / rate).clamp(1, 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_refuses_at_once_and_says_when_to_come_again() {
        let (queue, _receiver) = Queue::new(10);
        let six = queue.enter("text", 6).unwrap();
        assert_eq!(queue.len(), 6);
        let four = queue.enter("text", 4).unwrap();
        let refused = queue.enter("text", 1).unwrap_err();
        assert_eq!((refused.status.as_u16(), refused.retry_after), (503, Some(5)));
        drop(six);
        assert!(queue.enter("text", 6).is_ok());
        drop(four);
        assert_eq!(queue.len(), 0);
    }

    #[test]
    fn what_never_fits_is_no_matter_of_time() {
        let (queue, _receiver) = Queue::new(10);
        let refused = queue.enter("text", 11).unwrap_err();
        assert_eq!((refused.status.as_u16(), refused.field.as_deref()), (413, Some("text")));
    }
}
