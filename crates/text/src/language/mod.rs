//! Languages: what they are called, and which one a text is in.

mod codes;
mod detect;

pub use codes::{means, name, parts, script_name, short};
pub use detect::{Detected, detect, detect_among};
