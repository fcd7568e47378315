//! Pictures, and the files that say how they are made ready for a model.

use crate::Reader;
use crate::scratch::Scratch;
use attentive_image::{Picture, Processor};
use attentive_model::families::vit::{Task, Vit};
use attentive_tensor::CpuBackend;

/// A file of any format.
pub(crate) fn picture() -> Reader {
    Box::new(|input| Picture::decode(input).is_ok())
}

/// `preprocessor_config.json`, and a picture that is made ready as it says.
pub(crate) fn preprocessor() -> Reader {
    let scratch = Scratch::new("preprocessor");
    let picture = Picture::filled(7, 5, [1, 2, 3]);
    Box::new(move |input| {
        scratch.write("preprocessor_config.json", input);
        Processor::of(scratch.folder()).is_ok_and(|processor| processor.process(&picture).is_ok())
    })
}

/// `config.json` of a ViT, beside weights as they should be.
pub(crate) fn vit_config() -> Reader {
    let scratch = Scratch::copy_of("vit_config", "golden/vit/classes");
    let backend = CpuBackend::from_env().expect("a backend").shared();
    Box::new(move |input| {
        scratch.write("config.json", input);
        let task = Task::of(scratch.folder()).unwrap_or(Task::Classes);
        Vit::load(&backend, scratch.folder(), task).is_ok()
    })
}
