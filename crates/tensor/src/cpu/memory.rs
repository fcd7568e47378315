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
    /// Bytes in use, the most there ever were, and bytes lying here.
    used: usize,
    peak: usize,
    kept: usize,
    /// How many buffers were asked of the system.
    #[cfg(test)]
    fresh: usize,
}

impl Free {
    /// Lets go of what lies here when all of it together has outgrown what was ever used at once by half. That happens
    /// when sizes change for good; the buffers of a steady step, which are not all in use at the same moment, stay.
    fn trim(&mut self) {
        if self.used + self.kept > self.peak + self.peak / 2 + SLACK {
            self.buffers.clear();
            self.kept = 0;
            // What was used before the change shall not count for ever.
            self.peak = self.used;
        }
    }
}

/// What may be kept in any case, in bytes.
const SLACK: usize = 1 << 21;

impl Pool {
    /// A buffer of `len` numbers of any value.
    pub(super) fn take(self: &Arc<Self>, dtype: DType, len: usize) -> Memory {
        let size = size_class(len);
        let storage = {
            let mut free = self.free.lock().expect("the pool never panics");
            free.used += bytes(dtype, size);
            free.peak = free.peak.max(free.used);
            let found = free.buffers.get_mut(&(dtype as u8, size)).and_then(Vec::pop);
            match found {
                Some(_) => free.kept -= bytes(dtype, size),
                // Only a fresh buffer makes the whole of it grow.
                None => free.trim(),
            }
            #[cfg(test)]
            {
                free.fresh += usize::from(found.is_none());
            }
            found
        };
        #[allow(unused_mut, reason = "changed in debug builds")]
        let mut storage = storage.unwrap_or_else(|| Storage::zeros(dtype, size));
        // Whoever reads what was never written shall see it.
        #[cfg(debug_assertions)]
        match &mut storage {
            Storage::F32(data) => data.fill(f32::NAN),
            Storage::Bf16(data) => data.fill(bf16::NAN),
            _ => {}
        }
        Memory { storage: Some(storage), len, pool: Arc::clone(self) }
    }

    fn give_back(&self, storage: Storage, size: usize) {
        let mut free = self.free.lock().expect("the pool never panics");
        let dtype = storage.dtype();
        free.used -= bytes(dtype, size);
        free.kept += bytes(dtype, size);
        free.buffers.entry((dtype as u8, size)).or_default().push(storage);
    }

    /// How many buffers were asked of the system so far.
    #[cfg(test)]
    pub(super) fn fresh(&self) -> usize {
        self.free.lock().unwrap().fresh
    }
}

fn bytes(dtype: DType, size: usize) -> usize {
    size * match dtype {
        DType::F32 | DType::I32 => 4,
        DType::Bf16 | DType::F16 => 2,
        DType::I8 => 1,
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

    /// Of a type that is not filled in debug builds: what is never touched takes no real memory.
    const LAZY: DType = DType::I8;

    #[test]
    fn a_steady_step_takes_nothing_fresh_however_large_it_is() {
        let pool = Arc::new(Pool::default());
        let step = || (0..20).map(|_| pool.take(LAZY, 1 << 26)).collect::<Vec<_>>();
        drop(step());
        for _ in 0..3 {
            drop(step());
            assert_eq!(pool.fresh(), 20);
        }
    }

    #[test]
    fn buffers_that_nobody_asks_for_any_more_are_let_go() {
        let pool = Arc::new(Pool::default());
        let mut largest = 0;
        for i in 1..60 {
            drop(pool.take(LAZY, i << 22));
            largest = bytes(LAZY, size_class(i << 22));
            let free = pool.free.lock().unwrap();
            assert!(free.used + free.kept <= largest + largest / 2 + SLACK, "{i}: {}", free.kept);
        }
        // Far from all of them: together they would have thirty times the size of the largest.
        assert!(pool.free.lock().unwrap().kept < 2 * largest);
    }
}
