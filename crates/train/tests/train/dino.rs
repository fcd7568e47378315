//! DINO: losses as the paper's formulas have them, runs that go on to the same bits, and a model folder at the end.

use crate::common::Scratch;
use crate::common::runs::{backend, golden, settings_of, train};
use attentive_image::{Picture, Processor};
use attentive_model::Builder;
use attentive_model::checkpoint::Checkpoint;
use attentive_model::families::vit::{Dino, Task as Head, Vit};
use attentive_train::corpus::{Example, ExampleBatch, ExamplePicture};
use attentive_train::settings::TaskKind;
use attentive_train::tasks::{LearningDino, Task};
use attentive_train::{Draft, Learner, Run, Settings};
use serde_json::Value;
use std::path::Path;

/// A batch of the golden file: for each view its pictures.
fn batch(views: &Value) -> ExampleBatch {
    let bytes = |hex: &str| -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap()).collect()
    };
    let views = views.as_array().unwrap();
    let picture = |view: usize, number: usize| {
        let (side, tokens) = if view < 2 { (16, 17) } else { (8, 5) };
        let picture = Picture::new(side, side, bytes(views[view][number].as_str().unwrap()));
        ExamplePicture { picture, tokens }
    };
    let example = |number: usize| Example {
        pictures: (0..views.len()).map(|view| picture(view, number)).collect(),
        labels: vec![0],
        ..Example::default()
    };
    ExampleBatch { examples: (0..views[0].as_array().unwrap().len()).map(example).collect() }
}

/// `golden/dino.py`.
#[test]
fn fifty_losses_are_those_of_the_formulas_in_pytorch() {
    let answers: Value = serde_json::from_slice(&std::fs::read(golden("dino.json")).unwrap()).unwrap();
    let batches: Vec<ExampleBatch> = answers["batches"].as_array().unwrap().iter().map(batch).collect();
    let settings = Settings {
        out_dim: 20,
        hidden_dim: 24,
        bottleneck_dim: 12,
        momentum_teacher: 0.9,
        warmup_teacher_temp: 0.04,
        teacher_temp: 0.07,
        warmup_teacher_temp_steps: 20,
        freeze_last_layer: 5,
        weight_decay: 0.04,
        weight_decay_end: Some(0.4),
        clip: 1.0,
        steps: Some(50),
        ..Settings::of(TaskKind::Dino)
    };
    let (backend, folder) = (backend(), golden("vit").join("dino"));
    let head = Checkpoint::open(golden("dino.safetensors")).unwrap();
    let network = || {
        let vit = Vit::load(&backend, &folder, Head::Hidden).unwrap();
        let sizes = settings.projection(vit.config().d_model);
        Dino::new(vit, &Builder::checkpoint(&backend, &head), &sizes).unwrap()
    };
    let processor = Processor::of(&folder).unwrap();
    let task = LearningDino::new(&*backend, [network(), network()], processor, &settings);
    let centre = task.buffers()[0].clone();
    let mut learner = Learner::new(&backend, Box::new(task), &settings);
    let expected = answers["losses"].as_array().unwrap();
    assert_eq!(expected.len(), 50);
    for (step, expected) in (1..).zip(expected) {
        let batch = &batches[step as usize % batches.len()];
        let rate = 1e-3 * f64::min(step as f64 / 10.0, (50 - step) as f64 / 40.0);
        learner.step(&settings, step, rate, std::slice::from_ref(batch), false).unwrap();
        let (loss, expected) = (learner.take_loss() / batch.answers() as f64, expected.as_f64().unwrap());
        assert!((loss - expected).abs() < 1e-3, "step {step}: {loss}, not {expected}");
    }
    let found = backend.download_f32(&centre.value());
    for (found, expected) in found.iter().zip(answers["centre"].as_array().unwrap()) {
        let expected = expected.as_f64().unwrap();
        assert!((f64::from(*found) - expected).abs() < 1e-3, "{found}, not {expected}");
    }
}

/// Pictures with stripes down or across, of many colours and widths.
fn write_pictures(scratch: &Scratch) {
    for (label, is_down) in [("across", false), ("down", true)] {
        let folder = scratch.path("all").join(label);
        std::fs::create_dir_all(&folder).unwrap();
        for number in 0..40u32 {
            let mut picture = Picture::filled(20, 20, [0; 3]);
            for y in 0..20 {
                for x in 0..20 {
                    let place = if is_down { x } else { y } as u32;
                    let is_light = ((place + number) / (2 + number % 2)).is_multiple_of(2);
                    let level = if is_light { 200 } else { 30 };
                    let noise = (number * 131 + (x * 31 + y * 17 + x * y) as u32 * 7) % 40;
                    picture.set(x, y, [(level + noise) as u8, level as u8, (number * 5) as u8]);
                }
            }
            picture.save_png(&folder.join(format!("{number}.png"))).unwrap();
        }
    }
}

