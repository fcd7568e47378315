//! ViT learns classes of pictures: losses as transformers has them, runs that go on to the same bits, and mistakes in one sentence.

use crate::common::Scratch;
use crate::common::runs::{backend, golden, log, train, train_together};
use attentive_image::{Picture, Processor};
use attentive_model::families::vit::{Vit, VitConfig};
use attentive_tasks::PictureClassifier;
use attentive_tensor::Form;
use attentive_train::corpus::{Example, ExampleBatch, ExamplePicture};
use attentive_train::settings::TaskKind;
use attentive_train::tasks::LearningVit;
use attentive_train::{Draft, Event, Learner, Run, Settings};
use serde_json::Value;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// A batch of the golden file.
fn batch(value: &Value) -> ExampleBatch {
    let bytes = |hex: &str| -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap()).collect()
    };
    let pictures = value["pictures"].as_array().unwrap().iter().zip(value["labels"].as_array().unwrap());
    let example = |(picture, label): (&Value, &Value)| Example {
        pictures: vec![ExamplePicture {
            picture: Picture::new(16, 16, bytes(picture.as_str().unwrap())),
            tokens: 17,
        }],
        labels: vec![label.as_i64().unwrap() as i32],
        ..Example::default()
    };
    ExampleBatch { examples: pictures.map(example).collect() }
}

