//! What SentencePiece does to text before it is cut into pieces.
//!
//! A table, compiled into the model's file, replaces characters and sequences of them: at each place the
//! longest rule that fits is applied, and what it gives is not looked at again. Then spaces: runs become one,
//! those at the ends go, one is put before the text so that a word is the same piece wherever it stands, and
//! each is written as `▁`. User-defined symbols pass unchanged.

use super::double_array::DoubleArray;
use super::proto::NormalizerSpec;
use std::borrow::Cow;

/// The visible space.
pub(crate) const SPACE: &str = "▁";

/// The normaliser of a model.
#[derive(Debug)]
pub(crate) struct Normalizer {
    rules: Option<Rules>,
    symbols: Option<DoubleArray>,
    add_dummy_prefix: bool,
    remove_extra_whitespaces: bool,
    escape_whitespaces: bool,
    whitespace_as_suffix: bool,
    /// ASCII characters that stay as they are if another ASCII character follows: nearly all there are.
    plain: [bool; 128],
    /// Whether a space before another ASCII character is a space.
    plain_space: bool,
}

/// Rules of replacement: a trie of what is replaced, whose values say where in the list of strings, each
/// ended by a zero byte, the replacement begins.
#[derive(Debug)]
struct Rules {
    trie: DoubleArray,
    strings: Vec<u8>,
}

impl Normalizer {
    /// The normaliser that a model's file describes; `symbols` are the user-defined ones.
    pub(crate) fn new(
        spec: &NormalizerSpec,
        symbols: Option<DoubleArray>,
        whitespace_as_suffix: bool,
    ) -> Result<Normalizer, &'static str> {
        let rules = match spec.precompiled_charsmap() {
            [] => None,
            table => Some(Rules::read(table).ok_or("the table of normalization rules is damaged")?),
        };
        let tries = || rules.iter().map(|rules| &rules.trie).chain(&symbols);
        let plain = |byte: u8| tries().all(|trie| leaves_alone(trie, byte));
        let plain_space = plain(b' ');
        let plain = std::array::from_fn(|byte| byte as u8 != b' ' && plain(byte as u8));
        Ok(Normalizer {
            add_dummy_prefix: spec.add_dummy_prefix(),
            remove_extra_whitespaces: spec.remove_extra_whitespaces(),
            escape_whitespaces: spec.escape_whitespaces(),
            rules,
            symbols,
            whitespace_as_suffix,
            plain,
            plain_space,
        })
    }

    /// Whether the space before the first word is not in the text.
    pub(crate) fn takes_first_space(&self) -> bool {
        self.add_dummy_prefix || self.remove_extra_whitespaces
    }

    /// Whether spaces at the beginning are dropped, however many.
    pub(crate) fn removes_extra_whitespaces(&self) -> bool {
        self.remove_extra_whitespaces
    }

    /// The text as the model sees it. Only a broken table of rules can make it other than UTF-8.
    pub(crate) fn normalize(&self, text: &str) -> Vec<u8> {
        let mut rest = text.as_bytes();
        if self.remove_extra_whitespaces {
            while !rest.is_empty() {
                let (replacement, length) = self.prefix(rest);
                if *replacement != *b" " {
                    break;
                }
                rest = &rest[length..];
            }
        }
        if rest.is_empty() {
            return Vec::new();
        }
        let mut out = Vec::with_capacity(rest.len() + rest.len() / 2 + 8);
        let space = if self.escape_whitespaces { SPACE.as_bytes() } else { b" " };
        if self.add_dummy_prefix && !self.whitespace_as_suffix {
            out.extend(space);
        }
        let mut after_space = self.remove_extra_whitespaces;
        while !rest.is_empty() {
            let plain = self.plain_length(rest);
            if plain > 0 {
                out.extend(&rest[..plain]);
                rest = &rest[plain..];
                after_space = false;
                continue;
            }
            if self.plain_space && rest[0] == b' ' && rest.get(1).is_none_or(u8::is_ascii) {
                if !after_space {
                    out.extend(space);
                    after_space = self.remove_extra_whitespaces;
                }
                rest = &rest[1..];
                continue;
            }
            let (replacement, length) = self.prefix(rest);
            rest = &rest[length..];
            let mut replacement = &*replacement;
            while after_space && let [b' ', further @ ..] = replacement {
                replacement = further;
            }
            for &byte in replacement {
                if byte == b' ' { out.extend(space) } else { out.push(byte) }
            }
            if let Some(&last) = replacement.last() {
                after_space = self.remove_extra_whitespaces && last == b' ';
            }
        }
        if self.remove_extra_whitespaces {
            while out.ends_with(space) {
                out.truncate(out.len() - space.len());
            }
        }
        if self.add_dummy_prefix && self.whitespace_as_suffix {
            out.extend(space);
        }
        out
    }

    /// How many bytes at the beginning no rule can touch.
    fn plain_length(&self, text: &[u8]) -> usize {
        let plain = |byte: u8| self.plain.get(usize::from(byte)) == Some(&true);
        let length = text.iter().position(|&byte| !plain(byte)).unwrap_or(text.len());
        // A character of more bytes after the last one may be a mark that changes it.
        match text.get(length) {
            Some(next) if !next.is_ascii() => length.saturating_sub(1),
            _ => length,
        }
    }

    /// What the beginning of a text becomes, and how long that beginning is.
    fn prefix<'a>(&'a self, text: &'a [u8]) -> (Cow<'a, [u8]>, usize) {
        if let Some((length, _)) = self.symbols.as_ref().and_then(|symbols| symbols.longest(text)) {
            return (text[..length].into(), length);
        }
        if let Some(rules) = &self.rules
            && let Some((length, at)) = rules.trie.longest(text)
        {
            return (rules.replacement(at as usize).into(), length);
        }
        match character(text) {
            Some(length) => (text[..length].into(), length),
            None => ("\u{FFFD}".as_bytes().into(), 1),
        }
    }
}

