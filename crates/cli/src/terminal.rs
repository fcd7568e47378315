//! What the terminal can show, if results go to one.

use std::env::var_os;
use std::io::{IsTerminal, stdout};

/// The width of a line if the terminal does not report one.
const USUAL_WIDTH: usize = 80;

/// How many characters a line of stdout has.
pub(crate) fn width() -> usize {
    let told = || var_os("COLUMNS")?.to_str()?.parse().ok().filter(|&width| width > 0);
    let size = terminal_size::terminal_size_of(stdout());
    size.map(|(width, _)| width.0.into()).or_else(told).unwrap_or(USUAL_WIDTH)
}

/// Whether stdout shows colours and the person wants to see them (<https://no-color.org>).
pub(crate) fn colours() -> bool {
    colours_on(&stdout())
}

/// The same of a stream.
pub(crate) fn colours_on(stream: &impl IsTerminal) -> bool {
    let refused = var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = var_os("TERM").is_none_or(|term| term == "dumb");
    stream.is_terminal() && !refused && !dumb
}