fn draft(scratch: &Scratch, more: &str) -> Draft {
    let usual = format!(
        "task = \"dino\"\nsource = [\"{}\"]\nhold_out = 20\nimage_size = 16\npreset = \"tiny\"\nd_model = 32\nheads = 2\nd_ff = 48\n\
         encoder_layers = 1\nlearning_rate = 0.001\nbatch_size = 12\nsteps = 12\nvalidate_every = 6\nthreads = 1\nlocal_crops_number = 2\n\
         out_dim = 30\nhidden_dim = 24\nbottleneck_dim = 12\nmomentum_teacher = 0.9\nwarmup_teacher_temp_steps = 6\n\
         freeze_last_layer = 5\n",
        scratch.path("all").display()
    );
    Draft::merge(usual.parse().unwrap(), more.parse().unwrap()).unwrap()
}

fn weights(folder: &Path) -> Vec<u8> {
    std::fs::read(folder.join("model.safetensors")).unwrap()
}

#[test]
fn a_run_goes_on_to_the_same_bits_on_any_threads_and_leaves_a_model_folder() {
    let scratch = Scratch::new("dino");
    write_pictures(&scratch);
    let [whole, broken] = ["whole", "broken"].map(|name| scratch.path(name));
    let mut run = Run::begin(&whole, draft(&scratch, ""), &mut |_| {}).unwrap();
    train(&mut run, None);
    // The first epoch is that in which the last layer stays.
    let settings = attentive_train::settings::load(&whole).unwrap();
    assert_eq!((settings.freeze_last_layer, settings.ema), (5, 0.0));

    for (until, threads) in [(4, 3), (9, 2)] {
        let mut run = match until {
            4 => Run::begin(&broken, draft(&scratch, "threads = 3"), &mut |_| {}).unwrap(),
            _ => Run::resume(&broken, settings_of(&broken, &format!("threads = {threads}")), &mut |_| {})
                .unwrap(),
        };
        train(&mut run, Some(until));
    }
    let mut again = Run::resume(&broken, settings_of(&broken, "threads = 1"), &mut |_| {}).unwrap();
    let (_, events) = train(&mut again, None);
    assert!(weights(&whole) == weights(&broken), "another model");
    let accuracy = events.iter().rev().find_map(|event| match event {
        attentive_train::Event::Validation(metric, _) => metric.accuracy,
        _ => None,
    });
    assert!(accuracy.is_some_and(|accuracy| (0.0..=100.0).contains(&accuracy)), "{accuracy:?}");

    // What is saved is the teacher's backbone, without its head.
    let vit = Vit::load(&backend(), &whole, Head::Hidden).unwrap();
    assert!(vit.unused().unknown.is_empty() && vit.unused().ignored.is_empty(), "{:?}", vit.unused());
    // Others learn from it.
    let more = format!("from = \"{}\"\nsteps = 2", whole.display());
    let usual = format!(
        "task = \"dino\"\nsource = [\"{}\"]\nhold_out = 20\nthreads = 1\nlocal_crops_number = 1\nout_dim = 30\nhidden_dim = 24",
        scratch.path("all").display()
    );
    let draft = Draft::merge(usual.parse().unwrap(), more.parse().unwrap()).unwrap();
    let mut run = Run::begin(&scratch.path("further"), draft, &mut |_| {}).unwrap();
    train(&mut run, None);
}

#[test]
fn mistakes_are_told_in_a_sentence() {
    let scratch = Scratch::new("dino-refused");
    write_pictures(&scratch);
    for (more, words) in [
        ("scale = [0.5, 1.0]", "scale: dino does not have it"),
        ("ema = 0.9", "ema: the teacher is the moving average of the weights"),
        ("local_crops_size = 3", "local_crops_size: 3 pixels are less than a patch"),
        ("local_crops_scale = [0.4, 0.05]", "local_crops_scale: must be two numbers above 0"),
        ("teacher_temp = 0.0", "teacher_temp: must be above 0"),
        ("out_dim = 1", "out_dim: must be from 2 to"),
    ] {
        let folder = scratch.path("refused");
        let problem = Run::begin(&folder, draft(&scratch, more), &mut |_| {}).unwrap_err().to_string();
        assert!(problem.contains(words) && !folder.exists(), "{more}: {problem}");
    }
}
