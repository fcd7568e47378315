//! A run from code: what it tells on the way, and how it finds back when the loss goes astray.

use crate::common::Scratch;
use attentive_train::metrics::Metric;
use attentive_train::{Event, Reason, Run, Settings, logs};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// A small model of words that are copied.
fn settings(scratch: &Scratch) -> Settings {
    let words = ["ab", "cab", "dab", "bad", "cad", "add"];
    let line = |i: usize| (0..2 + i % 5).map(|k| words[(i * 7 + k * k) % 6]).collect::<Vec<_>>().join(" ");
    let text = (0..200).map(|i| line(i) + "\n").collect::<String>();
    let side = |name: &str| -> Vec<PathBuf> { vec![scratch.write(name, &text)] };
    Settings {
        source: side("source"),
        target: side("target"),
        valid_source: side("valid-source"),
        valid_target: side("valid-target"),
        vocab_size: 30,
        preset: "tiny".to_owned(),
        d_model: Some(16),
        heads: Some(2),
        d_ff: Some(32),
        batch_tokens: 300,
        warmup: 10,
        steps: Some(20),
        validate_every: 10,
        validate_lines: 4,
        log_every: 2,
        threads: Some(1),
        ..Settings::default()
    }
}

/// Trains on until something is told that `enough` accepts, or to the end.
fn train(run: &mut Run, mut enough: impl FnMut(&Event) -> bool) -> (Reason, Vec<Event>) {
    let (stop, mut events) = (AtomicBool::new(false), Vec::new());
    let outcome = run.train(&stop, &mut |event| {
        if enough(event) {
            stop.store(true, Ordering::Relaxed);
        }
        events.push(event.clone());
    });
    (outcome.unwrap().reason, events)
}

fn rates(folder: &Path) -> Vec<(u64, f64)> {
    let rate = |metric: Metric| match metric {
        Metric::Step(step) => Some((step.step, step.learning_rate)),
        _ => None,
    };
    logs::read(folder).unwrap().into_iter().filter_map(rate).collect()
}

#[test]
fn every_step_is_told_and_validations_come_with_translations() {
    let scratch = Scratch::new("run-told");
    let mut prepared = Vec::new();
    let settings = settings(&scratch);
    let mut run =
        Run::begin(&scratch.path("run"), settings, &mut |event| prepared.push(event.clone())).unwrap();
    assert!(matches!(prepared[..], [Event::Preparing(_), Event::Preparing(_), Event::Preparing(_)]));
    let (reason, events) = train(&mut run, |_| false);
    assert_eq!(reason, Reason::Steps);
    let steps = events.iter().filter_map(|event| match event {
        Event::Progress(progress) => Some((progress.step, progress.share)),
        _ => None,
    });
    assert!(steps.eq((1..=20).map(|step| (step, Some(step as f64 / 20.0)))));
    let samples: Vec<usize> = events
        .iter()
        .filter_map(|event| match event {
            Event::Validation(metric, samples) if metric.bleu.is_some() => Some(samples.len()),
            _ => None,
        })
        .collect();
    assert_eq!(samples, [3, 3]);
    assert!(matches!(&events[0], Event::Begin(begin) if begin.examples == 200 && begin.vocabulary <= 30));
}

#[test]
fn the_folder_tells_how_many_lines_had_several_sentences_also_after_a_pause() {
    let scratch = Scratch::new("run-sentences");
    let folder = scratch.path("run");
    let line = |i: usize| if i.is_multiple_of(8) { "Ab cab. Bad add.\n" } else { "Dr. Ab ab cad.\n" };
    let source = scratch.write("several", (0..200).map(line).collect::<String>());
    let settings = || Settings { source: vec![source.clone()], steps: Some(4), ..settings(&scratch) };
    let share = || {
        let config = std::fs::read(folder.join("config.json")).unwrap();
        serde_json::from_slice::<serde_json::Value>(&config).unwrap()["attentive_multi_sentence_share"]
            .clone()
    };
    let mut run = Run::begin(&folder, settings(), &mut |_| {}).unwrap();
    assert_eq!(share(), 0.125);
    train(&mut run, |event| matches!(event, Event::Progress(progress) if progress.step == 2));
    drop(run);
    let mut run = Run::resume(&folder, settings(), &mut |_| {}).unwrap();
    train(&mut run, |_| false);
    assert_eq!(share(), 0.125);
}

