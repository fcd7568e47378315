//! SentencePiece models (Kudo and Richardson, 2018), read from and written to the files of that library.
//!
//! Encoding is normalising, cutting into pieces, and a last step for what no piece covers: bytes where the
//! model has them, else one `<unk>` for each run. Decoding joins the pieces and turns `▁` into spaces again.

mod bpe;
mod double_array;
mod normalizer;
pub(crate) mod proto;
mod unigram;

pub(crate) use double_array::DoubleArray;
pub(crate) use normalizer::{Normalizer, SPACE};

use super::error::Error;
use super::files;
use super::special::Special;
use bpe::Bpe;
use foldhash::fast::FixedState;
use prost::Message;
use proto::{ModelProto, ModelType, NormalizerSpec, PieceType};
use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use unigram::Unigram;

/// A SentencePiece model.
#[derive(Debug)]
pub(crate) struct SentencePiece {
    /// The file as it was read or made.
    bytes: Vec<u8>,
    pieces: Pieces,
    model: Model,
    normalizer: Normalizer,
    denormalizer: Option<Normalizer>,
    unknown_surface: String,
    /// The ids of the 256 byte pieces, where the model has them.
    byte_ids: Option<Vec<u32>>,
    special: Special,
}

#[derive(Debug)]
enum Model {
    Unigram(Unigram),
    Bpe(Bpe),
}

/// A piece that was cut off a normalised text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) id: u32,
    /// In bytes.
    pub(crate) length: u32,
}

/// Says of each merge in turn whether it is skipped; without one, none is.
pub(crate) type Skip<'a> = Option<&'a mut dyn FnMut() -> bool>;

impl SentencePiece {
    pub(crate) fn load(path: &Path) -> Result<SentencePiece, Error> {
        let bytes = files::read(path)?;
        SentencePiece::from_bytes(bytes).map_err(|problem| Error::format(path, problem))
    }

    /// The model in the bytes of a file; what is wrong with it, if something is.
    pub(crate) fn from_bytes(bytes: Vec<u8>) -> Result<SentencePiece, String> {
        let proto = ModelProto::decode(&bytes[..])
            .map_err(|_| "not a SentencePiece model, or an incomplete one".to_owned())?;
        let trainer = proto.trainer_spec.clone().unwrap_or_default();
        let spec = proto.normalizer_spec.clone().unwrap_or_default();
        let pieces = Pieces::new(&proto)?;
        let byte_ids = trainer.byte_fallback().then(|| byte_ids(&pieces)).transpose()?;
        let model = match trainer.model_type() {
            ModelType::Unigram => Model::Unigram(Unigram::new(&pieces)),
            ModelType::Bpe => Model::Bpe(Bpe::new(&pieces)),
            other => return Err(format!("model type {other:?} is not supported, only Unigram and Bpe")),
        };
        let normalizer = Normalizer::new(&spec, pieces.user_defined(), trainer.treat_whitespace_as_suffix())?;
        let table = |spec: &&NormalizerSpec| !spec.precompiled_charsmap().is_empty();
        let denormalizer = proto.denormalizer_spec.as_ref().filter(table);
        let denormalizer = denormalizer.map(|spec| Normalizer::new(spec, None, false)).transpose()?;
        let control = |text: &str| {
            let id = pieces.id(text);
            (pieces.get(id)?.kind == PieceType::Control).then_some(id)
        };
        let special = Special {
            bos: control(trainer.bos_piece()),
            eos: control(trainer.eos_piece()),
            pad: control(trainer.pad_piece()),
            unk: Some(pieces.unknown),
        };
        let unknown_surface = trainer.unk_surface().to_owned();
        Ok(SentencePiece {
            bytes,
            pieces,
            model,
            normalizer,
            denormalizer,
            unknown_surface,
            byte_ids,
            special,
        })
    }

