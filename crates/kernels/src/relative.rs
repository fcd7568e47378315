//! A bias on the scores of attention that depends on a token and on how far away the other one is, as in disentangled attention.
//!
//! ```text
//! b_ij += x[head][row][place(j - i)]    dx[head][row][p] = Σ db_ij over the pairs whose place is p
//! ```
//!
//! The row is that of query `i` (its content against the position of the key) or that of key `j` (the other way round). `place` is the
//! bucket of a distance. The bias is dense: for each span and head, one after the other, `[queries, keys]`. Every head of a span is a
//! task, which adds pairs up in the order of the queries and then of the keys.
//!
//! Where the places of neighbouring distances follow one another, which most of them do, pairs of a query are vectors of its row.

use crate::attention::Span;
use crate::isa::Kernel;
use crate::scratch::Scratch;
use crate::simd::{Simd, for_vectors, load, store};
use crate::threads::Shared;
use crate::{Cpu, Real};
use std::ops::Range;

/// Whose rows a bias depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Those of queries.
    Queries,
    /// Those of keys.
    Keys,
}

/// Numbers for tokens and places, and which of them belong to a pair.
#[derive(Debug, Clone, Copy)]
pub struct Relative<'a> {
    /// How many heads there are.
    pub heads: usize,
    /// How many rows each head has: those of all queries, or of all keys.
    pub rows: usize,
    /// The number of buckets.
    pub places: usize,
    /// Whose rows they are.
    pub side: Side,
    /// The place of each distance `key - query`, from `-n` to `n`: `[2n + 1]`. What is further away has the place at the end.
    pub buckets: &'a [i32],
}

/// Adds numbers `x: [heads, rows, places]` to a bias.
///
/// # Panics
/// If the bias does not have a number for each pair and head, or a place or a row is not there.
pub fn relative<T: Real>(cpu: &Cpu, relative: Relative, spans: &[Span], x: &[T], bias: &mut [f32]) {
    let starts = relative.check(spans, x.len(), bias.len());
    let distances = Distances::new(relative.buckets, spans);
    let shared = Shared::new(bias);
    cpu.threads.run(spans.len() * relative.heads, |task| {
        let (number, head) = (task / relative.heads, task % relative.heads);
        let (span, pairs) = (&spans[number], pairs(&spans[number]));
        // Safety: each head of each span has pairs of its own.
        let bias = unsafe { shared.slice(starts[number] + head * pairs, pairs) };
        let pairs = Pairs { distances: &distances, span, side: relative.side, places: relative.places };
        cpu.isa.dispatch(Forward { pairs, x: &x[relative.numbers_of(span, head)], bias });
    });
}

/// The gradient `dx: [heads, rows, places]` of [`relative`], zeros where there is no pair.
///
/// # Panics
/// As [`relative`].
pub fn relative_backward<T: Real>(
    cpu: &Cpu,
    relative: Relative,
    spans: &[Span],
    dbias: &[f32],
    dx: &mut [T],
) {
    let starts = relative.check(spans, dx.len(), dbias.len());
    let distances = Distances::new(relative.buckets, spans);
    relative.clear_rows_without_span(spans, dx);
    let shared = Shared::new(dx);
    cpu.threads.run(spans.len() * relative.heads, |task| {
        let (number, head) = (task / relative.heads, task % relative.heads);
        let (span, pairs) = (&spans[number], pairs(&spans[number]));
        let dbias = &dbias[starts[number] + head * pairs..][..pairs];
        let numbers = relative.numbers_of(span, head);
        // Safety: each head of each span has rows of its own, which spans do not share.
        let dx = unsafe { shared.slice(numbers.start, numbers.len()) };
        let pairs = Pairs { distances: &distances, span, side: relative.side, places: relative.places };
        cpu.isa.dispatch(Backward { pairs, dbias, dx });
    });
}

fn pairs(span: &Span) -> usize {
    span.queries as usize * span.keys as usize
}

/// The place of every distance that there is in some spans.
struct Distances {
    /// From `-zero` on; what is further away than the buckets know has the place at their end.
    places: Vec<u32>,
    /// How many places from each on are one more than the one before: one at least.
    rising: Vec<u32>,
    /// Where distance zero is.
    zero: usize,
}

impl Distances {
    fn new(buckets: &[i32], spans: &[Span]) -> Distances {
        let before = spans.iter().map(|span| (span.offset + span.queries) as usize).max().unwrap_or(0);
        let behind = spans.iter().map(|span| span.keys as usize).max().unwrap_or(0);
        let far = buckets.len() / 2;
        // Distance zero is in the middle.
        let place = |i: usize| buckets[(far + i).saturating_sub(before).min(2 * far)] as u32;
        let places: Vec<u32> = (0..before + behind).map(place).collect();
        let mut rising = vec![1; places.len()];
        for i in (1..places.len()).rev() {
            if places[i] == places[i - 1] + 1 {
                rising[i - 1] = rising[i] + 1;
            }
        }
        Distances { places, rising, zero: before }
    }
}