impl Rules {
    /// The length of the trie in bytes, the trie, the strings.
    fn read(table: &[u8]) -> Option<Rules> {
        let (length, rest) = table.split_first_chunk::<4>()?;
        let length = u32::from_le_bytes(*length) as usize;
        let (trie, strings) = rest.split_at_checked(length).filter(|(_, strings)| !strings.is_empty())?;
        Some(Rules { trie: DoubleArray::from_bytes(trie), strings: strings.to_vec() })
    }

    fn replacement(&self, at: usize) -> &[u8] {
        let rest = self.strings.get(at..).unwrap_or_default();
        &rest[..rest.iter().position(|&byte| byte == 0).unwrap_or(rest.len())]
    }
}

/// Whether no key is this byte, or begins with it and another ASCII character.
fn leaves_alone(trie: &DoubleArray, byte: u8) -> bool {
    match trie.step(trie.root(), byte) {
        None => true,
        Some((_, Some(_))) => false,
        Some((node, None)) => (0..128).all(|next| trie.step(node, next).is_none()),
    }
}

/// The length of the character that a text begins with; none if it is not UTF-8.
fn character(text: &[u8]) -> Option<usize> {
    let length = super::character_length(text);
    std::str::from_utf8(&text[..length]).ok().map(|_| length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normalizer(change: impl FnOnce(&mut NormalizerSpec)) -> Normalizer {
        let mut spec = NormalizerSpec::default();
        change(&mut spec);
        Normalizer::new(&spec, None, false).unwrap()
    }

    fn normal(normalizer: &Normalizer, text: &str) -> String {
        String::from_utf8(normalizer.normalize(text)).unwrap()
    }

    #[test]
    fn spaces_are_collapsed_and_made_visible() {
        let normalizer = normalizer(|_| ());
        assert_eq!(normal(&normalizer, "  a  b "), "▁a▁b");
        assert_eq!(normal(&normalizer, "   "), "");
        assert_eq!(normal(&normalizer, ""), "");
    }

    #[test]
    fn spaces_can_be_kept() {
        let normalizer = normalizer(|spec| spec.remove_extra_whitespaces = Some(false));
        assert_eq!(normal(&normalizer, " a  b "), "▁▁a▁▁b▁");
        assert_eq!(normal(&normalizer, ""), "");
    }

    #[test]
    fn the_first_space_can_be_left_out_and_spaces_left_as_they_are() {
        let normalizer = normalizer(|spec| {
            spec.add_dummy_prefix = Some(false);
            spec.escape_whitespaces = Some(false);
        });
        assert_eq!(normal(&normalizer, " a  b "), "a b");
    }

    #[test]
    fn a_space_can_follow_the_text_instead() {
        let normalizer = Normalizer::new(&NormalizerSpec::default(), None, true).unwrap();
        assert_eq!(normal(&normalizer, " a b "), "a▁b▁");
    }

    #[test]
    fn the_longest_rule_is_applied_and_its_result_not_again() {
        let rules: &[(&[u8], u32)] =
            &[("a".as_bytes(), 0), ("e".as_bytes(), 2), ("e\u{301}".as_bytes(), 4), (b"zz", 7)];
        let trie = DoubleArray::new(rules).to_bytes();
        let mut table = (trie.len() as u32).to_le_bytes().to_vec();
        table.extend(trie);
        table.extend("e\0a\0é\0\0".as_bytes());
        let normalizer = normalizer(|spec| spec.precompiled_charsmap = Some(table));
        assert_eq!(normal(&normalizer, "ae e\u{301}x zzz"), "▁ea▁éx▁z");
        assert_eq!(normal(&normalizer, "x\u{301} zz zz"), "▁x\u{301}");
    }

    #[test]
    fn a_broken_table_is_refused() {
        for table in [&b"abc"[..], &[9, 0, 0, 0, 1], &[4, 0, 0, 0, 1, 2, 3, 4]] {
            let spec =
                NormalizerSpec { precompiled_charsmap: Some(table.to_vec()), ..NormalizerSpec::default() };
            assert!(Normalizer::new(&spec, None, false).is_err());
        }
    }
}
