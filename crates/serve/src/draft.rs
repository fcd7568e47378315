//! A text while its parts are being written: how much of it is sent to the client, and how much of that can no longer change.

use crate::detokenizer::Detokenizer;
use crate::job::Draft;
use crate::refusal::Refusal;
use attentive_tasks::{Codec, Cut};

/// The text so far. Nothing after the first unfinished part is sent.
#[derive(Debug)]
pub(crate) struct Writing {
    /// The last draft of each part.
    drafts: Vec<Draft>,
    /// The first part that is not finished.
    place: usize,
    /// The most tokens that the text may have from there on.
    left: usize,
    /// The parts before it, and what is known of it.
    text: String,
    /// How many bytes of the text are those of the parts before it.
    finished: usize,
    /// How many bytes of the text cannot change any more.
    settled: usize,
    /// What is known of the part.
    part: Detokenizer,
}

impl Writing {
    /// A text of so many parts, of which nothing is known, with at most `most` tokens.
    pub fn new(parts: usize, most: Option<usize>) -> Writing {
        Writing {
            drafts: vec![Draft::default(); parts],
            place: 0,
            left: most.unwrap_or(usize::MAX),
            text: String::new(),
            finished: 0,
            settled: 0,
            part: Detokenizer::default(),
        }
    }

    /// The text, and how many of its bytes cannot change any more.
    pub fn text(&self) -> (&str, usize) {
        (&self.text, self.settled)
    }

    /// Takes a draft of a part; returns whether it is sent.
    pub fn take(&mut self, codec: &Codec, cut: &Cut, draft: Draft) -> Result<bool, Refusal> {
        // Of several samples, the first is sent.
        if draft.draw > 0 {
            return Ok(false);
        }
        let place = draft.place;
        self.drafts[place] = draft;
        if place != self.place || self.left == 0 {
            return Ok(false);
        }
        while self.place < self.drafts.len() && self.left > 0 && self.tell(codec, cut)? {}
        Ok(true)
    }

    /// Tells what is known of the first part that is not finished; returns whether it is finished now.
    fn tell(&mut self, codec: &Codec, cut: &Cut) -> Result<bool, Refusal> {
        let draft = &self.drafts[self.place];
        let tokens = &draft.tokens[..draft.tokens.len().min(self.left)];
        // Words may be copied into it in the end.
        let may_change = cut.parts[self.place].wants_alignment();
        self.text.truncate(self.finished);
        if draft.finished && !may_change {
            let part = codec.text(tokens)?;
            self.text.push_str(cut.gap(self.place, &self.text, &part));
            self.text.push_str(&part);
            self.left -= tokens.len();
            self.place += 1;
            (self.finished, self.settled) = (self.text.len(), self.text.len());
            self.part = Detokenizer::default();
            return Ok(true);
        }
        self.part.set(codec, tokens)?;
        let certain = if may_change { 0 } else { self.part.certain(draft.settled) };
        self.text.push_str(cut.gap(self.place, &self.text, self.part.text()));
        // The space before a part depends on how the part begins.
        self.settled = if certain == 0 { self.finished } else { self.text.len() + certain };
        self.text.push_str(self.part.text());
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detokenizer::tests::{codec, encode};
    use attentive_tasks::Split;

    fn draft(codec: &Codec, place: usize, text: &str, settled: usize, finished: bool) -> Draft {
        Draft { place, draw: 0, tokens: encode(codec, text), settled, finished }
    }

    #[test]
    fn what_is_settled_stays_whatever_follows() {
        let codec = codec("gpt2");
        let cut = codec.cut("好。是。", "", Split::Sentences).unwrap();
        assert_eq!(cut.parts.len(), 2);
        let mut writing = Writing::new(2, None);
        // What comes behind a part that is not finished waits for it.
        assert!(!writing.take(&codec, &cut, draft(&codec, 1, "Yes", 0, false)).unwrap());
        assert!(writing.take(&codec, &cut, draft(&codec, 0, "A d", 0, false)).unwrap());
        assert_eq!(writing.text(), ("A d", 0));
        assert!(writing.take(&codec, &cut, draft(&codec, 0, "A dog.", 99, true)).unwrap());
        // Whether there is a space depends on the part behind it.
        assert_eq!(writing.text(), ("A dog. Yes", 6));
        assert!(writing.take(&codec, &cut, draft(&codec, 1, "是。", 99, false)).unwrap());
        assert_eq!(writing.text(), ("A dog.是。", 12));
    }

    #[test]
    fn nothing_is_told_beyond_the_most_tokens() {
        let codec = codec("gpt2");
        let cut = codec.cut("A dog.\nA dog.", "", Split::Lines).unwrap();
        let first = encode(&codec, "A dog.");
        let mut writing = Writing::new(2, Some(first.len()));
        assert!(!writing.take(&codec, &cut, draft(&codec, 1, "Yes", 0, true)).unwrap());
        assert!(writing.take(&codec, &cut, draft(&codec, 0, "A dog.", 99, true)).unwrap());
        assert_eq!(writing.text(), ("A dog.", 6));
        let mut writing = Writing::new(2, Some(first.len() - 1));
        assert!(writing.take(&codec, &cut, draft(&codec, 0, "A dog.", 99, true)).unwrap());
        assert_eq!(writing.text().0, codec.text(&first[..first.len() - 1]).unwrap());
    }
}
