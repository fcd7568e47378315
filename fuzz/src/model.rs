//! The JSON files of a model, beside weights as they should be.

use crate::Reader;
use crate::scratch::Scratch;
use attentive_generate::{EncoderDecoderSteps, Options, Seq2Seq};
use attentive_model::families::bert::{Bert, Task};
use attentive_model::families::transformer::Transformer;
use attentive_tensor::CpuBackend;

/// `config.json`.
pub(crate) fn config() -> Reader {
    let scratch = Scratch::copy_of("config", "golden/marian/separate");
    let backend = CpuBackend::from_env().expect("a backend").shared();
    Box::new(move |input| {
        scratch.write("config.json", input);
        let [plain, int8] = [Transformer::load, Transformer::load_in_int8];
        plain(&backend, scratch.folder()).is_ok() & int8(&backend, scratch.folder()).is_ok()
    })
}

/// `config.json` of a BERT.
pub(crate) fn bert_config() -> Reader {
    let scratch = Scratch::copy_of("bert_config", "golden/bert/sequence");
    let backend = CpuBackend::from_env().expect("a backend").shared();
    Box::new(move |input| {
        scratch.write("config.json", input);
        let task = Task::of(scratch.folder()).unwrap_or(Task::SequenceClassification);
        Bert::load(&backend, scratch.folder(), task).is_ok()
    })
}

/// `generation_config.json`.
pub(crate) fn generation_config() -> Reader {
    let scratch = Scratch::copy_of("generation_config", "golden/marian/separate");
    let backend = CpuBackend::from_env().expect("a backend").shared();
    let model = Transformer::load(&backend, scratch.folder()).expect("a model of the repository");
    let spec = EncoderDecoderSteps::new(&backend, &model).spec();
    Box::new(move |input| {
        scratch.write("generation_config.json", input);
        Options::load(scratch.folder(), &spec).is_ok_and(|options| options.check(&spec).is_ok())
    })
}
