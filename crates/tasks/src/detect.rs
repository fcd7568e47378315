//! Things in pictures: where they are, and what.

use crate::error::Error;
use attentive_image::{Picture, Problem, Processor};
use attentive_model::families::detr::{Batch, Detr, Found};
use attentive_tensor::{Backend, Form, Tape};
use std::path::Path;
use std::sync::Arc;

/// A model that finds things, and how it wants its pictures.
#[derive(Debug)]
pub struct Detector {
    backend: Arc<dyn Backend>,
    model: Arc<Detr>,
    processor: Processor,
}

/// A thing in a picture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Detected {
    /// The number of its class.
    pub class: usize,
    /// How certain that is, from 0 to 1.
    pub score: f64,
    /// Left, top, width and height in pixels of the picture.
    pub bbox: [f64; 4],
}

impl Detector {
    /// Reads a model folder.
    pub fn open(backend: &Arc<dyn Backend>, folder: &Path, form: Form) -> Result<Detector, Error> {
        let load = match form {
            Form::Precise => Detr::load_packed,
            Form::Int8 => Detr::load_in_int8,
        };
        let model = load(backend, folder)?;
        Ok(Detector::new(backend, Arc::new(model), Processor::of(folder)?))
    }

    /// A model with its processor. Pictures are not padded, since the pictures of a batch need not have one size.
    pub fn new(backend: &Arc<dyn Backend>, model: Arc<Detr>, processor: Processor) -> Detector {
        Detector { backend: Arc::clone(backend), model, processor: Processor { pad: None, ..processor } }
    }

    /// The names of the classes.
    pub fn labels(&self) -> &[String] {
        &self.model.config().labels
    }

    /// What is in a picture, the most certain first, as far as it is more certain than `threshold`.
    pub fn detect(&self, picture: &Picture, threshold: f64) -> Result<Vec<Detected>, Problem> {
        let pixels = rows(&self.processor, picture)?;
        let batch = Batch::new(&*self.backend, &[(pixels.0, &pixels.1)]);
        let found = self.model.forward(&Tape::inference(&self.backend), &batch);
        let size = [picture.width(), picture.height()];
        Ok(things(&*self.backend, &found, size).into_iter().filter(|thing| thing.score > threshold).collect())
    }
}

/// What a model found in one picture of this width and height: a thing for each query, the most certain first.
pub fn things(backend: &dyn Backend, found: &Found, size: [usize; 2]) -> Vec<Detected> {
    let [logits, boxes] = [&found.classes, &found.boxes].map(|x| backend.download_f32(x.value()));
    let queries = logits.chunks_exact(found.classes.shape().cols()).zip(boxes.as_chunks::<4>().0);
    let mut things: Vec<Detected> = queries
        .map(|(logits, raw)| {
            let (class, score) = best(logits);
            Detected { class, score, bbox: located(raw, size) }
        })
        .collect();
    things.sort_by(|a, b| b.score.total_cmp(&a.score));
    things
}

/// A picture as the model reads it: its height and width, and red, green and blue of each pixel.
pub fn rows(processor: &Processor, picture: &Picture) -> Result<([usize; 2], Vec<f32>), Problem> {
    let pixels = processor.process(picture)?;
    let (size, count) = ([pixels.height, pixels.width], pixels.height * pixels.width);
    let numbers = (0..3 * count).map(|i| pixels.numbers[i % 3 * count + i / 3]).collect();
    Ok((size, numbers))
}

/// The most probable class that is something, and its probability.
fn best(logits: &[f32]) -> (usize, f64) {
    let greatest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let power = |x: f32| f64::from(x - greatest).exp();
    let sum: f64 = logits.iter().map(|&x| power(x)).sum();
    let classes = logits[..logits.len() - 1].iter().copied().enumerate();
    let first = (0, f32::NEG_INFINITY);
    let (class, logit) = classes.fold(first, |best, next| if next.1 > best.1 { next } else { best });
    (class, power(logit) / sum)
}

/// A box in pixels, from what the model says before the sigmoid.
fn located(raw: &[f32; 4], size: [usize; 2]) -> [f64; 4] {
    let [x, y, width, height] = raw.map(|x| 1.0 / (1.0 + (-f64::from(x)).exp()));
    let [across, down] = size.map(|side| side as f64);
    [(x - width / 2.0) * across, (y - height / 2.0) * down, width * across, height * down]
}
