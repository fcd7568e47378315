//! Windows over pictures: what convolution and pooling read.
//!
//! A batch of pictures is packed: a row of channels for each pixel, line after line, picture after picture, `[pixels, channels]`. A
//! window of `kernel` pixels moves over a picture, and its place `(u, v)` begins at the pixel `(u, v) · stride - padding`. Beyond the
//! edges there is nothing: zeros for a convolution, less than any number for a maximum.
//!
//! ```text
//! unfold:    y[place] = x of the pixels of the window, one after the other      [places, kernel · channels]
//! fold:      dx[pixel] = Σ dy over the places whose window has the pixel
//! max_pool:  y[place][c] = max x[pixel][c] over the pixels of the window        [places, channels]
//! ```
//!
//! A convolution is a product with unfolded pixels. Pixels of one line of a window are neighbours in memory, so that unfolding copies
//! a line of the window at a time. Going back, a task has a line of a picture and adds up what belongs to it, always in the same order.

use crate::isa::Kernel;
use crate::pass::rows_of;
use crate::scratch::Scratch;
use crate::simd::{Simd, for_vectors, load, store};
use crate::threads::Shared;
use crate::{Cpu, Real};
use std::ops::Range;

/// A window and how it moves; heights come before widths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// How many pixels it has.
    pub kernel: [usize; 2],
    /// How many pixels lie between a place and the next.
    pub stride: [usize; 2],
    /// How many pixels it reaches beyond each edge.
    pub padding: [usize; 2],
}

impl Window {
    /// A square window of odd size that keeps the size of a picture, or divides it by `stride`.
    pub fn square(size: usize, stride: usize) -> Window {
        Window { kernel: [size; 2], stride: [stride; 2], padding: [size / 2; 2] }
    }

    /// How many places it has in a picture of this height and width.
    pub fn places(&self, size: [usize; 2]) -> [usize; 2] {
        [0, 1].map(|axis| {
            let room = (size[axis] + 2 * self.padding[axis]).checked_sub(self.kernel[axis]);
            room.map_or(0, |room| room / self.stride[axis] + 1)
        })
    }

    /// Whether each place is one pixel, in order: then nothing has to be unfolded.
    pub fn is_pixel(&self) -> bool {
        *self == Window::square(1, 1)
    }

    /// How many pixels it has.
    pub fn pixels(&self) -> usize {
        self.kernel[0] * self.kernel[1]
    }

    /// The part of the window's axis that is inside of a picture of this size, at this place; and the first pixel of that.
    #[inline(always)]
    fn inside(&self, axis: usize, place: usize, size: usize) -> (Range<usize>, usize) {
        let begin = place * self.stride[axis];
        let skipped = self.padding[axis].saturating_sub(begin);
        let end = (size + self.padding[axis]).saturating_sub(begin).min(self.kernel[axis]);
        (skipped.min(end)..end, (begin + skipped).saturating_sub(self.padding[axis]))
    }

    /// The places along an axis whose window has this pixel, of so many.
    #[inline(always)]
    fn around(&self, axis: usize, pixel: usize, places: usize) -> Range<usize> {
        let (stride, reach) = (self.stride[axis], pixel + self.padding[axis]);
        let first = (reach + 1).saturating_sub(self.kernel[axis]).div_ceil(stride);
        first..(reach / stride + 1).min(places).max(first)
    }
}

/// A line of a picture, and where its picture lies.
struct Line {
    /// Height and width of the picture.
    size: [usize; 2],
    /// The places of the window in it.
    places: [usize; 2],
    /// Its first pixel, and its first place, among those of all pictures.
    pixel: usize,
    place: usize,
    /// The line in the picture.
    line: usize,
}

/// The lines of all pictures: those of pixels, or those of places.
fn lines(window: &Window, sizes: &[[usize; 2]], of_places: bool) -> Vec<Line> {
    let (mut pixel, mut place, mut all) = (0, 0, Vec::new());
    for &size in sizes {
        let places = window.places(size);
        let count = if of_places { places[0] } else { size[0] };
        all.extend((0..count).map(|line| Line { size, places, pixel, place, line }));
        pixel += size[0] * size[1];
        place += places[0] * places[1];
    }
    all
}

#[track_caller]
fn check(op: &str, window: &Window, sizes: &[[usize; 2]], pixels: usize, places: usize) {
    let reaches = (0..2).all(|i| window.padding[i] < window.kernel[i] && window.stride[i] > 0);
    assert!(reaches, "{op}: {window:?} has places without a pixel");
    let count = |[height, width]: [usize; 2]| height * width;
    let expected: usize = sizes.iter().copied().map(count).sum();
    assert!(expected == pixels, "{op}: {pixels} pixels for pictures of {expected}");
    let expected: usize = sizes.iter().map(|&size| count(window.places(size))).sum();
    assert!(expected == places, "{op}: {places} places, but {window:?} has {expected}");
}

