//! Pairs that nothing can be learnt from.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Which pairs are used.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// The most tokens of a source, and of a target.
    pub longest: usize,
    /// How many times as many tokens as the shorter side the longer side may have.
    pub ratio: f64,
}

/// How many pairs were left out, for each reason. A pair counts once, for the first reason that it gives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// A side is blank or has no tokens.
    pub empty: u64,
    /// A side has too many tokens, or the pair is more than a batch.
    pub too_long: u64,
    /// One side is much longer than the other.
    pub lopsided: u64,
}

impl LeftOut {
    /// For all reasons together.
    pub fn total(&self) -> u64 {
        self.empty + self.too_long + self.lopsided
    }

    pub(super) fn add(&mut self, other: LeftOut) {
        self.empty += other.empty;
        self.too_long += other.too_long;
        self.lopsided += other.lopsided;
    }

    /// Whether a pair with so many tokens is used; and counts it if it is not.
    pub(super) fn keeps(&mut self, source: usize, target: usize, limits: &Limits) -> bool {
        let (shorter, longer) = (source.min(target), source.max(target));
        let reason = if shorter == 0 {
            &mut self.empty
        } else if longer > limits.longest {
            &mut self.too_long
        } else if longer as f64 > limits.ratio * shorter as f64 {
            &mut self.lopsided
        } else {
            return true;
        };
        *reason += 1;
        false
    }

    /// Whether so many tokens fit into a batch; and counts the pair as too long if they do not.
    pub(super) fn fits(&mut self, tokens: usize, batch: usize) -> bool {
        let fits = tokens <= batch;
        self.too_long += u64::from(!fits);
        fits
    }
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(
            f,
            "{} empty, {} too long, {} above the length ratio",
            self.empty, self.too_long, self.lopsided
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_is_left_out_for_its_first_reason() {
        let limits = Limits { longest: 10, ratio: 2.0 };
        let mut left_out = LeftOut::default();
        for (source, target) in [(1, 2), (10, 5), (10, 8), (2, 2)] {
            assert!(left_out.keeps(source, target, &limits) && left_out.fits(source + target, 18));
        }
        for (source, target) in [(0, 3), (3, 0), (0, 99), (11, 10), (10, 9), (3, 11), (1, 3), (9, 4)] {
            let stays = left_out.keeps(source, target, &limits) && left_out.fits(source + target, 18);
            assert!(!stays, "{source} {target}");
        }
        assert_eq!(left_out.to_string(), "3 empty, 3 too long, 2 above the length ratio");
        assert_eq!(left_out.total(), 8);
    }
}
