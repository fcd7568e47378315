//! The folders of GPT-1 and GPT-Neo as transformers writes them, held against its answers (`golden/gpt1.py` and `golden/gpt_neo.py`).

use crate::common::{Golden, Scratch, assert_near, backends, bits, golden, gradients_of, relative, weights};
use attentive_model::Builder;
use attentive_model::Sequences;
use attentive_model::checkpoint::Checkpoint;
use attentive_model::families::Family;
use attentive_model::families::gpt2::{Batch, Gpt2, Gpt2Config, Version};
use attentive_model::layers::{Branch, Cache};
use attentive_tensor::{Backend, Gradients, Tape};
use std::sync::Arc;

const LIMIT: f64 = 1e-5;

/// The folders, and what they are.
const FOLDERS: [(&str, Version); 2] = [("gpt1", Version::Gpt1), ("gpt_neo", Version::GptNeo)];

fn load(backend: &Arc<dyn Backend>, name: &str) -> Gpt2 {
    Gpt2::load(backend, &golden(name)).unwrap_or_else(|error| panic!("{error}"))
}

fn for_each(check: impl Fn(&str, Version)) {
    FOLDERS.into_iter().for_each(|(name, version)| check(name, version));
}

#[test]
fn logits_loss_and_gradients_are_those_of_transformers() {
    for_each(|name, version| {
        assert_eq!(Family::of(&golden(name)).unwrap(), Family::Gpt2);
        let answers = Golden::open(name);
        let (ids, sequences) = (answers.ids("ids"), answers.sequences("lengths"));
        for backend in backends() {
            let model = load(&backend, name);
            assert_eq!((model.config().version, &model.unused().unknown[..]), (version, &[][..]));
            let tape = Tape::inference(&backend);
            let hidden = model.decode(&tape, &backend.upload_i32(&ids), &sequences);
            let logits = backend.download_f32(model.logits(&tape, &hidden).value());
            assert_near("logits", &logits, &answers.numbers("logits"), LIMIT);

            let tape = Tape::training(&backend, 0);
            let texts = answers.sentences("ids", "lengths");
            let loss = model.loss(&tape, &Batch::new(&*backend, &texts), 0.0);
            assert_near("loss", &backend.download_f32(loss.value()), &answers.numbers("loss"), LIMIT);
            let mut gradients = Gradients::default();
            tape.backward(&loss, &mut gradients);
            // The gradients take the places of the weights, and saving brings them into the order of transformers.
            let found = gradients_of(&*backend, &gradients, model.parameters());
            for (parameter, gradient) in model.parameters().iter().zip(found) {
                let shape = parameter.value().shape();
                parameter.update(|_| backend.upload_f32(&gradient, shape));
            }
            let scratch = Scratch::new(&format!("{name}-gradients"));
            let path = scratch.path().join("gradients.safetensors");
            model.stage_weights(&*backend, &path).unwrap().commit().unwrap();
            let file = Checkpoint::open(&path).unwrap();
            let expected: Vec<String> = answers
                .0
                .names()
                .iter()
                .filter_map(|name| Some(name.strip_prefix("grad.")?.to_owned()))
                .collect();
            assert_eq!(expected, file.names());
            for name in file.names() {
                let (found, expected) =
                    (file.get(&name).unwrap().unwrap().0, answers.numbers(&format!("grad.{name}")));
                // That of a bias of keys is zero, and a third of the fused one: the other two thirds tell.
                assert_near(&name, &found, &expected, LIMIT);
            }
        }
    });
}

#[test]
fn what_is_written_is_what_transformers_writes_with_the_cache_too() {
    for_each(|name, _| {
        let answers = Golden::open(name);
        let prompt = answers.sentences("ids", "lengths").remove(0);
        for backend in backends() {
            let model = load(&backend, name);
            let tape = Tape::inference(&backend);
            let (mut text, mut cache) = (prompt.clone(), Cache::default());
            let mut new = prompt.clone();
            for wanted in answers.ids("written") {
                let branch =
                    Branch { slot: 0, parent: (text.len() > prompt.len()).then_some(0), tokens: new.len() };
                let step = model.step(&tape, &backend.upload_i32(&new), &[branch], &mut cache);
                let whole = model.decode(&tape, &backend.upload_i32(&text), &Sequences::new([text.len()]));
                let [step_bits, whole_bits] = [&step, &whole].map(|x| bits(&backend.download_f32(x.value())));
                assert_eq!(step_bits[..], whole_bits[whole_bits.len() - step_bits.len()..]);
                let logits = backend.download_f32(model.logits(&tape, &whole).value());
                let last = &logits[logits.len() - model.config().vocab_size..];
                let best = (0..last.len()).max_by(|&a, &b| last[a].total_cmp(&last[b])).unwrap() as i32;
                assert_eq!(best, wanted);
                text.push(best);
                new = vec![best];
            }
        }
    });
}

