//! DETR folders as transformers writes them: hidden states, attention, boxes, the matched loss and its gradients, saving.

use crate::common::{
    Golden, Scratch, assert_gradient_near, assert_near, backends, backends_in, bits, golden, weights,
};
use attentive_model::Builder;
use attentive_model::checkpoint::Checkpoint;
use attentive_model::families::Family;
use attentive_model::families::detr::{Batch, Detr, DetrConfig, Found, LossWeights, Targets, assign};
use attentive_tensor::{AttentionWeights, Backend, Gradients, Precision, Tape};
use std::path::PathBuf;
use std::sync::Arc;

const LIMIT: f64 = 1e-4;
const CASES: [&str; 2] = ["bottleneck", "basic"];
const PICTURES: usize = 3;

fn folder(name: &str) -> PathBuf {
    golden("detr").join(name)
}

fn backend() -> Arc<dyn Backend> {
    backends().last().expect("an instruction set")
}

fn load(backend: &Arc<dyn Backend>, case: &str) -> Detr {
    Detr::load(backend, &folder(case)).unwrap_or_else(|error| panic!("{error}"))
}

/// Pictures of the golden file, by their numbers.
fn batch(backend: &dyn Backend, answers: &Golden, numbers: &[usize]) -> Batch {
    let pictures: Vec<([usize; 2], Vec<f32>)> = numbers
        .iter()
        .map(|i| {
            let (numbers, shape) = answers.0.get(&format!("pixels.{i}")).unwrap().unwrap();
            ([shape[0], shape[1]], numbers)
        })
        .collect();
    Batch::new(backend, &pictures.iter().map(|(size, numbers)| (*size, &numbers[..])).collect::<Vec<_>>())
}

/// The same as in the script.
fn targets() -> Vec<Targets> {
    vec![
        Targets { classes: vec![0, 2], boxes: vec![[0.3, 0.4, 0.2, 0.5], [0.6, 0.5, 0.5, 0.3]] },
        Targets::default(),
        Targets {
            classes: vec![1, 1, 2],
            boxes: vec![[0.5, 0.5, 0.9, 0.8], [0.2, 0.7, 0.1, 0.2], [0.8, 0.3, 0.2, 0.4]],
        },
    ]
}

fn numbers(backend: &dyn Backend, found: &Found) -> [Vec<f32>; 2] {
    [&found.classes, &found.boxes].map(|x| backend.download_f32(x.value()))
}

#[test]
fn boxes_states_and_attention_are_those_of_transformers() {
    let answers = Golden::open("detr");
    for backend in backends() {
        for case in CASES {
            let model = load(&backend, case);
            assert_eq!(model.unused().unknown, [""; 0]);
            let mut states = vec![Vec::new(); model.config().decoder_layers];
            for picture in 0..PICTURES {
                let expected = |what: &str| answers.numbers(&format!("{case}.{picture}.{what}"));
                let tape = Tape::inference(&backend).watching();
                let found = model.states(&tape, &batch(&*backend, &answers, &[picture]));
                let [classes, boxes] = numbers(&*backend, &model.heads(&tape, found.decoder.last().unwrap()));
                let memory = backend.download_f32(found.encoder.last().unwrap().value());
                assert_near(&format!("{case} memory"), &memory, &expected("memory"), LIMIT);
                assert_near(&format!("{case} logits"), &classes, &expected("logits"), LIMIT);
                let boxes: Vec<f32> = boxes.iter().map(|x| 1.0 / (1.0 + (-x).exp())).collect();
                assert_near(&format!("{case} boxes"), &boxes, &expected("boxes"), LIMIT);
                for (all, state) in states.iter_mut().zip(&found.decoder) {
                    all.extend(backend.download_f32(state.value()));
                }
                let watched = tape.watched();
                let (encoder, decoder) = watched.split_at(model.config().encoder_layers);
                let every_second = |first| decoder.iter().skip(first).step_by(2).collect::<Vec<_>>();
                for (what, seen, heads) in [
                    ("encoder_attentions", encoder.iter().collect(), model.config().h[0]),
                    ("decoder_attentions", every_second(0), model.config().h[1]),
                    ("cross_attentions", every_second(1), model.config().h[1]),
                ] {
                    let of_layer = |layer: &&AttentionWeights| -> Vec<f32> {
                        let heads = (0..heads).map(|head| layer.matrix(&*backend, 0, head));
                        heads.flat_map(|matrix| backend.download_f32(&matrix)).collect()
                    };
                    let found: Vec<f32> = seen.iter().flat_map(of_layer).collect();
                    assert_near(&format!("{case} {what}"), &found, &expected(what), LIMIT);
                }
            }
            assert_near("states", &states.concat(), &answers.numbers(&format!("{case}.states")), LIMIT);
        }
    }
}

