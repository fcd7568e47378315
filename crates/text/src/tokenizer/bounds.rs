//! Files for which the `tokenizers` crate would take all memory, or hours: refused before it sees them.

use serde::Deserialize;
use serde_json::Value;

/// The most bytes that each match in a text may become.
const LONGEST_REPLACEMENT: usize = 4096;
/// The most parts of a template: each may be the whole text once more.
const LONGEST_TEMPLATE: usize = 64;
/// The most characters of a word that WordPiece may look at. The time grows with the third power of it.
const LONGEST_WORD: u64 = 1000;

/// Refuses parts for which the crate would ask for more memory than a machine has.
pub(super) fn refuse_bombs(json: &str) -> Result<(), String> {
    /// All but the vocabulary, which is as large as it is.
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Parts {
        normalizer: Value,
        pre_tokenizer: Value,
        post_processor: Value,
        decoder: Value,
        model: Option<Model>,
    }
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Model {
        max_input_chars_per_word: Value,
    }
    let parts: Parts = serde_json::from_str(json).map_err(|error| format!("not a tokenizer: {error}"))?;
    let longest = parts.model.and_then(|model| model.max_input_chars_per_word.as_u64());
    if longest.is_some_and(|longest| longest > LONGEST_WORD) {
        return Err(format!("`max_input_chars_per_word` is above {LONGEST_WORD}"));
    }
    refuse_long_templates(&parts.post_processor)?;
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

/// Refuses templates that have the text in them more often than memory has room.
fn refuse_long_templates(post_processor: &Value) -> Result<(), String> {
    let mut rest = vec![post_processor];
    while let Some(part) = rest.pop() {
        match part {
            Value::Array(list) if list.len() > LONGEST_TEMPLATE => {
                return Err(format!("`post_processor` has a list of more than {LONGEST_TEMPLATE} parts"));
            }
            Value::Array(list) => rest.extend(list),
            Value::Object(object) => rest.extend(object.values()),
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