#[test]
fn what_is_saved_comes_back() {
    for_each(|name, _| {
        let backend = backends().last().expect("an instruction set");
        let (model, scratch) = (load(&backend, name), Scratch::new(&format!("{name}-saved")));
        model.save(&*backend, scratch.path()).unwrap();
        let again = Gpt2::load(&backend, scratch.path()).unwrap();
        assert_eq!(again.config(), model.config());
        assert!(weights(&*backend, again.parameters()) == weights(&*backend, model.parameters()));
        let names =
            |folder: &std::path::Path| Checkpoint::open(folder.join("model.safetensors")).unwrap().names();
        assert_eq!(names(scratch.path()), names(&golden(name)));
    });
}

#[test]
fn every_size_of_gpt3_can_be() {
    for size in ["125m", "350m", "760m", "1.3b", "2.7b", "6.7b", "13b", "175b"] {
        Gpt2Config::preset(&format!("gpt3-{size}"), 50_257).unwrap().check().unwrap();
    }
}

#[test]
fn a_text_that_is_longer_than_a_window_has_the_same_bits_with_the_cache() {
    let config = Gpt2Config {
        d_model: 32,
        h: 4,
        layers: 2,
        window: 40,
        max_positions: 256,
        ..Gpt2Config::preset("gpt3-125m", 50).unwrap()
    };
    let config = Gpt2Config { d_ff: 48, local: vec![false, true], ..config };
    let text: Vec<i32> = (0..200).map(|i| i * 7 % 50).collect();
    for backend in backends() {
        let model = Gpt2::new(&Builder::random(&backend, 3), &config).unwrap();
        let tape = Tape::inference(&backend);
        let whole = model.decode(&tape, &backend.upload_i32(&text), &Sequences::new([text.len()]));
        let whole = bits(&backend.download_f32(whole.value()));
        // A prompt in one pass, then tokens one by one, beside another text.
        let (mut cache, mut found, mut at) = (Cache::default(), Vec::new(), 0);
        for tokens in [70].into_iter().chain([1; 130]) {
            let parent = |number| (at > 0).then_some(number);
            let branches = [0, 1].map(|number| Branch { slot: number, parent: parent(number), tokens });
            let new = &text[at..at + tokens];
            let other: Vec<i32> = new.iter().map(|token| (token + 1) % 50).collect();
            let ids = backend.upload_i32(&[new, &other].concat());
            let step = backend.download_f32(model.step(&tape, &ids, &branches, &mut cache).value());
            found.extend(bits(&step[..tokens * config.d_model]));
            at += tokens;
        }
        assert!(found == whole);
    }
}

/// The products are in int8, and the cache is not: its heads are too narrow.
#[test]
fn in_int8_logits_are_near_and_the_cache_gives_the_bits_of_the_whole() {
    let answers = Golden::open("gpt1");
    let (ids, sequences) = (answers.ids("ids"), answers.sequences("lengths"));
    for backend in backends() {
        let model = Gpt2::load_in_int8(&backend, &golden("gpt1")).unwrap();
        let tape = Tape::inference(&backend);
        let hidden = model.decode(&tape, &backend.upload_i32(&ids), &sequences);
        let found = backend.download_f32(model.logits(&tape, &hidden).value());
        let error = relative(&found, &answers.numbers("logits"));
        assert!(error < 0.03, "{error}");
        let text = answers.sentences("ids", "lengths").remove(0);
        let whole = model.decode(&tape, &backend.upload_i32(&text), &Sequences::new([text.len()]));
        let whole = bits(&backend.download_f32(whole.value()));
        let (mut cache, width) = (Cache::default(), whole.len() / text.len());
        for (place, token) in text.iter().enumerate() {
            let branch = Branch::token(0, (place > 0).then_some(0));
            let step = model.step(&tape, &backend.upload_i32(&[*token]), &[branch], &mut cache);
            let step = bits(&backend.download_f32(step.value()));
            assert_eq!(step[..], whole[place * width..][..width], "{place}");
        }
    }
}
