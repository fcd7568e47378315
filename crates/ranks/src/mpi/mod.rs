//! Ranks over MPI.

mod abi;
mod exchange;
mod library;

use crate::{Error, Exchange, Group, Implementation, Parcels};
use abi::{Constants, Functions, Handle};
use library::Library;
use std::cell::RefCell;
use std::ffi::c_int;
use std::ptr::null_mut;
use std::rc::Rc;

/// The most bytes of a message: MPI counts in `int`.
const MOST: usize = 1 << 30;
/// Tags of collective operations, of exchanges that were begun, of the announcement of a message, and of the message itself.
const COLLECTIVE: c_int = 1;
const BEGUN: c_int = 4;
const ANNOUNCEMENT: c_int = 2;
const MESSAGE: c_int = 3;

/// Joins the processes that a launcher of this implementation has started.
pub(crate) fn join(implementation: Implementation, started: usize) -> Result<Rc<dyn Group>, Error> {
    let (launcher, files, advice): (_, &[&str], _) = match implementation {
        Implementation::OpenMpi => (
            "Open MPI",
            &["libmpi.so.40"],
            "install Open MPI (Debian and Ubuntu: openmpi-bin), or name another with --mpi mpich or abi",
        ),
        Implementation::Mpich => (
            "MPICH",
            &["libmpich.so.12", "libmpi.so.12"],
            "install MPICH (Debian and Ubuntu: mpich), or name another with --mpi openmpi or abi",
        ),
        Implementation::Abi => (
            "of the standard ABI",
            &["libmpi_abi.so.1", "libmpi_abi.so.0", "libmpi_abi.so"],
            "install an MPI with the standard ABI (MPICH 5, Open MPI 6), and let LD_LIBRARY_PATH lead to it",
        ),
    };
    let library = Library::open(files).map_err(|reason| Error::NoLibrary { launcher, reason, advice })?;
    die_with_the_launcher();
    Ok(match implementation {
        Implementation::OpenMpi => Rc::new(Mpi::join(&library, Constants::of_open_mpi(&library)?, started)?),
        Implementation::Mpich => Rc::new(Mpi::join(&library, Constants::of_mpich(), started)?),
        Implementation::Abi => Rc::new(Mpi::join(&library, Constants::of_the_standard(), started)?),
    })
}

/// Lets the system end this process when its launcher ends, even by `kill -9`: the others would wait for ever.
fn die_with_the_launcher() {
    #[cfg(target_os = "linux")]
    // SAFETY: it only asks the system for a signal.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
    }
}

/// A message on its way, whose memory MPI uses until the request is done.
#[derive(Debug)]
struct Underway<H> {
    request: H,
    bytes: Box<[u8]>,
    /// The other rank.
    with: usize,
}

/// This process among those of `MPI_COMM_WORLD`.
#[derive(Debug)]
struct Mpi<H> {
    functions: Rc<Functions<H>>,
    constants: Constants<H>,
    rank: usize,
    size: usize,
    sent: RefCell<Vec<Underway<H>>>,
    /// A message that was announced and has not arrived yet.
    coming: RefCell<Option<Underway<H>>>,
}

impl<H: Handle> Mpi<H> {
    fn join(library: &Library, constants: Constants<H>, started: usize) -> Result<Mpi<H>, Error> {
        let functions = Rc::new(Functions::of(library)?);
        let (sent, coming) = (RefCell::default(), RefCell::default());
        let mut mpi = Mpi { functions, constants, rank: 0, size: 1, sent, coming };
        let (mut rank, mut size, mut provided) = (0, 0, 0);
        let Constants { world, errors_return, thread_funneled, .. } = constants;
        // SAFETY: called once, and the arguments of the program may be left out.
        let code =
            unsafe { (mpi.functions.init_thread)(null_mut(), null_mut(), thread_funneled, &mut provided) };
        mpi.functions.check("MPI_Init_thread", code)?;
        // SAFETY: MPI is initialised, and the handles are constants of this implementation.
        let codes = unsafe {
            [
                (mpi.functions.comm_set_errhandler)(world, errors_return),
                (mpi.functions.comm_rank)(world, &mut rank),
                (mpi.functions.comm_size)(world, &mut size),
            ]
        };
        codes.into_iter().try_for_each(|code| mpi.functions.check("MPI_Comm_rank", code))?;
        (mpi.rank, mpi.size) = (rank as usize, size as usize);
        if mpi.size != started {
            let library = library.name().to_owned();
            return Err(Error::Strangers { started, found: mpi.size, library });
        }
        Ok(mpi)
    }

