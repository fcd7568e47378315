//! Byte pair encoding of UTF-8 bytes, as GPT-2 has it: no character is unknown, and a space belongs to the word behind it.
//!
//! The result is GPT-2's `vocab.json` and `merges.txt` with their `tokenizer.json`: the 256 bytes first, then one token for each merge, and
//! `<|endoftext|>` last.

use super::super::error::Error;
use super::super::gpt2::{self, END};
use super::super::names::Names;
use super::super::pipeline::Pipeline;
use super::super::{Kind, Tokenizer};
use super::bpe::Bpe;
use serde_json::{Value, json};

/// No token has more bytes: a word of five letters can have twenty.
const LONGEST: usize = 64;

/// Learns a vocabulary of `size` tokens from words that are written in letters for bytes.
pub(super) fn train(words: &[(String, u64)], size: usize) -> Result<Tokenizer, Error> {
    let alphabet: Vec<String> = gpt2::letters().into_iter().map(String::from).collect();
    // One more for the end.
    let least = alphabet.len() + 1;
    if size < least {
        return Err(Error::Size(format!(
            "each of 256 bytes needs a token, and so does the end of a text: the vocabulary must have at least {least} tokens, not {size}"
        )));
    }
    let merged = Bpe::new(alphabet.clone(), words.iter().map(|(word, count)| (symbols(word), *count)), "")
        .up_to(LONGEST)
        .merge_until(size - 1);
    let tokens = alphabet.into_iter().chain(merged.symbols).chain([END.to_owned()]);
    let vocabulary: Value = tokens.zip(0u32..).map(|(token, id)| (token, json!(id))).collect();
    let pairs = merged.pairs.iter().map(|pair| json!(pair)).collect();
    let json = gpt2::pipeline(&vocabulary, pairs, END, false).to_string();
    let pipeline = Pipeline::new(&json, &Names::default()).map_err(Error::Pipeline)?;
    let lines = merged.pairs.iter().map(|[left, right]| format!("{left} {right}\n"));
    let merges: String = ["#version: 0.2\n".to_owned()].into_iter().chain(lines).collect();
    let config = json!({
        "tokenizer_class": "GPT2Tokenizer", "add_prefix_space": false, "bos_token": END, "eos_token": END, "unk_token": END,
    });
    let beside = vec![
        ("vocab.json", vocabulary.to_string().into_bytes()),
        ("merges.txt", merges.into_bytes()),
        ("tokenizer_config.json", format!("{config:#}\n").into_bytes()),
    ];
    Ok(Tokenizer { kind: Kind::Pipeline(pipeline), beside })
}

/// The letters of a word.
fn symbols(word: &str) -> Vec<&str> {
    word.char_indices().map(|(at, letter)| &word[at..at + letter.len_utf8()]).collect()
}
