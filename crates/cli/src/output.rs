//! How results reach the terminal or the next program.

use crate::error::Error;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use std::io::{Write, stdout};

/// Writes a result as one line of JSON.
pub(crate) fn json(result: &impl Serialize) -> Result<(), Error> {
    write(&format!("{}\n", serde_json::to_string(result)?))
}

/// Writes rows as columns, of which the first `left` hold words and the others numbers.
pub(crate) fn table<const COLUMNS: usize>(rows: &[[String; COLUMNS]], left: usize) -> Result<(), Error> {
    let mut widths = [0; COLUMNS];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(widths).enumerate().map(|(column, (cell, width))| {
            if column < left { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    write(&text)
}

/// Writes text. `println!` panics where the reader has gone away; this says so.
pub(crate) fn write(text: &str) -> Result<(), Error> {
    let mut out = stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// A number with commas between its thousands.
pub(crate) fn thousands(number: impl Into<u64>) -> String {
    let digits = number.into().to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A bar on stderr for `steps` of something, silent where nobody watches a terminal.
pub(crate) fn progress(steps: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}");
    ProgressBar::new(steps as u64).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_have_commas() {
        assert_eq!([0u32, 999, 1000, 1_234_567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
    }
}
