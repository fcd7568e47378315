//! Training of tokenizers: what to learn, from which lines, and the files that come of it.
//!
//! BPE and Unigram become SentencePiece models in a Marian folder, with one vocabulary: `</s>` is 0, `<unk>`
//! 1, then the pieces, the language tokens that lines begin with (`>>fra<<`), and `<pad>` last. Where both sides share
//! their pieces, the ids of `source.spm`, `target.spm`, `vocab.json` and `tokenizer.json` are all the same. WordPiece
//! becomes BERT's `vocab.txt` with its `tokenizer.json`, byte pairs of bytes become GPT-2's `vocab.json` and `merges.txt` with theirs, and
//! characters a `tokenizer.json` alone.
//!
//! The same lines give the same bytes, in whatever order the files are given.

mod bpe;
mod byte_bpe;
mod characters;
mod charsmap;
mod json;
mod model;
mod unigram;
mod wordpiece;
mod words;

use super::error::Error;
use super::marian::{Marian, Vocabulary};
use super::sentencepiece::SentencePiece;
use super::{Kind as TokenizerKind, Side, Tokenizer};
use model::Model;
use std::io::{BufRead, BufReader, Read};
use std::num::NonZero;
use std::path::Path;
use std::sync::Arc;
use words::WordCounts;

/// What to train.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Byte pair encoding: the most frequent pair of neighbours becomes a piece, again and again.
    Bpe,
    /// A unigram language model: of many candidates those stay that explain the text best.
    Unigram,
    /// BERT's WordPiece: words apart from punctuation; pieces that continue a word begin with `##`.
    WordPiece,
    /// GPT-2's byte pair encoding of bytes, which knows every text.
    ByteBpe,
    /// A token for each character; the size of the vocabulary follows from the text.
    Characters,
}

impl Kind {
    /// Whether it becomes the vocabulary of a translator, which both sides may share.
    pub fn is_of_translators(self) -> bool {
        matches!(self, Kind::Bpe | Kind::Unigram)
    }
}

/// How much of a file is read at once.
const CHUNK: u64 = 8 << 20;

/// Learns a tokenizer from lines of text.
#[derive(Debug)]
pub struct Trainer {
    kind: Kind,
    size: usize,
    coverage: f64,
    counter: words::Counter,
    source: WordCounts,
    target: WordCounts,
    files: Vec<String>,
}

impl Trainer {
    /// A trainer for a vocabulary of `size` tokens, special ones included.
    pub fn new(kind: Kind, size: usize) -> Trainer {
        let counter = match kind {
            Kind::Bpe | Kind::Unigram => words::Counter::sentencepiece(),
            Kind::WordPiece => words::Counter::bert(),
            Kind::ByteBpe => words::Counter::gpt2(),
            Kind::Characters => words::Counter::Characters,
        };
        let (source, target) = (WordCounts::default(), WordCounts::default());
        Trainer { kind, size, coverage: 1.0, counter, source, target, files: vec![] }
    }

    /// Gives pieces to as many characters, the most frequent first, as make up this share of the text; the others are
    /// unknown to the tokenizer. All have pieces unless this is called; for scripts of thousands of characters 0.9995 is
    /// usual.
    pub fn character_coverage(self, coverage: f64) -> Trainer {
        Trainer { coverage, ..self }
    }

    /// Learns from a line.
    pub fn line(&mut self, line: &str, side: Side) {
        let words = match side {
            Side::Source => &mut self.source,
            Side::Target => &mut self.target,
        };
        self.counter.count(line, words);
    }

    /// Learns from all lines of a text, on all cores.
    pub fn text(&mut self, text: &str, side: Side) {
        let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
        let words = words::count_lines(&self.counter, text, threads);
        match side {
            Side::Source => self.source.add(words),
            Side::Target => self.target.add(words),
        }
    }

