//! Paired bootstrap resampling (Koehn, 2004): whether one system is better than another, or was lucky.
//!
//! A sample draws as many segments as there are, with replacement, the same ones for both systems, and scores
//! both on them. The scores of a thousand samples show how far each score may be trusted: their mean and half
//! the width of the interval that holds 95 % of them. The p-value is the probability of a difference as large
//! as the one that was seen if there were none in truth:
//!
//! ```text
//! p = (1 + |{ s : |aₛ − bₛ| − mean |a − b| ≥ |a − b| }|) / (1 + samples)
//! ```
//!
//! This is sacreBLEU's `--paired-bs` but for two things. Its samples come from another generator, so that
//! p-values and intervals agree as far as chance lets them. And it asks for more than the difference where we
//! ask for as much, which is the same unless there is no difference at all: two equal systems have p = 1 here.

use super::{Counted, Resampling, Scores};

/// What the comparison says about one score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Comparison {
    /// The system, which is the baseline.
    pub system: Estimate,
    /// The other system.
    pub other: Estimate,
    /// How probable such a difference were by chance alone.
    pub p: f64,
}

/// A score with what its samples say about it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The score of all segments.
    pub score: f64,
    /// The mean of the samples.
    pub mean: f64,
    /// Half the width of the interval that 95 % of the samples are in.
    pub interval: f64,
}

/// The comparison of two systems in each score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Comparisons {
    /// In BLEU.
    pub bleu: Comparison,
    /// In chrF.
    pub chrf: Comparison,
    /// In chrF++.
    pub chrf_pp: Comparison,
    /// In TER.
    pub ter: Comparison,
}

/// Compares two systems on the same segments.
///
/// # Panics
/// If they do not have the same number of segments, or there are no samples.
pub fn compare(system: &Counted, other: &Counted, resampling: Resampling) -> Comparisons {
    let segments = system.segments().len();
    assert_eq!(segments, other.segments().len(), "bootstrap: other segments");
    assert!(resampling.samples > 0, "bootstrap: no samples");
    let mut samples = vec![None; resampling.samples];
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let share = samples.len().div_ceil(threads);
    std::thread::scope(|scope| {
        for (number, share_of_samples) in samples.chunks_mut(share).enumerate() {
            scope.spawn(move || {
                for (i, sample) in share_of_samples.iter_mut().enumerate() {
                    let draw = Draw::new(resampling.seed, (number * share + i) as u64, segments);
                    let scores = |counted: &Counted| counted.sum(draw.take(segments)).scores();
                    *sample = Some((scores(system), scores(other)));
                }
            });
        }
    });
    let samples: Vec<_> = samples.into_iter().flatten().collect();
    let real = (system.scores(), other.scores());
    let in_score = |score: fn(&Scores) -> f64| {
        let pair = |(a, b): &(Scores, Scores)| (score(a), score(b));
        comparison(pair(&real), &samples.iter().map(pair).collect::<Vec<_>>())
    };
    Comparisons {
        bleu: in_score(|scores| scores.bleu),
        chrf: in_score(|scores| scores.chrf),
        chrf_pp: in_score(|scores| scores.chrf_pp),
        ter: in_score(|scores| scores.ter),
    }
}

/// One score of both systems, real and in samples.
fn comparison(real: (f64, f64), samples: &[(f64, f64)]) -> Comparison {
    let differences: Vec<f64> = samples.iter().map(|(a, b)| (a - b).abs()).collect();
    let (mean, difference) = (mean(&differences), (real.0 - real.1).abs());
    let by_chance = differences.iter().filter(|&d| d - mean >= difference).count();
    Comparison {
        system: estimate(real.0, samples.iter().map(|(a, _)| *a).collect()),
        other: estimate(real.1, samples.iter().map(|(_, b)| *b).collect()),
        p: (1 + by_chance) as f64 / (1 + samples.len()) as f64,
    }
}

