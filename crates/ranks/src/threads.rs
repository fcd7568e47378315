//! A group of threads in one process: what a test needs to see ranks at work without a launcher.

use crate::{Error, Exchange, Group, Parcels};
use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// Messages on their way: collective ones from each rank to each, those of exchanges that were begun, and others to each.
#[derive(Default)]
struct Mail {
    collective: Vec<VecDeque<Vec<u8>>>,
    begun: HashMap<Address, Vec<u8>>,
    others: Vec<VecDeque<(usize, Vec<u8>)>>,
    left: usize,
}

/// Of a message: the ranks that send and get it, and the number of the exchange.
type Address = (usize, usize, usize);

struct Post {
    mail: Mutex<Mail>,
    arrived: Condvar,
}

/// One rank, to be moved to its thread.
pub struct ThreadRank {
    rank: usize,
    size: usize,
    post: Arc<Post>,
    /// Exchanges that were begun.
    begun: Cell<usize>,
    aborted: Cell<Option<i32>>,
}

/// So many ranks.
pub fn threads(size: usize) -> Vec<ThreadRank> {
    let mail = Mail {
        collective: vec![VecDeque::new(); size * size],
        others: vec![VecDeque::new(); size],
        ..Mail::default()
    };
    let post = Arc::new(Post { mail: Mutex::new(mail), arrived: Condvar::new() });
    let rank = |rank| {
        let (begun, aborted) = (Cell::default(), Cell::default());
        ThreadRank { rank, size, post: Arc::clone(&post), begun, aborted }
    };
    (0..size).map(rank).collect()
}

impl fmt::Debug for ThreadRank {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "rank {} of {} threads", self.rank, self.size)
    }
}

impl ThreadRank {
    fn post(&self, to: usize, message: &[u8]) {
        let mut mail = self.post.mail.lock().unwrap_or_else(PoisonError::into_inner);
        mail.collective[to * self.size + self.rank].push_back(message.to_owned());
        self.post.arrived.notify_all();
    }

    fn take(&self, from: usize, into: &mut [u8]) -> Result<(), Error> {
        let place = self.rank * self.size + from;
        let mail = self.post.mail.lock().unwrap_or_else(PoisonError::into_inner);
        let empty = |mail: &mut Mail| mail.collective[place].is_empty();
        let mut mail = self.post.arrived.wait_while(mail, empty).unwrap_or_else(PoisonError::into_inner);
        let message = mail.collective[place].pop_front().unwrap_or_default();
        if message.len() != into.len() {
            let message = format!("{} bytes expected of rank {from}, not {}", into.len(), message.len());
            return Err(Error::Step { message });
        }
        into.copy_from_slice(&message);
        Ok(())
    }
}

impl Group for ThreadRank {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn exchange(&self, send: &[&[u8]], receive: &mut [&mut [u8]]) -> Result<(), Error> {
        send.iter().enumerate().for_each(|(to, part)| self.post(to, part));
        receive.iter_mut().enumerate().try_for_each(|(from, part)| self.take(from, part))
    }

    fn begin(&self, mut parcels: Parcels) -> Result<Box<dyn Exchange>, Error> {
        let number = self.begun.replace(self.begun.get() + 1);
        let mut mail = self.post.mail.lock().unwrap_or_else(PoisonError::into_inner);
        for (to, parcel) in parcels.send.iter().enumerate().filter(|(to, _)| *to != self.rank) {
            mail.begun.insert((self.rank, to, number), parcel.clone());
        }
        self.post.arrived.notify_all();
        parcels.keep(self.rank);
        let comes = (0..self.size).filter(|&from| from != self.rank).map(|from| (from, self.rank, number));
        let comes = comes.collect();
        Ok(Box::new(Coming { post: Arc::clone(&self.post), comes, parcels }))
    }

    fn broadcast(&self, data: &mut [u8]) -> Result<(), Error> {
        if self.rank > 0 {
            return self.take(0, data);
        }
        (1..self.size).for_each(|to| self.post(to, data));
        Ok(())
    }

    fn send(&self, to: usize, message: &[u8]) -> Result<(), Error> {
        let mut mail = self.post.mail.lock().unwrap_or_else(PoisonError::into_inner);
        mail.others[to].push_back((self.rank, message.to_owned()));
        Ok(())
    }

    fn receive(&self) -> Result<Option<(usize, Vec<u8>)>, Error> {
        let mut mail = self.post.mail.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(mail.others[self.rank].pop_front())
    }

    fn leave(&self) -> Result<(), Error> {
        let mut mail = self.post.mail.lock().unwrap_or_else(PoisonError::into_inner);
        mail.left += 1;
        self.post.arrived.notify_all();
        let waits = |mail: &mut Mail| mail.left < self.size;
        drop(self.post.arrived.wait_while(mail, waits).unwrap_or_else(PoisonError::into_inner));
        Ok(())
    }

