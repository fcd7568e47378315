//! Attention weights as a picture of characters: a row for each token that was written, a column for each token that it looked
//! at.
//!
//! Where there are colours, a cell's background tells its weight, on a dark plate whatever the terminal's own
//! background is; elsewhere blocks of four densities do. Weights of a tenth and more are written into their cells as
//! percent.

use attentive_generate::AttentionMatrix;

/// Weights with the tokens on both sides.
#[derive(Debug)]
pub(crate) struct Heatmap<'a> {
    /// What was written.
    pub rows: &'a [String],
    /// What was looked at.
    pub columns: &'a [String],
    /// How much.
    pub weights: &'a AttentionMatrix,
}

/// The least width of a cell: three digits and a little air.
const LEAST: usize = 6;
/// How much a cell may be widened where there is room.
const AIR: usize = 6;
/// The width of a cell where labels stand upright.
const NARROW: usize = 4;
/// Backgrounds from nothing to everything: numbers of the usual 256 colours, from a dark plate over green to yellow.
const BACKGROUNDS: [u8; 9] = [235, 236, 23, 29, 35, 71, 107, 149, 191];
/// From which place on the background is so bright that letters must be dark.
const BRIGHT: usize = 4;

impl Heatmap<'_> {
    /// The picture, at most `width` characters wide if its tokens allow it.
    pub(crate) fn draw(&self, width: usize, colours: bool) -> String {
        let margin = self.rows.iter().map(|row| length(row)).max().unwrap_or(0) + 2;
        let own: Vec<usize> = self.columns.iter().map(|column| (length(column) + 1).max(LEAST)).collect();
        let room = width.saturating_sub(margin);
        let needed: usize = own.iter().sum();
        if needed <= room {
            let air = ((room - needed) / self.columns.len().max(1)).min(AIR);
            let widths: Vec<usize> = own.iter().map(|own| own + air).collect();
            self.lying_labels(margin, &widths) + &self.cells(margin, &widths, colours)
        } else {
            let widths = vec![NARROW; self.columns.len()];
            self.upright_labels(margin) + &self.cells(margin, &widths, colours)
        }
    }

    fn lying_labels(&self, margin: usize, widths: &[usize]) -> String {
        let labels = self.columns.iter().zip(widths).map(|(column, width)| format!("{column:^width$}"));
        line(&format!("{:margin$}{}", "", labels.collect::<String>()))
    }

    /// One letter below the other, as low as they go.
    fn upright_labels(&self, margin: usize) -> String {
        let height = self.columns.iter().map(|column| length(column)).max().unwrap_or(0);
        let letter = |column: &String, row: usize| {
            let above = height - length(column);
            row.checked_sub(above).and_then(|place| column.chars().nth(place)).unwrap_or(' ')
        };
        let row = |row| {
            let letters = self.columns.iter().map(|column| format!("{:^NARROW$}", letter(column, row)));
            line(&format!("{:margin$}{}", "", letters.collect::<String>()))
        };
        (0..height).map(row).collect()
    }

    fn cells(&self, margin: usize, widths: &[usize], colours: bool) -> String {
        let row = |(number, label): (usize, &String)| {
            let weights = self.weights.row(number);
            let cells = weights.iter().zip(widths).map(|(weight, width)| cell(*weight, *width, colours));
            line(&format!("{label:>label_width$}  {}", cells.collect::<String>(), label_width = margin - 2))
        };
        self.rows.iter().enumerate().map(row).collect()
    }
}

fn cell(weight: f32, width: usize, colours: bool) -> String {
    let percent = (weight * 100.0).round();
    let text = if percent >= 10.0 { format!("{percent}") } else { String::new() };
    if colours {
        let place = ((weight * (BACKGROUNDS.len() - 1) as f32).round() as usize).min(BACKGROUNDS.len() - 1);
        let letters = if place >= BRIGHT { 16 } else { 252 };
        return format!("\x1b[48;5;{};38;5;{letters}m{text:^width$}\x1b[0m", BACKGROUNDS[place]);
    }
    let block = match percent {
        ..10.0 => ' ',
        10.0..30.0 => '░',
        30.0..55.0 => '▒',
        55.0..80.0 => '▓',
        _ => '█',
    };
    let text = if text.is_empty() || width < length(&text) + 2 { text } else { format!(" {text} ") };
    let rest = width - length(&text);
    let blocks = |count: usize| String::from(block).repeat(count);
    blocks(rest / 2) + &text + &blocks(rest - rest / 2)
}

fn line(text: &str) -> String {
    text.trim_end().to_owned() + "\n"
}

fn length(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(width: usize, colours: bool) -> String {
        let rows = ["ein", "und", "zwanzig"].map(str::to_owned);
        let columns = [">>de<<", "twenty", "-", "one"].map(str::to_owned);
        let weights = vec![0.02, 0.08, 0.1, 0.8, 0.05, 0.25, 0.6, 0.1, 0.0, 0.996, 0.004, 0.0];
        let weights = AttentionMatrix { keys: 4, weights, biased: false };
        Heatmap { rows: &rows, columns: &columns, weights: &weights }.draw(width, colours)
    }

    #[test]
    fn tokens_stand_beside_their_weights() {
        let expected = [
            "         >>de<< twenty   -    one",
            "    ein                ░ 10 ░█ 80 █",
            "    und         ░ 25 ░░▓ 60 ▓░ 10 ░",
            "zwanzig         █ 100 █",
        ];
        assert_eq!(draw(35, false).lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for width in [30, 35, 40, 80, 200] {
            for line in draw(width, false).lines() {
                assert!(length(line) <= width, "{width}: {line}");
            }
        }
        // Where there is room, cells are wider.
        let widest = |width| draw(width, false).lines().map(length).max();
        assert!(widest(200) > widest(40));
    }

    #[test]
    fn labels_stand_upright_where_they_do_not_fit() {
        let drawn = draw(30, false);
        let letters: Vec<String> = drawn.lines().take(6).map(|line| line.replace(' ', "")).collect();
        assert_eq!(letters, [">t", ">w", "de", "eno", "<tn", "<y-e"], "{drawn}");
    }

    #[test]
    fn colours_tell_the_same_and_end_with_their_cell() {
        let drawn = draw(80, true);
        assert_eq!(drawn.matches("\x1b[48;5;").count(), 12);
        assert_eq!(drawn.matches("\x1b[0m").count(), 12);
        let whole = drawn.split("\x1b[").find(|cell| cell.contains("100")).unwrap();
        assert!(whole.starts_with("48;5;191;38;5;16m"), "{whole}");
        assert!(!draw(80, false).contains('\x1b'));
    }
}
