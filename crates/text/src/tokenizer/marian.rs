//! The tokenizer of a Marian folder: a SentencePiece model for each side, and ids of their own in
//! `vocab.json`.
//!
//! A text may begin with a language token such as `>>fra<<`, which is one token whatever the pieces are.
//! `</s>`, `<unk>` and `<pad>` written in a text are these tokens unless they are to be text, a piece that `vocab.json` does not
//! have is `<unk>`, and `</s>` ends every text. All this is as `MarianTokenizer` of transformers does it.

use super::Side;
use super::error::Error;
use super::files;
use super::sentencepiece::{SPACE, SentencePiece, Skip};
use super::special::Special;
use foldhash::fast::FixedState;
use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// A Marian tokenizer, both sides of it.
#[derive(Debug)]
pub(crate) struct Marian {
    source: MarianSide,
    target: MarianSide,
}

/// One side: a SentencePiece model and the ids of its pieces.
#[derive(Debug)]
struct MarianSide {
    model: Arc<SentencePiece>,
    vocabulary: Arc<Vocabulary>,
    /// The id in the vocabulary for each id of the model.
    ids: Vec<u32>,
    /// Whether special tokens written in a text are text.
    special_is_text: bool,
}

/// `vocab.json`: tokens and their ids.
#[derive(Debug)]
pub(crate) struct Vocabulary {
    tokens: Vec<String>,
    ids: Ids,
    end: u32,
    unknown: u32,
    pad: Option<u32>,
}

const END: &str = "</s>";
const UNKNOWN: &str = "<unk>";
const PAD: &str = "<pad>";
const SPECIAL: [&str; 3] = [END, UNKNOWN, PAD];

/// The files that a folder must have.
const FILES: [&str; 3] = ["source.spm", "target.spm", "vocab.json"];

impl Marian {
    /// Whether a folder looks like one of Marian's, though a file of it may be missing: the pieces of one side alone have other
    /// numbers than those of its vocabulary.
    pub(crate) fn is_in(folder: &Path) -> Result<bool, Error> {
        let is_there = |name| files::is_file(&folder.join(name));
        Ok(is_there("vocab.json")? && (is_there("source.spm")? || is_there("target.spm")?))
    }

    /// Whether a folder has the pieces of both sides, which need a vocabulary.
    pub(crate) fn has_pieces(folder: &Path) -> Result<bool, Error> {
        let is_there = |name| files::is_file(&folder.join(name));
        Ok(is_there("source.spm")? && is_there("target.spm")?)
    }

    pub(crate) fn load(folder: &Path) -> Result<Marian, Error> {
        for path in FILES.map(|name| folder.join(name)) {
            if !files::is_file(&path)? {
                return Err(Error::Incomplete { path });
            }
        }
        let source = Arc::new(SentencePiece::load(&folder.join("source.spm"))?);
        let target = folder.join("target.spm");
        // Mostly both are the same file, and one model is enough.
        let target = match files::read(&target)? {
            bytes if bytes == source.bytes() => Arc::clone(&source),
            _ => Arc::new(SentencePiece::load(&target)?),
        };
        let vocabulary = Arc::new(Vocabulary::load(&folder.join("vocab.json"))?);
        let own = folder.join("target_vocab.json");
        let target_vocabulary =
            if files::is_file(&own)? { Arc::new(Vocabulary::load(&own)?) } else { Arc::clone(&vocabulary) };
        Ok(Marian::new(source, target, vocabulary, target_vocabulary))
    }

    pub(crate) fn new(
        source: Arc<SentencePiece>,
        target: Arc<SentencePiece>,
        vocabulary: Arc<Vocabulary>,
        target_vocabulary: Arc<Vocabulary>,
    ) -> Marian {
        Marian {
            source: MarianSide::new(source, vocabulary),
            target: MarianSide::new(target, target_vocabulary),
        }
    }

