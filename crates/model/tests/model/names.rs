//! Tables of names: rename, transpose, split and tie, in both directions.

use crate::common::{Scratch, assert_near, backends};
use attentive_model::checkpoint::{Checkpoint, stage_tensors};
use attentive_model::layers::{Linear, MultiHeadAttention, MultiHeadConfig};
use attentive_model::names::{Names, Rule};
use attentive_model::{Builder, Init};
use attentive_tensor::check::numbers;
use attentive_tensor::{Backend, Tape};
use std::path::PathBuf;
use std::sync::Arc;

/// As GPT-2 has it: `Conv1D` stores `[in, out]`, and queries, keys and values are one tensor.
static NAMES: Names = Names {
    rules: &[
        Rule::new("tokens.weight", "transformer.wte.weight"),
        Rule::new("layers.{}.self_attn.q_proj.{}", "transformer.h.{}.attn.c_attn.{}").transposed().part(0, 3),
        Rule::new("layers.{}.self_attn.k_proj.{}", "transformer.h.{}.attn.c_attn.{}").transposed().part(1, 3),
        Rule::new("layers.{}.self_attn.v_proj.{}", "transformer.h.{}.attn.c_attn.{}").transposed().part(2, 3),
        Rule::new("layers.{}.self_attn.out_proj.{}", "transformer.h.{}.attn.c_proj.{}").transposed(),
        Rule::new("layers.{}.fc1.{}", "transformer.h.{}.mlp.c_fc.{}").transposed(),
    ],
    prefix: "transformer.",
    old_endings: &[("ln.g", "ln.weight")],
    buffers: &["transformer.mask", "transformer.h.{}.attn.bias"],
    heads: &["score."],
    tied: &[("lm_head.weight", "transformer.wte.weight")],
};

const D: usize = 6;

