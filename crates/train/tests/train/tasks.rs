//! The tasks of BERT: losses as transformers has them, runs that go on to the same bits, and mistakes in one sentence.

use crate::common::Scratch;
use crate::common::runs::{backend, compare, golden, log, settings_of, train, train_together};
use attentive_model::families::bert::{self, Bert, BertConfig};
use attentive_model::families::gpt2::{Gpt2, Gpt2Config};
use attentive_tasks::{Classifier, LanguageModel, MaskFiller, Tagger, Writer};
use attentive_tensor::Form;
use attentive_text::tokenizer::Input;
use attentive_train::corpus::{Example, ExampleBatch};
use attentive_train::tasks::{LearningBert, LearningGpt2};
use attentive_train::{Draft, Event, Reason, Run};
use serde_json::{Value, json};
use std::path::Path;
use toml::Table;

/// A batch of the golden file.
fn batch(value: &Value) -> ExampleBatch {
    let list = |value: &Value| -> Vec<i32> {
        value.as_array().unwrap().iter().map(|number| number.as_i64().unwrap() as i32).collect()
    };
    let texts = value["texts"].as_array().unwrap().iter().map(list);
    let example = |(source, labels): (Vec<i32>, &Value)| Example {
        types: vec![0; source.len()],
        labels: if labels.is_array() { list(labels) } else { vec![labels.as_i64().unwrap() as i32] },
        source,
        ..Example::default()
    };
    ExampleBatch { examples: texts.zip(value["labels"].as_array().unwrap()).map(example).collect() }
}

#[test]
fn fifty_losses_are_those_of_transformers() {
    let answers: Value = serde_json::from_slice(&std::fs::read(golden("losses.json")).unwrap()).unwrap();
    let backend = backend();
    for (case, task) in [
        ("sequence", bert::Task::SequenceClassification),
        ("token", bert::Task::TokenClassification),
        ("masked", bert::Task::MaskedLm),
        ("answer", bert::Task::QuestionAnswering),
    ] {
        let family = if case == "answer" { "roberta" } else { "bert" };
        let folder = golden(family).join(case);
        let config = BertConfig {
            dropout: 0.0,
            attention_dropout: 0.0,
            classifier_dropout: Some(0.0),
            ..BertConfig::load(&folder).unwrap()
        };
        let model = Bert::load_to_learn(&backend, &folder, &config, task, 1).unwrap();
        compare(case, Box::new(LearningBert::new(model)), &answers[case], batch);
    }
    let folder = golden("gpt2/saved");
    let config = Gpt2Config {
        dropout: 0.0,
        embedding_dropout: 0.0,
        attention_dropout: 0.0,
        ..Gpt2Config::load(&folder).unwrap()
    };
    let model = Gpt2::load_to_learn(&backend, &folder, &config).unwrap();
    // What is predicted are the same texts, a token further on.
    let shifted = |value: &Value| {
        let mut batch = batch(value);
        for example in &mut batch.examples {
            example.source.pop();
            example.labels.remove(0);
        }
        batch
    };
    compare("lm", Box::new(LearningGpt2::new(model)), &answers["lm"], shifted);
}

/// Files of which something can be learned in a second: names are capital letters, and what is good has a `b`.
fn write_files(scratch: &Scratch) {
    let words = ["ab", "cad", "dab", "bad", "ace", "fed", "cafe", "egg"];
    let names = ["Ada", "Bob", "Cleo"];
    for (part, range) in [("train", 0..240usize), ("valid", 240..280)] {
        let (mut texts, mut tags, mut lines) = (String::new(), String::new(), String::new());
        for i in range {
            let chosen: Vec<&str> = (0..2 + i % 4).map(|k| words[(i * 7 + k * 3) % 8]).collect();
            let is_good = chosen.iter().any(|word| word.contains('b'));
            texts += &format!("{}\t{}\n", if is_good { "good" } else { "poor" }, chosen.join(" "));
            let name = names[i % 3];
            tags += &format!("{} O\n{name} B-PER\n{name} I-PER\n{} O\n\n", chosen[0], chosen[1]);
            lines += &format!("{} {name} {name}\n", chosen.join(" "));
        }
        scratch.write(&format!("{part}.json"), questions(if part == "train" { 0..160 } else { 160..180 }));
        scratch.write(&format!("{part}.tsv"), texts);
        scratch.write(&format!("{part}.conll"), tags);
        scratch.write(&format!("{part}.txt"), lines);
    }
}

