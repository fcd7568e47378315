//! What tells one implementation of MPI from another, as far as this program uses it.
//!
//! | | handles | `MPI_COMM_WORLD` | `MPI_BYTE` | no status |
//! |---|---|---|---|---|
//! | Open MPI | pointers | `&ompi_mpi_comm_world` | `&ompi_mpi_byte` | 0 |
//! | MPICH | `int` | `0x44000000` | `0x4c00010d` | 1 |
//! | MPI 5 | pointers | `0x101` | `0x247` | 0 |
//!
//! No status is ever looked at, so that its layout, which differs, does not matter. Where there are several, none of them has the same
//! value as no status.

use super::library::Library;
use crate::Error;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::fmt::Debug;

/// The handles of Open MPI and of the standard ABI.
pub(super) type Pointer = *mut c_void;

impl<H> Functions<H> {
    /// What a function of this name has returned.
    pub(super) fn check(&self, call: &'static str, code: c_int) -> Result<(), Error> {
        if code == 0 {
            return Ok(());
        }
        // Longer than what any implementation writes.
        let (mut text, mut length) = ([0 as c_char; 8192], 0);
        // SAFETY: there is room for the text and its end.
        let told = unsafe { (self.error_string)(code, text.as_mut_ptr(), &mut length) } == 0;
        text[text.len() - 1] = 0;
        // SAFETY: the text ends with a zero, if nothing else the last one.
        let text = unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy();
        let message = if told { text.trim().to_owned() } else { format!("error {code}") };
        Err(Error::Call { call, message })
    }
}

/// The constants.
#[derive(Debug, Clone, Copy)]
pub(super) struct Constants<H> {
    pub world: H,
    pub byte: H,
    pub errors_return: H,
    pub no_status: *mut c_void,
    pub any_source: c_int,
    pub no_rank: c_int,
    pub thread_funneled: c_int,
}

impl Constants<Pointer> {
    pub(super) fn of_open_mpi(library: &Library) -> Result<Self, Error> {
        Ok(Constants {
            world: library.symbol("ompi_mpi_comm_world")?,
            byte: library.symbol("ompi_mpi_byte")?,
            errors_return: library.symbol("ompi_mpi_errors_return")?,
            no_status: std::ptr::null_mut(),
            any_source: -1,
            no_rank: -2,
            thread_funneled: 1,
        })
    }

    pub(super) fn of_the_standard() -> Self {
        let handle = |number: usize| std::ptr::without_provenance_mut(number);
        Constants {
            world: handle(0x101),
            byte: handle(0x247),
            errors_return: handle(0x143),
            no_status: std::ptr::null_mut(),
            any_source: -1,
            no_rank: -3,
            thread_funneled: 1024,
        }
    }
}

impl Constants<c_int> {
    pub(super) fn of_mpich() -> Self {
        Constants {
            world: 0x4400_0000,
            byte: 0x4c00_010d,
            errors_return: 0x5400_0001,
            no_status: std::ptr::without_provenance_mut(1),
            any_source: -2,
            no_rank: -1,
            thread_funneled: 1,
        }
    }
}

/// A handle that stands for nothing yet, to be written by MPI.
pub(super) trait Handle: Copy + Debug + 'static {
    const UNSET: Self;
}

impl Handle for Pointer {
    const UNSET: Self = std::ptr::null_mut();
}

impl Handle for c_int {
    const UNSET: Self = 0;
}

macro_rules! functions {
    ($($name:ident = $symbol:literal ($($argument:ty),*);)*) => {
        /// The functions, which all return an error code.
        #[derive(Debug)]
        pub(super) struct Functions<H> {
            $(pub $name: unsafe extern "C" fn($($argument),*) -> c_int,)*
        }

        impl<H: Handle> Functions<H> {
            pub(super) fn of(library: &Library) -> Result<Self, Error> {
                $(
                    let address = library.symbol($symbol)?;
                    // SAFETY: the standard gives the function these arguments, and the caller has chosen the type of handles
                    // that this library has.
                    let $name = unsafe {
                        std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($argument),*) -> c_int>(address)
                    };
                )*
                Ok(Functions { $($name),* })
            }
        }
    };
}

functions! {
    init_thread = "MPI_Init_thread" (*mut c_int, *mut *mut *mut c_char, c_int, *mut c_int);
    comm_rank = "MPI_Comm_rank" (H, *mut c_int);
    comm_size = "MPI_Comm_size" (H, *mut c_int);
    comm_set_errhandler = "MPI_Comm_set_errhandler" (H, H);
    error_string = "MPI_Error_string" (c_int, *mut c_char, *mut c_int);
    // Buffer, count, type, to, tag; buffer, count, type, from, tag; communicator, status.
    sendrecv = "MPI_Sendrecv" (*const c_void, c_int, H, c_int, c_int, *mut c_void, c_int, H, c_int, c_int, H, *mut c_void);
    bcast = "MPI_Bcast" (*mut c_void, c_int, H, c_int, H);
    barrier = "MPI_Barrier" (H);
    isend = "MPI_Isend" (*const c_void, c_int, H, c_int, c_int, H, *mut H);
    irecv = "MPI_Irecv" (*mut c_void, c_int, H, c_int, c_int, H, *mut H);
    recv = "MPI_Recv" (*mut c_void, c_int, H, c_int, c_int, H, *mut c_void);
    iprobe = "MPI_Iprobe" (c_int, c_int, H, *mut c_int, *mut c_void);
    test = "MPI_Test" (*mut H, *mut c_int, *mut c_void);
    // Count, requests, whether all are done, statuses.
    testall = "MPI_Testall" (c_int, *mut H, *mut c_int, *mut c_void);
    waitall = "MPI_Waitall" (c_int, *mut H, *mut c_void);
    abort = "MPI_Abort" (H, c_int);
    finalize = "MPI_Finalize" ();
}
