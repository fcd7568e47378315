//! A bias on the scores of attention that depends on a token and on how far away the other one is, as in disentangled attention.
//!
//! ```text
//! b_ij += x[head][row][place(j - i)]    dx[head][row][p] = Σ db_ij over the pairs whose place is p
//! ```
//!
//! The row is that of query `i` (its content against the position of the key) or that of key `j` (the other way round). `place` is the
//! bucket of a distance. The bias is dense: for each span and head, one after the other, `[queries, keys]`. Every head of a span is a
//! task, which adds pairs up in the order of the queries and then of the keys.

use crate::attention::Span;
use crate::scratch::Scratch;
use crate::threads::Shared;
use crate::{Cpu, Real};

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
    /// How many places are told apart.
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
    let shared = Shared::new(bias);
    cpu.threads.run(spans.len() * relative.heads, |task| {
        let (number, head) = (task / relative.heads, task % relative.heads);
        let (span, pairs) = (&spans[number], pairs(&spans[number]));
        // Safety: each head of each span has pairs of its own.
        let bias = unsafe { shared.slice(starts[number] + head * pairs, pairs) };
        relative.each(span, head, |at, pair| bias[pair] += x[at].to_f32());
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
    let (rows, places) = (relative.rows, relative.places);
    dx.fill(T::from_f32(0.0));
    let shared = Shared::new(dx);
    cpu.threads.run(spans.len() * relative.heads, |task| {
        let (number, head) = (task / relative.heads, task % relative.heads);
        let (span, pairs) = (&spans[number], pairs(&spans[number]));
        let dbias = &dbias[starts[number] + head * pairs..][..pairs];
        let (first, count) = relative.rows_of(span);
        let begin = (head * rows + first) * places;
        let mut sums = Scratch::<f32>::take(count * places);
        sums.fill(0.0);
        relative.each(span, head, |at, pair| sums[at - begin] += dbias[pair]);
        // Safety: each head of each span has rows of its own, which spans do not share.
        let dx = unsafe { shared.slice(begin, count * places) };
        dx.iter_mut().zip(sums.iter()).for_each(|(dx, &sum)| *dx = T::from_f32(sum));
    });
}

fn pairs(span: &Span) -> usize {
    span.queries as usize * span.keys as usize
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

    /// Calls `f` for each pair of a span and head: with the place of its number, and with that of its bias.
    #[inline(always)]
    fn each(&self, span: &Span, head: usize, mut f: impl FnMut(usize, usize)) {
        let far = self.buckets.len() / 2;
        let (first, _) = self.rows_of(span);
        let keys = span.keys as usize;
        for query in 0..span.queries as usize {
            let position = query + span.offset as usize;
            for key in 0..keys {
                // Distance zero is in the middle.
                let place = self.buckets[(far + key).saturating_sub(position).min(2 * far)] as usize;
                let row = first + if self.side == Side::Queries { query } else { key };
                f((head * self.rows + row) * self.places + place, query * keys + key);
            }
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
        let rows = if side == Side::Queries { 11 } else { 19 };
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
