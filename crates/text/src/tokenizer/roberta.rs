//! What stands around the texts of a RoBERTa, whose `vocab.json` and `merges.txt` are otherwise like those of GPT-2.
//!
//! ```text
//! one text      <s> a a a </s>
//! two texts     <s> a a a </s></s> b b </s>
//! ```

use super::bert::added;
use super::names::Names;
use serde_json::{Value, json};

/// The special tokens and the template, as `tokenizer.json` has them; none if the vocabulary is no RoBERTa's: GPT-2's has neither
/// `<mask>` nor `</s>`.
pub(super) fn template(vocabulary: &Value, names: &Names) -> Option<(Vec<Value>, Value)> {
    let name = |name: &Option<String>, usual: &str| name.clone().unwrap_or_else(|| usual.to_owned());
    let (cls, sep, mask) = (name(&names.cls, "<s>"), name(&names.sep, "</s>"), name(&names.mask, "<mask>"));
    let (pad, unk) = (name(&names.pad, "<pad>"), name(&names.unk, "<unk>"));
    let [cls_id, sep_id] = [&cls, &sep].map(|token| vocabulary[token].as_u64());
    vocabulary.get(&mask)?;
    let mut tokens = added(vocabulary, &[&cls, &pad, &sep, &unk, &mask]);
    // A mask takes the space before it, as a word does.
    for token in tokens.iter_mut().filter(|token| token["content"] == *mask) {
        token["lstrip"] = json!(true);
    }
    let post_processor = json!({
        "type": "RobertaProcessing",
        "sep": [sep, sep_id?],
        "cls": [cls, cls_id?],
        "trim_offsets": true,
        "add_prefix_space": names.flag("add_prefix_space", false),
    });
    Some((tokens, post_processor))
}