    /// Sends to one rank while receiving from another, in parts that MPI can count. Both others know the lengths, too, and so how
    /// many parts come.
    fn send_and_receive(&self, to: usize, send: &[u8], from: usize, receive: &mut [u8]) -> Result<(), Error> {
        let Constants { world, byte, no_status, no_rank, .. } = self.constants;
        let (mut send, mut receive) = (send.chunks(MOST), receive.chunks_mut(MOST));
        while send.len() > 0 || receive.len() > 0 {
            let (send, receive) = (send.next(), receive.next());
            let to = send.map_or(no_rank, |_| to as c_int);
            let from = receive.as_ref().map_or(no_rank, |_| from as c_int);
            let (send, receive) = (send.unwrap_or_default(), receive.unwrap_or_default());
            let (data, count) = (send.as_ptr().cast(), send.len() as c_int);
            let (room, most) = (receive.as_mut_ptr().cast(), receive.len() as c_int);
            // SAFETY: both buffers are as long as is said, and MPI is done with them when the call returns.
            let code = unsafe {
                (self.functions.sendrecv)(
                    data, count, byte, to, COLLECTIVE, room, most, byte, from, COLLECTIVE, world, no_status,
                )
            };
            self.functions.check("MPI_Sendrecv", code)?;
        }
        Ok(())
    }

    /// Whether MPI is done with a message.
    fn is_done(&self, message: &mut Underway<H>) -> Result<bool, Error> {
        let mut done = 0;
        // SAFETY: the request was made by MPI and is not done yet, or the call would not be made again.
        let code =
            unsafe { (self.functions.test)(&mut message.request, &mut done, self.constants.no_status) };
        self.functions.check("MPI_Test", code)?;
        Ok(done != 0)
    }

    /// Forgets the messages that have been sent.
    fn tidy(&self) -> Result<(), Error> {
        let mut sent = self.sent.borrow_mut();
        let mut at = 0;
        while at < sent.len() {
            if self.is_done(&mut sent[at])? {
                sent.remove(at);
            } else {
                at += 1;
            }
        }
        Ok(())
    }

    fn post(&self, to: usize, tag: c_int, bytes: Box<[u8]>) -> Result<(), Error> {
        let Constants { world, byte, .. } = self.constants;
        let mut message = Underway { request: H::UNSET, bytes, with: to };
        let (data, count) = (message.bytes.as_ptr().cast(), message.bytes.len() as c_int);
        // SAFETY: the bytes stay where they are, on the heap, until the request is done.
        let code = unsafe {
            (self.functions.isend)(data, count, byte, to as c_int, tag, world, &mut message.request)
        };
        self.sent.borrow_mut().push(message);
        self.functions.check("MPI_Isend", code)
    }

