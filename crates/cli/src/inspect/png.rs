//! Pictures in pixels.

use crate::error::Error;
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree};

/// How many pixels a unit of a picture has: enough for print.
const SCALE: f32 = 2.0;
/// The longest side in pixels.
const LONGEST: f32 = 8_000.0;

/// Draws a picture. Letters come from the fonts of the system; for those that it lacks there is a font in the program.
pub(super) fn from_svg(svg: &str) -> Result<Vec<u8>, Error> {
    let failed =
        |problem: &dyn std::fmt::Display| Error::Inspect(format!("the picture cannot be drawn: {problem}"));
    let mut options = Options::default();
    let fonts = options.fontdb_mut();
    fonts.load_font_data(include_bytes!("../../font/DejaVuSans-Latin.ttf").to_vec());
    fonts.load_system_fonts();
    fonts.set_sans_serif_family("DejaVu Sans");
    let tree = Tree::from_str(svg, &options).map_err(|error| failed(&error))?;
    let size = tree.size();
    let scale = SCALE.min(LONGEST / size.width().max(size.height()));
    let [width, height] = [size.width(), size.height()].map(|side| (side * scale).ceil() as u32);
    let mut pixels = Pixmap::new(width, height).ok_or_else(|| failed(&"it is too large"))?;
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixels.as_mut());
    pixels.encode_png().map_err(|error| failed(&error))
}
