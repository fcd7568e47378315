//! Texts of a request, held against the limits.

use crate::app::App;
use crate::refusal::Refusal;

impl App {
    /// Checks the number of texts, and the length of each, against the limits. `field` is what they are called in the request.
    pub fn check(&self, field: &str, texts: &[impl AsRef<str>]) -> Result<(), Refusal> {
        self.check_count(field, texts.len())?;
        self.check_lengths(field, texts)
    }

    /// Checks the number of texts against the limit.
    pub fn check_count(&self, field: &str, count: usize) -> Result<(), Refusal> {
        match self.settings.limits.texts {
            most if count > most => {
                let problem =
                    format!("there are {count} texts, but the maximum is {most}; --max-texts sets it");
                Err(Refusal::too_large(field, problem))
            }
            _ => Ok(()),
        }
    }

    /// Checks the length of each text against the limit.
    pub fn check_lengths(&self, field: &str, texts: &[impl AsRef<str>]) -> Result<(), Refusal> {
        let most = self.settings.limits.characters;
        let lengths = texts.iter().map(|text| text.as_ref().chars().count());
        match lengths.max().filter(|&characters| characters > most) {
            Some(characters) => {
                let problem = format!(
                    "the text has {characters} characters, but the maximum is {most}; --max-characters sets it"
                );
                Err(Refusal::too_large(field, problem))
            }
            None => Ok(()),
        }
    }
}
