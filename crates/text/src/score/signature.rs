//! Signatures: how a score was made, in sacreBLEU's words, so that two papers know whether they can compare.

use super::Options;

/// The version of sacreBLEU whose scores these are.
const VERSION: &str = "2.6.0";

/// The signature of each score.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signatures {
    /// Of BLEU.
    pub bleu: String,
    /// Of chrF.
    pub chrf: String,
    /// Of chrF++.
    pub chrf_pp: String,
    /// Of TER.
    pub ter: String,
}

/// How samples were drawn for a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resampling {
    /// How many.
    pub samples: usize,
    /// From which seed.
    pub seed: u64,
}

impl Signatures {
    /// Those of scores with so many references.
    pub fn new(references: usize, options: Options, resampling: Option<Resampling>) -> Signatures {
        let bootstrap = resampling.map(|r| format!("|bs:{}|seed:{}", r.samples, r.seed)).unwrap_or_default();
        let case = if options.lowercase { "lc" } else { "mixed" };
        let signature = |case: &str, rest: &str| {
            format!("nrefs:{references}{bootstrap}|case:{case}|{rest}|version:{VERSION}")
        };
        Signatures {
            bleu: signature(case, &format!("eff:no|tok:{}|smooth:exp", options.tokenize.name())),
            chrf: signature(case, "eff:yes|nc:6|nw:0|space:no"),
            chrf_pp: signature(case, "eff:yes|nc:6|nw:2|space:no"),
            ter: signature("lc", "tok:tercom|norm:no|punct:yes|asian:no"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comparison_names_its_samples_and_its_seed() {
        let resampling = Resampling { samples: 1000, seed: 12345 };
        let signatures = Signatures::new(1, Options::default(), Some(resampling));
        assert_eq!(
            signatures.bleu,
            "nrefs:1|bs:1000|seed:12345|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0"
        );
    }
}
