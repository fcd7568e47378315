//! Folders of ViT and its relatives as transformers writes them, held against its answers (`golden/vit.py`).

use crate::common::{Golden, Scratch, assert_near, backends, backends_in, bits, golden};
use attentive_model::Builder;
use attentive_model::checkpoint::Checkpoint;
use attentive_model::families::vit::{Batch, Dino, Picture, Task, Vit, VitConfig, dino_loss};
use attentive_model::layers::ProjectionSizes;
use attentive_tensor::{Backend, Gradients, Parameter, Precision, Tape};
use std::path::PathBuf;
use std::sync::Arc;

/// PyTorch in f32 comes within 1e-6.
const LIMIT: f64 = 1e-5;

const CASES: [(&str, Task); 9] = [
    ("hidden", Task::Hidden),
    ("dino", Task::Hidden),
    ("classes", Task::Classes),
    ("oblong", Task::Classes),
    ("deit", Task::Classes),
    ("teacher", Task::ClassesWithTeacher),
    ("dinov2", Task::Classes),
    ("gated", Task::Hidden),
    ("registers", Task::Hidden),
];

fn folder(case: &str) -> PathBuf {
    golden("vit").join(case)
}

fn backend() -> Arc<dyn Backend> {
    backends().last().expect("an instruction set")
}

fn load(backend: &Arc<dyn Backend>, case: &str, task: Task) -> Vit {
    Vit::load(backend, &folder(case), task).unwrap_or_else(|error| panic!("{error}"))
}

/// The pictures of the golden file, `[pictures, 3, height, width]`.
struct Pictures {
    numbers: Vec<f32>,
    size: [usize; 2],
}

impl Pictures {
    fn of(answers: &Golden, name: &str) -> Pictures {
        let (numbers, shape) = answers.0.get(name).ok().flatten().expect(name);
        Pictures { numbers, size: [shape[2], shape[3]] }
    }

    fn each(&self) -> Vec<Picture<'_>> {
        let [height, width] = self.size;
        self.numbers
            .chunks_exact(3 * height * width)
            .map(|numbers| Picture { height, width, numbers })
            .collect()
    }

    fn batch(&self, backend: &dyn Backend, config: &VitConfig) -> Batch {
        Batch::new(backend, config, &self.each())
    }
}

#[test]
fn hidden_states_logits_and_attention_are_those_of_transformers() {
    let answers = Golden::open("vit");
    for backend in backends() {
        for (case, task) in CASES {
            assert_eq!(Task::of(&folder(case)).unwrap(), task, "{case}");
            let model = load(&backend, case, task);
            assert_eq!(model.unused().unknown, [""; 0], "{case}");
            let batch = Pictures::of(&answers, &format!("{case}.pixels")).batch(&*backend, model.config());
            let near = |what: &str, found: &[f32]| {
                let what = format!("{case}.{what}");
                assert_near(&what, found, &answers.numbers(&what), LIMIT);
            };
            let tape = Tape::inference(&backend).watching();
            for (n, state) in model.hidden_states(&tape, &batch).iter().enumerate() {
                near(&format!("hidden.{n}"), &backend.download_f32(state.value()));
            }
            let of_second = |layer: &attentive_tensor::AttentionWeights| {
                (0..4)
                    .flat_map(|head| backend.download_f32(&layer.matrix(&*backend, 1, head)))
                    .collect::<Vec<_>>()
            };
            near("attention", &tape.watched().iter().flat_map(of_second).collect::<Vec<_>>());
            let hidden = model.encode(&tape, &batch);
            match task {
                Task::Hidden => {
                    near("last", &backend.download_f32(hidden.value()));
                    let pooled = model.pooled(&tape, &hidden, &batch);
                    assert_eq!(pooled.is_some(), case == "hidden");
                    if let Some(pooled) = pooled {
                        near("pooled", &backend.download_f32(pooled.value()));
                    }
                }
                _ => {
                    let logits = model.logits(&tape, &hidden, &batch).unwrap();
                    near("logits", &backend.download_f32(logits.value()));
                }
            }
        }
    }
}

#[test]
fn positions_of_pictures_of_other_sizes_are_those_of_transformers() {
    let (backend, answers) = (backend(), Golden::open("vit"));
    for (case, task) in CASES.into_iter().filter(|(case, _)| *case != "oblong") {
        let learning = load(&backend, case, task);
        let packed = Vit::load_packed(&backend, &folder(case), task).unwrap();
        for size in ["large", "few", "large"] {
            let pictures = Pictures::of(&answers, &format!("{case}.{size}.pixels"));
            let expected = format!("{case}.{size}.embedded");
            for model in [&learning, &packed] {
                let batch = pictures.batch(&*backend, model.config());
                let embedded = &model.hidden_states(&Tape::inference(&backend), &batch)[0];
                let found = backend.download_f32(embedded.value());
                assert_near(&expected, &found, &answers.numbers(&expected), LIMIT);
            }
        }
    }
}