/// `x: [pixels, channels]` to `y: [places, kernel · channels]`.
pub fn unfold<T: Real>(
    cpu: &Cpu,
    window: &Window,
    sizes: &[[usize; 2]],
    channels: usize,
    x: &[T],
    y: &mut [T],
) {
    let width = window.pixels() * channels;
    check("unfold", window, sizes, rows_of("unfold", x, channels), rows_of("unfold", y, width));
    let (lines, y) = (lines(window, sizes, true), Shared::new(y));
    cpu.threads.run(lines.len(), |task| {
        let Line { size, places, pixel, place, line } = lines[task];
        let first = place + line * places[1];
        // Safety: each line of places belongs to one task.
        let y = unsafe { y.slice(first * width, places[1] * width) };
        let (rows, top) = window.inside(0, line, size[0]);
        for (place, y) in y.chunks_exact_mut(width).enumerate() {
            let (columns, left) = window.inside(1, place, size[1]);
            let copied = columns.len() * channels;
            if rows.len() * columns.len() < window.pixels() {
                y.fill(T::from_f32(0.0));
            }
            for (i, row) in rows.clone().enumerate() {
                let from = (pixel + (top + i) * size[1] + left) * channels;
                let to = (row * window.kernel[1] + columns.start) * channels;
                y[to..to + copied].copy_from_slice(&x[from..from + copied]);
            }
        }
    });
}

/// The gradient of [`unfold`]: `dy: [places, kernel · channels]` to `dx: [pixels, channels]`.
pub fn fold<T: Real>(
    cpu: &Cpu,
    window: &Window,
    sizes: &[[usize; 2]],
    channels: usize,
    dy: &[T],
    dx: &mut [T],
) {
    let width = window.pixels() * channels;
    check("fold", window, sizes, rows_of("fold", dx, channels), rows_of("fold", dy, width));
    let (lines, dx) = (lines(window, sizes, false), Shared::new(dx));
    cpu.threads.run(lines.len(), |task| {
        let line = &lines[task];
        let first = (line.pixel + line.line * line.size[1]) * channels;
        // Safety: each line of pixels belongs to one task.
        let dx = unsafe { dx.slice(first, line.size[1] * channels) };
        cpu.isa.dispatch(Fold { window: *window, line, channels, dy, dx });
    });
}

struct Fold<'a, T> {
    window: Window,
    line: &'a Line,
    channels: usize,
    dy: &'a [T],
    dx: &'a mut [T],
}

impl<T: Real> Kernel for Fold<'_, T> {
    type Output = ();
    const GAINS_FROM_AVX512: bool = false;
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Fold { window, channels, .. } = self;
        let Line { size, places, place, line, .. } = *self.line;
        let mut sums = Scratch::<f32>::take(self.dx.len());
        sums.fill(0.0);
        for above in window.around(0, line, places[0]) {
            // Which line of the window lies on this one.
            let row = line + window.padding[0] - above * window.stride[0];
            for beside in 0..places[1] {
                let (columns, left) = window.inside(1, beside, size[1]);
                let at = (place + above * places[1] + beside) * window.pixels();
                let from = (at + row * window.kernel[1] + columns.start) * channels;
                let len = columns.len() * channels;
                let (dy, sums) = (&self.dy[from..from + len], &mut sums[left * channels..][..len]);
                for_vectors(
                    s,
                    len,
                    #[inline(always)]
                    |at, n| {
                        let sum = s.add(load(s, sums, at, n), load(s, dy, at, n));
                        store(s, sums, at, n, sum);
                    },
                );
            }
        }
        for_vectors(
            s,
            self.dx.len(),
            #[inline(always)]
            |at, n| store(s, self.dx, at, n, load(s, &sums, at, n)),
        );
    }
}

/// The maximum of each channel in each window: `x: [pixels, channels]` to `y: [places, channels]`, and the pixel that each comes
/// from, the first of several, counted among those of all pictures.
pub fn max_pool<T: Real>(
    cpu: &Cpu,
    window: &Window,
    sizes: &[[usize; 2]],
    channels: usize,
    x: &[T],
    y: &mut [T],
    from: &mut [i32],
) {
    check("max_pool", window, sizes, rows_of("max_pool", x, channels), rows_of("max_pool", y, channels));
    assert!(y.len() == from.len(), "max_pool: {} maxima come from {} pixels", y.len(), from.len());
    let (lines, y, from) = (lines(window, sizes, true), Shared::new(y), Shared::new(from));
    cpu.threads.run(lines.len(), |task| {
        let line = &lines[task];
        let (first, len) = ((line.place + line.line * line.places[1]) * channels, line.places[1] * channels);
        // Safety: each line of places belongs to one task.
        let (y, from) = unsafe { (y.slice(first, len), from.slice(first, len)) };
        cpu.isa.dispatch(MaxPool { window: *window, line, channels, x, y, from });
    });
}

