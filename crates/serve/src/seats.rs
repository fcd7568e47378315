//! Who is connected: how busy each is, and who has to go when all seats are taken.
//!
//! A connection that waits for a request costs next to nothing, but there can be only so many. Whoever comes when all seats are
//! taken gets that of the one that has been idle for longest; only where nobody is idle it waits.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// How long nothing must have happened on a connection before its seat is given away.
const IDLE: Duration = Duration::from_millis(500);

/// All seats.
#[derive(Debug)]
pub(crate) struct Seats {
    count: usize,
    /// The most of one address.
    per_address: Option<usize>,
    taken: Mutex<HashMap<u64, Arc<Seat>>>,
    /// Told whenever a seat becomes free.
    freed: Notify,
}

/// The seat of a connection.
#[derive(Debug)]
pub(crate) struct Seat {
    number: u64,
    address: IpAddr,
    /// Requests that are being answered.
    busy: AtomicUsize,
    /// When the last of them was.
    since: Mutex<Instant>,
    leave: Notify,
}

/// A request that is being answered.
#[derive(Debug)]
pub(crate) struct Busy(Arc<Seat>);

impl Seats {
    pub fn new(count: usize, per_address: Option<usize>) -> Seats {
        Seats { count, per_address, taken: Mutex::default(), freed: Notify::new() }
    }

    fn taken(&self) -> MutexGuard<'_, HashMap<u64, Arc<Seat>>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a seat is free, or an idle connection can be closed for it.
    pub async fn wait(&self) {
        loop {
            let freed = self.freed.notified();
            let longest_idle = {
                let taken = self.taken();
                if taken.len() < self.count {
                    return;
                }
                taken.values().filter(|seat| seat.is_idle()).min_by_key(|seat| seat.since()).cloned()
            };
            match longest_idle {
                Some(seat) => self.dismiss(&seat),
                // Those who are busy now will be idle, or gone.
                None => drop(tokio::time::timeout(IDLE, freed).await),
            }
        }
    }

    /// Gives a seat to a connection, unless its address has too many that are all busy.
    pub fn take(&self, number: u64, address: IpAddr) -> Option<Arc<Seat>> {
        if let Some(most) = self.per_address {
            let own: Vec<_> = self.taken().values().filter(|seat| seat.address == address).cloned().collect();
            if own.len() >= most {
                let longest_idle = own.iter().filter(|seat| seat.is_idle()).min_by_key(|seat| seat.since());
                self.dismiss(longest_idle?);
            }
        }
        let since = Mutex::new(Instant::now());
        let seat = Seat { number, address, busy: AtomicUsize::new(0), since, leave: Notify::new() };
        let seat = Arc::new(seat);
        self.taken().insert(number, Arc::clone(&seat));
        Some(seat)
    }

    /// Tells a connection to go when it is idle; its seat is free already.
    fn dismiss(&self, seat: &Seat) {
        seat.leave.notify_one();
        self.free(seat);
    }

    /// A connection has gone.
    pub fn free(&self, seat: &Seat) {
        self.taken().remove(&seat.number);
        self.freed.notify_waiters();
    }
}

impl Seat {
    /// Says that a request is being answered, until what it returns is dropped.
    pub fn begin(self: &Arc<Seat>) -> Busy {
        self.busy.fetch_add(1, Ordering::Relaxed);
        Busy(Arc::clone(self))
    }

    /// Waits until the seat is needed for another connection.
    pub async fn dismissed(&self) {
        self.leave.notified().await;
    }

    fn since(&self) -> Instant {
        *self.since.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_idle(&self) -> bool {
        self.busy.load(Ordering::Relaxed) == 0 && self.since().elapsed() >= IDLE
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        *self.0.since.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        self.0.busy.fetch_sub(1, Ordering::Relaxed);
    }
}
