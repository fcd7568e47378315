//! How good an answer is. Translations: BLEU, chrF, chrF++ and TER, equal to sacreBLEU's. Classes: accuracy, precision, recall and F1
//! ([`ClassScores`]), equal to scikit-learn's. Tags: the F1 of spans ([`SpanScores`]), equal to seqeval's. Summaries: [`rouge`], equal
//! to that of rouge-score. Answers to questions: exact match and F1 ([`AnswerScores`]), equal to those of SQuAD's scripts.
//!
//! # Translations
//!
//! Every score is made in two steps, as in sacreBLEU: [`Counts`] of each segment (a line of the hypothesis
//! with its references), and a formula over the sum of them. The counts can be summed over other choices of
//! segments as well, which is what the [`bootstrap`] does.
//!
//! ```
//! use attentive_text::score::{Options, Segments};
//!
//! let hypothesis = ["the cat sat on the mat"];
//! let references = [["the cat sat on a mat"]];
//! let counts = Segments::new(&hypothesis, &references)?.count(Options::default());
//! let scores = counts.scores();
//! assert_eq!(format!("{:.2} {:.2}", scores.bleu, scores.ter), "53.73 16.67");
//! # Ok::<(), attentive_text::score::Error>(())
//! ```

mod answers;
pub mod bleu;
pub mod bootstrap;
pub mod chrf;
mod classes;
mod edit_distance;
mod lines;
mod ngrams;
mod rouge;
mod segments;
mod signature;
mod spans;
pub mod ter;
pub mod tokenize;

pub use answers::{AnswerScore, AnswerScores};
pub use classes::{ClassScores, Measures, Tallies, Tally};
pub use lines::Lines;
pub use rouge::{Rouge, RougeScores, rouge};
pub use segments::{Counted, Counts, Segments};
pub use signature::{Resampling, Signatures};
pub use spans::{Span, SpanScores, spans};
pub use tokenize::Tokenize;

use std::path::PathBuf;

/// What a score looks at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// Whether BLEU, chrF and chrF++ ignore case. TER always does, which is sacreBLEU's default.
    pub lowercase: bool,
    /// How BLEU cuts a line into words.
    pub tokenize: Tokenize,
}

/// The scores of a hypothesis, each in percent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scores {
    /// n-grams of up to four words: the more, the better.
    pub bleu: f64,
    /// n-grams of up to six characters: the more, the better.
    pub chrf: f64,
    /// The same with n-grams of up to two words: the more, the better.
    pub chrf_pp: f64,
    /// Edits for a word of the reference: the fewer, the better.
    pub ter: f64,
}

/// Why texts cannot be scored.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A file that is no text.
    #[error("{}: line {line} is not UTF-8: {}", path.display(), crate::encoding::advice(path))]
    Encoding {
        /// The file.
        path: PathBuf,
        /// The first line that is broken, counted from one.
        line: usize,
    },
    /// There is nothing in a file.
    #[error("{}: the file is empty: there is nothing to score", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// Files that do not belong together.
    #[error(
        "{} has {lines} lines and {} has {other_lines}: line n of one file must be the translation of line n of the other",
        path.display(), other.display()
    )]
    LineCounts {
        /// The file with the hypothesis.
        path: PathBuf,
        /// Its number of lines.
        lines: usize,
        /// The file with the reference.
        other: PathBuf,
        /// Its number of lines.
        other_lines: usize,
    },
    /// Texts that do not belong together, or none at all.
    #[error(
        "the hypothesis has {segments} segments and the references have {references:?}: the numbers must be equal"
    )]
    Segments {
        /// How many segments the hypothesis has.
        segments: usize,
        /// How many each reference has.
        references: Vec<usize>,
    },
}