#[test]
fn the_matched_loss_and_its_gradients_are_those_of_transformers() {
    let answers = Golden::open("detr");
    for backend in backends() {
        for case in CASES {
            let model = load(&backend, case);
            let tape = Tape::training(&backend, 0);
            let batch = batch(&*backend, &answers, &[0, 1, 2]);
            let (loss, parts) = model.loss(&tape, &batch, &targets(), 5.0);
            let found = [parts.total, parts.classes, parts.boxes, parts.giou].map(|part| part as f32);
            assert_eq!(backend.download_f32(loss.value()), found[..1]);
            assert_near("loss", &found, &answers.numbers(&format!("{case}.loss")), LIMIT);
            let mut gradients = Gradients::default();
            tape.backward(&loss, &mut gradients);
            // The gradients take the places of the weights, and saving gives them the names of transformers.
            for parameter in model.parameters() {
                let shape = parameter.value().shape();
                let nothing = || vec![f32::MAX; shape.len()];
                let gradient = gradients.get(parameter).map_or_else(nothing, |g| backend.download_f32(g));
                parameter.update(|_| backend.upload_f32(&gradient, shape));
            }
            let scratch = Scratch::new(&format!("detr-gradients-{case}"));
            let path = scratch.path().join("gradients.safetensors");
            model.stage_weights(&*backend, &path).unwrap().commit().unwrap();
            let file = Checkpoint::open(&path).unwrap();
            let found = |name: &String| file.get(name).unwrap().unwrap().0;
            let learned: Vec<String> =
                file.names().into_iter().filter(|name| found(name).first() != Some(&f32::MAX)).collect();
            let stored = answers.0.names();
            let names: Vec<&str> =
                stored.iter().filter_map(|name| name.strip_prefix(&format!("{case}.grad."))).collect();
            assert_eq!(names, learned, "{case}");
            for name in &learned {
                let expected = answers.numbers(&format!("{case}.grad.{name}"));
                let found = found(name);
                // The queries hardly tell each other anything at first, least of all in the first layer, whose values are all alike: what
                // is left of the gradients of where they look is rounding noise, beside others that are near 1.
                let small = expected.iter().map(|g| g * g).sum::<f32>().sqrt() < 1e-2;
                if small {
                    let near = found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-6);
                    assert!(near, "{name}: {found:?}, not {expected:?}");
                } else {
                    // In f32 a number near zero may fall on the other side of a ReLU, which the backbone has many of: the gradients of
                    // a weight there, and of the keys of the first layer, differ by 1.6e-4.
                    assert_gradient_near(name, &found, &expected, 10.0 * LIMIT);
                }
            }
        }
    }
}

#[test]
fn a_picture_has_the_same_bits_in_any_batch_and_packed_weights_stay_near() {
    let answers = Golden::open("detr");
    for precision in [Precision::F32, Precision::Bf16] {
        for backend in backends_in(precision) {
            for case in CASES {
                let packed = Detr::load_packed(&backend, &folder(case)).unwrap();
                for (name, model) in [("plain", load(&backend, case)), ("packed", packed)] {
                    let tape = Tape::inference(&backend);
                    let together =
                        numbers(&*backend, &model.forward(&tape, &batch(&*backend, &answers, &[0, 1, 2])));
                    let queries = model.config().queries;
                    for picture in 0..PICTURES {
                        let alone = numbers(
                            &*backend,
                            &model.forward(&tape, &batch(&*backend, &answers, &[picture])),
                        );
                        for (together, alone) in together.iter().zip(&alone) {
                            let width = alone.len() / queries;
                            let part = &together[picture * queries * width..][..queries * width];
                            assert_eq!(bits(part), bits(alone), "{case} {name} {}", backend.name());
                        }
                        let expected = answers.numbers(&format!("{case}.{picture}.logits"));
                        let limit = if precision == Precision::F32 { LIMIT } else { 0.05 };
                        assert_near(&format!("{case} {name} {precision}"), &alone[0], &expected, limit);
                    }
                }
            }
        }
    }
}

/// `ATTENTIVE_MATRICES` names another file of the same form, such as one with more matrices than can be kept.
#[test]
fn matching_costs_what_it_costs_in_scipy() {
    let file = std::env::var("ATTENTIVE_MATRICES").map_or_else(|_| golden("matching.json"), PathBuf::from);
    let matrices: Vec<(usize, usize, Vec<f64>, f64)> =
        serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    assert!(!matrices.is_empty());
    for (i, (rows, columns, costs, expected)) in matrices.iter().enumerate() {
        let found = assign(costs, *rows, *columns);
        let mut taken: Vec<usize> = found.iter().flatten().copied().collect();
        taken.sort_unstable();
        taken.dedup();
        assert_eq!(taken.len(), *rows.min(columns), "matrix {i}");
        let places = found.iter().enumerate().filter_map(|(row, column)| Some(row * columns + (*column)?));
        let sum: f64 = places.map(|place| costs[place]).sum();
        assert!((sum - expected).abs() < 1e-9, "matrix {i}: {sum}, not {expected}");
    }
}

