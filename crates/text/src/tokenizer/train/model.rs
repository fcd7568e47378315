//! A trained SentencePiece model on its way into its file.

use super::super::error::Error;
use super::super::sentencepiece::proto::{ModelProto, ModelType, Piece, PieceType, TrainerSpec};
use super::words::{self, WordCounts};
use super::{Kind, bpe, charsmap, unigram};
use foldhash::fast::FixedState;
use prost::Message;
use std::collections::HashSet;

/// Pieces with their scores, without the special tokens, and the language tokens.
pub(super) struct Model {
    pub(super) kind: Kind,
    pub(super) pieces: Vec<(String, f32)>,
    pub(super) languages: Vec<String>,
}

/// `</s>`, `<unk>` and `<pad>`.
pub(super) const SPECIAL: usize = 3;

/// Learns the pieces of a vocabulary of `size` tokens.
pub(super) fn train(kind: Kind, words: WordCounts, size: usize, coverage: f64) -> Result<Model, Error> {
    let (languages, words) = (words.languages(), words.sorted());
    let alphabet = words::alphabet(&words, coverage);
    let further = SPECIAL + languages.len();
    let least = further + alphabet.len();
    if size < least {
        return Err(Error::Size(format!(
            "the text has {} different characters, and each needs a token: the vocabulary must have at least \
             {least} tokens, not {size}; a lower character coverage omits rare characters",
            alphabet.len()
        )));
    }
    let known: HashSet<char, FixedState> = alphabet.iter().copied().collect();
    let stretches = words.iter().flat_map(|(word, count)| {
        let stretches = words::stretches(word, |character| known.contains(&character));
        stretches.into_iter().map(|stretch| (stretch, *count))
    });
    let pieces = match kind {
        Kind::Unigram => unigram::train(&stretches.collect::<Vec<_>>(), &alphabet, size - further),
        _ => by_merging(stretches, &alphabet, size - further),
    };
    Ok(Model { kind, pieces, languages })
}

/// The pieces of BPE: what was merged first has the best score, characters have the least.
fn by_merging<'a>(
    stretches: impl Iterator<Item = (&'a str, u64)>,
    alphabet: &[char],
    size: usize,
) -> Vec<(String, f32)> {
    let characters =
        |text: &'a str| text.char_indices().map(|(at, c)| &text[at..at + c.len_utf8()]).collect();
    let words = stretches.map(|(stretch, count)| (characters(stretch), count));
    let alphabet: Vec<String> = alphabet.iter().map(|&character| character.into()).collect();
    let merged = bpe::Bpe::new(alphabet.clone(), words, "").merge_until(size);
    merged
        .symbols
        .into_iter()
        .chain(alphabet)
        .zip(0u32..)
        .map(|(piece, rank)| (piece, -(rank as f32)))
        .collect()
}

impl Model {
    /// All tokens in the order of their ids.
    pub(super) fn tokens(&self) -> Vec<String> {
        let special = ["</s>", "<unk>"].map(str::to_owned).into_iter();
        special
            .chain(self.pieces.iter().map(|(piece, _)| piece.clone()))
            .chain(self.languages.iter().cloned())
            .chain(["<pad>".to_owned()])
            .collect()
    }

    /// The file.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let piece = |(text, score): (String, f32), kind: PieceType| Piece {
            piece: Some(text),
            score: Some(score),
            r#type: Some(kind.into()),
        };
        let special = |text: &str, kind| piece((text.to_owned(), 0.0), kind);
        let mut pieces = vec![special("</s>", PieceType::Control), special("<unk>", PieceType::Unknown)];
        pieces.extend(self.pieces.iter().cloned().map(|text| piece(text, PieceType::Normal)));
        // Marian sees a language token before the pieces are looked for: this only keeps its place among the ids.
        pieces.extend(self.languages.iter().map(|language| special(language, PieceType::Control)));
        pieces.push(special("<pad>", PieceType::Control));
        let kind = if self.kind == Kind::Unigram { ModelType::Unigram } else { ModelType::Bpe };
        let trainer_spec = TrainerSpec {
            model_type: Some(kind.into()),
            vocab_size: Some(pieces.len() as i32),
            unk_id: Some(1),
            bos_id: Some(-1),
            eos_id: Some(0),
            pad_id: Some(pieces.len() as i32 - 1),
            unk_piece: Some("<unk>".to_owned()),
            bos_piece: Some("<s>".to_owned()),
            eos_piece: Some("</s>".to_owned()),
            pad_piece: Some("<pad>".to_owned()),
            ..TrainerSpec::default()
        };
        let (trainer_spec, normalizer_spec) = (Some(trainer_spec), Some(charsmap::spec()));
        ModelProto { pieces, trainer_spec, normalizer_spec, denormalizer_spec: None }.encode_to_vec()
    }
}
