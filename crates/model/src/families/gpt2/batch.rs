//! A batch of texts whose next tokens are to be predicted.

use crate::sequences::Sequences;
use attentive_tensor::{Backend, Tensor};

/// Tokens and the token that follows each of them, packed: `[tokens]` of `i32` each.
#[derive(Debug, Clone)]
pub struct Batch {
    /// What is read.
    pub input: Tensor,
    /// The token that follows each; a negative one is not predicted.
    pub target: Tensor,
    /// Where the texts begin.
    pub sequences: Sequences,
}

impl Batch {
    /// Packs texts. Of each, all tokens but the last are read and all but the first are predicted.
    pub fn new<S: AsRef<[i32]>>(backend: &dyn Backend, texts: &[S]) -> Batch {
        let shifted = |text: &S| {
            let text = text.as_ref();
            (text[..text.len().saturating_sub(1)].to_vec(), text.get(1..).unwrap_or_default().to_vec())
        };
        Batch::with_targets(backend, &texts.iter().map(shifted).collect::<Vec<_>>())
    }

    /// Packs texts together with the token that follows each of their tokens.
    ///
    /// # Panics
    /// If a text has more or fewer targets than tokens.
    pub fn with_targets<S: AsRef<[i32]>, T: AsRef<[i32]>>(backend: &dyn Backend, texts: &[(S, T)]) -> Batch {
        for (input, target) in texts {
            let [tokens, targets] = [input.as_ref().len(), target.as_ref().len()];
            assert_eq!(tokens, targets, "{targets} targets for {tokens} tokens");
        }
        let input: Vec<i32> = texts.iter().flat_map(|(input, _)| input.as_ref()).copied().collect();
        let target: Vec<i32> = texts.iter().flat_map(|(_, target)| target.as_ref()).copied().collect();
        Batch {
            input: backend.upload_i32(&input),
            target: backend.upload_i32(&target),
            sequences: Sequences::new(texts.iter().map(|(input, _)| input.as_ref().len())),
        }
    }
}
