//! Entities in texts.
//!
//! A word has the label of its first token. Labels are BIO: `B-X` begins an entity of the type X, `I-X` goes on with it, `O` is
//! outside. A model whose labels have no prefix has one entity for each run of the same label.

use crate::encoder::{Encoder, Texts};
use crate::error::Error;
use crate::probabilities::{greatest, softmax};
use attentive_model::families::bert::Task;
use attentive_tensor::{Backend, Form};
use attentive_text::tokenizer::{Encoding, Input};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Finds entities.
#[derive(Debug)]
pub struct Tagger {
    encoder: Encoder,
}

/// A word and its label.
#[derive(Debug, Clone, PartialEq)]
pub struct TaggedWord {
    /// Its bytes in the text.
    pub bytes: Range<usize>,
    /// The label of its first token.
    pub label: String,
    /// How probable that is.
    pub score: f32,
}

/// An entity.
#[derive(Debug, Clone, PartialEq)]
pub struct Entity {
    /// Its type: the label without `B-` or `I-`.
    pub label: String,
    /// The mean of its words' scores.
    pub score: f32,
    /// Its bytes in the text.
    pub bytes: Range<usize>,
}

/// The words of a text and the entities among them. Words that were cut off with the end of a long text are not there.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Tagged {
    /// The words.
    pub words: Vec<TaggedWord>,
    /// The entities.
    pub entities: Vec<Entity>,
}

impl Tagger {
    /// Reads the model of a folder.
    pub fn open(backend: &Arc<dyn Backend>, folder: &Path, form: Form) -> Result<Tagger, Error> {
        Encoder::must_be(folder, "tag", Task::TokenClassification)?;
        Ok(Tagger { encoder: Encoder::open(backend, folder, Task::TokenClassification, form)? })
    }

    /// The task of a model that is there already, and that has the head for it.
    pub fn new(encoder: Encoder) -> Tagger {
        Tagger { encoder }
    }

    /// The same with its encoder changed.
    pub fn with_encoder(self, change: impl FnOnce(Encoder) -> Encoder) -> Tagger {
        Tagger { encoder: change(self.encoder) }
    }

    /// The model and its tokenizer.
    pub fn encoder(&self) -> &Encoder {
        &self.encoder
    }

    /// The entities of texts.
    pub fn tag(&self, texts: &[&str]) -> Result<(Texts, Vec<Tagged>), Error> {
        let inputs: Vec<Input> = texts.iter().map(|text| Input::Text(text)).collect();
        let read = self.encoder.read(&inputs)?;
        let logits = self.logits(&read)?;
        let tagged =
            read.encodings.iter().zip(&logits).map(|(encoding, logits)| self.tagged(encoding, logits));
        let tagged = tagged.collect();
        Ok((read, tagged))
    }

    /// What the model says of each label of each word of texts that were read, one word after the other.
    pub fn logits(&self, texts: &Texts) -> Result<Vec<Vec<f32>>, Error> {
        self.logits_at(texts, |encoding| words(encoding).into_iter().map(|(place, _)| place).collect())
    }

    /// The words of a text that was read, and its entities, by the logits of the words.
    pub fn tagged(&self, encoding: &Encoding, logits: &[f32]) -> Tagged {
        let labels = self.best(logits);
        let word = |((_, bytes), (label, score))| TaggedWord { bytes, label, score };
        let words: Vec<TaggedWord> = words(encoding).into_iter().zip(labels).map(word).collect();
        Tagged { entities: entities(&words), words }
    }

    /// The labels of the words of sentences that are split into words already; none for a word without a token.
    pub fn label_words(&self, sentences: &[Vec<&str>]) -> Result<Vec<Vec<Option<String>>>, Error> {
        let inputs: Vec<Input> = sentences.iter().map(|words| Input::Words(words)).collect();
        let read = self.encoder.read(&inputs)?;
        let first =
            |encoding: &Encoding, words: usize| encoding.first_of_words(words).into_iter().enumerate();
        let last = |encoding: &Encoding| {
            encoding.sources.iter().flatten().map(|source| source.word + 1).max().unwrap_or(0)
        };
        let logits = self.logits_at(&read, |encoding| {
            first(encoding, last(encoding)).filter_map(|(_, place)| place).collect()
        })?;
        let spread = |((words, encoding), logits): ((&Vec<&str>, &Encoding), &Vec<f32>)| {
            let mut labels = vec![None; words.len()];
            let found = first(encoding, last(encoding)).filter(|(_, place)| place.is_some());
            for ((word, _), (label, _)) in found.zip(self.best(logits)) {
                labels[word] = Some(label);
            }
            labels
        };
        Ok(sentences.iter().zip(&read.encodings).zip(&logits).map(spread).collect())
    }

    /// The labels, in the order of the model.
    pub fn labels(&self) -> &[String] {
        &self.encoder.model().config().labels
    }

