//! The one thing that search knows of a model: it goes on from where it was, one token for each row.

use crate::attention::{AttentionKind, AttentionMatrix, Look};
use crate::error::Error;
use crate::inspection::Inspection;
use attentive_tensor::{Best, Found, TokenLists};

/// A model that reads a source and writes a target, one token after the other.
///
/// Sentences are admitted to slots. A step then has any number of rows, each the next token of some hypothesis of a sentence:
/// it follows a row of the step before, whose past it shares. A row that no row of the next step follows is forgotten.
///
/// The logits of a row depend on its sentence and its own past, and on nothing else that shares the step, down to the
/// bits.
pub trait Seq2Seq: Send {
    /// What must be known to search.
    fn spec(&self) -> Spec;

    /// Takes sources into slots that are free: `(slot, tokens)` each. They are read at once, or by the next steps.
    fn admit(&mut self, sources: &[(usize, &[u32])]);

    /// Whether the source in a slot is read, so that a row can begin to write.
    fn is_ready(&self, slot: usize) -> bool {
        let _ = slot;
        true
    }

    /// Takes one token for each row and computes the logits of the token after it. Where sources are not read yet, it reads some
    /// more of them; then there may be no rows.
    fn step(&mut self, rows: &[Row]);

    /// Of each row of the last step the `count` best tokens, best first, with their logits, and the logarithm of the sum of all
    /// exponentials if `sums` are wanted; where there are not so many tokens, [`Best::NONE`] fills the row. The logits of the
    /// tokens in `apart` are told apart, and are in neither.
    fn best(&mut self, count: usize, sums: bool, apart: TokenLists) -> Found;

    /// All logits of the last step: [`Spec::vocabulary`] numbers for each row, one row after the other, for search to change as
    /// it likes. Tokens that are never to be written have `-∞`.
    fn logits(&mut self) -> &mut [f32];

    /// Forgets the sentence in a slot, which is then free. No row may follow any of its rows afterwards.
    fn release(&mut self, slot: usize);

    /// The weights of an attention for pairs of a source and what was written for it. They are those that decoding
    /// had: the same bits come from a pass over all tokens at once, and of that pass every attention can be seen.
    fn attention(&self, pairs: &[(&[u32], &[u32])], look: Look) -> Result<Vec<AttentionMatrix>, Error>;

    /// The `count` most probable tokens, 1 at least, in the place of each token of each target, best first, with their
    /// log-probabilities, by the model alone: no filter, such as a repetition penalty, has changed them. `[pair][token][rank]`. The pairs are those of [`Seq2Seq::attention`], and so are the bits: search need
    /// not carry these tokens along.
    fn top(&self, pairs: &[(&[u32], &[u32])], count: usize) -> Vec<Vec<Vec<Best>>>;

    /// What the model thinks of each token of each target, and the `count` most probable tokens in its place, as [`Seq2Seq::top`] has
    /// them. `[pair][token]`.
    fn judge(&self, pairs: &[(&[u32], &[u32])], count: usize) -> Vec<Vec<Judged>> {
        // Among all tokens is the one that stands there.
        let judge = |(mut top, &token): (Vec<Best>, &u32)| {
            let own = top.iter().find(|best| best.token == token);
            let score = own.map_or(f32::NEG_INFINITY, |own| own.score);
            top.truncate(count);
            Judged { score, top }
        };
        let all = self.top(pairs, self.spec().vocabulary).into_iter().zip(pairs);
        all.map(|(top, (_, target))| top.into_iter().zip(*target).map(judge).collect()).collect()
    }

    /// All attentions of a source and what was written for it, to be looked into.
    fn inspect(&self, source: &[u32], target: &[u32]) -> Inspection;

    /// Lets prompts and texts be of any length: one that has filled all positions is read again from its later half on, as if it began
    /// there. The second looks, [`Seq2Seq::attention`] and [`Seq2Seq::top`], still have to be at texts that fit. Returns whether the model
    /// can do so.
    fn slide(&mut self) -> bool {
        false
    }

    /// How large it is.
    fn sizes(&self) -> Sizes;
}

/// What a model thinks of a token that stands somewhere.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// The log of its probability.
    pub score: f32,
    /// The most probable tokens in its place, best first, with theirs.
    pub top: Vec<Best>,
}

/// One token of one hypothesis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// The slot of its sentence.
    pub slot: usize,
    /// The row of the last step that it follows; none begins a sentence.
    pub parent: Option<usize>,
    /// The token.
    pub token: u32,
}

/// What search knows of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spec {
    /// How many tokens a source can be made of.
    pub source_vocabulary: usize,
    /// How many tokens can be written, and so how many logits a row has.
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
    /// How many layers write them.
    pub decoder_layers: usize,
    /// Whether the target goes on where the source ends, as in a language model. Source and target then share `max_target`
    /// positions, lengths that count the source mean both together, and filters see both as one text.
    pub continues: bool,
}

/// The sizes of a model, in the paper's letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// The width of the model.
    pub d_model: usize,
    /// The number of heads.
    pub h: usize,
    /// The number of heads of the decoder, which may be another.
    pub decoder_h: usize,
    /// The width between the two products of the feed-forward network.
    pub d_ff: usize,
    /// N of the encoder.
    pub encoder_layers: usize,
    /// N of the decoder.
    pub decoder_layers: usize,
    /// How many numbers were learned.
    pub parameters: usize,
}

impl Sizes {
    /// How many layers have an attention; a model that has a source has none of those of a decoder alone.
    pub fn layers(&self, kind: AttentionKind) -> usize {
        match kind {
            AttentionKind::Encoder => self.encoder_layers,
            AttentionKind::Decoder | AttentionKind::Cross if self.encoder_layers > 0 => self.decoder_layers,
            AttentionKind::Causal if self.encoder_layers == 0 => self.decoder_layers,
            AttentionKind::Decoder | AttentionKind::Cross | AttentionKind::Causal => 0,
        }
    }

    /// How many heads an attention has.
    pub fn heads(&self, kind: AttentionKind) -> usize {
        if kind == AttentionKind::Encoder { self.h } else { self.decoder_h }
    }
}
