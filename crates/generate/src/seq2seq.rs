//! The trait between search and models: a model takes one token for each row, and returns the scores of the next one.

use crate::attention::{AttentionKind, AttentionMatrix, AttentionSelector};
use crate::error::Error;
use crate::inspection::Inspection;
use attentive_tensor::{Best, Found, TokenLists};

/// A model that reads a source and writes a target, one token after the other.
///
/// Sentences are admitted to slots. A step then has any number of rows. Each row is the next token of a hypothesis of a sentence: it
/// follows a row of the step before, and shares the past of that row. The past of a row that no row of the next step follows is dropped.
///
/// The bits of a row's logits depend on its sentence and its own past, and not on other rows of the step.
pub trait Seq2Seq: Send {
    /// The sizes and special tokens that search needs.
    fn spec(&self) -> Spec;

    /// Admits sources to free slots: `(slot, tokens)` each. They are read now, or by the next steps.
    fn admit(&mut self, sources: &[(usize, &[u32])]);

    /// Whether the source in a slot has been read, so that its first row can be in a step.
    fn is_ready(&self, slot: usize) -> bool {
        let _ = slot;
        true
    }

    /// Takes one token for each row, and computes the logits of the token after it. If sources have not been read completely, the step also
    /// reads a part of them; there may be no rows then.
    fn step(&mut self, rows: &[Row]);

    /// The `count` best tokens of each row of the last step, best first, with their logits, and `log Σ e^logit` if `sums` are wanted. If
    /// there are too few tokens, [`Best::NONE`] fills the row. The logits of the tokens in `apart` are returned on their own; see
    /// [`TokenLists`].
    fn best(&mut self, count: usize, sums: bool, apart: TokenLists) -> Found;

    /// All logits of the last step: [`Spec::vocabulary`] numbers for each row. The caller may change them. A token that is never written
    /// has `-∞`.
    fn logits(&mut self) -> &mut [f32];

    /// Frees a slot. No row may follow a row of its sentence afterwards.
    fn release(&mut self, slot: usize);

    /// The weights of an attention for pairs of a source and its target. They come from a second pass over all tokens at once, which has
    /// the same bits as decoding.
    fn attention(
        &self,
        pairs: &[(&[u32], &[u32])],
        selector: AttentionSelector,
    ) -> Result<Vec<AttentionMatrix>, Error>;

    /// The `count` most probable tokens (at least 1) at the position of each token of each target, best first, with their
    /// log-probabilities: `[pair][token][rank]`. Filters do not apply. The pass is that of [`Seq2Seq::attention`].
    fn top(&self, pairs: &[(&[u32], &[u32])], count: usize) -> Vec<Vec<Vec<Best>>>;

    /// The log-probability of each token of each target, and the `count` most probable tokens at its position, as in [`Seq2Seq::top`]:
    /// `[pair][token]`.
    fn judge(&self, pairs: &[(&[u32], &[u32])], count: usize) -> Vec<Vec<Judged>> {
        // The list of all tokens contains that of the target.
        let judge = |(mut top, &token): (Vec<Best>, &u32)| {
            let own = top.iter().find(|best| best.token == token);
            let score = own.map_or(f32::NEG_INFINITY, |own| own.score);
            top.truncate(count);
            Judged { score, top }
        };
        let all = self.top(pairs, self.spec().vocabulary).into_iter().zip(pairs);
        all.map(|(top, (_, target))| top.into_iter().zip(*target).map(judge).collect()).collect()
    }

    /// All attentions of a source and its target, for inspection.
    fn inspect(&self, source: &[u32], target: &[u32]) -> Inspection;

    /// Allows prompts and texts of any length: when a text has filled all positions, its later half is read again from position 0 on. The
    /// texts of [`Seq2Seq::attention`] and [`Seq2Seq::top`] still have to fit. Returns whether the model supports this.
    fn slide(&mut self) -> bool {
        false
    }

    /// The sizes of the model.
    fn sizes(&self) -> Sizes;
}

/// The score of a token of a target, and of other tokens at its position.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// Its log-probability.
    pub score: f32,
    /// The most probable tokens at its position, best first, with their log-probabilities.
    pub top: Vec<Best>,
}

/// One token of one hypothesis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// The slot of its sentence.
    pub slot: usize,
    /// The row of the last step that it follows; none for the first row of a sentence.
    pub parent: Option<usize>,
    /// The token.
    pub token: u32,
}

/// The properties of a model that search needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spec {
    /// The size of the vocabulary of sources.
    pub source_vocabulary: usize,
    /// The size of the vocabulary of targets: the number of logits of a row.
    pub vocabulary: usize,
    /// The token that a target begins with, before anything is written.
    pub start: u32,
    /// The token that ends a target.
    pub eos: u32,
    /// A token that is never written, such as padding.
    pub never: Option<u32>,
    /// The most tokens that a source may have.
    pub max_source: usize,
    /// The most tokens that can be written.
    pub max_target: usize,
    /// The number of layers of the decoder.
    pub decoder_layers: usize,
    /// Whether the target continues the source, as in a language model. Source and target then share `max_target` positions, maximum
    /// lengths include the source, and filters see both as one text.
    pub continues: bool,
}

/// The sizes of a model, in the paper's letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// The width of the model.
    pub d_model: usize,
    /// The number of heads.
    pub h: usize,
    /// The number of heads of the decoder, which may differ.
    pub decoder_h: usize,
    /// The width between the two products of the feed-forward network.
    pub d_ff: usize,
    /// N of the encoder.
    pub encoder_layers: usize,
    /// N of the decoder.
    pub decoder_layers: usize,
    /// The number of parameters.
    pub parameters: usize,
}

impl Sizes {
    /// How many layers have an attention of this kind. A model with an encoder has no [`AttentionKind::Causal`].
    pub fn layers(&self, kind: AttentionKind) -> usize {
        match kind {
            AttentionKind::Encoder => self.encoder_layers,
            AttentionKind::Decoder | AttentionKind::Cross if self.encoder_layers > 0 => self.decoder_layers,
            AttentionKind::Causal if self.encoder_layers == 0 => self.decoder_layers,
            AttentionKind::Decoder | AttentionKind::Cross | AttentionKind::Causal => 0,
        }
    }

    /// How many heads an attention of this kind has.
    pub fn heads(&self, kind: AttentionKind) -> usize {
        if kind == AttentionKind::Encoder { self.h } else { self.decoder_h }
    }
}
