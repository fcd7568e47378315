//! The messages in a SentencePiece file, as far as encoding and decoding depend on them.
//!
//! The numbers are those of `sentencepiece_model.proto`. What is not named here is skipped when a file is
//! read; a loaded file is saved byte for byte, so nothing is lost.

/// A whole model.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ModelProto {
    #[prost(message, repeated, tag = "1")]
    pub(crate) pieces: Vec<Piece>,
    #[prost(message, optional, tag = "2")]
    pub(crate) trainer_spec: Option<TrainerSpec>,
    #[prost(message, optional, tag = "3")]
    pub(crate) normalizer_spec: Option<NormalizerSpec>,
    #[prost(message, optional, tag = "5")]
    pub(crate) denormalizer_spec: Option<NormalizerSpec>,
}

/// A piece; its id is its place in the list.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Piece {
    #[prost(string, optional, tag = "1")]
    pub(crate) piece: Option<String>,
    #[prost(float, optional, tag = "2")]
    pub(crate) score: Option<f32>,
    #[prost(enumeration = "PieceType", optional, tag = "3", default = "Normal")]
    pub(crate) r#type: Option<i32>,
}

/// What a piece is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum PieceType {
    /// Ordinary text.
    Normal = 1,
    /// What stands for everything that no piece covers.
    Unknown = 2,
    /// Never found in text: `</s>`.
    Control = 3,
    /// Found in text before anything else, and never changed.
    UserDefined = 4,
    /// One byte of a character that no piece covers.
    Byte = 6,
    /// Takes part in merging, and is taken apart again.
    Unused = 5,
}

/// How the model was trained.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct TrainerSpec {
    #[prost(enumeration = "ModelType", optional, tag = "3", default = "Unigram")]
    pub(crate) model_type: Option<i32>,
    #[prost(int32, optional, tag = "4")]
    pub(crate) vocab_size: Option<i32>,
    #[prost(bool, optional, tag = "24")]
    pub(crate) treat_whitespace_as_suffix: Option<bool>,
    #[prost(bool, optional, tag = "35")]
    pub(crate) byte_fallback: Option<bool>,
    #[prost(int32, optional, tag = "40", default = "0")]
    pub(crate) unk_id: Option<i32>,
    #[prost(int32, optional, tag = "41", default = "1")]
    pub(crate) bos_id: Option<i32>,
    #[prost(int32, optional, tag = "42", default = "2")]
    pub(crate) eos_id: Option<i32>,
    #[prost(int32, optional, tag = "43", default = "-1")]
    pub(crate) pad_id: Option<i32>,
    #[prost(string, optional, tag = "44", default = " ⁇ ")]
    pub(crate) unk_surface: Option<String>,
    #[prost(string, optional, tag = "45", default = "<unk>")]
    pub(crate) unk_piece: Option<String>,
    #[prost(string, optional, tag = "46", default = "<s>")]
    pub(crate) bos_piece: Option<String>,
    #[prost(string, optional, tag = "47", default = "</s>")]
    pub(crate) eos_piece: Option<String>,
    #[prost(string, optional, tag = "48", default = "<pad>")]
    pub(crate) pad_piece: Option<String>,
}

/// How text is cut into pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum ModelType {
    /// The most probable sequence of pieces.
    Unigram = 1,
    /// Merges of neighbours, the best first.
    Bpe = 2,
    /// Whole words.
    Word = 3,
    /// Single characters.
    Char = 4,
}

/// How text is changed before it is cut.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct NormalizerSpec {
    #[prost(string, optional, tag = "1")]
    pub(crate) name: Option<String>,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub(crate) precompiled_charsmap: Option<Vec<u8>>,
    #[prost(bool, optional, tag = "3", default = "true")]
    pub(crate) add_dummy_prefix: Option<bool>,
    #[prost(bool, optional, tag = "4", default = "true")]
    pub(crate) remove_extra_whitespaces: Option<bool>,
    #[prost(bool, optional, tag = "5", default = "true")]
    pub(crate) escape_whitespaces: Option<bool>,
}
