//! Pictures: files to pixels, and pixels to the input of a model.
//!
//! ```text
//! file ──decode──► Picture ──Processor──► Pixels
//!                     │
//!                     └──encode──► PNG
//! ```
//!
//! A [`Picture`] has three bytes for each pixel: red, green and blue. [`Picture::open`] reads PNG, JPEG and WebP. A [`Processor`] resizes,
//! crops and normalises pictures as `preprocessor_config.json` of a model folder says.
#![forbid(unsafe_code)]

mod blur;
pub mod boxes;
mod colour;
mod decode;
mod draw;
mod encode;
mod error;
mod picture;
mod processor;
mod resize;

pub use decode::MOST_PIXELS;
pub use draw::colour_of;
pub use error::{Error, Fault, Problem};
pub use picture::Picture;
pub use processor::{Pixels, Processor, Size};
pub use resize::{Filter, Region};
