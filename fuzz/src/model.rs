//! The JSON files of a model, beside weights as they should be.

use crate::Reader;
use crate::scratch::Scratch;
use attentive_generate::{Options, Seq2Seq, TransformerSteps};
use attentive_model::families::transformer::Transformer;
use attentive_tensor::CpuBackend;

/// `config.json`.
pub(crate) fn config() -> Reader {
    let scratch = Scratch::copy_of("config", "golden/marian/separate");
    let backend = CpuBackend::from_env().expect("a backend").shared();
    Box::new(move |input| {
        scratch.write("config.json", input);
        let _ = Transformer::load(&backend, scratch.folder());
        let _ = Transformer::load_in_int8(&backend, scratch.folder());
    })
}

/// `generation_config.json`.
pub(crate) fn generation_config() -> Reader {
    let scratch = Scratch::copy_of("generation_config", "golden/marian/separate");
    let backend = CpuBackend::from_env().expect("a backend").shared();
    let model = Transformer::load(&backend, scratch.folder()).expect("a model of the repository");
    let spec = TransformerSteps::new(&backend, &model).spec();
    Box::new(move |input| {
        scratch.write("generation_config.json", input);
        if let Ok(options) = Options::load(scratch.folder(), &spec) {
            let _ = options.check(&spec);
        }
    })
}
