//! Which gradients travel together, and which numbers belong to which rank.
//!
//! All parameters, one behind the other, are one row of numbers. It is cut into buckets, and each bucket into a part for each rank:
//!
//! ```text
//! row      │ embeddings …   │ encoder …          │ decoder …           │
//! buckets  │     0     │     1     │     2     │     3     │     4     │   the backward pass finishes the last one first
//! ranks    │ 0 │ 1 │ 2 │ 0 │ 1 │ 2 │ 0 │ 1 │ 2 │ 0 │ 1 │ 2 │ 0 │ 1 │ 2 │
//! ```
//!
//! Every rank has a part of each bucket, so that all of them receive while it travels. Cuts are made only where a run of [`NORM_RUN`]
//! numbers of a parameter ends, so that a rank can square and sum up its runs as one rank alone would.

use attentive_tensor::NORM_RUN;
use std::ops::Range;

/// Some numbers of a parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Segment {
    /// The place of the parameter among all.
    pub parameter: usize,
    /// Which of its numbers.
    pub range: Range<usize>,
}

impl Segment {
    /// How many runs of numbers it has.
    pub fn runs(&self) -> usize {
        self.range.len().div_ceil(NORM_RUN)
    }
}

/// A piece of the row whose gradients travel together.
#[derive(Debug)]
pub(super) struct Bucket {
    /// What each rank has of it: at most one segment of each parameter, in order.
    pub shares: Vec<Vec<Segment>>,
}

impl Bucket {
    /// A bucket of these runs, given in order.
    fn of(runs: &[Segment], ranks: usize) -> Bucket {
        let all = runs.iter().map(|run| run.range.len()).sum::<usize>().max(1) as u128;
        let mut shares: Vec<Vec<Segment>> = vec![Vec::new(); ranks];
        let mut before = 0;
        for run in runs {
            // The rank in whose part of the bucket the middle of the run lies.
            let middle = (before + run.range.len() / 2) as u128;
            let share = &mut shares[(middle * ranks as u128 / all) as usize];
            match share.last_mut() {
                Some(last) if last.parameter == run.parameter => last.range.end = run.range.end,
                _ => share.push(run.clone()),
            }
            before += run.range.len();
        }
        Bucket { shares }
    }

    /// How many numbers each rank has of it.
    pub fn lengths(&self) -> Vec<usize> {
        let length = |share: &Vec<Segment>| share.iter().map(|segment| segment.range.len()).sum();
        self.shares.iter().map(length).collect()
    }

    /// The parameters of which it has some numbers, once or more.
    pub fn parameters(&self) -> impl Iterator<Item = usize> {
        self.shares.iter().flatten().map(|segment| segment.parameter)
    }
}

/// All buckets, in the order of the row.
#[derive(Debug)]
pub(super) struct Row {
    pub buckets: Vec<Bucket>,
    ranks: usize,
}

impl Row {
    /// Parameters of these lengths, in buckets of at least so many numbers but for the first, which has what is left.
    pub fn new(lengths: &[usize], numbers: usize, ranks: usize) -> Row {
        // Smaller, it would have nothing for some ranks.
        let numbers = numbers.max(ranks * NORM_RUN);
        let runs_of = |(parameter, &length): (usize, &usize)| {
            let run = move |start| Segment { parameter, range: start..length.min(start + NORM_RUN) };
            (0..length).step_by(NORM_RUN).map(run)
        };
        let runs: Vec<Segment> = lengths.iter().enumerate().flat_map(runs_of).collect();
        let mut buckets = Vec::new();
        let mut rest = &runs[..];
        while !rest.is_empty() {
            let (mut begin, mut taken) = (rest.len(), 0);
            while begin > 0 && taken < numbers {
                begin -= 1;
                taken += rest[begin].range.len();
            }
            buckets.push(Bucket::of(&rest[begin..], ranks));
            rest = &rest[..begin];
        }
        buckets.reverse();
        Row { buckets, ranks }
    }

    /// The segments of a rank, in order.
    pub fn of(&self, rank: usize) -> impl Iterator<Item = &Segment> {
        self.buckets.iter().flat_map(move |bucket| &bucket.shares[rank])
    }

    /// How much each rank has, where `count` says how much there is of a segment.
    pub fn amounts(&self, count: impl Fn(&Segment) -> usize) -> Vec<usize> {
        (0..self.ranks).map(|rank| self.of(rank).map(&count).sum()).collect()
    }

    /// What all ranks have, one behind the other, in the order of the row. `count` says how much there is of a segment.
    pub fn in_order<T: Copy>(&self, all: &[T], count: impl Fn(&Segment) -> usize) -> Vec<T> {
        let mut of_ranks = attentive_ranks::split(all, &self.amounts(&count));
        let mut ordered = Vec::with_capacity(all.len());
        for bucket in &self.buckets {
            for (share, rest) in bucket.shares.iter().zip(&mut of_ranks) {
                let (here, behind) = rest.split_at(share.iter().map(&count).sum());
                ordered.extend_from_slice(here);
                *rest = behind;
            }
        }
        ordered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CASES: [(&[usize], usize, usize); 5] = [
        (&[5, 3 * NORM_RUN + 7, 0, 2 * NORM_RUN, 1], 1, 3),
        (&[5, 3 * NORM_RUN + 7, 0, 2 * NORM_RUN, 1], usize::MAX, 3),
        (&[10], 100, 4),
        (&[100 * NORM_RUN, 7, 30 * NORM_RUN], 10 * NORM_RUN, 7),
        (&[], 1, 2),
    ];

    #[test]
    fn every_number_belongs_to_one_rank_and_all_are_in_order() {
        for (lengths, numbers, ranks) in CASES {
            let mut next = vec![0; lengths.len()];
            let mut last = 0;
            let row = Row::new(lengths, numbers, ranks);
            let shares = row.buckets.iter().flat_map(|bucket| &bucket.shares);
            for Segment { parameter, range } in shares.flatten().cloned() {
                assert!(parameter >= last && range.start == next[parameter]);
                assert!(range.start.is_multiple_of(NORM_RUN));
                (last, next[parameter]) = (parameter, range.end);
            }
            assert_eq!(next, lengths);
        }
    }

    #[test]
    fn what_ranks_have_is_put_in_the_order_of_the_row() {
        for (lengths, numbers, ranks) in CASES {
            let row = Row::new(lengths, numbers, ranks);
            let place = |segment: &Segment| {
                let before: usize = lengths[..segment.parameter].iter().sum();
                before + segment.range.start..before + segment.range.end
            };
            let all: Vec<usize> = (0..ranks).flat_map(|rank| row.of(rank).flat_map(place)).collect();
            let ordered = row.in_order(&all, |segment| segment.range.len());
            assert!(ordered.into_iter().eq(0..lengths.iter().sum()));
        }
    }

    #[test]
    fn buckets_are_as_large_as_they_should_be_and_their_parts_alike() {
        let row = Row::new(&[100 * NORM_RUN, 30 * NORM_RUN], 40 * NORM_RUN, 8);
        let sizes: Vec<usize> = row.buckets.iter().map(|bucket| bucket.lengths().iter().sum()).collect();
        assert_eq!(sizes, [10, 40, 40, 40].map(|runs| runs * NORM_RUN));
        for lengths in row.buckets.iter().map(Bucket::lengths) {
            assert!(lengths.iter().max().unwrap() - lengths.iter().min().unwrap() <= NORM_RUN, "{lengths:?}");
        }
    }
}
