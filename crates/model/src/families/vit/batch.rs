//! A batch of pictures.

use super::VitConfig;
use crate::layers::unfold;
use crate::sequences::Sequences;
use attentive_tensor::{Backend, Tensor};

/// A prepared picture: a plane of numbers for each channel, `[channels, height, width]`.
#[derive(Debug, Clone, Copy)]
pub struct Picture<'a> {
    /// The number of rows.
    pub height: usize,
    /// The number of columns.
    pub width: usize,
    /// The numbers.
    pub numbers: &'a [f32],
}

/// The patches of some pictures, packed.
#[derive(Debug, Clone)]
pub struct Batch {
    /// The patches of all pictures, each row by row, `[patches, channels · height · width]`.
    pub patches: Tensor,
    /// The rows and columns of patches that each picture has.
    pub grids: Vec<[usize; 2]>,
    /// The tokens of each picture: those before the patches, and the patches.
    pub sequences: Sequences,
}

impl Batch {
    /// Cuts pictures into patches.
    ///
    /// # Panics
    /// If there are no pictures, or if one has another number of values than its size says or is [too small](VitConfig::grid).
    pub fn new(backend: &dyn Backend, config: &VitConfig, pictures: &[Picture]) -> Batch {
        let grid = |picture: &Picture| {
            let &Picture { height, width, .. } = picture;
            let grid = config.grid(height, width);
            grid.unwrap_or_else(|| panic!("a picture of {width} × {height} has no patches that can be read"))
        };
        let grids: Vec<[usize; 2]> = pictures.iter().map(grid).collect();
        let patches = |picture: &Picture| {
            unfold(picture.numbers, config.channels, [picture.height, picture.width], config.patch_size)
        };
        let numbers: Vec<f32> = pictures.iter().flat_map(patches).collect();
        let count: usize = grids.iter().map(|[rows, columns]| rows * columns).sum();
        let patches = backend.upload_f32(&numbers, [count, config.patch_len()]);
        let before = config.tokens_before();
        Batch {
            patches: backend.cast(&patches, backend.activations()),
            sequences: Sequences::new(grids.iter().map(|[rows, columns]| before + rows * columns)),
            grids,
        }
    }
}
