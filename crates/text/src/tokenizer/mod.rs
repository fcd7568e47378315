//! Text to tokens and back.
//!
//! [`Tokenizer::load`] reads what others have made: SentencePiece models, Marian folders, `tokenizer.json`,
//! GPT-2's and BERT's vocabularies. Ids are equal to those of the library that each comes from. [`train`]
//! makes new ones.
//!
//! ```no_run
//! use attentive_text::tokenizer::{Side, Tokenizer};
//!
//! let tokenizer = Tokenizer::load("opus-mt-en-de")?;
//! let ids = tokenizer.encode("A dog runs.", Side::Source)?;
//! assert_eq!(ids.last(), tokenizer.special(Side::Source).eos.as_ref());
//! assert_eq!(tokenizer.decode(&ids)?, "A dog runs.");
//! # Ok::<(), attentive_text::tokenizer::Error>(())
//! ```
//!
//! An encoder such as BERT needs more than ids. [`Tokenizer::encode_input`] takes one text, two, or words that are split already,
//! and gives token types as well, and for each token the text, the word and the bytes that it comes from.
//!
//! ```no_run
//! use attentive_text::tokenizer::{Input, Tokenizer};
//!
//! let tokenizer = Tokenizer::load("all-MiniLM-L6-v2")?;
//! let (premise, hypothesis) = ("A dog runs.", "An animal moves.");
//! let encoding = tokenizer.encode_input(Input::Pair(premise, hypothesis), Some(512))?;
//! let first = encoding.sources[1].expect("behind [CLS]");
//! assert_eq!(&premise[first.begin..first.end], "A");
//! assert_eq!(encoding.cut, [0, 0]);
//! # Ok::<(), attentive_text::tokenizer::Error>(())
//! ```

mod bert;
mod bounds;
mod deberta;
mod encoding;
mod error;
mod files;
mod gpt1;
mod gpt2;
mod guard;
mod marian;
mod names;
mod numbered;
mod pipeline;
mod readable;
mod roberta;
mod sentencepiece;
mod special;
mod templated;
pub mod train;
mod words;

pub use encoding::{Encoding, Input, Source};
pub use error::Error;
pub use guard::panic_is_caught;
pub use special::Special;

use marian::Marian;
use numbered::Numbered;
use pipeline::Pipeline;
use sentencepiece::{SentencePiece, Skip};
use std::path::Path;

/// A tokenizer of any kind.
#[derive(Debug)]
pub struct Tokenizer {
    kind: Kind,
    /// What stands beside it and says more about it, to us or to other programs: kept, and saved with it.
    beside: Vec<(&'static str, Vec<u8>)>,
}

#[derive(Debug)]
enum Kind {
    SentencePiece(Box<SentencePiece>),
    Marian(Marian),
    Numbered(Box<Numbered>),
    Pipeline(Pipeline),
}

/// The side of a translation. Only Marian folders tell them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// What is translated.
    Source,
    /// What comes out.
    Target,
}

/// The names of all files that a tokenizer is saved in or that are read with it.
pub const FILE_NAMES: [&str; 12] = [
    "source.spm",
    "target.spm",
    "vocab.json",
    "target_vocab.json",
    "tokenizer.json",
    "tokenizer.model",
    "spiece.model",
    "sentencepiece.bpe.model",
    "merges.txt",
    "vocab.txt",
    "tokenizer_config.json",
    "special_tokens_map.json",
];

const MISSING: &str =
    "no such file or folder; a tokenizer is a folder or a file (tokenizer.json, .model, .spm, vocab.txt)";

impl Tokenizer {
    /// Loads a folder or a file.
    ///
    /// In a folder, the first of these that is there: `source.spm` with `target.spm` and `vocab.json`
    /// (Marian); `tokenizer.json`; the pieces of a T5, mBART-50, M2M-100 or NLLB; the only `.model` or `.spm` file (SentencePiece, XLM-R); `vocab.json` with
    /// `merges.txt` (GPT-2, RoBERTa); `vocab.txt` (BERT).
    pub fn load(path: impl AsRef<Path>) -> Result<Tokenizer, Error> {
        let path = path.as_ref();
        let Some(found) = files::metadata(path)? else {
            return Err(Error::Format { path: path.to_owned(), problem: MISSING.to_owned() });
        };
        let kind = if found.is_dir() { load_folder(path)? } else { load_file(path)? };
        let folder = if found.is_dir() { path } else { path.parent().unwrap_or(path) };
        let vocabulary: &[&'static str] = match &kind {
            Kind::SentencePiece(_) | Kind::Numbered(_) => &[],
            Kind::Marian(_) => &["tokenizer.json"],
            Kind::Pipeline(_) => &["vocab.json", "merges.txt", "vocab.txt"],
        };
        let mut beside = Vec::new();
        for &name in ["tokenizer_config.json", "special_tokens_map.json"].iter().chain(vocabulary) {
            let file = folder.join(name);
            if files::is_file(&file)? {
                beside.push((name, files::read(&file)?));
            }
        }
        Ok(Tokenizer { kind, beside })
    }

