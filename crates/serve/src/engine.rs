//! What the server computes on.

use attentive_tensor::{Backend, DType};
use std::sync::Arc;

/// What computes.
#[derive(Debug, Clone)]
pub struct Engine {
    /// On each of them a copy of every translation model decodes; they share their memory.
    pub backends: Vec<Arc<dyn Backend>>,
    /// On it encoders compute, one batch after the other, and language models, with all threads for each step.
    pub encoder: Arc<dyn Backend>,
    /// Whether weights are in int8; without a word those are that a folder has stored so.
    pub int8: Option<bool>,
}

impl Engine {
    /// One backend for all models.
    pub fn on(backend: Arc<dyn Backend>) -> Engine {
        Engine { backends: vec![Arc::clone(&backend)], encoder: backend, int8: None }
    }

    /// What encoders are computed in, in the words of PyTorch.
    pub(crate) fn dtype_of_encoders(&self) -> &'static str {
        match self.encoder.activations() {
            _ if self.int8 == Some(true) => "int8",
            DType::Bf16 => "bfloat16",
            _ => "float32",
        }
    }
}
