//! A look into one sentence and its translation: every attention, the queries, keys and values behind it, and the hidden states of every
//! step.

use crate::attention::{AttentionKind, AttentionMatrix, AttentionSelector};
use crate::error::Error;
use crate::hidden::{Layers, Step};
use attentive_tensor::{AttentionWeights, Backend, BiasTerm, ScorePart, Tape, Tensor};
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
    /// Those of each step.
    states: Vec<Tensor>,
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
    /// What is added to that, term by term: `[queries][keys]` each.
    pub terms: Vec<(BiasTerm, Vec<Vec<f32>>)>,
    /// Whether query `i` sees no key behind key `i`.
    pub causal: bool,
}

impl Inspection {
    /// What a tape has watched in one pass over one source and its target: of each encoder layer; then of each decoder layer, to
    /// itself and to the source. An encoder or a decoder alone has the first. The tape may have watched hidden states, too.
    pub fn new(backend: &Arc<dyn Backend>, tape: &Tape, encoder_layers: usize) -> Inspection {
        let (attentions, states) = (tape.watched(), tape.watched_states());
        Inspection { backend: Arc::clone(backend), attentions, encoder_layers, states }
    }

    /// A tape that watches what an inspection shows.
    pub fn tape(backend: &Arc<dyn Backend>) -> Tape {
        Tape::inference(backend).watching().watching_states()
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
        let first = AttentionSelector { kind, layer: 0, head: None }.index(self.encoder_layers);
        self.attentions.get(first).map_or(0, AttentionWeights::heads)
    }

    /// The weights of a head, or the mean of all.
    pub fn weights(&self, selector: AttentionSelector) -> Result<AttentionMatrix, Error> {
        let attention = self.attention(selector)?;
        Ok(AttentionMatrix::of(&*self.backend, attention, selector.head).swap_remove(0))
    }

    /// The queries, keys and values of a head; of the first where the mean is asked for, which has none of its own.
    pub fn vectors(&self, selector: AttentionSelector) -> Result<HeadVectors, Error> {
        let attention = self.attention(selector)?;
        let (rule, head) = (attention.rule(), selector.head.unwrap_or(0));
        let rows = |tensor: &Tensor, width: usize| {
            let numbers = self.backend.download_f32(tensor);
            let row = |row: &[f32]| row[head * width..][..width].to_vec();
            numbers.chunks_exact(width * rule.heads).map(row).collect::<Vec<_>>()
        };
        let [q, k, v] = attention.vectors();
        let keys = attention.spans()[0].keys as usize;
        let by_query = |(term, numbers): (BiasTerm, Vec<f32>)| {
            (term, numbers.chunks_exact(keys).map(<[f32]>::to_vec).collect())
        };
        Ok(HeadVectors {
            queries: rows(q, rule.d_k),
            keys: rows(k, rule.d_k),
            values: rows(v, rule.d_v),
            scale: rule.scale,
            causal: rule.causal,
            terms: attention.bias_terms(&*self.backend, 0, head).into_iter().map(by_query).collect(),
        })
    }

    /// The same where the scores of the attentions that `selectors` are at are one part of what they are.
    pub fn of_part(&self, part: ScorePart, selectors: &[AttentionSelector]) -> Result<Inspection, Error> {
        let mut attentions = self.attentions.clone();
        let mut done = Vec::new();
        for selector in selectors {
            let attention = self.attention(*selector)?;
            let index = selector.index(self.encoder_layers);
            if !done.contains(&index) {
                attentions[index] = attention.of_part(&*self.backend, part);
                done.push(index);
            }
        }
        let (backend, states) = (Arc::clone(&self.backend), self.states.clone());
        Ok(Inspection { backend, attentions, states, ..*self })
    }

    /// The hidden states of a step, a vector for each token.
    pub fn hidden(&self, step: Step) -> Result<Vec<Vec<f32>>, Error> {
        // The first layers are those of a decoder where they are masked.
        let is_decoder = self.attentions.first().is_some_and(|first| first.rule().causal);
        let layers = if is_decoder {
            Layers { encoder: 0, decoder: self.encoder_layers }
        } else {
            Layers { encoder: self.encoder_layers, decoder: self.layers(AttentionKind::Decoder) }
        };
        let unwatched = || Error::option("hidden", "the hidden states of this model are not watched");
        let states = self.states.get(layers.index(step)?).ok_or_else(unwatched)?;
        let width = states.shape().cols();
        let numbers = self.backend.download_f32(states);
        Ok(numbers.chunks_exact(width).map(<[f32]>::to_vec).collect())
    }

    fn attention(&self, selector: AttentionSelector) -> Result<&AttentionWeights, Error> {
        selector.check(self.layers(selector.kind), self.heads(selector.kind))?;
        Ok(&self.attentions[selector.index(self.encoder_layers)])
    }
}

impl fmt::Debug for Inspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = [AttentionKind::Encoder, AttentionKind::Decoder];
        let (layers, heads) = (kinds.map(|kind| self.layers(kind)), kinds.map(|kind| self.heads(kind)));
        f.debug_struct("Inspection").field("layers", &layers).field("heads", &heads).finish()
    }
}