    /// Reads special tokens that are written in a text, such as `<pad>`, as text: who writes one in a text to translate, or to
    /// learn from, does not mean the token. A language token such as `>>fra<<` at the beginning stays one.
    pub fn special_tokens_as_text(mut self) -> Tokenizer {
        match &mut self.kind {
            // What is special in these models is never found in a text.
            Kind::SentencePiece(_) => {}
            Kind::Marian(marian) => marian.read_special_as_text(),
            Kind::Numbered(numbered) => numbered.read_special_as_text(),
            Kind::Pipeline(pipeline) => pipeline.read_special_as_text(),
        }
        self
    }

    /// Reads special tokens that are written in a text as text, all but the mask (`[MASK]`): whoever writes that asks what belongs
    /// there.
    pub fn special_tokens_but_mask_as_text(mut self) -> Result<Tokenizer, Error> {
        match &mut self.kind {
            Kind::Pipeline(pipeline) => pipeline.read_special_but_mask_as_text()?,
            Kind::SentencePiece(_) | Kind::Marian(_) | Kind::Numbered(_) => {
                return Ok(self.special_tokens_as_text());
            }
        }
        Ok(self)
    }

    /// Saves it into a folder, under the names that [`Tokenizer::load`] looks for. A tokenizer with the same
    /// files is replaced; one with others is refused, because they would be taken for this one's.
    pub fn save(&self, folder: impl AsRef<Path>) -> Result<(), Error> {
        let folder = folder.as_ref();
        let mut files = match &self.kind {
            Kind::SentencePiece(model) => vec![("tokenizer.model", model.bytes().to_vec())],
            Kind::Marian(marian) => marian.files(),
            Kind::Numbered(numbered) => numbered.files(),
            Kind::Pipeline(pipeline) => vec![("tokenizer.json", pipeline.json()?)],
        };
        files.extend(self.beside.iter().cloned());
        for other in FILE_NAMES.iter().filter(|name| files.iter().all(|(own, _)| own != *name)) {
            let path = folder.join(other);
            if files::metadata(&path)?.is_some() {
                return Err(Error::OtherTokenizer { path });
            }
        }
        files::create_folder(folder)?;
        files::write_all(folder, &files)
    }

    /// The ids of a text, with the special tokens that the tokenizer's own library puts around it: `</s>` at
    /// the end for Marian, `[CLS]` and `[SEP]` for BERT, what `tokenizer.json` says, nothing for
    /// SentencePiece and GPT-2.
    pub fn encode(&self, text: &str, side: Side) -> Result<Vec<u32>, Error> {
        self.encode_skipping(text, side, None)
    }

    /// The tokens of one text, two texts or a list of words, with token types and where each comes from, in the template of the
    /// tokenizer. If there are more than `limit`, tokens at the end of the longer text are cut off, and counted in
    /// [`Encoding::cut`]; if the template alone fills the limit, that is an error. SentencePiece models and Marian folders have no
    /// template, which is an error too.
    pub fn encode_input(&self, input: Input<'_>, limit: Option<usize>) -> Result<Encoding, Error> {
        match &self.kind {
            Kind::Pipeline(pipeline) => pipeline.encode_input(input, limit),
            Kind::SentencePiece(_) | Kind::Marian(_) | Kind::Numbered(_) => {
                Err(Error::NoTemplate { kind: self.description() })
            }
        }
    }

    /// What [`Tokenizer::encode`] gives if `skip`, asked at each merge, skips some: BPE-dropout, by which a model
    /// sees a word cut in many ways while it learns. A tokenizer that does not merge
    /// ([`Tokenizer::merges`]) never asks.
    pub fn encode_with_dropout(
        &self,
        text: &str,
        side: Side,
        mut skip: impl FnMut() -> bool,
    ) -> Result<Vec<u32>, Error> {
        self.encode_skipping(text, side, Some(&mut skip))
    }

    /// Whether it can skip merges: SentencePiece's BPE can, alone or in a Marian folder.
    pub fn merges(&self) -> bool {
        match &self.kind {
            Kind::SentencePiece(model) => model.merges(),
            Kind::Marian(marian) => marian.merges(),
            Kind::Numbered(numbered) => numbered.merges(),
            Kind::Pipeline(_) => false,
        }
    }

