//! The checkpoints of a run, from which it goes on to the same bits.
//!
//! ```text
//! checkpoints/state.safetensors            all that the next step needs: weights, moments, means, buffers, a note
//! checkpoints/step-00000500.safetensors    weights as a model folder has them: the last ones, and the best
//! ```
//!
//! The state is one file, so that it is replaced at once. It names the files of weights that belong to it;
//! these are written before it and removed after it, so that whenever the process is killed, the files that
//! the state on disk names are there. Whatever else is there was made by a step that will be made again.

use crate::Error;
use crate::corpus::Position;
use crate::learner::Learner;
use crate::metrics::ValidationMetric;
use attentive_model::checkpoint::{self, Checkpoint};
use attentive_tensor::{Parameter, Tensor};
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// What a run remembers beside its tensors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct State {
    /// Of this format.
    pub version: u32,
    /// Steps made so far.
    pub step: u64,
    /// The place of the next batch.
    pub position: Position,
    /// How often the corpus was gone through.
    pub epoch: f64,
    /// Seconds of training so far.
    pub seconds: f64,
    /// What the learning rate is multiplied by: it is halved each time the loss goes astray.
    pub rate_factor: f64,
    /// How often that was.
    pub recoveries: u32,
    /// The best validation so far.
    pub best: Option<ValidationMetric>,
    /// Validations since then.
    pub since_best: u64,
    /// The step of the last validation.
    pub validated: Option<u64>,
    /// The steps whose weights are kept as files, the last ones.
    pub kept: Vec<u64>,
    /// What has not been written to the log yet.
    pub unlogged: Unlogged,
    /// The course of the loss, by which it is seen to go astray.
    pub course: Course,
    /// How long the log was.
    pub log_bytes: u64,
    /// The device.
    pub device: String,
}

/// Losses of steps that are not in the log yet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Unlogged {
    /// The sum over target tokens.
    pub loss: f64,
    /// How many there are.
    pub targets: u64,
    /// With their sources.
    pub tokens: u64,
    /// How long it took.
    pub seconds: f64,
    /// The learning rate of the last step.
    pub rate: f64,
    /// The norm of its gradient, squared, where it was wanted.
    pub squared_norm: Option<f64>,
}

/// The loss, smoothed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Course {
    /// A moving average.
    pub smoothed: Option<f64>,
    /// The lowest that it was.
    pub lowest: Option<f64>,
}

/// The present format.
pub(crate) const VERSION: u32 = 1;
const NOTE: &str = "attentive";
const STATE: &str = "state.safetensors";

/// The folder of checkpoints in a run's folder.
#[derive(Debug)]
pub(crate) struct Checkpoints {
    folder: PathBuf,
}

impl Checkpoints {
    /// The checkpoints of a run's folder.
    pub(crate) fn of(run: &Path) -> Checkpoints {
        Checkpoints { folder: run.join("checkpoints") }
    }

    /// Makes the folder.
    pub(crate) fn create(&self) -> Result<(), Error> {
        std::fs::create_dir_all(&self.folder).map_err(Error::file(&self.folder))
    }

    /// Whether there is one to go on from.
    pub(crate) fn exists(&self) -> Result<bool, Error> {
        exists(&self.state_path())
    }

    /// The file with the weights of a step.
    pub(crate) fn weights(&self, step: u64) -> PathBuf {
        self.folder.join(format!("step-{step:08}.safetensors"))
    }

    fn state_path(&self) -> PathBuf {
        self.folder.join(STATE)
    }

    /// Writes the weights that are judged at this step, which a state is going to name.
    pub(crate) fn save_weights(&self, learner: &mut Learner, step: u64) -> Result<(), Error> {
        let path = self.weights(step);
        let staged = learner.judged(|backend, task| task.stage_weights(&**backend, &path))?;
        Ok(staged.commit()?)
    }

    /// Writes the state, and removes the weights that it does not name. Collective: rank 0 writes.
    pub(crate) fn save(&self, learner: &Learner, state: &State) -> Result<(), Error> {
        let moments = learner.moments()?;
        if learner.group().is_some_and(|group| group.rank() > 0) {
            return Ok(());
        }
        let tensors: Vec<(String, Tensor)> =
            names(learner).into_iter().zip(values(learner, &moments)).collect();
        let note = serde_json::to_string(state).expect("a plain structure");
        let staged =
            checkpoint::stage_tensors(&self.state_path(), &*learner.backend, &tensors, Some((NOTE, note)))?;
        staged.commit()?;
        self.clean(Some(state))
    }

