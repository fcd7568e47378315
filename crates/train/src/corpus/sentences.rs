//! How many lines of a corpus have several sentences.
//!
//! A model that was trained on single sentences loses most of a line with several. Who translates with it needs to know.

use super::{Corpus, Error};
use attentive_text::sentences;

/// The lines that are looked at.
const SAMPLE: usize = 10_000;

impl Corpus {
    /// The share of pairs whose source has several sentences, by the splitter that cuts texts for the model. It is counted over
    /// pairs at even distances, which the size of the corpus decides alone.
    pub fn multi_sentence_share(&self, language: Option<&str>) -> Result<f64, Error> {
        let count = self.len().min(SAMPLE);
        let numbers: Vec<u32> = (0..count).map(|place| (place * self.len() / count) as u32).collect();
        let mut several = 0;
        self.read(&numbers, |_, source, _| {
            several += usize::from(sentences::split(source, language).len() > 1);
            true
        })?;
        Ok(several as f64 / count as f64)
    }
}
