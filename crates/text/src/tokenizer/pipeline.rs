//! Tokenizers of the `tokenizers` crate: `tokenizer.json`, GPT-2's `vocab.json` with `merges.txt`, BERT's
//! `vocab.txt`.
//!
//! The older two are told to the crate as the `tokenizer.json` that they would be. Truncation and padding
//! that a `tokenizer.json` asks for are left out: how long a text may be is the model's affair, and batches
//! have no padding.

use super::error::Error;
use super::files;
use super::special::Special;
use serde_json::{Value, json};
use std::path::Path;
use tokenizers::Tokenizer as Tokens;

/// A pipeline of the `tokenizers` crate.
#[derive(Debug)]
pub(crate) struct Pipeline {
    tokens: Box<Tokens>,
    special: Special,
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
        let mut tokens: Tokens = json.parse().map_err(|error| format!("not a tokenizer: {error}"))?;
        tokens.with_padding(None);
        tokens.with_truncation(None).map_err(|error| error.to_string())?;
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
        Ok(Pipeline { tokens: Box::new(tokens), special })
    }

    /// Its `tokenizer.json`.
    pub(crate) fn json(&self) -> Result<Vec<u8>, Error> {
        Ok(self.tokens.to_string(true).map_err(failed)?.into_bytes())
    }

    pub(crate) fn special(&self) -> Special {
        self.special
    }

    pub(crate) fn len(&self) -> usize {
        self.tokens.get_vocab_size(true)
    }

    pub(crate) fn piece(&self, id: u32) -> Option<String> {
        self.tokens.id_to_token(id)
    }

    pub(crate) fn id(&self, piece: &str) -> Option<u32> {
        self.tokens.token_to_id(piece)
    }

    pub(crate) fn encode(&self, text: &str, special: bool) -> Result<Vec<u32>, Error> {
        Ok(self.tokens.encode_fast(text, special).map_err(failed)?.get_ids().to_vec())
    }

    pub(crate) fn encode_pieces(&self, text: &str) -> Result<Vec<String>, Error> {
        // The fast way keeps no pieces.
        Ok(self.tokens.encode(text, true).map_err(failed)?.get_tokens().to_vec())
    }

    /// The text of ids; special tokens are left out.
    pub(crate) fn decode(&self, ids: &[u32]) -> Result<String, Error> {
        self.tokens.decode(ids, true).map_err(failed)
    }
}

fn failed(error: tokenizers::Error) -> Error {
    Error::Pipeline(error.to_string())
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
            if path.is_file() { files::read_json(&path) } else { Ok(Value::Null) }
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
