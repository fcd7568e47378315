//! What a kernel is held against: the rate of what its work needs most.

use attentive_kernels::Cpu;
use attentive_kernels::limits::{Stream, TileProducts, multiply_add_rate};
use attentive_tensor::kernel_cases::{Operands, Work};

/// Bytes that no cache holds: two arrays of 256 MiB.
const MEMORY: usize = 1 << 29;

/// FLOP/s or bytes/s, of one short attempt.
type Rate = Box<dyn FnMut(&Cpu) -> f64>;

/// What a kernel is held against.
pub(super) struct Limit {
    pub name: &'static str,
    pub rate: Rate,
}

impl Limit {
    pub(super) fn of(work: Work, cpu: &Cpu) -> Limit {
        match work {
            Work::Flops(_) => Limit::of_product(Operands::F32, Box::new(multiply_add_rate), None),
            Work::Product(_, operands) => {
                let tiles = TileProducts::bf16(cpu).zip(TileProducts::int8(cpu));
                let rate = |tiles: TileProducts| -> Rate { Box::new(move |cpu| tiles.rate(cpu)) };
                let tiles = tiles.map(|(bf16, int8)| [bf16, int8].map(rate));
                Limit::of_product(operands, Box::new(multiply_add_rate), tiles)
            }
            Work::Bytes { held, .. } => {
                // Powers of two are near enough.
                let mut stream = Stream::new(held.next_power_of_two().min(MEMORY));
                Limit { name: "stream", rate: Box::new(move |cpu| stream.rate(cpu)) }
            }
        }
    }

    /// From the rates of multiply-adds, and of products of tiles of bf16 and of int8 where there are any.
    fn of_product(operands: Operands, mut multiply_add: Rate, tiles: Option<[Rate; 2]>) -> Limit {
        let (name, rate): (_, Rate) = match (operands, tiles) {
            (Operands::F32, _) | (_, None) => ("multiply-add", multiply_add),
            (Operands::Parts, Some([mut bf16, _])) => ("tile bf16 / 6", Box::new(move |cpu| bf16(cpu) / 6.0)),
            (Operands::Both, Some([mut bf16, _])) => {
                ("f32 + tile / 6", Box::new(move |cpu| 3.0 / (1.0 / multiply_add(cpu) + 12.0 / bf16(cpu))))
            }
            (Operands::Bf16, Some([bf16, _])) => ("tile bf16", bf16),
            (Operands::Attention, Some([mut bf16, _])) => {
                ("tile bf16 × 5/8", Box::new(move |cpu| bf16(cpu) * 5.0 / 8.0))
            }
            (Operands::Int8, Some([_, int8])) => ("tile int8", int8),
        };
        Limit { name, rate }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use attentive_kernels::{Isa, Threads};

    #[test]
    fn limits_of_products_come_from_the_rates_of_vectors_and_tiles() {
        let cpu = Cpu { isa: Isa::best(), threads: Threads::new(1) };
        let rates = || [300.0, 6000.0, 12000.0].map(|rate| -> Rate { Box::new(move |_| rate) });
        let cases = [
            (Operands::F32, "multiply-add", 300.0),
            (Operands::Parts, "tile bf16 / 6", 1000.0),
            // A part takes 1/300 s forward, two take 1/1000 s each back.
            (Operands::Both, "f32 + tile / 6", 562.5),
            (Operands::Bf16, "tile bf16", 6000.0),
            (Operands::Attention, "tile bf16 × 5/8", 3750.0),
            (Operands::Int8, "tile int8", 12000.0),
        ];
        for (operands, name, expected) in cases {
            let [multiply_add, bf16, int8] = rates();
            let mut limit = Limit::of_product(operands, multiply_add, Some([bf16, int8]));
            let rate = (limit.rate)(&cpu);
            assert!(
                limit.name == name && (rate / expected - 1.0).abs() < 1e-9,
                "{name}: {} {rate}",
                limit.name
            );
            let [multiply_add, ..] = rates();
            let mut limit = Limit::of_product(operands, multiply_add, None);
            assert_eq!((limit.name, (limit.rate)(&cpu)), ("multiply-add", 300.0));
        }
    }
}
