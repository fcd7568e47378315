//! What tests of runs share.

use attentive_ranks::{Group, ThreadRank, threads};
use attentive_tensor::{Backend, CpuBackend};
use attentive_train::corpus::ExampleBatch;
use attentive_train::settings::TaskKind;
use attentive_train::tasks::Task;
use attentive_train::{Draft, Event, Learner, Reason, Run, Settings};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use toml::Table;

pub fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden").join(name)
}

pub fn backend() -> Arc<dyn Backend> {
    CpuBackend::from_env().unwrap().shared()
}

/// Learns for fifty steps, and holds each loss against the golden one.
pub fn compare(case: &str, task: Box<dyn Task>, answers: &Value, batch: impl Fn(&Value) -> ExampleBatch) {
    let settings = Settings::of(TaskKind::Classify);
    let mut learner = Learner::new(&backend(), task, &settings);
    let batches: Vec<ExampleBatch> = answers["batches"].as_array().unwrap().iter().map(batch).collect();
    let expected = answers["losses"].as_array().unwrap();
    assert_eq!(expected.len(), 50);
    for (step, expected) in (1..).zip(expected) {
        let batch = &batches[step as usize % batches.len()];
        let rate = 1e-3 * f64::min(step as f64 / 10.0, (50 - step) as f64 / 40.0);
        learner.step(&settings, step, rate, std::slice::from_ref(batch), false).unwrap();
        let loss = learner.take_loss() / batch.answers() as f64;
        let expected = expected.as_f64().unwrap();
        assert!((loss - expected).abs() < 1e-4, "{case}, step {step}: {loss}, not {expected}");
    }
}

/// Trains until a step, or to the end.
pub fn train(run: &mut Run, until: Option<u64>) -> (Reason, Vec<Event>) {
    let (stop, mut events) = (AtomicBool::new(false), Vec::new());
    let outcome = run.train(&stop, &mut |event| {
        if matches!(event, Event::Progress(progress) if Some(progress.step) == until) {
            stop.store(true, Ordering::Relaxed);
        }
        events.push(event.clone());
    });
    (outcome.unwrap().reason, events)
}

/// Trains to the end with several ranks, each a thread.
pub fn train_together(folder: &Path, ranks: usize, draft: &(dyn Fn() -> Draft + Sync)) {
    let train_one = |group: ThreadRank| {
        let draft = (group.rank() == 0).then(draft);
        let group: Rc<dyn Group> = Rc::new(group);
        let mut run = Run::together(folder, draft, false, &group, &mut |_| {}).unwrap();
        train(&mut run, None);
    };
    std::thread::scope(|scope| {
        threads(ranks).into_iter().for_each(|group| drop(scope.spawn(move || train_one(group))));
    });
}

/// The log of a run, without times.
pub fn log(folder: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.join("metrics.jsonl")).unwrap();
    let timeless = |line: &str| {
        let mut value: Value = serde_json::from_str(line).unwrap();
        for field in ["seconds", "tokens_per_second"] {
            value.as_object_mut().unwrap().remove(field);
        }
        value
    };
    text.lines().map(timeless).collect()
}

/// The settings of a run that goes on.
pub fn settings_of(folder: &Path, more: &str) -> Draft {
    let file: Table = std::fs::read_to_string(folder.join("train.toml")).unwrap().parse().unwrap();
    Draft::merge(file, more.parse().unwrap()).unwrap()
}
