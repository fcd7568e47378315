//! A picture as characters: where there are colours, two pixels in each (`▀` with a colour for each half); elsewhere blocks of four
//! densities, with frames of lines.

use attentive_image::{Filter, Picture, Problem};

/// A frame around a part of a picture: `[left, top, width, height]` in its pixels, and a colour.
pub(crate) type Frame = ([f64; 4], [u8; 3]);

/// The most characters in a line.
const WIDEST: usize = 72;

/// A picture in lines of at most `width` characters.
pub(crate) fn draw(
    picture: &Picture,
    frames: &[Frame],
    width: usize,
    colours: bool,
) -> Result<String, Problem> {
    let columns = width.clamp(1, WIDEST);
    let lines = (columns * picture.height() / picture.width()).div_ceil(2).max(1);
    let mut small = picture.resized(columns, 2 * lines, Filter::Bilinear)?;
    let share = [columns as f64 / picture.width() as f64, 2.0 * lines as f64 / picture.height() as f64];
    let scaled = frames.iter().map(|&([left, top, width, height], colour)| {
        ([left * share[0], top * share[1], width * share[0], height * share[1]], colour)
    });
    if colours {
        scaled.for_each(|(bbox, colour)| small.frame(bbox, colour, ""));
        return Ok(halves(&small));
    }
    let mut cells = densities(&small);
    scaled.for_each(|(bbox, _)| outline(&mut cells, bbox));
    Ok(cells
        .into_iter()
        .map(|line| line.into_iter().collect::<String>().trim_end().to_owned() + "\n")
        .collect())
}

/// Two rows of pixels a line.
fn halves(picture: &Picture) -> String {
    let mut text = String::new();
    for y in (0..picture.height()).step_by(2) {
        for x in 0..picture.width() {
            let [[r, g, b], [red, green, blue]] = [picture.pixel(x, y), picture.pixel(x, y + 1)];
            text.push_str(&format!("\x1b[38;2;{r};{g};{b};48;2;{red};{green};{blue}m▀"));
        }
        text.push_str("\x1b[0m\n");
    }
    text
}

/// The brightness of two pixels above each other as a block.
fn densities(picture: &Picture) -> Vec<Vec<char>> {
    let bright = |x: usize, y: usize| -> usize {
        let [red, green, blue] = picture.pixel(x, y).map(usize::from);
        // The luma of ITU-R BT.601, in thousandths.
        299 * red + 587 * green + 114 * blue
    };
    let block =
        |x: usize, y: usize| [' ', '░', '▒', '▓', '█'][(bright(x, y) + bright(x, y + 1)) * 5 / (2 * 255_001)];
    let lines = (0..picture.height()).step_by(2);
    lines.map(|y| (0..picture.width()).map(|x| block(x, y)).collect()).collect()
}

/// Lines around a box, as far as it is inside.
fn outline(cells: &mut [Vec<char>], [left, top, width, height]: [f64; 4]) {
    let columns = cells.first().map_or(0, Vec::len);
    let place = |at: f64, end: usize| at.round().clamp(0.0, end.saturating_sub(1) as f64) as usize;
    let [left, right] = [left, left + width - 1.0].map(|x| place(x, columns));
    let [top, bottom] = [top / 2.0, (top + height) / 2.0 - 1.0].map(|y| place(y, cells.len()));
    for y in top..=bottom.max(top) {
        for x in left..=right.max(left) {
            let line = match (y == top || y == bottom, x == left || x == right) {
                (true, true) => '+',
                (true, false) => '-',
                (false, true) => '|',
                (false, false) => continue,
            };
            cells[y][x] = line;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_pixels_are_a_character_and_each_line_ends_its_colours() {
        let picture = Picture::new(1, 2, vec![1, 2, 3, 4, 5, 6]);
        assert_eq!(draw(&picture, &[], 1, true).unwrap(), "\x1b[38;2;1;2;3;48;2;4;5;6m▀\x1b[0m\n");
        let drawn =
            draw(&Picture::filled(40, 40, [9; 3]), &[([0.0, 0.0, 40.0, 40.0], [7; 3])], 20, true).unwrap();
        assert_eq!((drawn.lines().count(), drawn.matches('▀').count()), (10, 200));
        assert_eq!(drawn.matches("38;2;7;7;7").count(), 20 + 2 * 9);
    }

    #[test]
    fn without_colours_frames_are_lines() {
        let black = Picture::filled(24, 24, [0; 3]);
        let drawn = draw(&black, &[([4.0, 4.0, 12.0, 12.0], [7; 3])], 12, false).unwrap();
        assert_eq!(drawn, "\n  +----+\n  |    |\n  +----+\n\n\n");
        let white = draw(&Picture::filled(3, 3, [255; 3]), &[], 4, false).unwrap();
        assert_eq!(white, "████\n████\n");
        // Whatever a model says is drawn somewhere, or not at all.
        draw(&black, &[([-1e9, f64::NAN, 1e12, -3.0], [7; 3])], 500, false).unwrap();
        draw(&black, &[([-1e9, f64::NAN, 1e12, -3.0], [7; 3])], 500, true).unwrap();
    }
}
