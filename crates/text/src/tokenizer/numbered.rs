//! A SentencePiece model as another library reads it, with tokens of that library among its pieces: T5's sentinels, the
//! languages of mBART-50, M2M-100 and NLLB.
//!
//! Such a token stands in a text as it is. What is between two of them is cut into pieces as if it were a text of its own.

use super::error::Error;
use super::files;
use super::marian;
use super::names::Names;
use super::sentencepiece::{SentencePiece, Skip};
use super::special::Special;
use serde_json::Value;
use std::collections::HashSet;
use std::path::Path;

/// The tokenizer.
#[derive(Debug)]
pub(crate) struct Numbered {
    model: SentencePiece,
    /// The files of its folder.
    files: Vec<(&'static str, Vec<u8>)>,
    /// The id of each piece of the model.
    ids: Vec<u32>,
    /// The token of each id.
    tokens: Vec<Token>,
    /// The ids of the tokens that are found in a text as they are.
    added: Vec<u32>,
    /// The bytes that these begin with, each once.
    begins: Vec<u8>,
    special: Special,
    /// What stands behind a text.
    after: Vec<u32>,
    /// Whether added tokens written in a text are text.
    added_is_text: bool,
}

/// What an id stands for.
#[derive(Debug, Clone)]
struct Token {
    text: String,
    /// Whether the model has it as a piece.
    is_piece: bool,
}

/// The file in which T5 has its pieces, and that in which fairseq's models have theirs.
const T5_FILE: &str = "spiece.model";
const FAIRSEQ_FILE: &str = "sentencepiece.bpe.model";
const VOCABULARY: &str = "vocab.json";
/// How many sentinels T5 has unless its configuration says otherwise, and the most that it may have.
const SENTINELS: u64 = 100;
const MOST_SENTINELS: u64 = 10_000;

impl Numbered {
    /// The tokenizer of a folder, if the configuration of the tokenizer or of the model says that it is one of these.
    pub(crate) fn load(folder: &Path) -> Result<Option<Numbered>, Error> {
        let [t5, fairseq, vocabulary] =
            [T5_FILE, FAIRSEQ_FILE, VOCABULARY].map(|name| files::is_file(&folder.join(name)));
        let (t5, fairseq, vocabulary) = (t5?, fairseq?, vocabulary?);
        if !t5 && !fairseq {
            return Ok(None);
        }
        let names = Names::load(&folder.join(T5_FILE))?;
        let class = names.config["tokenizer_class"].as_str().unwrap_or_default().trim_end_matches("Fast");
        let model = model_type(folder)?.unwrap_or_default();
        match (class, &model[..]) {
            ("T5Tokenizer" | "MT5Tokenizer", _) | ("", "t5" | "mt5") if t5 => {
                Numbered::load_t5(folder).map(Some)
            }
            ("M2M100Tokenizer", _) | ("", "m2m_100") if fairseq && vocabulary => {
                Numbered::load_m2m100(folder).map(Some)
            }
            ("MBart50Tokenizer" | "NllbTokenizer", _) | ("", "mbart" | "m2m_100") if fairseq => {
                Numbered::load_fairseq(folder).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// The tokenizer of mBART-50 and of NLLB: the special tokens of fairseq, the pieces, the languages and the mask.
    fn load_fairseq(folder: &Path) -> Result<Numbered, Error> {
        let model = SentencePiece::load(&folder.join(FAIRSEQ_FILE))?;
        let special = ["<s>", "<pad>", "</s>", "<unk>"].map(str::to_owned).into_iter();
        let pieces = (3..model.len() as u32).map(|id| model.piece(id).unwrap_or_default().to_owned());
        let words: Vec<String> = special.chain(pieces).collect();
        let known = words.len();
        let mask = ["<mask>".to_owned()];
        let tokens = words.into_iter().chain(languages(folder)?).chain(mask).collect();
        // The file has `<unk>`, `<s>` and `</s>` before its pieces.
        let id = |id: u32| [3, 0, 2].get(id as usize).copied().unwrap_or(id + 1);
        let ids = (0..model.len() as u32).map(id).collect();
        Ok(Numbered::fairseq(model, ids, tokens, known, Vec::new()))
    }

    /// The tokenizer of M2M-100: what `vocab.json` has, and the languages.
    fn load_m2m100(folder: &Path) -> Result<Numbered, Error> {
        let model = SentencePiece::load(&folder.join(FAIRSEQ_FILE))?;
        let path = folder.join(VOCABULARY);
        let (words, found) = marian::tokens_of(&path)?;
        if words.get(..4).is_none_or(|first| first != ["<s>", "<pad>", "</s>", "<unk>"]) {
            let problem = "the first tokens must be `<s>`, `<pad>`, `</s>` and `<unk>`";
            return Err(Error::format(&path, problem));
        }
        let id = |id| model.piece(id).and_then(|piece| found.get(piece).copied()).unwrap_or(3);
        let ids = (0..model.len() as u32).map(id).collect();
        let known = words.len();
        let tokens = words.into_iter().chain(languages(folder)?).collect();
        let vocabulary = vec![(VOCABULARY, files::read(&path)?)];
        Ok(Numbered::fairseq(model, ids, tokens, known, vocabulary))
    }

    /// A model whose special tokens have the ids that fairseq gives them; `known` tokens come before the languages.
    fn fairseq(
        model: SentencePiece,
        ids: Vec<u32>,
        tokens: Vec<String>,
        known: usize,
        beside: Vec<(&'static str, Vec<u8>)>,
    ) -> Numbered {
        let token = |(id, text)| Token { text, is_piece: id < known };
        Numbered {
            files: [(FAIRSEQ_FILE, model.bytes().to_vec())].into_iter().chain(beside).collect(),
            ids,
            tokens: tokens.into_iter().enumerate().map(token).collect(),
            added: (0..4).collect(),
            begins: vec![b'<'],
            special: Special { bos: Some(0), pad: Some(1), eos: Some(2), unk: Some(3) },
            after: vec![2],
            added_is_text: false,
            model,
        }
    }

    /// The tokenizer of a T5: the pieces, and behind them the sentinels `<extra_id_0>`, `<extra_id_1>`, …, the last one first.
    fn load_t5(folder: &Path) -> Result<Numbered, Error> {
        let path = folder.join(T5_FILE);
        let (model, names) = (SentencePiece::load(&path)?, Names::load(&path)?);
        let has_own = || Ok::<_, Error>(model_type(folder)?.is_some_and(|model| model == "mt5"));
        let count = match names.config["extra_ids"].as_u64() {
            Some(count) if count > MOST_SENTINELS => {
                let problem = format!("extra_ids: must be at most {MOST_SENTINELS}, not {count}");
                return Err(Error::format(&folder.join("tokenizer_config.json"), problem));
            }
            Some(count) => count,
            // They are among its pieces.
            None if has_own()? => 0,
            None => SENTINELS,
        };
        let piece = |id| Token { text: model.piece(id).unwrap_or_default().to_owned(), is_piece: true };
        let pieces = model.len() as u32;
        let sentinel = |number| Token { text: format!("<extra_id_{number}>"), is_piece: false };
        let tokens: Vec<Token> = (0..pieces).map(piece).chain((0..count).rev().map(sentinel)).collect();
        let special = model.special();
        let own = [special.pad, special.eos, special.unk];
        Ok(Numbered {
            files: vec![(T5_FILE, model.bytes().to_vec())],
            ids: (0..pieces).collect(),
            added: own.into_iter().flatten().chain(pieces..tokens.len() as u32).collect(),
            begins: vec![b'<'],
            tokens,
            special: Special { bos: None, ..special },
            after: special.eos.into_iter().collect(),
            added_is_text: false,
            model,
        })
    }

    /// The files of its folder.
    pub(crate) fn files(&self) -> Vec<(&'static str, Vec<u8>)> {
        self.files.clone()
    }

    /// Reads added tokens that are written in a text as text.
    pub(crate) fn read_special_as_text(&mut self) {
        self.added_is_text = true;
    }

    /// Whether its pieces come from merges, which can be skipped.
    pub(crate) fn merges(&self) -> bool {
        self.model.merges()
    }

    pub(crate) fn special(&self) -> Special {
        self.special
    }

    pub(crate) fn len(&self) -> usize {
        self.tokens.len()
    }

    /// The text of a token.
    pub(crate) fn piece(&self, id: u32) -> Option<&str> {
        self.tokens.get(id as usize).map(|token| token.text.as_str())
    }

    /// The ids of the tokens that are no text.
    pub(crate) fn special_ids(&self) -> Vec<u32> {
        (0..self.tokens.len() as u32).filter(|id| self.is_added(*id) || self.added.contains(id)).collect()
    }

    /// Whether a token is none of the model's pieces.
    pub(crate) fn is_added(&self, id: u32) -> bool {
        self.tokens.get(id as usize).is_some_and(|token| !token.is_piece)
    }

    /// The ids of a text, with what stands behind a text if `special` tokens are wanted.
    pub(crate) fn encode(&self, text: &str, special: bool, mut skip: Skip<'_>) -> Vec<u32> {
        let mut ids = Vec::with_capacity(text.len() / 3 + 4);
        self.each_part(text, |part| match part {
            Part::Added(id) => ids.push(id),
            Part::Text(text) => {
                let skip: Skip<'_> = match &mut skip {
                    Some(skip) => Some(*skip),
                    None => None,
                };
                self.model.each_piece(text, skip, |id, _, _| ids.push(self.ids[id as usize]));
            }
        });
        if special {
            ids.extend(&self.after);
        }
        ids
    }

    /// The tokens of a text; what no piece covers is given as it is.
    pub(crate) fn encode_pieces(&self, text: &str) -> Vec<String> {
        let mut pieces = Vec::new();
        let token = |id: u32| self.tokens[id as usize].text.clone();
        self.each_part(text, |part| match part {
            Part::Added(id) => pieces.push(token(id)),
            Part::Text(text) => pieces.extend(self.model.encode_pieces(text)),
        });
        pieces.extend(self.after.iter().map(|&id| token(id)));
        pieces
    }

    /// The text of tokens; those that are no text are left out.
    pub(crate) fn decode<'a>(&'a self, tokens: impl IntoIterator<Item = &'a str>) -> String {
        let special: HashSet<&str> =
            self.special_ids().into_iter().map(|id| &*self.tokens[id as usize].text).collect();
        self.model.decode(tokens.into_iter().filter(|token| !special.contains(token)))
    }

    /// Cuts a text at added tokens, unless they are text; of two that begin at the same place, the longer one counts.
    fn each_part(&self, text: &str, mut part: impl FnMut(Part<'_>)) {
        let text_of = |id: &u32| &self.tokens[*id as usize].text[..];
        let (mut begin, mut at) = (0, 0);
        while let Some(byte) = text.as_bytes().get(at).filter(|_| !self.added_is_text) {
            // Tokens are whole characters, and so begin and end where characters do.
            let found = self.begins.contains(byte).then(|| {
                let stands_here = |id: &&u32| text.as_bytes()[at..].starts_with(text_of(id).as_bytes());
                self.added.iter().filter(stands_here).max_by_key(|id| text_of(id).len())
            });
            let Some(id) = found.flatten() else {
                at += 1;
                continue;
            };
            if begin < at {
                part(Part::Text(&text[begin..at]));
            }
            part(Part::Added(*id));
            at += text_of(id).len();
            begin = at;
        }
        if begin < text.len() {
            part(Part::Text(&text[begin..]));
        }
    }
}

/// A stretch of a text.
enum Part<'a> {
    Added(u32),
    Text(&'a str),
}

/// The tokens of the languages, in the order of their ids.
fn languages(folder: &Path) -> Result<Vec<String>, Error> {
    let path = folder.join("special_tokens_map.json");
    let of = |path: &Path| -> Result<Value, Error> {
        if files::is_file(path)? { files::read_json(path) } else { Ok(Value::Null) }
    };
    let (map, config) = (of(&path)?, of(&folder.join("tokenizer_config.json"))?);
    let lists = [
        &map["additional_special_tokens"],
        &config["additional_special_tokens"],
        &config["extra_special_tokens"],
    ];
    let text = |value: &Value| value.as_str().or_else(|| value["content"].as_str()).map(str::to_owned);
    let list = lists.iter().find_map(|list| list.as_array()).ok_or_else(|| {
        Error::format(&path, "additional_special_tokens is missing: it names the languages of the model")
    })?;
    // Other tokens may be listed with them.
    Ok(list.iter().filter_map(text).filter(|token| !token.starts_with('<')).collect())
}

/// The type of the model in a folder, if a file tells it.
fn model_type(folder: &Path) -> Result<Option<String>, Error> {
    let path = folder.join("config.json");
    if !files::is_file(&path)? {
        return Ok(None);
    }
    Ok(files::read_json(&path)?["model_type"].as_str().map(str::to_owned))
}
