//! Whether all ranks are about to train the same.

use super::gather;
use crate::Error;
use attentive_ranks::Group;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What must be the same on all ranks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Same {
    /// Of this program.
    pub version: String,
    /// What computes, and in which precision.
    pub device: String,
    /// The sizes of the corpus and what is in it.
    pub corpus: String,
    /// All settings, by name.
    pub settings: serde_json::Map<String, Value>,
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
            .or_else(|| {
                let name = self.settings.keys().find(|&name| self.setting(name) != other.setting(name))?;
                differs("other settings", &self.setting(name), &other.setting(name))
            })
            .or_else(|| {
                let steps = [self.step, other.step].map(|step| format!("step {step}"));
                differs("another checkpoint", &steps[0], &steps[1])
            })
    }

    /// A setting, for people.
    fn setting(&self, name: &str) -> String {
        format!("{name} {}", self.settings.get(name).unwrap_or(&Value::Null))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use attentive_ranks::{ThreadRank, threads};

    type Difference<'a> = &'a (dyn Fn(&mut Same) + Sync);

    /// What the ranks of a group are told where one of three differs.
    fn told(differ: impl Fn(&mut Same) + Sync) -> Vec<String> {
        let check = |group: ThreadRank| {
            let mut own = Same {
                version: "1".to_owned(),
                device: "amx".to_owned(),
                corpus: "300 pairs".to_owned(),
                settings: serde_json::from_str(r#"{"epochs": null, "seed": 7}"#).unwrap(),
                step: 5,
            };
            if group.rank() == 2 {
                differ(&mut own);
            }
            own.check(&group).map_or_else(|error| error.to_string(), |()| String::new())
        };
        std::thread::scope(|scope| {
            let check = &check;
            let ranks: Vec<_> =
                threads(3).into_iter().map(|group| scope.spawn(move || check(group))).collect();
            ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
        })
    }

    #[test]
    fn a_rank_that_differs_is_named_with_what_differs() {
        let with = |name: &str, value: Value| {
            let name = name.to_owned();
            move |same: &mut Same| drop(same.settings.insert(name.clone(), value.clone()))
        };
        let cases: [(Difference, &str); 6] = [
            (&|same| same.version = "2".to_owned(), "another version of attentive (2) than rank 0 (1)"),
            (
                &|same| same.device = "avx2".to_owned(),
                "another instruction set or precision (avx2) than rank 0 (amx)",
            ),
            (
                &|same| same.corpus = "301 pairs".to_owned(),
                "another corpus (301 pairs) than rank 0 (300 pairs)",
            ),
            (&with("seed", 8.into()), "other settings (seed 8) than rank 0 (seed 7)"),
            (&with("epochs", 1.into()), "other settings (epochs 1) than rank 0 (epochs null)"),
            (&|same| same.step = 4, "another checkpoint (step 4) than rank 0 (step 5)"),
        ];
        for (differ, what) in cases {
            for told in told(differ) {
                assert!(told.starts_with(&format!("rank 2 has {what}: ")), "{told}");
            }
        }
        assert_eq!(told(|_| ()), [""; 3]);
    }
}
