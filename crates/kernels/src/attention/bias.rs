//! What is added to the scores before the softmax: a table over relative positions, or a number for each pair.
//!
//! ```text
//! s_ij = scale · q_i · k_j + b_ij    b_ij = table[bucket(j - position of i)][head], or a dense term    db_ij = ds_ij
//! ```
//!
//! In both forms the biases of a query's keys are contiguous, and each query's row begins at a fixed distance from the row of the query
//! before. A kernel adds rows of biases to a block of scores, and rows of gradients of scores to the gradient of the bias. Attention
//! without a bias does neither.
//!
//! The gradient of a table is a sum over queries, keys and spans. Each head of each span has a sum for each distance. These sums are
//! added up in the order of the spans, so that the number of threads does not change the bits.

use super::{Attention, Span, for_heads};
use crate::Cpu;
use crate::isa::Kernel;
use crate::scratch::Scratch;
use crate::simd::{Simd, load, store};
use crate::threads::Shared;

/// A bias on scores.
#[derive(Debug, Clone, Copy)]
pub enum Bias<'a> {
    /// A number for each head and bucket of distances.
    Relative {
        /// `[buckets, heads]`
        table: &'a [f32],
        /// The bucket of each distance from a query to a key, `key - query`, from `-n` to `n`: `[2n + 1]`. What is further away is in
        /// the bucket at the end.
        buckets: &'a [i32],
    },
    /// A number for each head, query and key: for each span and head, one after the other, `[queries, keys]`.
    Dense(&'a [f32]),
}

/// The sizes of a span, or of another set of queries with their keys, that has biases of its own.
#[derive(Clone, Copy)]
pub(super) struct Pairs {
    pub queries: usize,
    pub keys: usize,
    /// The position of the first query among the keys.
    pub offset: usize,
}

impl From<&Span> for Pairs {
    fn from(span: &Span) -> Pairs {
        let [queries, keys, offset] = [span.queries, span.keys, span.offset].map(|n| n as usize);
        Pairs { queries, keys, offset }
    }
}

/// Biases as kernels read them.
pub(super) enum Biases<'a> {
    /// `[heads, distances]`, with distance zero at `zero`.
    Relative { numbers: Scratch, distances: usize, zero: usize },
    /// As they are, with the start of each span's.
    Dense { numbers: &'a [f32], starts: Vec<usize> },
}

impl<'a> Biases<'a> {
    /// The biases of all spans.
    pub(super) fn new(
        op: &str,
        bias: Bias<'a>,
        heads: usize,
        all: impl Iterator<Item = Pairs> + Clone,
    ) -> Biases<'a> {
        match bias {
            Bias::Dense(numbers) => {
                let (starts, len) = starts(all.map(|pairs| heads * pairs.queries * pairs.keys));
                assert_eq!(
                    numbers.len(),
                    len,
                    "{op}: a dense bias of {} numbers for {len} pairs",
                    numbers.len()
                );
                Biases::Dense { numbers, starts }
            }
            Bias::Relative { table, buckets } => {
                check_buckets(op, table.len(), buckets, heads);
                let zero = all.clone().map(|pairs| (pairs.offset + pairs.queries).saturating_sub(1)).max();
                let zero = zero.unwrap_or(0);
                let ahead = all.map(|pairs| pairs.keys.saturating_sub(pairs.offset + 1)).max().unwrap_or(0);
                let distances = zero + 1 + ahead;
                let mut numbers = Scratch::take(heads * distances);
                for (head, numbers) in numbers.chunks_exact_mut(distances).enumerate() {
                    for (place, number) in numbers.iter_mut().enumerate() {
                        *number = table[bucket(buckets, place as isize - zero as isize) * heads + head];
                    }
                }
                Biases::Relative { numbers, distances, zero }
            }
        }
    }

    /// The biases of one head of the span with this number.
    #[inline(always)]
    pub(super) fn of(&self, number: usize, pairs: Pairs, head: usize) -> HeadBias<'_> {
        match self {
            Biases::Relative { numbers, distances, zero } => {
                // A span without queries may begin after the last distance; no kernel reads its biases.
                HeadBias { numbers, first: (head * distances + zero).wrapping_sub(pairs.offset), step: -1 }
            }
            Biases::Dense { numbers, starts } => HeadBias {
                numbers,
                first: starts[number] + head * pairs.queries * pairs.keys,
                step: pairs.keys as isize,
            },
        }
    }
}

