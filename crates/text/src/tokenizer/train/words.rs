//! What all trainers learn from: words and how often each occurs.
//!
//! Lines are normalised as the trained tokenizer will normalise them and cut into words as it will cut them,
//! so the text itself need not be kept. A language token that a line begins with, such as `>>fra<<`, is no word: it
//! becomes a token as it is.

use super::super::marian;
use super::super::sentencepiece::{self, Normalizer};
use super::charsmap;
use foldhash::fast::FixedState;
use std::collections::{BTreeSet, HashMap};
use tokenizers::normalizers::BertNormalizer;
use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::{
    NormalizedString, Normalizer as _, OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer as _,
};
use unicode_normalization::char::is_combining_mark;

/// Words and their numbers.
#[derive(Debug, Default)]
pub(super) struct WordCounts {
    words: HashMap<Box<[u8]>, u64, FixedState>,
    /// The language tokens that lines begin with.
    languages: BTreeSet<String>,
}

impl WordCounts {
    fn count(&mut self, word: &[u8]) {
        match self.words.get_mut(word) {
            Some(count) => *count += 1,
            None => {
                self.words.insert(word.into(), 1);
            }
        }
    }

    pub(super) fn add(&mut self, other: WordCounts) {
        self.languages.extend(other.languages);
        if self.words.is_empty() {
            self.words = other.words;
            return;
        }
        for (word, count) in other.words {
            *self.words.entry(word).or_default() += count;
        }
    }

    /// Whether there is no word.
    pub(super) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The language tokens, in the order of their letters.
    pub(super) fn languages(&self) -> Vec<String> {
        self.languages.iter().cloned().collect()
    }

    /// All words, in the order of their letters: what is learned depends on no hash.
    pub(super) fn sorted(self) -> Vec<(String, u64)> {
        let text =
            |word: Box<[u8]>| String::from_utf8(word.into()).expect("words are cut between characters");
        let mut words: Vec<(String, u64)> =
            self.words.into_iter().map(|(word, count)| (text(word), count)).collect();
        words.sort_unstable();
        words
    }
}

/// Counts the words of a text of many lines on all cores.
pub(super) fn count_lines(counter: &Counter, text: &str, threads: usize) -> WordCounts {
    std::thread::scope(|scope| {
        let parts = parts(text, threads).into_iter().map(|part| {
            scope.spawn(move || {
                let mut words = WordCounts::default();
                counter.count_text(part, &mut words);
                words
            })
        });
        let parts: Vec<_> = parts.collect();
        let mut words = WordCounts::default();
        for part in parts {
            words.add(part.join().expect("counting does not panic"));
        }
        words
    })
}

/// Cuts a text between lines into parts of about the same size.
fn parts(mut text: &str, number: usize) -> Vec<&str> {
    let mut parts = Vec::with_capacity(number);
    for left in (1..=number).rev() {
        let about = text.len() / left;
        let end = text.as_bytes()[about..].iter().position(|&byte| byte == b'\n');
        let (part, rest) = text.split_at(end.map_or(text.len(), |end| about + end + 1));
        parts.push(part);
        text = rest;
    }
    parts
}

/// How lines become words.
#[derive(Debug)]
pub(super) enum Counter {
    /// Words begin with `▁`.
    SentencePiece(Box<Normalizer>),
    /// Words are what stands between spaces and punctuation; so is each punctuation mark.
    Bert(BertNormalizer),
    /// Words have the space before them, are written in letters for bytes, and a line break is one, too.
    Gpt2(ByteLevel),
    /// Each character is a word, line breaks included.
    Characters,
}

impl Counter {
    pub(super) fn sentencepiece() -> Counter {
        let normalizer = Normalizer::new(&charsmap::spec(), None, false).expect("our own table of rules");
        Counter::SentencePiece(Box::new(normalizer))
    }

    pub(super) fn bert() -> Counter {
        Counter::Bert(BertNormalizer::new(true, true, None, false))
    }

    pub(super) fn gpt2() -> Counter {
        Counter::Gpt2(ByteLevel::new(false, false, true))
    }

