//! Tokenizers of the `tokenizers` crate: `tokenizer.json`, GPT-2's `vocab.json` with `merges.txt`, BERT's
//! `vocab.txt`.
//!
//! The older two are told to the crate as the `tokenizer.json` that they would be. Truncation and padding
//! that a `tokenizer.json` asks for are left out: how long a text may be is the model's affair, and batches
//! have no padding.
//!
//! A file may be anybody's. What the crate would panic on, or take all memory for, is an error here.

use super::error::Error;
use super::files;
use super::guard::guarded;
use super::marian;
use super::special::Special;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::path::Path;
use tokenizers::Tokenizer as Tokens;

/// A pipeline of the `tokenizers` crate.
#[derive(Debug)]
pub(crate) struct Pipeline {
    tokens: Box<Tokens>,
    special: Special,
    /// How many ids there are, those included that no token has.
    size: usize,
    /// Tokens that no text has, if those that are written in a text are to be text.
    never_text: Option<HashSet<u32>>,
}

impl Pipeline {
    /// `tokenizer.json`, whatever its name.
    pub(crate) fn load(path: &Path) -> Result<Pipeline, Error> {
        let text = files::read_text(path)?;
        Pipeline::new(&text, &Names::load(path)?).map_err(|problem| Error::format(path, problem))
    }

    /// GPT-2's `vocab.json` and `merges.txt`: byte pairs of UTF-8 bytes.
    pub(crate) fn load_gpt2(vocab: &Path, merges: &Path) -> Result<Pipeline, Error> {
        let names = Names::load(vocab)?;
        let vocabulary = files::read_json(vocab)?;
        let lines = files::read_text(merges)?;
        // Only the first line can be a comment: `#` is a byte like others.
        let lines = lines.lines().enumerate();
        let is_pair =
            |(i, line): &(usize, &str)| !line.is_empty() && (*i > 0 || !line.starts_with("#version"));
        let lines = lines.filter(is_pair);
        let pairs = lines.map(|(i, line)| {
            let pair: Vec<&str> = line.split(' ').collect();
            let problem = || {
                Error::format(merges, format!("line {}: must be two pieces with a space between them", i + 1))
            };
            if pair.len() == 2 { Ok(json!(pair)) } else { Err(problem()) }
        });
        let pairs = pairs.collect::<Result<Vec<Value>, Error>>()?;
        let end = names.eos.clone().unwrap_or_else(|| "<|endoftext|>".to_owned());
        let bytes = |prefix: bool, trim: bool| {
            let (kind, regex) = ("ByteLevel", true);
            json!({"type": kind, "add_prefix_space": prefix, "trim_offsets": trim, "use_regex": regex})
        };
        let json = json!({
            "version": "1.0",
            "added_tokens": added(&vocabulary, &[&end]),
            "pre_tokenizer": bytes(names.flag("add_prefix_space", false), true),
            "post_processor": bytes(true, false),
            "decoder": bytes(true, true),
            "model": {"type": "BPE", "vocab": vocabulary, "merges": pairs},
        });
        Pipeline::new(&json.to_string(), &names).map_err(|problem| Error::format(vocab, problem))
    }

    /// BERT's `vocab.txt`: words cut into the longest pieces from the left.
    pub(crate) fn load_bert(vocab: &Path) -> Result<Pipeline, Error> {
        let names = Names::load(vocab)?;
        let text = files::read_text(vocab)?;
        let vocabulary: Value =
            text.lines().zip(0u32..).map(|(token, id)| (token.to_owned(), json!(id))).collect();
        let lowercase = names.flag("do_lower_case", true);
        let json = bert(&vocabulary, &names, lowercase).map_err(|problem| Error::format(vocab, problem))?;
        Pipeline::new(&json.to_string(), &names).map_err(|problem| Error::format(vocab, problem))
    }

    /// The pipeline of a `tokenizer.json`.
    pub(crate) fn new(json: &str, names: &Names) -> Result<Pipeline, String> {
        refuse_bombs(json)?;
        let read = || -> Result<Tokens, tokenizers::Error> {
            let mut tokens: Tokens = json.parse()?;
            tokens.with_padding(None);
            tokens.with_truncation(None)?;
            // Some files panic only when they are used. One that does not know these words is none of them.
            let _ = tokens.encode_fast("A text.", true);
            Ok(tokens)
        };
        let tokens = guarded(read).and_then(|read| read.map_err(|error| error.to_string()));
        let tokens = tokens.map_err(|problem| format!("not a tokenizer: {problem}"))?;
        let size = size(&tokens)?;
        let id = |name: &Option<String>, usual: &[&str]| match name {
            Some(name) => tokens.token_to_id(name),
            None => usual.iter().find_map(|name| tokens.token_to_id(name)),
        };
        let special = Special {
            bos: id(&names.bos, &["<s>", "[CLS]", "<|endoftext|>"]),
            eos: id(&names.eos, &["</s>", "[SEP]", "<|endoftext|>"]),
            pad: id(&names.pad, &["<pad>", "[PAD]"]),
            unk: id(&names.unk, &["<unk>", "[UNK]"]),
        };
        Ok(Pipeline { tokens: Box::new(tokens), special, size, never_text: None })
    }

