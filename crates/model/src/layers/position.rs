//! Where a token stands: sinusoids or learned vectors, added to its embedding.

use crate::builder::{Builder, Init};
use crate::error::Error;
use attentive_tensor::{Backend, Parameter, Tape, Tensor, Var};
use std::sync::{Arc, Mutex, PoisonError};

/// The kinds of positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PositionKind {
    /// Sines at even and cosines at odd dimensions, as the paper writes it.
    #[default]
    Interleaved,
    /// Sines in the first and cosines in the second half, as Marian stores it: the same but for the order of the
    /// dimensions.
    Halves,
    /// Halves with the wavelengths of tensor2tensor's code, which grow to 10000 exactly. M2M-100 has them.
    Tensor2Tensor,
    /// A vector for each position, learned like an embedding.
    Learned,
}

/// The sinusoids of all positions below `positions`, row by row: `[positions, d_model]`.
///
/// `PE(pos, 2i) = sin(pos / 10000^(2i/d_model))` and `PE(pos, 2i+1)` the cosine of the same angle; `halves` puts the
/// cosines behind the sines instead of between them.
pub fn sinusoid(positions: usize, d_model: usize, halves: bool) -> Vec<f32> {
    let mut table = vec![0.0; positions * d_model];
    let sines = d_model.div_ceil(2);
    let wavelength = |i| 10_000f64.powf(2.0 * i as f64 / d_model as f64);
    let wavelengths: Vec<f64> = (0..sines).map(wavelength).collect();
    for (position, row) in table.chunks_exact_mut(d_model.max(1)).enumerate() {
        for (i, wavelength) in wavelengths.iter().enumerate() {
            let (sin, cos) = (position as f64 / wavelength).sin_cos();
            let (sine, cosine) = if halves { (i, sines + i) } else { (2 * i, 2 * i + 1) };
            row[sine] = sin as f32;
            if cosine < d_model {
                row[cosine] = cos as f32;
            }
        }
    }
    table
}

/// Like [`sinusoid`] in halves, but with wavelengths `10000^(i / (d_model/2 - 1))`. Angles are rounded to f32, since it is so in the code
/// that models were trained with. An odd width ends with zeros.
fn tensor2tensor(positions: usize, d_model: usize) -> Vec<f32> {
    let sines = d_model / 2;
    let step = 10_000f64.ln() / (sines as f64 - 1.0).max(1.0);
    let frequencies: Vec<f32> = (0..sines).map(|i| (i as f32 * -step as f32).exp()).collect();
    let mut table = vec![0.0; positions * d_model];
    for (position, row) in table.chunks_exact_mut(d_model.max(1)).enumerate() {
        for (i, frequency) in frequencies.iter().enumerate() {
            (row[i], row[sines + i]) = (position as f32 * frequency).sin_cos();
        }
    }
    table
}

/// A table of positions.
#[derive(Debug, Clone)]
pub struct Positions {
    count: usize,
    /// How many rows of the table stand before that of the first position.
    offset: usize,
    table: Table,
}

#[derive(Debug, Clone)]
enum Table {
    Fixed(Arc<Sinusoids>),
    Learned(Parameter),
}

/// Sinusoids of the positions that were needed so far: a model may have more of them than memory can hold.
#[derive(Debug)]
struct Sinusoids {
    count: usize,
    d_model: usize,
    kind: PositionKind,
    made: Mutex<Option<Tensor>>,
}

impl Sinusoids {
    /// Those of all positions below `length`, and perhaps of some more.
    fn up_to(&self, length: usize, backend: &dyn Backend) -> Tensor {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let enough = made.as_ref().filter(|table| table.shape().rows() >= length);
        if let Some(table) = enough {
            return table.clone();
        }
        let rows = length.next_power_of_two().max(64).min(self.count);
        let table = match self.kind {
            PositionKind::Tensor2Tensor => tensor2tensor(rows, self.d_model),
            kind => sinusoid(rows, self.d_model, kind == PositionKind::Halves),
        };
        made.insert(backend.upload_f32(&table, [rows, self.d_model])).clone()
    }
}

