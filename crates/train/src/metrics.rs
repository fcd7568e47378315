//! What is kept of a run while it goes on: `metrics.jsonl`, one JSON object a line.
//!
//! ```text
//! {"kind":"step","step":50,"epoch":0.4,"loss":6.1,"learning_rate":0.0003,"gradient_norm":1.9,
//!  "tokens_per_second":14000.0,"seconds":12.5}
//! {"kind":"validation","step":500,"loss":2.9,"bleu":21.3,"chrf":null,"seconds":131.0,"best":true}
//! {"kind":"event","step":500,"message":"…"}
//! {"kind":"end","step":520,"epoch":4.1,"seconds":140.2,"reason":"the time is over"}
//! ```

use serde::{Deserialize, Deserializer, Serialize};

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
    /// The run ended here. The line is gone when the run goes on.
    End(EndMetric),
}

impl ValidationMetric {
    /// All scores that there are, by their names, higher is better.
    pub fn scores(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let scores = [
            ("BLEU", self.bleu),
            ("chrF", self.chrf),
            ("ROUGE-L", self.rouge),
            ("accuracy", self.accuracy),
            ("exact match", self.exact),
            ("F1", self.f1),
            ("AP", self.ap),
            ("AP50", self.ap50),
        ];
        scores.into_iter().filter_map(|(name, score)| Some((name, score?)))
    }
}

impl Metric {
    /// The number of steps that had been made.
    pub fn step(&self) -> u64 {
        match self {
            Metric::Step(StepMetric { step, .. })
            | Metric::Validation(ValidationMetric { step, .. })
            | Metric::Event(EventMetric { step, .. })
            | Metric::End(EndMetric { step, .. }) => *step,
        }
    }
}

/// How training went since the last such line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepMetric {
    /// Steps made so far.
    pub step: u64,
    /// How often the corpus was gone through, with a fraction.
    #[serde(deserialize_with = "number")]
    pub epoch: f64,
    /// The mean loss of an answer, such as a target token, label smoothing included.
    #[serde(deserialize_with = "number")]
    pub loss: f64,
    /// The learning rate of the last step.
    #[serde(deserialize_with = "number")]
    pub learning_rate: f64,
    /// The norm of the last step's gradient, before clipping.
    #[serde(deserialize_with = "number")]
    pub gradient_norm: f64,
    /// Source and target tokens that were learned from in a second.
    #[serde(deserialize_with = "number")]
    pub tokens_per_second: f64,
    /// Seconds of training so far, over all sessions.
    #[serde(deserialize_with = "number")]
    pub seconds: f64,
}

/// How good the model is on pairs that it does not learn from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ValidationMetric {
    /// Steps made so far.
    pub step: u64,
    /// The mean loss of an answer, without label smoothing.
    #[serde(deserialize_with = "number")]
    pub loss: f64,
    /// BLEU of its translations, if it had to translate.
    pub bleu: Option<f64>,
    /// chrF of its translations, if it had to translate.
    pub chrf: Option<f64>,
    /// The F1 of ROUGE-L in per cent, of what a model from text to text writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rouge: Option<f64>,
    /// The share of labels that are right, in per cent, where there are labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<f64>,
    /// The share of answers that are exactly a known one, in per cent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exact: Option<f64>,
    /// F1 in per cent: of spans, of answers, or the mean over the classes of texts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub f1: Option<f64>,
    /// COCO's average precision of boxes in per cent, over all of its thresholds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ap: Option<f64>,
    /// That at the threshold 0.5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ap50: Option<f64>,
    /// Seconds of training so far, over all sessions.
    #[serde(deserialize_with = "number")]
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

/// Where a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EndMetric {
    /// Steps made.
    pub step: u64,
    /// How often the corpus was gone through, with a fraction.
    #[serde(deserialize_with = "number")]
    pub epoch: f64,
    /// Seconds of training, over all sessions.
    #[serde(deserialize_with = "number")]
    pub seconds: f64,
    /// Why it ended.
    pub reason: String,
}

/// How far a run has come, as its log tells.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Reached {
    /// Steps made.
    pub step: u64,
    /// How often the corpus was gone through, with a fraction.
    pub epoch: f64,
    /// Seconds of training, over all sessions.
    pub seconds: f64,
}

impl Reached {
    /// The last numbers that the run reported: those of its end, or those of the last lines if it was killed.
    pub fn of(metrics: &[Metric]) -> Reached {
        let mut reached = Reached::default();
        for metric in metrics {
            reached.step = reached.step.max(metric.step());
            match metric {
                Metric::Step(StepMetric { epoch, seconds, .. })
                | Metric::End(EndMetric { epoch, seconds, .. }) => {
                    (reached.epoch, reached.seconds) = (*epoch, *seconds);
                }
                Metric::Validation(validation) => reached.seconds = validation.seconds,
                Metric::Event(_) => {}
            }
        }
        reached
    }
}

/// JSON has no word for infinity or for what is no number, and writes `null`: a norm that went astray must not make a log
/// unreadable.
fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::NAN))
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
            rouge: None,
            accuracy: None,
            exact: None,
            f1: None,
            ap: None,
            ap50: None,
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

    #[test]
    fn a_line_with_what_is_no_number_can_be_read() {
        let metric = StepMetric {
            step: 50,
            epoch: 0.5,
            loss: 3.0,
            learning_rate: 1e-3,
            gradient_norm: f64::INFINITY,
            tokens_per_second: 1000.0,
            seconds: 1.0,
        };
        let line = serde_json::to_string(&Metric::Step(metric)).unwrap();
        let Ok(Metric::Step(read)) = serde_json::from_str(&line) else { panic!("{line}") };
        assert!(read.gradient_norm.is_nan() && read.loss == 3.0, "{read:?}");
    }
}
