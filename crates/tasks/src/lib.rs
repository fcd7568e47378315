//! What people ask of a model: a text or a picture in, an answer out.
//!
//! A task knows what goes in, which head a model needs for it, and what comes out. Commands, routes of the server and training are
//! users of the same task.
//!
//! | task | in | out |
//! |---|---|---|
//! | [`Translator`] | a text | its translation |
//! | [`Writer`] | a prompt | its continuation, or the answer of a model from text to text |
//! | [`Summarizer`] | a text | a shorter one |
//! | [`Embedder`] | a text | a vector |
//! | [`MaskFiller`] | a text with masks | words for each mask |
//! | [`Classifier`] | a text or two | a label |
//! | [`Tagger`] | a text | spans with labels |
//! | [`Answerer`] | a question and a text | spans of the text that answer it |
//! | [`Reranker`] | a query and a text | how well the text fits |
//! | [`Perplexity`] | a text | how well a language model predicts it |
//! | [`PictureClassifier`] | a picture | a label |
//! | [`PictureEmbedder`] | a picture | a vector |
//! | [`Detector`] | a picture | boxes with labels |

mod answer;
mod batches;
mod classify;
mod detect;
mod embed;
mod encoder;
mod error;
mod fill_mask;
mod generate;
mod kind;
mod model;
mod name;
mod perplexity;
mod pictures;
mod pooling;
mod probabilities;
mod prompt;
mod rerank;
mod stop;
mod summarize;
mod tag;
mod tokenizer;
mod translate;

pub use answer::{Answer, Answerer, Asking, best as best_answers};
pub use classify::{Classified, Classifier};
pub use detect::{Detected, Detector, rows, things};
pub use embed::{Embedder, Vectors, cosine, most_similar};
pub use encoder::{Encoder, Texts, TooLong};
pub use error::Error;
pub use fill_mask::{Filled, Guess, MaskFiller};
pub use generate::{LanguageModel, Writer};
pub use kind::{Kind, PictureKind};
pub use name::model_name;
pub use perplexity::{Measured, Perplexity};
pub use pictures::{PictureClassifier, PictureEmbedder, PictureEncoder, task_of_pictures};
pub use pooling::{Pooling, Pools};
pub use prompt::{Continuation, Finish, PromptCodec};
pub use rerank::Reranker;
pub use stop::StopStrings;
pub use summarize::{Summarizer, Summary, SummaryCodec, SummaryModel};
pub use tag::{Entity, Tagged, TaggedWord, Tagger};
pub use tokenizer::tokenizer_of;
pub use translate::{
    Codec, Cut, Instruction, ModelFolder, Part, Reading, Split, SpokenLanguages, TargetLanguages, Translated,
    TranslatedHtml, Translation, Translator, UnknownWord, WrittenPart, languages_of_name, named_language,
    source_language, tokenizer_languages,
};

/// What the guide for those who write Rust shows must compile and run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/rust.md")]
struct Guide;
