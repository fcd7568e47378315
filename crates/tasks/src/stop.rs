//! Texts at which a text that is being written ends.

use crate::tokenizer::text_of;
use attentive_generate::{Context, Stop};
use attentive_text::tokenizer::Tokenizer;
use std::sync::Arc;

/// The texts; mostly none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StopStrings(Vec<String>);

impl StopStrings {
    /// These texts; empty ones stop nothing.
    pub fn new(texts: &[String]) -> StopStrings {
        StopStrings(texts.iter().filter(|text| !text.is_empty()).cloned().collect())
    }

    /// What stands before the first of them, if the text has one.
    pub fn cut<'a>(&self, text: &'a str) -> Option<&'a str> {
        let first = self.0.iter().filter_map(|stop| text.find(stop.as_str())).min();
        first.map(|at| &text[..at])
    }

    /// What is certain of a text that goes on: it ends before the first of them, and before what may be the beginning of one at its end.
    pub fn certain<'a>(&self, text: &'a str) -> &'a str {
        let begins = |at: &usize| self.0.iter().any(|stop| stop.starts_with(&text[*at..]));
        let held = text.char_indices().map(|(at, _)| at).find(begins).unwrap_or(text.len());
        // A stop that is there may be part of a longer one that begins before it.
        let end = self.cut(text).map_or(held, |cut| cut.len().min(held));
        &text[..end]
    }

    /// The rules that end a search at them: one, or none if there are no texts.
    pub fn rules(&self, tokenizer: &Arc<Tokenizer>) -> Vec<Arc<dyn Stop>> {
        if self.0.is_empty() {
            return Vec::new();
        }
        vec![Arc::new(AtStrings { tokenizer: Arc::clone(tokenizer), strings: self.clone() })]
    }
}

/// Ends a text in which one of some strings stands.
struct AtStrings {
    tokenizer: Arc<Tokenizer>,
    strings: StopStrings,
}

impl Stop for AtStrings {
    fn stop(&self, context: &Context) -> bool {
        let text = text_of(&self.tokenizer, &context.tokens[context.prompt..]);
        text.is_ok_and(|text| self.strings.cut(&text).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stops(texts: &[&str]) -> StopStrings {
        StopStrings::new(&texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn a_text_ends_before_the_first_of_them() {
        let stops = stops(&["und", "zwei", ""]);
        assert_eq!(stops.cut("zweiundzwanzig"), Some(""));
        assert_eq!(stops.cut("ein und zwei"), Some("ein "));
        assert_eq!(stops.cut("drei"), None);
        assert_eq!(StopStrings::default().cut("drei"), None);
    }

    #[test]
    fn what_may_become_one_is_held_back() {
        let some = stops(&["äb", "bcd"]);
        assert_eq!(some.certain("xyz"), "xyz");
        assert_eq!(some.certain("xyä"), "xy");
        assert_eq!(some.certain("bc"), "");
        assert_eq!(some.certain("bcx"), "bcx");
        assert_eq!(some.certain("xbcdy"), "x");
        // The longer one may still come, and begins before the shorter one.
        assert_eq!(stops(&["abcd", "bc"]).certain("xabc"), "x");
        assert_eq!(stops(&["abcd", "bc"]).certain("xabcx"), "xa");
    }
}
