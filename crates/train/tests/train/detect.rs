//! DETR learns boxes in pictures: runs that go on to the same bits, models with classes of their own, and mistakes in one sentence.

use crate::common::Scratch;
use crate::common::runs::{backend, settings_of, train};
use attentive_model::families::detr::{Detr, DetrConfig};
use attentive_tasks::Detector;
use attentive_tensor::Form;
use attentive_train::scenes::Scene;
use attentive_train::{Draft, Event, Reason, Run};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Scenes as files, and a file of COCO that says what is in them, in which `name` is what a shape is called.
fn write_scenes(
    scratch: &Scratch,
    file: &str,
    seeds: std::ops::Range<u64>,
    name: fn(&str) -> &str,
) -> PathBuf {
    let folder = scratch.path("images");
    std::fs::create_dir_all(&folder).unwrap();
    let (mut images, mut annotations, mut names) = (Vec::new(), Vec::new(), Vec::<&str>::new());
    for seed in seeds {
        let scene = Scene::new(seed);
        scene.picture.save_png(&folder.join(format!("{seed}.png"))).unwrap();
        images.push(json!({"id": seed, "file_name": format!("{seed}.png"), "width": 128, "height": 128}));
        for thing in &scene.things {
            let name = name(thing.shape.name());
            let category = names.iter().position(|known| *known == name).unwrap_or_else(|| {
                names.push(name);
                names.len() - 1
            });
            annotations.push(json!({"image_id": seed, "category_id": 10 * category, "bbox": thing.bbox}));
        }
    }
    // What a file says of sizes need not be true, nor be there.
    images[0]["width"] = u64::MAX.into();
    images[0]["height"] = u64::MAX.into();
    images[1].as_object_mut().unwrap().remove("width");
    let categories: Vec<Value> =
        names.iter().enumerate().map(|(i, name)| json!({"id": 10 * i, "name": name})).collect();
    let value = json!({"images": images, "annotations": annotations, "categories": categories});
    scratch.write(file, value.to_string())
}

fn same(name: &str) -> &str {
    name
}

/// A few steps of a very small model.
fn draft(source: &Path, more: &str) -> Draft {
    let source = source.display();
    let usual = format!(
        "task = \"detect\"\nsource = [\"{source}\"]\npreset = \"tiny\"\nd_model = 16\nheads = 2\nd_ff = 24\nencoder_layers = 1\n\
         decoder_layers = 1\nlearning_rate = 0.002\nbatch_size = 2\nsteps = 6\nvalidate_every = 3\nthreads = 1\nlog_every = 1\n"
    );
    Draft::merge(usual.parse().unwrap(), more.parse().unwrap()).unwrap()
}

/// A run from its begin to its end.
fn run(folder: &Path, draft: Draft) -> Vec<Event> {
    let mut events = Vec::new();
    let mut run = Run::begin(folder, draft, &mut |event| events.push(event.clone())).unwrap();
    let (reason, more) = train(&mut run, None);
    assert_ne!(reason, Reason::Interrupted);
    events.extend(more);
    events
}

fn weights(folder: &Path) -> Vec<u8> {
    std::fs::read(folder.join("model.safetensors")).unwrap()
}

fn notices(events: &[Event]) -> Vec<&str> {
    let notices = events.iter().filter_map(|event| match event {
        Event::Notice(text) => Some(text.as_str()),
        _ => None,
    });
    notices.collect()
}

