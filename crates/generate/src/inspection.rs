//! A look into one sentence and its translation: every attention, and the queries, keys and values behind it.

use crate::attention::{AttentionKind, AttentionMatrix, Look};
use crate::error::Error;
use attentive_tensor::{AttentionWeights, Backend, Tensor};
use std::fmt;
use std::sync::Arc;

/// All attentions of a source and what was written for it, from one pass over both. Weights are computed when they are
/// asked for.
pub struct Inspection {
    backend: Arc<dyn Backend>,
    /// Of each layer of an encoder or of a decoder alone; then of each layer of a decoder with a source, to itself and to the source.
    attentions: Vec<AttentionWeights>,
    /// How many layers are of the first sort.
    encoder_layers: usize,
}

/// The vectors of one head, row after row for each token.
#[derive(Debug, Clone, PartialEq)]
pub struct HeadVectors {
    /// `[queries][d_k]`
    pub queries: Vec<Vec<f32>>,
    /// `[keys][d_k]`
    pub keys: Vec<Vec<f32>>,
    /// `[keys][d_v]`
    pub values: Vec<Vec<f32>>,
    /// What dot products are multiplied with: `1/√d_k`.
    pub scale: f32,
    /// Whether query `i` sees no key behind key `i`.
    pub causal: bool,
}

impl Inspection {
    /// What a tape has watched in one pass over one source and its target: of each encoder layer; then of each decoder layer, to
    /// itself and to the source. An encoder or a decoder alone has the first.
    pub fn new(
        backend: &Arc<dyn Backend>,
        attentions: Vec<AttentionWeights>,
        encoder_layers: usize,
    ) -> Inspection {
        Inspection { backend: Arc::clone(backend), attentions, encoder_layers }
    }

    /// How many layers have attention of this kind.
    pub fn layers(&self, kind: AttentionKind) -> usize {
        match kind {
            AttentionKind::Encoder | AttentionKind::Causal => self.encoder_layers,
            AttentionKind::Decoder | AttentionKind::Cross => {
                (self.attentions.len() - self.encoder_layers) / 2
            }
        }
    }

    /// How many heads each of this kind has.
    pub fn heads(&self, kind: AttentionKind) -> usize {
        let first = Look { kind, layer: 0, head: None }.index(self.encoder_layers);
        self.attentions.get(first).map_or(0, AttentionWeights::heads)
    }

    /// The weights of a head, or the mean of all.
    pub fn weights(&self, look: Look) -> Result<AttentionMatrix, Error> {
        let attention = self.attention(look)?;
        Ok(AttentionMatrix::of(&*self.backend, attention, look.head).swap_remove(0))
    }

    /// The queries, keys and values of a head; of the first where the mean is asked for, which has none of its own.
    pub fn vectors(&self, look: Look) -> Result<HeadVectors, Error> {
        let attention = self.attention(look)?;
        let (rule, head) = (attention.rule(), look.head.unwrap_or(0));
        let rows = |tensor: &Tensor, width: usize| {
            let numbers = self.backend.download_f32(tensor);
            let row = |row: &[f32]| row[head * width..][..width].to_vec();
            numbers.chunks_exact(width * rule.heads).map(row).collect::<Vec<_>>()
        };
        let [q, k, v] = attention.vectors();
        Ok(HeadVectors {
            queries: rows(q, rule.d_k),
            keys: rows(k, rule.d_k),
            values: rows(v, rule.d_v),
            scale: rule.scale,
            causal: rule.causal,
        })
    }

    fn attention(&self, look: Look) -> Result<&AttentionWeights, Error> {
        look.check(self.layers(look.kind), self.heads(look.kind))?;
        Ok(&self.attentions[look.index(self.encoder_layers)])
    }
}

impl fmt::Debug for Inspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = [AttentionKind::Encoder, AttentionKind::Decoder];
        let (layers, heads) = (kinds.map(|kind| self.layers(kind)), kinds.map(|kind| self.heads(kind)));
        f.debug_struct("Inspection").field("layers", &layers).field("heads", &heads).finish()
    }
}
