//! Kinds of shapes and colours.

/// A kind of shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// An ellipse.
    Circle,
    /// A rectangle.
    Square,
    /// A triangle that stands on its base.
    Triangle,
    /// An ellipse with a hole.
    Ring,
    /// Two bars that cross.
    Cross,
    /// A square that stands on a corner.
    Diamond,
}

impl Shape {
    /// All of them: the classes of scenes, in order.
    pub const ALL: [Shape; 6] =
        [Shape::Circle, Shape::Square, Shape::Triangle, Shape::Ring, Shape::Cross, Shape::Diamond];

    /// Its name in English.
    pub fn name(self) -> &'static str {
        match self {
            Shape::Circle => "circle",
            Shape::Square => "square",
            Shape::Triangle => "triangle",
            Shape::Ring => "ring",
            Shape::Cross => "cross",
            Shape::Diamond => "diamond",
        }
    }

    /// Its number in [`Shape::ALL`].
    pub fn number(self) -> usize {
        self as usize
    }

    /// Whether the point is inside. `u` goes from -1 at the left to 1 at the right, `v` from -1 at the top to 1 at the bottom.
    pub(super) fn has(self, u: f64, v: f64) -> bool {
        let square = u * u + v * v;
        match self {
            Shape::Circle => square <= 1.0,
            Shape::Square => true,
            Shape::Triangle => 2.0 * u.abs() <= v + 1.0,
            Shape::Ring => (0.3..=1.0).contains(&square),
            Shape::Cross => u.abs() <= 0.34 || v.abs() <= 0.34,
            Shape::Diamond => u.abs() + v.abs() <= 1.0,
        }
    }
}

/// A colour that has a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// `#d02828`
    Red,
    /// `#28a83c`
    Green,
    /// `#2850d0`
    Blue,
    /// `#e6d228`
    Yellow,
    /// `#963cbe`
    Purple,
    /// `#f08c1e`
    Orange,
    /// `#f0f0f0`
    White,
    /// `#202020`
    Black,
}

impl Colour {
    /// All of them.
    pub const ALL: [Colour; 8] = [
        Colour::Red,
        Colour::Green,
        Colour::Blue,
        Colour::Yellow,
        Colour::Purple,
        Colour::Orange,
        Colour::White,
        Colour::Black,
    ];

    /// Its name in English.
    pub fn name(self) -> &'static str {
        match self {
            Colour::Red => "red",
            Colour::Green => "green",
            Colour::Blue => "blue",
            Colour::Yellow => "yellow",
            Colour::Purple => "purple",
            Colour::Orange => "orange",
            Colour::White => "white",
            Colour::Black => "black",
        }
    }

    /// Red, green and blue of a similar colour: `by` gives the difference of each of them.
    pub(super) fn near(self, by: &mut dyn FnMut() -> i32) -> [u8; 3] {
        let exact: [i32; 3] = match self {
            Colour::Red => [208, 40, 40],
            Colour::Green => [40, 168, 60],
            Colour::Blue => [40, 80, 208],
            Colour::Yellow => [230, 210, 40],
            Colour::Purple => [150, 60, 190],
            Colour::Orange => [240, 140, 30],
            Colour::White => [240, 240, 240],
            Colour::Black => [32, 32, 32],
        };
        exact.map(|part| (part + by()).clamp(0, 255) as u8)
    }
}