/// Questions as SQuAD has them: who has a thing, in a text in which each of three people has one. Every fifth has no answer.
fn questions(range: std::ops::Range<usize>) -> String {
    let (names, things) = (["Ada", "Bob", "Cleo"], ["egg", "cafe", "bag"]);
    let paragraph = |i: usize| {
        let has = |k: usize| format!("{} {}", names[(i + k) % 3], things[(i / 3 + 2 * k) % 3]);
        let context = format!("é {} . {} . {} .", has(0), has(1), has(2));
        let asked = i % 3;
        let name = names[(i + asked) % 3];
        let thing = if i % 5 == 4 { "log" } else { things[(i / 3 + 2 * asked) % 3] };
        let start = context.chars().count() - context[context.find(name).unwrap()..].chars().count();
        let answers = if i % 5 == 4 { json!([]) } else { json!([{"text": name, "answer_start": start}]) };
        let qas = json!([{"id": i.to_string(), "question": thing, "answers": answers, "is_impossible": i % 5 == 4}]);
        json!({"context": context, "qas": qas})
    };
    json!({"version": "2.0", "data": [{"paragraphs": range.map(paragraph).collect::<Vec<_>>()}]}).to_string()
}

/// Settings of a small model for a task.
fn settings(scratch: &Scratch, task: &str, more: &str) -> Draft {
    let ending = match task {
        "classify" => "tsv",
        "tag" => "conll",
        "answer" => "json",
        _ => "txt",
    };
    let file = |part: &str| scratch.path(&format!("{part}.{ending}")).display().to_string();
    let stack = if task == "lm" { "decoder" } else { "encoder" };
    let usual = format!(
        "task = \"{task}\"\nsource = [\"{}\"]\nvalid_source = [\"{}\"]\nvocab_size = 60\npreset = \"tiny\"\nd_model = 32\n\
         heads = 2\nd_ff = 48\n{stack}_layers = 1\nlearning_rate = 0.01\nsteps = 60\nvalidate_every = 15\nthreads = 1\n",
        file("train"),
        file("valid")
    );
    let more: Table = more.parse().unwrap();
    Draft::merge(usual.parse().unwrap(), more).unwrap()
}

#[test]
fn every_task_learns_and_goes_on_to_the_same_bits_with_any_number_of_threads() {
    for task in ["classify", "tag", "mlm", "answer"] {
        let scratch = Scratch::new(&format!("task-{task}"));
        write_files(&scratch);
        let [whole, broken] = ["whole", "broken"].map(|name| scratch.path(name));
        // Averages and several batches a step go the same way.
        let more = if task == "classify" { "ema = 0.9\naccumulate = 2" } else { "" };
        let mut run = Run::begin(&whole, settings(&scratch, task, more), &mut |_| {}).unwrap();
        let (reason, events) = train(&mut run, None);
        assert_eq!(reason, Reason::Steps);
        let validations: Vec<_> = events
            .iter()
            .filter_map(|event| match event {
                Event::Validation(metric, _) => Some(metric),
                _ => None,
            })
            .collect();
        let (first, last) = (validations[0], validations[validations.len() - 1]);
        assert!(last.loss < first.loss, "{task}: {validations:?}");
        match task {
            "mlm" => assert_eq!((last.accuracy, last.f1), (None, None)),
            "answer" => {
                assert!(last.exact.unwrap() >= validations[0].exact.unwrap() && last.f1.is_some(), "{last:?}")
            }
            _ => assert!(last.accuracy.unwrap() > 90.0 && last.f1.unwrap() > 90.0, "{last:?}"),
        }

        let mut run = Run::begin(&broken, settings(&scratch, task, more), &mut |_| {}).unwrap();
        train(&mut run, Some(7));
        drop(run);
        let threads = format!("{more}\nthreads = 2");
        for until in [Some(40), None] {
            let mut run = Run::resume(&broken, settings_of(&broken, &threads), &mut |_| {}).unwrap();
            train(&mut run, until);
        }
        let read = |folder: &Path, name: &str| std::fs::read(folder.join(name)).unwrap();
        for name in ["model.safetensors", "config.json", "checkpoints/step-00000060.safetensors"] {
            assert!(read(&whole, name) == read(&broken, name), "{task}: {name} differs");
        }
    }
}

