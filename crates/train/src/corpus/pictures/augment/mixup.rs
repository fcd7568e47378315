//! Mixup: a model sees a weighted sum of two pictures, and is to see as much of each class in it (Zhang et al. 2017).
//!
//! ```text
//! x = λ·x₁ + (1-λ)·x₂,   loss = λ·loss(y₁) + (1-λ)·loss(y₂),   λ ~ Beta(α, α)
//! ```

use attentive_tensor::Random;

/// λ: a number from Beta(α, α).
///
/// It is `a / (a + b)` of two numbers from Gamma(α).
pub fn share_of_mixup(alpha: f64, random: Random) -> f64 {
    let [a, b] = [0, 1].map(|i| log_gamma(alpha, random.split(i)));
    1.0 / (1.0 + (b - a).exp())
}

/// The logarithm of a number from Gamma(α), by Marsaglia and Tsang's method (2000). A logarithm, since the number itself may be too small
/// for small α.
fn log_gamma(alpha: f64, random: Random) -> f64 {
    let open = |index: u32| (f64::from(random.split(0).bits(index)) + 0.5) / (1u64 << 32) as f64;
    if alpha < 1.0 {
        // Of α + 1, times u^(1/α).
        return log_gamma(alpha + 1.0, random.split(1)) + open(0).ln() / alpha;
    }
    let d = alpha - 1.0 / 3.0;
    let c = (9.0 * d).sqrt().recip();
    for index in 0.. {
        let x = f64::from(random.normal(index));
        let v = (1.0 + c * x).powi(3);
        if v > 0.0 && open(index).ln() < 0.5 * x * x + d - d * v + d * v.ln() {
            return d.ln() + v.ln();
        }
    }
    unreachable!("more than nine of ten are accepted")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mean of Beta(α, α) is 1/2, its variance 1 / (4 (2α + 1)).
    #[test]
    fn shares_have_the_mean_and_the_variance_of_beta() {
        for alpha in [0.2, 0.8, 1.0, 3.0] {
            let shares: Vec<f64> = (0..20_000).map(|seed| share_of_mixup(alpha, Random::new(seed))).collect();
            assert!(shares.iter().all(|share| (0.0..=1.0).contains(share)));
            let mean = shares.iter().sum::<f64>() / shares.len() as f64;
            let variance = shares.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / shares.len() as f64;
            let expected = 1.0 / (4.0 * (2.0 * alpha + 1.0));
            assert!((mean - 0.5).abs() < 0.01, "{alpha}: {mean}");
            assert!((variance / expected - 1.0).abs() < 0.04, "{alpha}: {variance}, not {expected}");
        }
    }
}