#[test]
fn a_run_learns_and_goes_on_to_the_same_bits_with_any_number_of_threads() {
    let scratch = Scratch::new("detect");
    let file = write_scenes(&scratch, "train.json", 0..12, same);
    let (whole, broken, threads) = (scratch.path("whole"), scratch.path("broken"), scratch.path("threads"));
    let events = run(&whole, draft(&file, "hold_out = 4"));
    let losses: Vec<(f64, Option<f64>, Option<f64>)> = events
        .iter()
        .filter_map(|event| match event {
            Event::Validation(metric, _) => Some((metric.loss, metric.ap, metric.ap50)),
            _ => None,
        })
        .collect();
    assert_eq!(losses.len(), 2);
    assert!(losses[1].0 < losses[0].0, "{losses:?}");
    for (_, ap, ap50) in &losses {
        assert!((0.0..=100.0).contains(&ap.unwrap()) && ap50.unwrap() >= ap.unwrap(), "{losses:?}");
    }
    let begin =
        events.iter().find_map(|event| if let Event::Begin(begin) = event { Some(begin) } else { None });
    let begin = begin.unwrap();
    assert_eq!((begin.examples, begin.held, begin.vocabulary), (8, 4, 0));

    let mut half = Run::begin(&broken, draft(&file, "hold_out = 4"), &mut |_| {}).unwrap();
    assert_eq!(train(&mut half, Some(2)).0, Reason::Interrupted);
    drop(half);
    let mut again = Run::resume(&broken, settings_of(&broken, ""), &mut |_| {}).unwrap();
    train(&mut again, None);
    assert!(weights(&whole) == weights(&broken), "another model after a break");
    run(&threads, draft(&file, "hold_out = 4\nthreads = 3"));
    assert!(weights(&whole) == weights(&threads), "another model with other threads");

    let detector = Detector::open(&backend(), &whole, Form::Precise).unwrap();
    assert_eq!(detector.labels().len(), 6);
    let found = detector.detect(&Scene::new(3).picture, 0.0).unwrap();
    assert!(found.len() >= 8 && found.iter().all(|thing| thing.bbox.iter().all(|x| x.is_finite())));
}

#[test]
fn scenes_need_no_files_and_may_be_judged_by_some() {
    let scratch = Scratch::new("detect-scenes");
    let few = "steps = 1\nvalidate_every = 1\nbatch_size = 2\n";
    let held = |events: &[Event]| {
        events.iter().find_map(|event| if let Event::Begin(begin) = event { Some(begin.held) } else { None })
    };
    let drawn = run(&scratch.path("drawn"), draft(&scratch.path("scenes"), &format!("{few}hold_out = 3")));
    assert_eq!(held(&drawn), Some(3));
    let file = write_scenes(&scratch, "valid.json", 90..95, same);
    let more = format!("{few}valid_source = [\"{}\"]", file.display());
    let judged = run(&scratch.path("judged"), draft(&scratch.path("scenes"), &more));
    assert_eq!(held(&judged), Some(5));
    // The other way round, and with a file in which shapes have other numbers.
    let more = format!("{few}hold_out = 3\nsource = [\"{}\", \"scenes\"]", file.display());
    let both = run(&scratch.path("both"), draft(&file, &more));
    assert_eq!(held(&both), Some(3));
}

#[test]
fn a_model_keeps_its_classes_or_gets_those_of_the_corpus() {
    let scratch = Scratch::new("detect-from");
    let first = scratch.path("first");
    let few = "steps = 1\nhold_out = 2\nvalidate_every = 1\nlearning_rate = 1e-9\n";
    run(&first, draft(&write_scenes(&scratch, "shapes.json", 0..8, same), few));
    let further = |name: &str, source: &Path, more: &str| {
        let said = format!(
            "task = \"detect\"\nsource = [\"{}\"]\nfrom = \"{}\"\nbatch_size = 4\nthreads = 1\n{few}",
            source.display(),
            first.display()
        );
        let folder = scratch.path(name);
        let events = run(&folder, Draft::merge(said.parse().unwrap(), more.parse().unwrap()).unwrap());
        let model = Detr::load(&backend(), &folder).unwrap();
        (events, model)
    };
    let head = |model: &Detr| -> Vec<f32> {
        let weight = model.parameters().iter().find(|one| one.name() == "classes.weight").unwrap();
        backend().download_f32(&weight.value())
    };
    let old = Detr::load(&backend(), &first).unwrap();

    // Two pictures have some of the shapes, which is enough to know all of them.
    let some = write_scenes(&scratch, "some.json", 0..3, same);
    let (events, kept) = further("kept", &some, "hold_out = 1\ndropout = 0.25\nattention_dropout = 0.125");
    assert_eq!(notices(&events), [""; 0]);
    assert_eq!(kept.config().labels, old.config().labels);
    assert!(head(&kept).iter().zip(head(&old)).all(|(new, old)| (new - old).abs() < 1e-6));
    assert_eq!((kept.config().dropout, kept.config().attention_dropout), (0.25, 0.125));

    let own = write_scenes(&scratch, "own.json", 0..8, |name| if name == "ring" { "ring" } else { "thing" });
    let (events, own) = further("own", &own, "");
    let [notice] = notices(&events)[..] else { panic!("{:?}", notices(&events)) };
    assert!(notice.contains("has no class `thing`: it gets a new head for the 2 classes"), "{notice}");
    let mut labels = own.config().labels.clone();
    labels.sort();
    assert_eq!(labels, ["ring", "thing"]);
    assert_eq!(head(&own).len(), 3 * own.config().d_model);
    let unchanged = DetrConfig { labels: old.config().labels.clone(), ..own.config().clone() };
    assert_eq!(&unchanged, old.config());
}

