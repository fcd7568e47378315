//! Memory that starts at a cache line, so that vectors and tiles never straddle one.

use half::{bf16, f16};
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// A type of which any bits are a value and all zeros is zero.
///
/// # Safety
/// Implementors must be plain numbers: no padding, no invalid bits, nothing to drop.
pub unsafe trait Element: Copy + Send + Sync + 'static {}

// Safety: a plain number.
unsafe impl Element for f32 {}
// Safety: a plain number.
unsafe impl Element for bf16 {}
// Safety: a plain number.
unsafe impl Element for f16 {}
// Safety: a plain number.
unsafe impl Element for i8 {}
// Safety: a plain number.
unsafe impl Element for i32 {}
// Safety: a plain number.
unsafe impl Element for u32 {}

/// A slice of numbers on the heap, zero at first, that starts at a multiple of [`ALIGNMENT`] bytes.
pub struct Aligned<T: Element> {
    start: NonNull<T>,
    len: usize,
    /// The chunk that it is a part of, if it has no allocation of its own.
    chunk: Option<Arc<Chunk>>,
}

/// The size of a cache line and of the widest vector.
pub const ALIGNMENT: usize = 64;

const HUGE_PAGE: usize = 1 << 21;

/// Pages of 2 MiB for large memory. A product reads its operands along columns, too, where each row may be on a page of its own, and the
/// processor's TLB has room for few pages.
fn ask_for_huge_pages(start: NonNull<u8>, layout: Layout) {
    #[cfg(target_os = "linux")]
    if layout.align() >= HUGE_PAGE {
        // Safety: the memory is ours; the advice changes nothing but how it is mapped, and may be ignored.
        unsafe { libc::madvise(start.as_ptr().cast(), layout.size(), libc::MADV_HUGEPAGE) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (start, layout);
}

/// Huge pages that are given out in parts. They are freed when all parts are dropped.
struct Chunk {
    start: NonNull<u8>,
}

// Safety: it does nothing with its memory but give it back.
unsafe impl Send for Chunk {}
// Safety: as above.
unsafe impl Sync for Chunk {}

impl Chunk {
    const LAYOUT: Layout = match Layout::from_size_align(4 * HUGE_PAGE, HUGE_PAGE) {
        Ok(layout) => layout,
        Err(_) => panic!("a chunk has a size"),
    };

    /// The next `size` free bytes, of the current chunk or of a new one.
    fn part(size: usize) -> (Arc<Chunk>, NonNull<u8>) {
        /// The current chunk, and how many of its bytes are used.
        static OPEN: Mutex<(Weak<Chunk>, usize)> = Mutex::new((Weak::new(), 0));
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = open.0.upgrade().filter(|_| open.1 + size <= Self::LAYOUT.size());
        let chunk = fits.unwrap_or_else(|| {
            // Safety: the layout is not empty.
            let start = unsafe { alloc(Self::LAYOUT) };
            let start = NonNull::new(start).unwrap_or_else(|| handle_alloc_error(Self::LAYOUT));
            ask_for_huge_pages(start, Self::LAYOUT);
            let chunk = Arc::new(Chunk { start });
            *open = (Arc::downgrade(&chunk), 0);
            chunk
        });
        // Safety: inside of the chunk.
        let start = unsafe { chunk.start.add(open.1) };
        open.1 += size;
        (chunk, start)
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        // Safety: as it was allocated.
        unsafe { dealloc(self.start.as_ptr(), Self::LAYOUT) };
    }
}

// Safety: it owns its memory as a `Vec` does, and `Element` is `Send`.
unsafe impl<T: Element> Send for Aligned<T> {}
// Safety: as above.
unsafe impl<T: Element> Sync for Aligned<T> {}

impl<T: Element> Aligned<T> {
    /// `len` zeros.
    pub fn zeros(len: usize) -> Self {
        if len == 0 {
            return Aligned { start: NonNull::dangling(), len, chunk: None };
        }
        let layout = Self::layout(len);
        // Safety: the layout is not empty.
        let start = unsafe { alloc(layout) };
        let start = NonNull::new(start).unwrap_or_else(|| handle_alloc_error(layout));
        ask_for_huge_pages(start, layout);
        // Safety: all of it is ours, and zero bits are zero.
        unsafe { start.write_bytes(0, layout.size()) };
        Aligned { start: start.cast(), len, chunk: None }
    }

    /// `len` zeros that are kept for long, such as weights. Many small ones share huge pages, which halves the page faults.
    pub(crate) fn lasting(len: usize) -> Self {
        let size = Self::layout(len).size().next_multiple_of(ALIGNMENT);
        if len == 0 || size >= HUGE_PAGE {
            return Aligned::zeros(len);
        }
        let (chunk, start) = Chunk::part(size);
        // Safety: this part of the chunk is ours, and zero bits are zero.
        unsafe { start.write_bytes(0, size) };
        Aligned { start: start.cast(), len, chunk: Some(chunk) }
    }

    /// Large memory starts at a huge page.
    fn layout(len: usize) -> Layout {
        let layout = Layout::array::<T>(len);
        let align =
            |layout: Layout| layout.align_to(if layout.size() < HUGE_PAGE { ALIGNMENT } else { HUGE_PAGE });
        layout.and_then(align).unwrap_or_else(|_| panic!("{len} elements are more than memory can address"))
    }
}

impl<T: Element> Drop for Aligned<T> {
    fn drop(&mut self) {
        if self.len > 0 && self.chunk.is_none() {
            // Safety: allocated in `zeros` with the same layout, since it is no part of a chunk.
            unsafe { dealloc(self.start.as_ptr().cast(), Self::layout(self.len)) }
        }
    }
}

impl<T: Element> Deref for Aligned<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        // Safety: `len` initialised elements that we own.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T: Element> DerefMut for Aligned<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // Safety: `len` initialised elements that we own, borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl<T: Element + std::fmt::Debug> std::fmt::Debug for Aligned<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.deref().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_zero_and_starts_at_a_cache_line() {
        for len in [0, 1, 17, 4096, HUGE_PAGE] {
            let mut a = Aligned::<f32>::zeros(len);
            assert!(a.iter().all(|&x| x == 0.0));
            assert!(len == 0 || (a.as_ptr() as usize).is_multiple_of(ALIGNMENT));
            a.fill(1.5);
            assert_eq!(a.iter().map(|&x| x as f64).sum::<f64>(), 1.5 * len as f64);
        }
    }

    #[test]
    fn parts_of_a_chunk_are_zero_and_apart_however_they_come_and_go() {
        let mut kept: Vec<(usize, Aligned<f32>)> = Vec::new();
        for round in 0..60 {
            // Some are larger than what is left of a chunk; the last are as large as a huge page and have their own.
            let len = [0, 1, 17, 5000, HUGE_PAGE / 8, HUGE_PAGE / 4][round % 6];
            let mut part = Aligned::lasting(len);
            assert!(part.iter().all(|&x| x == 0.0));
            assert!(len == 0 || (part.as_ptr() as usize).is_multiple_of(ALIGNMENT));
            part.fill(round as f32);
            kept.push((round, part));
            if round % 2 == 0 {
                kept.swap_remove(round * 7 % kept.len());
            }
        }
        assert!(kept.iter().all(|(round, part)| part.iter().all(|&x| x == *round as f32)));
    }
}
