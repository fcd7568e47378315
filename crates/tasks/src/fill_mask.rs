//! Words for the masks of a text.

use crate::encoder::{Encoder, Texts};
use crate::error::Error;
use crate::probabilities::{greatest, softmax};
use attentive_model::families::bert::{Batch, Task};
use attentive_tensor::{Backend, Form, Tape, Var};
use attentive_text::tokenizer::{Encoding, Input, Side};
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

    /// The places of the masks of a text. A text without any is refused; `number` is its number, counted from 0.
    pub fn masks(&self, number: usize, text: &Encoding) -> Result<Vec<usize>, Error> {
        let places = text.ids.iter().enumerate().filter(|(_, id)| **id == self.mask);
        let places: Vec<usize> = places.map(|(place, _)| place).collect();
        match places.is_empty() {
            true => Err(Error::NoMask { text: number + 1, mask: self.mask() }),
            false => Ok(places),
        }
    }

    /// The `count` best tokens for each mask of each text. Every mask is filled for itself, with the others still masked.
    pub fn fill(&self, texts: &[&str], count: usize) -> Result<(Texts, Vec<Filled>), Error> {
        let inputs: Vec<Input> = texts.iter().map(|text| Input::Text(text)).collect();
        let read = self.encoder.read(&inputs)?;
        // Texts that cannot be filled are errors before anything is computed.
        read.encodings
            .iter()
            .enumerate()
            .try_for_each(|(number, text)| self.masks(number, text).map(drop))?;
        let filled = self.encoder.answer(&read, |tape, numbers, batch, hidden| {
            let logits = self.logits_of(&read, tape, numbers, batch, hidden)?.into_iter().zip(numbers);
            logits.map(|(logits, &number)| self.guesses(&read.encodings[number], &logits, count)).collect()
        })?;
        Ok((read, filled))
    }

    /// The logits of all tokens for each mask of each text, one mask after the other.
    pub fn logits(&self, texts: &Texts) -> Result<Vec<Vec<f32>>, Error> {
        self.encoder
            .answer(texts, |tape, numbers, batch, hidden| self.logits_of(texts, tape, numbers, batch, hidden))
    }

    fn logits_of(
        &self,
        texts: &Texts,
        tape: &Tape,
        numbers: &[usize],
        batch: &Batch,
        hidden: &Var,
    ) -> Result<Vec<Vec<f32>>, Error> {
        let masks = numbers.iter().map(|&number| self.masks(number, &texts.encodings[number]));
        let masks = masks.collect::<Result<Vec<_>, _>>()?;
        let places = masks.iter().zip(batch.sequences.ranges());
        let rows =
            places.flat_map(|(masks, range)| masks.iter().map(move |mask| (range.start + mask) as i32));
        let logits = self.encoder.model().logits_of_rows(tape, hidden, &rows.collect::<Vec<_>>())?;
        let width = logits.shape().cols();
        let logits = self.encoder.download(&logits);
        let mut rest = &logits[..];
        let own = |masks: &Vec<usize>| {
            let (own, others) = rest.split_at(masks.len() * width);
            rest = others;
            own.to_vec()
        };
        Ok(masks.iter().map(own).collect())
    }

    /// The `count` best tokens for each mask of a text, by its logits.
    pub fn guesses(&self, text: &Encoding, logits: &[f32], count: usize) -> Result<Filled, Error> {
        let tokenizer = self.encoder.tokenizer();
        let masks = self.masks(0, text)?;
        let width = logits.len() / masks.len();
        let guess = |place: usize, token: usize, score: f32| -> Result<Guess, Error> {
            let mut ids = text.ids.clone();
            ids[place] = token as u32;
            let (word, sequence) = (tokenizer.decode(&[token as u32])?, tokenizer.decode(&ids)?);
            Ok(Guess { token: token as u32, word, score, sequence })
        };
        let of_mask = |(&place, logits): (&usize, &[f32])| -> Result<Vec<Guess>, Error> {
            let probabilities = softmax(logits);
            // A table may have more rows than there are tokens: nothing stands for those.
            let known = tokenizer.vocabulary_size(Side::Source).min(probabilities.len());
            let best = greatest(&probabilities[..known], count).into_iter();
            best.map(|token| guess(place, token, probabilities[token])).collect()
        };
        masks.iter().zip(logits.chunks_exact(width)).map(of_mask).collect()
    }
}
