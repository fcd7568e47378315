//! What every model with an encoder and a decoder can do, whatever its family: who decodes with it, or lets it learn, need not know
//! which one it is.

mod batch;

pub use batch::Batch;

use crate::layers::{Branch, Cache, Head};
use crate::sequences::Sequences;
use attentive_tensor::{Best, Found, Parameter, Tape, Tensor, TokenLists, Var, Wanted};

/// The sizes and special tokens of a model of any family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outline {
    /// How many tokens a source can be made of.
    pub source_vocabulary: usize,
    /// How many tokens can be written: the width of the logits.
    pub target_vocabulary: usize,
    /// The token that the decoder is shown first.
    pub start: usize,
    /// The token that ends a sequence.
    pub eos: usize,
    /// A token that is never written, such as padding.
    pub never: Option<usize>,
    /// The most tokens of a source, and of a target.
    pub max_positions: usize,
    /// The width of the model.
    pub d_model: usize,
    /// The number of heads of the encoder.
    pub h: usize,
    /// The number of heads of the decoder.
    pub decoder_h: usize,
    /// The width between the two products of the feed-forward network of the encoder.
    pub d_ff: usize,
    /// N of the encoder.
    pub encoder_layers: usize,
    /// N of the decoder.
    pub decoder_layers: usize,
}

/// A model that reads a source with its encoder, and writes a target with its decoder.
pub trait EncoderDecoder: Clone + Send + 'static {
    /// Its sizes and tokens.
    fn outline(&self) -> Outline;

    /// Everything that is learned.
    fn parameters(&self) -> &[Parameter];

    /// What leads from hidden states to logits.
    fn head(&self) -> &Head;

    /// Source tokens to the memory that the decoder looks at, `[tokens, d_model]`.
    fn encode(&self, tape: &Tape, ids: &Tensor, sequences: &Sequences) -> Var;

    /// Target tokens so far, all at once, to hidden states, `[tokens, d_model]`.
    fn decode(
        &self,
        tape: &Tape,
        ids: &Tensor,
        sequences: &Sequences,
        memory: &Var,
        memory_sequences: &Sequences,
    ) -> Var;

    /// Encodes further sources, packed, into slots of a cache.
    fn admit(&self, tape: &Tape, ids: &Tensor, sequences: &Sequences, slots: &[usize], cache: &mut Cache);

    /// The hidden states of the new tokens of each of `branches`, which go on from those of the last step.
    fn step(&self, tape: &Tape, ids: &Tensor, branches: &[Branch], cache: &mut Cache) -> Var;

    /// How many numbers are learned.
    fn parameter_count(&self) -> usize {
        self.parameters().iter().map(|parameter| parameter.value().shape().len()).sum()
    }

    /// The best tokens after hidden states, `count` for each, best first, with their log-probabilities or, which is quicker,
    /// with their logits. [`Outline::never`] is not among them.
    fn best(&self, tape: &Tape, hidden: &Var, count: usize, log_probabilities: bool) -> Vec<Best> {
        let Found { mut best, log_sums, .. } =
            self.find(tape, hidden, count, log_probabilities, TokenLists::NONE);
        for (best, log_sum) in best.chunks_exact_mut(count).zip(log_sums) {
            // What fills a row of too few, or of no numbers at all, stays as it is.
            best.iter_mut().filter(|best| **best != Best::NONE).for_each(|best| best.score -= log_sum);
        }
        best
    }

    /// The best tokens after hidden states with their logits, `count` for each, the logarithms of the sums of all exponentials if
    /// they are wanted, and the logits of the tokens in `apart`, which are in neither. [`Outline::never`] is in none of them.
    fn find(&self, tape: &Tape, hidden: &Var, count: usize, sums: bool, apart: TokenLists) -> Found {
        let wanted = Wanted { count, sums, never: self.outline().never };
        self.head().best(tape, hidden, wanted, apart)
    }

    /// Hidden states to logits, `[tokens, target vocabulary]`.
    fn logits(&self, tape: &Tape, hidden: &Var) -> Var {
        self.head().logits(tape, hidden)
    }

    /// The label-smoothed cross-entropy of a batch under teacher forcing: the mean over its target tokens.
    fn loss(&self, tape: &Tape, batch: &Batch, smoothing: f32) -> Var {
        self.partial_loss(tape, batch, smoothing, batch.target_sequences.tokens())
    }

    /// What a batch adds to the mean over the `of` target tokens of several batches: their gradients add up to the one
    /// that a single batch of all of them would have.
    fn partial_loss(&self, tape: &Tape, batch: &Batch, smoothing: f32, of: usize) -> Var {
        let memory = self.encode(tape, &batch.source, &batch.source_sequences);
        let hidden =
            self.decode(tape, &batch.input, &batch.target_sequences, &memory, &batch.source_sequences);
        self.head().partial_loss(tape, &hidden, &batch.target, smoothing, of)
    }
}
