//! Validation by nearest neighbours, as DINO has it: how well the labels of pictures follow from the vectors of a model that has learned no
//! labels.
//!
//! ```text
//! vote(c) = Σ e^(cos / 0.07)   over the 20 nearest pictures that have the label c
//! ```

use super::as_batch;
use super::loader::Loader;
use crate::Error;
use crate::corpus::pictures::LabelledPicture;
use crate::tasks::{Judgement, Ranks};
use attentive_image::Pixels;
use attentive_model::families::vit::Vit;
use attentive_tensor::{Backend, Best, Tape, TokenLists, Wanted};
use std::sync::Arc;

/// How many neighbours vote.
const NEAREST: usize = 20;

/// The temperature of votes.
const TEMPERATURE: f64 = 0.07;

/// The most training pictures among which neighbours are searched. All of a large corpus would take longer than an epoch.
const MOST_KNOWN: usize = 10_000;

/// About how many tokens a forward pass has.
const TOKENS: usize = 16_384;

/// A lower bound of the share of votes in the loss, so that the loss is finite.
const LEAST_SHARE: f64 = 1e-3;

/// Training pictures, whose labels vote, and validation pictures, whose labels are predicted.
#[derive(Debug)]
pub(super) struct Neighbours {
    loader: Loader,
    known: Vec<LabelledPicture>,
    held: Vec<LabelledPicture>,
}

impl Neighbours {
    /// Validates on `held` by the neighbours among the training pictures, or among some of them, evenly spaced.
    pub fn new(loader: Loader, learned: &[LabelledPicture], held: &[LabelledPicture]) -> Neighbours {
        let count = learned.len().min(MOST_KNOWN);
        let known = (0..count).map(|i| learned[i * learned.len() / count].clone());
        Neighbours { known: known.collect(), held: held.to_vec(), loader }
    }

    /// The number of validation pictures.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// The accuracy of the votes by the vectors of `vit`. The loss is the cross-entropy of the shares of votes.
    pub fn judge(&self, backend: &Arc<dyn Backend>, vit: &Vit, ranks: &Ranks) -> Result<Judgement, Error> {
        let (known, labels) = self.vectors(backend, vit, &self.known, ranks)?;
        let (held, answers) = self.vectors(backend, vit, &self.held, ranks)?;
        let d = vit.config().d_model;
        let count = NEAREST.min(labels.len());
        let wanted = Wanted { count, sums: false, never: None };
        let [x, w] = [(&held, answers.len()), (&known, labels.len())]
            .map(|(vectors, rows)| backend.upload_f32(vectors, [rows, d]));
        let found = backend.top_logits(&x, &w, None, wanted, TokenLists::NONE);
        let (mut right, mut loss) = (0, 0.0);
        for (nearest, &answer) in found.best.chunks_exact(count).zip(&answers) {
            let shares = shares(nearest, &labels, self.loader.labels.len());
            let best = (0..shares.len()).max_by(|&a, &b| shares[a].total_cmp(&shares[b]).then(b.cmp(&a)));
            right += usize::from(best == Some(answer));
            loss -= shares[answer].max(LEAST_SHARE).ln();
        }
        let held = answers.len() as f64;
        let accuracy = Some(100.0 * right as f64 / held);
        Ok(Judgement { loss: loss / held, accuracy, ..Judgement::default() })
    }

    /// The vectors of pictures, each of length one, and the numbers of their labels.
    fn vectors(
        &self,
        backend: &Arc<dyn Backend>,
        vit: &Vit,
        pictures: &[LabelledPicture],
        ranks: &Ranks,
    ) -> Result<(Vec<f32>, Vec<usize>), Error> {
        let config = vit.config();
        let [height, width] = config.image_size;
        let together = (TOKENS / config.tokens_of(height, width).unwrap_or(TOKENS)).max(1);
        let all: Vec<&LabelledPicture> = pictures.iter().collect();
        let found = ranks.share(&all, |mine| {
            let mut found = Vec::with_capacity(mine.len());
            for pictures in mine.chunks(together) {
                let examples = self.loader.load_whole(pictures.iter().copied())?;
                let seen = examples.iter().flat_map(|example| &example.pictures);
                let pixels: Vec<Pixels> =
                    seen.map(|one| self.loader.processor.numbers(&one.picture)).collect();
                let (tape, batch) = (Tape::inference(backend), as_batch(&**backend, config, &pixels));
                let hidden = vit.encode(&tape, &batch);
                let mut vectors = backend.download_f32(vit.vectors(&tape, &hidden, &batch).value());
                vectors.chunks_exact_mut(config.d_model).for_each(normalise);
                let bits = |vector: &[f32]| vector.iter().map(|x| x.to_bits()).collect::<Vec<u32>>();
                let labels = examples.iter().map(|example| example.labels[0] as usize);
                found.extend(vectors.chunks_exact(config.d_model).map(bits).zip(labels));
            }
            Ok(found)
        })?;
        let (vectors, labels): (Vec<Vec<u32>>, Vec<usize>) = found.into_iter().unzip();
        Ok((vectors.into_iter().flatten().map(f32::from_bits).collect(), labels))
    }
}

/// The share of the votes that each label has, given the cosines of the nearest pictures.
fn shares(nearest: &[Best], labels: &[usize], classes: usize) -> Vec<f64> {
    let mut votes = vec![0.0; classes];
    for Best { score, token } in nearest {
        if let Some(&label) = labels.get(*token as usize) {
            // All votes have the common factor e^(-1/τ), which keeps them small.
            votes[label] += ((f64::from(*score) - 1.0) / TEMPERATURE).exp();
        }
    }
    let sum: f64 = votes.iter().sum();
    votes.iter_mut().for_each(|vote| *vote /= if sum > 0.0 { sum } else { 1.0 });
    votes
}

fn normalise(vector: &mut [f32]) {
    let length = vector.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
    vector.iter_mut().for_each(|x| *x = (f64::from(*x) / length.max(1e-12)) as f32);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_near_picture_has_more_votes_than_three_distant_ones() {
        let best = |score, token| Best { score, token };
        // One at a cosine of 0.9 against three at 0.8: e^(0.1 / 0.07) = 4.17.
        let nearest = [best(0.9, 2), best(0.8, 0), best(0.8, 1), best(0.8, 3), Best::NONE];
        let shares = shares(&nearest, &[0, 0, 1, 0], 3);
        let factor = (0.1f64 / 0.07).exp();
        assert!((shares[1] - factor / (factor + 3.0)).abs() < 1e-6, "{shares:?}");
        assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-12 && shares[2] == 0.0);
    }
}
