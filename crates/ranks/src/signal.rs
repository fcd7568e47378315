//! SIGUSR1, by which schedulers announce that a job's time is nearly over (`sbatch --signal=USR1@120`).

use std::sync::atomic::AtomicBool;
#[cfg(unix)]
use std::sync::atomic::Ordering;

static STOP: AtomicBool = AtomicBool::new(false);

/// Listens for SIGUSR1 from now on. The flag that is returned is set when it comes; others may set it, too.
pub fn stop_on_sigusr1() -> &'static AtomicBool {
    #[cfg(unix)]
    listen();
    &STOP
}

#[cfg(unix)]
fn listen() {
    extern "C" fn asked(_: libc::c_int) {
        STOP.store(true, Ordering::Relaxed);
    }
    let handler: extern "C" fn(libc::c_int) = asked;
    // SAFETY: the handler only stores to an atomic, which any signal may interrupt.
    unsafe { libc::signal(libc::SIGUSR1, handler as libc::sighandler_t) };
}
