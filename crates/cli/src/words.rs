//! Numbers, times, scores and search options as people read them.

use attentive_generate::{EarlyStopping, LengthPenalty, MaxLength, Options, Sampling};
use attentive_train::metrics::ValidationMetric;

/// What a validation found.
pub(crate) fn scores(metric: &ValidationMetric) -> String {
    let mut text = format!("validation loss {:.4}", metric.loss);
    for (name, score) in metric.scores() {
        text.push_str(&format!(", {name} {score:.2}"));
    }
    text
}

/// How a search goes about it: what always matters, and what differs from the usual.
pub(crate) fn search(options: &Options) -> String {
    let usual = Options::default();
    let mut words = match &options.sampling {
        Some(Sampling { temperature, top_k, top_p, min_p }) => vec![format!(
            "sampling with temperature {temperature}, top-k {top_k}, top-p {top_p}, min-p {min_p}, seed {}",
            options.seed
        )],
        None if options.beam == 1 => vec!["greedy search".to_owned()],
        None => vec![format!("beam {}", options.beam)],
    };
    words.push(match options.penalty {
        LengthPenalty::Power(power) => format!("length penalty {power}"),
        LengthPenalty::Paper(alpha) => format!("alpha {alpha}"),
    });
    words.push(match options.max_length {
        MaxLength::Tokens(most) => format!("at most {most} tokens"),
        MaxLength::SourceAnd(more) => format!("at most {more} tokens more than the source"),
    });
    let early_stopping = match options.early_stopping {
        EarlyStopping::Yes => "yes",
        EarlyStopping::No => "no",
        EarlyStopping::Never => "never",
    };
    let others = [
        (options.n_best != usual.n_best, format!("{} results", options.n_best)),
        (options.early_stopping != usual.early_stopping, format!("early stopping {early_stopping}")),
        (options.patience != usual.patience, format!("patience {}", options.patience)),
        (options.min_length != usual.min_length, format!("at least {} tokens", options.min_length)),
        (
            options.repetition_penalty != usual.repetition_penalty,
            format!("repetition penalty {}", options.repetition_penalty),
        ),
        (
            options.no_repeat_ngram != usual.no_repeat_ngram,
            format!("no repeated {}-grams", options.no_repeat_ngram),
        ),
    ];
    words.extend(others.into_iter().filter(|(differs, _)| *differs).map(|(_, word)| word));
    words.join(", ")
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

/// A number of bytes as people say it.
pub(crate) fn bytes(number: u64) -> String {
    match number {
        0..1_000 => format!("{number} B"),
        1_000..1_000_000 => format!("{:.1} kB", number as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", number as f64 / 1e6),
        _ => format!("{:.2} GB", number as f64 / 1e9),
    }
}

/// A number of things: `1 line`, `2 lines`.
pub(crate) fn count(number: usize, thing: &str) -> String {
    format!("{} {thing}{}", thousands(number), if number == 1 { "" } else { "s" })
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
    fn a_search_is_told_by_what_matters_and_what_is_unusual() {
        let usual = Options::default();
        assert_eq!(search(&usual), "beam 4, length penalty 1, at most 50 tokens more than the source");
        let options = Options {
            beam: 1,
            penalty: LengthPenalty::Paper(0.6),
            max_length: MaxLength::Tokens(9),
            min_length: 2,
            ..usual
        };
        assert_eq!(search(&options), "greedy search, alpha 0.6, at most 9 tokens, at least 2 tokens");
    }

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
