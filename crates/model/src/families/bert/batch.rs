//! A batch of texts.

use crate::sequences::Sequences;
use attentive_tensor::{Backend, Tensor};

/// The tokens of texts or pairs of texts, packed: `[tokens]` of `i32` each.
#[derive(Debug, Clone)]
pub struct Batch {
    /// The tokens.
    pub tokens: Tensor,
    /// Which text of a pair each belongs to: 0 for the first, 1 for the second.
    pub types: Tensor,
    /// Where they begin.
    pub sequences: Sequences,
}

impl Batch {
    /// Packs texts; all tokens are of the first type.
    pub fn new<S: AsRef<[i32]>>(backend: &dyn Backend, texts: &[S]) -> Batch {
        let typed: Vec<_> = texts.iter().map(|text| (text.as_ref(), vec![0; text.as_ref().len()])).collect();
        Batch::with_types(backend, &typed)
    }

    /// Packs texts together with the types of their tokens.
    ///
    /// # Panics
    /// If a text has more or fewer types than tokens.
    pub fn with_types<S: AsRef<[i32]>, T: AsRef<[i32]>>(backend: &dyn Backend, texts: &[(S, T)]) -> Batch {
        for (tokens, types) in texts {
            let [tokens, types] = [tokens.as_ref().len(), types.as_ref().len()];
            assert_eq!(tokens, types, "{types} types for {tokens} tokens");
        }
        let tokens: Vec<i32> = texts.iter().flat_map(|(tokens, _)| tokens.as_ref()).copied().collect();
        let types: Vec<i32> = texts.iter().flat_map(|(_, types)| types.as_ref()).copied().collect();
        Batch {
            tokens: backend.upload_i32(&tokens),
            types: backend.upload_i32(&types),
            sequences: Sequences::new(texts.iter().map(|(tokens, _)| tokens.as_ref().len())),
        }
    }
}