#[test]
fn fifty_losses_are_those_of_transformers() {
    let answers: Value = serde_json::from_slice(&std::fs::read(golden("vit_losses.json")).unwrap()).unwrap();
    let batches: Vec<ExampleBatch> = answers["batches"].as_array().unwrap().iter().map(batch).collect();
    for case in ["classes", "dinov2"] {
        let (backend, folder) = (backend(), golden("vit").join(case));
        let config = VitConfig::load(&folder).unwrap();
        let model = Vit::load_to_learn(&backend, &folder, &config, 1).unwrap();
        let task = Box::new(LearningVit::new(model, Processor::of(&folder).unwrap()));
        let settings = Settings::of(TaskKind::ClassifyImages);
        let mut learner = Learner::new(&backend, task, &settings);
        let expected = answers[case].as_array().unwrap();
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
}

/// Pictures of noise, dark on the left or dark on the right.
fn write_pictures(scratch: &Scratch) {
    for (label, dark_is_left) in [("left", true), ("right", false)] {
        let folder = scratch.path("all").join(label);
        std::fs::create_dir_all(&folder).unwrap();
        for number in 0..60u32 {
            let mut picture = Picture::filled(12, 9, [0; 3]);
            for y in 0..9 {
                for x in 0..12 {
                    let noise = (number * 131 + (x * 31 + y * 17 + x * y) as u32 * 7) % 90;
                    let light = if (x < 6) == dark_is_left { 0 } else { 120 };
                    picture.set(x, y, [(noise + light) as u8; 3]);
                }
            }
            picture.save_png(&folder.join(format!("{number}.png"))).unwrap();
        }
    }
}

fn draft(scratch: &Scratch, more: &str) -> Draft {
    let usual = format!(
        "task = \"classify-images\"\nsource = [\"{}\"]\nhold_out = 20\nimage_size = 16\npreset = \"tiny\"\nd_model = 32\nheads = 2\n\
         d_ff = 48\nencoder_layers = 1\nlearning_rate = 0.003\nbatch_size = 16\nsteps = 40\nvalidate_every = 20\nthreads = 1\n\
         scale = [0.8, 1.0]\n",
        scratch.path("all").display()
    );
    Draft::merge(usual.parse().unwrap(), more.parse().unwrap()).unwrap()
}

fn weights(folder: &Path) -> Vec<u8> {
    std::fs::read(folder.join("model.safetensors")).unwrap()
}

#[test]
fn ranks_share_the_validation_to_the_scores_of_one() {
    let scratch = Scratch::new("pictures-ranks");
    write_pictures(&scratch);
    let often = "accumulate = 3\nprecision = \"f32\"\nsteps = 4\nvalidate_every = 2\n";
    let scenes = format!(
        "task = \"detect\"\nsource = [\"scenes\"]\nhold_out = 7\nbatch_size = 2\npreset = \"tiny\"\nthreads = 1\n{often}"
    );
    let detecting = || Draft::merge(scenes.parse().unwrap(), Default::default()).unwrap();
    let classifying = || draft(&scratch, often);
    let cases: [(&str, &(dyn Fn() -> Draft + Sync)); 2] = [("boxes", &detecting), ("classes", &classifying)];
    for (name, draft) in cases {
        let [alone, together] = ["alone", "together"].map(|run| scratch.path(&format!("{name}-{run}")));
        train(&mut Run::begin(&alone, draft(), &mut |_| {}).unwrap(), None);
        train_together(&together, 3, draft);
        assert_eq!(log(&alone), log(&together), "{name}");
        assert!(weights(&alone) == weights(&together), "{name}");
    }
}

#[test]
fn a_run_learns_goes_on_to_the_same_bits_and_leaves_a_model_folder() {
    let scratch = Scratch::new("classify-images");
    write_pictures(&scratch);
    let (whole, broken) = (scratch.path("whole"), scratch.path("broken"));
    let mut run = Run::begin(&whole, draft(&scratch, ""), &mut |_| {}).unwrap();
    let outcome = run.train(&AtomicBool::new(false), &mut |_| {}).unwrap();
    assert!(outcome.best.unwrap().accuracy.unwrap() > 95.0);

    let stop = AtomicBool::new(false);
    let mut at_ten = |event: &Event| {
        if let Event::Progress(progress) = event {
            stop.store(progress.step >= 10, Ordering::Relaxed);
        }
    };
    Run::begin(&broken, draft(&scratch, "log_every = 1"), &mut |_| {})
        .unwrap()
        .train(&stop, &mut at_ten)
        .unwrap();
    let settings = attentive_train::settings::load(&broken).unwrap();
    let mut again = Run::resume(&broken, settings, &mut |_| {}).unwrap();
    again.train(&AtomicBool::new(false), &mut |_| {}).unwrap();
    assert!(weights(&whole) == weights(&broken), "another model");

    let classifier = PictureClassifier::open(&backend(), &whole, Form::Precise).unwrap();
    for label in ["left", "right"] {
        let picture = Picture::open(&scratch.path("all").join(label).join("7.png")).unwrap();
        let pixels = classifier.encoder().read(0, &picture).unwrap();
        assert_eq!(classifier.classify(&[pixels]).unwrap()[0].scores[0].0, label);
    }
    // Others go on from it, also with other labels.
    let further = |name: &str, source: &str| {
        let usual = format!(
            "task = \"classify-images\"\nsource = [\"{}\"]\nhold_out = 20\nthreads = 1\nhflip = 0.5\nfrom = \"{}\"\nsteps = 2\n\
             validate_every = 2",
            scratch.path(source).display(),
            whole.display()
        );
        let draft = Draft::merge(usual.parse().unwrap(), Default::default()).unwrap();
        let folder = scratch.path(name);
        let mut run = Run::begin(&folder, draft, &mut |_| {}).unwrap();
        run.train(&AtomicBool::new(false), &mut |_| {}).unwrap();
        VitConfig::load(&folder).unwrap().labels
    };
    assert_eq!(further("further", "all"), ["left", "right"]);
    let other = scratch.path("other");
    std::fs::create_dir(&other).unwrap();
    for (old, new) in [("left", "dark"), ("right", "light")] {
        std::fs::rename(scratch.path("all").join(old), other.join(new)).unwrap();
    }
    assert_eq!(further("anew", "other"), ["dark", "light"]);
}

#[test]
fn mistakes_are_told_in_a_sentence() {
    let scratch = Scratch::new("pictures-refused");
    write_pictures(&scratch);
    let begin = |more: &str| -> String {
        let folder = scratch.path("refused");
        let problem = Run::begin(&folder, draft(&scratch, more), &mut |_| {}).unwrap_err().to_string();
        assert!(!folder.exists(), "{more}");
        problem
    };
    for (more, words) in [
        ("vocab_size = 100", "vocab_size: classify-images does not have it"),
        ("scale = [0.0, 1.0]", "scale: must be two numbers above 0"),
        ("hflip = 1.5", "hflip: must be from 0 to 1, not 1.5"),
        ("color_jitter = [0.4, 0.4]", "color_jitter: must be one, three or four numbers"),
        ("color_jitter = [0.4, 0.4, 0.4, 0.6]", "color_jitter: the hue must be from 0 to 0.5, not 0.6"),
        ("mixup = -1.0", "mixup: must be 0 or above"),
        ("patch_size = 17", "patch_size: 17 is more than image_size"),
        ("source = [\"missing\"]", "missing"),
    ] {
        let problem = begin(more);
        assert!(problem.contains(words), "{more}: {problem}");
    }
    let broken = scratch.path("all").join("left").join("3.png");
    let whole = std::fs::read(&broken).unwrap();
    std::fs::write(&broken, &whole[..whole.len() / 2]).unwrap();
    let mut run = Run::begin(&scratch.path("run"), draft(&scratch, ""), &mut |_| {});
    let problem = match &mut run {
        Ok(run) => run.train(&AtomicBool::new(false), &mut |_| {}).unwrap_err(),
        Err(_) => run.unwrap_err(),
    };
    assert!(problem.to_string().contains("3.png: a broken PNG picture"), "{problem}");
}