    /// Counts the words of all lines of a text.
    fn count_text(&self, text: &str, words: &mut WordCounts) {
        match self {
            Counter::SentencePiece(_) | Counter::Bert(_) => {
                text.split('\n').for_each(|line| self.count(line, words))
            }
            Counter::Gpt2(_) | Counter::Characters => {
                text.split_inclusive('\n').for_each(|line| self.count(line, words));
            }
        }
    }

    pub(super) fn count(&self, line: &str, words: &mut WordCounts) {
        match self {
            Counter::SentencePiece(normalizer) => {
                let (language, text) = marian::language(line);
                let is_code = |token: &&str| is_language_code(&token[2..token.len() - 2]);
                let text = match language.filter(is_code) {
                    Some(language) => {
                        if !words.languages.contains(language) {
                            words.languages.insert(language.to_owned());
                        }
                        text
                    }
                    None => line,
                };
                let text = normalizer.normalize(text);
                sentencepiece::words(&text).for_each(|word| words.count(word));
            }
            Counter::Bert(normalizer) => {
                let mut text = NormalizedString::from(line);
                // Neither step can fail on text.
                if normalizer.normalize(&mut text).is_err() {
                    return;
                }
                let mut text = PreTokenizedString::from(text);
                if BertPreTokenizer.pre_tokenize(&mut text).is_err() {
                    return;
                }
                for (word, _, _) in text.get_splits(OffsetReferential::Normalized, OffsetType::Byte) {
                    words.count(word.as_bytes());
                }
            }
            Counter::Gpt2(bytes) => {
                let mut text = PreTokenizedString::from(line);
                if bytes.pre_tokenize(&mut text).is_err() {
                    return;
                }
                for (word, _, _) in text.get_splits(OffsetReferential::Normalized, OffsetType::Byte) {
                    words.count(word.as_bytes());
                }
            }
            Counter::Characters => {
                for character in line.chars() {
                    words.count(character.encode_utf8(&mut [0; 4]).as_bytes());
                }
            }
        }
    }
}

/// Whether this can be the code of a language, like `fra`, `zh-TW` or `cmn_Hans`. Marks of quotation around a whole sentence are
/// no language token, though Marian would read them as one.
fn is_language_code(code: &str) -> bool {
    let sign = |character: char| character.is_ascii_alphanumeric() || matches!(character, '-' | '_');
    (2..=16).contains(&code.len()) && code.chars().all(sign)
}

/// The kind of a character: a piece holds letters, or digits, or other signs, but no mixture.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Letter,
    /// Han, kana and the like, which stand beside other letters without a space.
    Ideograph,
    Digit,
    Sign,
    /// Marks and joiners belong to what they follow; `▁` to what follows it.
    Any,
}

fn class(character: char) -> Class {
    match character {
        'a'..='z' | 'A'..='Z' => Class::Letter,
        '0'..='9' => Class::Digit,
        '\0'..='\u{7F}' => Class::Sign,
        '▁' | '\u{200C}' | '\u{200D}' => Class::Any,
        character if is_combining_mark(character) => Class::Any,
        '\u{2E80}'..='\u{31FF}'
        | '\u{3400}'..='\u{9FFF}'
        | '\u{F900}'..='\u{FAFF}'
        | '\u{20000}'..='\u{3FFFF}' => Class::Ideograph,
        character if character.is_numeric() => Class::Digit,
        character if character.is_alphabetic() => Class::Letter,
        _ => Class::Sign,
    }
}

/// The stretches of a word that a piece may cover, without the characters that are left out.
pub(super) fn stretches(word: &str, known: impl Fn(char) -> bool) -> Vec<&str> {
    let mut stretches = Vec::new();
    let (mut begin, mut so_far) = (0, Class::Any);
    for (at, character) in word.char_indices() {
        let class = class(character);
        let known = known(character);
        if !known || (class != Class::Any && so_far != Class::Any && class != so_far) {
            stretches.push(&word[begin..at]);
            begin = if known { at } else { at + character.len_utf8() };
            so_far = Class::Any;
        }
        if known && class != Class::Any {
            so_far = class;
        }
    }
    stretches.push(&word[begin..]);
    stretches.retain(|stretch| !stretch.is_empty());
    stretches
}

