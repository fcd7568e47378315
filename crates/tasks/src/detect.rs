//! Object detection.

use crate::error::Error;
use attentive_generate::Sizes;
use attentive_image::{Picture, Pixels, Problem, Processor};
use attentive_model::families::detr::{Batch, Detr, Found};
use attentive_tensor::{Backend, Form, Tape};
use std::path::Path;
use std::sync::Arc;

/// A model that detects objects, and the processor of its pictures.
#[derive(Debug)]
pub struct Detector {
    backend: Arc<dyn Backend>,
    model: Arc<Detr>,
    processor: Processor,
}

/// A detected object.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Detected {
    /// The number of its class.
    pub class: usize,
    /// The confidence, from 0 to 1.
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

    /// How large the model is; of the width of its feed-forward networks, that of the encoder.
    pub fn sizes(&self) -> Sizes {
        let config = self.model.config();
        Sizes {
            d_model: config.d_model,
            h: config.h[0],
            decoder_h: config.h[1],
            d_ff: config.d_ff[0],
            encoder_layers: config.encoder_layers,
            decoder_layers: config.decoder_layers,
            parameters: self.model.parameter_count(),
        }
    }

    /// The objects in a picture whose confidence is above `threshold`, the most confident first.
    pub fn detect(&self, picture: &Picture, threshold: f64) -> Result<Vec<Detected>, Problem> {
        let outputs = self.outputs(&self.read(picture)?);
        Ok(self.things(&outputs, [picture.width(), picture.height()], threshold))
    }

    /// Prepares a picture.
    pub fn read(&self, picture: &Picture) -> Result<Pixels, Problem> {
        self.processor.process(picture)
    }

    /// The predictions for a prepared picture, `[queries, classes + 1 + 4]`: the logits of the classes and of "no object", and the box
    /// before the sigmoid.
    pub fn outputs(&self, pixels: &Pixels) -> Vec<f32> {
        let (size, numbers) = interleaved(pixels);
        let batch = Batch::new(&*self.backend, &[(size, &numbers)]);
        let found = self.model.forward(&Tape::inference(&self.backend), &batch);
        query_by_query(&*self.backend, &found)
    }

    /// The objects in a picture of this width and height by the [outputs](Detector::outputs) for it, the most confident first.
    pub fn things(&self, outputs: &[f32], size: [usize; 2], threshold: f64) -> Vec<Detected> {
        let things = sorted(outputs, self.labels().len() + 1, size);
        things.into_iter().filter(|thing| thing.score > threshold).collect()
    }
}

/// The predictions for one picture of this width and height: an object for each query, the most confident first.
pub fn things(backend: &dyn Backend, found: &Found, size: [usize; 2]) -> Vec<Detected> {
    sorted(&query_by_query(backend, found), found.classes.shape().cols(), size)
}

/// The logits of the classes and of "no object", and the box, query by query.
fn query_by_query(backend: &dyn Backend, found: &Found) -> Vec<f32> {
    let [logits, boxes] = [&found.classes, &found.boxes].map(|x| backend.download_f32(x.value()));
    let queries = logits.chunks_exact(found.classes.shape().cols()).zip(boxes.as_chunks::<4>().0);
    queries.flat_map(|(logits, raw)| logits.iter().chain(raw)).copied().collect()
}

fn sorted(outputs: &[f32], classes: usize, size: [usize; 2]) -> Vec<Detected> {
    let thing = |query: &[f32]| {
        let (logits, raw) = query.split_at(classes);
        let (class, score) = best(logits);
        Detected { class, score, bbox: located(raw, size) }
    };
    let mut things: Vec<Detected> = outputs.chunks_exact(classes + 4).map(thing).collect();
    things.sort_by(|a, b| b.score.total_cmp(&a.score));
    things
}

/// A picture as the model reads it: its height and width, and red, green and blue of each pixel.
pub fn rows(processor: &Processor, picture: &Picture) -> Result<([usize; 2], Vec<f32>), Problem> {
    Ok(interleaved(&processor.process(picture)?))
}

fn interleaved(Pixels { height, width, numbers }: &Pixels) -> ([usize; 2], Vec<f32>) {
    let count = height * width;
    ([*height, *width], (0..3 * count).map(|i| numbers[i % 3 * count + i / 3]).collect())
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
fn located(raw: &[f32], size: [usize; 2]) -> [f64; 4] {
    let [x, y, width, height] = std::array::from_fn(|i| 1.0 / (1.0 + (-f64::from(raw[i])).exp()));
    let [across, down] = size.map(|side| side as f64);
    [(x - width / 2.0) * across, (y - height / 2.0) * down, width * across, height * down]
}
