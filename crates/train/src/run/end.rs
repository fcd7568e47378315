//! How a run ends: the last validation, the average of the last checkpoints, and the best of all in the
//! folder.

use super::Run;
use crate::average::{exchange, mean_of_files};
use crate::metrics::{EndMetric, ValidationMetric};
use crate::{Error, Event, Outcome, Reason, publish};

impl Run {
    pub(super) fn end(&mut self, reason: Reason, watch: &mut dyn FnMut(&Event)) -> Result<Outcome, Error> {
        let best = if reason == Reason::Interrupted { self.put_down()? } else { self.conclude(watch)? };
        let (step, epoch, seconds) = (self.state.step, self.state.epoch, self.clock.seconds());
        let end = EndMetric { step, epoch, seconds, reason: reason.to_string() };
        self.log.write_end(end).map_err(|error| self.unsaved(error))?;
        self.report()?;
        Ok(Outcome {
            reason,
            step,
            epoch,
            seconds,
            best,
            undertrained: self.undertrained(reason)?,
            session: self.clock.steps,
            waited: self.clock.waited,
        })
    }

    /// Saves, to go on another time. What is saved is no checkpoint among the others: going on gives the bits
    /// of a run that was never put down.
    fn put_down(&mut self) -> Result<Option<ValidationMetric>, Error> {
        self.save_state()?;
        if self.is_first() && !publish::is_model(&self.folder)? {
            let path = publish::weights(&self.folder);
            let staged = self.learner.judged(|backend, task| task.stage_weights(&**backend, &path));
            staged.and_then(|staged| Ok(staged.commit()?)).map_err(|error| self.unsaved(error))?;
        }
        Ok(self.state.best.clone())
    }

    fn conclude(&mut self, watch: &mut dyn FnMut(&Event)) -> Result<Option<ValidationMetric>, Error> {
        if self.state.validated != Some(self.state.step) {
            self.validate(watch)?;
        }
        self.checkpoint()?;
        // All read what rank 0 has just written.
        self.meet()?;
        let averaged = self.average(watch)?;
        self.meet()?;
        Ok(averaged.or_else(|| self.state.best.clone()))
    }

    /// Collective: judges the average of the last checkpoints, and puts it into the folder if it is better than the best
    /// of them. The state does not know about it: should the run go on, it goes on as if there had been no
    /// end.
    fn average(&mut self, watch: &mut dyn FnMut(&Event)) -> Result<Option<ValidationMetric>, Error> {
        let kept = &self.state.kept;
        let count = kept.len().min(self.settings.average);
        if count < 2 {
            return Ok(None);
        }
        let files: Vec<_> =
            kept[kept.len() - count..].iter().map(|&step| self.checkpoints.weights(step)).collect();
        let backend = self.learner.backend.clone();
        let task = &self.learner.task;
        let mut means = mean_of_files(&*backend, &files, |file| task.read_weights(&*backend, file))?;
        exchange(self.learner.parameters(), &mut means);
        let judged = self.judge_average(count, watch);
        exchange(self.learner.parameters(), &mut means);
        judged
    }

    /// Collective: judges and saves the model, whose weights are those of the average.
    fn judge_average(
        &mut self,
        count: usize,
        watch: &mut dyn FnMut(&Event),
    ) -> Result<Option<ValidationMetric>, Error> {
        let backend = self.learner.backend.clone();
        let judgement = self.learner.task.judge(&backend, &self.learner.ranks())?;
        self.notice(format!("averaged the last {count} checkpoints"), watch)?;
        let metric = judgement.map(|judgement| self.tell(judgement, watch)).transpose()?;
        if metric.as_ref().is_some_and(|metric| !metric.best) {
            return Ok(None);
        }
        if self.is_first() {
            let path = publish::weights(&self.folder);
            let staged = self.learner.task.stage_weights(&*backend, &path);
            staged.and_then(|staged| Ok(staged.commit()?)).map_err(|error| self.unsaved(error))?;
        }
        Ok(metric)
    }
}
