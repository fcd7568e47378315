//! Text to text: losses as transformers has them, runs that go on to the same bits, and mistakes in one sentence.

use crate::common::Scratch;
use crate::common::runs::{backend, compare, golden, settings_of, train};
use attentive_model::families::encoder_decoder::EncoderDecoder;
use attentive_model::families::t5::{T5, T5Config};
use attentive_model::families::transformer::Transformer;
use attentive_tasks::{LanguageModel, Writer};
use attentive_train::corpus::{Example, ExampleBatch};
use attentive_train::metrics::ValidationMetric;
use attentive_train::tasks::LearningPairs;
use attentive_train::{Draft, Event, Run};
use serde_json::Value;
use std::path::Path;
use toml::Table;

/// A batch of the golden file.
fn batch(value: &Value) -> ExampleBatch {
    let lists = |value: &Value| -> Vec<Vec<i32>> { serde_json::from_value(value.clone()).unwrap() };
    let pairs = lists(&value["texts"]).into_iter().zip(lists(&value["labels"]));
    let example = |(source, target)| Example { source, target, ..Example::default() };
    ExampleBatch { examples: pairs.map(example).collect() }
}

#[test]
fn fifty_losses_are_those_of_transformers() {
    let answers: Value = serde_json::from_slice(&std::fs::read(golden("losses.json")).unwrap()).unwrap();
    let backend = backend();
    for (case, folder) in [("t5", "t5/first"), ("gated t5", "t5/later")] {
        let model = T5::load_to_learn(&backend, &golden(folder), Some(0.0)).unwrap();
        compare(case, Box::new(LearningPairs::of(model)), &answers[case], batch);
    }
    let model = Transformer::load_to_learn(&backend, &golden("bart/bart"), Some(0.0), Some(0.0)).unwrap();
    compare("bart", Box::new(LearningPairs::of(model)), &answers["bart"], batch);
}

/// Pairs of which something can be learned in a second: the target has the words of the source in capitals, the last one first.
fn write_pairs(scratch: &Scratch) {
    let words = ["ab", "cad", "dab", "bad", "ace", "fed", "cafe", "egg"];
    for (part, range) in [("train", 0..200usize), ("valid", 200..220)] {
        let mut lines = String::new();
        for i in range {
            let chosen: Vec<&str> = (0..1 + i % 3).map(|k| words[(i * 7 + k * 3) % 8]).collect();
            let target: Vec<String> = chosen.iter().rev().map(|word| word.to_uppercase()).collect();
            lines += &format!("{}\t{}\n", chosen.join(" "), target.join(" "));
        }
        scratch.write(&format!("{part}.tsv"), lines);
    }
}

fn settings(scratch: &Scratch, more: &str) -> Draft {
    let said = format!(
        "task = \"seq2seq\"\nsource = [{:?}]\nvalid_source = [{:?}]\nprefix = \"turn: \"\nlearning_rate = 0.01\n\
         batch_tokens = 512\nsteps = 40\nvalidate_every = 20\nvalidate_lines = 8\nlongest = 40\nthreads = 1\n",
        scratch.path("train.tsv"),
        scratch.path("valid.tsv")
    );
    Draft::merge(said.parse().unwrap(), more.parse::<Table>().unwrap()).unwrap()
}

/// A new model, very small.
const NEW: &str = "vocab_size = 60\npreset = \"tiny\"\nd_model = 32\nheads = 2\nd_ff = 48\nencoder_layers = 1\n\
                   decoder_layers = 1\nearly_stopping = \"rouge\"\n";

fn validations(events: &[Event]) -> Vec<&ValidationMetric> {
    let metrics = events.iter().filter_map(|event| match event {
        Event::Validation(metric, _) => Some(metric),
        _ => None,
    });
    metrics.collect()
}

