//! What the tests of the model share.

pub mod bert;
pub mod encoder_decoder;

use attentive_model::checkpoint::{Checkpoint, stage_tensors};
use attentive_model::families::transformer::{Batch, Transformer, TransformerConfig};
use attentive_model::{Builder, Sequences};
use attentive_tensor::check::numbers;
use attentive_tensor::{
    AdamRule, Backend, Cpu, CpuBackend, Gradients, Isa, Parameter, Precision, Random, Tape, Tensor, Threads,
    Var,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The paper's Adam with a rate.
pub fn adam_rule(rate: f32) -> AdamRule {
    AdamRule { rate, beta1: 0.9, beta2: 0.98, epsilon: 1e-9, weight_decay: 0.0 }
}

pub fn backend(isa: Isa, precision: Precision, threads: usize) -> Arc<dyn Backend> {
    CpuBackend::new(Cpu { isa, threads: Threads::new(threads) }).with_precision(precision).shared()
}

/// A backend in single precision for every instruction set of this processor.
pub fn backends() -> impl Iterator<Item = Arc<dyn Backend>> {
    backends_in(Precision::F32)
}

/// A backend for every instruction set of this processor.
pub fn backends_in(precision: Precision) -> impl Iterator<Item = Arc<dyn Backend>> {
    Isa::present().into_iter().map(move |isa| backend(isa, precision, 2))
}

pub fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden").join(name)
}

/// A folder of the shared data, or none with a word about it.
pub fn shared(name: &str) -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let path = std::env::var_os("ATTENTIVE_SHARED").map_or_else(beside, PathBuf::from).join(name);
    if !path.exists() {
        eprintln!("skipped: there is no {}; ATTENTIVE_SHARED names the folder that has it", path.display());
        return None;
    }
    Some(path)
}

/// What PyTorch answered.
pub struct Golden(pub Checkpoint);

impl Golden {
    pub fn open(name: &str) -> Golden {
        let path = golden(&format!("{name}.safetensors"));
        Golden(Checkpoint::open(path).unwrap_or_else(|error| panic!("{error}")))
    }

    pub fn numbers(&self, name: &str) -> Vec<f32> {
        let found = self.0.get(name).unwrap_or_else(|error| panic!("{error}"));
        found.unwrap_or_else(|| panic!("no golden tensor {name}")).0
    }

    pub fn tensor(&self, backend: &dyn Backend, name: &str) -> Tensor {
        let (numbers, shape) = self.0.get(name).ok().flatten().expect(name);
        backend.upload_f32(&numbers, shape)
    }

    /// An input as a parameter, so that it gets a gradient.
    pub fn parameter(&self, backend: &dyn Backend, name: &str) -> Parameter {
        Parameter::new(name, self.tensor(backend, name))
    }

    pub fn ids(&self, name: &str) -> Vec<i32> {
        self.numbers(name).into_iter().map(|id| id as i32).collect()
    }

    pub fn sequences(&self, name: &str) -> Sequences {
        Sequences::new(self.ids(name).into_iter().map(|length| length as usize))
    }

    /// Packed token numbers, sequence by sequence.
    pub fn sentences(&self, ids: &str, lengths: &str) -> Vec<Vec<i32>> {
        let ids = self.ids(ids);
        self.sequences(lengths).ranges().map(|range| ids[range].to_vec()).collect()
    }
}

/// `‖a - b‖ / ‖b‖`
pub fn relative(a: &[f32], b: &[f32]) -> f64 {
    assert_eq!(a.len(), b.len());
    let norm = |x: &mut dyn Iterator<Item = f64>| x.map(|x| x * x).sum::<f64>().sqrt();
    let difference = norm(&mut a.iter().zip(b).map(|(a, b)| f64::from(*a) - f64::from(*b)));
    difference / norm(&mut b.iter().map(|b| f64::from(*b)))
}

/// Holds `a` against `b`, and prints how near it comes.
pub fn assert_near(what: &str, a: &[f32], b: &[f32], limit: f64) {
    let error = relative(a, b);
    println!("{error:.1e} {what}");
    assert!(error < limit, "{what}: the norm of the difference is {error:.1e} of the norm");
}