/// The biases of one head of one span.
#[derive(Clone, Copy)]
pub(super) struct HeadBias<'a> {
    numbers: &'a [f32],
    /// Where the row of the first query begins, and how far each next row is from the one before.
    first: usize,
    step: isize,
}

impl<'a> HeadBias<'a> {
    /// Those of a query with the `keys` from `start` on.
    #[inline(always)]
    pub(super) fn row(&self, query: usize, start: usize, keys: usize) -> &'a [f32] {
        &self.numbers[place(self.first, self.step, query) + start..][..keys]
    }

    /// Adds those of the `queries` from `first` on and the `keys` from `start` on to their scores, whose rows are `stride` apart.
    #[inline(always)]
    pub(super) fn add<S: Simd>(
        &self,
        s: S,
        [first, queries]: [usize; 2],
        [start, keys]: [usize; 2],
        scores: &mut [f32],
        stride: usize,
    ) {
        s.call(Add { bias: *self, queries: [first, queries], keys: [start, keys], scores, stride });
    }
}

struct Add<'a, 'b> {
    bias: HeadBias<'a>,
    queries: [usize; 2],
    keys: [usize; 2],
    scores: &'b mut [f32],
    stride: usize,
}

impl Kernel for Add<'_, '_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let ([first, queries], [start, keys]) = (self.queries, self.keys);
        for i in 0..queries {
            let row = self.bias.row(first + i, start, keys);
            let scores = &mut self.scores[i * self.stride..][..keys];
            add_row(s, row, scores);
        }
    }
}

/// The gradient of a bias while it is summed up.
pub(super) struct BiasGradient<'a> {
    into: &'a mut [f32],
    /// For each span and head a sum for each distance, from the last query to the first key on, if it is that of a table.
    distances: Option<Scratch>,
    /// Where each span's begin: of the distances, or of the gradient itself.
    starts: Vec<usize>,
}

impl<'a> BiasGradient<'a> {
    /// A gradient that is added to `into`, which has the size of the bias.
    pub(super) fn new(
        op: &str,
        bias: Bias,
        heads: usize,
        spans: &[Span],
        into: &'a mut [f32],
    ) -> BiasGradient<'a> {
        let (Bias::Relative { table: numbers, .. } | Bias::Dense(numbers)) = bias;
        assert_eq!(into.len(), numbers.len(), "{op}: a gradient of {} numbers for a bias", into.len());
        let all = spans.iter().map(Pairs::from);
        match bias {
            Bias::Dense(_) => {
                let (starts, _) = starts(all.map(|pairs| heads * pairs.queries * pairs.keys));
                BiasGradient { into, distances: None, starts }
            }
            Bias::Relative { .. } => {
                let (starts, len) = starts(all.map(|pairs| heads * distances(pairs)));
                let mut sums = Scratch::take(len);
                sums.fill(0.0);
                BiasGradient { into, distances: Some(sums), starts }
            }
        }
    }

    /// All of it, to be cut into that of each head.
    pub(super) fn shared(&mut self) -> SharedGradient<'_> {
        let relative = self.distances.is_some();
        let numbers = self.distances.as_deref_mut().unwrap_or(self.into);
        SharedGradient { numbers: Shared::new(numbers), starts: &self.starts, relative }
    }

    /// Adds the sums over distances to the gradient of a table.
    pub(super) fn finish(self, cpu: &Cpu, bias: Bias, heads: usize, spans: &[Span]) {
        let (Some(sums), Bias::Relative { buckets, .. }) = (&self.distances, bias) else { return };
        let into = Shared::new(self.into);
        for_heads(cpu, 1, heads, |_, head| {
            for (span, start) in spans.iter().zip(&self.starts) {
                let pairs = Pairs::from(span);
                let len = distances(pairs);
                // The distance from the last query to the first key.
                let nearest = 1 - (pairs.offset + pairs.queries) as isize;
                for (i, sum) in sums[start + head * len..][..len].iter().enumerate() {
                    let bucket = bucket(buckets, nearest + i as isize);
                    // Safety: a column of the table belongs to one task.
                    unsafe { into.slice(bucket * heads + head, 1)[0] += sum };
                }
            }
        });
    }
}

/// The gradient of a bias, of which each head of each span has its own part.
#[derive(Clone, Copy)]
pub(super) struct SharedGradient<'a> {
    numbers: Shared<'a, f32>,
    starts: &'a [usize],
    relative: bool,
}

