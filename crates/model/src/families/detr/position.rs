//! Sinusoidal positions in two dimensions.
//!
//! The first half of a position encodes row `y` of `height`, the second half encodes column `x` of `width` in the same way. Of each half:
//!
//! ```text
//! s = 2π·(y + 1) / (height + 10⁻⁶)
//! position[2i] = sin(s / 10000^(2i / half))    position[2i + 1] = cos(s / 10000^(2i / half))
//! ```

use attentive_tensor::Pictures;
use std::f32::consts::PI;

/// The positions of all cells of feature maps, `[cells, d_model]`.
pub(super) fn positions(maps: &Pictures, d_model: usize) -> Vec<f32> {
    let half = d_model / 2;
    let divisors: Vec<f32> = (0..half).map(|i| 10000f32.powf((2 * (i / 2)) as f32 / half as f32)).collect();
    // The half of a position for each row, or for each column.
    let axis = |length: usize| -> Vec<Vec<f32>> {
        let numbers = |step: usize| -> Vec<f32> {
            let scaled = (step + 1) as f32 / (length as f32 + 1e-6) * (2.0 * PI);
            let number = |(i, divisor): (usize, &f32)| {
                let angle = scaled / divisor;
                if i % 2 == 0 { angle.sin() } else { angle.cos() }
            };
            divisors.iter().enumerate().map(number).collect()
        };
        (0..length).map(numbers).collect()
    };
    let mut all = Vec::new();
    for &[height, width] in maps.sizes() {
        let (rows, columns) = (axis(height), axis(width));
        for row in &rows {
            for column in &columns {
                all.extend_from_slice(row);
                all.extend_from_slice(column);
            }
        }
    }
    all
}
