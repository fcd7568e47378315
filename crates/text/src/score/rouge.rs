//! ROUGE-1, ROUGE-2 and ROUGE-L of summaries (Lin 2004), as the package rouge-score counts them without its stemmer.
//!
//! Words are runs of the letters a to z and digits, in small letters; all else only sets them apart. ROUGE-N compares the n-grams of a
//! summary with those of its reference, each as often as both have it. ROUGE-L compares the longest sequence of words that both have in
//! this order. Of several references, the one with the best F1 counts, for each score and segment. A score is the mean over all segments.

use super::{Error, Segments};
use serde::Serialize;
use std::collections::HashMap;

/// One score, each number in percent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Rouge {
    /// How much of the summary is in the reference.
    pub precision: f64,
    /// How much of the reference is in the summary.
    pub recall: f64,
    /// The harmonic mean of both.
    pub f1: f64,
}

/// The scores of summaries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct RougeScores {
    /// Of words.
    pub rouge1: Rouge,
    /// Of pairs of words.
    pub rouge2: Rouge,
    /// Of the longest common sequence.
    #[serde(rename = "rougeL")]
    pub rouge_l: Rouge,
}

impl Rouge {
    /// From what both have in common, and what each has: none of either is no score.
    fn new(common: usize, summary: usize, reference: usize) -> Rouge {
        let share = |of: usize| common as f64 / of.max(1) as f64;
        let (precision, recall) = (share(summary), share(reference));
        let f1 = if common == 0 { 0.0 } else { 2.0 * precision * recall / (precision + recall) };
        Rouge { precision: 100.0 * precision, recall: 100.0 * recall, f1: 100.0 * f1 }
    }

    fn add(&mut self, other: Rouge) {
        self.precision += other.precision;
        self.recall += other.recall;
        self.f1 += other.f1;
    }

    fn divide(&mut self, by: f64) {
        self.precision /= by;
        self.recall /= by;
        self.f1 /= by;
    }
}

/// The scores of summaries with their references: segment n of one belongs to segment n of the others.
///
/// ```
/// use attentive_text::score::rouge;
///
/// let scores = rouge(&["The cat sat on the mat."], &[["A cat sat on a mat!"]])?;
/// assert_eq!(format!("{:.2} {:.2} {:.2}", scores.rouge1.f1, scores.rouge2.f1, scores.rouge_l.f1), "66.67 40.00 66.67");
/// # Ok::<(), attentive_text::score::Error>(())
/// ```
pub fn rouge<'a, R: AsRef<[&'a str]>>(summaries: &[&'a str], references: &[R]) -> Result<RougeScores, Error> {
    // The same texts are refused as for other scores.
    Segments::new(summaries, references)?;
    let mut sum = RougeScores::default();
    for (place, summary) in summaries.iter().enumerate() {
        let summary = words(summary);
        let scores: Vec<RougeScores> =
            references.iter().map(|reference| compare(&summary, &words(reference.as_ref()[place]))).collect();
        let best = |score: fn(&RougeScores) -> Rouge| {
            scores.iter().map(score).reduce(|best, other| if other.f1 > best.f1 { other } else { best })
        };
        sum.rouge1.add(best(|scores| scores.rouge1).unwrap_or_default());
        sum.rouge2.add(best(|scores| scores.rouge2).unwrap_or_default());
        sum.rouge_l.add(best(|scores| scores.rouge_l).unwrap_or_default());
    }
    for score in [&mut sum.rouge1, &mut sum.rouge2, &mut sum.rouge_l] {
        score.divide(summaries.len() as f64);
    }
    Ok(sum)
}

fn compare(summary: &[String], reference: &[String]) -> RougeScores {
    RougeScores {
        rouge1: of_ngrams(summary, reference, 1),
        rouge2: of_ngrams(summary, reference, 2),
        rouge_l: Rouge::new(longest_common(summary, reference), summary.len(), reference.len()),
    }
}

fn words(text: &str) -> Vec<String> {
    let lower = text.to_lowercase();
    let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    lower.split(|c| !is_part(c)).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

fn of_ngrams(summary: &[String], reference: &[String], n: usize) -> Rouge {
    let count = |words: &[String]| words.len().saturating_sub(n - 1);
    let mut left: HashMap<&[String], usize> = HashMap::new();
    reference.windows(n).for_each(|ngram| *left.entry(ngram).or_default() += 1);
    let is_common = |ngram: &&[String]| match left.get_mut(*ngram) {
        Some(left) if *left > 0 => {
            *left -= 1;
            true
        }
        _ => false,
    };
    let common = summary.windows(n).filter(is_common).count();
    Rouge::new(common, count(summary), count(reference))
}

/// The length of the longest sequence of words that both have in order, with other words between them or not.
fn longest_common(a: &[String], b: &[String]) -> usize {
    let mut row = vec![0; b.len() + 1];
    for word in a {
        let mut diagonal = 0;
        for (j, other) in b.iter().enumerate() {
            let above = row[j + 1];
            row[j + 1] = if word == other { diagonal + 1 } else { above.max(row[j]) };
            diagonal = above;
        }
    }
    row[b.len()]
}