    /// Reads special tokens that are written in a text as text.
    pub(crate) fn read_special_as_text(&mut self) {
        self.tokens.set_encode_special_tokens(true);
        let added = self.tokens.get_added_tokens_decoder();
        let added = added.iter().filter(|(_, token)| token.special).map(|(&id, _)| id);
        let Special { bos, eos, pad, unk } = self.special;
        let never = added.chain(bos).chain(eos).chain(pad).filter(|&id| Some(id) != unk);
        self.never_text = Some(never.collect());
    }

    /// Its `tokenizer.json`.
    pub(crate) fn json(&self) -> Result<Vec<u8>, Error> {
        Ok(self.call(|tokens| tokens.to_string(true))?.into_bytes())
    }

    pub(crate) fn special(&self) -> Special {
        self.special
    }

    pub(crate) fn len(&self) -> usize {
        self.size
    }

    pub(crate) fn piece(&self, id: u32) -> Option<String> {
        self.tokens.id_to_token(id)
    }

    pub(crate) fn id(&self, piece: &str) -> Option<u32> {
        self.tokens.token_to_id(piece)
    }

    pub(crate) fn encode(&self, text: &str, special: bool) -> Result<Vec<u32>, Error> {
        match &self.never_text {
            Some(never) => self.encode_text(text, special, never),
            None => Ok(self.call(|tokens| tokens.encode_fast(text, special))?.get_ids().to_vec()),
        }
    }

    /// The ids of a text in which only a language token at its beginning is more than text.
    fn encode_text(&self, text: &str, special: bool, never: &HashSet<u32>) -> Result<Vec<u32>, Error> {
        let (language, rest) = marian::language(text);
        let language = language.and_then(|language| self.id(language));
        let text = if language.is_some() { rest } else { text };
        let encoding = self.call(|tokens| tokens.encode_fast(text, special))?;
        let is_around = encoding.get_special_tokens_mask();
        let mut ids = Vec::with_capacity(encoding.get_ids().len() + 1);
        for (&id, &is_around) in encoding.get_ids().iter().zip(is_around) {
            // A model may have a special token among its pieces, and find it in a text.
            match self.piece(id).filter(|_| is_around == 0 && never.contains(&id)) {
                Some(piece) => ids.extend(piece.chars().filter_map(|c| self.character(c))),
                None => ids.push(id),
            }
        }
        if let Some(language) = language {
            let begin = is_around.iter().position(|&is_around| is_around == 0).unwrap_or(0);
            ids.insert(begin, language);
        }
        Ok(ids)
    }

    /// The token that is a character, or the unknown one, if there is one.
    fn character(&self, character: char) -> Option<u32> {
        self.id(character.encode_utf8(&mut [0; 4])).or(self.special.unk)
    }

    pub(crate) fn encode_pieces(&self, text: &str) -> Result<Vec<String>, Error> {
        let ids = self.encode(text, true)?;
        Ok(ids.into_iter().filter_map(|id| self.piece(id)).collect())
    }

    /// The text of ids; special tokens are left out.
    pub(crate) fn decode(&self, ids: &[u32]) -> Result<String, Error> {
        self.call(|tokens| tokens.decode(ids, true))
    }

    /// What a method of the crate gives, or why it does not.
    fn call<T>(&self, method: impl FnOnce(&Tokens) -> Result<T, tokenizers::Error>) -> Result<T, Error> {
        let result = guarded(|| method(&self.tokens)).map_err(Error::Pipeline)?;
        result.map_err(|error| Error::Pipeline(error.to_string()))
    }
}

/// The most ids that a vocabulary may have: a model has a row for each.
const MOST_IDS: u32 = 1 << 24;
/// The most bytes that each match in a text may become.
const LONGEST_REPLACEMENT: usize = 4096;

/// One more than the greatest id.
fn size(tokens: &Tokens) -> Result<usize, String> {
    let count = tokens.get_vocab_size(true);
    if (0..count as u32).all(|id| tokens.id_to_token(id).is_some()) {
        return Ok(count);
    }
    let greatest = tokens.get_vocab(true).into_iter().max_by_key(|(_, id)| *id);
    match greatest {
        Some((token, id)) if id >= MOST_IDS => {
            Err(format!("the token `{token}` has the id {id}; ids must be below {MOST_IDS}"))
        }
        greatest => Ok(greatest.map_or(0, |(_, id)| id as usize + 1)),
    }
}

