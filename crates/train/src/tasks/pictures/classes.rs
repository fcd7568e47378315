//! A ViT learns the classes of pictures.

use super::as_batch;
use super::loader::{LOAD_CHUNK, Loader};
use crate::Error;
use crate::corpus::pictures::{LabelledPicture, share_of_mixup};
use crate::corpus::{Example, ExampleBatch, ExamplePicture};
use crate::tasks::{Judgement, Ranks, Task};
use attentive_image::{Pixels, Processor};
use attentive_model::checkpoint::Staged;
use attentive_model::families::vit::Vit;
use attentive_tensor::{Backend, Parameter, Tape, Tensor, Var};
use attentive_text::score::ClassScores;
use std::path::Path;
use std::sync::Arc;

/// About how many tokens a forward pass of validation has.
const VALIDATION_TOKENS: usize = 16_384;

/// A ViT that learns classes.
#[derive(Debug)]
pub struct LearningVit {
    model: Vit,
    processor: Processor,
    held: Option<Held>,
    /// α of mixup; 0 switches it off.
    mixup: f64,
}

/// Validation pictures. They are read again for each validation.
#[derive(Debug)]
pub(super) struct Held {
    pub pictures: Vec<LabelledPicture>,
    pub loader: Loader,
}

impl LearningVit {
    /// A model without validation, and the processor of its pictures.
    pub fn new(model: Vit, processor: Processor) -> LearningVit {
        LearningVit { model, processor, held: None, mixup: 0.0 }
    }

    /// Adds mixup with this α.
    pub fn with_mixup(self, alpha: f64) -> LearningVit {
        LearningVit { mixup: alpha, ..self }
    }

    /// Adds validation by these pictures.
    pub(super) fn judged_by(self, held: Option<Held>) -> LearningVit {
        LearningVit { held, ..self }
    }

    /// The pictures of examples as pixels.
    fn pixels(&self, examples: &[Example]) -> Vec<Pixels> {
        let pictures = examples.iter().flat_map(|example| &example.pictures);
        pictures.map(|ExamplePicture { picture, .. }| self.processor.numbers(picture)).collect()
    }

    /// The logits of examples.
    fn logits(&self, backend: &Arc<dyn Backend>, examples: &[Example]) -> Result<Vec<Vec<f32>>, Error> {
        let tape = Tape::inference(backend);
        let batch = as_batch(&**backend, self.model.config(), &self.pixels(examples));
        let hidden = self.model.encode(&tape, &batch);
        let logits = self.model.logits(&tape, &hidden, &batch)?;
        let numbers = backend.download_f32(logits.value());
        Ok(numbers.chunks_exact(logits.shape().cols()).map(<[f32]>::to_vec).collect())
    }
}

impl Task for LearningVit {
    fn parameters(&self) -> &[Parameter] {
        self.model.parameters()
    }

    fn d_model(&self) -> usize {
        self.model.config().d_model
    }

    fn partial_loss(
        &self,
        tape: &Tape,
        batch: &ExampleBatch,
        smoothing: f32,
        of: usize,
    ) -> Result<Var, Error> {
        let (mut pixels, labels) = (self.pixels(&batch.examples), batch.labels());
        let share = if self.mixup > 0.0 { tape.chance() } else { None };
        let share = share.map_or(1.0, |random| share_of_mixup(self.mixup, random) as f32);
        // As in timm, the first picture is mixed with the last one, the second with the one before, and so on.
        let others: Vec<i32> = labels.iter().rev().copied().collect();
        let mut both = vec![(share, &labels[..])];
        if share < 1.0 {
            mix(&mut pixels, share);
            both.push((1.0 - share, &others));
        }
        let pictures = as_batch(&**tape.backend(), self.model.config(), &pixels);
        Ok(self.model.mixed_loss(tape, &pictures, &both, smoothing, of)?)
    }

    fn held(&self) -> usize {
        self.held.as_ref().map_or(0, |held| held.pictures.len())
    }

    fn judge(&self, backend: &Arc<dyn Backend>, ranks: &Ranks) -> Result<Option<Judgement>, Error> {
        let Some(Held { pictures, loader }) = &self.held else { return Ok(None) };
        let all: Vec<&LabelledPicture> = pictures.iter().collect();
        let judged = ranks.share(&all, |mine| {
            let mut judgements = Vec::with_capacity(mine.len());
            for pictures in mine.chunks(LOAD_CHUNK) {
                let examples = loader.load_whole(pictures.iter().copied())?;
                for examples in examples.chunks((VALIDATION_TOKENS / examples[0].tokens()).max(1)) {
                    let logits = self.logits(backend, examples)?;
                    judgements.extend(examples.iter().zip(logits).map(|(one, logits)| judged(one, &logits)));
                }
            }
            Ok(judgements)
        })?;
        let names = &self.model.config().labels;
        let (mut scores, mut loss) = (ClassScores::default(), 0.0);
        for (right, best, bits) in judged {
            scores.add(&names[right], &names[best]);
            loss += f64::from_bits(bits);
        }
        Ok(Some(Judgement {
            loss: loss / pictures.len() as f64,
            accuracy: Some(100.0 * scores.accuracy()),
            f1: Some(100.0 * scores.classes().macro_average().f1),
            ..Judgement::default()
        }))
    }

    fn stage_weights(&self, backend: &dyn Backend, path: &Path) -> Result<Staged, Error> {
        Ok(self.model.stage_weights(backend, path)?)
    }

    fn read_weights(&self, backend: &dyn Backend, path: &Path) -> Result<Vec<Tensor>, Error> {
        Ok(self.model.read_weights(backend, path)?)
    }
}

/// The label of a picture, the label with the greatest logit, and the bits of the loss.
fn judged(example: &Example, logits: &[f32]) -> (usize, usize, u64) {
    let right = example.labels[0] as usize;
    let best = (0..logits.len()).max_by(|&a, &b| logits[a].total_cmp(&logits[b]).then(b.cmp(&a)));
    let most = f64::from(logits.iter().copied().fold(f32::NEG_INFINITY, f32::max));
    let sum: f64 = logits.iter().map(|&logit| (f64::from(logit) - most).exp()).sum();
    (right, best.unwrap_or_default(), (most + sum.ln() - f64::from(logits[right])).to_bits())
}

/// Mixup in place: picture `i` of `n` becomes `share · xᵢ + (1 - share) · xₙ₋₁₋ᵢ`. All pictures have the same size.
fn mix(pixels: &mut [Pixels], share: f32) {
    let (first, second) = pixels.split_at_mut(pixels.len() / 2);
    for (a, b) in first.iter_mut().zip(second.iter_mut().rev()) {
        for (a, b) in a.numbers.iter_mut().zip(&mut b.numbers) {
            (*a, *b) = (share * *a + (1.0 - share) * *b, share * *b + (1.0 - share) * *a);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_mixed_with_those_from_the_other_end() {
        let picture = |number: f32| Pixels { height: 1, width: 1, numbers: vec![number; 3] };
        let mixed = |numbers: &[f32]| {
            let mut pixels: Vec<Pixels> = numbers.iter().map(|number| picture(*number)).collect();
            mix(&mut pixels, 0.75);
            pixels.iter().map(|pixels| pixels.numbers[0]).collect::<Vec<f32>>()
        };
        assert_eq!(mixed(&[0.0, 10.0, 4.0]), [1.0, 10.0, 3.0]);
        assert_eq!(mixed(&[0.0, 4.0]), [1.0, 3.0]);
        assert_eq!(mixed(&[5.0]), [5.0]);
    }
}