    /// The files of its folder.
    pub(crate) fn files(&self) -> Vec<(&'static str, Vec<u8>)> {
        let MarianSide { model, vocabulary, .. } = &self.source;
        let mut files = vec![
            ("source.spm", model.bytes().to_vec()),
            ("target.spm", self.target.model.bytes().to_vec()),
            ("vocab.json", vocabulary.to_json()),
        ];
        if !Arc::ptr_eq(vocabulary, &self.target.vocabulary) {
            files.push(("target_vocab.json", self.target.vocabulary.to_json()));
        }
        files
    }

    /// Reads special tokens that are written in a text as text.
    pub(crate) fn read_special_as_text(&mut self) {
        self.source.special_is_text = true;
        self.target.special_is_text = true;
    }

    /// Whether the pieces of both sides come from merges, which can be skipped.
    pub(crate) fn merges(&self) -> bool {
        self.source.model.merges() && self.target.model.merges()
    }

    /// The ids of a text without the end.
    pub(crate) fn encode(&self, text: &str, side: Side, mut skip: Skip<'_>) -> Vec<u32> {
        let mut ids = Vec::with_capacity(text.len() / 3 + 5);
        let side = self.side(side);
        side.each_part(text, |part| match part {
            Part::Token(token) => ids.push(side.vocabulary.id(token)),
            Part::Text(text) => {
                let skip: Skip<'_> = match &mut skip {
                    Some(skip) => Some(*skip),
                    None => None,
                };
                side.model.each_piece(text, skip, |id, normal, range| {
                    let surface = || std::str::from_utf8(&normal[range.clone()]).unwrap_or(UNKNOWN);
                    let id = side.id(id, surface);
                    // A piece may read like a special token by chance, or because a vocabulary defines it.
                    if side.special_is_text && side.vocabulary.is_special(id) {
                        let characters = surface().chars();
                        ids.extend(characters.map(|c| side.vocabulary.id(c.encode_utf8(&mut [0; 4]))));
                    } else {
                        ids.push(id);
                    }
                });
            }
        });
        ids
    }

    /// The tokens of a text without the end, those that the vocabulary lacks as well.
    pub(crate) fn encode_pieces(&self, text: &str, side: Side) -> Vec<String> {
        let mut pieces = Vec::new();
        let side = self.side(side);
        side.each_part(text, |part| match part {
            Part::Token(token) => pieces.push(token.to_owned()),
            Part::Text(text) => pieces.extend(side.model.encode_pieces(text)),
        });
        pieces
    }

    /// The text of tokens; the special ones are left out.
    pub(crate) fn decode<'a>(&'a self, tokens: impl IntoIterator<Item = &'a str>) -> String {
        let tokens = tokens.into_iter().filter(|token| !SPECIAL.contains(token));
        self.target.model.decode(tokens).replace(SPACE, " ").trim().to_owned()
    }

    pub(crate) fn vocabulary(&self, side: Side) -> &Vocabulary {
        &self.side(side).vocabulary
    }

    fn side(&self, side: Side) -> &MarianSide {
        match side {
            Side::Source => &self.source,
            Side::Target => &self.target,
        }
    }
}

/// A stretch of a text.
enum Part<'a> {
    Token(&'a str),
    Text(&'a str),
}

impl MarianSide {
    fn new(model: Arc<SentencePiece>, vocabulary: Arc<Vocabulary>) -> MarianSide {
        let id = |id| vocabulary.id(model.piece(id).unwrap_or(UNKNOWN));
        let ids = (0..model.len() as u32).map(id).collect();
        MarianSide { model, vocabulary, ids, special_is_text: false }
    }

    /// The id of a piece. What the model does not know, the vocabulary may still have.
    #[inline]
    fn id<'a>(&self, piece: u32, surface: impl FnOnce() -> &'a str) -> u32 {
        if Some(piece) == self.model.special().unk {
            return self.vocabulary.id(surface());
        }
        self.ids[piece as usize]
    }

    /// Cuts a text at special tokens, unless they are text; what is between them may begin with a language token.
    fn each_part<'a>(&self, mut text: &'a str, mut part: impl FnMut(Part<'a>)) {
        while !text.is_empty() {
            // One walk, however many tokens there are and whichever of them never come.
            let token_at = |at: usize| SPECIAL.into_iter().find(|token| text[at..].starts_with(token));
            let special = || text.match_indices('<').find_map(|(at, _)| Some((at, token_at(at)?)));
            let special = if self.special_is_text { None } else { special() };
            let (before, after) = match special {
                Some((at, token)) => (&text[..at], &text[at + token.len()..]),
                None => (text, ""),
            };
            let (language, rest) = language(before);
            if let Some(language) = language {
                part(Part::Token(language));
            }
            if !rest.is_empty() {
                part(Part::Text(rest));
            }
            if let Some((_, token)) = special {
                part(Part::Token(token));
            }
            text = after;
        }
    }
}

