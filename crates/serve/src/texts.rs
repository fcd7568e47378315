//! One text or several, or their tokens, as many fields of requests have them.

use serde::{Deserialize, Serialize};

/// A text or a list of texts.
#[derive(Debug, Deserialize, Serialize)]
#[serde(untagged, expecting = "must be a text or a list of texts")]
pub(crate) enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl OneOrMany {
    /// All of them.
    pub fn as_slice(&self) -> &[String] {
        match self {
            OneOrMany::One(text) => std::slice::from_ref(text),
            OneOrMany::Many(texts) => texts,
        }
    }

    /// All of them, to keep.
    pub fn into_vec(self) -> Vec<String> {
        match self {
            OneOrMany::One(text) => vec![text],
            OneOrMany::Many(texts) => texts,
        }
    }
}

/// A text, a list of texts, or the tokens of one or of several.
#[derive(Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "must be a text, a list of texts, a list of tokens, or a list of lists of tokens"
)]
pub(crate) enum TextsOrTokens {
    Text(String),
    Texts(Vec<String>),
    Tokens(Vec<u32>),
    Lists(Vec<Vec<u32>>),
}

impl TextsOrTokens {
    /// What is to be read, one after the other.
    pub fn sources(self) -> Vec<Source> {
        match self {
            TextsOrTokens::Text(text) => vec![Source::Text(text)],
            TextsOrTokens::Texts(texts) => texts.into_iter().map(Source::Text).collect(),
            TextsOrTokens::Tokens(tokens) => vec![Source::Tokens(tokens)],
            TextsOrTokens::Lists(lists) => lists.into_iter().map(Source::Tokens).collect(),
        }
    }
}

/// One text, a pair of texts, or tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    Text(String),
    Pair(String, String),
    Tokens(Vec<u32>),
}

impl Source {
    /// The texts of it.
    pub fn texts(&self) -> Vec<&str> {
        match self {
            Source::Text(text) => vec![text],
            Source::Pair(first, second) => vec![first, second],
            Source::Tokens(_) => Vec::new(),
        }
    }

    /// Whether there is nothing to be read.
    pub fn is_empty(&self) -> bool {
        match self {
            Source::Tokens(tokens) => tokens.is_empty(),
            texts => texts.texts().iter().any(|text| text.is_empty()),
        }
    }
}
