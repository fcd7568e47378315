//! The tests of pictures, as one program.

mod boxes;
mod golden;
