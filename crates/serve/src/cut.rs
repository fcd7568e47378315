//! A text of any length, cut into what a model reads at once, and put together again.
//!
//! Lines are translated each for itself, and line breaks stay where they are; a line that is too long for the model is
//! cut behind its sentences.

use crate::model::Model;
use crate::refusal::Refusal;
use crate::worker::{Decoded, Draft};
use attentive_generate::{Part, Translated, WrittenPart};

/// A text in parts.
#[derive(Debug, Default)]
pub(crate) struct Cut {
    pub parts: Vec<Part>,
    /// What stands before each part, and behind the last.
    gaps: Vec<String>,
}

impl Cut {
    /// Cuts a text for a model; `language` stands before each line.
    pub fn new(model: &Model, language: &str, text: &str) -> Result<Cut, Refusal> {
        let mut cut = Cut::default();
        let mut gap = String::new();
        for (number, line) in text.split('\n').enumerate() {
            if number > 0 {
                gap.push('\n');
            }
            let line = line.trim();
            if line.is_empty() {
                continue;
            }
            // Who names a language in the text itself is taken at his word.
            let names_one = line.strip_prefix(">>").is_some_and(|rest| rest.contains("<<"));
            let language = if names_one { "" } else { language };
            for part in model.codec.parts(&format!("{language}{line}"))? {
                cut.parts.push(part);
                cut.gaps.push(std::mem::replace(&mut gap, " ".to_owned()));
            }
            gap.clear();
        }
        cut.gaps.push(gap);
        Ok(cut)
    }

    /// A text that is one part.
    pub fn of_part(part: Part) -> Cut {
        Cut { parts: vec![part], gaps: vec![String::new(); 2] }
    }

    /// The translation of this rank: of each part the one of this rank, or else the last.
    pub fn join(&self, model: &Model, decoded: &Decoded, rank: usize) -> Result<Translated, Refusal> {
        let mut whole = Translated::default();
        let mut words_before = 0;
        for (place, (part, gap)) in self.parts.iter().zip(&self.gaps).enumerate() {
            let found = &decoded.hypotheses[place];
            if let Some(last) = found.len().checked_sub(1) {
                let rank = rank.min(last);
                let links = decoded.links.get(place).map_or(&[][..], |links| &links[rank]);
                let (hypothesis, unknown) = (&found[rank], &part.unknown[..]);
                let written = WrittenPart { hypothesis, links, words_before, unknown };
                model.codec.append(&mut whole, gap, written)?;
            }
            words_before += part.words;
        }
        whole.text.push_str(self.gaps.last().map_or("", String::as_str));
        Ok(whole)
    }

    /// What is certain of a text while its parts are being written, and what is likely: the text of both together, and how
    /// many of its characters are certain. Behind a part that is not finished nothing is told.
    pub fn draft(&self, model: &Model, drafts: &[Draft]) -> Result<(String, usize), Refusal> {
        let mut text = String::new();
        for (draft, gap) in drafts.iter().zip(&self.gaps) {
            text.push_str(gap);
            if draft.finished {
                text.push_str(&model.codec.text(&draft.tokens)?);
                continue;
            }
            let settled = whole_characters(&model.codec.text(&draft.tokens[..draft.settled])?).to_owned();
            let likely = model.codec.text(&draft.tokens)?;
            let certain = if likely.starts_with(&settled) { settled.len() } else { 0 };
            let characters = text.chars().count() + likely[..certain].chars().count();
            text.push_str(whole_characters(&likely));
            let characters = characters.min(text.chars().count());
            return Ok((text, characters));
        }
        let characters = text.chars().count();
        Ok((text, characters))
    }
}

/// A text without the half of a character at its end, of which the other bytes are still to come.
fn whole_characters(text: &str) -> &str {
    text.trim_end_matches('\u{fffd}')
}