    fn abort(&self, code: i32) {
        self.aborted.set(Some(code));
    }
}

/// An exchange that was begun.
struct Coming {
    post: Arc<Post>,
    /// What comes from the others.
    comes: Vec<Address>,
    parcels: Parcels,
}

impl fmt::Debug for Coming {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "an exchange of threads: {:?}", self.comes)
    }
}

impl Coming {
    fn is_here(&self, mail: &Mail) -> bool {
        self.comes.iter().all(|address| mail.begun.contains_key(address))
    }
}

impl Exchange for Coming {
    fn is_over(&mut self) -> Result<bool, Error> {
        Ok(self.is_here(&self.post.mail.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    fn finish(mut self: Box<Self>) -> Result<Parcels, Error> {
        let mail = self.post.mail.lock().unwrap_or_else(PoisonError::into_inner);
        let waits = |mail: &mut Mail| !self.is_here(mail);
        let mut mail = self.post.arrived.wait_while(mail, waits).unwrap_or_else(PoisonError::into_inner);
        for address in &self.comes {
            let (from, message) = (address.0, mail.begun.remove(address).unwrap_or_default());
            let Some(room) = self.parcels.receive[from].get_mut(..message.len()) else {
                let message =
                    format!("{} bytes of rank {from} are more than there is room for", message.len());
                return Err(Error::Step { message });
            };
            room.copy_from_slice(&message);
        }
        drop(mail);
        Ok(std::mem::take(&mut self.parcels))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{all_gather, split};

    /// What each of three ranks comes to.
    fn ranks<T: Send>(act: impl Fn(&dyn Group) -> T + Sync) -> Vec<T> {
        let act = &act;
        std::thread::scope(|scope| {
            let spawned: Vec<_> =
                threads(3).into_iter().map(|rank| scope.spawn(move || act(&rank))).collect();
            spawned.into_iter().map(|thread| thread.join().unwrap()).collect()
        })
    }

    #[test]
    fn everyone_gets_the_parts_of_all_in_their_order() {
        let gathered = ranks(|group| {
            let mine = vec![group.rank() as f32; group.rank()];
            all_gather(group, &mine, &[0, 1, 2]).unwrap()
        });
        assert_eq!(gathered, vec![vec![1.0, 2.0, 2.0]; 3]);
    }

    #[test]
    fn everyone_gets_what_was_meant_for_it() {
        let got = ranks(|group| {
            let all: Vec<u8> = (0..3).map(|to| 10 * group.rank() as u8 + to).collect();
            let mut received = [0; 3];
            let mut parts: Vec<&mut [u8]> = received.chunks_mut(1).collect();
            group.exchange(&split(&all, &[1, 1, 1]), &mut parts).unwrap();
            received
        });
        assert_eq!(got, [[0, 10, 20], [1, 11, 21], [2, 12, 22]]);
    }

    #[test]
    fn exchanges_go_on_while_others_are_made_and_end_in_any_order() {
        let got = ranks(|group| {
            let parcels = |number: u8| Parcels {
                // Less than there is room for.
                send: (0..3).map(|to| vec![number, group.rank() as u8, to]).collect(),
                receive: vec![vec![9; 5]; 3],
            };
            let first = group.begin(parcels(1)).unwrap();
            let mut second = group.begin(parcels(2)).unwrap();
            assert_eq!(all_gather(group, &[group.rank() as u8], &[1; 3]).unwrap(), [0, 1, 2]);
            while !second.is_over().unwrap() {}
            let came = [second, first].map(|exchange| exchange.finish().unwrap().receive);
            came.map(|came| came.iter().map(|parcel| parcel[..3].to_vec()).collect::<Vec<_>>())
        });
        for (rank, came) in got.into_iter().enumerate() {
            let of = |number: u8| (0..3).map(|from| vec![number, from, rank as u8]).collect::<Vec<_>>();
            assert_eq!(came, [of(2), of(1)]);
        }
    }

    #[test]
    fn more_than_there_is_room_for_is_an_error() {
        let failed = ranks(|group| {
            let send = vec![vec![0; 4 - usize::from(group.rank() > 0)]; 3];
            let parcels = Parcels { send, receive: vec![vec![0; 3]; 3] };
            group.begin(parcels).unwrap().finish().is_err()
        });
        assert_eq!(failed, [false, true, true]);
    }

    #[test]
    fn all_have_the_data_of_the_first() {
        let got = ranks(|group| {
            let mut data = [group.rank() as u8; 4];
            group.broadcast(&mut data).unwrap();
            group.leave().unwrap();
            data
        });
        assert_eq!(got, [[0; 4]; 3]);
    }

    #[test]
    fn lengths_that_differ_are_an_error() {
        let failed = ranks(|group| {
            let mut data = vec![0; 1 + group.rank()];
            group.broadcast(&mut data).is_err()
        });
        assert_eq!(failed, [false, true, true]);
    }
}
