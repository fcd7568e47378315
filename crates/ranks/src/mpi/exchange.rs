//! An exchange that goes on while this rank computes.

use super::abi::{Constants, Functions, Handle};
use super::{BEGUN, MOST};
use crate::{Error, Exchange, Parcels};
use std::ffi::c_int;
use std::rc::Rc;

/// Messages to and from all other ranks.
#[derive(Debug)]
pub(super) struct Begun<H> {
    functions: Rc<Functions<H>>,
    constants: Constants<H>,
    requests: Vec<H>,
    /// MPI uses their memory until it is done with all requests.
    parcels: Parcels,
    is_over: bool,
}

impl<H: Handle> Begun<H> {
    pub(super) fn new(
        functions: Rc<Functions<H>>,
        constants: Constants<H>,
        rank: usize,
        mut parcels: Parcels,
    ) -> Result<Begun<H>, Error> {
        parcels.keep(rank);
        let ranks = parcels.send.len();
        assert_eq!(ranks, parcels.receive.len(), "an exchange: as many parcels come as go");
        let mut begun = Begun { functions, constants, requests: Vec::new(), parcels, is_over: false };
        // As in other exchanges, everyone begins with another one.
        for other in (1..ranks).map(|round| (rank + round) % ranks) {
            begun.receive(other)?;
        }
        for other in (1..ranks).map(|round| (rank + round) % ranks) {
            begun.send(other)?;
        }
        Ok(begun)
    }

    fn receive(&mut self, from: usize) -> Result<(), Error> {
        let Constants { world, byte, .. } = self.constants;
        let room = &mut self.parcels.receive[from];
        let (data, most) = (room.as_mut_ptr().cast(), count(room.len()));
        let mut request = H::UNSET;
        // SAFETY: the room stays where it is, on the heap, until the request is done: see `drop`.
        let code =
            unsafe { (self.functions.irecv)(data, most, byte, from as c_int, BEGUN, world, &mut request) };
        self.functions.check("MPI_Irecv", code)?;
        self.requests.push(request);
        Ok(())
    }

    fn send(&mut self, to: usize) -> Result<(), Error> {
        let Constants { world, byte, .. } = self.constants;
        let parcel = &self.parcels.send[to];
        let (data, length) = (parcel.as_ptr().cast(), count(parcel.len()));
        let mut request = H::UNSET;
        // SAFETY: as above, and nothing changes the parcel meanwhile.
        let code =
            unsafe { (self.functions.isend)(data, length, byte, to as c_int, BEGUN, world, &mut request) };
        self.functions.check("MPI_Isend", code)?;
        self.requests.push(request);
        Ok(())
    }
}

/// A number of bytes as MPI counts them.
fn count(bytes: usize) -> c_int {
    assert!(bytes < MOST, "a parcel of {bytes} bytes is too long");
    bytes as c_int
}

impl<H: Handle> Exchange for Begun<H> {
    fn is_over(&mut self) -> Result<bool, Error> {
        if !self.is_over {
            let (requests, mut over) = (self.requests.as_mut_ptr(), 0);
            let (length, no_status) = (self.requests.len() as c_int, self.constants.no_status);
            // SAFETY: there are as many requests as is said, and those that are done were marked so by MPI.
            let code = unsafe { (self.functions.testall)(length, requests, &mut over, no_status) };
            self.functions.check("MPI_Testall", code)?;
            self.is_over = over != 0;
        }
        Ok(self.is_over)
    }

    fn finish(mut self: Box<Self>) -> Result<Parcels, Error> {
        if !self.is_over {
            let (requests, length) = (self.requests.as_mut_ptr(), self.requests.len() as c_int);
            // SAFETY: as above.
            let code = unsafe { (self.functions.waitall)(length, requests, self.constants.no_status) };
            self.functions.check("MPI_Waitall", code)?;
            self.is_over = true;
        }
        Ok(std::mem::take(&mut self.parcels))
    }
}

impl<H> Drop for Begun<H> {
    /// What MPI may still use is never freed: something has failed, and the process is about to end.
    fn drop(&mut self) {
        if !self.is_over {
            std::mem::forget(std::mem::take(&mut self.parcels));
        }
    }
}
