//! From logits to probabilities.

/// `e^x_i / Σ_j e^x_j`.
pub(crate) fn softmax(logits: &[f32]) -> Vec<f32> {
    let most = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let exponentials: Vec<f64> = logits.iter().map(|&x| f64::from(x - most).exp()).collect();
    let sum: f64 = exponentials.iter().sum();
    exponentials.into_iter().map(|x| (x / sum) as f32).collect()
}

/// `1 / (1 + e^-x)`.
pub(crate) fn sigmoid(logit: f32) -> f32 {
    (1.0 / (1.0 + (-f64::from(logit)).exp())) as f32
}

/// The places of the `count` greatest numbers, greatest first, of equals the first one.
pub(crate) fn greatest(numbers: &[f32], count: usize) -> Vec<usize> {
    let mut places: Vec<usize> = (0..numbers.len()).collect();
    let order = |&a: &usize, &b: &usize| numbers[b].total_cmp(&numbers[a]).then(a.cmp(&b));
    if count < places.len() && count > 0 {
        places.select_nth_unstable_by(count - 1, order);
    }
    places.truncate(count);
    places.sort_by(order);
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_sum_to_one_and_follow_the_logits() {
        let found = softmax(&[1.0, 3.0, 2.0]);
        assert!((found.iter().sum::<f32>() - 1.0).abs() < 1e-6);
        assert!((found[1] - 0.665_240_9).abs() < 1e-6, "{found:?}");
        assert_eq!(greatest(&found, 2), [1, 2]);
        assert_eq!(greatest(&[1.0, 2.0, 2.0, 0.0], 9), [1, 2, 0, 3]);
        assert_eq!(greatest(&[1.0], 0), [0; 0]);
        assert!((sigmoid(0.0) - 0.5).abs() < 1e-7 && sigmoid(-200.0) >= 0.0 && sigmoid(200.0) <= 1.0);
    }
}
