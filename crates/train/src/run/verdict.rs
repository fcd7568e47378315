//! Whether a run ended too early.

use super::Run;
use crate::metrics::Metric;
use crate::{Error, Reason, Undertrained, logs};

/// The part of the validation loss that has to be gone over the last third of a run to be worth going on.
const FALL: f64 = 0.03;

impl Run {
    /// Why the model would be better after more training, if it would. Rank 0 alone says it.
    pub(super) fn undertrained(&self, reason: Reason) -> Result<Option<Undertrained>, Error> {
        if !self.is_first() || matches!(reason, Reason::Interrupted | Reason::Patience) {
            return Ok(None);
        }
        let (step, warmup) = (self.state.step, self.settings.warmup);
        if step < warmup {
            return Ok(Some(Undertrained::WarmUp { warmup }));
        }
        if let Some(end) = self.settings.schedule_end().filter(|&end| step < end) {
            return Ok(Some(Undertrained::Schedule { end }));
        }
        let losses: Vec<(u64, f64)> = logs::read(&self.folder)?
            .into_iter()
            .filter_map(|metric| match metric {
                Metric::Validation(validation) => Some((validation.step, validation.loss)),
                _ => None,
            })
            .collect();
        Ok(still_falls(&losses).then_some(Undertrained::Improving))
    }
}

/// Whether the loss fell notably over the last third of the steps, given steps and losses of all validations.
fn still_falls(losses: &[(u64, f64)]) -> bool {
    let Some(&(end, last)) = losses.last() else { return false };
    let before = losses.iter().rfind(|(step, _)| 3 * step <= 2 * end);
    before.is_some_and(|(_, before)| last < (1.0 - FALL) * before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_that_falls_in_the_last_third_is_worth_going_on_and_a_flat_one_is_not() {
        assert!(still_falls(&[(100, 5.0), (200, 4.0), (300, 3.5)]));
        assert!(!still_falls(&[(100, 5.0), (200, 2.0), (300, 1.99)]));
        assert!(!still_falls(&[(100, 2.0), (200, 2.0), (300, 2.4)]));
        assert!(!still_falls(&[(300, 3.0)]) && !still_falls(&[]));
    }
}
