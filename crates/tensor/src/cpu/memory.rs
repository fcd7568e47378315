//! The memory of the CPU backend: buffers that come from a pool and go back to it.
//!
//! A training step asks for the same buffers as the step before. They are kept when they are dropped and handed out
//! again, so that a steady step asks the system for nothing and touches no fresh page.

use super::order::Order;
use crate::tensor::DType;
use attentive_kernels::gemm::{BothWays, Int8Rows};
use attentive_kernels::{Aligned, Element};
use half::{bf16, f16};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};

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
    /// The same in int8, after the first product with weights in int8. Others follow, such as those of queries, keys and values.
    quantised: OnceLock<Arc<Int8Rows>>,
    /// The same as packed weights, after the first backward pass of a product with them.
    packed: OnceLock<BothWays>,
    /// The order of its columns, if that is not the usual one.
    order: Option<Order>,
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

    /// The type, and how many numbers there are.
    fn kind(&self) -> (DType, usize) {
        match self {
            Storage::F32(data) => (DType::F32, data.len()),
            Storage::Bf16(data) => (DType::Bf16, data.len()),
            Storage::F16(data) => (DType::F16, data.len()),
            Storage::I8(data) => (DType::I8, data.len()),
            Storage::I32(data) => (DType::I32, data.len()),
        }
    }
}

impl Memory {
    /// The numbers, if they are of this type.
    pub(super) fn view<T: Number>(&self) -> Option<&[T]> {
        Some(&T::view(self.storage.as_ref()?)?[..self.len])
    }

    /// The numbers, which must be of this type.
    pub(super) fn all<T: Number>(&self) -> &[T] {
        self.view().unwrap_or_else(|| panic!("{:?} expected", T::DTYPE))
    }

    /// The order of its columns, if that is not the usual one.
    pub(super) fn order(&self) -> Option<&Order> {
        self.order.as_ref()
    }

    pub(super) fn set_order(&mut self, order: Option<Order>) {
        self.order = order;
    }

    /// Copies the numbers of another one of the same type to the beginning.
    pub(super) fn begin_with(&mut self, other: &Memory) {
        let len = other.len;
        match (&mut self.storage, &other.storage) {
            (Some(Storage::F32(to)), Some(Storage::F32(from))) => to[..len].copy_from_slice(&from[..len]),
            (Some(Storage::Bf16(to)), Some(Storage::Bf16(from))) => to[..len].copy_from_slice(&from[..len]),
            (Some(Storage::I8(to)), Some(Storage::I8(from))) => to[..len].copy_from_slice(&from[..len]),
            _ => panic!("numbers of another type"),
        }
    }

    /// The numbers as rows of `width`, quantised by `quantise`, or those that it made before.
    pub(super) fn quantised(&self, width: usize, quantise: impl Fn() -> Int8Rows) -> Arc<Int8Rows> {
        let rows = self.quantised.get_or_init(|| Arc::new(quantise()));
        // The same numbers may be rows of another width for another tensor.
        if rows.width() == width { Arc::clone(rows) } else { Arc::new(quantise()) }
    }

    /// The numbers as packed weights `[n, k]`, if [`Memory::pack`] made them.
    pub(super) fn packed(&self, shape: [usize; 2]) -> Option<&BothWays> {
        self.packed.get().filter(|packed| packed.shape() == shape)
    }

    /// Makes packed weights of the numbers by `pack`, if there are none, and keeps them until the numbers change.
    pub(super) fn pack(&self, pack: impl FnOnce() -> BothWays) {
        self.packed.get_or_init(pack);
    }

    /// The numbers, to be changed.
    pub(super) fn view_mut<T: Number>(&mut self) -> Option<&mut [T]> {
        self.packed.take();
        self.learn().map(|(numbers, _)| numbers)
    }

    /// The numbers, to be changed, and the packed weights, to be changed in the same way.
    pub(super) fn learn<T: Number>(&mut self) -> Option<(&mut [T], Option<&mut BothWays>)> {
        self.quantised.take();
        let numbers = &mut T::view_mut(self.storage.as_mut()?)?[..self.len];
        Some((numbers, self.packed.get_mut()))
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Some(storage) = self.storage.take() {
            self.pool.give_back(storage);
        }
    }
}

/// Buffers that are not in use, by type and size.
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
    /// Lets go of what lies here when all of it together is more than twice what was ever used at once. That happens when
    /// sizes change for good; the buffers of a steady step, which are not all in use at the same moment, stay.
    fn trim(&mut self) {
        if self.used + self.kept > 2 * self.peak + SLACK {
            self.buffers.clear();
            self.kept = 0;
            // What was used before the change shall not count for ever.
            self.peak = self.used;
        }
    }
}