    /// Begins to receive the message that was announced next, if one was.
    fn expect(&self) -> Result<Option<Underway<H>>, Error> {
        let Constants { world, byte, no_status, any_source, .. } = self.constants;
        let mut announced = 0;
        // SAFETY: it only looks.
        let code =
            unsafe { (self.functions.iprobe)(any_source, ANNOUNCEMENT, world, &mut announced, no_status) };
        self.functions.check("MPI_Iprobe", code)?;
        if announced == 0 {
            return Ok(None);
        }
        let mut announcement = [0u8; 16];
        let (data, count) = (announcement.as_mut_ptr().cast(), announcement.len() as c_int);
        // SAFETY: announcements have sixteen bytes, for which there is room.
        let code =
            unsafe { (self.functions.recv)(data, count, byte, any_source, ANNOUNCEMENT, world, no_status) };
        self.functions.check("MPI_Recv", code)?;
        let (from, length) = announcement.split_at(8);
        let number = |bytes: &[u8]| usize::from_le_bytes(bytes.try_into().expect("eight bytes"));
        let (with, bytes) = (number(from), vec![0; number(length)].into_boxed_slice());
        let mut message = Underway { request: H::UNSET, bytes, with };
        let (data, count) = (message.bytes.as_mut_ptr().cast(), message.bytes.len() as c_int);
        // SAFETY: the bytes stay where they are, on the heap, until the request is done, and nothing reads them before.
        let code = unsafe {
            (self.functions.irecv)(data, count, byte, with as c_int, MESSAGE, world, &mut message.request)
        };
        self.functions.check("MPI_Irecv", code)?;
        Ok(Some(message))
    }
}

impl<H: Handle> Group for Mpi<H> {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn exchange(&self, send: &[&[u8]], receive: &mut [&mut [u8]]) -> Result<(), Error> {
        receive[self.rank].copy_from_slice(send[self.rank]);
        // In each round everyone sends to one and receives from one, so that no link is used twice.
        for round in 1..self.size {
            let (to, from) = ((self.rank + round) % self.size, (self.rank + self.size - round) % self.size);
            self.send_and_receive(to, send[to], from, receive[from])?;
        }
        Ok(())
    }

    fn begin(&self, parcels: Parcels) -> Result<Box<dyn Exchange>, Error> {
        let functions = Rc::clone(&self.functions);
        Ok(Box::new(exchange::Begun::new(functions, self.constants, self.rank, parcels)?))
    }

    fn broadcast(&self, data: &mut [u8]) -> Result<(), Error> {
        let Constants { world, byte, .. } = self.constants;
        for part in data.chunks_mut(MOST) {
            // SAFETY: the buffer is as long as is said.
            let code = unsafe {
                (self.functions.bcast)(part.as_mut_ptr().cast(), part.len() as c_int, byte, 0, world)
            };
            self.functions.check("MPI_Bcast", code)?;
        }
        Ok(())
    }

    fn send(&self, to: usize, message: &[u8]) -> Result<(), Error> {
        assert!(message.len() < MOST, "a message of {} bytes is too long", message.len());
        self.tidy()?;
        let announcement = [self.rank.to_le_bytes(), message.len().to_le_bytes()].concat();
        self.post(to, ANNOUNCEMENT, announcement.into())?;
        self.post(to, MESSAGE, message.into())
    }

    fn receive(&self) -> Result<Option<(usize, Vec<u8>)>, Error> {
        self.tidy()?;
        let mut coming = self.coming.borrow_mut();
        if coming.is_none() {
            *coming = self.expect()?;
        }
        let Some(message) = &mut *coming else { return Ok(None) };
        if !self.is_done(message)? {
            return Ok(None);
        }
        Ok(coming.take().map(|Underway { bytes, with, .. }| (with, bytes.into_vec())))
    }

    fn leave(&self) -> Result<(), Error> {
        while !self.sent.borrow().is_empty() {
            self.tidy()?;
        }
        // SAFETY: nothing is under way, and nothing is called afterwards but for the end of the process.
        let code = unsafe { (self.functions.barrier)(self.constants.world) };
        self.functions.check("MPI_Barrier", code)?;
        // SAFETY: as above.
        let code = unsafe { (self.functions.finalize)() };
        self.functions.check("MPI_Finalize", code)
    }

    fn abort(&self, code: i32) {
        // SAFETY: it ends all processes, this one included.
        unsafe { (self.functions.abort)(self.constants.world, code) };
    }
}