fn estimate(score: f64, mut samples: Vec<f64>) -> Estimate {
    samples.sort_by(f64::total_cmp);
    let outside = samples.len() / 40;
    let (lower, upper) = (samples[outside], samples[samples.len() - 1 - outside]);
    Estimate { score, mean: mean(&samples), interval: (upper - lower) / 2.0 }
}

fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len() as f64
}

/// The segments of a sample: SplitMix64, begun anew for each sample, so that any thread can draw it.
#[derive(Clone, Copy)]
struct Draw {
    state: u64,
    segments: u64,
}

impl Draw {
    fn new(seed: u64, sample: u64, segments: usize) -> Draw {
        let mut of_seed = Draw { state: seed, segments: 1 };
        Draw { state: of_seed.bits() ^ sample.wrapping_mul(0xd134_2543_de82_ef95), segments: segments as u64 }
    }

    fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.state ^ self.state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }
}

impl Iterator for Draw {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        // The high word of a product spreads 64 bits evenly over the segments.
        Some(((u128::from(self.bits()) * u128::from(self.segments)) >> 64) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::score::{Options, Segments};

    const RESAMPLING: Resampling = Resampling { samples: 400, seed: 12345 };

    /// `lines` segments, of which the hypothesis got one word wrong in every `wrong`th.
    fn counted(lines: usize, wrong: usize) -> Counted {
        let reference = |i: usize| format!("line {i} says that all is well with {}", i % 5);
        let references: Vec<String> = (0..lines).map(reference).collect();
        let spoil = |(i, line): (usize, &String)| {
            if i % wrong == 0 { line.replace("well", "lost") } else { line.clone() }
        };
        let hypothesis: Vec<String> = references.iter().enumerate().map(spoil).collect();
        let hypothesis: Vec<&str> = hypothesis.iter().map(String::as_str).collect();
        let references: Vec<&str> = references.iter().map(String::as_str).collect();
        Segments::new(&hypothesis, &[references]).unwrap().count(Options::default())
    }

    #[test]
    fn a_large_difference_is_no_chance_and_none_is() {
        let (good, bad) = (counted(200, 50), counted(200, 2));
        let comparisons = compare(&good, &bad, RESAMPLING);
        assert_eq!(comparisons.bleu.p, 1.0 / 401.0);
        assert_eq!(comparisons.ter.p, 1.0 / 401.0);
        assert_eq!((comparisons.bleu.system.score, comparisons.bleu.other.score), {
            (good.scores().bleu, bad.scores().bleu)
        });

        let small = compare(&counted(200, 9), &counted(200, 10), RESAMPLING);
        assert!(small.bleu.p > 0.05, "{}", small.bleu.p);
    }

    #[test]
    fn a_system_does_not_differ_from_itself() {
        let system = counted(50, 3);
        let comparison = compare(&system, &system, RESAMPLING).chrf;
        assert_eq!((comparison.system, comparison.p), (comparison.other, 1.0));
    }

    #[test]
    fn samples_scatter_around_the_score_as_a_share_of_segments_does() {
        // TER is linear here: one edit of 9 words in a third of 900 segments, so its deviation is known.
        let comparison = compare(&counted(900, 3), &counted(900, 4), RESAMPLING).ter;
        let deviation = 100.0 / 9.0 * (1.0 / 3.0 * 2.0 / 3.0 / 900f64).sqrt();
        let Estimate { score, mean, interval } = comparison.system;
        assert!((mean - score).abs() < deviation * 0.25, "{mean} {score}");
        assert!((interval / (1.96 * deviation) - 1.0).abs() < 0.2, "{interval} {deviation}");
    }

    #[test]
    fn the_interval_leaves_out_a_fortieth_on_each_side() {
        let samples = (0..80).map(f64::from).collect();
        assert_eq!(estimate(1.0, samples), Estimate { score: 1.0, mean: 39.5, interval: (77.0 - 2.0) / 2.0 });
    }
}
