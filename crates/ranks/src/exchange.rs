//! Exchanges that go on while a rank computes.

use crate::Error;
use std::fmt::Debug;

/// What goes to each rank, and what comes from each.
#[derive(Debug, Default)]
pub struct Parcels {
    /// For each rank.
    pub send: Vec<Vec<u8>>,
    /// From each rank: room for what it sends, which may be less.
    pub receive: Vec<Vec<u8>>,
}

impl Parcels {
    /// Hands over what a rank has for itself.
    pub(crate) fn keep(&mut self, rank: usize) {
        std::mem::swap(&mut self.send[rank], &mut self.receive[rank]);
    }
}

/// An exchange that [was begun](crate::Group::begin).
pub trait Exchange: Debug {
    /// Whether it is over. Asking lets it go on: an implementation of MPI may move data only while one of its functions is called.
    fn is_over(&mut self) -> Result<bool, Error>;

    /// Waits until it is over. The parcels come back: `receive` has what has come.
    fn finish(self: Box<Self>) -> Result<Parcels, Error>;
}
