//! The learning rate of each step.
//!
//! The paper's, with the learning rate as a factor (1 in the paper):
//!
//! ```text
//! rate = factor · d_model^-0.5 · min(step^-0.5, step · warmup^-1.5)
//! ```
//!
//! All others rise to their peak, the learning rate, along a line over the warm-up, and then go their own
//! way. A cosine and a line end at a last rate, which is zero if nothing is said:
//!
//! ```text
//! rate = last + (peak - last) · ½ (1 + cos(π · done)),    last + (peak - last) · (1 - done)
//! ```

use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

/// How the learning rate changes from step to step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// Section 5.3 of "Attention Is All You Need".
    #[serde(alias = "noam")]
    Paper,
    /// After the warm-up `peak · √(warmup / step)`: the paper's curve with its peak given.
    InverseSqrt,
    /// After the warm-up down half a cosine, to the last rate at the last step.
    Cosine,
    /// After the warm-up down a line, to the last rate at the last step.
    Linear,
    /// After the warm-up always the peak.
    Constant,
}

/// A schedule with its numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LearningRate {
    /// Its shape.
    pub schedule: Schedule,
    /// The factor of the paper's schedule, the peak of the others.
    pub rate: f64,
    /// The rate at the last step of a cosine or a line.
    pub last: f64,
    /// Steps over which the rate rises.
    pub warmup: u64,
    /// The last step, where the schedule needs one.
    pub steps: Option<u64>,
    /// The width of the model.
    pub d_model: usize,
}

impl Schedule {
    /// Its name in settings.
    pub fn name(self) -> &'static str {
        match self {
            Schedule::Paper => "paper",
            Schedule::InverseSqrt => "inverse-sqrt",
            Schedule::Cosine => "cosine",
            Schedule::Linear => "linear",
            Schedule::Constant => "constant",
        }
    }

    /// Whether it leads to a last step, which has to be known.
    pub fn needs_steps(self) -> bool {
        matches!(self, Schedule::Cosine | Schedule::Linear)
    }
}

impl LearningRate {
    /// The rate of a step, counted from 1.
    pub fn at(&self, step: u64) -> f64 {
        let (now, warmup) = (step as f64, self.warmup.max(1) as f64);
        if self.schedule == Schedule::Paper {
            return self.rate
                * (self.d_model as f64).powf(-0.5)
                * now.powf(-0.5).min(now * warmup.powf(-1.5));
        }
        if step < self.warmup {
            return self.rate * now / warmup;
        }
        let down_to_last = |part: f64| self.last + (self.rate - self.last) * part;
        match self.schedule {
            Schedule::Paper | Schedule::Constant => self.rate,
            Schedule::InverseSqrt => self.rate * (warmup / now.max(warmup)).sqrt(),
            Schedule::Cosine => down_to_last(0.5 * (1.0 + (PI * self.done(step)).cos())),
            Schedule::Linear => down_to_last(1.0 - self.done(step)),
        }
    }

    /// How much of the way from the warm-up to the last step is behind us, from 0 to 1.
    fn done(&self, step: u64) -> f64 {
        let steps = self.steps.unwrap_or(u64::MAX);
        // The last step still has a rate: a step of length zero would be none.
        let length = (steps + 1).saturating_sub(self.warmup).max(1);
        (step.saturating_sub(self.warmup) as f64 / length as f64).min(1.0)
    }
}

/// What goes from one number to another along half a cosine over so many steps, at a step counted from 1.
pub fn along_cosine([from, to]: [f64; 2], step: u64, steps: u64) -> f64 {
    let done = (step.saturating_sub(1) as f64 / steps.max(1) as f64).min(1.0);
    to + 0.5 * (from - to) * (1.0 + (PI * done).cos())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(schedule: Schedule, step: u64) -> f64 {
        LearningRate { schedule, rate: 2.0, last: 0.0, warmup: 100, steps: Some(499), d_model: 256 }.at(step)
    }

    #[test]
    fn the_papers_schedule_has_the_papers_numbers() {
        let (schedule, warmup) = (Schedule::Paper, 4000);
        let paper = LearningRate { schedule, rate: 1.0, last: 0.0, warmup, steps: None, d_model: 512 };
        // d_model^-0.5 · step · warmup^-1.5 on the way up, d_model^-0.5 · step^-0.5 on the way down.
        for (step, expected) in
            [(1, 1.746_928_1e-7), (4000, 6.987_712_4e-4), (16_000, 3.493_856_2e-4), (100_000, 1.397_542_5e-4)]
        {
            let rate = paper.at(step);
            assert!((rate / expected - 1.0).abs() < 1e-6, "{step}: {rate}");
        }
    }

    #[test]
    fn all_others_rise_along_a_line_to_their_peak() {
        for schedule in [Schedule::InverseSqrt, Schedule::Cosine, Schedule::Linear, Schedule::Constant] {
            assert_eq!(
                [1, 25, 50, 100].map(|step| rate(schedule, step)),
                [0.02, 0.5, 1.0, 2.0],
                "{schedule:?}"
            );
        }
    }

    #[test]
    fn each_goes_down_in_its_own_way() {
        let close = |schedule, step, expected: f64| {
            let rate = rate(schedule, step);
            assert!((rate - expected).abs() < 1e-12, "{schedule:?} {step}: {rate}");
        };
        close(Schedule::InverseSqrt, 400, 1.0);
        close(Schedule::Cosine, 300, 1.0);
        close(Schedule::Linear, 300, 1.0);
        close(Schedule::Linear, 499, 0.005);
        close(Schedule::Constant, 1_000_000, 2.0);
        // Whoever goes on past the end does not climb again.
        close(Schedule::Cosine, 900, 0.0);
        close(Schedule::Linear, 900, 0.0);
    }

    #[test]
    fn a_cosine_and_a_line_can_end_above_zero() {
        for (schedule, halfway) in [(Schedule::Cosine, 1.1), (Schedule::Linear, 1.1)] {
            let rate =
                LearningRate { schedule, rate: 2.0, last: 0.2, warmup: 100, steps: Some(499), d_model: 8 };
            assert!(
                (rate.at(100) - 2.0).abs() < 1e-12 && (rate.at(300) - halfway).abs() < 1e-12,
                "{schedule:?}"
            );
            assert!((rate.at(900) - 0.2).abs() < 1e-12, "{schedule:?}");
        }
    }

    #[test]
    fn half_a_cosine_begins_at_one_number_and_comes_near_to_the_other() {
        let at = |step| along_cosine([0.996, 1.0], step, 100);
        assert_eq!((at(1), at(101), at(500)), (0.996, 1.0, 1.0));
        assert!((at(51) - 0.998).abs() < 1e-12 && at(100) < 1.0);
    }

    #[test]
    fn without_a_warm_up_the_peak_comes_first() {
        for schedule in [Schedule::InverseSqrt, Schedule::Cosine, Schedule::Linear, Schedule::Constant] {
            let without =
                LearningRate { schedule, rate: 2.0, last: 0.0, warmup: 0, steps: Some(100), d_model: 8 };
            assert!((without.at(1) - 2.0).abs() < 0.05, "{schedule:?}: {}", without.at(1));
        }
    }
}
