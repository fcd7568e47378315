//! The questions of a SQuAD file: scores of answers to them, and answers that can be scored.

use crate::error::Error;
use crate::output;
use attentive_tasks::Answerer;
use attentive_text::score::{AnswerScore, AnswerScores};
use attentive_text::squad::{Question, Squad};
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::io::{Read, Write, stderr, stdin};
use std::path::Path;

/// How many questions are answered at once.
const QUESTIONS_AT_ONCE: usize = 64;

/// What `--json` prints, by the names that SQuAD's scripts have.
#[derive(Serialize)]
struct Report {
    exact_match: f64,
    f1: f64,
    total: usize,
    #[serde(flatten)]
    parts: Option<Parts>,
}

/// The scores of version 2.0 for questions with and without an answer.
#[derive(Serialize)]
#[allow(non_snake_case, reason = "the names are those of SQuAD's script")]
struct Parts {
    HasAns_exact: f64,
    HasAns_f1: f64,
    HasAns_total: usize,
    NoAns_exact: f64,
    NoAns_f1: f64,
    NoAns_total: usize,
}

/// Scores answers, a JSON object with a text for the id of each question.
pub(crate) fn score(questions: &Path, answers: &Path, json: bool) -> Result<(), Error> {
    let squad = Squad::read(questions)?;
    let answers = read_answers(answers)?;
    let (mut scores, mut missing) = (AnswerScores::default(), 0);
    for Question { id, answers: known, .. } in &squad.questions {
        let known: Vec<&str> = known.iter().map(|known| &*known.text).collect();
        match answers.get(id) {
            Some(found) => scores.add(&known, found),
            None => {
                missing += 1;
                // The script of version 2.0 leaves such a question out.
                if !squad.may_be_empty {
                    scores.add_missing(&known);
                }
            }
        }
    }
    if missing > 0 {
        let fate = if squad.may_be_empty { "are left out" } else { "score 0" };
        // Where nobody reads this, the scores are there all the same.
        let _ = writeln!(stderr(), "attentive: {missing} questions have no answer in the file, and {fate}");
    }
    let (all, parts) = (scores.all(), [scores.answered(), scores.unanswered()]);
    if !json {
        let header = ["questions", "number", "exact match", "F1"].map(str::to_owned);
        let row = |name: &str, score: AnswerScore| {
            let [exact, f1] = [score.exact(), score.f1()].map(|number| format!("{number:.2}"));
            [name.to_owned(), score.questions.to_string(), exact, f1]
        };
        let mut rows = vec![header, row("all", all)];
        if squad.may_be_empty {
            rows.extend([row("with an answer", parts[0]), row("without an answer", parts[1])]);
        }
        return output::table(&rows, 1);
    }
    let [has, none] = parts;
    output::json(&Report {
        exact_match: all.exact(),
        f1: all.f1(),
        total: all.questions,
        parts: squad.may_be_empty.then(|| Parts {
            HasAns_exact: has.exact(),
            HasAns_f1: has.f1(),
            HasAns_total: has.questions,
            NoAns_exact: none.exact(),
            NoAns_f1: none.f1(),
            NoAns_total: none.questions,
        }),
    })
}

fn read_answers(path: &Path) -> Result<HashMap<String, String>, Error> {
    let (input, bytes) = if path == Path::new("-") {
        let mut bytes = Vec::new();
        ("standard input".to_owned(), stdin().lock().read_to_end(&mut bytes).map(|_| bytes))
    } else {
        (path.display().to_string(), std::fs::read(path))
    };
    let bytes = bytes.map_err(|source| Error::Input { input: input.clone(), source })?;
    serde_json::from_slice(&bytes).map_err(|error| Error::Document {
        input,
        problem: format!("this is no JSON object with a text for the id of each question: {error}"),
    })
}

/// Answers the questions of a file, and writes what [`score`] reads. A question that leaves no room for its text has an empty answer.
pub(crate) fn answer(answerer: &Answerer, squad: &Squad) -> Result<(), Error> {
    let (mut found, mut long) = (Map::new(), 0);
    for questions in squad.questions.chunks(QUESTIONS_AT_ONCE) {
        let (questions, others): (Vec<_>, Vec<_>) =
            questions.iter().partition(|one| answerer.fits(&one.question, &one.context));
        long += others.len();
        found.extend(others.iter().map(|other| (other.id.clone(), Value::String(String::new()))));
        let asked: Vec<(&str, &str)> =
            questions.iter().map(|question| (&*question.question, &*question.context)).collect();
        for (question, answers) in questions.iter().zip(answerer.answer(&asked)?) {
            let text = answers.into_iter().next().map_or_else(String::new, |answer| answer.text);
            found.insert(question.id.clone(), Value::String(text));
        }
    }
    if long > 0 {
        let _ = writeln!(
            stderr(),
            "attentive: {long} questions leave no room for their text, and have no answer"
        );
    }
    output::json(&found)
}
