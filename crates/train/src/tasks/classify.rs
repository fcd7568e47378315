//! Classification: texts, or pairs of texts, each with a label.

use super::bert::Judge;
use super::labelled::Kind;
use super::{Judgement, Ranks};
use crate::Error;
use crate::corpus;
use crate::corpus::labelled::{Labelled, LabelledText, Labels, Reading, read_texts};
use crate::settings::Settings;
use attentive_model::families::bert;
use attentive_tasks::{Classifier, Encoder};
use attentive_text::score::ClassScores;
use attentive_text::tokenizer::{self, Encoding, Input, Tokenizer};
use std::path::{Path, PathBuf};

/// Texts with a label.
pub(super) struct Texts;

impl Kind for Texts {
    type Example = LabelledText;
    const HEAD: bert::Task = bert::Task::SequenceClassification;
    const NAME: &'static str = "texts";

    fn read(
        files: &[PathBuf],
        reading: Reading<'_>,
        cache: &Path,
    ) -> Result<Labelled<LabelledText>, corpus::Error> {
        read_texts(files, reading, cache)
    }

    fn texts(example: &LabelledText, show: &mut dyn FnMut(&str)) {
        show(&example.text);
        example.pair.iter().for_each(|pair| show(pair));
    }

    fn encode(
        example: &LabelledText,
        tokenizer: &Tokenizer,
        labels: &Labels,
        limit: usize,
    ) -> Result<Vec<(Encoding, Vec<i32>)>, tokenizer::Error> {
        let encoding = tokenizer.encode_input(input(example), Some(limit))?;
        let label = labels.number(&example.label).map_or(-1, |number| number as i32);
        Ok(vec![(encoding, vec![label])])
    }

    fn judge(encoder: Encoder, held: Vec<LabelledText>, _: &Settings) -> Box<dyn Judge> {
        Box::new(Classes { classifier: Classifier::new(encoder), held })
    }
}

fn input(example: &LabelledText) -> Input<'_> {
    match &example.pair {
        Some(pair) => Input::Pair(&example.text, pair),
        None => Input::Text(&example.text),
    }
}

/// Scores the classes that `attentive classify` would find.
#[derive(Debug)]
struct Classes {
    classifier: Classifier,
    held: Vec<LabelledText>,
}

impl Judge for Classes {
    fn judge(&self, ranks: &Ranks, judgement: Judgement) -> Result<Judgement, Error> {
        let inputs: Vec<Input> = self.held.iter().map(input).collect();
        let best = ranks.share(&inputs, |mine| {
            let (_, classified) = self.classifier.classify(mine)?;
            let best = classified.into_iter().map(|found| found.scores.into_iter().next());
            Ok(best.map(|best| best.map(|(label, _)| label)).collect())
        })?;
        let mut scores = ClassScores::default();
        for (example, best) in self.held.iter().zip(best) {
            scores.add(&example.label, &best.unwrap_or_default());
        }
        let f1 = scores.classes().macro_average().f1;
        Ok(Judgement { accuracy: Some(100.0 * scores.accuracy()), f1: Some(100.0 * f1), ..judgement })
    }
}
