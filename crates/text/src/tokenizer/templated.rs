//! SentencePiece models of encoders, converted to an equivalent `tokenizer.json`: the pieces are those of the file, but the ids and
//! what stands around a text are those of the library that the model was trained with.
//!
//! ```text
//! XLM-R       <s> a a a </s>         <s> a a a </s></s> b b </s>       ids of fairseq: one more than those of the file
//! DeBERTa     [CLS] a a a [SEP]      [CLS] a a a [SEP] b b [SEP]       ids of the file (`deberta.rs`)
//! ```

use super::bert::added;
use super::deberta;
use super::names::Names;
use super::sentencepiece::proto::{ModelProto, ModelType};
use prost::Message;
use serde_json::{Value, json};

/// The `tokenizer.json` of the SentencePiece model in a file of this name; none if the name, or the configuration beside it, is not
/// that of an encoder.
pub(super) fn pipeline(name: &str, bytes: &[u8], names: &Names) -> Result<Option<Value>, String> {
    let class = names.config["tokenizer_class"].as_str().unwrap_or_default();
    match (name, class.strip_suffix("Fast").unwrap_or(class)) {
        ("sentencepiece.bpe.model", "" | "XLMRobertaTokenizer") => {
            xlm_roberta(&read(bytes)?, names).map(Some)
        }
        ("spm.model", "" | "DebertaV2Tokenizer") => deberta::sentencepiece(&read(bytes)?, names).map(Some),
        _ => Ok(None),
    }
}

fn read(bytes: &[u8]) -> Result<ModelProto, String> {
    let proto = ModelProto::decode(bytes)
        .map_err(|_| "not a SentencePiece model, or an incomplete one".to_owned())?;
    match proto.trainer_spec.clone().unwrap_or_default().model_type() {
        ModelType::Unigram => Ok(proto),
        other => Err(format!("model type {other:?} is not supported for an encoder, only Unigram")),
    }
}

/// Pieces with their scores, from the one with this number on.
pub(super) fn pieces(proto: &ModelProto, first: usize) -> impl Iterator<Item = Value> {
    proto.pieces.iter().skip(first).map(|piece| json!([piece.piece(), piece.score()]))
}

/// The first four ids are fairseq's; the three special pieces of the file, which come first there, are left out.
fn xlm_roberta(proto: &ModelProto, names: &Names) -> Result<Value, String> {
    let name = |name: &Option<String>, usual: &str| name.clone().unwrap_or_else(|| usual.to_owned());
    let (cls, sep) = (name(&names.cls, "<s>"), name(&names.sep, "</s>"));
    let (pad, unk, mask) =
        (name(&names.pad, "<pad>"), name(&names.unk, "<unk>"), name(&names.mask, "<mask>"));
    let special = [&cls, &pad, &sep, &unk].map(|token| json!([token, 0.0]));
    let vocabulary: Vec<Value> =
        special.into_iter().chain(pieces(proto, 3)).chain([json!([mask, 0.0])]).collect();
    let mut ids: Value =
        [&cls, &pad, &sep, &unk].iter().zip(0..).map(|(token, id)| ((*token).clone(), json!(id))).collect();
    ids[&mask] = json!(vocabulary.len() - 1);
    let mut tokens = added(&ids, &[&cls, &pad, &sep, &unk, &mask]);
    // A mask takes the space before it, as a word does.
    for token in tokens.iter_mut().filter(|token| token["content"] == *mask) {
        token["lstrip"] = json!(true);
    }
    let charsmap = proto.normalizer_spec.as_ref().map(|spec| spec.precompiled_charsmap()).unwrap_or_default();
    let normalizer = json!({"type": "Precompiled", "precompiled_charsmap": base64(charsmap)});
    let spaces = json!({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true});
    Ok(json!({
        "version": "1.0",
        "added_tokens": tokens,
        "normalizer": if charsmap.is_empty() { Value::Null } else { normalizer },
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, spaces]},
        "post_processor": template(
            [(&cls, 0), (&sep, 2)],
            &[(&cls, 0), ("A", 0), (&sep, 0)],
            &[(&sep, 0), ("B", 0), (&sep, 0)],
        ),
        "decoder": spaces,
        "model": {"type": "Unigram", "unk_id": 3, "vocab": vocabulary, "byte_fallback": false},
    }))
}

/// What stands around texts: special tokens with their ids, the first text `A` among them, and what follows for a second text `B`. Each
/// comes with its type.
pub(super) fn template(ids: [(&str, u64); 2], single: &[(&str, u32)], further: &[(&str, u32)]) -> Value {
    let item = |&(name, kind): &(&str, u32)| {
        let place = if name == "A" || name == "B" { "Sequence" } else { "SpecialToken" };
        json!({place: {"id": name, "type_id": kind}})
    };
    let known: Value = ids
        .into_iter()
        .map(|(token, id)| (token.to_owned(), json!({"id": token, "ids": [id], "tokens": [token]})))
        .collect();
    json!({
        "type": "TemplateProcessing",
        "single": single.iter().map(item).collect::<Vec<_>>(),
        "pair": single.iter().chain(further).map(item).collect::<Vec<_>>(),
        "special_tokens": known,
    })
}

/// Bytes as `tokenizer.json` has them.
pub(super) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits =
            group.iter().chain([0, 0].iter()).take(3).fold(0, |bits, &byte| bits << 8 | u32::from(byte));
        for place in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= group.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_told_in_base64() {
        for (bytes, text) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
        assert_eq!(base64(&[0xFB, 0xFF, 0xFE]), "+//+");
    }
}