/// The characters that become pieces, the most frequent first: as many as make up the share `coverage` of the text.
pub(super) fn alphabet(words: &[(String, u64)], coverage: f64) -> Vec<char> {
    let mut counts: HashMap<char, u64, FixedState> = HashMap::default();
    for (word, count) in words {
        for character in word.chars() {
            *counts.entry(character).or_default() += count;
        }
    }
    // No piece can hold it: in the files of SentencePiece it ends a text.
    counts.remove(&'\0');
    let total: u64 = counts.values().sum();
    let mut counts: Vec<(char, u64)> = counts.into_iter().collect();
    counts.sort_unstable_by_key(|&(character, count)| (std::cmp::Reverse(count), character));
    let mut covered = 0;
    let enough = |&(_, count): &(char, u64)| {
        let go_on = (covered as f64) < coverage * total as f64;
        covered += count;
        go_on
    };
    counts.into_iter().take_while(enough).map(|(character, _)| character).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_line_begin_with_a_mark() {
        let mut words = WordCounts::default();
        Counter::sentencepiece().count("a  dog, a\u{A0}cat", &mut words);
        let words = words.sorted();
        let expected = [("▁a", 2), ("▁cat", 1), ("▁dog,", 1)].map(|(word, count)| (word.to_owned(), count));
        assert_eq!(words, expected);
    }

    #[test]
    fn a_language_token_is_no_word() {
        let mut words = WordCounts::default();
        for line in [">>fra<< a dog", ">>deu<<a dog", ">>fra<<", ">>a whole sentence<<", "a >>nld<<"] {
            Counter::sentencepiece().count(line, &mut words);
        }
        assert_eq!(words.languages(), [">>deu<<", ">>fra<<"]);
        let words: Vec<String> = words.sorted().into_iter().map(|(word, _)| word).collect();
        assert_eq!(words, ["▁>>a", "▁>>nld<<", "▁a", "▁dog", "▁sentence<<", "▁whole"]);
    }

    #[test]
    fn many_lines_are_counted_as_one_by_one() {
        let text = "a b\nc\n\nb a c\n>>fra<< c\nÄ\n".repeat(50) + "the end";
        for threads in [1, 2, 3, 400] {
            assert_eq!(parts(&text, threads).concat(), text);
            let mut expected = WordCounts::default();
            text.lines().for_each(|line| Counter::sentencepiece().count(line, &mut expected));
            let found = count_lines(&Counter::sentencepiece(), &text, threads);
            assert_eq!(found.languages(), expected.languages());
            assert_eq!(found.sorted(), expected.sorted());
        }
    }

    #[test]
    fn words_of_bert_are_apart_from_punctuation() {
        let mut words = WordCounts::default();
        Counter::bert().count("a dog, a 犬", &mut words);
        let expected =
            [(",", 1), ("a", 2), ("dog", 1), ("犬", 1)].map(|(word, count)| (word.to_owned(), count));
        assert_eq!(words.sorted(), expected);
    }

    #[test]
    fn a_piece_covers_no_mixture() {
        assert_eq!(stretches("▁dog,", |_| true), ["▁dog", ","]);
        assert_eq!(stretches("▁(a1b)", |_| true), ["▁(", "a", "1", "b", ")"]);
        assert_eq!(stretches("▁नमस्ते", |_| true), ["▁नमस्ते"]);
        assert_eq!(stretches("▁東京Tower", |_| true), ["▁東京", "Tower"]);
        assert_eq!(stretches("▁caxé", |character| character != 'x'), ["▁ca", "é"]);
    }

    #[test]
    fn characters_beyond_the_coverage_are_left_out() {
        let words = [("▁aaaaaaaaa".to_owned(), 10_000), ("▁q".to_owned(), 1)];
        assert_eq!(alphabet(&words, 0.9995), ['a', '▁']);
        assert_eq!(alphabet(&words, 1.0), ['a', '▁', 'q']);
        assert_eq!(alphabet(&[("ab".to_owned(), 1)], 0.9995), ['a', 'b']);
    }
}
