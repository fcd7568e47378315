//! What follows a stop: the first word of the next sentence, if it is one.

use super::stop::is_attached;
use super::{is_blank_line, white_space};

/// A word behind a stop, with what opens it (quotes, brackets, dashes) left out.
pub(super) struct Next<'a> {
    /// The first letter or digit.
    first: char,
    /// The word: letters and digits.
    word: &'a str,
    /// Whether a full stop follows it.
    is_dotted: bool,
}

/// How much is passed over on the way to the word, in characters.
const FAR: usize = 64;

impl<'a> Next<'a> {
    /// The next word, if there is one in the same paragraph and not far away.
    pub fn read(behind: &'a str) -> Option<Next<'a>> {
        let space = white_space(behind);
        if is_blank_line(space) || behind[space.len()..].starts_with(is_attached) {
            return None;
        }
        let behind = &behind[space.len()..];
        let (at, first) = behind.char_indices().take(FAR).find(|(_, next)| next.is_alphanumeric())?;
        if is_blank_line(&behind[..at]) {
            return None;
        }
        let behind = &behind[at..];
        let length: usize =
            behind.chars().take(FAR).take_while(|next| next.is_alphanumeric()).map(char::len_utf8).sum();
        let word = &behind[..length];
        Some(Next { first, word, is_dotted: behind[word.len()..].starts_with('.') })
    }

    pub fn is_lower_case(&self) -> bool {
        self.first.is_lowercase()
    }

    pub fn is_number(&self) -> bool {
        self.first.is_numeric()
    }

    /// The word in lower case, unless it is an abbreviation or an initial.
    pub fn plain_word(&self) -> Option<String> {
        (!self.is_dotted).then(|| self.word.to_lowercase())
    }
}
