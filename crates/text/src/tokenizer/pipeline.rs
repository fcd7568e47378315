//! Tokenizers of the `tokenizers` crate: `tokenizer.json`, `vocab.json` with `merges.txt` of GPT-2, RoBERTa and DeBERTa, BERT's
//! `vocab.txt`.
//!
//! The older two are converted to an equivalent `tokenizer.json`. Truncation and padding
//! that a `tokenizer.json` asks for are left out: how long a text may be is the model's affair, and batches
//! have no padding.
//!
//! A file may come from anywhere. If the crate would panic on it, or allocate all memory, that is an error here.

use super::bert;
use super::bounds::refuse_bombs;
use super::deberta;
use super::encoding::{Encoding, Input, Source};
use super::error::Error;
use super::files;
use super::gpt1;
use super::gpt2;
use super::guard::guarded;
use super::marian;
use super::names::Names;
use super::roberta;
use super::special::Special;
use super::templated;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::path::Path;
use tokenizers::Tokenizer as Tokens;
use tokenizers::decoders::DecoderWrapper;

/// A pipeline of the `tokenizers` crate.
#[derive(Debug)]
pub(crate) struct Pipeline {
    tokens: Box<Tokens>,
    special: Special,
    mask: Option<u32>,
    /// How many ids there are, those included that no token has.
    size: usize,
    /// Whether a text that is too long loses its beginning.
    cuts_left: bool,
    /// Tokens that no text has, if those that are written in a text are to be text.
    never_text: Option<HashSet<u32>>,
}

impl Pipeline {
    /// `tokenizer.json`, whatever its name.
    pub(crate) fn load(path: &Path) -> Result<Pipeline, Error> {
        let text = files::read_text(path)?;
        Pipeline::new(&text, &Names::load(path)?).map_err(|problem| Error::format(path, problem))
    }

    /// `vocab.json` and `merges.txt`: byte pairs of UTF-8 bytes as in GPT-2, RoBERTa and DeBERTa, or of characters as in GPT-1.
    pub(crate) fn load_byte_pairs(vocab: &Path, merges: &Path) -> Result<Pipeline, Error> {
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
        if let Some(json) = gpt1::pipeline(&vocabulary, &pairs, &names) {
            return Pipeline::new(&json.to_string(), &names).map_err(|problem| Error::format(vocab, problem));
        }
        let end = names.eos.as_deref().unwrap_or(gpt2::END);
        let mut json = gpt2::pipeline(&vocabulary, pairs, end, names.flag("add_prefix_space", false));
        let template =
            roberta::template(&vocabulary, &names).or_else(|| deberta::byte_pairs(&vocabulary, &names));
        if let Some((added, post_processor)) = template {
            (json["added_tokens"], json["post_processor"]) = (added.into(), post_processor);
        }
        Pipeline::new(&json.to_string(), &names).map_err(|problem| Error::format(vocab, problem))
    }

    /// The SentencePiece model of an encoder; none if the file is that of another model.
    pub(crate) fn load_sentencepiece(path: &Path) -> Result<Option<Pipeline>, Error> {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let names = Names::load(path)?;
        let json = templated::pipeline(name, &files::read(path)?, &names);
        let pipeline =
            json.and_then(|json| json.map(|json| Pipeline::new(&json.to_string(), &names)).transpose());
        pipeline.map_err(|problem| Error::format(path, problem))
    }

    /// BERT's `vocab.txt`: words cut into the longest pieces from the left.
    pub(crate) fn load_bert(vocab: &Path) -> Result<Pipeline, Error> {
        let names = Names::load(vocab)?;
        let text = files::read_text(vocab)?;
        let lowercase = names.flag("do_lower_case", true);
        let json = bert::vocabulary(&text, MOST_IDS)
            .and_then(|vocabulary| bert::pipeline(&vocabulary, &names, lowercase));
        let pipeline = json.and_then(|json| Pipeline::new(&json.to_string(), &names));
        pipeline.map_err(|problem| Error::format(vocab, problem))
    }