    fn encode_skipping(&self, text: &str, side: Side, skip: Skip<'_>) -> Result<Vec<u32>, Error> {
        match &self.kind {
            Kind::SentencePiece(model) => Ok(model.encode(text, skip)),
            Kind::Marian(marian) => {
                let mut ids = marian.encode(text, side, skip);
                ids.extend(self.special(side).eos);
                Ok(ids)
            }
            Kind::Numbered(numbered) => Ok(numbered.encode(text, true, skip)),
            Kind::Pipeline(pipeline) => pipeline.encode(text, true),
        }
    }

    /// The ids of a text, and nothing else.
    pub fn encode_plain(&self, text: &str, side: Side) -> Result<Vec<u32>, Error> {
        match &self.kind {
            Kind::SentencePiece(model) => Ok(model.encode(text, None)),
            Kind::Marian(marian) => Ok(marian.encode(text, side, None)),
            Kind::Numbered(numbered) => Ok(numbered.encode(text, false, None)),
            Kind::Pipeline(pipeline) => pipeline.encode(text, false),
        }
    }

    /// What [`Tokenizer::encode`] gives, as pieces of text. Where the ids have `<unk>`, SentencePiece and
    /// Marian give the text that is unknown.
    pub fn encode_pieces(&self, text: &str, side: Side) -> Result<Vec<String>, Error> {
        match &self.kind {
            Kind::SentencePiece(model) => Ok(model.encode_pieces(text)),
            Kind::Marian(marian) => {
                let mut pieces = marian.encode_pieces(text, side);
                pieces.extend(self.special(side).eos.and_then(|id| self.piece(id, side)));
                Ok(pieces)
            }
            Kind::Numbered(numbered) => Ok(numbered.encode_pieces(text)),
            Kind::Pipeline(pipeline) => pipeline.encode_pieces(text),
        }
    }

    /// The text of ids, of the target side where there are two. Special tokens are left out; what was unknown
    /// is `⁇` in SentencePiece and nothing in Marian.
    pub fn decode(&self, ids: &[u32]) -> Result<String, Error> {
        let unknown = |id| Error::Id { id, size: self.vocabulary_size(Side::Target) };
        match &self.kind {
            Kind::SentencePiece(model) => {
                let pieces = ids.iter().map(|&id| model.piece(id).ok_or_else(|| unknown(id)));
                Ok(model.decode(pieces.collect::<Result<Vec<&str>, Error>>()?))
            }
            Kind::Marian(marian) => {
                let vocabulary = marian.vocabulary(Side::Target);
                let tokens = ids.iter().map(|&id| vocabulary.token(id).ok_or_else(|| unknown(id)));
                Ok(marian.decode(tokens.collect::<Result<Vec<&str>, Error>>()?))
            }
            Kind::Numbered(numbered) => {
                let tokens = ids.iter().map(|&id| numbered.piece(id).ok_or_else(|| unknown(id)));
                Ok(numbered.decode(tokens.collect::<Result<Vec<&str>, Error>>()?))
            }
            Kind::Pipeline(pipeline) => match ids.iter().find(|&&id| pipeline.piece(id).is_none()) {
                Some(&id) => Err(unknown(id)),
                None => pipeline.decode(ids),
            },
        }
    }

    /// The text of pieces. SentencePiece and Marian take what is no piece as text.
    pub fn decode_pieces(&self, pieces: &[&str]) -> Result<String, Error> {
        match &self.kind {
            Kind::SentencePiece(model) => Ok(model.decode(pieces.iter().copied())),
            Kind::Marian(marian) => Ok(marian.decode(pieces.iter().copied())),
            Kind::Numbered(numbered) => Ok(numbered.decode(pieces.iter().copied())),
            Kind::Pipeline(pipeline) => {
                let missing = |piece: &str| Error::Pipeline(format!("`{piece}` is not in the vocabulary"));
                let ids = pieces.iter().map(|piece| pipeline.id(piece).ok_or_else(|| missing(piece)));
                pipeline.decode(&ids.collect::<Result<Vec<u32>, Error>>()?)
            }
        }
    }

    /// The piece that an id stands for.
    pub fn piece(&self, id: u32, side: Side) -> Option<String> {
        match &self.kind {
            Kind::SentencePiece(model) => model.piece(id).map(str::to_owned),
            Kind::Marian(marian) => marian.vocabulary(side).token(id).map(str::to_owned),
            Kind::Numbered(numbered) => numbered.piece(id).map(str::to_owned),
            Kind::Pipeline(pipeline) => pipeline.piece(id),
        }
    }

