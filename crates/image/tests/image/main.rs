//! Pictures.

mod boxes;
mod golden;
