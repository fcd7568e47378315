//! Words that the model cannot read, because its vocabulary has no piece for their characters: an emoji, another script.
//!
//! A word of nothing but such characters is copied into the translation: in place of an unknown word of the translation that is
//! linked to it, or else behind the translation of the word before it. What the model wrote for such a word stays. Its links are
//! no reason to replace anything, since words without meaning draw the attention of many others. Where no word of the translation
//! comes from a word that the model can read, the copies are all there is.

use attentive_generate::Link;
use attentive_text::tokenizer::{Side, Tokenizer};

/// What an unknown token looks like where it does not vanish from the text.
const LOST: &str = "⁇";
/// What SentencePiece has for a space: alone it makes no word readable.
const SPACE: &str = "▁";

/// A word of the source with characters that the model cannot read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownWord {
    /// Its place among the words of its part.
    word: usize,
    text: String,
    /// The characters that have no piece.
    characters: String,
    /// Whether it has no others.
    is_whole: bool,
}

/// The unknown words of a text whose tokens have `unk` among them.
pub(super) fn find(tokenizer: &Tokenizer, text: &str, tokens: &[u32], unk: u32) -> Vec<UnknownWord> {
    let is_unknown = |character: &char| {
        let alone = tokenizer.encode_plain(character.encode_utf8(&mut [0; 4]), Side::Source);
        alone.is_ok_and(|alone| alone.contains(&unk))
    };
    let characters = |text: &str| text.chars().filter(is_unknown).collect::<String>();
    let words = tokenizer.words(tokens, Side::Source);
    let texts: Vec<&str> = text.split_whitespace().collect();
    if words.iter().flatten().max().map_or(0, |last| last + 1) != texts.len() {
        // Normalisation has moved spaces, or tokens were cut off: words cannot be matched.
        return vec![UnknownWord {
            word: 0,
            text: text.to_owned(),
            characters: characters(text),
            is_whole: false,
        }];
    }
    let is_mute =
        |id: u32| id == unk || tokenizer.piece(id, Side::Source).is_some_and(|piece| piece == SPACE);
    let unknown_word = |(word, text): (usize, &&str)| {
        let own = || words.iter().zip(tokens).filter(|(place, _)| **place == Some(word)).map(|(_, id)| *id);
        own().any(|id| id == unk).then(|| UnknownWord {
            word,
            text: (*text).to_owned(),
            characters: characters(text),
            is_whole: own().all(is_mute),
        })
    };
    texts.iter().enumerate().filter_map(unknown_word).collect()
}

/// Whether any of them can be copied, if the alignment is known.
pub(super) fn can_copy(unknown: &[UnknownWord]) -> bool {
    unknown.iter().any(|word| word.is_whole)
}

/// The translation of a part, with the unknown words that have been copied into it.
pub(super) struct Copied {
    pub text: String,
    pub links: Vec<Link>,
    /// The characters of those that have not.
    pub lost: String,
}

/// Copies unknown words into the translation of their part.
pub(super) fn copy(text: String, links: &[Link], unknown: &[UnknownWord]) -> Copied {
    let is_unreadable = |word: usize| unknown.iter().any(|other| other.is_whole && other.word == word);
    // In an empty translation every place is the right one.
    let is_placed = !links.is_empty() || text.trim().is_empty();
    let (whole, others): (Vec<&UnknownWord>, Vec<&UnknownWord>) =
        unknown.iter().partition(|word| word.is_whole && is_placed);
    let lost = others.iter().map(|word| &word.characters[..]).collect();
    if whole.is_empty() {
        return Copied { text, links: links.to_vec(), lost };
    }
    let mut translation = Translation {
        words: text.split_whitespace().map(str::to_owned).collect(),
        links: links.to_vec(),
        anchors: links.iter().copied().filter(|(source, _)| !is_unreadable(*source)).collect(),
    };
    if translation.anchors.is_empty() {
        translation = Translation::default();
    }
    whole.into_iter().for_each(|word| translation.copy(word));
    Copied { text: translation.words.join(" "), links: translation.links, lost }
}

