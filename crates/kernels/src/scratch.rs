//! Scratch memory that a thread keeps between kernels, so that a steady step asks the system for none.

use crate::aligned::Aligned;
use half::bf16;
use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

thread_local! {
    static FREE: RefCell<Vec<Aligned<f32>>> = const { RefCell::new(Vec::new()) };
}

/// Some numbers left over from an earlier use; they go back to the thread's store when dropped.
pub(crate) struct Scratch {
    memory: Aligned<f32>,
    len: usize,
}

impl Scratch {
    /// `len` numbers of any value, aligned to a cache line.
    pub(crate) fn take(len: usize) -> Scratch {
        let memory = FREE.with_borrow_mut(|free| {
            let fits = (0..free.len()).filter(|&i| free[i].len() >= len).min_by_key(|&i| free[i].len());
            // Where none fits, the largest makes room for its successor: the store does not pile up.
            let index = fits.or_else(|| (0..free.len()).max_by_key(|&i| free[i].len()));
            let found = index.map(|index| free.swap_remove(index));
            found.filter(|memory| memory.len() >= len)
        });
        Scratch { memory: memory.unwrap_or_else(|| Aligned::zeros(len)), len }
    }
}

impl Scratch {
    /// The same memory as twice as many numbers of bf16.
    pub(crate) fn as_bf16(&self) -> &[bf16] {
        // Safety: half the size, less aligned, and any bits are a value.
        unsafe { std::slice::from_raw_parts(self.as_ptr().cast(), 2 * self.len) }
    }

    /// The same memory as twice as many numbers of bf16.
    pub(crate) fn as_bf16_mut(&mut self) -> &mut [bf16] {
        // Safety: as above, and borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.as_mut_ptr().cast(), 2 * self.len) }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let memory = std::mem::replace(&mut self.memory, Aligned::zeros(0));
        // A thread that is ending has no store any more.
        let _ = FREE.try_with(|free| free.borrow_mut().push(memory));
    }
}

impl Deref for Scratch {
    type Target = [f32];
    fn deref(&self) -> &[f32] {
        &self.memory[..self.len]
    }
}

impl DerefMut for Scratch {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.memory[..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_comes_back() {
        let first = Scratch::take(1000).as_ptr();
        assert_eq!(Scratch::take(900).as_ptr(), first);
        let (a, b) = (Scratch::take(800), Scratch::take(800));
        assert_ne!(a.as_ptr(), b.as_ptr());
    }
}
