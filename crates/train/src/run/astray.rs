//! A loss that is not a finite number, or that climbs, and the way back.

use super::{Due, Run};
use crate::checkpoints::Course;
use crate::corpus::Batches;
use crate::{Error, Event};
use std::sync::Arc;

/// How often a run goes back before it gives up.
const RECOVERIES: u32 = 3;
/// How much of the smoothed loss stays from step to step.
const STAYS: f64 = 0.98;

impl Course {
    /// The smoothed loss after `steps` with this mean.
    fn next(&self, loss: f64, steps: u64) -> f64 {
        let stays = STAYS.powf(steps as f64);
        self.smoothed.map_or(loss, |smoothed| stays * smoothed + (1.0 - stays) * loss)
    }

    /// Goes on with the mean loss of some steps.
    pub(super) fn follow(&mut self, loss: f64, steps: u64) {
        let smoothed = self.next(loss, steps);
        self.smoothed = Some(smoothed);
        self.lowest = Some(self.lowest.map_or(smoothed, |lowest| lowest.min(smoothed)));
    }

    /// Whether the loss climbs far above what it had come down to: half of it, and at least by one.
    fn climbs(&self, loss: f64, steps: u64) -> bool {
        let smoothed = self.next(loss, steps);
        self.lowest.is_some_and(|lowest| smoothed > (1.5 * lowest).max(lowest + 1.0))
    }
}

impl Run {
    /// What is wrong with the steps since the last look: at the losses, and before something is saved at the
    /// weights, too. In between nobody looks, so that the host need not wait for the device.
    pub(super) fn astray(&self, due: Due) -> Option<String> {
        if !due.log && !due.checkpoint {
            return None;
        }
        let loss = self.learner.loss() / self.state.unlogged.targets.max(1) as f64;
        if !loss.is_finite() {
            return Some("is not a finite number".to_owned());
        }
        if due.log && self.state.course.climbs(loss, self.settings.log_every) {
            return Some(format!("has risen to {loss:.2}"));
        }
        (due.checkpoint && !self.learner.is_finite())
            .then(|| "has led to weights that are not finite numbers".to_owned())
    }

    /// Goes back to the last checkpoint, to go on at half the rate.
    pub(super) fn go_back(&mut self, problem: &str, watch: &mut dyn FnMut(&Event)) -> Result<(), Error> {
        let failed = self.state.step;
        if self.state.recoveries >= RECOVERIES {
            let times = self.state.recoveries;
            return Err(Error::Diverged { step: failed, reason: problem.to_owned(), times });
        }
        self.state = self.checkpoints.load(&mut self.learner)?;
        self.state.rate_factor /= 2.0;
        self.state.recoveries += 1;
        let (examples, position) = (Arc::clone(&self.examples), &self.state.position);
        let batches = Batches::from_position(examples, position, self.settings.batching())?;
        self.batches = batches.among(self.learner.ranks())?;
        self.log.cut(self.state.log_bytes)?;
        let message = format!(
            "the loss {problem} at step {failed}: going back to step {} with half the learning rate \
             (attempt {} of {RECOVERIES})",
            self.state.step, self.state.recoveries
        );
        self.notice(message, watch)?;
        // All have read what rank 0 is about to replace.
        self.meet_all()?;
        // Killed from here on, it goes on at half the rate as well.
        self.save_state()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_that_goes_up_and_down_is_not_astray_and_one_that_climbs_is() {
        let mut course = Course::default();
        for i in 0..100 {
            let loss = 3.0 + 5.0 / (1.0 + i as f64) + if i % 2 == 0 { 0.5 } else { -0.5 };
            assert!(!course.climbs(loss, 50), "{i}");
            course.follow(loss, 50);
        }
        assert!(!course.climbs(4.0, 50));
        assert!(course.climbs(9.0, 50), "{course:?}");
        // One step has little weight.
        assert!(!course.climbs(9.0, 1));
    }
}