/// A translation that words are being copied into.
#[derive(Default)]
struct Translation {
    words: Vec<String>,
    links: Vec<Link>,
    /// The links that say where a word belongs: those of words that can be read, and of copies.
    anchors: Vec<Link>,
}

impl Translation {
    fn copy(&mut self, unknown: &UnknownWord) {
        let is_lost = |(source, target): &&Link| {
            *source == unknown.word && self.words.get(*target).is_some_and(|word| word == LOST)
        };
        match self.links.iter().find(is_lost) {
            Some(&(_, target)) => self.words[target].clone_from(&unknown.text),
            None => self.insert(unknown),
        }
    }

    /// Puts a word behind the translation of the word before it, or else at the beginning.
    fn insert(&mut self, unknown: &UnknownWord) {
        let before = self.anchors.iter().filter(|(source, _)| *source < unknown.word).max();
        let place = before.map_or(0, |(_, target)| target + 1).min(self.words.len());
        self.words.insert(place, unknown.text.clone());
        for links in [&mut self.links, &mut self.anchors] {
            links.iter_mut().filter(|(_, target)| *target >= place).for_each(|(_, target)| *target += 1);
            links.push((unknown.word, place));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(word: usize, text: &str, is_whole: bool) -> UnknownWord {
        UnknownWord { word, text: text.to_owned(), characters: text.to_owned(), is_whole }
    }

    #[test]
    fn a_word_follows_the_translation_of_the_word_before_it() {
        // "I saw 😀 today" and "Heute sah ich"
        let copied = copy("Heute sah ich".to_owned(), &[(3, 0), (1, 1), (0, 2)], &[word(2, "😀", true)]);
        assert_eq!((&*copied.text, &*copied.lost), ("Heute sah 😀 ich", ""));
        assert_eq!(copied.links, [(3, 0), (1, 1), (0, 3), (2, 2)]);
        let first = copy("Ein Hund".to_owned(), &[(1, 0), (2, 1)], &[word(0, "😀", true)]);
        assert_eq!(first.text, "😀 Ein Hund");
        let two = [word(2, "😀", true), word(3, "ж", true)];
        assert_eq!(copy("Ein Hund".to_owned(), &[(0, 0), (1, 1)], &two).text, "Ein Hund 😀 ж");
    }

    #[test]
    fn what_a_word_without_meaning_draws_attention_of_stays_and_moves_nothing() {
        // "A dog runs 😀" and "Ein Hund rennt", in which "Hund" looked at the emoji.
        let copied = copy("Ein Hund rennt".to_owned(), &[(0, 0), (3, 1), (2, 2)], &[word(3, "😀", true)]);
        assert_eq!(copied.text, "Ein Hund rennt 😀");
    }

    #[test]
    fn an_unknown_word_of_the_translation_is_replaced() {
        let copied = copy("Ein ⁇ läuft".to_owned(), &[(0, 0), (1, 1), (2, 2)], &[word(1, "собака", true)]);
        assert_eq!((&*copied.text, &*copied.lost), ("Ein собака läuft", ""));
    }

    #[test]
    fn a_text_that_cannot_be_read_at_all_is_copied_and_nothing_is_made_up() {
        let copied = copy("Ein Mann".to_owned(), &[(0, 0), (0, 1)], &[word(0, "世界", true)]);
        assert_eq!((&*copied.text, &copied.links[..]), ("世界", &[(0, 0)][..]));
        assert_eq!(copy(String::new(), &[], &[word(0, "世界", true)]).text, "世界");
    }

    #[test]
    fn what_cannot_be_copied_is_told() {
        for (unknown, links) in [(word(1, "x😀", false), &[(0, 0), (1, 1)][..]), (word(1, "😀", true), &[])]
        {
            let copied = copy("Ein  Hund".to_owned(), links, std::slice::from_ref(&unknown));
            assert_eq!((copied.text, copied.lost), ("Ein  Hund".to_owned(), unknown.text));
        }
    }
}
