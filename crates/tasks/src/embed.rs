//! Texts to vectors.

use crate::encoder::{Encoder, Texts};
use crate::error::Error;
use crate::pooling::{Pooling, Pools};
use attentive_model::families::bert::Task;
use attentive_tensor::{Backend, Form};
use attentive_text::tokenizer::Input;
use std::path::Path;
use std::sync::Arc;

/// Makes vectors of texts, such that texts of like meaning have like vectors.
pub struct Embedder {
    encoder: Encoder,
    pools: Pools,
}

/// Vectors, one after the other.
#[derive(Debug, Clone, PartialEq)]
pub struct Vectors {
    /// How many numbers a vector has.
    pub width: usize,
    /// The numbers of all.
    pub numbers: Vec<f32>,
}

impl Vectors {
    /// Each vector.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[f32]> {
        self.numbers.chunks_exact(self.width.max(1))
    }

    /// The same vectors, each divided by its length.
    pub fn normalised(mut self) -> Vectors {
        self.numbers.chunks_exact_mut(self.width.max(1)).for_each(normalise);
        self
    }
}

impl Embedder {
    /// Reads the model of a folder, with pooling and limit as the folder says.
    pub fn open(backend: &Arc<dyn Backend>, folder: &Path, form: Form) -> Result<Embedder, Error> {
        Embedder::with(Encoder::open(backend, folder, Task::Hidden, form)?)
    }

    /// An encoder that is there already, also one with a head: vectors come from the layers below.
    pub fn with(encoder: Encoder) -> Result<Embedder, Error> {
        let pools = Pools::of(encoder.folder())?;
        Ok(Embedder { encoder, pools }.with_encoder(|encoder| match pools.limit {
            Some(limit) => encoder.with_limit(limit),
            None => encoder,
        }))
    }

    /// The same with its encoder changed.
    pub fn with_encoder(self, change: impl FnOnce(Encoder) -> Encoder) -> Embedder {
        Embedder { encoder: change(self.encoder), ..self }
    }

    /// The model and its tokenizer.
    pub fn encoder(&self) -> &Encoder {
        &self.encoder
    }

    /// How vectors are made.
    pub fn pools(&self) -> Pools {
        self.pools
    }

    /// Reads texts and makes their vectors.
    pub fn embed(&self, texts: &[&str]) -> Result<Vectors, Error> {
        let inputs: Vec<Input> = texts.iter().map(|text| Input::Text(text)).collect();
        self.vectors(&self.encoder.read(&inputs)?)
    }

    /// The vectors of texts that were read, as the folder says.
    pub fn vectors(&self, texts: &Texts) -> Result<Vectors, Error> {
        let pooled = self.pooled(texts)?;
        Ok(if self.pools.normalised { pooled.normalised() } else { pooled })
    }

    /// The pooled vectors of texts that were read, none of them divided by its length.
    pub fn pooled(&self, texts: &Texts) -> Result<Vectors, Error> {
        let width = self.encoder.model().config().d_model;
        let rows = self.encoder.answer(texts, |tape, numbers, batch, hidden| {
            let pooled = match self.pools.pooling {
                Pooling::Mean => self.encoder.model().mean(tape, hidden, &batch.sequences),
                Pooling::First => {
                    let first: Vec<i32> = batch.sequences.ranges().map(|rows| rows.start as i32).collect();
                    tape.embedding(hidden, &tape.backend().upload_i32(&first), 1.0, None)
                }
            };
            let pooled = self.encoder.download(&pooled);
            let rows: Vec<Vec<f32>> = pooled.chunks_exact(width).map(<[f32]>::to_vec).collect();
            assert_eq!(rows.len(), numbers.len(), "a vector for each text");
            Ok(rows)
        })?;
        Ok(Vectors { width, numbers: rows.concat() })
    }
}

fn normalise(vector: &mut [f32]) {
    let length = length(vector);
    vector.iter_mut().for_each(|x| *x = (f64::from(*x) / length) as f32);
}

/// At least as much as sentence-transformers divides by.
fn length(vector: &[f32]) -> f64 {
    dot(vector, vector).sqrt().max(1e-12)
}

/// The cosine of the angle between two vectors.
pub fn cosine(a: &[f32], b: &[f32]) -> f32 {
    (dot(a, b) / (length(a) * length(b))) as f32
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum()
}

/// The vectors that are most like `query`, the best first: their numbers, and the cosines of the angles to it.
pub fn most_similar(query: &[f32], vectors: &Vectors, count: usize) -> Vec<(usize, f32)> {
    let cosines: Vec<f32> = vectors.rows().map(|vector| cosine(query, vector)).collect();
    crate::probabilities::greatest(&cosines, count).into_iter().map(|i| (i, cosines[i])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_vector_comes_first_whatever_its_length() {
        let vectors = Vectors { width: 2, numbers: vec![0.0, 1.0, 10.0, 10.0, -1.0, 0.0, 2.0, 0.1] };
        let found = most_similar(&[1.0, 0.0], &vectors, 3);
        assert_eq!(found.iter().map(|(i, _)| *i).collect::<Vec<_>>(), [3, 1, 0]);
        assert!((found[1].1 - 0.5f32.sqrt()).abs() < 1e-6, "{found:?}");
    }
}