    /// The pipeline of a `tokenizer.json`.
    pub(crate) fn new(json: &str, names: &Names) -> Result<Pipeline, String> {
        refuse_bombs(json)?;
        let read = || -> Result<Tokens, tokenizers::Error> {
            let mut tokens: Tokens = json.parse()?;
            tokens.with_padding(None);
            tokens.with_truncation(None)?;
            if let Some(normalizer) = bert::normalizer(tokens.get_normalizer(), names) {
                tokens.with_normalizer(Some(normalizer))?;
            }
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
        let mask = id(&names.mask, &["[MASK]", "<mask>"]);
        let cuts_left = names.config["truncation_side"] == "left";
        Ok(Pipeline { tokens: Box::new(tokens), special, mask, size, cuts_left, never_text: None })
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

    /// Reads special tokens that are written in a text as text, but the mask as the mask.
    pub(crate) fn read_special_but_mask_as_text(&mut self) -> Result<(), Error> {
        if let Some(mask) = self.mask {
            // The crate reads all special tokens as text or none. A mask that is not special to it is found in any case.
            let wrong = |error: serde_json::Error| Error::Pipeline(error.to_string());
            let mut json: Value = serde_json::from_slice(&self.json()?).map_err(wrong)?;
            let content = self.piece(mask).unwrap_or_default();
            let token = json!({"id": mask, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
                               "normalized": false, "special": false});
            if let Some(added) = json["added_tokens"].as_array_mut() {
                match added.iter_mut().find(|token| token["id"] == mask) {
                    Some(token) => token["special"] = json!(false),
                    None => added.push(token),
                }
            }
            let tokens = guarded(|| json.to_string().parse::<Tokens>()).map_err(Error::Pipeline)?;
            *self.tokens = tokens.map_err(|error| Error::Pipeline(error.to_string()))?;
        }
        self.read_special_as_text();
        if let (Some(never), Some(mask)) = (&mut self.never_text, self.mask) {
            never.remove(&mask);
        }
        Ok(())
    }

    /// Its `tokenizer.json`.
    pub(crate) fn json(&self) -> Result<Vec<u8>, Error> {
        Ok(self.call(|tokens| tokens.to_string(true))?.into_bytes())
    }

    pub(crate) fn special(&self) -> Special {
        self.special
    }

    /// The ids of all special tokens, in order.
    pub(crate) fn special_ids(&self) -> Vec<u32> {
        let added = self.tokens.get_added_tokens_decoder();
        let mut ids: Vec<u32> = added.iter().filter(|(_, token)| token.special).map(|(&id, _)| id).collect();
        ids.sort_unstable();
        ids
    }

    pub(crate) fn mask(&self) -> Option<u32> {
        self.mask
    }

    pub(crate) fn len(&self) -> usize {
        self.size
    }

    pub(crate) fn piece(&self, id: u32) -> Option<String> {
        self.tokens.id_to_token(id)
    }

    /// Whether the piece of an id has a letter for each byte of its text.
    pub(crate) fn writes_bytes(&self, id: u32) -> bool {
        matches!(self.tokens.get_decoder(), Some(DecoderWrapper::ByteLevel(_)))
            && !self.tokens.get_added_vocabulary().get_added_tokens_decoder().contains_key(&id)
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

    /// The tokens of an input, at most `limit`.
    pub(crate) fn encode_input(&self, input: Input<'_>, limit: Option<usize>) -> Result<Encoding, Error> {
        let (encoded, texts) = self.call(|tokens| {
            let encoded = match input {
                Input::Text(text) => tokens.encode(text, true),
                Input::Pair(first, second) => tokens.encode((first, second), true),
                Input::Words(words) => tokens.encode(words, true),
            }?;
            let texts = encoded.get_sequence_ids();
            Ok((encoded, texts))
        })?;
        let mut encoding = Encoding::default();
        let (ids, types) = (encoded.get_ids().iter(), encoded.get_type_ids());
        let (words, spans) = (encoded.get_word_ids(), encoded.get_offsets());
        let places = encoded.get_special_tokens_mask().iter().zip(texts).zip(words).zip(spans);
        for ((&id, &type_id), (((&special, text), word), &(begin, end))) in ids.zip(types).zip(places) {
            let (text, word) = (text.unwrap_or(0).min(1), word.unwrap_or(0) as usize);
            let source = (special == 0).then(|| {
                let (begin, end) = within(input, text, word, begin, end);
                Source { text, word, begin, end }
            });
            let never = self.never_text.as_ref().filter(|never| source.is_some() && never.contains(&id));
            match never.and_then(|_| self.piece(id)) {
                Some(piece) => {
                    let characters = piece.chars().filter_map(|c| self.character(c));
                    characters.for_each(|id| encoding.push(id, type_id, source));
                }
                None => encoding.push(id, type_id, source),
            }
        }
        match limit {
            Some(limit) => encoding.cut_to(limit, self.cuts_left),
            None => Ok(encoding),
        }
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
        // A mask that is no special token to the crate is one all the same.
        let ids: Vec<u32> = ids.iter().copied().filter(|&id| Some(id) != self.mask).collect();
        let is_text = |id: &u32| {
            self.piece(*id).is_some_and(|piece| !self.tokens.get_added_vocabulary().is_special_token(&piece))
        };
        // A decoder of the crate fails where there is nothing to decode.
        if !ids.iter().any(is_text) {
            return Ok(String::new());
        }
        self.call(|tokens| tokens.decode(&ids, true))
    }

    /// What a method of the crate gives, or why it does not.
    fn call<T>(&self, method: impl FnOnce(&Tokens) -> Result<T, tokenizers::Error>) -> Result<T, Error> {
        let result = guarded(|| method(&self.tokens)).map_err(Error::Pipeline)?;
        result.map_err(|error| Error::Pipeline(error.to_string()))
    }
}

/// The bytes of a text that a token comes from, which must be whole characters: callers cut the text there.
fn within(input: Input<'_>, text: usize, word: usize, begin: usize, end: usize) -> (usize, usize) {
    let text = match input {
        Input::Text(first) => first,
        Input::Pair(first, second) => [first, second][text],
        Input::Words(words) => words.get(word).copied().unwrap_or_default(),
    };
    let begin = text.floor_char_boundary(begin);
    (begin, text.ceil_char_boundary(end.max(begin)))
}

/// The most ids that a vocabulary may have: a model has a row for each.
const MOST_IDS: u32 = 1 << 24;

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