    /// The most probable label of each word, and how probable it is.
    fn best(&self, logits: &[f32]) -> impl Iterator<Item = (String, f32)> {
        logits.chunks_exact(self.labels().len().max(1)).map(|logits| {
            let probabilities = softmax(logits);
            let best = greatest(&probabilities, 1).first().copied().unwrap_or_default();
            (self.labels()[best].clone(), probabilities[best])
        })
    }

    /// The logits of the tokens that `places` names, of each text one after the other.
    fn logits_at(
        &self,
        texts: &Texts,
        places: impl Fn(&Encoding) -> Vec<usize>,
    ) -> Result<Vec<Vec<f32>>, Error> {
        self.encoder.answer(texts, |tape, numbers, batch, hidden| {
            let of_text: Vec<_> = numbers.iter().map(|&number| places(&texts.encodings[number])).collect();
            let starts = batch.sequences.ranges().map(|range| range.start);
            let rows: Vec<i32> = of_text
                .iter()
                .zip(starts)
                .flat_map(|(places, start)| places.iter().map(move |place| (start + place) as i32))
                .collect();
            if rows.is_empty() {
                return Ok(vec![Vec::new(); numbers.len()]);
            }
            let logits = self.encoder.model().logits_of_rows(tape, hidden, &rows)?;
            let width = logits.shape().cols();
            let logits = self.encoder.download(&logits);
            let mut rest = &logits[..];
            let own = |places: &Vec<usize>| {
                let (own, others) = rest.split_at(places.len() * width);
                rest = others;
                own.to_vec()
            };
            Ok(of_text.iter().map(own).collect())
        })
    }
}

/// The words of a text, in order: the place of the first token of each, and its bytes. A word ends where its last token ends.
fn words(encoding: &Encoding) -> Vec<(usize, Range<usize>)> {
    let mut words: Vec<(usize, usize, Range<usize>)> = Vec::new();
    for (place, source) in encoding.sources.iter().enumerate() {
        let Some(source) = source else { continue };
        match words.last_mut() {
            Some((word, _, bytes)) if *word == source.word => bytes.end = source.end,
            _ => words.push((source.word, place, source.begin..source.end)),
        }
    }
    words.into_iter().map(|(_, place, bytes)| (place, bytes)).collect()
}

/// The entities among words.
fn entities(words: &[TaggedWord]) -> Vec<Entity> {
    let mut entities: Vec<(Entity, usize)> = Vec::new();
    let mut open = false;
    for word in words {
        let (begins, kind) = match word.label.split_once('-') {
            _ if word.label == "O" => {
                open = false;
                continue;
            }
            Some((prefix @ ("B" | "I" | "E" | "L" | "M" | "S" | "U"), kind)) => {
                (["B", "S", "U"].contains(&prefix), kind)
            }
            _ => (false, &word.label[..]),
        };
        match entities.last_mut() {
            Some((entity, count)) if open && !begins && entity.label == kind => {
                entity.score += word.score;
                entity.bytes.end = word.bytes.end;
                *count += 1;
            }
            _ => {
                let entity = Entity { label: kind.to_owned(), score: word.score, bytes: word.bytes.clone() };
                entities.push((entity, 1));
            }
        }
        open = true;
    }
    let mean = |(entity, count): (Entity, usize)| Entity { score: entity.score / count as f32, ..entity };
    entities.into_iter().map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(labels: &[&str]) -> Vec<TaggedWord> {
        let word = |(i, label): (usize, &&str)| TaggedWord {
            bytes: 3 * i..3 * i + 2,
            label: (*label).to_owned(),
            score: 1.0 / (i + 1) as f32,
        };
        labels.iter().enumerate().map(word).collect()
    }

    fn found(labels: &[&str]) -> Vec<(String, Range<usize>)> {
        entities(&words(labels)).into_iter().map(|entity| (entity.label, entity.bytes)).collect()
    }

    #[test]
    fn words_that_go_on_with_an_entity_are_one() {
        let expected = [("PER".to_owned(), 0..5), ("LOC".to_owned(), 9..11), ("LOC".to_owned(), 12..14)];
        assert_eq!(found(&["B-PER", "I-PER", "O", "B-LOC", "B-LOC"]), expected);
        // What goes on with nothing begins, and another type is another entity.
        let expected = [("ORG".to_owned(), 0..2), ("PER".to_owned(), 3..8)];
        assert_eq!(found(&["I-ORG", "I-PER", "I-PER", "O"]), expected);
        assert_eq!(found(&["NN", "NN", "VB"]), [("NN".to_owned(), 0..5), ("VB".to_owned(), 6..8)]);
        assert_eq!(found(&["non-toxic", "very-toxic"]).len(), 2);
        assert_eq!(found(&["O", "O"]), []);
    }

    #[test]
    fn the_score_of_an_entity_is_the_mean_of_its_words() {
        assert_eq!(entities(&words(&["B-PER", "I-PER"]))[0].score, 0.75);
    }
}