/// Refuses parts for which the crate would ask for more memory than a machine has.
fn refuse_bombs(json: &str) -> Result<(), String> {
    /// All but the model, which is as large as it is.
    #[derive(Deserialize)]
    #[serde(default)]
    #[derive(Default)]
    struct Parts {
        normalizer: Value,
        pre_tokenizer: Value,
        decoder: Value,
    }
    let parts: Parts = serde_json::from_str(json).map_err(|error| format!("not a tokenizer: {error}"))?;
    let mut rest = vec![&parts.normalizer, &parts.pre_tokenizer, &parts.decoder];
    while let Some(part) = rest.pop() {
        match part {
            Value::Array(list) => rest.extend(list),
            Value::Object(object) => {
                let text = |key: &str| object.get(key).and_then(Value::as_str);
                if text("precompiled_charsmap").is_some_and(claims_too_much) {
                    return Err("`precompiled_charsmap` is cut off".to_owned());
                }
                for key in ["content", "prepend", "replacement"] {
                    if text(key).is_some_and(|text| text.len() > LONGEST_REPLACEMENT) {
                        return Err(format!("`{key}` is longer than {LONGEST_REPLACEMENT} bytes"));
                    }
                }
                rest.extend(object.values());
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether a table of SentencePiece says that it is longer than it is. Its first four bytes, here six letters of base64, are the
/// length of its trie.
fn claims_too_much(base64: &str) -> bool {
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let value = |letter: &u8| letters.iter().position(|known| known == letter).map(|at| at as u64);
    let bits = base64.as_bytes().iter().take(6).try_fold(0, |bits, letter| Some(bits << 6 | value(letter)?));
    // What is no base64, or too short, the crate refuses itself.
    let Some(bits) = bits.filter(|_| base64.len() >= 6) else { return false };
    let length = ((bits >> 4) as u32).swap_bytes() as usize;
    length > base64.len() / 4 * 3
}

/// BERT's pipeline over a vocabulary, as JSON.
pub(crate) fn bert(vocabulary: &Value, names: &Names, lowercase: bool) -> Result<Value, String> {
    let name = |name: &Option<String>, usual: &str| name.clone().unwrap_or_else(|| usual.to_owned());
    let (unk, cls, sep) = (name(&names.unk, "[UNK]"), name(&names.cls, "[CLS]"), name(&names.sep, "[SEP]"));
    let (pad, mask) = (name(&names.pad, "[PAD]"), name(&names.mask, "[MASK]"));
    let id = |token: &str| vocabulary[token].as_u64().ok_or_else(|| format!("`{token}` is missing"));
    let (cls_id, sep_id) = (id(&cls)?, id(&sep)?);
    id(&unk)?;
    Ok(json!({
        "version": "1.0",
        "added_tokens": added(vocabulary, &[&pad, &unk, &cls, &sep, &mask]),
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": true,
            "handle_chinese_chars": names.flag("tokenize_chinese_chars", true),
            "strip_accents": names.config["strip_accents"],
            "lowercase": lowercase,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "BertProcessing", "sep": [sep, sep_id], "cls": [cls, cls_id]},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
        "model": {
            "type": "WordPiece",
            "unk_token": unk,
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": vocabulary,
        },
    }))
}

/// Special tokens as `tokenizer.json` lists them, those that the vocabulary has.
pub(crate) fn added(vocabulary: &Value, tokens: &[&str]) -> Vec<Value> {
    let present = tokens.iter().filter_map(|token| Some((token, vocabulary.get(token)?)));
    let mut added: Vec<Value> = present
        .map(|(token, id)| {
            json!({"id": id, "content": token, "single_word": false, "lstrip": false, "rstrip": false,
                   "normalized": false, "special": true})
        })
        .collect();
    added.sort_by_key(|token| token["id"].as_u64());
    added
}

/// What the files beside a tokenizer say about it: `special_tokens_map.json` and `tokenizer_config.json`.
#[derive(Debug, Default)]
pub(crate) struct Names {
    bos: Option<String>,
    eos: Option<String>,
    pad: Option<String>,
    unk: Option<String>,
    cls: Option<String>,
    sep: Option<String>,
    mask: Option<String>,
    config: Value,
}

impl Names {
    /// Reads the files beside `path`, if they are there.
    fn load(path: &Path) -> Result<Names, Error> {
        let beside = |name: &str| {
            let path = path.with_file_name(name);
            if files::is_file(&path)? { files::read_json(&path) } else { Ok(Value::Null) }
        };
        let (map, config) = (beside("special_tokens_map.json")?, beside("tokenizer_config.json")?);
        // A token stands as it is, or as an object with its text in it.
        let text = |value: &Value| value.as_str().or_else(|| value["content"].as_str()).map(str::to_owned);
        let name = |key: &str| text(&config[key]).or_else(|| text(&map[key]));
        let [bos, eos, pad, unk] = ["bos_token", "eos_token", "pad_token", "unk_token"].map(name);
        let [cls, sep, mask] = ["cls_token", "sep_token", "mask_token"].map(name);
        // BERT's texts begin with one and end with the other.
        let (bos, eos) = (bos.or_else(|| cls.clone()), eos.or_else(|| sep.clone()));
        Ok(Names { bos, eos, pad, unk, cls, sep, mask, config })
    }

    fn flag(&self, key: &str, usual: bool) -> bool {
        self.config[key].as_bool().unwrap_or(usual)
    }
}
