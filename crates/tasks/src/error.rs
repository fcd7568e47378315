//! What can go wrong with a task through no fault of the programmer.

use std::path::PathBuf;

/// A folder that cannot be used for a task, or a text that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The model cannot be read.
    #[error(transparent)]
    Model(#[from] attentive_model::Error),
    /// The tokenizer cannot be read, or a text not be encoded.
    #[error(transparent)]
    Tokenizer(#[from] attentive_text::tokenizer::Error),
    /// A picture, or what a folder says of pictures, cannot be read.
    #[error(transparent)]
    Image(#[from] attentive_image::Error),
    /// A picture that is not for this model.
    #[error("picture {picture} {problem}")]
    Picture {
        /// Its number, counted from 1.
        picture: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// Something cannot be decoded.
    #[error(transparent)]
    Generate(#[from] attentive_generate::Error),
    /// A model without the files of its tokenizer.
    #[error(
        "{}: the folder has no tokenizer; needed are source.spm, target.spm and vocab.json, or tokenizer.json",
        folder.display()
    )]
    NoTokenizer {
        /// The folder.
        folder: PathBuf,
    },
    /// A language that the model has no token for.
    #[error("the model has no target language `{code}`; its languages are {known}")]
    Language {
        /// The language.
        code: String,
        /// Those that there are.
        known: String,
    },
    /// A text that does not say which of several languages it is to be translated into.
    #[error(
        "the model has several target languages: choose one, or begin the text with a token such as `>>de<<`; its languages \
         are {known}"
    )]
    NoLanguage {
        /// Those that there are.
        known: String,
    },
    /// A language that a model with tokens for languages does not have.
    #[error("the model has no language `{code}`; the nearest are {known}")]
    SpokenLanguage {
        /// The language.
        code: String,
        /// Those that are called nearly like it.
        known: String,
    },
    /// The target language is missing for a model with several.
    #[error("the model has several target languages: choose one; its languages are {known}")]
    NoSpokenLanguage {
        /// Some of them.
        known: String,
    },
    /// A source language for a model that has no tokens for languages.
    #[error("the model has no tokens for source languages: it reads the one that it was trained for")]
    NoSourceLanguages,
    /// A file of the folder is not what it should be.
    #[error("{}: {problem}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A model that was not trained for the task.
    #[error("{}: the model has no head for this task: {task} needs a {needed}, and this is a {found}", path.display())]
    NoHead {
        /// The folder.
        path: PathBuf,
        /// The task.
        task: &'static str,
        /// The class of transformers that has such a head.
        needed: &'static str,
        /// The class that the folder has.
        found: &'static str,
    },
    /// A tokenizer that belongs to another model.
    #[error("{}: the tokenizer has {tokenizer} tokens and the model has {model}: it belongs to another model", path.display())]
    Vocabulary {
        /// The folder.
        path: PathBuf,
        /// How many tokens the tokenizer has.
        tokenizer: usize,
        /// How many the model has.
        model: usize,
    },
    /// A text that the model cannot read as a whole.
    #[error(
        "text {text} has {tokens} tokens, and the model reads at most {limit}: shorten the text, or let it be cut"
    )]
    TooLong {
        /// Its number, counted from 1.
        text: usize,
        /// Its tokens.
        tokens: usize,
        /// What the model reads.
        limit: usize,
    },
    /// A question that leaves no room for a text with its answer.
    #[error(
        "question {text} leaves no room for a text: question and special tokens are {tokens} tokens, and the model reads at most \
         {limit} at once: shorten the question"
    )]
    LongQuestion {
        /// Its number, counted from 1.
        text: usize,
        /// The tokens that are not those of the text.
        tokens: usize,
        /// What is read at once.
        limit: usize,
    },
    /// A model that gives several scores where one is needed.
    #[error("{}: the model tells {labels} classes apart: ranking needs a model with one class, whose score says how well a text fits", path.display())]
    NotOneClass {
        /// The folder.
        path: PathBuf,
        /// How many classes it has.
        labels: usize,
    },
    /// A text of which the tokenizer leaves nothing.
    #[error("text {text} has no tokens")]
    NoTokens {
        /// Its number, counted from 1.
        text: usize,
    },
    /// A token that the model does not have.
    #[error("text {text} has the token {token}, and the model has {known} tokens, counted from 0")]
    Token {
        /// The number of the text, counted from 1.
        text: usize,
        /// The token.
        token: u32,
        /// How many tokens there are.
        known: usize,
    },
    /// A tokenizer that tells more kinds of tokens apart than the model.
    #[error("{}: the model knows {types} types of tokens (type_vocab_size), and its tokenizer has more: it cannot read this text, or no pairs", path.display())]
    TokenTypes {
        /// The folder.
        path: PathBuf,
        /// The types that the model knows.
        types: usize,
    },
    /// A text without the token that is to be filled in.
    #[error("text {text} has no {mask}: write {mask} in the place of the missing word")]
    NoMask {
        /// Its number, counted from 1.
        text: usize,
        /// The token.
        mask: String,
    },
    /// A tokenizer without such a token.
    #[error("{}: the tokenizer has no mask token", path.display())]
    NoMaskToken {
        /// The folder.
        path: PathBuf,
    },
}
