//! Ctrl-C and the signals that end a program: the first asks, the second does not.

use std::sync::atomic::{AtomicBool, Ordering};

/// Calls `ask` at the first signal; a second one ends the program at once.
pub(crate) fn on_signal(ask: impl Fn() + Send + 'static) {
    let asked = AtomicBool::new(false);
    let handler = move || {
        if asked.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
        ask();
    };
    // Without a handler a signal ends the program at once.
    let _ = ctrlc::set_handler(handler);
}
