//! Texts at which an answer ends, as OpenAI's `stop` has them.

use crate::refusal::Refusal;

/// The texts; mostly none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Stops(Vec<String>);

impl Stops {
    /// At most four, as OpenAI has it; empty ones stop nothing.
    pub fn new(texts: &[String]) -> Result<Stops, Refusal> {
        if texts.len() > 4 {
            return Err(Refusal::field(
                "stop",
                format!("there are {} texts, but the maximum is 4", texts.len()),
            ));
        }
        Ok(Stops(texts.iter().filter(|text| !text.is_empty()).cloned().collect()))
    }

    /// What stands before the first of them, if the text has one.
    pub fn cut<'a>(&self, text: &'a str) -> Option<&'a str> {
        let first = self.0.iter().filter_map(|stop| text.find(stop.as_str())).min();
        first.map(|at| &text[..at])
    }

    /// The text without what may be the beginning of one of them at its end.
    pub fn certain<'a>(&self, text: &'a str) -> &'a str {
        let begins = |at: &usize| self.0.iter().any(|stop| stop.starts_with(&text[*at..]));
        let end = text.char_indices().map(|(at, _)| at).find(begins);
        &text[..end.unwrap_or(text.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stops(texts: &[&str]) -> Stops {
        Stops::new(&texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn a_text_ends_before_the_first_of_them() {
        let stops = stops(&["und", "zwei", ""]);
        assert_eq!(stops.cut("zweiundzwanzig"), Some(""));
        assert_eq!(stops.cut("ein und zwei"), Some("ein "));
        assert_eq!(stops.cut("drei"), None);
        assert_eq!(Stops::default().cut("drei"), None);
    }

    #[test]
    fn what_may_become_one_is_held_back() {
        let stops = stops(&["äb", "bcd"]);
        assert_eq!(stops.certain("xyz"), "xyz");
        assert_eq!(stops.certain("xyä"), "xy");
        assert_eq!(stops.certain("bc"), "");
        assert_eq!(stops.certain("bcx"), "bcx");
    }

    #[test]
    fn five_are_too_many() {
        let five = vec!["a".to_owned(); 5];
        assert_eq!(Stops::new(&five).unwrap_err().field.as_deref(), Some("stop"));
    }
}
