//! A model's folder: the model, its tokenizer, and how it wants to be decoded.

use crate::error::Error;
use crate::options::Options;
use crate::seq2seq::Seq2Seq;
use crate::transformer::TransformerSteps;
use attentive_model::families::transformer::Transformer;
use attentive_tensor::Backend;
use attentive_text::tokenizer::Tokenizer;
use std::path::Path;
use std::sync::Arc;

/// What is in the folder of a model.
pub struct ModelFolder {
    /// The model.
    pub model: Box<dyn Seq2Seq>,
    /// Its tokenizer.
    pub tokenizer: Arc<Tokenizer>,
    /// The options that it asks for, or else the default ones.
    pub options: Options,
}

impl ModelFolder {
    /// Reads a folder.
    pub fn open(backend: &Arc<dyn Backend>, folder: &Path) -> Result<ModelFolder, Error> {
        let model = TransformerSteps::new(backend, &Transformer::load(backend, folder)?);
        let tokenizer = Arc::new(Tokenizer::load(folder)?);
        let options = Options::load(folder, &model.spec())?;
        Ok(ModelFolder { model: Box::new(model), tokenizer, options })
    }
}
