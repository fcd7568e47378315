//! Tokens that are not text.

/// The ids of the tokens that are not text, where a tokenizer has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Special {
    /// Begins a text.
    pub bos: Option<u32>,
    /// Ends a text.
    pub eos: Option<u32>,
    /// Fills a batch; in a Marian model it also starts the decoder.
    pub pad: Option<u32>,
    /// Stands for what cannot be expressed.
    pub unk: Option<u32>,
}
