//! BERT's tokenizer: `vocab.txt` and `tokenizer_config.json` are converted to an equivalent `tokenizer.json`.
//!
//! ```text
//! text ─► special tokens stay whole ─► clean, space CJK, strip accents, lowercase ─► words and punctuation ─► pieces
//! ```

use super::names::Names;
use serde_json::{Value, json};
use std::collections::HashSet;
use tokenizers::normalizers::{BertNormalizer, NormalizerWrapper};

/// The tokens of `vocab.txt` with their ids, which are the numbers of their lines. Of a token that stands there twice, the last
/// line counts, as in transformers.
pub(super) fn vocabulary(text: &str, most: u32) -> Result<Value, String> {
    if text.lines().count() > most as usize {
        return Err(format!("there are more than {most} lines, and each is a token"));
    }
    Ok(text.lines().zip(0u32..).map(|(token, id)| (token.to_owned(), json!(id))).collect())
}

/// BERT's pipeline over a vocabulary, as JSON.
pub(crate) fn pipeline(vocabulary: &Value, names: &Names, lowercase: bool) -> Result<Value, String> {
    let name = |name: &Option<String>, usual: &str| name.clone().unwrap_or_else(|| usual.to_owned());
    let (unk, cls, sep) = (name(&names.unk, "[UNK]"), name(&names.cls, "[CLS]"), name(&names.sep, "[SEP]"));
    let (pad, mask) = (name(&names.pad, "[PAD]"), name(&names.mask, "[MASK]"));
    let id = |token: &str| vocabulary[token].as_u64().ok_or_else(|| format!("`{token}` is missing"));
    let (cls_id, sep_id) = (id(&cls)?, id(&sep)?);
    id(&unk)?;
    let mut tokens = added(vocabulary, &[&pad, &unk, &cls, &sep, &mask]);
    add_configured(&mut tokens, vocabulary, &names.config)?;
    Ok(json!({
        "version": "1.0",
        "added_tokens": tokens,
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

/// Adds what `tokenizer_config.json` lists under `added_tokens_decoder`: tokens that came after the vocabulary was made, or the
/// special ones once more. New ids must follow those of the vocabulary without a gap: others could not be given to them.
fn add_configured(added: &mut Vec<Value>, vocabulary: &Value, config: &Value) -> Result<(), String> {
    let Some(list) = config["added_tokens_decoder"].as_object() else { return Ok(()) };
    let mut tokens: Vec<(u64, &str, &Value)> = Vec::with_capacity(list.len());
    for (id, token) in list {
        let content = token["content"].as_str().filter(|content| !content.is_empty());
        let (Ok(number), Some(content)) = (id.parse(), content) else {
            let id = id.escape_debug();
            return Err(format!(
                "`added_tokens_decoder` of tokenizer_config.json has a broken token under `{id}`"
            ));
        };
        tokens.push((number, content, token));
    }
    tokens.sort_by_key(|(id, ..)| *id);
    let configured: HashSet<&str> = tokens.iter().map(|(_, content, _)| *content).collect();
    added.retain(|token| token["content"].as_str().is_none_or(|content| !configured.contains(content)));
    let mut next = vocabulary.as_object().map_or(0, serde_json::Map::len) as u64;
    for (id, content, token) in tokens {
        let expected = vocabulary[content].as_u64().unwrap_or(next);
        if id != expected {
            return Err(format!(
                "tokenizer_config.json gives `{}` the id {id}, but with this vocabulary it has the id {expected}",
                content.escape_debug()
            ));
        }
        next += u64::from(vocabulary.get(content).is_none());
        let flag = |key: &str, usual: bool| token[key].as_bool().unwrap_or(usual);
        let special = flag("special", false);
        added.push(json!({
            "id": id, "content": content, "single_word": flag("single_word", false), "lstrip": flag("lstrip", false),
            "rstrip": flag("rstrip", false), "normalized": flag("normalized", !special), "special": special,
        }));
    }
    added.sort_by_key(|token| token["id"].as_u64());
    Ok(())
}

/// The normalizer that transformers uses, if it is not the one of `tokenizer.json`: its tokenizers of BERT's kind do what
/// `tokenizer_config.json` says. What that file leaves open stays as it is.
pub(super) fn normalizer(found: Option<&NormalizerWrapper>, names: &Names) -> Option<NormalizerWrapper> {
    let Some(NormalizerWrapper::BertNormalizer(found)) = found else { return None };
    // These classes take a tokenizer.json as it is.
    let class = names.config["tokenizer_class"].as_str();
    if class.is_some_and(|class| class == "PreTrainedTokenizerFast" || class == "TokenizersBackend") {
        return None;
    }
    let chinese = names.flag("tokenize_chinese_chars", found.handle_chinese_chars);
    let lowercase = names.flag("do_lower_case", found.lowercase);
    let strip_accents = match names.config.get("strip_accents") {
        Some(value) => value.as_bool(),
        None => found.strip_accents,
    };
    let before = (found.handle_chinese_chars, found.strip_accents, found.lowercase);
    if before == (chinese, strip_accents, lowercase) {
        return None;
    }
    Some(BertNormalizer::new(found.clean_text, chinese, strip_accents, lowercase).into())
}
