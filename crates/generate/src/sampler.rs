//! Drawing tokens instead of searching for the best.

use crate::error::Error;
use crate::top::top;
use attentive_tensor::Best;
use attentive_tensor::Random;

/// Chooses the next token.
///
/// ```
/// use attentive_generate::{Random, Sampler};
///
/// /// Any token that is not forbidden.
/// struct Any;
///
/// impl Sampler for Any {
///     fn sample(&self, logits: &[f32], random: Random) -> Option<u32> {
///         let allowed: Vec<u32> = (0..).zip(logits).filter(|(_, x)| x.is_finite()).map(|(t, _)| t).collect();
///         allowed.get((random.uniform(0) * allowed.len() as f32) as usize).copied()
///     }
/// }
/// assert_eq!(Any.sample(&[f32::NEG_INFINITY, 1.0], Random::new(1)), Some(1));
/// ```
pub trait Sampler: Send + Sync {
    /// Chooses a token by the logits, with `random` as the source of random numbers for this choice. None ends the sequence.
    fn sample(&self, logits: &[f32], random: Random) -> Option<u32>;
}

/// Draws a token by its probability, after temperature, `top_k`, `top_p` and `min_p`, in this order. Each applies to the tokens that the
/// one before has left.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampling {
    /// The divisor of the logits. Below 1, probable tokens become more probable.
    pub temperature: f32,
    /// How many of the most probable tokens are kept; 0 for all.
    pub top_k: usize,
    /// The fewest most probable tokens are kept that together have at least this probability; 1 for all.
    pub top_p: f32,
    /// Tokens are kept that have at least this fraction of the probability of the most probable one; 0 for all.
    pub min_p: f32,
}

impl Default for Sampling {
    fn default() -> Sampling {
        Sampling { temperature: 1.0, top_k: 0, top_p: 1.0, min_p: 0.0 }
    }
}

impl Sampling {
    pub(crate) fn check(&self) -> Result<(), Error> {
        let &Sampling { temperature, top_p, min_p, .. } = self;
        if !(temperature.is_finite() && temperature > 0.0) {
            return Err(Error::option("temperature", format!("must be a number above 0, not {temperature}")));
        }
        if !(top_p > 0.0 && top_p <= 1.0) {
            return Err(Error::option("top_p", format!("must be above 0 and at most 1, not {top_p}")));
        }
        if !(0.0..=1.0).contains(&min_p) {
            return Err(Error::option("min_p", format!("must be from 0 to 1, not {min_p}")));
        }
        Ok(())
    }

    /// The tokens that may be drawn with their probabilities, which sum to 1, the most probable first.
    pub fn distribution(&self, logits: &[f32]) -> Vec<(u32, f32)> {
        let candidates = self.candidates(logits);
        let sum: f32 = candidates.iter().map(|candidate| candidate.score).sum();
        candidates.iter().map(|candidate| (candidate.token, candidate.score / sum)).collect()
    }

    /// The tokens that may be drawn with their probabilities, which need not sum to 1, the most probable first.
    fn candidates(&self, logits: &[f32]) -> Vec<Best> {
        let count = if self.top_k == 0 { logits.len() } else { self.top_k.min(logits.len()) };
        let mut best = Vec::new();
        if count < logits.len() {
            top(logits, count, &mut best);
        } else {
            let all = logits.iter().enumerate().filter(|(_, x)| x.is_finite());
            best.extend(all.map(|(token, &score)| Best { score, token: token as u32 }));
            best.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.token.cmp(&b.token)));
        }
        let Some(&Best { score: greatest, .. }) = best.first() else { return best };
        for candidate in &mut best {
            candidate.score = ((candidate.score - greatest) / self.temperature).exp();
        }
        if self.top_p < 1.0 {
            let enough = self.top_p * best.iter().map(|candidate| candidate.score).sum::<f32>();
            let mut sum = 0.0;
            // The token that reaches the limit is kept.
            let within = best.iter().take_while(|candidate| {
                let before = sum;
                sum += candidate.score;
                before < enough
            });
            best.truncate(within.count());
        }
        // The greatest score is e⁰ = 1.
        best.retain(|candidate| candidate.score >= self.min_p);
        best
    }
}

impl Sampler for Sampling {
    fn sample(&self, logits: &[f32], random: Random) -> Option<u32> {
        let candidates = self.candidates(logits);
        let mut left = random.uniform(0) * candidates.iter().map(|candidate| candidate.score).sum::<f32>();
        let drawn = candidates.iter().find(|candidate| {
            left -= candidate.score;
            left < 0.0
        });
        // After rounding, `left` may stay above 0.
        drawn.or(candidates.last()).map(|candidate| candidate.token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOGITS: [f32; 5] = [1.0, 3.0, f32::NEG_INFINITY, 2.0, 0.0];

    fn tokens(sampling: Sampling) -> Vec<u32> {
        sampling.candidates(&LOGITS).iter().map(|candidate| candidate.token).collect()
    }

    #[test]
    fn the_tail_is_cut_off_by_number_by_sum_and_by_share() {
        let all = Sampling::default();
        assert_eq!(tokens(all), [1, 3, 0, 4]);
        assert_eq!(tokens(Sampling { top_k: 2, ..all }), [1, 3]);
        assert_eq!(tokens(Sampling { top_k: 9, ..all }), [1, 3, 0, 4]);
        // The probabilities are 0.644, 0.237, 0.087 and 0.032.
        assert_eq!(tokens(Sampling { top_p: 0.6, ..all }), [1]);
        assert_eq!(tokens(Sampling { top_p: 0.7, ..all }), [1, 3]);
        assert_eq!(tokens(Sampling { top_p: 0.9, ..all }), [1, 3, 0]);
        assert_eq!(tokens(Sampling { min_p: 0.1, ..all }), [1, 3, 0]);
        assert_eq!(tokens(Sampling { min_p: 1.0, ..all }), [1]);
        assert_eq!(tokens(Sampling { temperature: 0.1, min_p: 0.01, ..all }), [1]);
    }

    #[test]
    fn draws_are_as_frequent_as_their_probabilities() {
        let sampling = Sampling { temperature: 2.0, ..Sampling::default() };
        let mut counts = [0.0; 5];
        for seed in 0..20_000 {
            counts[sampling.sample(&LOGITS, Random::new(seed)).unwrap() as usize] += 1.0 / 20_000.0;
        }
        let weights = LOGITS.map(|x| (x / 2.0).exp());
        let sum: f32 = weights.iter().sum();
        for (count, weight) in counts.iter().zip(weights) {
            assert!((count - weight / sum).abs() < 0.012, "{counts:?}");
        }
        assert_eq!(counts[2], 0.0);
    }

    #[test]
    fn nothing_can_be_drawn_from_nothing() {
        assert_eq!(Sampling::default().sample(&[f32::NAN, f32::NEG_INFINITY], Random::new(0)), None);
    }
}
