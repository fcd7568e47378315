//! The best of a row of logits, and what makes log-probabilities of them: `log p_i = x_i - log Σ_j e^x_j`.
//!
//! Every step of every hypothesis comes through here, with the whole vocabulary. The best are found by a threshold that
//! most of the row stays below, a vector at a time, and nothing is sorted but the few that pass it.

use crate::Cpu;
use crate::isa::{Isa, Kernel};
use crate::math::exp;
use crate::simd::{Simd, load};
use crate::threads::Shared;

/// A place of a row and the number there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Best {
    /// The number.
    pub score: f32,
    /// Its place.
    pub token: u32,
}

impl Best {
    /// What fills a list that a row has too few numbers for.
    pub const NONE: Best = Best { score: f32::NEG_INFINITY, token: u32::MAX };
}

/// The `count` greatest numbers of each row, greatest first, of equals the one that comes first, and `log Σ e^x` over the
/// whole row. What is `-∞` or not a number is never among the best; [`Best::NONE`] stands where there are too few. The
/// number in the place `never`, if there is one, counts for nothing: it stands for a token that is never written.
///
/// # Shapes
/// `x: [rows, width]`, `best: [rows, count]`, `log_sums: [rows]`
pub fn top(
    cpu: &Cpu,
    x: &[f32],
    width: usize,
    never: Option<usize>,
    count: usize,
    best: &mut [Best],
    log_sums: &mut [f32],
) {
    let rows = log_sums.len();
    assert!(
        x.len() == rows * width && best.len() == rows * count,
        "top: {} numbers in rows of {width} and {} places in rows of {count} for {rows} rows",
        x.len(),
        best.len()
    );
    let best = Shared::new(best);
    cpu.threads.for_pieces(log_sums, 1, |row, log_sum| {
        // Safety: a row belongs to one task.
        let best = unsafe { best.slice(row * count, count) };
        log_sum[0] = top_of_row(cpu.isa, &x[row * width..][..width], never, best);
    });
}

/// [`top`] of one row.
pub fn top_of_row(isa: Isa, x: &[f32], never: Option<usize>, best: &mut [Best]) -> f32 {
    let never = never.unwrap_or(x.len()).min(x.len());
    let parts = [(0, &x[..never]), (never + 1, x.get(never + 1..).unwrap_or(&[]))];
    isa.dispatch(Row { parts, best })
}

/// A row in two parts, each with the place where it begins.
struct Row<'a> {
    parts: [(usize, &'a [f32]); 2],
    best: &'a mut [Best],
}

impl Kernel for Row<'_> {
    type Output = f32;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> f32 {
        let Row { parts, best } = self;
        let greatest = parts.iter().fold(f32::NEG_INFINITY, |most, (_, x)| most.max(greatest(s, x)));
        if greatest == f32::NEG_INFINITY {
            best.fill(Best::NONE);
            return greatest;
        }
        match best {
            [] => {}
            // Searching for the one is quicker than keeping a list.
            [one] => {
                let place = |(first, x): &(usize, &[f32])| {
                    x.iter().position(|&x| x == greatest).map(|place| first + place)
                };
                let token = parts.iter().find_map(place).unwrap_or(0) as u32;
                *one = Best { score: greatest, token };
            }
            _ => {
                best.fill(Best::NONE);
                for (first, x) in parts {
                    select(s, first, x, best);
                }
            }
        }
        let sum: f32 = parts.iter().map(|(_, x)| sum_exp(s, x, greatest)).sum();
        greatest + sum.ln()
    }
}

/// The greatest number of a row; what is not a number is passed over.
#[inline(always)]
fn greatest<S: Simd>(s: S, x: &[f32]) -> f32 {
    let nothing = s.splat(f32::NEG_INFINITY);
    // Four of them, since each takes some time to answer.
    let mut most = [nothing; 4];
    let mut at = 0;
    while at + 4 * S::LANES <= x.len() {
        for i in 0..4 {
            most[i] = s.max(load(s, x, at + i * S::LANES, S::LANES), most[i]);
        }
        at += 4 * S::LANES;
    }
    let most = s.max(s.max(most[0], most[1]), s.max(most[2], most[3]));
    let rest = x[at..].iter().copied().fold(f32::NEG_INFINITY, f32::max);
    s.greatest(most).max(rest)
}

/// Puts what belongs among the best into its place.
#[inline(always)]
fn select<S: Simd>(s: S, first: usize, x: &[f32], best: &mut [Best]) {
    let last = best.len() - 1;
    let step = 4 * S::LANES;
    for at in (0..x.len()).step_by(step) {
        let numbers = &x[at..x.len().min(at + step)];
        if numbers.len() == step {
            let mut most = s.splat(f32::NEG_INFINITY);
            for i in 0..4 {
                most = s.max(load(s, numbers, i * S::LANES, S::LANES), most);
            }
            if s.greatest(most) <= best[last].score {
                continue;
            }
        }
        for (i, &score) in numbers.iter().enumerate() {
            if score > best[last].score {
                let place = best.partition_point(|other| other.score >= score);
                best[place..].rotate_right(1);
                best[place] = Best { score, token: (first + at + i) as u32 };
            }
        }
    }
}

