//! Numbers, times and scores as people read them.

use attentive_train::metrics::ValidationMetric;

/// What a validation found.
pub(crate) fn scores(metric: &ValidationMetric) -> String {
    let mut text = format!("validation loss {:.4}", metric.loss);
    for (name, score) in [("BLEU", metric.bleu), ("chrF", metric.chrf)] {
        if let Some(score) = score {
            text.push_str(&format!(", {name} {score:.2}"));
        }
    }
    text
}

/// Seconds as people say them.
pub(crate) fn duration(seconds: f64) -> String {
    let seconds = seconds.round() as u64;
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, s) => format!("{s} s"),
        (0, m, s) => format!("{m} min {s:02} s"),
        (h, m, _) => format!("{h} h {m:02} min"),
    }
}

/// A share in percent with one decimal. Only the whole is 100.0 %.
pub(crate) fn percent(part: usize, whole: usize) -> String {
    let percent = 100.0 * part as f64 / whole.max(1) as f64;
    format!("{:.1} %", if part < whole { percent.min(99.9) } else { percent })
}

/// A number with commas between its thousands.
pub(crate) fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_times_are_written_for_people() {
        assert_eq!([0, 999, 1000, 1234567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(
            [percent(1999, 2000), percent(2000, 2000), percent(1, 3), percent(0, 0)],
            ["99.9 %", "100.0 %", "33.3 %", "0.0 %"]
        );
        assert_eq!(
            [0.4, 61.0, 3600.0, 7384.0].map(duration),
            ["0 s", "1 min 01 s", "1 h 00 min", "2 h 03 min"]
        );
    }
}