impl<'a> SharedGradient<'a> {
    /// That of one head of a span, which is the one with this number.
    pub(super) fn of(&self, number: usize, pairs: Pairs, head: usize) -> HeadGradient<'a> {
        let start = self.starts[number];
        let (first, step) = match self.relative {
            true => (start + head * distances(pairs) + pairs.queries.saturating_sub(1), -1),
            false => (start + head * pairs.queries * pairs.keys, pairs.keys as isize),
        };
        HeadGradient { numbers: self.numbers, first, step }
    }
}

/// The gradient of the biases of one head of one span.
#[derive(Clone, Copy)]
pub(super) struct HeadGradient<'a> {
    numbers: Shared<'a, f32>,
    first: usize,
    step: isize,
}

impl<'a> HeadGradient<'a> {
    /// Adds the gradients of the scores of the `queries` from `first` on with the `keys` from `start` on.
    ///
    /// # Safety
    /// This head of this span must belong to no other task.
    #[inline(always)]
    pub(super) unsafe fn add<S: Simd>(
        &self,
        s: S,
        [first, queries]: [usize; 2],
        [start, keys]: [usize; 2],
        ds: &[f32],
        stride: usize,
    ) {
        s.call(AddGradient { to: *self, queries: [first, queries], keys: [start, keys], ds, stride });
    }

    /// Those of a query with the `keys` from `start` on.
    ///
    /// # Safety
    /// As for [`HeadGradient::add`], and no other row of it may be borrowed.
    #[inline(always)]
    pub(super) unsafe fn row(self, query: usize, start: usize, keys: usize) -> &'a mut [f32] {
        // Safety: the caller's promise.
        unsafe { self.numbers.slice(place(self.first, self.step, query) + start, keys) }
    }
}

struct AddGradient<'a, 'b> {
    to: HeadGradient<'a>,
    queries: [usize; 2],
    keys: [usize; 2],
    ds: &'b [f32],
    stride: usize,
}

impl Kernel for AddGradient<'_, '_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let ([first, queries], [start, keys]) = (self.queries, self.keys);
        for i in 0..queries {
            // Safety: the promise of the caller of `HeadGradient::add`.
            let to = unsafe { self.to.row(first + i, start, keys) };
            add_row(s, &self.ds[i * self.stride..][..keys], to);
        }
    }
}

#[inline(always)]
fn add_row<S: Simd>(s: S, from: &[f32], to: &mut [f32]) {
    for at in (0..to.len()).step_by(S::LANES) {
        let n = S::LANES.min(to.len() - at);
        let sum = s.add(load(s, to, at, n), load(s, from, at, n));
        store(s, to, at, n, sum);
    }
}

/// Where the numbers of a query begin.
#[inline(always)]
fn place(first: usize, step: isize, query: usize) -> usize {
    first.wrapping_add_signed(step.wrapping_mul(query as isize))
}

/// How many distances there are between the queries and the keys of a span.
fn distances(pairs: Pairs) -> usize {
    (pairs.queries + pairs.keys).saturating_sub(1)
}

/// Where each of some pieces begins, and where the last ends.
fn starts(lengths: impl Iterator<Item = usize>) -> (Vec<usize>, usize) {
    let (mut starts, mut end) = (Vec::new(), 0);
    for length in lengths {
        starts.push(end);
        end += length;
    }
    (starts, end)
}

/// The bucket of a distance.
fn bucket(buckets: &[i32], distance: isize) -> usize {
    let furthest = (buckets.len() / 2) as isize;
    buckets[(distance.clamp(-furthest, furthest) + furthest) as usize] as usize
}

fn check_buckets(op: &str, table: usize, buckets: &[i32], heads: usize) {
    let rows = table / heads;
    assert!(
        rows * heads == table && buckets.len() % 2 == 1,
        "{op}: a table of {table} numbers for {heads} heads, and {} buckets of distances",
        buckets.len()
    );
    let inside = buckets.iter().all(|&bucket| usize::try_from(bucket).is_ok_and(|bucket| bucket < rows));
    assert!(inside, "{op}: a bucket that is not in a table of {rows}");
}

impl Attention {
    /// The biases of all spans, if there are any.
    pub(super) fn biases<'a>(&self, op: &str, bias: Option<Bias<'a>>, spans: &[Span]) -> Option<Biases<'a>> {
        bias.map(|bias| Biases::new(op, bias, self.heads, spans.iter().map(Pairs::from)))
    }
}
