//! Whether all ranks are about to train the same.

use super::gather;
use crate::Error;
use attentive_ranks::Group;
use serde::{Deserialize, Serialize};

/// What must be the same on all ranks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Same {
    /// Of this program.
    pub version: String,
    /// What computes, and in which precision.
    pub device: String,
    /// The sizes of the corpus and what is in it.
    pub corpus: String,
    /// All settings.
    pub settings: String,
    /// How far the run has come.
    pub step: u64,
}

impl Same {
    /// Collective: refuses to begin if a rank differs from rank 0.
    pub(crate) fn check(&self, group: &dyn Group) -> Result<(), Error> {
        let all = gather(group, self)?;
        let differs = |(rank, other)| all[0].differs(other).map(|what| Error::Apart { rank, what });
        all.iter().enumerate().find_map(differs).map_or(Ok(()), Err)
    }

    /// What another rank has that is different.
    fn differs(&self, other: &Same) -> Option<String> {
        let differs = |what: &str, mine: &str, its: &str| {
            (mine != its).then(|| format!("{what} ({its}) than rank 0 ({mine})"))
        };
        differs("another version of attentive", &self.version, &other.version)
            .or_else(|| differs("another instruction set or precision", &self.device, &other.device))
            .or_else(|| differs("another corpus", &self.corpus, &other.corpus))
            .or_else(|| differs("other settings", &self.settings, &other.settings))
            .or_else(|| {
                let steps = [self.step, other.step].map(|step| format!("step {step}"));
                differs("another checkpoint", &steps[0], &steps[1])
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use attentive_ranks::threads;

    #[test]
    fn a_rank_that_differs_is_named_with_what_differs() {
        let own = |rank: usize| Same {
            version: "1".to_owned(),
            device: if rank == 2 { "avx2" } else { "amx" }.to_owned(),
            corpus: "300 pairs".to_owned(),
            settings: String::new(),
            step: 5,
        };
        let errors: Vec<String> = std::thread::scope(|scope| {
            let check = |group: attentive_ranks::ThreadRank| {
                scope.spawn(move || own(group.rank()).check(&group).unwrap_err().to_string())
            };
            let ranks: Vec<_> = threads(3).into_iter().map(check).collect();
            ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
        });
        for error in errors {
            assert!(
                error.contains("rank 2 has another instruction set") && error.contains("avx2"),
                "{error}"
            );
        }
    }
}