/// The pairs of a span and head.
#[derive(Clone, Copy)]
struct Pairs<'a> {
    distances: &'a Distances,
    span: &'a Span,
    side: Side,
    places: usize,
}

impl Pairs<'_> {
    /// Where the distance of `key` from `query` stands in [`Distances::places`].
    #[inline(always)]
    fn at(&self, query: usize, key: usize) -> usize {
        self.distances.zero + key - (self.span.offset as usize + query)
    }

    /// Calls `f` with each run of keys of a query whose places follow one another: the first key, its place, how many there are.
    #[inline(always)]
    fn runs(&self, query: usize, mut f: impl FnMut(usize, usize, usize)) {
        let (keys, first) = (self.span.keys as usize, self.at(query, 0));
        let mut key = 0;
        while key < keys {
            let run = (self.distances.rising[first + key] as usize).min(keys - key);
            f(key, self.distances.places[first + key] as usize, run);
            key += run;
        }
    }
}

/// [`relative`] for a span and head: `x: [rows, places]`, `bias: [queries, keys]`.
struct Forward<'a, T> {
    pairs: Pairs<'a>,
    x: &'a [T],
    bias: &'a mut [f32],
}

impl<T: Real> Kernel for Forward<'_, T> {
    type Output = ();
    const GAINS_FROM_AVX512: bool = false;
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Forward { pairs, x, bias } = self;
        let (keys, places) = (pairs.span.keys as usize, pairs.places);
        for (query, bias) in bias.chunks_exact_mut(keys.max(1)).enumerate() {
            match pairs.side {
                Side::Queries => {
                    let x = &x[query * places..][..places];
                    pairs.runs(
                        query,
                        #[inline(always)]
                        |key, place, run| add(s, &x[place..][..run], &mut bias[key..][..run]),
                    );
                }
                Side::Keys => {
                    let place = &pairs.distances.places[pairs.at(query, 0)..][..keys];
                    for ((bias, &place), x) in bias.iter_mut().zip(place).zip(x.chunks_exact(places)) {
                        *bias += x[place as usize].to_f32();
                    }
                }
            }
        }
    }
}

/// [`relative_backward`] for a span and head: `dbias: [queries, keys]`, `dx: [rows, places]`.
struct Backward<'a, T> {
    pairs: Pairs<'a>,
    dbias: &'a [f32],
    dx: &'a mut [T],
}

impl<T: Real> Kernel for Backward<'_, T> {
    type Output = ();
    const GAINS_FROM_AVX512: bool = false;
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Backward { pairs, dbias, dx } = self;
        let (queries, keys) = (pairs.span.queries as usize, pairs.span.keys as usize);
        let mut sums = Scratch::<f32>::take(pairs.places);
        for (row, dx) in dx.chunks_exact_mut(pairs.places).enumerate() {
            sums.fill(0.0);
            match pairs.side {
                Side::Queries => {
                    let dbias = &dbias[row * keys..][..keys];
                    pairs.runs(
                        row,
                        #[inline(always)]
                        |key, place, run| add(s, &dbias[key..][..run], &mut sums[place..][..run]),
                    );
                }
                Side::Keys => {
                    for query in 0..queries {
                        let place = pairs.distances.places[pairs.at(query, row)];
                        sums[place as usize] += dbias[query * keys + row];
                    }
                }
            }
            for_vectors(
                s,
                dx.len(),
                #[inline(always)]
                |at, n| store(s, dx, at, n, load(s, &sums, at, n)),
            );
        }
    }
}

/// `y += x`
#[inline(always)]
fn add<S: Simd, T: Real>(s: S, x: &[T], y: &mut [f32]) {
    for_vectors(
        s,
        y.len(),
        #[inline(always)]
        |at, n| store(s, y, at, n, s.add(load(s, y, at, n), load(s, x, at, n))),
    );
}

