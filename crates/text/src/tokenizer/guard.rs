//! Calls into a library that panics where it should return an error.
//!
//! The `tokenizers` crate panics on some files and texts that it was not made for. What reaches us is an error like any other.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Whether a panic on this thread would be caught and become an [`Error`](super::Error): a hook need not tell of it.
pub fn panic_is_caught() -> bool {
    GUARDED.get()
}

/// What a call returns, or the message that it panicked with.
pub(super) fn guarded<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    let before = GUARDED.replace(true);
    // Whatever it left half done is its own: the next call may fail as well, and is guarded as well.
    let result = catch_unwind(AssertUnwindSafe(call));
    GUARDED.set(before);
    result.map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        text.unwrap_or("it panicked without a message").to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_its_message() {
        assert_eq!(guarded(|| 1), Ok(1));
        assert_eq!(guarded(|| -> u8 { panic!("no {}", "way") }), Err("no way".to_owned()));
        assert!(!panic_is_caught());
        assert_eq!(guarded(panic_is_caught), Ok(true));
    }
}
