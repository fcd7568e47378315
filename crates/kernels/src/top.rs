//! The best of a row of logits, and the sum that turns them into log-probabilities: `log p_i = x_i - log Σ_j e^x_j`.
//!
//! Every step of every hypothesis does this with the whole vocabulary. So a row is compared with a threshold, a vector at a time, and only
//! the few numbers above it are sorted.

use crate::Cpu;
use crate::isa::{Isa, Kernel};
use crate::math::exp;
use crate::simd::{Simd, load};
use crate::threads::Shared;

/// A number of a row and its index.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Best {
    /// The number.
    pub score: f32,
    /// Its index.
    pub token: u32,
}

impl Best {
    /// Fills the list of a row that has too few numbers.
    pub const NONE: Best = Best { score: f32::NEG_INFINITY, token: u32::MAX };
}

/// What to find in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// How many of the best.
    pub count: usize,
    /// Whether the logarithm of the sum, without which the best are no log-probabilities.
    pub sums: bool,
    /// An index whose number is ignored: that of a token that is never written.
    pub never: Option<usize>,
}

/// A list of tokens for each row, in ascending order, whose numbers are returned. Listed tokens are neither among the best of their row nor
/// in its sum, unless the row is in `counted`.
#[derive(Debug, Clone, Copy, Default)]
pub struct TokenLists<'a> {
    /// The tokens of all rows, one list after the other.
    pub tokens: &'a [u32],
    /// Where the list of each row ends. Empty if no row has a list.
    pub ends: &'a [u32],
    /// The rows whose listed tokens also count for the best and for the sum. In ascending order.
    pub counted: &'a [usize],
}

impl<'a> TokenLists<'a> {
    /// No list for any row.
    pub const NONE: TokenLists<'static> = TokenLists { tokens: &[], ends: &[], counted: &[] };

    /// The range of a row's list in `tokens`.
    pub fn of(self, row: usize) -> std::ops::Range<usize> {
        let end = |row: usize| self.ends.get(row).map_or(0, |&end| end as usize);
        if row == 0 { 0..end(0) } else { end(row - 1)..end(row) }
    }
}

/// What was found in all rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The best of each row, one row after the other.
    pub best: Vec<Best>,
    /// The logarithm of the sum of each row, if they are wanted.
    pub log_sums: Vec<f32>,
    /// The numbers of the listed tokens.
    pub apart: Vec<f32>,
}

/// Columns that are processed at a time. The bits of the sums depend on it.
pub const CHUNK: usize = 256;

/// The `count` greatest numbers of each row, greatest first, and `log Σ e^x` over the whole row, if it is wanted. Of equal numbers the
/// first one wins. `-∞` and NaN are never among the best. If a row has too few numbers, [`Best::NONE`] fills its list.
///
/// The columns are given in pieces, so that the whole row never has to exist.
#[derive(Debug)]
pub struct Top {
    wanted: Wanted,
    best: Vec<Best>,
    rows: Vec<Sum>,
}

/// `Σ e^(x - greatest)` of what there was of a row.
#[derive(Debug, Clone, Copy)]
struct Sum {
    greatest: f32,
    sum: f32,
}

impl Sum {
    const NOTHING: Sum = Sum { greatest: f32::NEG_INFINITY, sum: 0.0 };

    /// Adds numbers, of which `here` is the greatest.
    #[inline(always)]
    fn add<S: Simd>(&mut self, s: S, x: &[f32], here: f32) {
        if here > self.greatest {
            self.sum *= (self.greatest - here).exp();
            self.greatest = here;
        }
        self.sum += sum_exp(s, x, self.greatest);
    }

    fn log(self) -> f32 {
        if self.sum == 0.0 { f32::NEG_INFINITY } else { self.greatest + self.sum.ln() }
    }
}

impl Top {
    /// The state before the first columns.
    pub fn new(rows: usize, wanted: Wanted) -> Top {
        Top { wanted, best: vec![Best::NONE; rows * wanted.count], rows: vec![Sum::NOTHING; rows] }
    }

    /// Looks at the next columns of all rows, [`CHUNK`] of them but for the last: `x: [rows, columns]`, from column `first`
    /// on.
    pub fn add(&mut self, cpu: &Cpu, first: usize, x: &[f32]) {
        let (wanted, rows) = (self.wanted, self.rows.len());
        assert!(x.len().is_multiple_of(rows.max(1)), "top: {} numbers for {rows} rows", x.len());
        let columns = x.len() / rows.max(1);
        assert!(columns <= CHUNK && first.is_multiple_of(CHUNK), "top: {columns} columns from {first} on");
        let best = Shared::new(&mut self.best);
        cpu.threads.for_pieces(&mut self.rows, ROWS, |piece, sums| {
            let row = piece * ROWS;
            // Safety: a row belongs to one task.
            let best = unsafe { best.slice(row * wanted.count, sums.len() * wanted.count) };
            let x = &x[row * columns..][..sums.len() * columns];
            cpu.isa.dispatch(Add { first, x, wanted, best, sums });
        });
    }

