//! Means of weights: one that moves along with training, and that of several checkpoints.
//!
//! ```text
//! mean = mean + share · (weights - mean),   share = 1 - min(decay, (1 + step) / (10 + step))
//! ```
//!
//! The second term lets the mean follow closely while the weights still change much; it is the usual warm-up
//! of such means. Both lie on the device, and training does not wait for them.

use crate::Error;
use attentive_tensor::{Backend, Parameter, Tensor};
use std::path::{Path, PathBuf};

/// The exponential moving average of a model's weights.
#[derive(Debug)]
pub(crate) struct MovingAverage {
    decay: f64,
    /// In the order of the parameters.
    means: Vec<Tensor>,
}

impl MovingAverage {
    /// A mean that begins with the weights as they are.
    pub fn new(backend: &dyn Backend, decay: f64, parameters: &[Parameter]) -> MovingAverage {
        let means = parameters.iter().map(|parameter| backend.copy(&parameter.value())).collect();
        MovingAverage { decay, means }
    }

    /// Goes on from a mean that was saved.
    pub fn restore(decay: f64, means: Vec<Tensor>) -> MovingAverage {
        MovingAverage { decay, means }
    }

    /// How much of it stays from step to step.
    pub fn decay(&self) -> f64 {
        self.decay
    }

    /// The mean of each parameter.
    pub fn means(&self) -> &[Tensor] {
        &self.means
    }

    /// Moves along after a step, counted from 1.
    pub fn update(&mut self, backend: &dyn Backend, parameters: &[Parameter], step: u64) {
        let share = 1.0 - self.decay.min((1.0 + step as f64) / (10.0 + step as f64));
        for (mean, parameter) in self.means.iter_mut().zip(parameters) {
            backend.blend(mean, &parameter.value(), share as f32);
        }
    }

    /// Lets parameters and means change places: once, and the model is the mean; again, and all is as it was.
    pub fn swap(&mut self, parameters: &[Parameter]) {
        exchange(parameters, &mut self.means);
    }
}

/// Lets the values of parameters and other tensors change places.
pub(crate) fn exchange(parameters: &[Parameter], values: &mut [Tensor]) {
    for (parameter, value) in parameters.iter().zip(values) {
        parameter.update(|old| std::mem::replace(value, old));
    }
}

/// The mean of the weights in several files, for each parameter; `read` reads those of one file.
pub(crate) fn mean_of_files(
    backend: &dyn Backend,
    files: &[PathBuf],
    read: impl Fn(&Path) -> Result<Vec<Tensor>, Error>,
) -> Result<Vec<Tensor>, Error> {
    let mut means: Vec<Tensor> = Vec::new();
    for (file, count) in files.iter().zip(1..) {
        let values = read(file)?;
        if means.is_empty() {
            means = values;
            continue;
        }
        for (mean, value) in means.iter_mut().zip(values) {
            backend.blend(mean, &value, 1.0 / count as f32);
        }
    }
    Ok(means)
}

#[cfg(test)]
mod tests {
    use super::*;
    use attentive_model::checkpoint::{self, Checkpoint};
    use attentive_tensor::check::backend;

    #[test]
    fn the_mean_follows_closely_at_first_and_slowly_later() {
        let backend = backend();
        let w = Parameter::new("w", backend.upload_f32(&[1.0], [1]));
        let mut average = MovingAverage::new(&*backend, 0.9, std::slice::from_ref(&w));
        w.update(|_| backend.upload_f32(&[2.0], [1]));
        let mean = |average: &MovingAverage| backend.download_f32(&average.means()[0])[0];
        average.update(&*backend, std::slice::from_ref(&w), 1);
        assert!((mean(&average) - (1.0 + 9.0 / 11.0)).abs() < 1e-6, "{}", mean(&average));
        let before = mean(&average);
        average.update(&*backend, std::slice::from_ref(&w), 1000);
        assert!((mean(&average) - (before + 0.1 * (2.0 - before))).abs() < 1e-6, "{}", mean(&average));
    }

    #[test]
    fn swapping_twice_leaves_all_as_it_was() {
        let backend = backend();
        let w = Parameter::new("w", backend.upload_f32(&[1.0], [1]));
        let mut average = MovingAverage::restore(0.9, vec![backend.upload_f32(&[5.0], [1])]);
        let value = || backend.download_f32(&w.value())[0];
        average.swap(std::slice::from_ref(&w));
        assert_eq!(value(), 5.0);
        average.swap(std::slice::from_ref(&w));
        assert_eq!((value(), backend.download_f32(&average.means()[0])[0]), (1.0, 5.0));
    }

    #[test]
    fn the_mean_of_files_is_the_mean_of_their_numbers() {
        let backend = backend();
        let w = Parameter::new("w", backend.upload_f32(&[0.0, 0.0], [2]));
        let file = |i: u32| {
            let path = std::env::temp_dir().join(format!("attentive-mean-{}-{i}", std::process::id()));
            w.update(|_| backend.upload_f32(&[i as f32, 10.0 * i as f32], [2]));
            checkpoint::stage(&path, &*backend, std::slice::from_ref(&w), &[]).unwrap().commit().unwrap();
            path
        };
        let files = [1, 2, 6].map(file);
        let read = |path: &Path| Ok(vec![Checkpoint::open(path)?.tensor(&*backend, "w", [2].into())?]);
        let means = mean_of_files(&*backend, &files, read).unwrap();
        files.iter().for_each(|file| std::fs::remove_file(file).unwrap());
        assert_eq!(backend.download_f32(&means[0]), [3.0, 30.0]);
    }
}
