//! GPT-2's tokenizer: byte pairs of UTF-8 bytes; `vocab.json` and `merges.txt` are converted to an equivalent `tokenizer.json`.
//!
//! ```text
//! text ─► special tokens stay whole ─► words, each with the space before it ─► bytes, each a letter ─► merges
//! ```

use super::bert::added;
use serde_json::{Value, json};

/// The token that ends a text, and begins one.
pub(crate) const END: &str = "<|endoftext|>";

/// The letter that stands for each byte: itself where it can be seen, and else one of those from `Ā` on.
pub(crate) fn letters() -> [char; 256] {
    let mut next = 256;
    std::array::from_fn(|byte| match byte as u8 {
        b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF => char::from(byte as u8),
        _ => {
            next += 1;
            char::from_u32(next - 1).expect("a letter")
        }
    })
}

/// GPT-2's pipeline over a vocabulary and its merges, as JSON; `end` is the special token, and with `prefix` a text begins with a space.
pub(crate) fn pipeline(vocabulary: &Value, merges: Vec<Value>, end: &str, prefix: bool) -> Value {
    let bytes = |prefix: bool, trim: bool| json!({"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": trim, "use_regex": true});
    json!({
        "version": "1.0",
        "added_tokens": added(vocabulary, &[end]),
        "pre_tokenizer": bytes(prefix, true),
        "post_processor": bytes(true, false),
        "decoder": bytes(true, true),
        "model": {"type": "BPE", "vocab": vocabulary, "merges": merges},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_the_letters_of_gpt2() {
        let letters = letters();
        assert_eq!(
            [b'a', b' ', b'\n', 0, 0x7F, 0xAD, 0xFF].map(|byte| letters[byte as usize]),
            ['a', 'Ġ', 'Ċ', 'Ā', 'ġ', 'Ń', 'ÿ']
        );
    }
}
