//! A text while its parts are being written.

use crate::refusal::Refusal;
use crate::worker::Draft;
use attentive_generate::{Codec, Cut};

/// What is certain of a text while its parts are being written, and what is likely: the text of both together, and how many of its
/// characters are certain. Behind a part that is not finished nothing is told.
pub(crate) fn written(codec: &Codec, cut: &Cut, drafts: &[Draft]) -> Result<(String, usize), Refusal> {
    let mut text = String::new();
    for (place, draft) in drafts.iter().enumerate() {
        let likely = codec.text(&draft.tokens)?;
        let gap = cut.gap(place, &text, &likely);
        text.push_str(gap);
        if cut.parts[place].wants_alignment() {
            // Words may be copied into it at the end.
            let characters = text.chars().count();
            text.push_str(whole_characters(&likely));
            return Ok((text, characters));
        }
        if draft.finished {
            text.push_str(&likely);
            continue;
        }
        let settled = whole_characters(&codec.text(&draft.tokens[..draft.settled])?).to_owned();
        let certain = if likely.starts_with(&settled) { settled.len() } else { 0 };
        let characters = text.chars().count() + likely[..certain].chars().count();
        text.push_str(whole_characters(&likely));
        let characters = characters.min(text.chars().count());
        return Ok((text, characters));
    }
    let characters = text.chars().count();
    Ok((text, characters))
}

/// The drafts with the first `most` tokens of all of them together, as the answer will have them.
pub(crate) fn shortened(drafts: &[Draft], most: usize) -> Vec<Draft> {
    let mut left = most;
    let mut short = Vec::new();
    for draft in drafts {
        let mut draft = draft.clone();
        draft.tokens.truncate(left);
        draft.settled = draft.settled.min(left);
        left -= draft.tokens.len();
        let goes_on = draft.finished && left > 0;
        short.push(draft);
        if !goes_on {
            break;
        }
    }
    short
}

/// A text without the half of a character at its end, of which the other bytes are still to come.
fn whole_characters(text: &str) -> &str {
    text.trim_end_matches('\u{fffd}')
}
