//! Synthetic pictures of shapes with known boxes, drawn from a seed.
//!
//! A scene has 128 × 128 pixels: one to eight shapes of several kinds and colours, 8 to 64 pixels large, which may overlap, on a noisy
//! background. Random bits come from a seed and a counter, and all arithmetic is exact or correctly rounded, so a seed gives the same
//! picture on every machine.
//!
//! ```
//! use attentive_train::scenes::Scene;
//!
//! let scene = Scene::new(7);
//! assert_eq!((scene.picture.width(), scene.picture.height()), (128, 128));
//! assert_eq!(scene.picture, Scene::new(7).picture);
//! let [left, top, width, height] = scene.things[0].bbox;
//! println!("{} at {left}, {top}: {width} × {height}", scene.things[0].name());
//! ```

mod lesson;
mod shape;

pub use lesson::settings;
pub use shape::{Colour, Shape};

use attentive_image::Picture;
use attentive_tensor::Random;
use std::ops::Range;
use std::path::Path;

/// The width and height of a scene in pixels.
pub const SIDE: usize = 128;
/// The most shapes in a scene.
pub const MOST: usize = 8;
/// The name that users write in place of a file to get scenes.
const NAME: &str = "scenes";
/// The seeds of the scenes that training uses, each once an epoch.
pub(crate) const TRAINING: Range<u64> = 0..20_000;
/// The seed of the first scene for validation.
pub(crate) const FIRST_HELD: u64 = 1 << 40;
/// The seeds of the scenes that `--valid-data scenes` stands for.
pub(crate) const VALIDATION: Range<u64> = FIRST_HELD..FIRST_HELD + 500;
/// The seed of the first scene that neither training nor validation uses.
pub const FIRST_UNSEEN: u64 = 1 << 41;
/// The least and the greatest width and height of shapes.
const SMALLEST: u32 = 8;
const LARGEST: u32 = 64;
/// The least share of a shape's pixels that stay visible.
const VISIBLE: f64 = 0.5;
/// The corners of the background's grid, along each side.
const KNOTS: usize = 5;
/// How often a shape is drawn anew if it would hide others.
const TRIES: u32 = 12;

/// Whether a path stands for scenes: it ends with `scenes` and does not exist.
pub(crate) fn are_meant_by(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == NAME) && !path.exists()
}

/// A picture and its shapes.
#[derive(Debug, Clone, PartialEq)]
pub struct Scene {
    /// The picture.
    pub picture: Picture,
    /// Its shapes, from back to front.
    pub things: Vec<Thing>,
}

/// A shape in a scene.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Thing {
    /// The kind of shape.
    pub shape: Shape,
    /// Its colour.
    pub colour: Colour,
    /// The box around all of its pixels, hidden ones included: left, top, width, height.
    pub bbox: [f64; 4],
}

impl Thing {
    /// Its colour and kind, such as `red circle`.
    pub fn name(&self) -> String {
        format!("{} {}", self.colour.name(), self.shape.name())
    }
}

/// A sequence of random numbers.
struct Draw {
    random: Random,
    next: u32,
}

impl Draw {
    fn bits(&mut self) -> u32 {
        self.next += 1;
        self.random.bits(self.next - 1)
    }

    /// A number from `least` to `most`, both included.
    fn between(&mut self, least: u32, most: u32) -> u32 {
        least + ((u64::from(self.bits()) * u64::from(most - least + 1)) >> 32) as u32
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.between(0, all.len() as u32 - 1) as usize]
    }
}

/// All that is random about a scene but its noise.
struct Plan {
    knots: Vec<i64>,
    shapes: Vec<Placed>,
}

/// A shape in its place: what it is, its pixels and its exact colour.
struct Placed {
    thing: Thing,
    mask: Vec<usize>,
    colour: [u8; 3],
}

impl Placed {
    /// Whether so many visible pixels are enough of it.
    fn is_seen(&self, visible: usize) -> bool {
        visible as f64 >= VISIBLE * self.mask.len() as f64
    }
}

impl Plan {
    fn new(seed: u64) -> Plan {
        let mut draw = Draw { random: Random::new(seed).split(0), next: 0 };
        let knots = knots(&mut draw);
        let count = draw.between(1, MOST as u32);
        let mut shapes: Vec<Placed> = Vec::new();
        // The shape that is visible at each pixel, and at how many pixels each is.
        let mut front: Vec<Option<u8>> = vec![None; SIDE * SIDE];
        let mut visible: Vec<usize> = Vec::new();
        for _ in 0..count {
            let Some((thing, mask, left)) = (0..TRIES).find_map(|_| {
                let (thing, mask) = placed(&mut draw);
                let left = left_visible(&mask, &front, &visible);
                let are_seen = shapes.iter().zip(&left).all(|(shape, &left)| shape.is_seen(left));
                are_seen.then_some((thing, mask, left))
            }) else {
                break;
            };
            let colour = thing.colour.near(&mut || draw.between(0, 60) as i32 - 30);
            mask.iter().for_each(|&pixel| front[pixel] = Some(shapes.len() as u8));
            visible = left;
            visible.push(mask.len());
            shapes.push(Placed { thing, mask, colour });
        }
        Plan { knots, shapes }
    }
}