    /// Learns from all lines of a file, some megabytes at a time, on all cores.
    pub fn file(&mut self, path: &Path, side: Side) -> Result<(), Error> {
        let failed = |source| Error::File { path: path.to_owned(), source };
        let mut file = BufReader::new(std::fs::File::open(path).map_err(failed)?);
        let (mut chunk, mut lines) = (Vec::new(), 0);
        loop {
            chunk.clear();
            file.by_ref().take(CHUNK).read_to_end(&mut chunk).map_err(failed)?;
            file.read_until(b'\n', &mut chunk).map_err(failed)?;
            if chunk.is_empty() {
                break;
            }
            let newlines = |bytes: &[u8]| bytes.iter().filter(|&&byte| byte == b'\n').count();
            let text = std::str::from_utf8(&chunk).map_err(|error| {
                let line = lines + 1 + newlines(&chunk[..error.valid_up_to()]);
                Error::Utf8 { path: path.to_owned(), line }
            })?;
            self.text(text, side);
            lines += newlines(&chunk);
        }
        self.files.push(path.display().to_string());
        Ok(())
    }

    /// One tokenizer for both sides.
    pub fn joint(self) -> Result<Tokenizer, Error> {
        let mut words = self.source;
        words.add(self.target);
        if words.is_empty() {
            return Err(Error::Empty(self.files.join(", ")));
        }
        match self.kind {
            Kind::Bpe | Kind::Unigram => {
                Ok(shared(&model::train(self.kind, words, self.size, self.coverage)?))
            }
            Kind::WordPiece => wordpiece::train(&words.sorted(), self.size, self.coverage),
            Kind::ByteBpe => byte_bpe::train(&words.sorted(), self.size),
            Kind::Characters => characters::train(&words.sorted(), self.coverage),
        }
    }

    /// Pieces of its own for each side, in one vocabulary.
    pub fn separate(self) -> Result<Tokenizer, Error> {
        if !self.kind.is_of_translators() {
            return Err(Error::Size(
                "only BPE and Unigram have a vocabulary for both sides: train a tokenizer for each side instead".into(),
            ));
        }
        if self.source.is_empty() || self.target.is_empty() {
            return Err(Error::Empty(self.files.join(", ")));
        }
        let source = model::train(self.kind, self.source, self.size, self.coverage)?;
        let target = model::train(self.kind, self.target, self.size, self.coverage)?;
        // The padding stays last.
        let mut tokens = source.tokens();
        let pad = tokens.pop();
        let known: std::collections::HashSet<String> = tokens.iter().chain(&pad).cloned().collect();
        tokens.extend(target.tokens().into_iter().filter(|token| !known.contains(token)));
        tokens.extend(pad);
        let [source, target] = [source, target].map(|model| Arc::new(sentencepiece(&model)));
        let marian = marian(source, target, tokens);
        Ok(Tokenizer { kind: TokenizerKind::Marian(marian), beside: vec![config()] })
    }
}

/// A tokenizer whose pieces are known, one for both sides: a text is cut into as few of them as can be. `▁` at the beginning of a
/// piece is the space before a word. `languages` are language tokens such as `>>fra<<`. What no piece covers is unknown.
pub fn of_pieces(pieces: &[String], languages: &[String]) -> Tokenizer {
    let pieces = pieces.iter().map(|piece| (piece.clone(), -1.0)).collect();
    shared(&Model { kind: Kind::Unigram, pieces, languages: languages.to_vec() })
}

/// The tokenizer of a model that both sides share.
fn shared(model: &Model) -> Tokenizer {
    let (json, made) = std::thread::scope(|scope| {
        let json = scope.spawn(|| json::of(model).to_string().into_bytes());
        let made = Arc::new(sentencepiece(model));
        (json.join().expect("a model has a JSON"), made)
    });
    let marian = marian(Arc::clone(&made), made, model.tokens());
    Tokenizer { kind: TokenizerKind::Marian(marian), beside: vec![("tokenizer.json", json), config()] }
}

/// What transformers needs to know a Marian folder.
fn config() -> (&'static str, Vec<u8>) {
    ("tokenizer_config.json", b"{\n  \"tokenizer_class\": \"MarianTokenizer\"\n}\n".to_vec())
}

fn sentencepiece(model: &Model) -> SentencePiece {
    SentencePiece::from_bytes(model.bytes()).expect("a model that was just made")
}

fn marian(source: Arc<SentencePiece>, target: Arc<SentencePiece>, tokens: Vec<String>) -> Marian {
    let vocabulary = Arc::new(Vocabulary::new(tokens).expect("special tokens are there"));
    Marian::new(source, target, Arc::clone(&vocabulary), vocabulary)
}
