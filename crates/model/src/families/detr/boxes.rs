//! Boxes relative to the size of the picture, and the generalised intersection over union (GIoU) of two of them.

/// Centre, width and height as shares of the picture's width and height: `[x, y, width, height]`.
pub type LocatedBox = [f64; 4];

/// Left, top, right and bottom.
fn corners([x, y, width, height]: LocatedBox) -> [f64; 4] {
    [x - width / 2.0, y - height / 2.0, x + width / 2.0, y + height / 2.0]
}

/// `Σ |a - b|`
pub(super) fn distance(a: LocatedBox, b: LocatedBox) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum()
}

/// The generalised intersection over union, from -1 to 1: `I / U + U / H - 1`, with the areas of the intersection, of the union, and of
/// the smallest box around both.
pub(super) fn giou(a: LocatedBox, b: LocatedBox) -> f64 {
    giou_with_gradient(a, b).0
}

/// [`giou`] and its gradient for `a`.
pub(super) fn giou_with_gradient(a: LocatedBox, b: LocatedBox) -> (f64, LocatedBox) {
    let (a, b) = (corners(a), corners(b));
    let area = |c: [f64; 4]| (c[2] - c[0]) * (c[3] - c[1]);
    // The lengths of the intersection and of the hull along an axis.
    let shared = |i: usize| (a[i + 2].min(b[i + 2]) - a[i].max(b[i])).max(0.0);
    let around = |i: usize| a[i + 2].max(b[i + 2]) - a[i].min(b[i]);
    let (shared, around) = ([shared(0), shared(1)], [around(0), around(1)]);
    let least = f64::MIN_POSITIVE.sqrt();
    let intersection = shared[0] * shared[1];
    let union = (area(a) + area(b) - intersection).max(least);
    let hull = (around[0] * around[1]).max(least);
    let value = intersection / union + union / hull - 1.0;
    // The derivatives with respect to each area.
    let of_intersection = 1.0 / union + intersection / union.powi(2) - 1.0 / hull;
    let of_area = 1.0 / hull - intersection / union.powi(2);
    let of_hull = -union / hull.powi(2);
    let mut gradient = [0.0; 4];
    for i in [0, 1] {
        let other = 1 - i;
        let side = a[other + 2] - a[other];
        let meet = shared[i] > 0.0;
        // The derivatives with respect to the lower and to the upper end.
        let lower = -of_area * side
            - of_intersection * if meet && a[i] > b[i] { shared[other] } else { 0.0 }
            - of_hull * if a[i] < b[i] { around[other] } else { 0.0 };
        let upper = of_area * side
            + of_intersection * if meet && a[i + 2] < b[i + 2] { shared[other] } else { 0.0 }
            + of_hull * if a[i + 2] > b[i + 2] { around[other] } else { 0.0 };
        gradient[i] = lower + upper;
        gradient[i + 2] = (upper - lower) / 2.0;
    }
    (value, gradient)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_boxes_have_one_and_distant_boxes_have_less_than_zero() {
        let a = [0.5, 0.5, 0.2, 0.4];
        assert!((giou(a, a) - 1.0).abs() < 1e-12);
        // Two squares at opposite corners of a hull of nine times their size.
        let found = giou([0.5, 0.5, 1.0, 1.0], [2.5, 2.5, 1.0, 1.0]);
        assert!((found - (2.0 / 9.0 - 1.0)).abs() < 1e-12, "{found}");
        // The second box is half of the first.
        assert!((giou([0.5, 0.5, 1.0, 1.0], [0.25, 0.5, 0.5, 1.0]) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn gradients_match_differences() {
        let b = [0.4, 0.6, 0.3, 0.2];
        for a in [
            [0.47, 0.52, 0.2, 0.3],
            [0.4, 0.6, 0.1, 0.1],
            [0.41, 0.61, 0.5, 0.6],
            [0.8, 0.1, 0.1, 0.15],
            [0.43, 0.1, 0.1, 0.15],
        ] {
            let (_, gradient) = giou_with_gradient(a, b);
            for i in 0..4 {
                let moved = |by: f64| {
                    let mut a = a;
                    a[i] += by;
                    giou(a, b)
                };
                let expected = (moved(1e-6) - moved(-1e-6)) / 2e-6;
                assert!((gradient[i] - expected).abs() < 1e-6, "{a:?} {i}: {} {expected}", gradient[i]);
            }
        }
    }
}
