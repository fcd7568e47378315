//! Scratch memory that a thread keeps between kernels, so that a training step allocates nothing after the first.

use crate::aligned::{Aligned, Element};
use std::cell::RefCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

thread_local! {
    static FREE: RefCell<Vec<Aligned<f32>>> = const { RefCell::new(Vec::new()) };
}

/// Scratch memory with arbitrary numbers in it. Dropping it gives it back to the thread.
#[derive(Debug)]
pub(crate) struct Scratch<T: Element = f32> {
    memory: Aligned<f32>,
    len: usize,
    element: PhantomData<T>,
}

impl<T: Element> Scratch<T> {
    /// `len` numbers of any value, aligned to a cache line.
    pub(crate) fn take(len: usize) -> Scratch<T> {
        const { assert!(size_of::<T>() <= size_of::<f32>()) };
        let words = (len * size_of::<T>()).div_ceil(size_of::<f32>());
        let memory = FREE.with_borrow_mut(|free| {
            let fits = (0..free.len()).filter(|&i| free[i].len() >= words).min_by_key(|&i| free[i].len());
            // If none fits, the largest is replaced, so that memory does not pile up.
            let index = fits.or_else(|| (0..free.len()).max_by_key(|&i| free[i].len()));
            let found = index.map(|index| free.swap_remove(index));
            found.filter(|memory| memory.len() >= words)
        });
        Scratch { memory: memory.unwrap_or_else(|| Aligned::zeros(words)), len, element: PhantomData }
    }
}

impl<T: Element> Drop for Scratch<T> {
    fn drop(&mut self) {
        let memory = std::mem::replace(&mut self.memory, Aligned::zeros(0));
        // A thread that is ending keeps no memory any more.
        let _ = FREE.try_with(|free| free.borrow_mut().push(memory));
    }
}

impl<T: Element> Deref for Scratch<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        // Safety: `take` made room for `len` elements, which are not more aligned than a cache line, and any bits are
        // a value.
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr().cast(), self.len) }
    }
}

impl<T: Element> DerefMut for Scratch<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // Safety: as above, and borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.memory.as_mut_ptr().cast(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_comes_back() {
        let first = Scratch::<f32>::take(1000).as_ptr();
        assert_eq!(Scratch::<f32>::take(900).as_ptr(), first);
        assert_eq!(Scratch::<half::bf16>::take(1999).as_ptr().cast(), first);
        let (a, b) = (Scratch::<f32>::take(800), Scratch::<f32>::take(800));
        assert_ne!(a.as_ptr(), b.as_ptr());
    }
}