impl Positions {
    /// Positions `0..count` of width `d_model`.
    pub fn new(
        builder: &Builder,
        kind: PositionKind,
        count: usize,
        d_model: usize,
    ) -> Result<Positions, Error> {
        Positions::with_offset(builder, kind, count, 0, d_model)
    }

    /// The same in a table with so many rows before the first position, as fairseq's models have.
    pub fn with_offset(
        builder: &Builder,
        kind: PositionKind,
        count: usize,
        offset: usize,
        d_model: usize,
    ) -> Result<Positions, Error> {
        let rows = count + offset;
        let table = match kind {
            PositionKind::Learned => {
                let init = Init::Normal((d_model as f32).powf(-0.5));
                Table::Learned(builder.parameter("weight", [rows, d_model], init)?)
            }
            kind => Table::Fixed(Arc::new(Sinusoids { count: rows, d_model, kind, made: Mutex::new(None) })),
        };
        Ok(Positions { count, offset, table })
    }

    /// `x` plus the vectors of its tokens' positions, one for each row.
    ///
    /// # Panics
    /// If there is no such position.
    pub fn forward(&self, tape: &Tape, x: &Var, positions: &[i32]) -> Var {
        let (length, count) = (positions.iter().max().map_or(0, |last| *last as usize + 1), self.count);
        assert!(length <= count, "a sequence of {length} tokens, but the model has {count} positions");
        let table = match &self.table {
            Table::Fixed(sinusoids) => {
                tape.constant(sinusoids.up_to(length + self.offset, &**tape.backend()))
            }
            Table::Learned(table) => tape.parameter(table),
        };
        let rows: Vec<i32> = positions.iter().map(|position| position + self.offset as i32).collect();
        tape.add(x, &tape.embedding(&table, &tape.backend().upload_i32(&rows), 1.0, None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_the_interleaved_ones_in_another_order() {
        for d_model in [8, 7] {
            let (interleaved, halves) = (sinusoid(50, d_model, false), sinusoid(50, d_model, true));
            for (a, b) in interleaved.chunks(d_model).zip(halves.chunks(d_model)) {
                for i in 0..d_model {
                    assert_eq!(a[i], b[i / 2 + if i % 2 == 0 { 0 } else { d_model.div_ceil(2) }]);
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "a sequence of 6 tokens, but the model has 5 positions")]
    fn a_position_past_the_last_is_told_as_a_length() {
        let backend = attentive_tensor::check::backend();
        let positions = Positions::new(&Builder::random(&backend, 0), PositionKind::Halves, 5, 2).unwrap();
        let tape = Tape::inference(&backend);
        let x = tape.constant(backend.upload_f32(&[0.0; 4], [2, 2]));
        positions.forward(&tape, &x, &[0, 5]);
    }

    #[test]
    fn a_billion_positions_take_the_memory_of_those_that_are_used() {
        let backend = attentive_tensor::check::backend();
        let builder = Builder::random(&backend, 0);
        let few = Positions::new(&builder, PositionKind::Halves, 100, 4).unwrap();
        let many = Positions::new(&builder, PositionKind::Halves, 1 << 30, 4).unwrap();
        let tape = Tape::inference(&backend);
        for position in [0, 3, 70, 99, 5] {
            let x = tape.constant(backend.upload_f32(&[0.5; 4], [1, 4]));
            let [few, many] =
                [&few, &many].map(|positions| positions.forward(&tape, &x, &[position]).value().clone());
            assert_eq!(backend.download_f32(&few), backend.download_f32(&many), "{position}");
        }
    }

    #[test]
    fn the_first_position_is_zeros_and_ones_and_the_second_turns_by_one() {
        let table = sinusoid(2, 4, false);
        assert_eq!(table[..4], [0.0, 1.0, 0.0, 1.0]);
        assert_eq!(table[4..6], [1f64.sin() as f32, 1f64.cos() as f32]);
        assert_eq!(table[6], 0.01f64.sin() as f32);
    }
}
