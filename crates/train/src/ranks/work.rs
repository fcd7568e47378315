//! Work that is shared among ranks, and whose results all of them have.

use super::gather;
use crate::Error;
use attentive_ranks::{Group, all_gather_bytes};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::rc::Rc;

/// The ranks that share some work: a group of them, or this one alone.
#[derive(Debug, Clone, Default)]
pub struct Ranks(Option<Rc<dyn Group>>);

impl Ranks {
    /// All ranks of a group; without one, this process alone.
    pub fn of(group: Option<Rc<dyn Group>>) -> Ranks {
        Ranks(group)
    }

    /// The number of this rank.
    pub(crate) fn rank(&self) -> usize {
        self.0.as_ref().map_or(0, |group| group.rank())
    }

    /// How many ranks there are.
    pub(crate) fn size(&self) -> usize {
        self.0.as_ref().map_or(1, |group| group.size())
    }

    /// Collective: what each rank has, in the order of ranks; none where there is one rank alone, which is not asked.
    pub(crate) fn gather_bytes(
        &self,
        mine: impl FnOnce() -> Vec<u8>,
    ) -> Result<Option<Vec<Vec<u8>>>, attentive_ranks::Error> {
        self.0.as_ref().map(|group| all_gather_bytes(&**group, &mine())).transpose()
    }

    /// Collective: a result for each item, in order, on every rank. `work` computes the results of this rank's items. Items that are
    /// neighbours go to different ranks: where they are sorted by length, each rank gets as many long ones.
    ///
    /// Numbers that may be no numbers are to be results as their bits, because JSON has no NaN.
    pub(crate) fn share<T: Clone, R: Serialize + DeserializeOwned>(
        &self,
        items: &[T],
        work: impl FnOnce(&[T]) -> Result<Vec<R>, Error>,
    ) -> Result<Vec<R>, Error> {
        let Some(group) = &self.0 else { return work(items) };
        let mine: Vec<T> = items.iter().skip(group.rank()).step_by(group.size()).cloned().collect();
        let mut of_ranks: Vec<_> = gather(&**group, &work(&mine)?)?.into_iter().map(Vec::into_iter).collect();
        let in_order = (0..items.len()).filter_map(|place| of_ranks[place % group.size()].next());
        Ok(in_order.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use attentive_ranks::{ThreadRank, threads};

    #[test]
    fn every_rank_has_the_results_of_all_in_order_and_computes_its_own() {
        for (size, count) in [(1, 3), (3, 7), (4, 2), (2, 0)] {
            let items: Vec<usize> = (0..count).collect();
            let share = |group: ThreadRank| {
                let rank = group.rank();
                let work = |mine: &[usize]| {
                    assert!(mine.iter().all(|item| item % size == rank), "{mine:?}");
                    Ok(mine.iter().map(|item| 10 * item).collect())
                };
                Ranks::of(Some(Rc::new(group))).share(&items, work).unwrap()
            };
            let results: Vec<Vec<usize>> = std::thread::scope(|scope| {
                let share = &share;
                let ranks: Vec<_> =
                    threads(size).into_iter().map(|group| scope.spawn(move || share(group))).collect();
                ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
            });
            assert_eq!(results, vec![items.iter().map(|item| 10 * item).collect::<Vec<_>>(); size]);
        }
    }
}
