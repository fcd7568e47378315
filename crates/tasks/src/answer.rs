//! Answers to questions: spans of a text.
//!
//! A model says of each token how well an answer begins there, and how well one ends there. The score of a span is the product of
//! the two probabilities. A text that is too long is read in windows that overlap; the probabilities of a window sum to one. All this is
//! as the pipeline `question-answering` of transformers has it.

use crate::encoder::{Encoder, Texts};
use crate::error::Error;
use crate::probabilities::softmax;
use attentive_model::families::bert::Task;
use attentive_tensor::{Backend, Form};
use attentive_text::tokenizer::{Encoding, Input};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Finds answers to questions.
#[derive(Debug)]
pub struct Answerer {
    encoder: Encoder,
    asking: Asking,
}

/// How answers are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asking {
    /// The most tokens that are read at once: question, special tokens and a window of the text.
    pub window: usize,
    /// How many tokens two windows have in common.
    pub overlap: usize,
    /// The most tokens of an answer.
    pub longest: usize,
    /// How many answers are given.
    pub count: usize,
    /// Whether one of them may be that the text has no answer: an empty one.
    pub may_be_empty: bool,
}

impl Default for Asking {
    fn default() -> Asking {
        Asking { window: 384, overlap: 128, longest: 15, count: 1, may_be_empty: false }
    }
}

/// A span of a text that may answer a question.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// Its text; empty if the text has no answer.
    pub text: String,
    /// Its score, at most 1. Of spans in several places that have the same text, and so are one answer, it is the sum.
    pub score: f32,
    /// Its bytes in the text.
    pub bytes: Range<usize>,
}

/// Tokens of a window, where an answer may begin and end.
struct Span {
    first: usize,
    last: usize,
    score: f32,
}

impl Answerer {
    /// Reads the model of a folder.
    pub fn open(backend: &Arc<dyn Backend>, folder: &Path, form: Form) -> Result<Answerer, Error> {
        Encoder::must_be(folder, "answer", Task::QuestionAnswering)?;
        Encoder::open(backend, folder, Task::QuestionAnswering, form).map(Answerer::new)
    }

    /// A model that finds answers.
    pub fn new(encoder: Encoder) -> Answerer {
        Answerer { encoder, asking: Asking::default() }
    }

    /// The same with its encoder changed.
    pub fn with_encoder(self, change: impl FnOnce(Encoder) -> Encoder) -> Answerer {
        Answerer { encoder: change(self.encoder), ..self }
    }

    /// The same with other rules.
    pub fn with_asking(self, asking: Asking) -> Answerer {
        Answerer { asking, ..self }
    }

    /// The model and its tokenizer.
    pub fn encoder(&self) -> &Encoder {
        &self.encoder
    }

    /// Whether a question leaves room for its text, and the text has tokens.
    pub fn fits(&self, question: &str, text: &str) -> bool {
        let read = self.windows(0, question, text, &self.asking);
        !matches!(read, Err(Error::LongQuestion { .. } | Error::NoTokens { .. }))
    }

    /// The answers to questions, each with a text in which to look for them, the best first.
    pub fn answer(&self, asked: &[(&str, &str)]) -> Result<Vec<Vec<Answer>>, Error> {
        let mut windows = Texts::default();
        let mut counts = Vec::with_capacity(asked.len());
        for (number, &(question, text)) in asked.iter().enumerate() {
            let own = self.windows(number, question, text, &self.asking)?;
            counts.push(own.len());
            windows.encodings.extend(own);
        }
        let logits = self.logits(&windows)?;
        let mut end = 0;
        let best = |((_, text), count): (&(&str, &str), usize)| {
            let own = end..end + count;
            end = own.end;
            best(text, &windows.encodings[own.clone()], &logits[own], &self.asking)
        };
        Ok(asked.iter().zip(counts).map(best).collect())
    }

    /// Two numbers for each token of each window: how well an answer begins there, and how well one ends there.
    pub fn logits(&self, windows: &Texts) -> Result<Vec<Vec<f32>>, Error> {
        self.encoder.answer(windows, |tape, _, batch, hidden| {
            let logits = self.encoder.model().logits(tape, hidden, &batch.sequences)?;
            let logits = self.encoder.download(&logits);
            Ok(batch.sequences.ranges().map(|rows| logits[2 * rows.start..2 * rows.end].to_vec()).collect())
        })
    }

