//! Keys and values of earlier tokens. The backend chooses their order and type.

use crate::bias::Bias;
use crate::layout::Seen;
use crate::tensor::Tensor;
use std::fmt::Debug;

/// The keys and values of one attention. [`Backend::cache`](crate::AttentionOps::cache) makes an empty one.
///
/// A row holds the key and the value of a token. The owner of the cache decides which rows are in use; the contents of free rows do not
/// matter.
pub trait KeyValueCache: Debug + Send {
    /// Makes room for at least `rows` rows. Existing rows do not change.
    fn reserve(&mut self, rows: usize);

    /// Writes keys `[n, h·d_k]` and values `[n, h·d_v]` to the rows whose numbers are in `rows: [n]`.
    fn write(&mut self, rows: &Tensor, keys: &Tensor, values: &Tensor);

    /// The attention of queries `[n, h·d_k]`, each to its rows in `seen`: `[n, h·d_v]`. A query gets the same bits alone and together with
    /// the other queries of a prompt.
    ///
    /// For a bias, each query is a sequence of its own, at the position of the last row that it attends to.
    fn attend(&self, queries: &Tensor, seen: &Seen, bias: Option<&Bias>) -> Tensor;
}
