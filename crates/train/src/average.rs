//! Means of weights: one that moves along with training, and that of several checkpoints.
//!
//! ```text
//! mean = decay · mean + (1 - decay) · weights
//! ```
//!
//! Both lie on the device, and training does not wait for them. The settings have the decay of each step.

use crate::Error;
use attentive_tensor::{Backend, Parameter, Tensor};
use std::path::{Path, PathBuf};

/// The exponential moving average of a model's weights.
#[derive(Debug)]
pub(crate) struct MovingAverage {
    /// In the order of the parameters.
    means: Vec<Parameter>,
}

impl MovingAverage {
    /// A mean that begins with the weights as they are. It is in the parameters of a teacher, if there is one.
    pub fn new(
        backend: &dyn Backend,
        parameters: &[Parameter],
        teacher: Option<&[Parameter]>,
    ) -> MovingAverage {
        let copy = |parameter: &Parameter| backend.copy(&parameter.value());
        let own = || parameters.iter().map(|one| Parameter::new(one.name(), copy(one))).collect();
        let average = MovingAverage { means: teacher.map_or_else(own, <[Parameter]>::to_vec) };
        if teacher.is_some() {
            average.restore(parameters.iter().map(copy).collect());
        }
        average
    }

    /// Goes on from means that were saved.
    pub fn restore(&self, means: Vec<Tensor>) {
        for (mean, value) in self.means.iter().zip(means) {
            mean.update(|_| value);
        }
    }

    /// The mean of each parameter.
    pub fn means(&self) -> Vec<Tensor> {
        self.means.iter().map(Parameter::value).collect()
    }

    /// Moves along after a step.
    pub fn update(&self, backend: &dyn Backend, parameters: &[Parameter], decay: f64) {
        for (mean, parameter) in self.means.iter().zip(parameters) {
            mean.update(|mean| {
                let mut mean = backend.own(mean);
                backend.blend(&mut mean, &parameter.value(), (1.0 - decay) as f32);
                mean
            });
        }
    }

    /// Lets parameters and means change places: once, and the model is the mean; again, and all is as it was.
    pub fn swap(&self, parameters: &[Parameter]) {
        for (parameter, mean) in parameters.iter().zip(&self.means) {
            let value = parameter.value();
            parameter.update(|_| mean.value());
            mean.update(|_| value);
        }
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
    fn the_mean_moves_by_a_share_of_the_way() {
        let backend = backend();
        let w = Parameter::new("w", backend.upload_f32(&[1.0], [1]));
        let average = MovingAverage::new(&*backend, std::slice::from_ref(&w), None);
        w.update(|_| backend.upload_f32(&[2.0], [1]));
        average.update(&*backend, std::slice::from_ref(&w), 0.75);
        assert_eq!(backend.download_f32(&average.means()[0]), [1.25]);
    }

    #[test]
    fn a_teacher_begins_as_its_student_and_swapping_twice_leaves_all_as_it_was() {
        let backend = backend();
        let [student, teacher] =
            [1.0, 9.0].map(|value| [Parameter::new("w", backend.upload_f32(&[value], [1]))]);
        let average = MovingAverage::new(&*backend, &student, Some(&teacher));
        let values = || [&student, &teacher].map(|one| backend.download_f32(&one[0].value())[0]);
        assert_eq!(values(), [1.0, 1.0]);
        average.restore(vec![backend.upload_f32(&[5.0], [1])]);
        average.swap(&student);
        assert_eq!(values(), [5.0, 1.0]);
        average.swap(&student);
        assert_eq!(values(), [1.0, 5.0]);
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
