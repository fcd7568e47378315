//! Questions about texts, each with its answers in the text: the files of SQuAD 1.1 and 2.0.
//!
//! ```text
//! {"data": [{"paragraphs": [{"context": "Ada lived in London.", "qas": [
//!     {"id": "1", "question": "Where?", "answers": [{"text": "London", "answer_start": 13}]}]}]}]}
//! ```
//!
//! `answer_start` counts characters. In files of version 2.0, where `is_impossible` says that a text has no answer, there are none.

use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The questions of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Squad {
    /// The questions, in the order of the file.
    pub questions: Vec<Question>,
    /// Whether questions may have no answer, as in version 2.0.
    pub may_be_empty: bool,
}

/// A question about a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Its name in the file.
    pub id: String,
    /// What is asked.
    pub question: String,
    /// The text; the questions about it share it.
    pub context: Arc<str>,
    /// What people have answered; nothing where the text has no answer.
    pub answers: Vec<Known>,
}

/// A known answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// Its text.
    pub text: String,
    /// The byte of the context at which it begins.
    pub begin: usize,
}

/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system cannot read it.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// It is no such file, or contradicts itself.
    #[error("{}: {problem}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
}

#[derive(Deserialize)]
struct File {
    data: Vec<Article>,
}

#[derive(Deserialize)]
struct Article {
    paragraphs: Vec<Paragraph>,
}

#[derive(Deserialize)]
struct Paragraph {
    context: String,
    qas: Vec<Asked>,
}

#[derive(Deserialize)]
struct Asked {
    id: String,
    question: String,
    #[serde(default)]
    answers: Vec<Answered>,
    #[serde(default)]
    is_impossible: Option<bool>,
}

#[derive(Deserialize)]
struct Answered {
    text: String,
    answer_start: usize,
}

impl Squad {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Squad, Error> {
        let bytes = std::fs::read(path).map_err(|source| Error::File { path: path.to_owned(), source })?;
        Squad::parse(path, &bytes)
    }

    /// The questions in the bytes that came from `path`. An answer that is not where it is said to be is refused with the name of its
    /// question.
    pub fn parse(path: &Path, bytes: &[u8]) -> Result<Squad, Error> {
        let wrong = |problem: String| Error::Format { path: path.to_owned(), problem };
        let file: File = serde_json::from_slice(bytes)
            .map_err(|error| wrong(format!("this is no file of questions as SQuAD has them: {error}")))?;
        let mut squad = Squad { questions: Vec::new(), may_be_empty: false };
        for paragraph in file.data.into_iter().flat_map(|article| article.paragraphs) {
            let context: Arc<str> = paragraph.context.into();
            for asked in paragraph.qas {
                squad.may_be_empty |= asked.is_impossible.is_some();
                squad.questions.push(asked.about(&context).map_err(wrong)?);
            }
        }
        if squad.questions.is_empty() {
            return Err(wrong("there are no questions in it".to_owned()));
        }
        Ok(squad)
    }
}

impl Asked {
    /// The question with its answers in a text, or what is wrong with it.
    fn about(self, context: &Arc<str>) -> Result<Question, String> {
        let Asked { id, question, answers, is_impossible } = self;
        let answers = if is_impossible == Some(true) { Vec::new() } else { answers };
        let found = |Answered { text, answer_start }: Answered| {
            let begin = context.char_indices().map(|(byte, _)| byte).nth(answer_start);
            match begin.filter(|&begin| !text.is_empty() && context[begin..].starts_with(&text)) {
                Some(begin) => Ok(Known { text, begin }),
                None => Err(format!(
                    "question `{id}`: the answer `{text}` is not in its context at character {answer_start}: correct its \
                     `text` or its `answer_start`"
                )),
            }
        };
        let answers = answers.into_iter().map(found).collect::<Result<_, _>>()?;
        Ok(Question { id, question, context: Arc::clone(context), answers })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(qas: &str) -> Result<Squad, Error> {
        let file = format!(
            r#"{{"version": "1.1", "data": [{{"title": "x", "paragraphs": [{{"context": "Zoë, Ada", "qas": [{qas}]}}]}}]}}"#
        );
        Squad::parse(Path::new("dev.json"), file.as_bytes())
    }

    #[test]
    fn answers_are_counted_in_characters_and_kept_in_bytes() {
        let squad =
            parse(r#"{"id": "a", "question": "Who?", "answers": [{"text": "Ada", "answer_start": 5}]}"#)
                .unwrap();
        assert!(!squad.may_be_empty);
        assert_eq!(squad.questions[0].answers, [Known { text: "Ada".to_owned(), begin: 6 }]);
        let second = parse(
            r#"{"id": "a", "question": "?", "answers": [], "plausible_answers": [], "is_impossible": true},
               {"id": "b", "question": "?", "is_impossible": false, "answers": [{"text": "Zoë", "answer_start": 0}]}"#,
        );
        let second = second.unwrap();
        assert!(second.may_be_empty && second.questions[0].answers.is_empty());
    }

    #[test]
    fn an_answer_that_is_not_there_is_refused_with_the_file_and_the_question() {
        for start in [4, 7, 99] {
            let answers = format!(
                r#"{{"id": "q7", "question": "Who?", "answers": [{{"text": "Ada", "answer_start": {start}}}]}}"#
            );
            let message = parse(&answers).unwrap_err().to_string();
            assert_eq!(
                message,
                format!(
                    "dev.json: question `q7`: the answer `Ada` is not in its context at character {start}: correct its `text` \
                     or its `answer_start`"
                )
            );
        }
        assert!(parse("").unwrap_err().to_string().contains("no questions"));
        assert!(Squad::parse(Path::new("x"), b"[1]").unwrap_err().to_string().contains("as SQuAD has them"));
    }
}