#[test]
fn ranks_share_the_validation_to_the_scores_of_one() {
    for task in ["classify", "tag", "mlm", "answer", "lm"] {
        let scratch = Scratch::new(&format!("task-ranks-{task}"));
        write_files(&scratch);
        // Byte pairs of bytes have a token for each byte.
        let tokens = if task == "lm" { 300 } else { 60 };
        for ranks in [2, 3] {
            // Averages are judged, too, and batches are so small that each rank has some to judge.
            let more = format!(
                "accumulate = {ranks}\nsteps = 12\nvalidate_every = 4\nsave_every = 4\naverage = 2\nema = 0.9\n\
                 batch_tokens = 120\nlongest = 60\nprecision = \"f32\"\nvocab_size = {tokens}\n"
            );
            let draft = || settings(&scratch, task, &more);
            let [alone, together] =
                ["alone", "together"].map(|name| scratch.path(&format!("{name}-{ranks}")));
            train(&mut Run::begin(&alone, draft(), &mut |_| {}).unwrap(), None);
            train_together(&together, ranks, &draft);
            assert_eq!(log(&alone), log(&together), "{task}, {ranks} ranks");
            let weights = |folder: &Path| std::fs::read(folder.join("model.safetensors")).unwrap();
            assert!(weights(&alone) == weights(&together), "{task}, {ranks} ranks");
        }
    }
}

#[test]
fn what_was_learned_answers_as_a_folder_and_can_be_learned_from() {
    let scratch = Scratch::new("task-answers");
    write_files(&scratch);
    let begin = |task: &str, more: &str| {
        let folder = scratch.path(task);
        let mut run = Run::begin(&folder, settings(&scratch, task, more), &mut |_| {}).unwrap();
        train(&mut run, None);
        folder
    };
    let classifier = Classifier::open(&backend(), &begin("classify", "average = 2"), Form::Precise).unwrap();
    let (_, found) = classifier.classify(&[Input::Text("ab bad"), Input::Text("cafe cad ace egg")]).unwrap();
    let labels: Vec<&str> = found.iter().map(|one| &*one.scores[0].0).collect();
    assert_eq!(labels, ["good", "poor"]);
    let tagger = Tagger::open(&backend(), &begin("tag", ""), Form::Precise).unwrap();
    let (_, found) = tagger.tag(&["cad Cleo Cleo egg"]).unwrap();
    assert_eq!(
        found[0].entities.iter().map(|one| (&*one.label, one.bytes.clone())).collect::<Vec<_>>(),
        [("PER", 4..13)]
    );
    let filler = MaskFiller::open(&backend(), &begin("mlm", "steps = 600"), Form::Precise).unwrap();
    let (_, found) = filler.fill(&["cafe cad [MASK] egg Bob Bob"], 1).unwrap();
    assert_eq!(found[0][0][0].word, "ace");

    // A masked model learns to classify: its sizes and tokens are its own, and a model of the same labels keeps its head.
    let from = |folder: &str, out: &str| {
        let said = format!(
            "task = \"classify\"\nfrom = {:?}\nsource = [{:?}]\nvalid_source = [{:?}]\nlearning_rate = 0.01\nsteps = 80\nlog_every = 2\n",
            scratch.path(folder),
            scratch.path("train.tsv"),
            scratch.path("valid.tsv")
        );
        let draft = Draft::merge(said.parse().unwrap(), Table::new()).unwrap();
        let mut run = Run::begin(&scratch.path(out), draft, &mut |_| {}).unwrap();
        let (_, events) = train(&mut run, None);
        let last = events.iter().rev().find_map(|event| match event {
            Event::Validation(metric, _) => metric.accuracy,
            _ => None,
        });
        let first = events.iter().find_map(|event| match event {
            Event::Step(metric) => Some(metric.loss),
            _ => None,
        });
        (first.unwrap(), last.unwrap())
    };
    let (first, accuracy) = from("mlm", "further");
    assert!(first > 0.4 && accuracy > 90.0, "{first} {accuracy}");
    let (first, accuracy) = from("classify", "again");
    assert!(first < 0.2 && accuracy > 90.0, "{first} {accuracy}");
}

