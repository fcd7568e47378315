//! A batch of pairs for teacher forcing.

use crate::sequences::Sequences;
use attentive_tensor::{Backend, Tensor};

/// Sources and targets, packed: `[tokens]` of `i32` each.
#[derive(Debug, Clone)]
pub struct Batch {
    /// The source tokens.
    pub source: Tensor,
    /// Where they begin.
    pub source_sequences: Sequences,
    /// What the decoder is shown: the targets, shifted right behind the start token.
    pub input: Tensor,
    /// What it is to say.
    pub target: Tensor,
    /// Where both begin.
    pub target_sequences: Sequences,
}

impl Batch {
    /// Packs pairs of source and target. The decoder is shown `start` and then all of a target but its last token.
    pub fn new<S: AsRef<[i32]>>(backend: &dyn Backend, pairs: &[(S, S)], start: i32) -> Batch {
        let sources = || pairs.iter().map(|(source, _)| source.as_ref());
        let targets = || pairs.iter().map(|(_, target)| target.as_ref());
        let shifted = |target: &[i32]| {
            let shown = &target[..target.len().saturating_sub(1)];
            let first = (!target.is_empty()).then_some(start);
            first.into_iter().chain(shown.iter().copied()).collect::<Vec<_>>()
        };
        let flat = |tokens: Vec<i32>| backend.upload_i32(&tokens);
        Batch {
            source: flat(sources().flatten().copied().collect()),
            source_sequences: Sequences::new(sources().map(<[i32]>::len)),
            input: flat(targets().flat_map(shifted).collect()),
            target: flat(targets().flatten().copied().collect()),
            target_sequences: Sequences::new(targets().map(<[i32]>::len)),
        }
    }

    /// The number of source and target tokens.
    pub fn tokens(&self) -> usize {
        self.source_sequences.tokens() + self.target_sequences.tokens()
    }
}
