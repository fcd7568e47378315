//! A trained model as `tokenizer.json`, for programs that read nothing else.
//!
//! Ids and pieces are the same. Normalisation is the crate's NFKC, which composes and reorders marks that the
//! rules of a SentencePiece model leave as they are (see [`super::charsmap`]), and its Unigram sums in f64, so
//! that ways which cost the same are told apart otherwise; on such text, and only there, ids can differ. Merges
//! are pairs here and pieces there: for each piece all pairs that make it are listed.

use super::super::bert::added;
use super::super::sentencepiece::SPACE;
use super::Kind;
use super::model::Model;
use serde_json::{Value, json};
use std::collections::HashSet;

/// The `tokenizer.json` of a model.
pub(super) fn of(model: &Model) -> Value {
    let tokens = model.tokens();
    let vocabulary: Value = tokens.iter().zip(0u32..).map(|(token, id)| (token.clone(), json!(id))).collect();
    let mut added = added(&vocabulary, &["</s>", "<unk>", "<pad>"]);
    // Spaces beside a language token are no part of the text, as Marian has it.
    added.extend(model.languages.iter().map(|token| {
        json!({"id": vocabulary[token], "content": token, "single_word": false, "lstrip": true, "rstrip": true,
               "normalized": false, "special": true})
    }));
    added.sort_by_key(|token| token["id"].as_u64());
    let spaces =
        json!({"type": "Metaspace", "replacement": SPACE, "prepend_scheme": "always", "split": true});
    let text = |id: &str| json!({"Sequence": {"id": id, "type_id": 0}});
    let end = json!({"SpecialToken": {"id": "</s>", "type_id": 0}});
    json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": added,
        "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "Nmt"},
            {"type": "NFKC"},
            {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "},
            {"type": "Strip", "strip_left": true, "strip_right": true},
        ]},
        "pre_tokenizer": spaces,
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [text("A"), end],
            "pair": [text("A"), text("B"), end],
            "special_tokens": {"</s>": {"id": "</s>", "ids": [0], "tokens": ["</s>"]}},
        },
        "decoder": spaces,
        "model": if model.kind == Kind::Unigram { unigram(model) } else { bpe(model, vocabulary) },
    })
}

fn bpe(model: &Model, vocabulary: Value) -> Value {
    let known: HashSet<&str> = model.pieces.iter().map(|(piece, _)| piece.as_str()).collect();
    let mut merges = Vec::new();
    for (piece, _) in &model.pieces {
        for (at, _) in piece.char_indices().skip(1) {
            let (left, right) = piece.split_at(at);
            if known.contains(left) && known.contains(right) {
                merges.push(json!([left, right]));
            }
        }
    }
    json!({"type": "BPE", "unk_token": "<unk>", "fuse_unk": true, "vocab": vocabulary, "merges": merges})
}

fn unigram(model: &Model) -> Value {
    let piece = |(piece, score): &(String, f32)| json!([piece, f64::from(*score)]);
    let mut vocabulary = vec![json!(["</s>", 0.0]), json!(["<unk>", 0.0])];
    vocabulary.extend(model.pieces.iter().map(piece));
    vocabulary.extend(model.languages.iter().map(|token| json!([token, 0.0])));
    vocabulary.push(json!(["<pad>", 0.0]));
    json!({"type": "Unigram", "unk_id": 1, "vocab": vocabulary, "byte_fallback": false})
}