    /// What is read of a question and a text: both, or windows of the text. `number` is that of the question, counted from 0.
    pub fn windows(
        &self,
        number: usize,
        question: &str,
        text: &str,
        asking: &Asking,
    ) -> Result<Vec<Encoding>, Error> {
        let limit = asking.window.min(self.encoder.limit());
        let encoding = self.encoder.read_whole(Input::Pair(question, text))?;
        let of_text = encoding.sources.iter().flatten().filter(|source| source.text == 1).count();
        if of_text == 0 {
            return Err(Error::NoTokens { text: number + 1 });
        }
        let tokens = encoding.len() - of_text;
        let windows = encoding.windows(limit, asking.overlap.min(limit / 2));
        windows.ok_or(Error::LongQuestion { text: number + 1, tokens, limit })
    }
}

/// The answers in a text, the best first, by its windows and the [`Answerer::logits`] of each.
pub fn best(text: &str, windows: &[Encoding], logits: &[Vec<f32>], asking: &Asking) -> Vec<Answer> {
    let (mut answers, mut places, mut empty) = (Vec::new(), HashMap::new(), f32::INFINITY);
    for (window, logits) in windows.iter().zip(logits) {
        let (spans, nothing) = spans(window, logits, asking);
        empty = empty.min(nothing);
        for span in spans {
            add(&mut answers, &mut places, text, words_around(window, &span), span.score);
        }
    }
    if asking.may_be_empty {
        answers.push(Answer { text: String::new(), score: empty, bytes: 0..0 });
    }
    // Of equal scores, the answer that was found first comes first.
    answers.sort_by(|a, b| b.score.total_cmp(&a.score));
    answers.truncate(asking.count);
    answers
}

/// The best spans of a window, best first, and how probable it is that the answer is not in it.
fn spans(window: &Encoding, logits: &[f32], asking: &Asking) -> (Vec<Span>, f32) {
    let is_text = |place: usize| window.sources[place].is_some_and(|source| source.text == 1);
    // The first token stands for no answer, and takes its share of the probability.
    let places: Vec<usize> = (0..window.len()).filter(|&place| place == 0 || is_text(place)).collect();
    let probabilities =
        |column: usize| softmax(&places.iter().map(|&place| logits[2 * place + column]).collect::<Vec<_>>());
    let [begins, ends] = [probabilities(0), probabilities(1)];
    let mut spans = Vec::new();
    for first in 1..places.len() {
        let further = places[first..].iter().take_while(|&&place| place < places[first] + asking.longest);
        for last in first..first + further.count() {
            let score = begins[first] * ends[last];
            spans.push(Span { first: places[first], last: places[last], score });
        }
    }
    spans.sort_by(|a, b| b.score.total_cmp(&a.score));
    spans.truncate(asking.count);
    (spans, begins[0] * ends[0])
}

/// Adds a span to the answers that were found so far, whose places are known by their words. SentencePiece counts the space before a
/// word to the word; an answer has none.
fn add(
    answers: &mut Vec<Answer>,
    places: &mut HashMap<String, usize>,
    context: &str,
    bytes: Range<usize>,
    score: f32,
) {
    let (begin, end) = (bytes.end - context[bytes.clone()].trim_start().len(), bytes.end);
    let bytes = begin..end.min(begin + context[begin..end].trim_end().len());
    let text = &context[bytes.clone()];
    match places.entry(text.to_lowercase()) {
        Entry::Occupied(place) => answers[*place.get()].score += score,
        Entry::Vacant(place) => {
            place.insert(answers.len());
            answers.push(Answer { text: text.to_owned(), score, bytes });
        }
    }
}

/// The bytes of the words that a span begins and ends in.
fn words_around(window: &Encoding, span: &Span) -> Range<usize> {
    let same_word =
        |place: usize| {
            let own = window.sources[place];
            window.sources.iter().flatten().filter(move |source| {
                own.is_some_and(|own| own.text == source.text && own.word == source.word)
            })
        };
    let begin = same_word(span.first).map(|source| source.begin).min();
    let end = same_word(span.last).map(|source| source.end).max();
    begin.unwrap_or_default()..end.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_words_in_two_places_are_one_answer() {
        let (mut answers, mut places) = (Vec::new(), HashMap::new());
        for (bytes, score) in [(0..3, 0.25), (4..9, 0.5), (9..13, 0.125)] {
            add(&mut answers, &mut places, "Ada loves ADA", bytes, score);
        }
        assert_eq!(answers.len(), 2);
        assert_eq!((&answers[0].text[..], answers[0].score, answers[0].bytes.clone()), ("Ada", 0.375, 0..3));
    }
}
