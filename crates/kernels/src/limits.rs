//! The highest rates of the machine, with which kernels are compared.
//!
//! They are measured with the instruction set and the threads of a [`Cpu`], in attempts that are short enough to alternate with a kernel:
//! then other load on the machine slows down both.

use crate::amx::{Amx, TILE, Tiles, TwoTiles};
use crate::isa::Kernel;
use crate::pass::PIECE;
use crate::simd::{Simd, for_vectors, load, store};
use crate::{Aligned, Cpu, Random};
use half::bf16;
use std::hint::black_box;
use std::time::Instant;

/// Sums that are computed at the same time: enough to hide the latency of a multiply-add on two units, few enough for sixteen
/// registers.
const CHAINS: usize = 12;
/// Multiply-adds of a task in each chain: about a tenth of a millisecond.
const ROUNDS: usize = 1 << 15;
/// Tasks of one attempt, many more than there are threads: an attempt takes about a millisecond on two.
const TASKS: usize = 32;
/// Bytes that are moved in one attempt, at the least.
const MOVED: usize = 1 << 26;

/// Floating-point operations a second of multiply-adds with operands in registers. A multiply-add counts as two.
pub fn multiply_add_rate(cpu: &Cpu) -> f64 {
    rate(TASKS * ROUNDS * CHAINS * 2 * cpu.isa.dispatch(Lanes), || {
        cpu.threads.run(TASKS, |_| {
            black_box(cpu.isa.dispatch(MultiplyAdd { rounds: black_box(ROUNDS) }));
        });
    })
}

/// Products of tiles with operands in registers.
///
/// The operands are random numbers, because the unit is faster with zeros, presumably at a higher clock.
pub struct TileProducts {
    amx: Amx,
    numbers: TwoTiles,
    busy: fn(&Tiles, usize, &TwoTiles),
    /// Numbers in the four bytes that a product takes at once.
    group: usize,
}

impl TileProducts {
    /// Products of bf16. None without a tile unit.
    pub fn bf16(cpu: &Cpu) -> Option<TileProducts> {
        let random = Random::new(1);
        let number = |i: usize| bf16::from_f32(random.normal(i as u32)).to_le_bytes();
        let numbers = [0, 1].map(|tile| std::array::from_fn(|i| number(512 * tile + i / 2)[i % 2]));
        Some(TileProducts { amx: cpu.isa.amx()?, numbers, busy: Tiles::busy_bf16, group: 2 })
    }

    /// Products of int8. None without a tile unit.
    pub fn int8(cpu: &Cpu) -> Option<TileProducts> {
        let random = Random::new(1);
        let numbers = [0, 1].map(|tile| std::array::from_fn(|i| random.bits(1024 * tile + i as u32) as u8));
        Some(TileProducts { amx: cpu.isa.amx()?, numbers, busy: Tiles::busy_int8, group: 4 })
    }

    /// Operations a second.
    pub fn rate(&self, cpu: &Cpu) -> f64 {
        const FLOP: usize = 2 * TILE * TILE * TILE;
        const PRODUCTS: usize = 4;
        let rounds = ROUNDS / 16;
        rate(TASKS * rounds * PRODUCTS * FLOP * self.group, || {
            cpu.threads.run(TASKS, |_| (self.busy)(&self.amx.tiles(), rounds, &self.numbers));
        })
    }
}

/// `y = y / 2 + x` over two arrays.
///
/// It runs at the rate of the cache that holds the arrays, or of memory. An update in place moves only the bytes that are counted. A copy
/// would move more, because memory that is only written is read before.
pub struct Stream {
    x: Aligned<f32>,
    y: Aligned<f32>,
}

impl Stream {
    /// Over arrays that hold so many bytes in all.
    pub fn new(bytes: usize) -> Stream {
        let len = (bytes / 8).max(1);
        // Every page is written once, so that none of them is still the system's shared page of zeros.
        let (mut x, mut y) = (Aligned::zeros(len), Aligned::zeros(len));
        x.fill(1.0);
        y.fill(1.0);
        Stream { x, y }
    }

    /// Bytes a second, read and written.
    pub fn rate(&mut self, cpu: &Cpu) -> f64 {
        let Stream { x, y } = self;
        let moved = 12 * x.len();
        let rounds = (MOVED / moved).max(1);
        rate(rounds * moved, || {
            for _ in 0..rounds {
                cpu.threads.for_pieces(y, PIECE, |i, y| {
                    cpu.isa.dispatch(Update { x: &x[i * PIECE..][..y.len()], y });
                });
            }
        })
    }
}

/// Work a second.
fn rate(work: usize, attempt: impl FnOnce()) -> f64 {
    let begin = Instant::now();
    attempt();
    work as f64 / begin.elapsed().as_secs_f64()
}

struct MultiplyAdd {
    rounds: usize,
}

impl Kernel for MultiplyAdd {
    type Output = f32;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> f32 {
        // The sums tend to one, so they neither overflow nor become subnormal.
        let (factor, addend) = (s.splat(0.75), s.splat(0.25));
        let mut sums = [s.splat(0.0); CHAINS];
        for _ in 0..self.rounds {
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
            // From zero, a chain is at 1 - 0.75ⁿ after n rounds.
            let expected = (1.0 - 0.75f32.powi(3)) * (CHAINS * isa.dispatch(Lanes)) as f32;
            assert_eq!(isa.dispatch(MultiplyAdd { rounds: 3 }), expected, "{isa}");
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
        let streams = [0, 1 << 20].map(|bytes| Stream::new(bytes).rate(&cpu));
        let tiles = [TileProducts::bf16(&cpu), TileProducts::int8(&cpu)];
        let tiles = tiles.into_iter().flatten().map(|products| products.rate(&cpu));
        for rate in [multiply_add_rate(&cpu)].into_iter().chain(streams).chain(tiles) {
            assert!(rate.is_finite() && rate > 0.0, "{rate}");
        }
    }
}