#[test]
fn weights_that_are_no_numbers_send_the_run_back_with_half_the_rate() {
    let scratch = Scratch::new("run-astray");
    let folder = scratch.path("run");
    let usual = settings(&scratch).learning_rate(16);
    let mut run = Run::begin(&folder, settings(&scratch), &mut |_| {}).unwrap();
    let (reason, _) =
        train(&mut run, |event| matches!(event, Event::Progress(progress) if progress.step == 7));
    assert_eq!(reason, Reason::Interrupted);

    let table = &run.parameters()[0];
    table.update(|value| {
        let backend = Settings::default().backend().unwrap();
        backend.upload_f32(&vec![f32::NAN; value.shape().len()], value.shape())
    });
    let (reason, events) = train(&mut run, |_| false);
    assert_eq!(reason, Reason::Steps);
    let notices: Vec<&String> = events
        .iter()
        .filter_map(|event| match event {
            Event::Notice(notice) => Some(notice),
            _ => None,
        })
        .collect();
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert!(notices[0].contains("at step 8") && notices[0].contains("back to step 7"), "{notices:?}");
    let expected: Vec<(u64, f64)> =
        (1..=10).map(|i| (2 * i, usual.at(2 * i) * if 2 * i > 7 { 0.5 } else { 1.0 })).collect();
    assert_eq!(rates(&folder), expected);
}

#[test]
fn a_run_without_validation_leaves_its_last_weights() {
    let scratch = Scratch::new("run-last");
    let folder = scratch.path("run");
    let settings = Settings { valid_source: Vec::new(), valid_target: Vec::new(), ..settings(&scratch) };
    let mut run = Run::begin(&folder, settings, &mut |_| {}).unwrap();
    let (_, events) = train(&mut run, |_| false);
    assert!(!events.iter().any(|event| matches!(event, Event::Validation(..))));
    let read = |name: &str| std::fs::read(folder.join(name)).unwrap();
    assert_eq!(read("model.safetensors"), read("checkpoints/step-00000020.safetensors"));
}

#[test]
fn special_tokens_and_control_characters_in_texts_are_text() {
    let scratch = Scratch::new("run-special");
    let usual = settings(&scratch);
    let nasty = "<pad> ab\n</s>\nab <pad></s> bad <unk>\n<s>add</s>\na\0b \0\nab\u{1}\n";
    for name in ["source", "target", "valid-source", "valid-target"] {
        let text = std::fs::read_to_string(scratch.path(name)).unwrap();
        scratch.write(name, nasty.to_owned() + &text);
    }
    let begin = |name: &str, settings| Run::begin(&scratch.path(name), settings, &mut |_| {}).unwrap();
    let settings = |settings: &Settings| Settings { steps: Some(10), vocab_size: 50, ..settings.clone() };
    let (reason, _) = train(&mut begin("learned", settings(&usual)), |_| false);
    assert_eq!(reason, Reason::Steps);
    // With the tokenizer that is there now, and with its tokenizer.json alone.
    for tokenizer in ["learned", "learned/tokenizer.json"] {
        let given = Settings { tokenizer: Some(scratch.path(tokenizer)), ..settings(&usual) };
        let name = format!("given-{}", tokenizer.len());
        let (reason, events) = train(&mut begin(&name, given), |_| false);
        assert_eq!(reason, Reason::Steps);
        assert!(events.iter().any(|event| matches!(event, Event::Validation(..))));
    }
}