/// What may be kept in any case, in bytes.
const SLACK: usize = 1 << 21;
/// The share of its size by which a buffer may be larger than what is asked for, one in so many.
const WASTE: usize = 2;

impl Pool {
    /// A buffer of `len` numbers of any value.
    pub(super) fn take(self: &Arc<Self>, dtype: DType, len: usize) -> Memory {
        let size = size_class(len);
        let storage = {
            let mut free = self.free.lock().expect("the pool never panics");
            let fitting = (dtype as u8, size)..=(dtype as u8, size + size / WASTE);
            let found = free.buffers.range_mut(fitting).find_map(|(_, buffers)| buffers.pop());
            let size = found.as_ref().map_or(size, |storage| storage.kind().1);
            free.used += bytes(dtype, size);
            free.peak = free.peak.max(free.used);
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
        // So that a read of numbers that were never written is noticed.
        #[cfg(debug_assertions)]
        match &mut storage {
            Storage::F32(data) => data.fill(f32::NAN),
            Storage::Bf16(data) => data.fill(bf16::NAN),
            _ => {}
        }
        Memory {
            storage: Some(storage),
            len,
            quantised: OnceLock::new(),
            packed: OnceLock::new(),
            order: None,
            pool: Arc::clone(self),
        }
    }

    fn give_back(&self, storage: Storage) {
        let mut free = self.free.lock().expect("the pool never panics");
        let (dtype, size) = storage.kind();
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
    use attentive_kernels::Cpu;
    use attentive_kernels::gemm::Matrix;

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
    fn a_buffer_serves_those_who_ask_for_somewhat_less_and_keeps_its_size() {
        let pool = Arc::new(Pool::default());
        let first = pool.take(DType::F32, 3000);
        let at = first.view::<f32>().unwrap().as_ptr();
        drop(first);
        let second = pool.take(DType::F32, 2100);
        assert_eq!(second.view::<f32>().unwrap().as_ptr(), at);
        assert_ne!(pool.take(DType::F32, 2100).view::<f32>().unwrap().as_ptr(), at);
        drop(second);
        // The one that was fresh is too small for this, and twice the size is too much waste.
        assert_eq!(pool.take(DType::F32, 2900).view::<f32>().unwrap().as_ptr(), at);
        assert_ne!(pool.take(DType::F32, 1400).view::<f32>().unwrap().as_ptr(), at);
        let free = pool.free.lock().unwrap();
        let lying =
            free.buffers.values().flatten().map(|storage| bytes(DType::F32, storage.kind().1)).sum::<usize>();
        assert_eq!((free.used, free.kept), (0, lying));
    }

    #[test]
    fn what_was_quantised_is_kept_until_the_numbers_change() {
        let cpu = Cpu::from_env().unwrap();
        let mut memory = Arc::new(Pool::default()).take(DType::F32, 64);
        memory.view_mut::<f32>().unwrap().fill(1.0);
        let quantised = |memory: &Memory, width| {
            let matrix = Matrix::new(memory.view::<f32>().unwrap(), 64 / width, width);
            memory.quantised(width, || Int8Rows::new(&cpu, matrix))
        };
        let first = quantised(&memory, 16);
        assert!(Arc::ptr_eq(&first, &quantised(&memory, 16)));
        assert_eq!(quantised(&memory, 32).width(), 32);
        memory.view_mut::<f32>().unwrap().fill(2.0);
        assert!(!Arc::ptr_eq(&first, &quantised(&memory, 16)));
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
    fn a_step_with_buffers_of_many_sizes_one_after_the_other_takes_nothing_fresh() {
        let pool = Arc::new(Pool::default());
        for _ in 0..4 {
            // Together 1.7 times the largest, which is all that is in use at once.
            for size in [1usize << 30, 480 << 20, 230 << 20] {
                drop(pool.take(LAZY, size));
            }
            assert_eq!(pool.fresh(), 3);
        }
    }

    #[test]
    fn buffers_that_nobody_asks_for_any_more_are_let_go() {
        let pool = Arc::new(Pool::default());
        // All of them together would have thirty times the size of the largest.
        for i in 1..60 {
            drop(pool.take(LAZY, i << 22));
            let largest = bytes(LAZY, size_class(i << 22));
            let free = pool.free.lock().unwrap();
            assert!(free.used + free.kept <= 2 * largest + SLACK, "{i}: {}", free.kept);
        }
    }
}