#[test]
fn a_run_goes_on_without_the_model_that_it_began_with() {
    let scratch = Scratch::new("task-gone");
    write_files(&scratch);
    let first = scratch.path("first");
    train(&mut Run::begin(&first, settings(&scratch, "classify", "steps = 5"), &mut |_| {}).unwrap(), None);
    let said = format!(
        "task = \"tag\"\nfrom = {first:?}\nsource = [{:?}]\nvalid_source = [{:?}]\nsteps = 20\nvalidate_every = 10\nthreads = 1\n",
        scratch.path("train.conll"),
        scratch.path("valid.conll")
    );
    let begin = |name: &str| {
        let draft = Draft::merge(said.parse().unwrap(), Table::new()).unwrap();
        Run::begin(&scratch.path(name), draft, &mut |_| {}).unwrap()
    };
    train(&mut begin("whole"), None);
    train(&mut begin("broken"), Some(7));
    std::fs::remove_dir_all(&first).unwrap();
    let broken = scratch.path("broken");
    train(&mut Run::resume(&broken, settings_of(&broken, ""), &mut |_| {}).unwrap(), None);
    let weights = |name: &str| std::fs::read(scratch.path(name).join("model.safetensors")).unwrap();
    assert!(weights("whole") == weights("broken"));
}

#[test]
fn a_language_model_learns_and_goes_on_to_the_same_bits() {
    let scratch = Scratch::new("task-lm");
    let text = scratch.write("text.txt", "the cat sat on the mat. the dog sat on the log.\n".repeat(60));
    let other = golden("gpt2/saved");
    for (origin, begins) in [
        ("from", format!("from = {other:?}")),
        ("tokenizer", format!("tokenizer = {other:?}")),
        ("bpe", "vocab_size = 300".to_owned()),
        ("characters", "tokenizer_kind = \"characters\"".to_owned()),
    ] {
        let sizes = if origin == "from" {
            ""
        } else {
            "preset = \"tiny\"\nd_model = 32\nheads = 2\ndecoder_layers = 1\n"
        };
        let said = format!(
            "task = \"lm\"\n{begins}\nsource = [{text:?}]\nhold_out = 5\nlongest = 16\nbatch_tokens = 128\n{sizes}\
             learning_rate = 0.01\nsteps = 40\nvalidate_every = 10\n"
        );
        let begin = |name: &str| {
            let draft = Draft::merge(said.parse().unwrap(), Table::new()).unwrap();
            Run::begin(&scratch.path(&format!("{origin}-{name}")), draft, &mut |_| {}).unwrap()
        };
        let (_, events) = train(&mut begin("whole"), None);
        let losses: Vec<f64> = events
            .iter()
            .filter_map(|event| match event {
                Event::Validation(metric, _) => Some(metric.loss),
                _ => None,
            })
            .collect();
        assert!(losses[3] < 0.5 * losses[0], "{origin}: {losses:?}");
        train(&mut begin("broken"), Some(13));
        let broken = scratch.path(&format!("{origin}-broken"));
        train(&mut Run::resume(&broken, settings_of(&broken, "threads = 1"), &mut |_| {}).unwrap(), None);
        let weights = |name: &str| {
            std::fs::read(scratch.path(&format!("{origin}-{name}")).join("model.safetensors")).unwrap()
        };
        assert!(weights("whole") == weights("broken"), "{origin}");
        // What the run leaves is a folder that writes.
        let folder = scratch.path(&format!("{origin}-whole"));
        let mut writer =
            Writer::new(LanguageModel::open_on(&[backend()], false, &folder).unwrap(), &[]).unwrap();
        writer.push("the c").unwrap();
        let found = loop {
            match writer.pop().unwrap() {
                Some(found) => break found,
                None => writer.step(),
            }
        };
        assert!(!found[0].text.is_empty(), "{origin}");
    }
}

