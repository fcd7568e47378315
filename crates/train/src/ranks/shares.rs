//! Which numbers belong to which rank.
//!
//! All parameters, one behind the other, are one row of numbers, which is cut into as many shares as there are ranks. Cuts are made
//! only where a run of [`NORM_RUN`] numbers of a parameter ends, so that a rank can square and sum up its runs as one rank alone would.

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

/// The share of each rank, for parameters of these lengths: at most one segment of each parameter, in order.
pub(super) fn shares(lengths: &[usize], ranks: usize) -> Vec<Vec<Segment>> {
    let all = lengths.iter().sum::<usize>().max(1) as u128;
    let mut shares: Vec<Vec<Segment>> = vec![Vec::new(); ranks];
    let mut before = 0;
    for (parameter, &length) in lengths.iter().enumerate() {
        for start in (0..length).step_by(NORM_RUN) {
            let run = start..length.min(start + NORM_RUN);
            // The rank in whose part of the row the middle of the run lies.
            let middle = (before + start + run.len() / 2) as u128;
            let share = &mut shares[(middle * ranks as u128 / all) as usize];
            match share.last_mut() {
                Some(last) if last.parameter == parameter => last.range.end = run.end,
                _ => share.push(Segment { parameter, range: run }),
            }
        }
        before += length;
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_belongs_to_one_rank_and_shares_are_in_order() {
        for (lengths, ranks) in [
            (vec![5, 3 * NORM_RUN + 7, 0, 2 * NORM_RUN, 1], 3),
            (vec![10], 4),
            (vec![100 * NORM_RUN], 7),
            (vec![], 2),
        ] {
            let mut next: Vec<usize> = vec![0; lengths.len()];
            let mut last = 0;
            for Segment { parameter, range } in shares(&lengths, ranks).into_iter().flatten() {
                assert!(parameter >= last && range.start == next[parameter]);
                assert!(range.start.is_multiple_of(NORM_RUN));
                (last, next[parameter]) = (parameter, range.end);
            }
            assert_eq!(next, lengths);
        }
    }

    #[test]
    fn shares_differ_by_a_run_at_most() {
        let sizes: Vec<usize> = shares(&[100 * NORM_RUN, 30 * NORM_RUN], 8)
            .iter()
            .map(|share| share.iter().map(|segment| segment.range.len()).sum())
            .collect();
        assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= NORM_RUN, "{sizes:?}");
    }
}
