//! What is kept of a run while it goes on: `metrics.jsonl`, one JSON object a line.
//!
//! ```text
//! {"kind":"step","step":50,"epoch":0.4,"loss":6.1,"learning_rate":0.0003,"gradient_norm":1.9,
//!  "tokens_per_second":14000.0,"seconds":12.5}
//! {"kind":"validation","step":500,"loss":2.9,"bleu":21.3,"chrf":null,"seconds":131.0,"best":true}
//! {"kind":"event","step":500,"message":"…"}
//! ```

use serde::{Deserialize, Serialize};

/// A line of `metrics.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Metric {
    /// How training went since the last such line.
    Step(StepMetric),
    /// How good the model is on pairs that it does not learn from.
    Validation(ValidationMetric),
    /// Something happened that a reader of the plots wants to know.
    Event(EventMetric),
}

impl Metric {
    /// The number of steps that had been made.
    pub fn step(&self) -> u64 {
        match self {
            Metric::Step(StepMetric { step, .. })
            | Metric::Validation(ValidationMetric { step, .. })
            | Metric::Event(EventMetric { step, .. }) => *step,
        }
    }
}

/// How training went since the last such line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepMetric {
    /// Steps made so far.
    pub step: u64,
    /// How often the corpus was gone through, with a fraction.
    pub epoch: f64,
    /// The mean loss of a target token, label smoothing included.
    pub loss: f64,
    /// The learning rate of the last step.
    pub learning_rate: f64,
    /// The norm of the last step's gradient, before clipping.
    pub gradient_norm: f64,
    /// Source and target tokens that were learned from in a second.
    pub tokens_per_second: f64,
    /// Seconds of training so far, over all sessions.
    pub seconds: f64,
}

/// How good the model is on pairs that it does not learn from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ValidationMetric {
    /// Steps made so far.
    pub step: u64,
    /// The mean loss of a target token, without label smoothing.
    pub loss: f64,
    /// BLEU of its translations, if it had to translate.
    pub bleu: Option<f64>,
    /// chrF of its translations, if it had to translate.
    pub chrf: Option<f64>,
    /// Seconds of training so far, over all sessions.
    pub seconds: f64,
    /// Whether the model has never been better.
    pub best: bool,
}

/// Something happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventMetric {
    /// Steps made so far.
    pub step: u64,
    /// What it was, in a sentence.
    pub message: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_its_kind_and_comes_back_as_it_was() {
        let metric = Metric::Validation(ValidationMetric {
            step: 500,
            loss: 2.5,
            bleu: Some(21.25),
            chrf: None,
            seconds: 131.0,
            best: true,
        });
        let line = serde_json::to_string(&metric).unwrap();
        let expected = concat!(
            r#"{"kind":"validation","step":500,"loss":2.5,"bleu":21.25,"#,
            r#""chrf":null,"seconds":131.0,"best":true}"#
        );
        assert_eq!(line, expected);
        assert_eq!(serde_json::from_str::<Metric>(&line).unwrap(), metric);
        assert_eq!(metric.step(), 500);
    }
}