    /// The piece that an id stands for, as people read it: characters in the place of the letters for bytes that byte-level tokenizers
    /// write. A space is `▁`.
    pub fn readable(&self, id: u32, side: Side) -> Option<String> {
        let piece = self.piece(id, side)?;
        match &self.kind {
            Kind::Pipeline(pipeline) if pipeline.writes_bytes(id) => Some(readable::readable(&piece)),
            _ => Some(piece),
        }
    }

    /// The ids of tokens that are not text.
    pub fn special(&self, side: Side) -> Special {
        match &self.kind {
            Kind::SentencePiece(model) => model.special(),
            Kind::Marian(marian) => marian.vocabulary(side).special(),
            Kind::Numbered(numbered) => numbered.special(),
            Kind::Pipeline(pipeline) => pipeline.special(),
        }
    }

    /// The ids of all tokens that are not text, languages among them.
    pub fn special_ids(&self) -> Vec<u32> {
        let Special { bos, eos, pad, unk } = self.special(Side::Source);
        match &self.kind {
            Kind::SentencePiece(_) | Kind::Marian(_) => [bos, eos, pad, unk].into_iter().flatten().collect(),
            Kind::Numbered(numbered) => numbered.special_ids(),
            Kind::Pipeline(pipeline) => pipeline.special_ids(),
        }
    }

    /// The id of the mask, `[MASK]` for BERT, if there is one.
    pub fn mask(&self) -> Option<u32> {
        match &self.kind {
            Kind::Pipeline(pipeline) => pipeline.mask(),
            Kind::SentencePiece(_) | Kind::Marian(_) | Kind::Numbered(_) => None,
        }
    }

    /// What it is, in a few words.
    pub fn description(&self) -> &'static str {
        match &self.kind {
            Kind::SentencePiece(_) | Kind::Numbered(_) => "a SentencePiece model",
            Kind::Marian(_) => "a Marian folder of SentencePiece models",
            Kind::Pipeline(_) => "a Hugging Face tokenizer",
        }
    }

    /// How many ids there are.
    pub fn vocabulary_size(&self, side: Side) -> usize {
        match &self.kind {
            Kind::SentencePiece(model) => model.len(),
            Kind::Marian(marian) => marian.vocabulary(side).len(),
            Kind::Numbered(numbered) => numbered.len(),
            Kind::Pipeline(pipeline) => pipeline.len(),
        }
    }
}

fn load_folder(folder: &Path) -> Result<Kind, Error> {
    let [json, vocab, merges, words] =
        ["tokenizer.json", "vocab.json", "merges.txt", "vocab.txt"].map(|name| folder.join(name));
    if Marian::is_in(folder)? {
        return Marian::load(folder).map(Kind::Marian);
    }
    if files::is_file(&json)? {
        return Pipeline::load(&json).map(Kind::Pipeline);
    }
    if let Some(numbered) = Numbered::load(folder)? {
        return Ok(Kind::Numbered(Box::new(numbered)));
    }
    if let [model] = &sentencepiece_files(folder)?[..] {
        return Ok(match Pipeline::load_sentencepiece(model)? {
            Some(pipeline) => Kind::Pipeline(pipeline),
            None => Kind::SentencePiece(Box::new(SentencePiece::load(model)?)),
        });
    }
    if files::is_file(&vocab)? && files::is_file(&merges)? {
        return Pipeline::load_byte_pairs(&vocab, &merges).map(Kind::Pipeline);
    }
    if files::is_file(&words)? {
        return Pipeline::load_bert(&words).map(Kind::Pipeline);
    }
    if Marian::has_pieces(folder)? {
        return Err(Error::Incomplete { path: vocab });
    }
    Err(Error::NoTokenizer { path: folder.to_owned() })
}

fn load_file(path: &Path) -> Result<Kind, Error> {
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("json") => Pipeline::load(path).map(Kind::Pipeline),
        Some("txt") => Pipeline::load_bert(path).map(Kind::Pipeline),
        _ => SentencePiece::load(path).map(|model| Kind::SentencePiece(Box::new(model))),
    }
}

fn sentencepiece_files(folder: &Path) -> Result<Vec<std::path::PathBuf>, Error> {
    let failed = |source| Error::File { path: folder.to_owned(), source };
    let paths = std::fs::read_dir(folder).map_err(failed)?.map(|entry| Ok(entry.map_err(failed)?.path()));
    let paths = paths.collect::<Result<Vec<_>, Error>>()?;
    let ending = |path: &Path| path.extension().is_some_and(|ending| ending == "model" || ending == "spm");
    Ok(paths.into_iter().filter(|path| ending(path)).collect())
}
