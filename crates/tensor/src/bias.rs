//! Biases that are added to the scores of attention before the softmax.

use crate::tensor::Tensor;

/// A bias on the scores of attention. `V` is a tensor for a backend, and a variable on a tape.
#[derive(Debug, Clone)]
pub enum Bias<V = Tensor> {
    /// A number for each head and bucket of distances, as in T5. It does not depend on the length of sequences.
    Relative {
        /// `[buckets, heads]`, in f32.
        table: V,
        /// The bucket of each distance `key - query` from `-n` to `n`: `[2n + 1]` of `i32`. Greater distances have the first or the last of
        /// these buckets.
        buckets: Tensor,
    },
    /// A number for each head, query and key: for each sequence and head, one after the other, `[queries, keys]`. A single sequence
    /// may have it as `[heads, queries, keys]`.
    Dense(V),
}

impl<V> Bias<V> {
    /// The learned numbers: the table, or the dense bias.
    pub fn numbers(&self) -> &V {
        let (Bias::Relative { table: numbers, .. } | Bias::Dense(numbers)) = self;
        numbers
    }

    /// The same bias with other numbers.
    pub fn map<W>(&self, f: impl FnOnce(&V) -> W) -> Bias<W> {
        match self {
            Bias::Relative { table, buckets } => Bias::Relative { table: f(table), buckets: buckets.clone() },
            Bias::Dense(numbers) => Bias::Dense(f(numbers)),
        }
    }
}
