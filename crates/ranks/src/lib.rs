//! Several processes that train or decode together.
//!
//! A launcher (`mpirun`, `srun`) starts the same program several times. Each process is a *rank*, with a number from 0 on. [`join`]
//! finds the launcher in the environment and opens its MPI library; without a launcher it returns none, and nothing of MPI is needed.
//! [`Group`] is what ranks can do together. [`threads`] is a group of threads in one process, for tests.
//!
//! The library is opened at run time, because a cluster has its own MPI, tuned for its network, and a program that is linked with
//! one implementation runs with no other. `dlopen` and `dlsym` of `libc` do it: the library is opened once and never closed, so that
//! a crate that watches over the lifetime of symbols would have nothing to watch.
//!
//! `unsafe` code of this crate: `mpi` (foreign functions), `signal` (a handler), `bytes` (numbers seen as bytes).

mod bytes;
mod deal;
mod exchange;
mod launcher;
#[cfg(unix)]
mod mpi;
#[cfg(not(unix))]
mod mpi {
    use crate::{Error, Group, Implementation};
    use std::rc::Rc;

    pub(crate) fn join(_: Implementation, _: usize) -> Result<Rc<dyn Group>, Error> {
        Err(Error::NoLauncher)
    }
}
mod signal;
mod threads;

pub use bytes::{Plain, bytes, bytes_mut};
pub use deal::{Dealer, Dealt, Hand};
pub use exchange::{Exchange, Parcels};
pub use launcher::threads_each;
pub use signal::stop_on_sigusr1;
pub use threads::{ThreadRank, threads};

use std::fmt::Debug;
use std::rc::Rc;

/// The processes that work together, seen from one of them. All of them must call the same collective operations in the same order.
/// Calls come from one thread, which is what MPI is promised.
pub trait Group: Debug {
    /// The number of this process.
    fn rank(&self) -> usize;

    /// How many processes there are.
    fn size(&self) -> usize;

    /// Collective: sends `send[i]` to rank `i` and writes what rank `i` sent here into `receive[i]`. The lengths must agree.
    fn exchange(&self, send: &[&[u8]], receive: &mut [&mut [u8]]) -> Result<(), Error>;

    /// Collective: begins an exchange that goes on while this rank computes. Rank `i` gets `send[i]` and needs room for it. All ranks
    /// begin their exchanges in the same order. Other calls may come before the end of an exchange, and others may be begun.
    fn begin(&self, parcels: Parcels) -> Result<Box<dyn Exchange>, Error>;

    /// Collective: lets all ranks have the data of rank 0.
    fn broadcast(&self, data: &mut [u8]) -> Result<(), Error>;

    /// Sends a message without waiting until it is received.
    fn send(&self, to: usize, message: &[u8]) -> Result<(), Error>;

    /// The next message and its sender, if one has arrived.
    fn receive(&self) -> Result<Option<(usize, Vec<u8>)>, Error>;

    /// Collective: ends the work together, after which nothing else may be called.
    fn leave(&self) -> Result<(), Error>;

    /// Ends all ranks at once, with this exit code.
    fn abort(&self, code: i32);
}

/// Collective: the data of every rank, in the order of ranks. `lengths` says how much each of them has.
pub fn all_gather<T: Plain>(group: &dyn Group, mine: &[T], lengths: &[usize]) -> Result<Vec<T>, Error> {
    let mut all = vec![T::default(); lengths.iter().sum()];
    gather_into(group, mine, lengths, &mut all)?;
    Ok(all)
}

/// The same into memory that is there.
pub fn gather_into<T: Plain>(
    group: &dyn Group,
    mine: &[T],
    lengths: &[usize],
    all: &mut [T],
) -> Result<(), Error> {
    let mut parts: Vec<&mut [u8]> = split_mut(all, lengths).into_iter().map(bytes_mut).collect();
    group.exchange(&vec![bytes(mine); group.size()], &mut parts)
}

/// Collective: what every rank has, however long it is, in the order of ranks.
pub fn all_gather_bytes(group: &dyn Group, mine: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
    let lengths = all_gather(group, &[mine.len() as u64], &vec![1; group.size()])?;
    let lengths: Vec<usize> = lengths.into_iter().map(|length| length as usize).collect();
    let all = all_gather(group, mine, &lengths)?;
    Ok(split(&all, &lengths).into_iter().map(<[u8]>::to_vec).collect())
}

/// Cuts a slice into parts of these lengths.
pub fn split<'a, T>(mut all: &'a [T], lengths: &[usize]) -> Vec<&'a [T]> {
    let mut take = |&length: &usize| {
        let (part, rest) = all.split_at(length);
        all = rest;
        part
    };
    lengths.iter().map(&mut take).collect()
}

/// The same to be written to.
pub fn split_mut<'a, T>(all: &'a mut [T], lengths: &[usize]) -> Vec<&'a mut [T]> {
    let mut rest = Some(all);
    let mut take = |&length: &usize| {
        let (part, others) = rest.take().expect("put back below").split_at_mut(length);
        rest = Some(others);
        part
    };
    lengths.iter().map(&mut take).collect()
}

/// An implementation of MPI, by how its library is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Implementation {
    /// Open MPI: handles are addresses in the library.
    OpenMpi,
    /// MPICH and its relatives, such as Intel MPI, MVAPICH and Cray MPI: handles are numbers.
    Mpich,
    /// Any implementation of the standard ABI of MPI 5.
    Abi,
}

/// Joins the processes that a launcher has started; none where no launcher did, or where it started this process alone. What is not
/// `chosen` follows from the launcher.
pub fn join(chosen: Option<Implementation>) -> Result<Option<Rc<dyn Group>>, Error> {
    launcher::join(chosen)
}

/// Why ranks cannot work together.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// MPI was chosen, but nothing started several processes.
    #[error(
        "no launcher of MPI started this process: start it with `mpirun -n 2 attentive …`, or leave out --mpi"
    )]
    NoLauncher,
    /// The library of the launcher's implementation is not there.
    #[error("the launcher is {launcher}'s, but its library cannot be opened ({reason}): {advice}")]
    NoLibrary {
        /// The implementation.
        launcher: &'static str,
        /// What the system says.
        reason: String,
        /// What to install.
        advice: &'static str,
    },
    /// The library lacks a function.
    #[error("{library} is not the MPI library that was expected: it has no `{symbol}`")]
    NoSymbol {
        /// The file.
        library: String,
        /// What it should have.
        symbol: &'static str,
    },
    /// Launcher and library do not belong together.
    #[error(
        "the launcher started {started} processes, but {library} finds {found}: launcher and library are of different \
         implementations of MPI; name the launcher's with --mpi openmpi, mpich or abi"
    )]
    Strangers {
        /// What the launcher says.
        started: usize,
        /// What the library says.
        found: usize,
        /// The library.
        library: String,
    },
    /// A call of MPI failed.
    #[error("the ranks have lost each other: {call}: {message}")]
    Call {
        /// The function.
        call: &'static str,
        /// What MPI says.
        message: String,
    },
    /// Two ranks do not agree about how much there is to exchange.
    #[error("the ranks have lost step: {message}")]
    Step {
        /// What was expected, and what came.
        message: String,
    },
}
