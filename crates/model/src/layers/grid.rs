//! Learned positions in a grid, such as those of the patches of a picture, and in grids of other sizes.
//!
//! A vector between the places that were learned is a weighted sum of those around it, by a cubic along each direction:
//!
//! ```text
//! w(x) = (a + 2)|x|³ - (a + 3)|x|² + 1         for |x| ≤ 1
//!        a|x|³ - 5a|x|² + 8a|x| - 4a           for 1 < |x| < 2
//! ```

use crate::builder::{Builder, Init};
use crate::error::Error;
use attentive_tensor::{Parameter, Tape, Tensor, Var};
use std::sync::{Arc, Mutex, PoisonError};

/// How positions of another grid are made of those that were learned, as PyTorch's `interpolate` does it in mode `bicubic`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resizing {
    /// a = -0.75; the two places on each side count, and places beyond the border are those at the border.
    Plain,
    /// `antialias`: a = -0.5; the cubic grows where the grid shrinks, and places beyond the border do not count.
    Antialiased,
}

/// Vectors for the places of a grid, and for tokens before it: a table `[1, before + rows · columns, d_model]`.
#[derive(Debug, Clone)]
pub struct GridPositions {
    table: Parameter,
    before: usize,
    grid: [usize; 2],
    resizing: Resizing,
    /// Those of the last other grid, where nothing is learned.
    made: Option<Arc<Mutex<Option<Made>>>>,
}

/// A grid, and its positions.
#[derive(Debug)]
struct Made {
    grid: [usize; 2],
    positions: Tensor,
}

impl GridPositions {
    /// Positions for `before` tokens and a grid of rows and columns behind them.
    pub fn new(
        builder: &Builder,
        before: usize,
        grid: [usize; 2],
        d_model: usize,
        resizing: Resizing,
    ) -> Result<GridPositions, Error> {
        let rows = before + grid[0] * grid[1];
        let table = builder.parameter("weight", [1, rows, d_model], Init::Normal(0.02))?;
        let made = builder.is_packed().then(Arc::default);
        Ok(GridPositions { table, before, grid, resizing, made })
    }

    fn table(&self, tape: &Tape) -> Var {
        let table = tape.parameter(&self.table);
        let (rows, d) = (table.shape().rows(), table.shape().cols());
        tape.reshape(&table, [rows, d])
    }

    /// The positions of the tokens before the grid, `[before, d_model]`, in f32.
    pub fn before(&self, tape: &Tape) -> Var {
        tape.slice_rows(&self.table(tape), 0..self.before)
    }

    /// The positions of a grid of rows and columns, `[rows · columns, d_model]`, in f32.
    pub fn of(&self, tape: &Tape, grid: [usize; 2]) -> Var {
        let Some(made) = self.made.as_ref().filter(|_| grid != self.grid) else {
            return self.resized(tape, grid);
        };
        let mut made = made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = made.as_ref().filter(|made| made.grid == grid) {
            return tape.constant(made.positions.clone());
        }
        let positions = self.resized(tape, grid);
        *made = Some(Made { grid, positions: positions.value().clone() });
        positions
    }

    fn resized(&self, tape: &Tape, grid: [usize; 2]) -> Var {
        let table = self.table(tape);
        let learned = tape.slice_rows(&table, self.before..table.shape().rows());
        if grid == self.grid {
            return learned;
        }
        let weights = self.weights(grid);
        let (new, old, d) = (grid[0] * grid[1], self.grid[0] * self.grid[1], table.shape().cols());
        let weights = tape.constant(tape.backend().upload_f32(&weights, [1, new, old]));
        let positions = tape.matmul(&weights, &tape.reshape(&learned, [1, old, d]), false);
        tape.reshape(&positions, [new, d])
    }

    /// How much each learned place counts for each place of a grid, `[rows · columns, learned]`.
    fn weights(&self, grid: [usize; 2]) -> Vec<f32> {
        let [down, across] = [0, 1].map(|i: usize| self.resizing.weights(self.grid[i], grid[i]));
        let rows = down.chunks_exact(self.grid[0]);
        let place = |row: &[f64]| {
            let columns = across.chunks_exact(self.grid[1]);
            columns.flat_map(|column| outer(row, column)).collect::<Vec<f32>>()
        };
        rows.flat_map(place).collect()
    }
}

/// `aᵢ · bⱼ`, row by row.
fn outer(a: &[f64], b: &[f64]) -> Vec<f32> {
    a.iter().flat_map(|a| b.iter().map(move |b| (a * b) as f32)).collect()
}

impl Resizing {
    /// How much each of `old` places in a line counts for each of `new` ones, `[new, old]`.
    fn weights(self, old: usize, new: usize) -> Vec<f64> {
        let scale = old as f64 / new as f64;
        let mut weights = vec![0.0; new * old];
        for (i, row) in weights.chunks_exact_mut(old).enumerate() {
            let centre = (i as f64 + 0.5) * scale;
            match self {
                Resizing::Plain => {
                    let place = centre - 0.5;
                    let first = place.floor() as isize - 1;
                    for near in first..first + 4 {
                        let inside = near.clamp(0, old as isize - 1) as usize;
                        row[inside] += cubic(-0.75, place - near as f64);
                    }
                }
                Resizing::Antialiased => {
                    let grown = scale.max(1.0);
                    let reach = 2.0 * grown;
                    let first = (centre - reach + 0.5).max(0.0) as usize;
                    let end = ((centre + reach + 0.5) as usize).min(old);
                    for near in first..end {
                        row[near] = cubic(-0.5, (near as f64 + 0.5 - centre) / grown);
                    }
                    let sum: f64 = row.iter().sum();
                    row.iter_mut().for_each(|weight| *weight /= sum);
                }
            }
        }
        weights
    }
}

fn cubic(a: f64, x: f64) -> f64 {
    match x.abs() {
        x if x <= 1.0 => ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0,
        x if x < 2.0 => ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a,
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_of_each_place_add_up_to_one_and_the_same_size_changes_nothing() {
        for resizing in [Resizing::Plain, Resizing::Antialiased] {
            for (old, new) in [(14, 14), (14, 16), (37, 16), (3, 1), (1, 5)] {
                let weights = resizing.weights(old, new);
                for (i, row) in weights.chunks_exact(old).enumerate() {
                    assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{resizing:?} {old} {new}");
                    if old == new {
                        assert_eq!(row[i], 1.0, "{resizing:?}");
                    }
                }
            }
        }
    }
}