/// The names that a model's parameters have in its file.
fn stored_names(backend: &Arc<dyn Backend>, model: &Vit) -> Vec<(String, Parameter)> {
    // The numbers of each parameter are its own number: so the file says which is which.
    let scratch = Scratch::new("vit-names");
    let number = |(i, p): (usize, &Parameter)| {
        let (shape, before) = (p.value().shape(), p.value());
        p.update(|_| backend.upload_f32(&vec![i as f32; shape.len()], shape));
        before
    };
    let before: Vec<_> = model.parameters().iter().enumerate().map(number).collect();
    model.save(&**backend, scratch.path()).unwrap();
    for (p, value) in model.parameters().iter().zip(before) {
        p.update(|_| value);
    }
    let file = Checkpoint::open(scratch.path().join("model.safetensors")).unwrap();
    let named = |name: String| {
        let number = file.get(&name).unwrap().unwrap().0[0] as usize;
        (name, model.parameters()[number].clone())
    };
    file.names().into_iter().map(named).collect()
}

#[test]
fn gradients_of_one_step_are_those_of_transformers() {
    let answers = Golden::open("vit");
    for backend in backends() {
        for (case, task) in CASES.into_iter().filter(|(_, task)| *task == Task::Classes) {
            let model = load(&backend, case, task);
            let batch = Pictures::of(&answers, &format!("{case}.pixels")).batch(&*backend, model.config());
            let tape = Tape::training(&backend, 0);
            let loss = model.loss(&tape, &batch, &answers.ids(&format!("{case}.labels"))).unwrap();
            let what = format!("{case}.loss");
            assert_near(&what, &backend.download_f32(loss.value()), &answers.numbers(&what), LIMIT);
            let mut gradients = Gradients::default();
            tape.backward(&loss, &mut gradients);
            let mut compared = 0;
            for (name, parameter) in stored_names(&backend, &model) {
                let expected = format!("{case}.grad.{name}");
                let found = backend.download_f32(gradients.get(&parameter).unwrap());
                let exact = answers.numbers(&expected);
                compared += 1;
                if exact.iter().all(|g| g.abs() < 1e-6) {
                    // Softmax does not notice what is added to all scores of a query, such as a bias of keys.
                    assert!(found.iter().all(|g| g.abs() < 1e-5), "{expected}: {found:?}");
                } else {
                    assert_near(&expected, &found, &exact, LIMIT);
                }
            }
            let is_own = |name: &&String| name.starts_with(&format!("{case}.grad."));
            assert_eq!(compared, answers.0.names().iter().filter(is_own).count(), "{case}");
        }
    }
}

/// `golden/dino.py`.
#[test]
fn the_loss_of_dino_and_its_gradients_are_those_of_the_formulas() {
    const TEMPERATURES: [f32; 2] = [0.1, 0.05];
    let answers = Golden::open("dino");
    let sizes = ProjectionSizes { d_model: 32, hidden: 24, bottleneck: 12, out: 20 };
    for backend in backends() {
        let head = Checkpoint::open(golden("dino.safetensors")).unwrap();
        let network = || {
            let vit = load(&backend, "dino", Task::Hidden);
            Dino::new(vit, &Builder::checkpoint(&backend, &head), &sizes).unwrap()
        };
        let [student, teacher] = [network(), network()];
        let names = |dino: &Dino| {
            let count = dino.vit().parameters().len();
            let of_head = dino.parameters()[count..].iter().map(|p| (p.name().to_owned(), p.clone()));
            stored_names(&backend, dino.vit()).into_iter().chain(of_head).collect::<Vec<_>>()
        };
        for (name, parameter) in names(&teacher) {
            parameter.update(|_| answers.tensor(&*backend, &format!("teacher.{name}")));
        }
        let views = ["global.pixels", "local.pixels"].map(|name| Pictures::of(&answers, name));
        let (config, tape) = (student.vit().config(), Tape::training(&backend, 0));
        let taught = teacher.logits(&Tape::inference(&backend), &views[0].batch(&*backend, config), false);
        let centre = answers.tensor(&*backend, "centre");
        let taught = backend.softmax(taught.value(), &centre, 1.0 / TEMPERATURES[1]);
        let all: Vec<Picture> = views.iter().flat_map(Pictures::each).collect();
        let logits = student.logits(&tape, &Batch::new(&*backend, config, &all), true);
        let loss = dino_loss(&tape, &logits, &taught, TEMPERATURES[0], 2);
        assert_near("loss", &backend.download_f32(loss.value()), &answers.numbers("loss"), LIMIT);
        let mut gradients = Gradients::default();
        tape.backward(&loss, &mut gradients);
        for (name, parameter) in names(&student) {
            let expected = format!("grad.{name}");
            let found = backend.download_f32(gradients.get(&parameter).unwrap());
            let exact = answers.numbers(&expected);
            if exact.iter().all(|g| g.abs() < 1e-6) {
                // As above.
                assert!(found.iter().all(|g| g.abs() < 1e-5), "{expected}: {found:?}");
            } else {
                // Low temperatures make much of rounding.
                assert_near(&expected, &found, &exact, 10.0 * LIMIT);
            }
        }
    }
}