/// The language token that a text begins with, and the rest.
pub(crate) fn language(text: &str) -> (Option<&str>, &str) {
    match text.starts_with(">>").then(|| text.find("<<")).flatten() {
        Some(at) => (Some(&text[..at + 2]), &text[at + 2..]),
        None => (None, text),
    }
}

impl Vocabulary {
    fn load(path: &Path) -> Result<Vocabulary, Error> {
        let (tokens, _) = tokens_of(path)?;
        Vocabulary::new(tokens).map_err(|missing| Error::format(path, format!("`{missing}` is missing")))
    }

    /// The vocabulary of these tokens, in the order of their ids; a token that must be there and is not, if
    /// so.
    pub(crate) fn new(tokens: Vec<String>) -> Result<Vocabulary, &'static str> {
        let ids: Ids = tokens.iter().cloned().zip(0..).collect();
        let id = |token| ids.get(token).copied();
        let (end, unknown, pad) = (id(END).ok_or(END)?, id(UNKNOWN).ok_or(UNKNOWN)?, id(PAD));
        Ok(Vocabulary { tokens, ids, end, unknown, pad })
    }

    pub(crate) fn len(&self) -> usize {
        self.tokens.len()
    }

    pub(crate) fn token(&self, id: u32) -> Option<&str> {
        self.tokens.get(id as usize).map(String::as_str)
    }

    /// The id of a token, which is that of `<unk>` if it is not there.
    pub(crate) fn id(&self, token: &str) -> u32 {
        self.ids.get(token).copied().unwrap_or(self.unknown)
    }

    /// Whether an id is that of a token that no text has.
    fn is_special(&self, id: u32) -> bool {
        id == self.end || Some(id) == self.pad
    }

    pub(crate) fn special(&self) -> Special {
        Special { bos: None, eos: Some(self.end), pad: self.pad, unk: Some(self.unknown) }
    }

    fn to_json(&self) -> Vec<u8> {
        let tokens: Value =
            self.tokens.iter().zip(0u32..).map(|(token, id)| (token.clone(), Value::from(id))).collect();
        format!("{tokens:#}\n").into_bytes()
    }
}

/// Ids by token.
pub(crate) type Ids = HashMap<String, u32, FixedState>;

/// The tokens of a `vocab.json` in the order of their ids, and the ids by token.
pub(crate) fn tokens_of(path: &Path) -> Result<(Vec<String>, Ids), Error> {
    let json = files::read_json(path)?;
    let wrong = |problem: &str| Error::format(path, problem);
    let object =
        json.as_object().ok_or_else(|| wrong("the file must be a JSON object that maps tokens to ids"))?;
    let mut tokens = vec![None; object.len()];
    for (token, id) in object {
        let place = id.as_u64().and_then(|id| tokens.get_mut(usize::try_from(id).ok()?));
        let place = place.ok_or_else(|| {
            wrong(&format!("the id of `{token}` is not a number below the vocabulary size"))
        })?;
        if let Some(other) = place.replace(token.clone()) {
            return Err(wrong(&format!("`{other}` and `{token}` have the same id")));
        }
    }
    let tokens: Vec<String> = tokens.into_iter().flatten().collect();
    let ids = tokens.iter().cloned().zip(0..).collect();
    Ok((tokens, ids))
}
