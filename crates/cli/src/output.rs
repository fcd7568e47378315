//! How results reach the terminal or the next program.

use crate::error::Error;
use attentive_model::checkpoint::Staged;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use std::fs::{self, File, OpenOptions};
use std::io::{Write, stdout};
use std::path::Path;

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

/// Lets `write` write a file. One that is there is replaced when all is written, and stays as it is if that fails; what is no plain
/// file, such as a named pipe or a device, is written to.
pub(crate) fn to_file(path: &Path, write: impl FnOnce(&mut File) -> Result<(), Error>) -> Result<(), Error> {
    if fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir()) {
        let failed = |source| attentive_model::Error::File { path: path.to_owned(), source };
        return write(&mut OpenOptions::new().write(true).open(path).map_err(failed)?);
    }
    Ok(Staged::with(path, write)?.commit()?)
}

/// Refuses a command whose two flags name the same file or folder, by whatever spelling or link.
pub(crate) fn must_differ(flags: [&str; 2], paths: [Option<&Path>; 2]) -> Result<(), Error> {
    let [Some(input), Some(output)] = paths else { return Ok(()) };
    if !is_same(input, output) {
        return Ok(());
    }
    let [read, written] = flags;
    Err(Error::Usage(format!(
        "{read} and {written} are both {}, which would be overwritten: name another for {written}",
        input.display()
    )))
}

/// Whether two paths lead to the same plain file or folder. Devices and pipes can be read and written at once.
fn is_same(a: &Path, b: &Path) -> bool {
    let (Ok(first), Ok(second)) = (fs::metadata(a), fs::metadata(b)) else { return false };
    if !(first.is_file() || first.is_dir()) {
        return false;
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        (first.dev(), first.ino()) == (second.dev(), second.ino())
    }
    #[cfg(not(unix))]
    {
        let _ = second;
        matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
    }
}

/// A bar on stderr for `steps` of something, silent if stderr is not a terminal.
pub(crate) fn progress(steps: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}");
    ProgressBar::new(steps as u64).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
