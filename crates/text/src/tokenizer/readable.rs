//! Pieces of byte-level tokenizers as people read them.
//!
//! These tokenizers write a letter for each byte of UTF-8: `ĠGrÃ¶ÃŁe` is ` Größe`. Here the bytes are characters again. A space is
//! `▁`, as in the pieces of SentencePiece; a line break and a tab are `↵` and `⇥`; a byte that is no whole character is `<0xC3>`.

use super::gpt2::letters;
use std::fmt::Write as _;

/// A piece with characters in the place of the letters for bytes; the piece itself if it has other letters.
pub(super) fn readable(piece: &str) -> String {
    let letters = letters();
    let byte = |letter: char| letters.iter().position(|known| *known == letter).map(|byte| byte as u8);
    let Some(bytes) = piece.chars().map(byte).collect::<Option<Vec<u8>>>() else { return piece.to_owned() };
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.extend(chunk.valid().chars().map(visible));
        for byte in chunk.invalid() {
            let _ = write!(text, "<0x{byte:02X}>");
        }
    }
    text
}

fn visible(character: char) -> char {
    match character {
        ' ' => '▁',
        '\n' => '↵',
        '\t' => '⇥',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_for_bytes_become_characters() {
        for (piece, text) in [
            ("Ġdog", "▁dog"),
            ("dog", "dog"),
            ("ĠGrÃ¶ÃŁe", "▁Größe"),
            ("ä¸ĸçķĮ", "世界"),
            ("ĊĊ", "↵↵"),
            ("Ġĉ", "▁⇥"),
            ("Ã", "<0xC3>"),
            ("aä¸", "a<0xE4><0xB8>"),
            // No byte has these letters.
            ("世界", "世界"),
            ("", ""),
        ] {
            assert_eq!(readable(piece), text, "{piece}");
        }
    }
}
