//! Characters that a model cannot read, counted over all lines and reported once.

use crate::words;
use attentive_tasks::Translated;
use serde::{Deserialize, Serialize};
use std::io::{Write, stderr};

/// How many different ones are shown.
const SHOWN: usize = 8;

/// Characters that the model cannot read and that could not be copied into the translation.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Lost {
    characters: usize,
    lines: usize,
    /// Some of them.
    shown: Vec<char>,
}

impl Lost {
    /// Counts those of a line, by its best translation.
    pub(crate) fn count(&mut self, best: Option<&Translated>) {
        self.count_text(best.map_or("", |best| &best.lost));
    }

    /// Counts those of a line, which are all characters of a text.
    pub(crate) fn count_text(&mut self, lost: &str) {
        self.lines += usize::from(!lost.is_empty());
        for character in lost.chars() {
            self.characters += 1;
            self.show(character);
        }
    }

    fn show(&mut self, character: char) {
        if self.shown.len() < SHOWN && !self.shown.contains(&character) {
            self.shown.push(character);
        }
    }

    /// Adds those of other lines.
    pub(crate) fn add(&mut self, other: Lost) {
        self.lines += other.lines;
        self.characters += other.characters;
        other.shown.into_iter().for_each(|character| self.show(character));
    }

    /// Says how many there were, if there were any.
    pub(crate) fn warn(&self) {
        if self.characters > 0 {
            // The translation is complete even if stderr is closed.
            let _ = writeln!(stderr(), "attentive: {}", self.sentence());
        }
    }

    fn sentence(&self) -> String {
        let name = |character: &char| match character {
            character if character.is_control() => format!("`{}`", character.escape_debug()),
            character => format!("`{character}`"),
        };
        let shown: Vec<String> = self.shown.iter().map(name).collect();
        format!(
            "the tokenizer of the model does not know {} in {}, such as {}: their translation is a guess",
            words::count(self.characters, "character"),
            words::count(self.lines, "line"),
            shown.join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_and_lines_are_counted_and_each_character_is_shown_once() {
        let mut lost = Lost::default();
        for text in ["ж", "", "жж世", "\0"] {
            lost.count(Some(&Translated { lost: text.to_owned(), ..Translated::default() }));
        }
        lost.count(None);
        let sentence = lost.sentence();
        assert!(sentence.contains("5 characters in 3 lines, such as `ж`, `世`, `\\0`:"), "{sentence}");
    }
}
