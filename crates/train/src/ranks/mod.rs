//! Training on several ranks.
//!
//! A step has as many batches as `accumulate` says. All ranks know all of them, and each learns from a run of its own. Where texts are
//! tokenized for each batch, the ranks share that work. All ranks have the same weights after each step. They share the work of validating, and all know the scores; rank 0
//! alone writes and tells.

mod optimizer;
mod row;
mod same;
mod sums;
mod work;

pub(crate) use optimizer::{BUCKET, SharedAdam};
pub(crate) use same::Same;
pub use work::Ranks;

use crate::Error;
use attentive_ranks::{Group, all_gather_bytes};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::ops::Range;
use std::time::Duration;

/// How often a rank that waits for rank 0 looks. MPI's own waiting keeps a processor busy.
const LOOK: Duration = Duration::from_millis(2);

/// The run of `batches` that a rank learns from: runs differ by one at most, and earlier ranks have the longer ones.
pub(crate) fn run_of(batches: usize, rank: usize, size: usize) -> Range<usize> {
    let begin = |rank: usize| rank * (batches / size) + rank.min(batches % size);
    begin(rank)..begin(rank + 1)
}

/// Lets the others wait until rank 0 is here, without keeping their processors busy. The message is rank 0's, for all.
pub(crate) fn wait_for_the_first(group: &dyn Group, message: &[u8]) -> Result<Vec<u8>, Error> {
    if group.rank() == 0 {
        (1..group.size()).try_for_each(|rank| group.send(rank, message))?;
        return Ok(message.to_owned());
    }
    loop {
        if let Some((_, message)) = group.receive()? {
            return Ok(message);
        }
        std::thread::sleep(LOOK);
    }
}

/// Collective: what every rank has, in the order of ranks.
pub(crate) fn gather<T: Serialize + DeserializeOwned>(group: &dyn Group, mine: &T) -> Result<Vec<T>, Error> {
    let mine = serde_json::to_vec(mine).expect("a plain structure");
    let read = |(rank, text): (usize, Vec<u8>)| {
        let other = serde_json::from_slice(&text);
        other.map_err(|_| Error::Apart { rank, what: "another version of attentive".to_owned() })
    };
    all_gather_bytes(group, &mine)?.into_iter().enumerate().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_take_runs_of_batches_in_order() {
        let runs = |batches, size| (0..size).map(|rank| run_of(batches, rank, size)).collect::<Vec<_>>();
        assert_eq!(runs(4, 4), [0..1, 1..2, 2..3, 3..4]);
        assert_eq!(runs(7, 3), [0..3, 3..5, 5..7]);
        assert_eq!(run_of(5, 0, 1), 0..5);
    }
}