#[test]
fn every_model_learns_and_goes_on_to_the_same_bits_with_any_number_of_threads() {
    let first = golden("t5/first");
    let languages = "source_language = \"en\"\ntarget_language = \"de\"\n";
    for (name, begins) in [
        ("new", NEW.to_owned()),
        ("t5", format!("from = {first:?}\ndropout = 0.1\nema = 0.9\naccumulate = 2\n")),
        ("bart", format!("from = {:?}\nearly_stopping = \"bleu\"\n", golden("bart/bart"))),
        ("nllb", format!("from = {:?}\n{languages}", golden("bart/nllb"))),
    ] {
        let scratch = Scratch::new(&format!("seq2seq-{name}"));
        write_pairs(&scratch);
        let [whole, broken] = ["whole", "broken"].map(|name| scratch.path(name));
        let mut run = Run::begin(&whole, settings(&scratch, &begins), &mut |_| {}).unwrap();
        let (_, events) = train(&mut run, None);
        let found = validations(&events);
        let (before, after) = (found[0], found[1]);
        assert!(after.loss < before.loss, "{name}: {found:?}");
        assert!(after.rouge.is_some() && after.bleu.is_some(), "{after:?}");

        drop(
            Run::begin(&broken, settings(&scratch, &begins), &mut |_| {})
                .map(|mut run| train(&mut run, Some(7))),
        );
        for until in [Some(25), None] {
            let more = format!("{begins}\nthreads = 2");
            train(&mut Run::resume(&broken, settings_of(&broken, &more), &mut |_| {}).unwrap(), until);
        }
        let read = |folder: &Path, name: &str| std::fs::read(folder.join(name)).unwrap();
        for file in ["model.safetensors", "config.json", "generation_config.json"] {
            assert!(read(&whole, file) == read(&broken, file), "{name}: {file} differs");
        }
    }
}

#[test]
fn what_was_learned_is_a_folder_that_answers() {
    let scratch = Scratch::new("seq2seq-answers");
    write_pairs(&scratch);
    let folder = scratch.path("model");
    let more = format!("{NEW}steps = 400\nvalidate_every = 200\n");
    let (_, events) = train(&mut Run::begin(&folder, settings(&scratch, &more), &mut |_| {}).unwrap(), None);
    let last = validations(&events)[1];
    assert!(last.rouge.unwrap() > 90.0, "{last:?}");
    let config = T5Config::load(&folder).unwrap();
    assert_eq!((config.d_model, config.trained_length, config.start), (32, 40, config.pad));
    let mut writer = Writer::new(LanguageModel::open_on(&[backend()], false, &folder).unwrap(), &[]).unwrap();
    writer.push("turn: ab bad cafe").unwrap();
    let found = loop {
        match writer.pop().unwrap() {
            Some(found) => break found,
            None => writer.step(),
        }
    };
    assert_eq!(found[0].text, "CAFE BAD AB");
    // Its own weights, and how it wants to be decoded, go on in a second run.
    let second = scratch.path("second");
    let more = format!("from = {folder:?}\nsteps = 4\nvalidate_every = 2\n");
    let (_, events) = train(&mut Run::begin(&second, settings(&scratch, &more), &mut |_| {}).unwrap(), None);
    assert!(validations(&events)[0].rouge.unwrap() > 70.0, "{:?}", validations(&events));
    let model = T5::load(&backend(), &second).unwrap();
    assert_eq!(model.outline().d_model, 32);
    let generation = |folder: &Path| std::fs::read(folder.join("generation_config.json")).unwrap();
    assert_eq!(generation(&folder), generation(&second));
}

#[test]
fn mistakes_are_told_in_a_sentence_that_names_the_place() {
    let scratch = Scratch::new("seq2seq-mistakes");
    write_pairs(&scratch);
    let refused = |more: &str| {
        let run = Run::begin(&scratch.path("run"), settings(&scratch, more), &mut |_| {});
        assert!(!scratch.path("run").exists(), "{more}");
        run.err().unwrap().to_string()
    };
    let from = |folder: &str| format!("from = {:?}\n", golden(folder));
    for (more, expected) in [
        (format!("{}longest = 50", from("bart/bart")), "longest: the model reads at most 48 tokens"),
        (format!("{}attention_dropout = 0.1", from("t5/first")), "attention_dropout: a T5 has one dropout"),
        (from("bart/nllb"), "source_language: the model knows several languages"),
        (
            format!("{}source_language = \"en\"", from("bart/bart")),
            "source_language: the model has no tokens",
        ),
        (
            format!("{}source_language = \"xx\"\ntarget_language = \"de\"", from("bart/nllb")),
            "source_language: ",
        ),
        ("norm = \"pre\"".to_owned(), "norm: seq2seq does not have it"),
        ("ratio = 3.0".to_owned(), "ratio: seq2seq does not have it"),
        (
            "early_stopping = \"f1\"".to_owned(),
            "early_stopping: seq2seq is judged by loss, bleu, chrf, rouge",
        ),
        ("tokenizer_kind = \"wordpiece\"".to_owned(), "tokenizer_kind: seq2seq needs a bpe or unigram"),
        (from("bert/masked"), "is needed here"),
    ] {
        let message = refused(&more);
        assert!(message.contains(expected), "{more}: {message}");
    }
    let translate = "task = \"translate\"\nprefix = \"a\"\n";
    assert!(refused(translate).starts_with("prefix: translate does not have it"));
}
