//! The input of a ViT's encoder: the class token, other tokens that every picture has, and the patches.
//!
//! ```text
//! [class + p₀; distilled + p₁; registers; W·patch + b + p]
//! ```

use super::{Batch, VitConfig};
use crate::builder::{Builder, Init};
use crate::error::Error;
use crate::layers::{GridPositions, Patches};
use attentive_tensor::{Parameter, Rectangle, Tape, Var};

/// The embedding of pictures.
#[derive(Debug, Clone)]
pub(super) struct Tokens {
    class: Parameter,
    /// The distillation token of DeiT.
    distilled: Option<Parameter>,
    registers: Option<Parameter>,
    positions: GridPositions,
    patches: Patches,
    d_model: usize,
}

impl Tokens {
    pub fn new(builder: &Builder, config: &VitConfig) -> Result<Tokens, Error> {
        let d = config.d_model;
        let (distilled, registers) = (config.relative.is_distilled(), config.registers);
        let rows = |name, rows| builder.parameter(name, [1, rows, d], Init::Normal(config.deviation));
        let particulars = config.relative.particulars();
        Ok(Tokens {
            class: rows("cls_token", 1)?,
            distilled: distilled.then(|| rows("distillation_token", 1)).transpose()?,
            registers: (registers > 0).then(|| rows("register_tokens", registers)).transpose()?,
            positions: GridPositions::new(
                &builder.at("embed_positions"),
                1 + usize::from(distilled),
                config.learned_grid(),
                d,
                particulars.resizing,
            )?,
            patches: Patches::new(&builder.at("embed_patches"), config.channels, config.patch_size, d)?,
            d_model: d,
        })
    }

    /// `[tokens, d_model]`.
    pub fn forward(&self, tape: &Tape, batch: &Batch) -> Var {
        let (before, patches) = (self.before(tape), self.patches(tape, batch));
        // The tokens before the patches are the same for each picture.
        let count = before.shape().rows();
        let rows: Vec<i32> = batch.grids.iter().flat_map(|_| 0..count as i32).collect();
        let before = tape.embedding(&before, &tape.backend().upload_i32(&rows), 1.0, None);
        let (mut places, mut taken) = (Vec::new(), 0);
        for (picture, range) in batch.sequences.ranges().enumerate() {
            let place = |from: usize, to: usize, rows: usize| Rectangle {
                from: [from, 0],
                to: [to, 0],
                size: [rows, self.d_model],
            };
            let own = range.len() - count;
            places.push((&before, place(picture * count, range.start, count)));
            places.push((&patches, place(taken, range.start + count, own)));
            taken += own;
        }
        tape.assemble([batch.sequences.tokens(), self.d_model], &places)
    }

    /// The tokens before the patches, with their positions.
    fn before(&self, tape: &Tape) -> Var {
        let rows = |parameter: &Parameter| {
            let x = tape.parameter(parameter);
            let shape = [x.shape().rows(), self.d_model];
            tape.reshape(&x, shape)
        };
        let class = rows(&self.class);
        let read = match &self.distilled {
            Some(distilled) => tape.concat_rows(&[&class, &rows(distilled)]),
            None => class,
        };
        let read = tape.add(&read, &self.positions.before(tape));
        match &self.registers {
            Some(registers) => tape.concat_rows(&[&read, &rows(registers)]),
            None => read,
        }
    }

    /// The patches of all pictures, with their positions.
    fn patches(&self, tape: &Tape, batch: &Batch) -> Var {
        let mut grids = batch.grids.clone();
        grids.sort_unstable();
        grids.dedup();
        let positions: Vec<Var> = grids.iter().map(|grid| self.positions.of(tape, *grid)).collect();
        let mut first = 0;
        let begin = |positions: &Var| {
            first += positions.shape().rows() as i32;
            first - positions.shape().rows() as i32
        };
        let begins: Vec<i32> = positions.iter().map(begin).collect();
        let places = batch.grids.iter().flat_map(|grid| {
            let begin = begins[grids.binary_search(grid).expect("a grid of the batch")];
            begin..begin + (grid[0] * grid[1]) as i32
        });
        let places = tape.backend().upload_i32(&places.collect::<Vec<_>>());
        let positions = match &positions[..] {
            [one] => one.clone(),
            several => tape.concat_rows(&several.iter().collect::<Vec<_>>()),
        };
        let patches = self.patches.forward(tape, &tape.constant(batch.patches.clone()));
        tape.add(&patches, &tape.embedding(&positions, &places, 1.0, None))
    }
}