impl Scene {
    /// The scene of a seed.
    pub fn new(seed: u64) -> Scene {
        let Plan { knots, shapes } = Plan::new(seed);
        let mut pixels = background(&knots);
        for Placed { mask, colour, .. } in &shapes {
            mask.iter().for_each(|&pixel| pixels[3 * pixel..3 * pixel + 3].copy_from_slice(colour));
        }
        let noise = Random::new(seed).split(1);
        for (i, byte) in pixels.iter_mut().enumerate() {
            *byte = byte.saturating_add_signed((noise.bits(i as u32) >> 28) as i8 - 8);
        }
        let things = shapes.into_iter().map(|placed| placed.thing).collect();
        Scene { picture: Picture::new(SIDE, SIDE, pixels), things }
    }

    /// The shapes of the scene of a seed, without painting it.
    pub(crate) fn things(seed: u64) -> impl Iterator<Item = Thing> {
        Plan::new(seed).shapes.into_iter().map(|placed| placed.thing)
    }
}

/// The colours of the background at the corners of a grid: `[KNOTS, KNOTS, 3]`.
fn knots(draw: &mut Draw) -> Vec<i64> {
    let base: Vec<i64> = (0..3).map(|_| i64::from(draw.between(40, 215))).collect();
    let near = |i: usize| (base[i % 3] + i64::from(draw.between(0, 80)) - 40).clamp(0, 255);
    (0..KNOTS * KNOTS * 3).map(near).collect()
}

/// The background: the colours of the grid, interpolated in integers.
fn background(knots: &[i64]) -> Vec<u8> {
    let step = SIDE / (KNOTS - 1);
    let mut pixels = Vec::with_capacity(3 * SIDE * SIDE);
    for i in 0..3 * SIDE * SIDE {
        let (channel, x, y) = (i % 3, i / 3 % SIDE, i / 3 / SIDE);
        let knot =
            |down: usize, across: usize| knots[((y / step + down) * KNOTS + x / step + across) * 3 + channel];
        let (right, below) = ((x % step) as i64, (y % step) as i64);
        let (left, above) = (step as i64 - right, step as i64 - below);
        let sum = above * (left * knot(0, 0) + right * knot(0, 1))
            + below * (left * knot(1, 0) + right * knot(1, 1));
        pixels.push((sum / (step * step) as i64) as u8);
    }
    pixels
}

/// A shape at a random position, and its pixels.
fn placed(draw: &mut Draw) -> (Thing, Vec<usize>) {
    let (shape, colour) = (draw.one_of(&Shape::ALL), draw.one_of(&Colour::ALL));
    // Uniform over octaves, so that small shapes are as frequent as large ones.
    let octave = draw.between(0, 2);
    let size = draw.between(SMALLEST << octave, (SMALLEST << (octave + 1)).min(LARGEST));
    let narrow = size.saturating_sub(draw.between(0, size / 4)).max(SMALLEST);
    let [width, height] = if draw.bits().is_multiple_of(2) { [size, narrow] } else { [narrow, size] };
    let left = draw.between(0, SIDE as u32 - width) as usize;
    let top = draw.between(0, SIDE as u32 - height) as usize;
    let mut mask = Vec::new();
    for y in 0..height {
        for x in 0..width {
            // The centre of the pixel in the coordinates of the shape, from -1 to 1.
            let [u, v] =
                [(x, width), (y, height)].map(|(at, size)| f64::from(2 * at + 1) / f64::from(size) - 1.0);
            if shape.has(u, v) {
                mask.push((top + y as usize) * SIDE + left + x as usize);
            }
        }
    }
    (Thing { shape, colour, bbox: around(&mask) }, mask)
}

/// The bounding box of pixels.
fn around(mask: &[usize]) -> [f64; 4] {
    let ends = |at: fn(usize) -> usize| {
        let (least, most) =
            mask.iter().fold((SIDE, 0), |(least, most), &pixel| (least.min(at(pixel)), most.max(at(pixel))));
        (least as f64, (most + 1 - least) as f64)
    };
    let ((left, width), (top, height)) = (ends(|pixel| pixel % SIDE), ends(|pixel| pixel / SIDE));
    [left, top, width, height]
}

/// At how many pixels each shape stays visible behind a new one with the pixels of `mask`.
fn left_visible(mask: &[usize], front: &[Option<u8>], visible: &[usize]) -> Vec<usize> {
    let mut visible = visible.to_vec();
    mask.iter().filter_map(|&pixel| front[pixel]).for_each(|shape| visible[usize::from(shape)] -= 1);
    visible
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenes_have_one_to_eight_shapes_inside_of_the_picture() {
        let mut counts = [0; MOST + 1];
        for seed in 0..300 {
            let scene = Scene::new(seed);
            counts[scene.things.len()] += 1;
            for Thing { bbox: [left, top, width, height], .. } in scene.things {
                assert!(left >= 0.0 && top >= 0.0 && left + width <= 128.0 && top + height <= 128.0);
                assert!(
                    (6.0..=64.0).contains(&width) && (6.0..=64.0).contains(&height),
                    "{width} × {height}"
                );
            }
        }
        assert_eq!(counts[0], 0);
        assert!(counts[1..].iter().all(|&count| count > 10), "{counts:?}");
    }

    #[test]
    fn a_seed_gives_the_same_picture_everywhere() {
        let sum = |seed| {
            let scene = Scene::new(seed);
            scene
                .picture
                .pixels()
                .iter()
                .fold(0u32, |sum, &byte| sum.wrapping_mul(31).wrapping_add(byte.into()))
        };
        assert_eq!([sum(0), sum(1), sum(u64::MAX)], [1_984_725_965, 4_122_975_401, 2_442_621_599]);
    }
}
