//! What is learned from: pairs of sentences from files, in batches for training, and texts with labels.
//!
//! ```text
//! files ─► index of lines ─► shuffled numbers ─► window of pairs ─► tokens ─► by length ─► batches
//! ```
//!
//! [`Corpus::open`] reads every file once, to check it and to note where its lines begin; the text stays on
//! the disk. [`Corpus::batches`] then shuffles the numbers of the pairs anew for each epoch and goes through
//! them in windows: it reads and encodes the pairs of a window, puts pairs of like length together in
//! batches, and shuffles these. Ten million pairs need eight bytes for each line and four for each number,
//! and the first batch is there as soon as one window has been encoded. The next window is prepared by
//! another thread while the batches of this one are used.
//!
//! Everything follows from the seed: the same files and settings give the same batches, and a saved
//! [`Position`] goes on with exactly the batches that would have come next.
//!
//! Texts with labels and sentences with tags are smaller things, and are read whole: see [`labelled`]. Pictures with labels stay on the
//! disk until they are needed (`pictures`).

mod batches;
mod encode;
mod error;
mod example;
mod fields;
mod files;
mod filter;
mod held_out;
pub mod labelled;
mod moving;
mod pairs;
pub(crate) mod pictures;
mod sentences;
mod shuffle;
mod text_file;
mod travel;
mod unpack;
mod windows;

pub use batches::{Batches, Position};
pub use encode::{Encode, Encoded, EncodedPairs};
pub use error::Error;
pub(crate) use example::InMemory;
pub use example::{Example, ExampleBatch, ExamplePicture, Examples};
pub use fields::FieldNames;
pub use files::CorpusFiles;
pub(crate) use files::{is_called, is_json};
pub use filter::{LeftOut, Limits};
pub(crate) use held_out::held_out;
pub(crate) use moving::MovingWindows;
pub use pairs::{Corpus, CorpusSize};
pub(crate) use shuffle::shuffle;
pub use windows::Batching;
pub(crate) use windows::batches_of;
