//! Rectangles of matrices, for concatenating and slicing.
//!
//! `y[to + i] = x[from + i]`, or `+=`, for all positions `i` of a rectangle. Each element is changed once, so no order matters.

use crate::isa::Kernel;
use crate::pass::{rows_of, rows_per_piece};
use crate::simd::{Simd, for_vectors, load, store};
use crate::threads::Shared;
use crate::{Cpu, Real};

/// A rectangle of a matrix, and a rectangle of the same size in another: rows and columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rectangle {
    /// Its first row and column in the matrix that is read.
    pub from: [usize; 2],
    /// Its first row and column in the matrix that is written.
    pub to: [usize; 2],
    /// Its rows and columns.
    pub size: [usize; 2],
}

impl Rectangle {
    /// The rectangle in the other direction, as a gradient needs it.
    pub fn back(self) -> Rectangle {
        Rectangle { from: self.to, to: self.from, size: self.size }
    }

    fn check(&self, corner: [usize; 2], [rows, cols]: [usize; 2]) {
        let end = |i: usize| corner[i].checked_add(self.size[i]);
        assert!(
            end(0).is_some_and(|end| end <= rows) && end(1).is_some_and(|end| end <= cols),
            "rectangle: {self:?} is not inside of [{rows}, {cols}]"
        );
    }
}

/// Copies a rectangle of `x`, whose rows are `x_cols` wide, to `y`, or adds it to what is there.
pub fn rectangle<T: Real>(
    cpu: &Cpu,
    place: Rectangle,
    (x, x_cols): (&[T], usize),
    (y, y_cols): (&mut [T], usize),
    add: bool,
) {
    let Rectangle { from, to, size: [rows, cols] } = place;
    place.check(from, [rows_of("rectangle", x, x_cols), x_cols]);
    place.check(to, [rows_of("rectangle", y, y_cols), y_cols]);
    if cols == 0 {
        return;
    }
    let (together, y) = (rows_per_piece(cols), Shared::new(y));
    cpu.threads.run(rows.div_ceil(together), |task| {
        let rows = task * together..rows.min((task + 1) * together);
        let row = |i: usize| {
            let x = &x[(from[0] + i) * x_cols + from[1]..][..cols];
            // Safety: rows belong to one task each.
            (x, unsafe { y.slice((to[0] + i) * y_cols + to[1], cols) })
        };
        for (x, y) in rows.map(row) {
            if add {
                cpu.isa.dispatch(Add { x, y });
            } else {
                y.copy_from_slice(x);
            }
        }
    });
}

struct Add<'a, T> {
    x: &'a [T],
    y: &'a mut [T],
}

impl<T: Real> Kernel for Add<'_, T> {
    type Output = ();
    const GAINS_FROM_AVX512: bool = false;
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        for_vectors(
            s,
            self.y.len(),
            #[inline(always)]
            |at, n| store(s, self.y, at, n, s.add(load(s, self.y, at, n), load(s, self.x, at, n))),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{check, normals, wide};
    use half::bf16;

    #[test]
    fn rectangles_land_in_their_place_and_touch_nothing_else() {
        fn test<T: Real>() {
            let cases = [
                ([5, 7], [9, 4], Rectangle { from: [1, 2], to: [3, 0], size: [4, 3] }),
                ([1, 1], [1, 1], Rectangle { from: [0, 0], to: [0, 0], size: [1, 1] }),
                ([300, 97], [301, 90], Rectangle { from: [0, 33], to: [1, 20], size: [300, 64] }),
                ([3, 4], [2, 2], Rectangle { from: [3, 3], to: [0, 1], size: [0, 1] }),
                ([3, 4], [2, 2], Rectangle { from: [3, 4], to: [2, 2], size: [0, 0] }),
            ];
            for ([x_rows, x_cols], [y_rows, y_cols], place) in cases {
                let (x, y) = (normals::<T>(1, x_rows * x_cols), normals::<T>(2, y_rows * y_cols));
                for add in [false, true] {
                    let mut expected = wide(&y);
                    for (i, j) in (0..place.size[0]).flat_map(|i| (0..place.size[1]).map(move |j| (i, j))) {
                        let to = &mut expected[(place.to[0] + i) * y_cols + place.to[1] + j];
                        let from = wide(&x)[(place.from[0] + i) * x_cols + place.from[1] + j];
                        *to = if add { *to + from } else { from };
                    }
                    check(&expected, 1e-6, |cpu| {
                        let mut y = y.clone();
                        rectangle(cpu, place, (&x, x_cols), (&mut y, y_cols), add);
                        y
                    });
                }
            }
        }
        test::<f32>();
        test::<bf16>();
    }

    #[test]
    #[should_panic(expected = "is not inside of [2, 3]")]
    fn a_rectangle_past_the_end_is_refused() {
        let cpu = crate::testing::cpus().next().unwrap();
        let place = Rectangle { from: [1, 1], to: [0, 0], size: [1, 3] };
        rectangle(&cpu, place, (&[0.0; 6], 3), (&mut [0.0; 6], 6), false);
    }
}
