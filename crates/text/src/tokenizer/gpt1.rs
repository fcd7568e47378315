//! GPT-1's tokenizer: `vocab.json` and `merges.txt` of byte pair encoding over lowercased words, whose last pieces end with `</w>`.

use super::bert::added;
use super::names::Names;
use serde_json::{Value, json};

const END: &str = "</w>";

/// The `tokenizer.json` that such files would be; none if no piece of the vocabulary ends a word in this way.
pub(super) fn pipeline(vocabulary: &Value, merges: &[Value], names: &Names) -> Option<Value> {
    vocabulary.as_object()?.keys().find(|piece| piece.ends_with(END) && *piece != END)?;
    let unk = names.unk.clone().unwrap_or_else(|| "<unk>".to_owned());
    Some(json!({
        "version": "1.0",
        "added_tokens": added(vocabulary, &[&unk]),
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": true,
            "handle_chinese_chars": true,
            "strip_accents": null,
            "lowercase": true,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "decoder": {"type": "BPEDecoder", "suffix": END},
        "model": {
            "type": "BPE",
            "unk_token": unk,
            "continuing_subword_prefix": "",
            "end_of_word_suffix": END,
            "fuse_unk": false,
            "vocab": vocabulary,
            "merges": merges,
        },
    }))
}
