//! Numbers seen as bytes, as they travel.

use half::bf16;
use std::slice::{from_raw_parts, from_raw_parts_mut};

/// A number that is nothing but its bytes: every pattern of bytes is one, and there is no padding.
///
/// # Safety
/// Exactly such types may carry it out.
pub unsafe trait Plain: Copy + Default + 'static {}

// SAFETY: integers and floating-point numbers have no padding, and any bytes are one of them.
unsafe impl Plain for u8 {}
// SAFETY: as above.
unsafe impl Plain for u64 {}
// SAFETY: as above.
unsafe impl Plain for f32 {}
// SAFETY: a transparent `u16`.
unsafe impl Plain for bf16 {}

/// The bytes of some numbers.
pub fn bytes<T: Plain>(numbers: &[T]) -> &[u8] {
    // SAFETY: the same memory, all of it initialised since the type has no padding; bytes have no alignment.
    unsafe { from_raw_parts(numbers.as_ptr().cast(), size_of_val(numbers)) }
}

/// The same to be written to.
pub fn bytes_mut<T: Plain>(numbers: &mut [T]) -> &mut [u8] {
    // SAFETY: as above, and whatever is written is a number.
    unsafe { from_raw_parts_mut(numbers.as_mut_ptr().cast(), size_of_val(numbers)) }
}