/// [`assert_near`] for the gradient of a parameter. That of a bias of keys is zero, since softmax does not notice what
/// is added to all scores of a query; what is found there is rounding noise.
pub fn assert_gradient_near(what: &str, a: &[f32], b: &[f32], limit: f64) {
    if what.ends_with("k_proj.bias") {
        assert!(a.iter().all(|g| g.abs() < 1e-5), "{what}: {a:?}");
    } else {
        assert_near(what, a, b, limit);
    }
}

pub fn bits(numbers: &[f32]) -> Vec<u32> {
    numbers.iter().map(|x| x.to_bits()).collect()
}

/// The bits of every parameter.
pub fn weights(backend: &dyn Backend, parameters: &[Parameter]) -> Vec<Vec<u32>> {
    parameters.iter().map(|p| bits(&backend.download_f32(&p.value()))).collect()
}

/// The gradient of each of these parameters.
pub fn gradients_of(backend: &dyn Backend, gradients: &Gradients, parameters: &[Parameter]) -> Vec<Vec<f32>> {
    let gradient = |p: &Parameter| {
        let gradient = gradients.get(p).unwrap_or_else(|| panic!("{} has no gradient", p.name()));
        backend.download_f32(gradient)
    };
    parameters.iter().map(gradient).collect()
}

/// Random numbers on a tape, of which no gradient is wanted.
pub fn random(tape: &Tape, seed: u64, rows: usize, cols: usize) -> Var {
    tape.constant(tape.backend().upload_f32(&numbers(seed, rows * cols), [rows, cols]))
}

/// A model small enough for tests, of odd sizes.
pub fn small_config() -> TransformerConfig {
    TransformerConfig {
        d_model: 36,
        h: 3,
        d_ff: 70,
        dropout: 0.0,
        max_positions: 200,
        ..TransformerConfig::preset("tiny", 101).expect("a preset")
    }
}

pub fn random_model(backend: &Arc<dyn Backend>, config: &TransformerConfig) -> Transformer {
    Transformer::new(&Builder::random(backend, 1), config).unwrap_or_else(|error| panic!("{error}"))
}

/// Random tokens that all have a class, on both sides.
pub fn sentence(seed: u64, length: usize, config: &TransformerConfig) -> Vec<i32> {
    let token = |i| (Random::new(seed).bits(i) as usize % (config.target_vocabulary() - 1)) as i32;
    (0..length as u32).map(token).collect()
}

/// Pairs of random sentences of these lengths.
pub fn pairs(lengths: &[(usize, usize)], config: &TransformerConfig) -> Vec<(Vec<i32>, Vec<i32>)> {
    let pair = |(i, &(source, target)): (usize, &(usize, usize))| {
        (sentence(2 * i as u64, source, config), sentence(2 * i as u64 + 1, target, config))
    };
    lengths.iter().enumerate().map(pair).collect()
}

pub fn batch(backend: &dyn Backend, lengths: &[(usize, usize)], config: &TransformerConfig) -> Batch {
    Batch::new(backend, &pairs(lengths, config), config.start as i32)
}

/// Writes the weights of a folder anew, in three files with an index.
pub fn in_parts(folder: &Path, backend: &dyn Backend) {
    let whole = folder.join("model.safetensors");
    let file = Checkpoint::open(&whole).unwrap_or_else(|error| panic!("{error}"));
    let (names, mut map) = (file.names(), serde_json::Map::new());
    for (i, names) in names.chunks(names.len().div_ceil(3)).enumerate() {
        let part = format!("model-{:05}-of-00003.safetensors", i + 1);
        let tensor = |name: &String| {
            let (numbers, shape) = file.get(name).ok().flatten().expect(name);
            (name.clone(), backend.upload_f32(&numbers, shape))
        };
        let tensors: Vec<_> = names.iter().map(tensor).collect();
        let staged = stage_tensors(&folder.join(&part), backend, &tensors, None).expect("room");
        staged.commit().expect("room");
        map.extend(names.iter().map(|name| (name.clone(), part.clone().into())));
    }
    std::fs::remove_file(whole).expect("the file is there");
    let index = serde_json::json!({"metadata": {"total_size": 1}, "weight_map": map});
    std::fs::write(folder.join("model.safetensors.index.json"), index.to_string()).expect("room");
}

/// A folder for one test, gone when the test is over.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new(test: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("attentive-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Scratch(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
