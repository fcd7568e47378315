//! WordPiece: byte pair encoding over words that are apart from punctuation; what continues a word begins
//! with `##`.
//!
//! The result is BERT's: `vocab.txt` and a `tokenizer.json`, cased, with BERT's five special tokens first.

use super::super::bert;
use super::super::error::Error;
use super::super::names::Names;
use super::super::pipeline::Pipeline;
use super::super::{Kind, Tokenizer};
use super::bpe::Bpe;
use super::words;
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashSet};

const PREFIX: &str = "##";
const SPECIAL: [&str; 5] = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"];

/// Learns a vocabulary of `size` tokens.
pub(super) fn train(words: &[(String, u64)], size: usize, coverage: f64) -> Result<Tokenizer, Error> {
    let known: HashSet<char> = words::alphabet(words, coverage).into_iter().collect();
    // A word with a character that is unknown is unknown as a whole: nothing can be learned from it.
    let words = words.iter().filter(|(word, _)| word.chars().all(|character| known.contains(&character)));
    let words: Vec<(Vec<String>, u64)> = words.map(|(word, count)| (symbols(word), *count)).collect();
    let alphabet: BTreeSet<&String> = words.iter().flat_map(|(word, _)| word).collect();
    let alphabet: Vec<String> = alphabet.into_iter().cloned().collect();
    let least = SPECIAL.len() + alphabet.len();
    if size < least {
        return Err(Error::Size(format!(
            "the text has {} different characters, counted apart at the beginning and inside of words, and each needs \
             a token: the vocabulary must have at least {least} tokens, not {size}; a lower character coverage \
             omits rare characters",
            alphabet.len()
        )));
    }
    let words = words.iter().map(|(word, count)| (word.iter().map(String::as_str).collect(), *count));
    let merged = Bpe::new(alphabet.clone(), words, PREFIX).merge_until(size - SPECIAL.len());
    let tokens: Vec<String> =
        SPECIAL.map(str::to_owned).into_iter().chain(alphabet).chain(merged.symbols).collect();
    let vocabulary: Value = tokens.iter().zip(0u32..).map(|(token, id)| (token.clone(), json!(id))).collect();
    let names = Names::default();
    let json = bert::pipeline(&vocabulary, &names, false).expect("special tokens are there");
    let pipeline = Pipeline::new(&json.to_string(), &names).map_err(Error::Pipeline)?;
    let config = json!({"tokenizer_class": "BertTokenizer", "do_lower_case": false});
    let beside = vec![
        ("vocab.txt", (tokens.join("\n") + "\n").into_bytes()),
        ("tokenizer_config.json", format!("{config:#}\n").into_bytes()),
    ];
    Ok(Tokenizer { kind: Kind::Pipeline(pipeline), beside })
}

/// The characters of a word, all but the first with the prefix.
fn symbols(word: &str) -> Vec<String> {
    let prefix = |i: usize| if i > 0 { PREFIX } else { "" };
    word.chars().enumerate().map(|(i, character)| format!("{}{character}", prefix(i))).collect()
}