#[test]
fn mistakes_are_told_in_a_sentence() {
    let scratch = Scratch::new("detect-refused");
    let file = write_scenes(&scratch, "train.json", 0..5, same);
    let other = write_scenes(&scratch, "other.json", 5..9, |_| "cell");
    let nothing =
        scratch.write("nothing.json", r#"{"images": [], "categories": [{"id": 1, "name": "cell"}]}"#);
    let broken = scratch.write("broken.json", "{");
    let begin = |source: &Path, more: &str| -> String {
        let folder = scratch.path("run");
        let problem = Run::begin(&folder, draft(source, more), &mut |_| {}).unwrap_err().to_string();
        assert!(!folder.exists(), "{more}");
        assert_eq!(problem.lines().count(), 1, "{problem}");
        problem
    };
    let valid = |path: &Path| format!("valid_source = [\"{}\"]", path.display());
    let unknown = "other.json: the category `cell` is not among those that the model learns";
    for (source, more, words) in [
        (&file, "scale = [0.5, 1.0]".to_owned(), "scale: detect does not have it"),
        (&file, "label_smoothing = 0.1".to_owned(), "label_smoothing: detect does not have it"),
        (&file, "early_stopping = \"bleu\"".to_owned(), "detect is judged by loss, ap"),
        (&file, "hold_out = 5".to_owned(), "hold_out: cannot hold out 5 of 5 pictures"),
        (&file, "d_model = 18".to_owned(), "d_model: 18 is not divisible by 4"),
        (&file, valid(&other), unknown),
        (&scratch.path("scenes"), valid(&other), unknown),
        (
            &other,
            valid(&scratch.path("scenes")),
            "scenes have the class `circle`, which the model does not learn",
        ),
        (&nothing, String::new(), "there are no pictures in the files"),
        (&broken, String::new(), "broken.json: not a file of boxes as COCO has them"),
        (&scratch.path("missing.json"), String::new(), "missing.json"),
        (&file, format!("from = \"{}\"", scratch.path("nowhere").display()), "the model to start from"),
    ] {
        let problem = begin(source, &more);
        assert!(problem.contains(words), "{more}: {problem}");
    }
    let picture = scratch.path("images").join("3.png");
    let whole = std::fs::read(&picture).unwrap();
    for (bytes, words) in [(Some(&whole[..whole.len() / 2]), "3.png: a broken PNG picture"), (None, "3.png")]
    {
        match bytes {
            Some(bytes) => std::fs::write(&picture, bytes).unwrap(),
            None => std::fs::remove_file(&picture).unwrap(),
        }
        let folder = scratch.path(if bytes.is_some() { "half" } else { "gone" });
        let mut run = Run::begin(&folder, draft(&file, "hold_out = 1\nsteps = 3"), &mut |_| {}).unwrap();
        let problem = run.train(&Default::default(), &mut |_| {}).unwrap_err().to_string();
        assert!(problem.contains(words) && problem.lines().count() == 1, "{problem}");
    }
}
