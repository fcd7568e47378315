//! Checkpoints of a run, and the best model in its folder.

use super::Run;
use crate::learner::Learner;
use crate::{Error, publish, report};

impl Run {
    /// Saves the weights of this step, and all that it takes to go on from here. Collective: rank 0 writes.
    pub(super) fn checkpoint(&mut self) -> Result<(), Error> {
        let step = self.state.step;
        if self.is_first() {
            let saved = self.checkpoints.save_weights(&mut self.learner, step);
            saved.map_err(|error| self.unsaved(error))?;
        }
        let kept = &mut self.state.kept;
        if kept.last() != Some(&step) {
            kept.push(step);
        }
        let most = self.settings.keep.max(self.settings.average).max(1);
        kept.drain(..kept.len().saturating_sub(most));
        self.save_state()?;
        if self.is_first() {
            self.publish()?;
        }
        self.report()
    }

    /// Writes the report of what was logged so far.
    pub(super) fn report(&self) -> Result<(), Error> {
        if !self.is_first() {
            return Ok(());
        }
        let written = report::write(&self.folder, &self.beginning(), &self.settings, &self.samples);
        written.map_err(|error| self.unsaved(error))
    }

    /// Saves all that it takes to go on from here. Collective.
    pub(super) fn save_state(&mut self) -> Result<(), Error> {
        let bytes = self.log.sync().map_err(|error| self.unsaved(error))?;
        self.state.log_bytes = bytes;
        self.state.seconds = self.clock.seconds();
        self.state.unlogged.loss = self.learner.loss();
        self.state.device = device(&self.learner);
        let saved = self.checkpoints.save(&self.learner, &self.state);
        saved.map_err(|error| self.unsaved(error))?;
        self.saved = Some(self.state.step);
        Ok(())
    }

    /// Lets the best weights, or the last ones where nothing is validated, be the model of the folder.
    pub(super) fn publish(&mut self) -> Result<(), Error> {
        let step = match (&self.state.best, self.validates()) {
            (Some(best), _) => Some(best.step),
            (None, false) => self.state.kept.last().copied(),
            (None, true) => None,
        };
        let Some(step) = step else { return Ok(()) };
        let published = publish::publish(&self.folder, &self.checkpoints.weights(step));
        published.map_err(|error| self.unsaved(error))
    }

    /// What could not be written, and what is there all the same.
    pub(super) fn unsaved(&self, error: Error) -> Error {
        Error::Save { step: self.state.step, saved: self.saved, source: Box::new(error) }
    }
}

/// What decides about bits: the device, without the number of its threads.
pub(super) fn device(learner: &Learner) -> String {
    let name = learner.backend.name();
    name.split(" × ").next().unwrap_or_default().to_owned()
}
