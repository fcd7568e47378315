//! Relative positions: a number that is added to a score for how far a key is from its query.

use crate::builder::{Builder, Init};
use crate::error::Error;
use attentive_tensor::{Bias, Parameter, Tape, Tensor, Var};

/// The sizes of a table over relative positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RelativeConfig {
    /// The number of heads.
    pub h: usize,
    /// The number of buckets of distances.
    pub buckets: usize,
    /// Keys at this distance and further away are all alike.
    pub max_distance: usize,
    /// Whether keys after a query have other buckets than those before it. In causal attention there are none after it.
    pub bidirectional: bool,
}

/// A learned number for each head and bucket of distances, which all layers of a stack share (Raffel et al. 2020, section 2.1).
///
/// Half of the buckets of a direction have one distance each; the others get wider with the logarithm of the distance.
#[derive(Debug, Clone)]
pub struct RelativePositions {
    table: Parameter,
    buckets: Tensor,
}

impl RelativePositions {
    /// A table `[buckets, h]`.
    pub fn new(builder: &Builder, config: &RelativeConfig) -> Result<RelativePositions, Error> {
        config.check()?;
        let &RelativeConfig { h, buckets, max_distance, .. } = config;
        let furthest = max_distance as i32;
        let of_distances: Vec<i32> = (-furthest..=furthest).map(|d| config.bucket(d) as i32).collect();
        Ok(RelativePositions {
            table: builder.parameter("weight", [buckets, h], Init::Xavier)?,
            buckets: builder.backend().upload_i32(&of_distances),
        })
    }

    /// What the attentions of all layers take; the gradient of the table is the sum over them.
    pub fn bias(&self, tape: &Tape) -> Bias<Var> {
        Bias::Relative { table: tape.parameter(&self.table), buckets: self.buckets.clone() }
    }
}

/// The largest distance with a bucket of its own: a number in a file must not allocate all memory.
const MOST: usize = 1 << 20;

impl RelativeConfig {
    /// Whether such a table tells distances apart.
    pub fn check(&self) -> Result<(), Error> {
        let &RelativeConfig { buckets, max_distance, .. } = self;
        let exact = self.exact();
        if exact == 0 {
            return Err(Error::config("buckets", format!("{buckets} are too few to tell distances apart")));
        }
        if max_distance <= exact || max_distance > MOST {
            let problem = format!("must be between {} and {MOST}, not {max_distance}", exact + 1);
            return Err(Error::config("max_distance", problem));
        }
        Ok(())
    }

    /// Buckets of one direction.
    fn of_direction(&self) -> usize {
        if self.bidirectional { self.buckets / 2 } else { self.buckets }
    }

    /// How many of them have one distance each.
    fn exact(&self) -> usize {
        self.of_direction() / 2
    }

    /// The bucket of the distance `key - query`.
    fn bucket(&self, distance: i32) -> usize {
        let (count, exact) = (self.of_direction(), self.exact());
        let behind = if self.bidirectional && distance > 0 { count } else { 0 };
        let far = if self.bidirectional { distance.unsigned_abs() } else { distance.min(0).unsigned_abs() };
        let far = far as usize;
        if far < exact {
            return behind + far;
        }
        // In f32, since transformers has it so: which side of a border a distance is on depends on it.
        let growth = (far as f32 / exact as f32).ln() / (self.max_distance as f64 / exact as f64).ln() as f32;
        let wide = exact + (growth * (count - exact) as f32) as usize;
        behind + wide.min(count - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `T5Attention._relative_position_bucket(torch.tensor([-200, -128, …]), bidirectional, 32, 128)` of transformers 5.22.
    #[test]
    fn buckets_are_those_of_t5() {
        let distances =
            [-200, -128, -127, -91, -90, -64, -20, -16, -15, -8, -7, -1, 0, 1, 7, 8, 12, 64, 127, 128, 300];
        let config = |bidirectional| RelativeConfig { h: 1, buckets: 32, max_distance: 128, bidirectional };
        let both: Vec<usize> = distances.iter().map(|&d| config(true).bucket(d)).collect();
        assert_eq!(both, [15, 15, 15, 15, 14, 14, 10, 10, 9, 8, 7, 1, 0, 17, 23, 24, 25, 30, 31, 31, 31]);
        let before: Vec<usize> = distances.iter().map(|&d| config(false).bucket(d)).collect();
        assert_eq!(before, [31, 31, 31, 29, 29, 26, 17, 16, 15, 8, 7, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn sizes_that_tell_nothing_apart_are_refused() {
        let backend = attentive_tensor::check::backend();
        let new = |buckets, max_distance| {
            let config = RelativeConfig { h: 2, buckets, max_distance, bidirectional: true };
            RelativePositions::new(&Builder::random(&backend, 1), &config)
                .map(|_| ())
                .unwrap_err()
                .to_string()
        };
        assert_eq!(new(3, 128), "buckets: 3 are too few to tell distances apart");
        assert_eq!(new(32, 8), "max_distance: must be between 9 and 1048576, not 8");
        assert_eq!(
            new(32, usize::MAX),
            format!("max_distance: must be between 9 and 1048576, not {}", usize::MAX)
        );
    }
}
