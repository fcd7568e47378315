//! A token for each character of a text.
//!
//! `<|endoftext|>` is 0, `<unk>` 1, and the characters follow in the order of Unicode. It is a `tokenizer.json` of byte pair encoding
//! without merges, whose text is not cut into words.

use super::super::bert::added;
use super::super::error::Error;
use super::super::gpt2::END;
use super::super::names::Names;
use super::super::pipeline::Pipeline;
use super::super::{Kind, Tokenizer};
use super::words;
use serde_json::{Value, json};

const UNKNOWN: &str = "<unk>";

/// The characters that make up the share `coverage` of the text; the others are unknown.
pub(super) fn train(characters: &[(String, u64)], coverage: f64) -> Result<Tokenizer, Error> {
    let mut known = words::alphabet(characters, coverage);
    known.sort_unstable();
    let tokens = [END, UNKNOWN].map(str::to_owned).into_iter().chain(known.into_iter().map(String::from));
    let vocabulary: Value = tokens.zip(0u32..).map(|(token, id)| (token, json!(id))).collect();
    let json = json!({
        "version": "1.0",
        "added_tokens": added(&vocabulary, &[END, UNKNOWN]),
        "decoder": {"type": "Fuse"},
        "model": {"type": "BPE", "unk_token": UNKNOWN, "vocab": vocabulary, "merges": []},
    });
    let pipeline = Pipeline::new(&json.to_string(), &Names::default()).map_err(Error::Pipeline)?;
    let config = json!({
        "tokenizer_class": "PreTrainedTokenizerFast", "bos_token": END, "eos_token": END, "unk_token": UNKNOWN,
        "clean_up_tokenization_spaces": false,
    });
    let beside = vec![("tokenizer_config.json", format!("{config:#}\n").into_bytes())];
    Ok(Tokenizer { kind: Kind::Pipeline(pipeline), beside })
}