/// `Σ e^(x - greatest)`.
#[inline(always)]
fn sum_exp<S: Simd>(s: S, x: &[f32], greatest: f32) -> f32 {
    let base = s.splat(greatest);
    let mut sums = [s.splat(0.0); 4];
    let mut at = 0;
    while at + 4 * S::LANES <= x.len() {
        for i in 0..4 {
            sums[i] = s.add(sums[i], exp(s, s.sub(load(s, x, at + i * S::LANES, S::LANES), base)));
        }
        at += 4 * S::LANES;
    }
    let mut sum = s.sum(s.add(s.add(sums[0], sums[1]), s.add(sums[2], sums[3])));
    while at < x.len() {
        let n = S::LANES.min(x.len() - at);
        let mut lanes = [0.0; 16];
        crate::simd::store(s, &mut lanes, 0, S::LANES, exp(s, s.sub(load(s, x, at, n), base)));
        sum += lanes[..n].iter().sum::<f32>();
        at += n;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Threads;
    use crate::testing::normal;

    fn sorted(row: &[f32], count: usize) -> Vec<Best> {
        let all = row.iter().enumerate().map(|(i, &score)| Best { score, token: i as u32 });
        let mut all: Vec<_> = all.filter(|best| best.score > f32::NEG_INFINITY).collect();
        all.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.token.cmp(&b.token)));
        all.resize(count, Best::NONE);
        all
    }

    #[test]
    fn the_best_are_those_that_sorting_finds_and_the_sum_is_that_of_f64() {
        for isa in Isa::present() {
            for (seed, width) in [1, 7, 15, 16, 17, 64, 100, 1000, 8001].into_iter().enumerate() {
                // Coarse numbers, so that there are equal ones.
                let rows = 3;
                let x: Vec<f32> =
                    normal(seed as u64, rows * width).iter().map(|x| (x * 8.0).round() + 0.0).collect();
                for (count, threads) in [(0, 1), (1, 2), (2, 1), (10, 3), (40, 2)] {
                    let cpu = Cpu { isa, threads: Threads::new(threads) };
                    let (mut best, mut log_sums) = (vec![Best::NONE; rows * count], vec![0.0; rows]);
                    top(&cpu, &x, width, None, count, &mut best, &mut log_sums);
                    for (i, row) in x.chunks_exact(width).enumerate() {
                        assert_eq!(
                            best[i * count..][..count],
                            sorted(row, count),
                            "{isa}, {count} of {width}"
                        );
                        let exact = row.iter().map(|&x| f64::from(x).exp()).sum::<f64>().ln();
                        let error = (f64::from(log_sums[i]) - exact).abs();
                        assert!(error < 2e-6 * exact.abs().max(1.0), "{isa}, {width}: {error}");
                    }
                }
            }
        }
    }

    #[test]
    fn forbidden_and_broken_numbers_are_never_best() {
        for isa in Isa::present() {
            for width in [3, 40, 200] {
                for count in [1, 4] {
                    let mut best = vec![Best::NONE; count];
                    for broken in [f32::NEG_INFINITY, f32::NAN] {
                        let mut row = vec![broken; width];
                        assert_eq!(top_of_row(isa, &row, None, &mut best), f32::NEG_INFINITY, "{isa}");
                        assert_eq!(best, vec![Best::NONE; count], "{isa}");
                        row[width / 2] = 3.0;
                        top_of_row(isa, &row, None, &mut best);
                        assert_eq!(best[0], Best { score: 3.0, token: width as u32 / 2 }, "{isa}");
                        assert!(best[1..].iter().all(|best| *best == Best::NONE), "{isa}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_never_written_counts_for_nothing() {
        for isa in Isa::present() {
            let mut row = normal(5, 100);
            for never in [0, 31, 99] {
                let without = row[never];
                row[never] = 50.0;
                let (mut best, mut expected) = ([Best::NONE; 5], [Best::NONE; 5]);
                let sum = top_of_row(isa, &row, Some(never), &mut best);
                row[never] = f32::NEG_INFINITY;
                let expected_sum = top_of_row(isa, &row, None, &mut expected);
                assert_eq!(best, expected, "{isa}");
                assert!((sum - expected_sum).abs() < 1e-5, "{isa}: {sum} and {expected_sum}");
                row[never] = without;
            }
        }
    }
}
