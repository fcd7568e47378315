//! The original Transformer of "Attention Is All You Need": an encoder, a decoder, one table for both and for the
//! output, or tables of their own.
//!
//! On disk it is a folder with `config.json` and `model.safetensors`, with the names that Hugging Face gives Marian
//! models: whatever Marian can express *is* a `MarianMTModel` folder.

mod batch;
mod config;
mod config_file;
mod convert;
mod folder;
mod names;

pub use batch::Batch;
pub use config::TransformerConfig;
pub use config_file::multi_sentence_share;
pub use convert::{Conversion, Layout, convert};

use crate::builder::Builder;
use crate::error::Error;
use crate::layers::{Branch, Cache, Decoder, Embedding, Encoder, Head, Norm, Positions};
use crate::names::Unused;
use crate::sequences::Sequences;
use attentive_tensor::{Best, Found, Parameter, Tape, Tensor, TokenLists, Var, Wanted};

/// The model.
#[derive(Debug, Clone)]
pub struct Transformer {
    config: TransformerConfig,
    source: Embedding,
    target: Embedding,
    source_positions: Positions,
    encoder: Encoder,
    /// Behind the encoder, if its layers have pre-norm.
    encoder_norm: Option<Norm>,
    target_positions: Positions,
    decoder: Decoder,
    /// Behind the decoder, if its layers have pre-norm.
    decoder_norm: Option<Norm>,
    head: Head,
    parameters: Vec<Parameter>,
    unused: Unused,
}

impl Transformer {
    /// A model with the parameters that `builder` gives it.
    pub fn new(builder: &Builder, config: &TransformerConfig) -> Result<Transformer, Error> {
        config.check()?;
        let model = builder.at("model");
        let embedding = |name, config| Embedding::new(&model.at(name), &config);
        let (source, target) = if config.shared_embeddings {
            let shared = embedding("shared", config.source_embedding())?;
            (shared.clone(), shared)
        } else {
            let source = embedding("encoder.embed_tokens", config.source_embedding())?;
            (source, embedding("decoder.embed_tokens", config.target_embedding())?)
        };
        let (encoder, decoder) = (model.at("encoder"), model.at("decoder"));
        let (encoder_stack, decoder_stack) = (config.encoder_stack()?, config.decoder_stack()?);
        // Random first values follow from the order in which parameters are asked for.
        Ok(Transformer {
            config: config.clone(),
            source_positions: config.positions(&encoder)?,
            encoder: Encoder::new(&encoder, &encoder_stack)?,
            encoder_norm: encoder_stack.final_norm(&encoder)?,
            target_positions: config.positions(&decoder)?,
            decoder: Decoder::new(&decoder, &decoder_stack)?,
            decoder_norm: decoder_stack.final_norm(&decoder)?,
            head: if config.tied_output {
                Head::tied(&model.at("head"), &target, &config.target_embedding())?
            } else {
                Head::untied(&builder.at("lm_head"), &config.target_embedding())?
            },
            source,
            target,
            parameters: builder.parameters(),
            unused: Unused::default(),
        })
    }

    /// What it was made from.
    pub fn config(&self) -> &TransformerConfig {
        &self.config
    }

    /// Everything that is learned.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// The tensors of its folder that it did not take.
    pub fn unused(&self) -> &Unused {
        &self.unused
    }

    /// How many numbers that is.
    pub fn parameter_count(&self) -> usize {
        self.parameters.iter().map(|parameter| parameter.value().shape().len()).sum()
    }

    /// Source tokens to the memory that the decoder looks at, `[tokens, d_model]`.
    pub fn encode(&self, tape: &Tape, ids: &Tensor, sequences: &Sequences) -> Var {
        let x = self.source.forward(tape, ids);
        sequences.check("encoder", &x);
        let x = self.place(tape, &x, &self.source_positions, &sequences.positions());
        let x = self.encoder.forward(tape, &x, &sequences.attending(&**tape.backend(), sequences), None);
        leave(tape, x, self.encoder_norm.as_ref())
    }