#[test]
fn mistakes_are_told_in_a_sentence_that_names_the_place() {
    let scratch = Scratch::new("task-mistakes");
    write_files(&scratch);
    let refused = |task: &str, more: &str| {
        let run = Run::begin(&scratch.path("run"), settings(&scratch, task, more), &mut |_| {});
        assert!(!scratch.path("run").exists(), "{task} {more}");
        run.err().unwrap().to_string()
    };
    let file = |name: &str, text: &str| format!("{:?}", scratch.write(name, text));
    let wrong = file("wrong.conll", "a O\nb\n\n");
    let message = refused("tag", &format!("source = [{wrong}]"));
    assert!(message.contains("wrong.conll") && message.contains("line 2"), "{message}");
    let unseen = file("unseen.tsv", "good\tab\nodd\tcad\n");
    let message = refused("classify", &format!("valid_source = [{unseen}]"));
    assert!(
        message.contains("unseen.tsv") && message.contains("line 2") && message.contains("`odd`"),
        "{message}"
    );
    let same = file("same.tsv", "good\tab\ngood\tcad\n");
    let message = refused("classify", &format!("source = [{same}]\nvalid_source = []\nhold_out = 0"));
    assert!(message.contains("same label"), "{message}");
    let lost = questions(0..3).replace("\"answer_start\":2", "\"answer_start\":3");
    let message = refused("answer", &format!("source = [{}]", file("lost.json", &lost)));
    assert!(message.contains("lost.json: question `0`: the answer `Ada` is not in its context"), "{message}");
    let message = refused("classify", "early_stopping = \"bleu\"");
    assert!(message.contains("early_stopping") && message.contains("loss, accuracy, f1"), "{message}");
    let message = refused("classify", "target = [\"x\"]");
    assert!(message.starts_with("target"), "{message}");
    let message = refused("tag", "validate_beam = 3");
    assert!(message.starts_with("validate_beam"), "{message}");
    let message = refused("mlm", "longest = 2");
    assert!(message.starts_with("longest: must be above 2"), "{message}");
    let message = refused("mlm", "tokenizer_kind = \"characters\"");
    assert!(message.contains("mlm needs a wordpiece tokenizer"), "{message}");
    let message = refused("lm", "tokenizer_kind = \"unigram\"");
    assert!(message.contains("lm needs a bpe or characters tokenizer"), "{message}");
    let message = refused("lm", "tokenizer_kind = \"characters\"");
    assert!(message.starts_with("vocab_size: each character"), "{message}");
    let missing = format!("{:?}", scratch.path("none"));
    assert!(refused("mlm", &format!("from = {missing}")).contains("d_model"));
}
