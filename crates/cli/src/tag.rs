//! `attentive tag`: entities in texts.

use crate::error::Error;
use crate::output;
use crate::texts::Reading;
use attentive_tasks::{Tagged, Tagger};
use clap::Args;
use serde::Serialize;

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Tag {
    #[command(flatten)]
    reading: Reading,
    /// Write every word with its label, one per line, and an empty line after each text
    #[arg(long, conflicts_with = "json")]
    bio: bool,
    /// Write one JSON object per text
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  attentive tag --model ner \"Ada Lovelace lived in London.\"
  attentive tag --model ner --bio < texts.txt > texts.conll
  attentive tag --model ner --json < texts.txt

A text is a line. Without --bio and --json, each entity is a line: the number of its text, its \
label, its score and the entity. `start` and `end` in JSON count characters from 0.";

#[derive(Serialize)]
struct Line<'a> {
    text: &'a str,
    entities: Vec<Entity<'a>>,
}

/// The keys are those of transformers.
#[derive(Serialize)]
struct Entity<'a> {
    entity_group: &'a str,
    score: f32,
    word: &'a str,
    start: usize,
    end: usize,
}

pub(crate) fn run(tag: &Tag) -> Result<(), Error> {
    let (backend, form) = tag.reading.backend()?;
    let tagger = Tagger::open(&backend, &tag.reading.folder()?, form)?;
    let tagger = tagger.with_encoder(|encoder| tag.reading.change(encoder));
    let mut number = 0;
    tag.reading.each(|texts| {
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let (read, tagged) = tagger.tag(&texts)?;
        for (text, tagged) in texts.iter().zip(&tagged) {
            number += 1;
            output::write(&written(tag, number, text, tagged)?)?;
        }
        Ok(read)
    })
}

/// What is written of a text.
fn written(tag: &Tag, number: usize, text: &str, tagged: &Tagged) -> Result<String, Error> {
    if tag.bio {
        let line =
            |word: &attentive_tasks::TaggedWord| format!("{}\t{}\n", &text[word.bytes.clone()], word.label);
        return Ok(tagged.words.iter().map(line).chain(["\n".to_owned()]).collect());
    }
    if tag.json {
        let characters = |byte: usize| text[..byte].chars().count();
        let entity = |entity: &'_ attentive_tasks::Entity| {
            (characters(entity.bytes.start), characters(entity.bytes.end))
        };
        let entities = tagged.entities.iter().map(|found| {
            let (start, end) = entity(found);
            Entity {
                entity_group: &found.label,
                score: found.score,
                word: &text[found.bytes.clone()],
                start,
                end,
            }
        });
        return Ok(serde_json::to_string(&Line { text, entities: entities.collect() })? + "\n");
    }
    let line = |entity: &attentive_tasks::Entity| {
        format!("{number}\t{}\t{:.4}\t{}\n", entity.label, entity.score, &text[entity.bytes.clone()])
    };
    Ok(tagged.entities.iter().map(line).collect())
}