struct MaxPool<'a, T> {
    window: Window,
    line: &'a Line,
    channels: usize,
    x: &'a [T],
    y: &'a mut [T],
    from: &'a mut [i32],
}

impl<T: Real> Kernel for MaxPool<'_, T> {
    type Output = ();
    const GAINS_FROM_AVX512: bool = false;
    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let MaxPool { window, channels, x, .. } = self;
        let Line { size, pixel, line, .. } = *self.line;
        let (rows, top) = window.inside(0, line, size[0]);
        let places = self.y.chunks_exact_mut(channels).zip(self.from.chunks_exact_mut(channels));
        for (place, (y, from)) in places.enumerate() {
            let (columns, left) = window.inside(1, place, size[1]);
            // Before the first pixel, there is a maximum that every number passes.
            y.fill(T::from_f32(f32::NEG_INFINITY));
            from.fill(-1);
            for i in 0..rows.len() {
                for j in 0..columns.len() {
                    let at = pixel + (top + i) * size[1] + left + j;
                    let x = &x[at * channels..(at + 1) * channels];
                    for ((y, from), &x) in y.iter_mut().zip(from.iter_mut()).zip(x) {
                        let passes = x.to_f32() > y.to_f32() || *from < 0;
                        *y = if passes { x } else { *y };
                        *from = if passes { at as i32 } else { *from };
                    }
                }
            }
        }
    }
}

/// The gradient of [`max_pool`]: `dy: [places, channels]` goes to the pixels that the maxima come from, `dx: [pixels, channels]`.
pub fn max_pool_backward<T: Real>(
    cpu: &Cpu,
    window: &Window,
    sizes: &[[usize; 2]],
    channels: usize,
    from: &[i32],
    dy: &[T],
    dx: &mut [T],
) {
    const OP: &str = "max_pool_backward";
    check(OP, window, sizes, rows_of(OP, dx, channels), rows_of(OP, dy, channels));
    assert!(dy.len() == from.len(), "{OP}: {} gradients for {} pixels", dy.len(), from.len());
    let (lines, dx) = (lines(window, sizes, false), Shared::new(dx));
    cpu.threads.run(lines.len(), |task| {
        let line = &lines[task];
        let first = (line.pixel + line.line * line.size[1]) * channels;
        // Safety: each line of pixels belongs to one task.
        let dx = unsafe { dx.slice(first, line.size[1] * channels) };
        cpu.isa.dispatch(MaxPoolBackward { window: *window, line, channels, from, dy, dx });
    });
}

struct MaxPoolBackward<'a, T> {
    window: Window,
    line: &'a Line,
    channels: usize,
    from: &'a [i32],
    dy: &'a [T],
    dx: &'a mut [T],
}

