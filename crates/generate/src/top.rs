//! The best tokens of a row of logits, and what makes log-probabilities of them.
//!
//! `log p_i = x_i - log Σ_j e^x_j`. Every step of every hypothesis comes through here, with the whole vocabulary: the
//! best are found by a threshold that most of the row stays below, sixteen numbers at a time, and nothing is sorted but
//! the few that pass it.

/// A token and its logit or log-probability.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Candidate {
    pub score: f32,
    pub token: u32,
}

/// Numbers that are looked at together.
const LANES: usize = 16;

/// Puts the `count` greatest numbers of a row into `best`, greatest first, of equals the one with the lower token, and
/// returns `log Σ e^x` over the whole row. What is `-∞` or not a number is never among the best.
pub(crate) fn top(row: &[f32], count: usize, best: &mut Vec<Candidate>) -> f32 {
    best.clear();
    if count == 0 {
        return log_sum_exp(row, row.iter().copied().fold(f32::NEG_INFINITY, f32::max));
    }
    let mut threshold = f32::NEG_INFINITY;
    let (chunks, rest) = row.as_chunks::<LANES>();
    for (chunk, numbers) in chunks.iter().enumerate() {
        if numbers.iter().fold(false, |any, &x| any | (x > threshold)) {
            threshold = insert_all(numbers, chunk * LANES, count, best, threshold);
        }
    }
    insert_all(rest, chunks.len() * LANES, count, best, threshold);
    best.first().map_or(f32::NEG_INFINITY, |best| log_sum_exp(row, best.score))
}

/// Puts those of `numbers` that are above the threshold in their places; returns the new threshold.
fn insert_all(
    numbers: &[f32],
    first: usize,
    count: usize,
    best: &mut Vec<Candidate>,
    mut threshold: f32,
) -> f32 {
    for (i, &score) in numbers.iter().enumerate() {
        if score > threshold {
            if best.len() == count {
                best.pop();
            }
            let place = best.partition_point(|other| other.score >= score);
            best.insert(place, Candidate { score, token: (first + i) as u32 });
            if best.len() == count {
                threshold = best[count - 1].score;
            }
        }
    }
    threshold
}

/// `log Σ e^x`, of which the greatest term is known.
fn log_sum_exp(row: &[f32], greatest: f32) -> f32 {
    // A fixed number of sums, whatever the machine, so that the bits are the same on each.
    let mut sums = [0.0f32; LANES];
    let (chunks, rest) = row.as_chunks::<LANES>();
    for numbers in chunks {
        for (sum, x) in sums.iter_mut().zip(numbers) {
            *sum += exp(x - greatest);
        }
    }
    for (sum, x) in sums.iter_mut().zip(rest) {
        *sum += exp(x - greatest);
    }
    greatest + sums.iter().sum::<f32>().ln()
}

/// `e^x` for `x ≤ 0` to within a few units in the last place, zero where it would be subnormal: without branches and calls, so
/// that the compiler makes vectors of it.
#[inline(always)]
fn exp(x: f32) -> f32 {
    // Adding it rounds to a whole number, which then stands in the last bits.
    const ROUND: f32 = 12_582_912.0;
    // ln 2 in two parts, so that n·ln 2 loses nothing.
    const LN_2: [f32; 2] = [0.693_359_4, -2.121_944_4e-4];
    // 1/k! from r⁷ down to r⁰, near enough for |r| ≤ ln 2 / 2.
    const P: [f32; 8] =
        [1.984_127e-4, 1.388_888_9e-3, 8.333_334e-3, 4.166_666_8e-2, 0.166_666_67, 0.5, 1.0, 1.0];
    const LOWEST: f32 = -87.0;
    let clamped = if x > LOWEST { x } else { LOWEST };
    let shifted = clamped * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = clamped - n * LN_2[0] - n * LN_2[1];
    let p = P[1..].iter().fold(P[0], |p, coefficient| p * r + coefficient);
    let power = f32::from_bits(shifted.to_bits().wrapping_add(127) << 23);
    if x > LOWEST { p * power } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use attentive_tensor::Random;

    fn sorted(row: &[f32], count: usize) -> Vec<Candidate> {
        let all = row.iter().enumerate().map(|(i, &score)| Candidate { score, token: i as u32 });
        let mut all: Vec<_> = all.filter(|c| c.score > f32::NEG_INFINITY).collect();
        all.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.token.cmp(&b.token)));
        all.truncate(count);
        all
    }

    #[test]
    fn the_best_are_those_that_sorting_finds() {
        let mut best = Vec::new();
        for (seed, len) in [0, 1, 15, 16, 17, 100, 1000, 8001].into_iter().enumerate() {
            let random = Random::new(seed as u64);
            // Coarse numbers, so that there are equal ones.
            let row: Vec<f32> = (0..len).map(|i| (random.normal(i) * 8.0).round()).collect();
            for count in [1, 2, 10, 40] {
                top(&row, count, &mut best);
                assert_eq!(best, sorted(&row, count), "{count} of {len}");
            }
        }
    }

    #[test]
    fn the_sum_is_that_of_f64() {
        for len in [1, 5, 16, 333, 8001] {
            let random = Random::new(len);
            let row: Vec<f32> = (0..len as u32).map(|i| random.normal(i) * 5.0).collect();
            let exact = row.iter().map(|&x| f64::from(x).exp()).sum::<f64>().ln();
            assert!((f64::from(top(&row, 3, &mut Vec::new())) - exact).abs() < 2e-6 * exact.abs().max(1.0));
        }
    }

    #[test]
    fn the_exponential_is_near_and_ends_in_zero() {
        for i in 0..=870 {
            let x = -0.1 * i as f32;
            let exact = f64::from(x).exp();
            assert!((f64::from(exp(x)) / exact - 1.0).abs() < 3e-7 || x <= -87.0, "{x}");
        }
        assert_eq!((exp(0.0), exp(-88.0), exp(f32::NEG_INFINITY)), (1.0, 0.0, 0.0));
    }

    #[test]
    fn forbidden_and_broken_numbers_are_never_best() {
        let mut best = Vec::new();
        let nothing = [f32::NEG_INFINITY; 40];
        assert_eq!(top(&nothing, 4, &mut best), f32::NEG_INFINITY);
        assert_eq!(best, []);
        top(&[f32::NAN; 40], 4, &mut best);
        assert_eq!(best, []);
        let one = [f32::NEG_INFINITY, 3.0, f32::NEG_INFINITY];
        assert_eq!(top(&one, 4, &mut best), 3.0);
        assert_eq!(best, [Candidate { score: 3.0, token: 1 }]);
    }
}
