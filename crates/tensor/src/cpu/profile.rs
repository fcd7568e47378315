//! Where the time of the CPU backend goes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The kinds of kernels whose times are measured separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Share {
    /// Matrix products.
    Product,
    /// Attention.
    Attention,
    /// Layer norm, with residual and dropout.
    Norm,
    /// Rows of tables: embeddings, positions, caches.
    Embedding,
    /// Windows over pictures.
    Window,
    /// The output projection with its loss.
    Loss,
    /// Everything that goes over its operands once.
    Elementwise,
    /// Adam.
    Optimizer,
}

impl Share {
    const ALL: [(Share, &'static str); 8] = [
        (Share::Product, "product"),
        (Share::Attention, "attention"),
        (Share::Norm, "norm"),
        (Share::Embedding, "embedding"),
        (Share::Window, "window"),
        (Share::Loss, "loss"),
        (Share::Elementwise, "elementwise"),
        (Share::Optimizer, "optimizer"),
    ];
}

/// Nanoseconds spent in each kind.
#[derive(Debug, Default)]
pub(super) struct Profile([AtomicU64; Share::ALL.len()]);

impl Profile {
    /// Runs `f` and books its time.
    pub(super) fn time<T>(&self, share: Share, f: impl FnOnce() -> T) -> T {
        let begin = Instant::now();
        let result = f();
        self.0[share as usize].fetch_add(begin.elapsed().as_nanos() as u64, Ordering::Relaxed);
        result
    }

    /// What was booked since the last time.
    pub(super) fn take(&self) -> Vec<(&'static str, Duration)> {
        let taken = |share: Share| Duration::from_nanos(self.0[share as usize].swap(0, Ordering::Relaxed));
        Share::ALL.iter().map(|(share, name)| (*name, taken(*share))).collect()
    }
}
