//! The memory of the CPU backend: buffers that come from a pool and go back to it.
//!
//! A training step asks for the same buffers as the step before. They are kept when they are dropped and handed out
//! again, so that a steady step asks the system for nothing and touches no fresh page.

use crate::tensor::DType;
use attentive_kernels::{Aligned, Element};
use half::{bf16, f16};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Numbers of one of the types.
#[derive(Debug)]
pub(super) enum Storage {
    F32(Aligned<f32>),
    Bf16(Aligned<bf16>),
    F16(Aligned<f16>),
    I8(Aligned<i8>),
    I32(Aligned<i32>),
}

/// What a buffer of the CPU backend holds: at least `len` numbers, of which the first `len` count.
#[derive(Debug)]
pub(super) struct Memory {
    storage: Option<Storage>,
    len: usize,
    pool: Arc<Pool>,
}

/// A type of number that buffers can hold.
pub(super) trait Number: Element {
    const DTYPE: DType;
    fn view(storage: &Storage) -> Option<&Aligned<Self>>;
    fn view_mut(storage: &mut Storage) -> Option<&mut Aligned<Self>>;
}

macro_rules! number {
    ($type:ty, $variant:ident) => {
        impl Number for $type {
            const DTYPE: DType = DType::$variant;
            fn view(storage: &Storage) -> Option<&Aligned<$type>> {
                if let Storage::$variant(data) = storage { Some(data) } else { None }
            }
            fn view_mut(storage: &mut Storage) -> Option<&mut Aligned<$type>> {
                if let Storage::$variant(data) = storage { Some(data) } else { None }
            }
        }
    };
}
number!(f32, F32);
number!(bf16, Bf16);
number!(f16, F16);
number!(i8, I8);
number!(i32, I32);

impl Storage {
    fn zeros(dtype: DType, len: usize) -> Storage {
        match dtype {
            DType::F32 => Storage::F32(Aligned::zeros(len)),
            DType::Bf16 => Storage::Bf16(Aligned::zeros(len)),
            DType::F16 => Storage::F16(Aligned::zeros(len)),
            DType::I8 => Storage::I8(Aligned::zeros(len)),
            DType::I32 => Storage::I32(Aligned::zeros(len)),
        }
    }

    fn dtype(&self) -> DType {
        match self {
            Storage::F32(_) => DType::F32,
            Storage::Bf16(_) => DType::Bf16,
            Storage::F16(_) => DType::F16,
            Storage::I8(_) => DType::I8,
            Storage::I32(_) => DType::I32,
        }
    }
}

impl Memory {
    /// The numbers, if they are of this type.
    pub(super) fn view<T: Number>(&self) -> Option<&[T]> {
        Some(&T::view(self.storage.as_ref()?)?[..self.len])
    }

    /// The numbers, to be changed.
    pub(super) fn view_mut<T: Number>(&mut self) -> Option<&mut [T]> {
        Some(&mut T::view_mut(self.storage.as_mut()?)?[..self.len])
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Some(storage) = self.storage.take() {
            self.pool.give_back(storage, size_class(self.len));
        }
    }
}

/// Buffers that nobody uses at the moment, by type and size.
#[derive(Debug, Default)]
pub(super) struct Pool {
    free: Mutex<Free>,
}

#[derive(Debug, Default)]
struct Free {
    buffers: BTreeMap<(u8, usize), Vec<Storage>>,
    /// Numbers in use and numbers lying here.
    used: usize,
    kept: usize,
}

/// The pool lets go of what it keeps when that outgrows what is in use by this many numbers.
const SLACK: usize = 1 << 26;

impl Pool {
    /// A buffer of `len` numbers of any value.
    pub(super) fn take(self: &Arc<Self>, dtype: DType, len: usize) -> Memory {
        let size = size_class(len);
        let storage = {
            let mut free = self.free.lock().expect("the pool never panics");
            free.used += size;
            let found = free.buffers.get_mut(&(dtype as u8, size)).and_then(Vec::pop);
            free.kept -= if found.is_some() { size } else { 0 };
            found
        };
        #[allow(unused_mut, reason = "changed in debug builds")]
        let mut storage = storage.unwrap_or_else(|| Storage::zeros(dtype, size));
        // Whoever reads what was never written shall see it.
        #[cfg(debug_assertions)]
        if let Storage::F32(data) = &mut storage {
            data.fill(f32::NAN);
        }
        Memory { storage: Some(storage), len, pool: Arc::clone(self) }
    }

    fn give_back(&self, storage: Storage, size: usize) {
        let mut free = self.free.lock().expect("the pool never panics");
        free.used -= size;
        if free.kept > free.used + SLACK {
            free.buffers.clear();
            free.kept = 0;
        }
        free.kept += size;
        free.buffers.entry((storage.dtype() as u8, size)).or_default().push(storage);
    }
}

/// Sizes are rounded up, by an eighth at most, so that batches of slightly different sizes share buffers.
fn size_class(len: usize) -> usize {
    let step = (len.next_power_of_two() / 16).max(16);
    len.next_multiple_of(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_buffer_is_handed_out_again() {
        let pool = Arc::new(Pool::default());
        let first = pool.take(DType::F32, 1000);
        let at = first.view::<f32>().unwrap().as_ptr();
        drop(first);
        let second = pool.take(DType::F32, 990);
        assert_eq!(second.view::<f32>().unwrap().as_ptr(), at);
        assert_eq!(second.view::<f32>().unwrap().len(), 990);
        assert!(second.view::<i32>().is_none());
    }

    #[test]
    fn rounding_up_wastes_an_eighth_at_most() {
        for len in (0..100_000).step_by(37) {
            let size = size_class(len);
            assert!(size >= len && size <= len + (len / 8).max(16), "{len} {size}");
        }
    }
}
