//! Words for the masks of a text.

use crate::encoder::{Encoder, Texts};
use crate::error::Error;
use crate::probabilities::{greatest, softmax};
use attentive_model::families::bert::Task;
use attentive_tensor::{Backend, Form};
use attentive_text::tokenizer::{Input, Side};
use std::path::Path;
use std::sync::Arc;

/// Finds words for masks.
pub struct MaskFiller {
    encoder: Encoder,
    mask: u32,
}

/// What may stand in the place of a mask.
#[derive(Debug, Clone, PartialEq)]
pub struct Guess {
    /// The token.
    pub token: u32,
    /// The token as text.
    pub word: String,
    /// How probable it is.
    pub score: f32,
    /// The whole text with the token in the place of this mask, as the tokenizer writes it.
    pub sequence: String,
}

/// The guesses for each mask of a text, best first.
pub type Filled = Vec<Vec<Guess>>;

impl MaskFiller {
    /// Reads the model of a folder.
    pub fn open(backend: &Arc<dyn Backend>, folder: &Path, form: Form) -> Result<MaskFiller, Error> {
        Encoder::must_be(folder, "fill-mask", Task::MaskedLm)?;
        let encoder = Encoder::open(backend, folder, Task::MaskedLm, form)?;
        let mask = encoder.tokenizer().mask();
        let mask = mask.ok_or_else(|| Error::NoMaskToken { path: folder.to_owned() })?;
        Ok(MaskFiller { encoder, mask })
    }

    /// The same with its encoder changed.
    pub fn with_encoder(self, change: impl FnOnce(Encoder) -> Encoder) -> MaskFiller {
        MaskFiller { encoder: change(self.encoder), ..self }
    }

    /// The model and its tokenizer.
    pub fn encoder(&self) -> &Encoder {
        &self.encoder
    }

    /// How the mask is written.
    pub fn mask(&self) -> String {
        self.encoder.tokenizer().piece(self.mask, Side::Source).unwrap_or_default()
    }

    /// The `count` best tokens for each mask of each text. Every mask is filled for itself, with the others still masked.
    pub fn fill(&self, texts: &[&str], count: usize) -> Result<(Texts, Vec<Filled>), Error> {
        let inputs: Vec<Input> = texts.iter().map(|text| Input::Text(text)).collect();
        let read = self.encoder.read(&inputs)?;
        for (number, encoding) in read.encodings.iter().enumerate() {
            if !encoding.ids.contains(&self.mask) {
                return Err(Error::NoMask { text: number + 1, mask: self.mask() });
            }
        }
        let tokenizer = self.encoder.tokenizer();
        let filled = self.encoder.answer(&read, |tape, numbers, batch, hidden| {
            let (mut rows, mut of) = (Vec::new(), Vec::new());
            for (&number, range) in numbers.iter().zip(batch.sequences.ranges()) {
                for (place, &id) in read.encodings[number].ids.iter().enumerate() {
                    if id == self.mask {
                        rows.push((range.start + place) as i32);
                        of.push((number, place));
                    }
                }
            }
            let logits = self.encoder.model().logits_of_rows(tape, hidden, &rows)?;
            let width = logits.shape().cols();
            let logits = self.encoder.download(&logits);
            let mut filled = vec![Filled::new(); numbers.len()];
            for ((number, place), logits) in of.into_iter().zip(logits.chunks_exact(width)) {
                let probabilities = softmax(logits);
                let mut guesses = Vec::with_capacity(count);
                // A table may have more rows than there are tokens: nothing stands for those.
                let known = tokenizer.vocabulary_size(Side::Source).min(probabilities.len());
                for token in greatest(&probabilities[..known], count) {
                    let mut ids = read.encodings[number].ids.clone();
                    ids[place] = token as u32;
                    let token = token as u32;
                    guesses.push(Guess {
                        token,
                        word: tokenizer.decode(&[token])?,
                        score: probabilities[token as usize],
                        sequence: tokenizer.decode(&ids)?,
                    });
                }
                let at = numbers.iter().position(|&other| other == number).unwrap_or_default();
                filled[at].push(guesses);
            }
            Ok(filled)
        })?;
        Ok((read, filled))
    }
}