impl<T: Real> Kernel for MaxPoolBackward<'_, T> {
    type Output = ();
    const GAINS_FROM_AVX512: bool = false;
    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let MaxPoolBackward { window, channels, .. } = self;
        let Line { size, places, pixel, place, line } = *self.line;
        let mut sums = Scratch::<f32>::take(channels);
        for (column, dx) in self.dx.chunks_exact_mut(channels).enumerate() {
            let here = (pixel + line * size[1] + column) as i32;
            sums.fill(0.0);
            for above in window.around(0, line, places[0]) {
                for beside in window.around(1, column, places[1]) {
                    let at = (place + above * places[1] + beside) * channels;
                    let gradients = self.from[at..at + channels].iter().zip(&self.dy[at..at + channels]);
                    for (sum, (&from, dy)) in sums.iter_mut().zip(gradients) {
                        *sum += if from == here { dy.to_f32() } else { 0.0 };
                    }
                }
            }
            dx.iter_mut().zip(sums.iter()).for_each(|(dx, &sum)| *dx = T::from_f32(sum));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{check, normals, wide, written};
    use half::bf16;

    const SIZES: [[usize; 2]; 4] = [[5, 7], [1, 1], [0, 3], [8, 3]];

    fn windows() -> [Window; 5] {
        [
            Window::square(1, 1),
            Window::square(1, 2),
            Window::square(3, 1),
            Window::square(7, 2),
            Window { kernel: [2, 3], stride: [2, 1], padding: [0, 1] },
        ]
    }

    /// For each place, the pixel that lies under each pixel of its window, if there is one.
    fn plain(window: &Window) -> Vec<Vec<Option<usize>>> {
        let (mut all, mut first) = (Vec::new(), 0);
        for size in SIZES {
            let places = window.places(size);
            for (u, v) in (0..places[0]).flat_map(|u| (0..places[1]).map(move |v| (u, v))) {
                let under = |k: usize| {
                    let at = |axis: usize, place: usize, offset: usize| {
                        let at = (place * window.stride[axis] + offset).checked_sub(window.padding[axis])?;
                        (at < size[axis]).then_some(at)
                    };
                    let (row, column) = (at(0, u, k / window.kernel[1])?, at(1, v, k % window.kernel[1])?);
                    Some(first + row * size[1] + column)
                };
                all.push((0..window.pixels()).map(under).collect());
            }
            first += size[0] * size[1];
        }
        all
    }

    fn pixels() -> usize {
        SIZES.iter().map(|[height, width]| height * width).sum()
    }

    fn unfolds_and_folds<T: Real>(channels: usize) {
        for window in windows() {
            let (under, width) = (plain(&window), window.pixels() * channels);
            let (x, dy) = (normals::<T>(1, pixels() * channels), normals::<T>(2, under.len() * width));
            let (wide_x, wide_dy) = (wide(&x), wide(&dy));
            let (mut y, mut dx) = (vec![0.0; under.len() * width], vec![0.0; x.len()]);
            for (place, under) in under.iter().enumerate() {
                for (k, pixel) in under.iter().enumerate() {
                    for (c, pixel) in pixel.iter().flat_map(|pixel| (0..channels).map(move |c| (c, pixel))) {
                        y[place * width + k * channels + c] = wide_x[pixel * channels + c];
                        dx[pixel * channels + c] += wide_dy[place * width + k * channels + c];
                    }
                }
            }
            check(&y, 0.0, |cpu| written(y.len(), |y| unfold(cpu, &window, &SIZES, channels, &x, y)));
            check(&dx, 1e-6, |cpu| written(dx.len(), |dx| fold(cpu, &window, &SIZES, channels, &dy, dx)));
        }
    }

    #[test]
    fn windows_are_unfolded_and_folded_as_their_places_say() {
        unfolds_and_folds::<f32>(3);
        unfolds_and_folds::<bf16>(70);
    }

    fn pools<T: Real>(channels: usize) {
        for window in windows() {
            let under = plain(&window);
            // Few different numbers, so that some maxima are there several times.
            let few: Vec<f32> =
                wide(&normals::<T>(1, pixels() * channels)).iter().map(|x| x.round() as f32).collect();
            let x: Vec<T> = few.iter().map(|&x| T::from_f32(x)).collect();
            let dy = normals::<T>(2, under.len() * channels);
            let (mut y, mut from, mut dx) = (Vec::new(), Vec::new(), vec![0.0; x.len()]);
            for (place, under) in under.iter().enumerate() {
                for c in 0..channels {
                    let best = under.iter().flatten().fold(None, |best: Option<usize>, &pixel| {
                        let passes = |best: usize| few[pixel * channels + c] > few[best * channels + c];
                        if best.is_none_or(passes) { Some(pixel) } else { best }
                    });
                    let best = best.unwrap();
                    y.push(f64::from(few[best * channels + c]));
                    from.push(best as i32);
                    dx[best * channels + c] += wide(&dy)[place * channels + c];
                }
            }
            check(&y, 0.0, |cpu| {
                let mut found = vec![0; y.len()];
                let y = written(y.len(), |y| max_pool(cpu, &window, &SIZES, channels, &x, y, &mut found));
                assert_eq!(found, from);
                y
            });
            check(&dx, 1e-6, |cpu| {
                written(dx.len(), |dx| max_pool_backward(cpu, &window, &SIZES, channels, &from, &dy, dx))
            });
        }
    }

    #[test]
    fn the_first_of_the_greatest_is_the_maximum_and_gets_the_gradient() {
        pools::<f32>(3);
        pools::<bf16>(33);
    }

    #[test]
    #[should_panic(expected = "unfold: 4 pixels for pictures of 6")]
    fn pixels_that_are_not_those_of_the_pictures_are_refused() {
        let cpu = crate::testing::cpus().next().unwrap();
        unfold(&cpu, &Window::square(1, 1), &[[2, 3]], 1, &[0.0; 4], &mut [0.0; 4]);
    }
}