    /// Target tokens so far, all at once, to hidden states, `[tokens, d_model]`.
    pub fn decode(
        &self,
        tape: &Tape,
        ids: &Tensor,
        sequences: &Sequences,
        memory: &Var,
        memory_sequences: &Sequences,
    ) -> Var {
        let x = self.target.forward(tape, ids);
        sequences.check("decoder", &x);
        memory_sequences.check("memory of the decoder", memory);
        let [own, cross] =
            [sequences, memory_sequences].map(|keys| sequences.attending(&**tape.backend(), keys));
        let x = self.place(tape, &x, &self.target_positions, &sequences.positions());
        let x = self.decoder.forward(tape, &x, &own, None, Some((memory, &cross)));
        leave(tape, x, self.decoder_norm.as_ref())
    }

    /// Encodes further sources, packed, into slots of a cache.
    pub fn admit(
        &self,
        tape: &Tape,
        ids: &Tensor,
        sequences: &Sequences,
        slots: &[usize],
        cache: &mut Cache,
    ) {
        let memory = self.encode(tape, ids, sequences);
        self.decoder.admit(tape, &memory, sequences, slots, cache);
    }

    /// The hidden states of the new tokens of each of `branches`, which go on from those of the last step.
    pub fn step(&self, tape: &Tape, ids: &Tensor, branches: &[Branch], cache: &mut Cache) -> Var {
        let step = self.decoder.begin(tape, branches, cache);
        let x = self.target.forward(tape, ids);
        let x = self.place(tape, &x, &self.target_positions, step.positions());
        let x = self.decoder.step(tape, &x, &step, None, cache);
        leave(tape, x, self.decoder_norm.as_ref())
    }

    /// Embedded tokens with their positions, through dropout.
    fn place(&self, tape: &Tape, x: &Var, table: &Positions, positions: &[i32]) -> Var {
        tape.dropout(&table.forward(tape, x, positions), self.config.dropout)
    }

    /// The best tokens after hidden states, `count` for each, best first, with their log-probabilities, or, which is quicker,
    /// with their logits. Padding is never among them.
    pub fn best(&self, tape: &Tape, hidden: &Var, count: usize, log_probabilities: bool) -> Vec<Best> {
        let Found { mut best, log_sums, .. } =
            self.find(tape, hidden, count, log_probabilities, TokenLists::NONE);
        for (best, log_sum) in best.chunks_exact_mut(count).zip(log_sums) {
            // What fills a row of too few, or of no numbers at all, stays as it is.
            best.iter_mut().filter(|best| **best != Best::NONE).for_each(|best| best.score -= log_sum);
        }
        best
    }

    /// The best tokens after hidden states with their logits, `count` for each, the logarithms of the sums of all exponentials if
    /// they are wanted, and the logits of the tokens in `apart`, which are in neither. Padding is in none of them.
    pub fn find(&self, tape: &Tape, hidden: &Var, count: usize, sums: bool, apart: TokenLists) -> Found {
        let wanted = Wanted { count, sums, never: self.config.pad };
        self.head.best(tape, hidden, wanted, apart)
    }

    /// Hidden states to logits, `[tokens, target vocabulary]`.
    pub fn logits(&self, tape: &Tape, hidden: &Var) -> Var {
        self.head.logits(tape, hidden)
    }

    /// The label-smoothed cross-entropy of a batch under teacher forcing: the mean over its target tokens.
    pub fn loss(&self, tape: &Tape, batch: &Batch, smoothing: f32) -> Var {
        self.partial_loss(tape, batch, smoothing, batch.target_sequences.tokens())
    }

    /// What a batch adds to the mean over the `of` target tokens of several batches: their gradients add up to the one
    /// that a single batch of all of them would have.
    pub fn partial_loss(&self, tape: &Tape, batch: &Batch, smoothing: f32, of: usize) -> Var {
        let memory = self.encode(tape, &batch.source, &batch.source_sequences);
        let hidden =
            self.decode(tape, &batch.input, &batch.target_sequences, &memory, &batch.source_sequences);
        self.head.partial_loss(tape, &hidden, &batch.target, smoothing, of)
    }
}

/// What comes out of a stack, through its norm if there is one.
fn leave(tape: &Tape, x: Var, norm: Option<&Norm>) -> Var {
    norm.map_or(x.clone(), |norm| norm.forward(tape, &x))
}