#[test]
fn what_is_saved_is_what_was_read() {
    let backend = backend();
    for (case, task) in CASES {
        let model = load(&backend, case, task);
        let scratch = Scratch::new("vit-saved");
        model.save(&*backend, scratch.path()).unwrap();
        let again = Vit::load(&backend, scratch.path(), task).unwrap();
        assert_eq!(again.config().labels, model.config().labels, "{case}");
        let labels = model.config().labels.clone();
        assert_eq!(VitConfig { labels, ..again.config().clone() }, *model.config(), "{case}");
        let weights = |model: &Vit| {
            let numbers = |p: &Parameter| (p.name().to_owned(), bits(&backend.download_f32(&p.value())));
            model.parameters().iter().map(numbers).collect::<Vec<_>>()
        };
        assert_eq!(weights(&again), weights(&model), "{case}");
        // The names are those of the file that was read.
        let [old, new] = [folder(case), scratch.path().to_owned()]
            .map(|folder| Checkpoint::of_folder(&folder).unwrap().names());
        let old: Vec<String> = old.into_iter().filter(|name| !name.ends_with("mask_token")).collect();
        assert_eq!(new, old, "{case}");
    }
}

#[test]
fn a_network_of_any_width_is_read_as_it_was_written() {
    // DINOv2's file has a ratio in place of the width.
    for (case, task, step) in [("dinov2", Task::Classes, 1), ("gated", Task::Hidden, 8)] {
        let read = VitConfig::load(&folder(case)).unwrap();
        let scratch = Scratch::new("vit-widths");
        for d_model in [16, 64, 384, 448] {
            for d_ff in (d_model..4 * d_model).step_by(step) {
                let config =
                    VitConfig { d_model, d_ff, h: 4, pooler: (d_model, read.pooler.1), ..read.clone() };
                config.stage(scratch.path(), task).unwrap().commit().unwrap();
                let again = VitConfig::load(scratch.path()).unwrap();
                assert_eq!((again.d_model, again.d_ff), (d_model, d_ff), "{case}");
            }
        }
    }
}

#[test]
fn a_picture_has_the_same_bits_alone_and_among_others_of_other_sizes() {
    let answers = Golden::open("vit");
    for precision in [Precision::F32, Precision::Bf16] {
        for backend in backends_in(precision) {
            for case in ["hidden", "registers"] {
                let model = Vit::load_packed(&backend, &folder(case), Task::Hidden).unwrap();
                let [own, large] =
                    ["pixels", "large.pixels"].map(|name| Pictures::of(&answers, &format!("{case}.{name}")));
                let vectors = |pictures: &[Picture]| {
                    let tape = Tape::inference(&backend);
                    let batch = Batch::new(&*backend, model.config(), pictures);
                    let hidden = model.encode(&tape, &batch);
                    bits(&backend.download_f32(model.vectors(&tape, &hidden, &batch).value()))
                };
                let mixed = vec![large.each()[1], own.each()[0], large.each()[0], own.each()[2]];
                let together = vectors(&mixed);
                let alone: Vec<u32> = mixed.iter().flat_map(|picture| vectors(&[*picture])).collect();
                assert_eq!(together, alone, "{case} {precision:?}");
            }
        }
    }
}

#[test]
fn in_bf16_and_int8_answers_are_near() {
    let answers = Golden::open("vit");
    for backend in backends_in(Precision::Bf16) {
        for (case, task) in CASES.into_iter().filter(|(_, task)| *task != Task::Hidden) {
            for load in [Vit::load_packed, Vit::load_in_int8] {
                let model = load(&backend, &folder(case), task).unwrap();
                let batch =
                    Pictures::of(&answers, &format!("{case}.pixels")).batch(&*backend, model.config());
                let tape = Tape::inference(&backend);
                let hidden = model.encode(&tape, &batch);
                let logits = model.logits(&tape, &hidden, &batch).unwrap();
                let what = format!("{case}.logits");
                assert_near(&what, &backend.download_f32(logits.value()), &answers.numbers(&what), 1e-1);
            }
        }
    }
}