#[test]
fn what_is_saved_is_read_again() {
    let backend = backend();
    for case in CASES {
        let model = load(&backend, case);
        let scratch = Scratch::new(&format!("detr-saved-{case}"));
        model.save(&*backend, scratch.path()).unwrap();
        let again = Detr::load(&backend, scratch.path()).unwrap();
        assert_eq!(again.config(), model.config());
        assert_eq!(weights(&*backend, again.parameters()), weights(&*backend, model.parameters()));
        let [old, new] = [&folder(case), scratch.path()]
            .map(|folder| Checkpoint::open(folder.join("model.safetensors")).unwrap().names());
        let old: Vec<String> =
            old.into_iter().filter(|name| !name.ends_with("num_batches_tracked")).collect();
        assert_eq!(old, new, "the names of transformers");
    }
    let config = DetrConfig::preset("tiny", vec!["cat".to_owned()]).unwrap();
    let model = Detr::new(&Builder::random(&backend, 1), &config).unwrap();
    let scratch = Scratch::new("detr-saved-small");
    model.save(&*backend, scratch.path()).unwrap();
    assert_eq!(Family::of(scratch.path()).unwrap(), Family::Detr);
    let again = Detr::load(&backend, scratch.path()).unwrap();
    assert_eq!(again.config(), &config);
    assert_eq!(weights(&*backend, again.parameters()), weights(&*backend, model.parameters()));
}

#[test]
fn weights_of_losses_and_heads_that_cannot_be_are_refused_by_name() {
    let preset = DetrConfig::preset("tiny", vec!["cat".to_owned()]).unwrap();
    let loss = preset.loss;
    for (config, field) in [
        (DetrConfig { loss: LossWeights { no_object: 0.0, ..loss }, ..preset.clone() }, "eos_coefficient"),
        (DetrConfig { loss: LossWeights { giou_cost: -1.0, ..loss }, ..preset.clone() }, "giou_cost"),
        (
            DetrConfig { loss: LossWeights { box_loss: f64::NAN, ..loss }, ..preset.clone() },
            "bbox_loss_coefficient",
        ),
        (DetrConfig { h: [4, 7], ..preset.clone() }, "decoder_attention_heads"),
        (DetrConfig { d_model: 1 << 18, d_ff: [1 << 18; 2], encoder_layers: 1000, ..preset }, "parameters"),
    ] {
        let error = config.check().unwrap_err().to_string();
        assert!(error.contains(field), "{field}: {error}");
    }
}

#[test]
fn a_small_model_learns_a_picture_by_heart_alone_and_with_a_guide() {
    let backend = backend();
    let labels = vec!["cat".to_owned(), "dog".to_owned()];
    // With one layer in the decoder, the terms of the last layer are those of all layers.
    let config = DetrConfig { queries: 5, decoder_layers: 1, ..DetrConfig::preset("tiny", labels).unwrap() };
    let pixels = attentive_tensor::check::numbers(1, 32 * 40 * 3);
    let batch = Batch::new(&*backend, &[([32, 40], &pixels)]);
    let targets = [Targets { classes: vec![1], boxes: vec![[0.3, 0.6, 0.2, 0.4]] }];
    for is_guided in [false, true] {
        let model = Detr::new(&Builder::random(&backend, 3), &config).unwrap();
        let mut adam = attentive_tensor::Adam::new(&*backend, model.parameters());
        // The loss of the queries, and that of the cells.
        let mut losses = Vec::new();
        for step in 0..60 {
            let tape = Tape::training(&backend, step);
            let (alone, parts) = model.loss(&tape, &batch, &targets, 1.0);
            let guided = model.guided_loss(&tape, &batch, &targets, 1.0);
            // With the guide, the class loss has four times its weight.
            let of_queries = parts.total + 3.0 * parts.classes;
            let of_cells = f64::from(backend.download_f32(guided.value())[0]) - of_queries;
            losses.push([parts.total, of_cells]);
            let mut gradients = Gradients::default();
            tape.backward(if is_guided { &guided } else { &alone }, &mut gradients);
            adam.step(&*backend, &crate::common::adam_rule(1e-3), Some(0.1), &gradients);
        }
        let [first, last] = [losses[0], losses[59]];
        assert!(last[0] < 0.3 * first[0], "{first:?} {last:?}");
        assert!(first[1] > 1.0 && (!is_guided || last[1] < 0.3 * first[1]), "{first:?} {last:?}");
    }
}
