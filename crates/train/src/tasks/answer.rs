//! Answers to questions: where in a text the answer to a question begins and ends, or that there is none.
//!
//! A text that is too long is read in windows that overlap, each an example of its own. A window that does not have the whole answer
//! has none: beginning and end are its first token.

use super::bert::Judge;
use super::labelled::Kind;
use super::{Judgement, Ranks};
use crate::Error;
use crate::corpus;
use crate::corpus::labelled::{Labelled, Labels, Reading, read_questions};
use crate::settings::Settings;
use attentive_model::families::bert;
use attentive_tasks::{Answerer, Asking, Encoder};
use attentive_text::score::AnswerScores;
use attentive_text::squad::Question;
use attentive_text::tokenizer::{self, Encoding, Input, Tokenizer};
use std::path::{Path, PathBuf};

/// Questions, each with a text.
pub(super) struct Questions;

/// The most tokens of an answer when a model is judged, as in transformers' example for SQuAD.
const LONGEST: usize = 30;

impl Kind for Questions {
    type Example = Question;
    const HEAD: bert::Task = bert::Task::QuestionAnswering;
    const NAME: &'static str = "questions";

    fn read(files: &[PathBuf], _: Reading<'_>, cache: &Path) -> Result<Labelled<Question>, corpus::Error> {
        read_questions(files, cache)
    }

    fn texts(example: &Question, show: &mut dyn FnMut(&str)) {
        show(&example.question);
        show(&example.context);
    }

    fn encode(
        example: &Question,
        tokenizer: &Tokenizer,
        _: &Labels,
        limit: usize,
    ) -> Result<Vec<(Encoding, Vec<i32>)>, tokenizer::Error> {
        let whole = tokenizer.encode_input(Input::Pair(&example.question, &example.context), None)?;
        // A question that fills a window leaves no room for its text: there is nothing to learn from it.
        let windows = whole.windows(limit, overlap(limit)).unwrap_or_default();
        let answer = example.answers.first().map(|known| known.begin..known.begin + known.text.len());
        let labelled = windows.into_iter().map(|window| {
            let [begin, end] =
                answer.as_ref().and_then(|bytes| window.span(1, bytes.clone())).unwrap_or([0, 0]);
            (window, vec![begin as i32, end as i32])
        });
        Ok(labelled.collect())
    }

    fn judge(encoder: Encoder, held: Vec<Question>, settings: &Settings) -> Box<dyn Judge> {
        let window = encoder.limit();
        let asking = Asking {
            window,
            overlap: overlap(window),
            longest: LONGEST,
            count: 1,
            may_be_empty: held.iter().any(|question| question.answers.is_empty()),
        };
        let answerer = Answerer::new(encoder).with_asking(asking);
        // What leaves no room for its text is not learned from either.
        let fits = |one: &Question| answerer.fits(&one.question, &one.context);
        let held = held.into_iter().filter(fits).take(settings.validate_lines).collect();
        Box::new(Answers { answerer, held })
    }
}

/// The tokens that two windows share: those of transformers' example, but no more than half of a window.
fn overlap(window: usize) -> usize {
    Asking::default().overlap.min(window / 2)
}

/// Scores the answers that `attentive answer` would find.
#[derive(Debug)]
struct Answers {
    answerer: Answerer,
    held: Vec<Question>,
}

impl Judge for Answers {
    fn judge(&self, ranks: &Ranks, judgement: Judgement) -> Result<Judgement, Error> {
        if self.held.is_empty() {
            return Ok(judgement);
        }
        let asked: Vec<(&str, &str)> =
            self.held.iter().map(|question| (&*question.question, &*question.context)).collect();
        let best = ranks.share(&asked, |mine| {
            let found = self.answerer.answer(mine)?.into_iter();
            Ok(found.map(|found| found.into_iter().next().map(|answer| answer.text)).collect())
        })?;
        let mut scores = AnswerScores::default();
        for (question, best) in self.held.iter().zip(best) {
            let known: Vec<&str> = question.answers.iter().map(|known| &*known.text).collect();
            scores.add(&known, &best.unwrap_or_default());
        }
        let all = scores.all();
        Ok(Judgement { exact: Some(all.exact()), f1: Some(all.f1()), ..judgement })
    }
}
