//! Validation in the course of a run, and which model is the best.

use super::Run;
use crate::metrics::{Metric, ValidationMetric};
use crate::settings::Measure;
use crate::tasks::Judgement;
use crate::{Error, Event};

impl Measure {
    /// What a validation scored: higher is better. Of the same score, the lower loss is better: few labels are right or wrong alike
    /// long before a model has learned enough.
    fn score(self, metric: &ValidationMetric) -> (f64, f64) {
        let score = match self {
            Measure::Loss => Some(-metric.loss),
            Measure::Bleu => metric.bleu,
            Measure::Chrf => metric.chrf,
            Measure::Rouge => metric.rouge,
            Measure::Accuracy => metric.accuracy,
            Measure::Exact => metric.exact,
            Measure::F1 => metric.f1,
            Measure::Ap => metric.ap,
        };
        let higher = |score: Option<f64>| score.filter(|score| !score.is_nan()).unwrap_or(f64::NEG_INFINITY);
        (higher(score), higher(Some(-metric.loss)))
    }
}

impl Run {
    /// Collective: judges the model as it is now. All ranks come to the same scores.
    pub(super) fn validate(&mut self, watch: &mut dyn FnMut(&Event)) -> Result<(), Error> {
        let ranks = self.learner.ranks();
        let Some(judgement) = self.learner.judged(|backend, task| task.judge(backend, &ranks))? else {
            return Ok(());
        };
        let metric = self.tell(judgement, watch)?;
        let state = &mut self.state;
        state.validated = Some(state.step);
        if metric.best {
            (state.best, state.since_best) = (Some(metric), 0);
        } else {
            state.since_best += 1;
        }
        Ok(())
    }

    /// Writes a judgement down, and whether it is better than the best.
    pub(super) fn tell(
        &mut self,
        judgement: Judgement,
        watch: &mut dyn FnMut(&Event),
    ) -> Result<ValidationMetric, Error> {
        let Judgement { loss, bleu, chrf, rouge, accuracy, exact, f1, ap, ap50, samples } = judgement;
        let (step, seconds) = (self.state.step, self.clock.seconds());
        let mut metric = ValidationMetric {
            step,
            loss,
            bleu,
            chrf,
            rouge,
            accuracy,
            exact,
            f1,
            ap,
            ap50,
            seconds,
            best: false,
        };
        let measure = self.settings.early_stopping;
        metric.best =
            self.state.best.as_ref().is_none_or(|best| measure.score(&metric) > measure.score(best));
        self.log.write(&Metric::Validation(metric.clone())).map_err(|error| self.unsaved(error))?;
        self.samples.clone_from(&samples);
        watch(&Event::Validation(metric.clone(), samples));
        Ok(metric)
    }
}
