//! DeBERTa's tokenizers, converted to an equivalent `tokenizer.json`: byte pairs of the first version, SentencePiece models of the
//! later ones.
//!
//! ```text
//! one text      [CLS] a a a [SEP]
//! two texts     [CLS] a a a [SEP] b b [SEP]      types 0 0 0 0 0 1 1 1
//! ```

use super::bert::added;
use super::names::Names;
use super::sentencepiece::proto::ModelProto;
use super::templated::{base64, pieces, template};
use serde_json::{Value, json};

/// The names of the special tokens: `[CLS]`, `[SEP]`, `[PAD]`, `[UNK]`, `[MASK]`.
fn special(names: &Names) -> [String; 5] {
    let named = [&names.cls, &names.sep, &names.pad, &names.unk, &names.mask];
    let usual = ["[CLS]", "[SEP]", "[PAD]", "[UNK]", "[MASK]"];
    std::array::from_fn(|i| named[i].clone().unwrap_or_else(|| usual[i].to_owned()))
}

/// What stands around the texts of a `vocab.json` with `merges.txt`: special tokens and template; none if the vocabulary is not the first
/// DeBERTa's.
pub(super) fn byte_pairs(vocabulary: &Value, names: &Names) -> Option<(Vec<Value>, Value)> {
    let [cls, sep, pad, unk, mask] = special(names);
    vocabulary.get(&mask)?;
    let [cls_id, sep_id] = [&cls, &sep].map(|token| vocabulary[token].as_u64());
    let mut tokens = added(vocabulary, &[&pad, &cls, &sep, &unk, &mask]);
    // A mask takes the space before it, as a word does.
    for token in tokens.iter_mut().filter(|token| token["content"] == *mask) {
        token["lstrip"] = json!(true);
    }
    Some((tokens, around([&cls, &sep], [cls_id?, sep_id?])))
}

/// The pipeline of a SentencePiece model. The mask comes behind its pieces, if it is none of them.
pub(super) fn sentencepiece(proto: &ModelProto, names: &Names) -> Result<Value, String> {
    let [cls, sep, pad, unk, mask] = special(names);
    let place = |token: &str| proto.pieces.iter().position(|piece| piece.piece() == token);
    let mut ids: Value = [&cls, &sep, &pad, &unk]
        .iter()
        .filter_map(|token| Some(((*token).clone(), json!(place(token)?))))
        .collect();
    ids[&mask] = json!(place(&mask).unwrap_or(proto.pieces.len()));
    let id = |token: &str| ids[token].as_u64().ok_or_else(|| format!("`{token}` is missing"));
    let around = around([&cls, &sep], [id(&cls)?, id(&sep)?]);
    let spec = proto.normalizer_spec.clone().unwrap_or_default();
    let table = spec.precompiled_charsmap();
    let mut normalizers = vec![json!({"type": "Strip", "strip_left": true, "strip_right": true})];
    if names.flag("do_lower_case", false) {
        normalizers.insert(0, json!({"type": "Lowercase"}));
    }
    if !table.is_empty() {
        normalizers.push(json!({"type": "Precompiled", "precompiled_charsmap": base64(table)}));
    }
    normalizers.push(json!({"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}));
    let spaces = json!({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true});
    let mut cutters = vec![spaces.clone()];
    if names.flag("split_by_punct", false) {
        cutters.insert(0, json!({"type": "Punctuation", "behavior": "Isolated"}));
    }
    Ok(json!({
        "version": "1.0",
        "added_tokens": added(&ids, &[&pad, &cls, &sep, &unk, &mask]),
        "normalizer": {"type": "Sequence", "normalizers": normalizers},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": cutters},
        "post_processor": around,
        "decoder": spaces,
        "model": {
            "type": "Unigram",
            "unk_id": id(&unk)?,
            "vocab": pieces(proto, 0).collect::<Vec<_>>(),
            "byte_fallback": false,
        },
    }))
}

fn around([cls, sep]: [&str; 2], ids: [u64; 2]) -> Value {
    template([(cls, ids[0]), (sep, ids[1])], &[(cls, 0), ("A", 0), (sep, 0)], &[("B", 1), (sep, 1)])
}
