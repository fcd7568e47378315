//! Ctrl-C and the signals that end a program.
//!
//! A command that has something to finish first registers a function ([`on_signal`]); a second signal then ends the program at once.
//! Every other command ends at the first, with exit code 130.

use std::io::{Write, stderr};
use std::process::exit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// The exit code of a program that Ctrl-C has ended, as shells have it: 128 and the number of the signal.
pub(crate) const CODE: u8 = 130;

type Ask = Box<dyn Fn() + Send>;

static ASK: Mutex<Option<Ask>> = Mutex::new(None);

/// Listens for signals from now on.
pub(crate) fn listen() {
    let asked = AtomicBool::new(false);
    let handler = move || {
        if asked.swap(true, Ordering::Relaxed) {
            exit(CODE.into());
        }
        match &*ASK.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(ask) => ask(),
            None => {
                // The exit code is set even if stderr is closed.
                let _ = writeln!(stderr(), "attentive: interrupted");
                exit(CODE.into());
            }
        }
    };
    // Without a handler a signal ends the program at once.
    let _ = ctrlc::set_handler(handler);
}

/// Calls `ask` at the first signal; a second one ends the program at once.
pub(crate) fn on_signal(ask: impl Fn() + Send + 'static) {
    *ASK.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(ask));
}
