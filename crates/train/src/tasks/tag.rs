//! Tagging: sentences with a tag for each word. The first token of a word answers for the word.

use super::bert::Judge;
use super::labelled::Kind;
use super::{Judgement, Ranks};
use crate::Error;
use crate::corpus;
use crate::corpus::labelled::{Labelled, Labels, Reading, TaggedSentence, read_tags};
use crate::settings::Settings;
use attentive_model::families::bert;
use attentive_tasks::{Encoder, Tagger};
use attentive_text::score::SpanScores;
use attentive_text::tokenizer::{self, Encoding, Input, Tokenizer};
use std::path::{Path, PathBuf};

/// Sentences with tags.
pub(super) struct Sentences;

/// The tag of a word that has no token.
const OUTSIDE: &str = "O";

impl Kind for Sentences {
    type Example = TaggedSentence;
    const HEAD: bert::Task = bert::Task::TokenClassification;
    const NAME: &'static str = "sentences";

    fn read(
        files: &[PathBuf],
        reading: Reading<'_>,
        cache: &Path,
    ) -> Result<Labelled<TaggedSentence>, corpus::Error> {
        read_tags(files, reading, cache)
    }

    fn texts(example: &TaggedSentence, show: &mut dyn FnMut(&str)) {
        show(&example.words.join(" "));
    }

    fn encode(
        example: &TaggedSentence,
        tokenizer: &Tokenizer,
        labels: &Labels,
        limit: usize,
    ) -> Result<Vec<(Encoding, Vec<i32>)>, tokenizer::Error> {
        let words = words(example);
        let encoding = tokenizer.encode_input(Input::Words(&words), Some(limit))?;
        let mut answers = vec![-1; encoding.len()];
        for (place, tag) in encoding.first_of_words(words.len()).into_iter().zip(&example.tags) {
            if let Some(place) = place {
                answers[place] = labels.number(tag).map_or(-1, |number| number as i32);
            }
        }
        Ok(vec![(encoding, answers)])
    }

    fn judge(encoder: Encoder, held: Vec<TaggedSentence>, _: &Settings) -> Box<dyn Judge> {
        Box::new(Spans { tagger: Tagger::new(encoder), held })
    }
}

fn words(example: &TaggedSentence) -> Vec<&str> {
    example.words.iter().map(String::as_str).collect()
}

/// Scores the tags that `attentive tag` would find.
#[derive(Debug)]
struct Spans {
    tagger: Tagger,
    held: Vec<TaggedSentence>,
}

impl Judge for Spans {
    fn judge(&self, ranks: &Ranks, judgement: Judgement) -> Result<Judgement, Error> {
        let sentences: Vec<Vec<&str>> = self.held.iter().map(words).collect();
        let found = ranks.share(&sentences, |mine| Ok(self.tagger.label_words(mine)?))?;
        let mut scores = SpanScores::default();
        for (example, found) in self.held.iter().zip(found) {
            let found: Vec<String> =
                found.into_iter().map(|tag| tag.unwrap_or_else(|| OUTSIDE.to_owned())).collect();
            scores.add(&example.tags, &found);
        }
        let f1 = scores.spans().micro().f1;
        Ok(Judgement { accuracy: Some(100.0 * scores.accuracy()), f1: Some(100.0 * f1), ..judgement })
    }
}
