//! What the machine can do at best: the rates that kernels are held against.
//!
//! They are measured where they are asked for, with the instruction set and the threads of a [`Cpu`], and they take
//! the best of some attempts: a limit that something else on the machine held up is no limit.

use crate::amx::{TILE, Tiles, TwoTiles};
use crate::isa::Kernel;
use crate::pass::PIECE;
use crate::simd::{Simd, for_vectors, load, store};
use crate::{Aligned, Cpu, Random};
use half::bf16;
use std::hint::black_box;
use std::time::Instant;

/// Sums that are in work at once: enough to hide the latency of a multiply-add on two units, few enough to stay in
/// sixteen registers.
const CHAINS: usize = 12;
/// Multiply-adds of a task in each chain: some tenths of a millisecond.
const TURNS: usize = 1 << 17;
/// Tasks of one attempt, many more than there are threads.
const TASKS: usize = 64;
const ATTEMPTS: usize = 5;
/// Bytes that are moved in one attempt, at the least.
const MOVED: usize = 1 << 28;

/// Floating-point operations a second of multiply-adds that need nothing but registers; each counts as two.
pub fn multiply_add_rate(cpu: &Cpu) -> f64 {
    best_rate(|| {
        cpu.threads.run(TASKS, |_| {
            black_box(cpu.isa.dispatch(MultiplyAdd { turns: black_box(TURNS) }));
        });
        (TASKS * TURNS * CHAINS * 2 * cpu.isa.dispatch(Lanes)) as f64
    })
}

/// Operations a second of products of tiles that need nothing but registers, of bf16 and of int8; none without a tile
/// unit.
///
/// They are products of numbers, as those of a model are: with zeros the unit is faster, presumably at a higher clock.
pub fn tile_rates(cpu: &Cpu) -> Option<[f64; 2]> {
    const FLOP: usize = 2 * TILE * TILE * TILE;
    const PRODUCTS: usize = 4;
    let amx = cpu.isa.amx()?;
    let random = Random::new(1);
    let number = |i: usize| bf16::from_f32(random.normal(i as u32)).to_le_bytes();
    let in_bf16 = [0, 1].map(|tile| std::array::from_fn(|i| number(512 * tile + i / 2)[i % 2]));
    let in_int8 = [0, 1].map(|tile| std::array::from_fn(|i| random.bits(1024 * tile + i as u32) as u8));
    let rate = |busy: fn(&Tiles, usize, &TwoTiles), numbers: &TwoTiles, pairs_or_fours: usize| {
        best_rate(|| {
            cpu.threads.run(TASKS, |_| busy(&amx.tiles(), TURNS / 16, numbers));
            (TASKS * TURNS / 16 * PRODUCTS * FLOP * pairs_or_fours) as f64
        })
    };
    Some([rate(Tiles::busy_bf16, &in_bf16, 2), rate(Tiles::busy_int8, &in_int8, 4)])
}

/// Bytes a second, read and written ones together, of `y = y / 2 + x` over two arrays that hold `bytes` in all.
///
/// As long as the caches hold them, this is the caches' rate; beyond it is the memory's. An update in place moves
/// nothing but what is counted. A copy would move more: memory that is only written is read first all the same.
pub fn stream_rate(cpu: &Cpu, bytes: usize) -> f64 {
    let len = (bytes / 8).max(1);
    // Every page is written once, so that none of them is still the system's shared page of zeros.
    let (mut x, mut y) = (Aligned::<f32>::zeros(len), Aligned::<f32>::zeros(len));
    x.fill(1.0);
    y.fill(1.0);
    let rounds = (MOVED / (12 * len)).max(1);
    best_rate(|| {
        for _ in 0..rounds {
            cpu.threads.for_pieces(&mut y, PIECE, |i, y| {
                cpu.isa.dispatch(Update { x: &x[i * PIECE..][..y.len()], y });
            });
        }
        (rounds * 12 * len) as f64
    })
}

/// The most work a second of several attempts; `attempt` says how much it did.
fn best_rate(mut attempt: impl FnMut() -> f64) -> f64 {
    let once = |_| {
        let begin = Instant::now();
        attempt() / begin.elapsed().as_secs_f64()
    };
    (0..ATTEMPTS).map(once).fold(0.0, f64::max)
}

struct MultiplyAdd {
    turns: usize,
}

impl Kernel for MultiplyAdd {
    type Output = f32;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> f32 {
        // Sums that tend to one: they neither overflow nor become subnormal.
        let (factor, addend) = (s.splat(0.75), s.splat(0.25));
        let mut sums = [s.splat(0.0); CHAINS];
        for _ in 0..self.turns {
            for sum in &mut sums {
                *sum = s.fma(*sum, factor, addend);
            }
        }
        let mut total = s.splat(0.0);
        for sum in sums {
            total = s.add(total, sum);
        }
        s.sum(total)
    }
}

struct Lanes;

impl Kernel for Lanes {
    type Output = usize;

    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> usize {
        S::LANES
    }
}

struct Update<'a> {
    x: &'a [f32],
    y: &'a mut [f32],
}

impl Kernel for Update<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let half = s.splat(0.5);
        for_vectors(
            s,
            self.y.len(),
            #[inline(always)]
            |at, n| store(s, self.y, at, n, s.fma(load(s, self.y, at, n), half, load(s, self.x, at, n))),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Isa, Threads};

    #[test]
    fn all_chains_add_up_on_every_instruction_set() {
        for isa in Isa::present() {
            // From zero, a chain is at 1 - 0.75ⁿ after n turns.
            let expected = (1.0 - 0.75f32.powi(3)) * (CHAINS * isa.dispatch(Lanes)) as f32;
            assert_eq!(isa.dispatch(MultiplyAdd { turns: 3 }), expected, "{isa}");
        }
    }

    #[test]
    fn an_update_reaches_every_number() {
        for isa in Isa::present() {
            let x: Vec<f32> = (0..37).map(|i| i as f32).collect();
            let mut y = vec![2.0; 37];
            isa.dispatch(Update { x: &x, y: &mut y });
            let expected: Vec<f32> = (1..38).map(|i| i as f32).collect();
            assert_eq!(y, expected, "{isa}");
        }
    }

    #[test]
    fn rates_are_positive_numbers_for_any_size() {
        let cpu = Cpu { isa: Isa::best(), threads: Threads::new(2) };
        let rates = [multiply_add_rate(&cpu), stream_rate(&cpu, 0), stream_rate(&cpu, 1 << 20)];
        for rate in rates.into_iter().chain(tile_rates(&cpu).into_iter().flatten()) {
            assert!(rate.is_finite() && rate > 0.0, "{rate}");
        }
    }
}