impl Relative<'_> {
    /// The rows of a span: the first, and how many there are.
    fn rows_of(&self, span: &Span) -> (usize, usize) {
        match self.side {
            Side::Queries => (span.query as usize, span.queries as usize),
            Side::Keys => (span.key as usize, span.keys as usize),
        }
    }

    /// Where the bias of each span begins.
    fn check(&self, spans: &[Span], numbers: usize, bias: usize) -> Vec<usize> {
        let &Relative { heads, rows, places, buckets, .. } = self;
        assert_eq!(
            numbers,
            heads * rows * places,
            "relative: {numbers} numbers for {heads} × {rows} × {places}"
        );
        assert!(buckets.len() % 2 == 1, "relative: {} distances, which have no middle", buckets.len());
        let known = |place: &i32| (0..places as i32).contains(place);
        assert!(buckets.iter().all(known), "relative: a place is not among the {places} that there are");
        let mut end = 0;
        let starts = spans.iter().map(|span| {
            let start = end;
            end += heads * pairs(span);
            start
        });
        let starts = starts.collect();
        assert_eq!(bias, end, "relative: a bias of {bias} numbers for {end} pairs");
        let mut taken = 0;
        for (first, count) in spans.iter().map(|span| self.rows_of(span)) {
            assert!(
                first >= taken && first + count <= rows,
                "relative: spans share rows, or lack some of {rows}"
            );
            taken = first + count;
        }
        starts
    }

    /// Where the numbers of a span and head are.
    fn numbers_of(&self, span: &Span, head: usize) -> Range<usize> {
        let (first, count) = self.rows_of(span);
        let begin = (head * self.rows + first) * self.places;
        begin..begin + count * self.places
    }

    /// Zeros in the rows that no span has.
    fn clear_rows_without_span<T: Real>(&self, spans: &[Span], dx: &mut [T]) {
        let mut taken = 0;
        let ends = spans.iter().map(|span| self.rows_of(span)).chain([(self.rows, 0)]);
        for (first, count) in ends {
            for head in 0..self.heads {
                let row = |row: usize| (head * self.rows + row) * self.places;
                dx[row(taken)..row(first)].fill(T::from_f32(0.0));
            }
            taken = first + count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{check, normal, normals, wide};
    use half::bf16;

    const BUCKETS: [i32; 7] = [0, 0, 1, 2, 3, 4, 4];

    fn span(query: u32, queries: u32, key: u32, keys: u32, offset: u32) -> Span {
        Span { query, queries, key, keys, offset }
    }

    fn spans() -> [Span; 4] {
        [span(0, 3, 0, 3, 0), span(3, 0, 3, 0, 0), span(3, 1, 3, 9, 8), span(4, 7, 12, 7, 0)]
    }

    fn of(side: Side) -> Relative<'static> {
        // One more than the spans have: its gradient is zero.
        let rows = if side == Side::Queries { 12 } else { 20 };
        Relative { heads: 3, rows, places: 5, side, buckets: &BUCKETS }
    }

    /// The sum over all pairs, one by one: where the number of a pair is, where its bias is.
    fn plain(relative: Relative) -> Vec<(usize, usize)> {
        let (mut all, mut pair) = (Vec::new(), 0);
        for span in spans() {
            for head in 0..relative.heads {
                for i in 0..span.queries as i64 {
                    for j in 0..i64::from(span.keys) {
                        let distance = (j - i - i64::from(span.offset)).clamp(-3, 3);
                        let place = BUCKETS[(distance + 3) as usize] as usize;
                        let row = match relative.side {
                            Side::Queries => span.query as usize + i as usize,
                            Side::Keys => span.key as usize + j as usize,
                        };
                        all.push(((head * relative.rows + row) * relative.places + place, pair));
                        pair += 1;
                    }
                }
            }
        }
        all
    }

    fn check_type<T: Real>() {
        for side in [Side::Queries, Side::Keys] {
            let all = plain(of(side));
            let numbers = 3 * of(side).rows * 5;
            let (x, before) = (normals::<T>(1, numbers), normal(2, all.len()));
            let mut expected = wide(&before);
            all.iter().for_each(|&(at, pair)| expected[pair] += f64::from(x[at].to_f32()));
            check(&expected, 1e-6, |cpu| {
                let mut bias = before.clone();
                relative(cpu, of(side), &spans(), &x, &mut bias);
                bias
            });
            let mut expected = vec![0.0; numbers];
            all.iter().for_each(|&(at, pair)| expected[at] += f64::from(before[pair]));
            check(&expected, 1e-5, |cpu| {
                let mut dx = vec![T::from_f32(f32::NAN); numbers];
                relative_backward(cpu, of(side), &spans(), &before, &mut dx);
                dx
            });
        }
    }

    #[test]
    fn every_pair_has_the_number_of_its_token_and_distance() {
        check_type::<f32>();
        check_type::<bf16>();
    }

    #[test]
    #[should_panic(expected = "relative: a bias of 5 numbers for 6 pairs")]
    fn a_bias_that_is_too_short_is_told() {
        let cpu = crate::testing::cpus().next().expect("an instruction set");
        let relative = Relative { heads: 1, rows: 2, places: 5, side: Side::Queries, buckets: &BUCKETS };
        super::relative(&cpu, relative, &[span(0, 2, 0, 3, 0)], &[0.0f32; 10], &mut [0.0; 5]);
    }
}
