//! Which queries attend to which keys, in the memory of a backend. A layout is made once for a batch and used by every layer.

use crate::tensor::Buffer;
use attentive_kernels::attention::Span;
use std::fmt;
use std::sync::Arc;

/// The sequences of a packed batch as attention sees them.
#[derive(Clone)]
pub struct Layout {
    spans: Arc<[Span]>,
    buffer: Buffer,
}

impl Layout {
    /// Used by backends: `buffer` has the backend's own form of the spans.
    pub fn new(spans: &[Span], buffer: Buffer) -> Layout {
        Layout { spans: spans.into(), buffer }
    }

    /// The spans, as the host knows them.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// The backend's own form of it.
    pub fn buffer(&self) -> &Buffer {
        &self.buffer
    }
}

impl fmt::Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Layout").field(&self.spans).finish()
    }
}

/// Which rows of a cache each query attends to.
#[derive(Clone)]
pub struct Seen {
    queries: usize,
    buffer: Buffer,
}

impl Seen {
    /// Used by backends: `buffer` has the backend's own form of the lists of rows.
    pub fn new(queries: usize, buffer: Buffer) -> Seen {
        Seen { queries, buffer }
    }

    /// How many queries have a list.
    pub fn queries(&self) -> usize {
        self.queries
    }

    /// The backend's own form of the lists.
    pub fn buffer(&self) -> &Buffer {
        &self.buffer
    }
}

impl fmt::Debug for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Seen by {} queries", self.queries)
    }
}