/// Names and shapes.
type Tensors = Vec<(&'static str, Vec<usize>)>;

fn backend() -> Arc<dyn Backend> {
    backends().last().expect("an instruction set")
}

/// The tensors of a file of one layer.
fn stored() -> Tensors {
    vec![
        ("transformer.wte.weight", vec![7, D]),
        ("transformer.h.0.attn.c_attn.weight", vec![D, 3 * D]),
        ("transformer.h.0.attn.c_attn.bias", vec![3 * D]),
        ("transformer.h.0.attn.c_proj.weight", vec![D, D]),
        ("transformer.h.0.attn.c_proj.bias", vec![D]),
        ("transformer.h.0.mlp.c_fc.weight", vec![D, 4 * D]),
        ("transformer.h.0.mlp.c_fc.bias", vec![4 * D]),
    ]
}

/// Writes tensors with numbers of their own, by name and shape.
fn write(scratch: &Scratch, backend: &dyn Backend, tensors: &[(&str, Vec<usize>)]) -> PathBuf {
    let path = scratch.path().join("file.safetensors");
    let tensor = |(i, (name, shape)): (usize, &(&str, Vec<usize>))| {
        let numbers = numbers(i as u64, shape.iter().product());
        ((*name).to_owned(), backend.upload_f32(&numbers, &shape[..]))
    };
    let tensors: Vec<_> = tensors.iter().enumerate().map(tensor).collect();
    stage_tensors(&path, backend, &tensors, None).unwrap().commit().unwrap();
    path
}

/// The parts of the model, as layers ask for them.
fn build(builder: &Builder) -> (MultiHeadAttention, Linear) {
    builder.parameter("tokens.weight", [7, D], Init::Zeros).unwrap_or_else(|error| panic!("{error}"));
    let layer = builder.at("layers.0");
    let config = MultiHeadConfig { causal: true, ..MultiHeadConfig::new(D, 2).unwrap() };
    let attention = MultiHeadAttention::new(&layer.at("self_attn"), &config);
    let linear = Linear::new(&layer.at("fc1"), D, 4 * D);
    (attention.unwrap_or_else(|error| panic!("{error}")), linear.unwrap_or_else(|error| panic!("{error}")))
}

#[test]
fn a_fused_and_transposed_projection_is_read_as_three_and_written_as_one() {
    let (backend, scratch) = (backend(), Scratch::new("names-gpt2"));
    let path = write(&scratch, &*backend, &stored());
    let file = Checkpoint::open(&path).unwrap();
    let read = NAMES.read(Checkpoint::open(&path).unwrap()).unwrap();
    let builder = Builder::checkpoint(&backend, &read.checkpoint);
    let (_, linear) = build(&builder);

    // `x · W + b`, as `Conv1D` computes it.
    let fused = file.get("transformer.h.0.attn.c_attn.weight").unwrap().unwrap().0;
    let bias = file.get("transformer.h.0.attn.c_attn.bias").unwrap().unwrap().0;
    let find = |name: &str| {
        let found = builder.parameters().into_iter().find(|p| p.name() == name).expect(name);
        backend.download_f32(&found.value())
    };
    for (part, name) in ["q_proj", "k_proj", "v_proj"].into_iter().enumerate() {
        let weight = find(&format!("layers.0.self_attn.{name}.weight"));
        for (out, row) in weight.chunks(D).enumerate() {
            let expected: Vec<f32> = (0..D).map(|i| fused[i * 3 * D + part * D + out]).collect();
            assert_eq!(row, expected, "{name}");
        }
        assert_eq!(find(&format!("layers.0.self_attn.{name}.bias")), bias[part * D..][..D], "{name}");
    }
    let x = numbers(77, D);
    let (w, b) = (
        file.get("transformer.h.0.mlp.c_fc.weight").unwrap().unwrap().0,
        file.get("transformer.h.0.mlp.c_fc.bias").unwrap().unwrap().0,
    );
    let expected: Vec<f32> =
        (0..4 * D).map(|out| b[out] + (0..D).map(|i| x[i] * w[i * 4 * D + out]).sum::<f32>()).collect();
    let tape = Tape::inference(&backend);
    let y = linear.forward(&tape, &tape.constant(backend.upload_f32(&x, [1, D])));
    assert_near("Conv1D", &backend.download_f32(y.value()), &expected, 1e-6);

    let again = scratch.path().join("again.safetensors");
    NAMES.stage(&again, &*backend, &builder.parameters(), true).unwrap().commit().unwrap();
    let again = Checkpoint::open(again).unwrap();
    assert_eq!(again.names(), file.names());
    for name in file.names() {
        assert!(again.get(&name).unwrap() == file.get(&name).unwrap(), "{name}");
    }
}

#[test]
fn without_a_prefix_names_are_found_and_written() {
    let (backend, scratch) = (backend(), Scratch::new("names-bare"));
    let bare: Vec<_> = stored()
        .into_iter()
        .map(|(name, shape)| (name.strip_prefix("transformer.").unwrap(), shape))
        .collect();
    let path = write(&scratch, &*backend, &bare);
    let read = NAMES.read(Checkpoint::open(&path).unwrap()).unwrap();
    let builder = Builder::checkpoint(&backend, &read.checkpoint);
    build(&builder);
    let again = scratch.path().join("again.safetensors");
    NAMES.stage(&again, &*backend, &builder.parameters(), false).unwrap().commit().unwrap();
    assert_eq!(Checkpoint::open(again).unwrap().names(), Checkpoint::open(path).unwrap().names());
}

#[test]
fn a_second_name_stands_for_the_first_and_must_not_contradict_it() {
    let (backend, scratch) = (backend(), Scratch::new("names-tied"));
    let mut tensors = stored();
    tensors[0].0 = "lm_head.weight";
    let path = write(&scratch, &*backend, &tensors);
    let read = NAMES.read(Checkpoint::open(&path).unwrap()).unwrap();
    build(&Builder::checkpoint(&backend, &read.checkpoint));
    assert!(NAMES.check_tied(&read.checkpoint, "they are tied").is_ok());

    tensors.push(("transformer.wte.weight", vec![7, D]));
    let path = write(&scratch, &*backend, &tensors);
    let read = NAMES.read(Checkpoint::open(&path).unwrap()).unwrap();
    let error = NAMES.check_tied(&read.checkpoint, "they are tied").unwrap_err().to_string();
    assert!(
        error.ends_with("`lm_head.weight` differs from `transformer.wte.weight`, but they are tied"),
        "{error}"
    );
}

#[test]
fn what_is_left_over_is_listed() {
    let (backend, scratch) = (backend(), Scratch::new("names-left"));
    let mut tensors = stored();
    tensors.extend([
        ("mask", vec![3]),
        ("h.11.attn.bias", vec![3]),
        ("transformer.h.0.attn.bias", vec![3]),
        ("score.weight", vec![3]),
        ("transformer.h.1.attn.c_proj.bias", vec![D]),
        ("other", vec![1]),
    ]);
    let read = NAMES.read(Checkpoint::open(write(&scratch, &*backend, &tensors)).unwrap()).unwrap();
    let builder = Builder::checkpoint(&backend, &read.checkpoint);
    build(&builder);
    let unused = NAMES.unused(&read, &builder.parameters(), &[]);
    assert_eq!(unused.ignored, ["h.11.attn.bias", "mask", "score.weight", "transformer.h.0.attn.bias"]);
    assert_eq!(unused.unknown, ["other", "transformer.h.1.attn.c_proj.bias"]);
}

#[test]
fn what_cannot_be_read_is_named_as_in_the_file() {
    let (backend, scratch) = (backend(), Scratch::new("names-wrong"));
    let sentence = |change: &dyn Fn(&mut Tensors)| {
        let mut tensors = stored();
        change(&mut tensors);
        let path = write(&scratch, &*backend, &tensors);
        let read = NAMES.read(Checkpoint::open(&path).unwrap());
        let error = read.and_then(|read| {
            let builder = Builder::checkpoint(&backend, &read.checkpoint);
            let layer = builder.at("layers.0");
            MultiHeadAttention::new(&layer.at("self_attn"), &MultiHeadConfig::new(D, 2)?).map(|_| ())
        });
        let error = error.unwrap_err().to_string();
        error.strip_prefix(&format!("{}: ", path.display())).unwrap_or(&error).to_owned()
    };
    assert_eq!(
        sentence(&|tensors| tensors[1].1 = vec![D, 3 * D + 1]),
        "`transformer.h.0.attn.c_attn.weight` has shape [6, 19], which cannot be divided into 3 equal parts"
    );
    assert_eq!(
        sentence(&|tensors| drop(tensors.remove(2))),
        "the tensor `transformer.h.0.attn.c_attn.bias` is missing"
    );
    assert_eq!(
        sentence(&|tensors| tensors.push(("h.0.attn.c_proj.bias", vec![D]))),
        "`h.0.attn.c_proj.bias` and `transformer.h.0.attn.c_proj.bias` are two names of one tensor"
    );
}