    /// The file that this model is.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn special(&self) -> Special {
        self.special
    }

    pub(crate) fn len(&self) -> usize {
        self.pieces.len()
    }

    /// The text of a piece.
    pub(crate) fn piece(&self, id: u32) -> Option<&str> {
        self.pieces.get(id).map(|piece| piece.text.as_str())
    }

    /// Whether its pieces come from merges, which can be skipped.
    pub(crate) fn merges(&self) -> bool {
        matches!(self.model, Model::Bpe(_))
    }

    /// The ids of a text.
    pub(crate) fn encode(&self, text: &str, skip: Skip<'_>) -> Vec<u32> {
        let mut ids = Vec::with_capacity(text.len() / 3 + 4);
        self.each_piece(text, skip, |id, _, _| ids.push(id));
        ids
    }

    /// The pieces of a text; what no piece covers is given as it is.
    pub(crate) fn encode_pieces(&self, text: &str) -> Vec<String> {
        let mut pieces = Vec::new();
        self.each_piece(text, None, |id, normal, range| {
            let piece = match self.pieces.get(id) {
                Some(piece) if id != self.pieces.unknown => piece.text.clone(),
                _ => String::from_utf8_lossy(&normal[range]).into_owned(),
            };
            pieces.push(piece);
        });
        pieces
    }

    /// Calls `emit` for each piece of a text with its id, the normalised text and its place there.
    #[inline]
    pub(crate) fn each_piece(
        &self,
        text: &str,
        skip: Skip<'_>,
        mut emit: impl FnMut(u32, &[u8], Range<usize>),
    ) {
        let normal = self.normalizer.normalize(text);
        let mut cuts = Vec::with_capacity(normal.len() / 2);
        match &self.model {
            Model::Unigram(model) => model.cut(&normal, &mut cuts),
            Model::Bpe(model) => model.cut(&normal, skip, &mut cuts),
        }
        let mut begin = 0;
        let mut cuts = cuts.into_iter().peekable();
        while let Some(Cut { id, length }) = cuts.next() {
            let mut end = begin + length as usize;
            match &self.byte_ids {
                Some(byte_ids) if id == self.pieces.unknown => {
                    for at in begin..end {
                        emit(byte_ids[usize::from(normal[at])], &normal, at..at + 1);
                    }
                }
                _ => {
                    // What is unknown, however long, is one piece.
                    while id == self.pieces.unknown
                        && let Some(further) = cuts.next_if(|cut| cut.id == id)
                    {
                        end += further.length as usize;
                    }
                    emit(id, &normal, begin..end);
                }
            }
            begin = end;
        }
    }

    /// The text of pieces.
    pub(crate) fn decode<'a>(&'a self, pieces: impl IntoIterator<Item = &'a str>) -> String {
        let mut text = String::new();
        let mut bytes = Vec::new();
        let (mut at_start, mut first_space_seen) = (true, false);
        for piece in pieces {
            let id = self.pieces.id(piece);
            let kind = self.pieces.get(id).map(|piece| piece.kind);
            if kind == Some(PieceType::Byte) {
                bytes.extend(byte(piece));
                continue;
            }
            flush(&mut bytes, &mut text);
            at_start &= !first_space_seen && text.is_empty();
            first_space_seen = false;
            match kind {
                Some(PieceType::Control) => {}
                Some(PieceType::Unknown) => {
                    let own = self.piece(id) == Some(piece);
                    text.push_str(if own { &self.unknown_surface } else { piece });
                }
                _ => {
                    let mut rest = piece;
                    if at_start && self.normalizer.takes_first_space() {
                        let stripped = piece.strip_prefix(SPACE);
                        rest = stripped.unwrap_or(piece);
                        // Where extra spaces are removed, all of them are, not the first alone.
                        first_space_seen = stripped.is_some() && !self.normalizer.removes_extra_whitespaces();
                    }
                    text.push_str(&rest.replace(SPACE, " "));
                }
            }
        }
        flush(&mut bytes, &mut text);
        match &self.denormalizer {
            Some(denormalizer) => String::from_utf8_lossy(&denormalizer.normalize(&text)).into_owned(),
            None => text,
        }
    }
}

/// Appends the characters that bytes make; a byte that makes none becomes `U+FFFD`.
fn flush(bytes: &mut Vec<u8>, text: &mut String) {
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        let length = character_length(rest);
        match std::str::from_utf8(&rest[..length]) {
            Ok(character) => {
                text.push_str(character);
                rest = &rest[length..];
            }
            Err(_) => {
                text.push(char::REPLACEMENT_CHARACTER);
                rest = &rest[1..];
            }
        }
    }
    bytes.clear();
}

/// The length of the character that a text begins with, as its first byte has it, but not beyond the end.
#[inline]
pub(crate) fn character_length(text: &[u8]) -> usize {
    let length = match text[0] {
        0..0xC0 => 1,
        0xC0..0xE0 => 2,
        0xE0..0xF0 => 3,
        _ => 4,
    };
    length.min(text.len())
}

/// The words of a normalised text: each begins with `▁`, the first perhaps without.
pub(crate) fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = text;
    std::iter::from_fn(move || {
        // Words are shorter than it takes to set up anything cleverer than looking at each byte.
        let begins =
            |&at: &usize| rest[at] == SPACE.as_bytes()[0] && rest[at..].starts_with(SPACE.as_bytes());
        let end = (1..rest.len()).find(begins).unwrap_or(rest.len());
        let (word, further) = rest.split_at(end);
        rest = further;
        (!word.is_empty()).then_some(word)
    })
}