    /// Reads the state, and what it needs into the learner.
    pub(crate) fn load(&self, learner: &mut Learner) -> Result<State, Error> {
        let path = self.state_path();
        let file = Checkpoint::open(&path)?;
        let state = state_of(&path, &file)?;
        let parameters = learner.parameters().to_vec();
        let kinds = KINDS.len() + usize::from(learner.average.is_some());
        let of_kinds = (0..kinds).flat_map(|_| &parameters);
        let shapes = of_kinds.chain(learner.task.buffers()).map(|parameter| parameter.value().shape());
        let mut tensors = names(learner)
            .into_iter()
            .zip(shapes)
            .map(|(name, shape)| file.tensor(&*learner.backend, &name, shape))
            .collect::<Result<Vec<_>, _>>()?;

        let buffers = tensors.split_off(kinds * parameters.len());
        let means = tensors.split_off(3 * parameters.len());
        let squares = tensors.split_off(2 * parameters.len());
        let firsts = tensors.split_off(parameters.len());
        let learned = parameters.iter().zip(tensors);
        for (parameter, value) in learned.chain(learner.task.buffers().iter().zip(buffers)) {
            parameter.update(|_| value);
        }
        let moments = firsts.into_iter().zip(squares).map(|(m, v)| [m, v]).collect();
        learner.restore(state.step as u32, moments);
        learner.set_loss(state.unlogged.loss);
        if let Some(average) = &learner.average {
            average.restore(means);
        }
        Ok(state)
    }

    /// Removes what no state names: files of steps that will be made again, and halves of files.
    pub(crate) fn clean(&self, state: Option<&State>) -> Result<(), Error> {
        let named = |step: u64| {
            state.is_some_and(|state| {
                state.kept.contains(&step) || state.best.as_ref().is_some_and(|best| best.step == step)
            })
        };
        for path in list(&self.folder)? {
            let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
            let step = name.strip_prefix("step-").and_then(|rest| rest.strip_suffix(".safetensors"));
            let stray = step.and_then(|step| step.parse().ok()).is_some_and(|step| !named(step));
            if stray || is_half(name) {
                std::fs::remove_file(&path).map_err(Error::file(&path))?;
            }
        }
        Ok(())
    }
}

/// Whether a file is there. That the system cannot tell is a failure: a run that is taken for none would be begun anew.
pub(crate) fn exists(path: &Path) -> Result<bool, Error> {
    path.try_exists().map_err(Error::file(path))
}

/// Removes files in a folder that were not finished when a process was killed.
pub(crate) fn remove_halves(folder: &Path) -> Result<(), Error> {
    for path in list(folder)? {
        if path.file_name().and_then(OsStr::to_str).is_some_and(is_half) {
            std::fs::remove_file(&path).map_err(Error::file(&path))?;
        }
    }
    Ok(())
}

/// Whether this is the name of a file on its way.
fn is_half(name: &str) -> bool {
    name.starts_with('.') && name.ends_with(".part")
}

fn list(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let entries = std::fs::read_dir(folder).map_err(Error::file(folder))?;
    entries.map(|entry| Ok(entry.map_err(Error::file(folder))?.path())).collect()
}

fn state_of(path: &Path, file: &Checkpoint) -> Result<State, Error> {
    let refused = |problem: String| Error::Checkpoint { path: path.to_owned(), problem };
    let note = file.note(NOTE).ok_or_else(|| refused("not a checkpoint of a training run".to_owned()))?;
    #[derive(Deserialize)]
    struct Version {
        version: u32,
    }
    let failed = |error: serde_json::Error| refused(format!("not a checkpoint of a training run: {error}"));
    let Version { version } = serde_json::from_str(note).map_err(failed)?;
    if version != VERSION {
        return Err(refused(format!(
            "written by another version of attentive (format {version}, not {VERSION})"
        )));
    }
    serde_json::from_str(note).map_err(failed)
}

/// What stands before the names of weights and of both moments.
const KINDS: [&str; 3] = ["", "adam.m.", "adam.v."];

/// The names of a state's tensors: weights, both moments, the means if there are any, and the buffers of the task.
fn names(learner: &Learner) -> Vec<String> {
    let kinds = KINDS.into_iter().chain(learner.average.is_some().then_some("ema."));
    let of_kinds =
        kinds.flat_map(|kind| learner.parameters().iter().map(move |p| format!("{kind}{}", p.name())));
    of_kinds.chain(learner.task.buffers().iter().map(|buffer| buffer.name().to_owned())).collect()
}

/// The tensors of a state in the same order.
fn values(learner: &Learner, moments: &[[Tensor; 2]]) -> Vec<Tensor> {
    let weights = learner.parameters().iter().map(Parameter::value);
    let moment = |i: usize| moments.iter().map(move |pair| pair[i].clone());
    let means = learner.average.iter().flat_map(|average| average.means());
    let buffers = learner.task.buffers().iter().map(Parameter::value);
    weights.chain(moment(0)).chain(moment(1)).chain(means).chain(buffers).collect()
}