    /// The best of all rows, and the logarithms of the sums, which are none if they are not wanted.
    pub fn finish(self) -> (Vec<Best>, Vec<f32>) {
        let rows = if self.wanted.sums { self.rows } else { Vec::new() };
        (self.best, rows.into_iter().map(Sum::log).collect())
    }
}

/// [`Top`] of one row, which is there as a whole; returns the logarithm of the sum.
pub fn top_of_row(isa: Isa, x: &[f32], best: &mut [Best]) -> f32 {
    top_of_row_without(isa, x, None, best)
}

/// [`top_of_row`] with a place whose number counts for nothing, as in [`Wanted::never`]: the same bits.
pub fn top_of_row_without(isa: Isa, x: &[f32], never: Option<usize>, best: &mut [Best]) -> f32 {
    best.fill(Best::NONE);
    let (wanted, mut sums) = (Wanted { count: best.len(), sums: true, never }, [Sum::NOTHING]);
    for (chunk, x) in x.chunks(CHUNK).enumerate() {
        isa.dispatch(Add { first: chunk * CHUNK, x, wanted, best: &mut *best, sums: &mut sums });
    }
    sums[0].log()
}

/// Rows in a task: enough that the cost of starting a task does not matter.
const ROWS: usize = 16;

/// A chunk of some rows, from the column `first` on.
struct Add<'a> {
    first: usize,
    x: &'a [f32],
    wanted: Wanted,
    best: &'a mut [Best],
    sums: &'a mut [Sum],
}

impl Kernel for Add<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Add { first, x, wanted: Wanted { count, sums: summed, never }, best, sums } = self;
        let columns = x.len() / sums.len().max(1);
        let never = never.and_then(|never| never.checked_sub(first)).filter(|&never| never < columns);
        for (i, sum) in sums.iter_mut().enumerate() {
            let (x, best) = (&x[i * columns..][..columns], &mut best[i * count..][..count]);
            // In two parts if the ignored index is among them.
            let parts = [(0, never.unwrap_or(columns)), (never.map_or(columns, |never| never + 1), columns)];
            for (start, end) in parts {
                let (x, first) = (&x[start..end], first + start);
                let here = greatest(s, x);
                if here == f32::NEG_INFINITY {
                    continue;
                }
                match &mut *best {
                    [] => {}
                    // Searching for one number is faster than keeping a list.
                    [one] => {
                        if here > one.score {
                            let place = x.iter().position(|&x| x == here).unwrap_or(0);
                            *one = Best { score: here, token: (first + place) as u32 };
                        }
                    }
                    best => {
                        if here > best[count - 1].score {
                            select(s, first, x, best);
                        }
                    }
                }
                if summed {
                    sum.add(s, x, here);
                }
            }
        }
    }
}

/// The greatest number of a row, without NaNs.
#[inline(always)]
fn greatest<S: Simd>(s: S, x: &[f32]) -> f32 {
    let nothing = s.splat(f32::NEG_INFINITY);
    // Four maxima, so that one comparison need not wait for the one before.
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

/// Inserts a number into the best ones, if it belongs there.
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

    /// [`Top`] of rows that are there as a whole.
    fn top(cpu: &Cpu, x: &[f32], rows: usize, wanted: Wanted) -> (Vec<Best>, Vec<f32>) {
        let width = x.len() / rows;
        let mut top = Top::new(rows, wanted);
        for first in (0..width).step_by(CHUNK) {
            let columns = first..width.min(first + CHUNK);
            let chunk: Vec<f32> = x.chunks(width).flat_map(|row| &row[columns.clone()]).copied().collect();
            top.add(cpu, first, &chunk);
        }
        top.finish()
    }

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
                    let wanted = Wanted { count, sums: true, never: None };
                    let (best, log_sums) = top(&cpu, &x, rows, wanted);
                    let without_sums = top(&cpu, &x, rows, Wanted { sums: false, ..wanted });
                    assert_eq!(without_sums, (best.clone(), Vec::new()), "{isa}, {count} of {width}");
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
                        assert_eq!(top_of_row(isa, &row, &mut best), f32::NEG_INFINITY, "{isa}");
                        assert_eq!(best, vec![Best::NONE; count], "{isa}");
                        row[width / 2] = 3.0;
                        top_of_row(isa, &row, &mut best);
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
            let cpu = Cpu { isa, threads: Threads::new(1) };
            let mut row = normal(5, 1100);
            for never in [0, 31, 511, 512, 1099] {
                let without = row[never];
                row[never] = 50.0;
                let wanted = Wanted { count: 5, sums: true, never: Some(never) };
                let (best, sum) = top(&cpu, &row, 1, wanted);
                let mut whole = [Best::NONE; 5];
                let whole_sum = top_of_row_without(isa, &row, Some(never), &mut whole);
                assert_eq!((&best[..], sum[0].to_bits()), (&whole[..], whole_sum.to_bits()), "{isa}");
                row[never] = f32::NEG_INFINITY;
                let mut expected = [Best::NONE; 5];
                let expected_sum = top_of_row(isa, &row, &mut expected);
                assert_eq!(best, expected, "{isa}");
                assert!((sum[0] - expected_sum).abs() < 1e-5, "{isa}: {sum:?} and {expected_sum}");
                row[never] = without;
            }
        }
    }
}