/// The pieces of a model, by id and by text.
#[derive(Debug)]
pub(crate) struct Pieces {
    list: Vec<Piece>,
    ids: HashMap<String, u32, FixedState>,
    pub(crate) unknown: u32,
}

#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) text: String,
    pub(crate) score: f32,
    pub(crate) kind: PieceType,
}

impl Piece {
    /// Whether it can be found in text.
    pub(crate) fn is_text(&self) -> bool {
        matches!(self.kind, PieceType::Normal | PieceType::UserDefined | PieceType::Unused)
    }
}

impl Pieces {
    fn new(proto: &ModelProto) -> Result<Pieces, String> {
        let mut list = Vec::with_capacity(proto.pieces.len());
        let (mut ids, mut unknown) = (HashMap::default(), None);
        for (id, piece) in (0u32..).zip(&proto.pieces) {
            let piece = Piece { text: piece.piece().to_owned(), score: piece.score(), kind: piece.r#type() };
            if piece.text.is_empty() || piece.text.contains('\0') {
                return Err(format!("piece {id} is empty or contains a zero byte"));
            }
            if piece.kind == PieceType::Unknown && unknown.replace(id).is_some() {
                return Err("the model has two pieces for unknown text".to_owned());
            }
            // A text can be an ordinary piece and a reserved one; the reserved one counts.
            let known = ids.get(&piece.text).copied();
            let same =
                |other: u32| list.get(other as usize).is_some_and(|o: &Piece| o.is_text() == piece.is_text());
            if known.is_some_and(same) {
                return Err(format!("the piece `{}` occurs twice", piece.text));
            }
            if known.is_none() || !piece.is_text() {
                ids.insert(piece.text.clone(), id);
            }
            list.push(piece);
        }
        if !list.iter().any(Piece::is_text) {
            return Err("the model has no pieces".to_owned());
        }
        let unknown = unknown.ok_or("the model has no piece for unknown text")?;
        Ok(Pieces { list, ids, unknown })
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Piece> {
        self.list.iter()
    }

    pub(crate) fn get(&self, id: u32) -> Option<&Piece> {
        self.list.get(id as usize)
    }

    /// The id of a text, which is that of `<unk>` if it is no piece.
    pub(crate) fn id(&self, text: &str) -> u32 {
        self.ids.get(text).copied().unwrap_or(self.unknown)
    }

    /// Whether no piece reaches over the beginning of a word, so that words can be cut one by one.
    pub(crate) fn stay_in_words(&self) -> bool {
        let stays = |piece: &Piece| piece.text.rfind(SPACE).is_none_or(|at| at == 0);
        self.list.iter().filter(|piece| piece.is_text()).all(stays)
    }

    /// The user-defined symbols, if there are any.
    pub(crate) fn user_defined(&self) -> Option<DoubleArray> {
        let user_defined = |piece: &Piece| piece.kind == PieceType::UserDefined;
        self.list.iter().any(user_defined).then(|| self.trie(user_defined))
    }

    /// The chosen pieces by text.
    pub(crate) fn trie(&self, chosen: impl Fn(&Piece) -> bool) -> DoubleArray {
        let chosen = (0..).zip(&self.list).filter(|(_, piece)| chosen(piece));
        let mut keys: Vec<(&[u8], u32)> = chosen.map(|(id, piece)| (piece.text.as_bytes(), id)).collect();
        keys.sort_unstable();
        DoubleArray::new(&keys)
    }
}

/// The ids of the 256 byte pieces.
fn byte_ids(pieces: &Pieces) -> Result<Vec<u32>, String> {
    let mut ids = vec![None; 256];
    for (id, piece) in (0..).zip(pieces.iter()).filter(|(_, piece)| piece.kind == PieceType::Byte) {
        let byte = byte(&piece.text).ok_or_else(|| format!("`{}` is not a byte piece", piece.text))?;
        ids[usize::from(byte)] = Some(id);
    }
    let ids: Option<Vec<u32>> = ids.into_iter().collect();
    ids.ok_or_else(|| "the model uses byte fallback, but some byte pieces are missing".to_owned())
}

/// The byte that `<0x..>` names.
fn byte(piece: &str) -> Option<u8> {
    let digits = piece.strip_prefix("<0x")?.strip_suffix('>')?;
    (digits.len() == 2).then(|| u8::from_str_radix(digits, 16).ok()).flatten()
}
