//! GPT-2: a decoder that reads a text and writes on.
//!
//! Embeddings of tokens and of their positions are added up. The decoder has no memory to look at, its norms stand before each
//! sublayer, and one more stands behind the last layer. The table of the embeddings is the output, too, unless the configuration
//! says otherwise.
//!
//! GPT-1 is the same with norms behind each sublayer; `families/gpt1` has its names. GPT-Neo, with the sizes of GPT-3, has layers that
//! see a window of the text alone; `families/gpt_neo` has its names.
//!
//! On disk it is a folder as transformers writes a `GPT2LMHeadModel`, or as the Hub has the first ones: without the prefix
//! `transformer.`, and with the causal mask as a buffer.

mod batch;
mod config;
mod folder;
mod names;

pub use batch::Batch;
pub use config::{Gpt2Config, Version};
pub(super) use folder::tensors;

use crate::builder::Builder;
use crate::error::Error;
use crate::layers::{Branch, Cache, Decoder, Embedding, Head, Norm, PositionKind, Positions};
use crate::names::Unused;
use crate::sequences::Sequences;
use attentive_tensor::{Found, Parameter, Tape, Tensor, TokenLists, Var, Wanted};

/// The projections whose results are added to the residual.
const RESIDUAL: &[&str] = &["out_proj", "fc2"];

/// The model.
#[derive(Debug, Clone)]
pub struct Gpt2 {
    config: Gpt2Config,
    tokens: Embedding,
    positions: Positions,
    decoder: Decoder,
    norm: Option<Norm>,
    head: Head,
    parameters: Vec<Parameter>,
    unused: Unused,
}

impl Gpt2 {
    /// A model with the parameters that `builder` gives it. Random matrices are drawn as transformers draws them: from
    /// N(0, 0.02), and those of the two residual projections of each layer from N(0, 0.02 / √(2·N)).
    pub fn new(builder: &Builder, config: &Gpt2Config) -> Result<Gpt2, Error> {
        config.check()?;
        let residual = config.deviation / (2.0 * config.layers as f32).sqrt();
        let builder = builder.with_deviation(config.deviation).with_deviations_of(&[(RESIDUAL, residual)]);
        let (embedding, stack) = (config.embedding(), config.stack()?);
        let (decoder, d) = (builder.at("decoder"), config.d_model);
        let tokens = Embedding::new(&builder.at("embed_tokens"), &embedding)?;
        let tokens = if config.tied_output { tokens.tied(&builder)? } else { tokens };
        let positions = builder.at("embed_positions");
        Ok(Gpt2 {
            positions: Positions::new(&positions, PositionKind::Learned, config.max_positions, d)?,
            decoder: Decoder::without_memory(&decoder, &stack, |layer| config.window_of(layer))?,
            norm: stack.final_norm(&decoder)?,
            head: if config.tied_output {
                Head::tied(&builder.at("head"), &tokens, &embedding)?
            } else {
                Head::untied(&builder.at("lm_head"), &embedding)?
            },
            tokens,
            config: config.clone(),
            parameters: builder.parameters(),
            unused: Unused::default(),
        })
    }

    /// What it was made from.
    pub fn config(&self) -> &Gpt2Config {
        &self.config
    }

    /// Everything that is learned.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// How many numbers that is.
    pub fn parameter_count(&self) -> usize {
        self.parameters.iter().map(|parameter| parameter.value().shape().len()).sum()
    }

    /// The tensors of its folder that it did not take.
    pub fn unused(&self) -> &Unused {
        &self.unused
    }

    /// Texts, all of their tokens at once, to hidden states behind the last layer and norm, `[tokens, d_model]`.
    ///
    /// # Panics
    /// If a text has more tokens than there are positions.
    pub fn decode(&self, tape: &Tape, ids: &Tensor, sequences: &Sequences) -> Var {
        let x = self.embed(tape, ids, &sequences.positions());
        sequences.check("gpt2", &x);
        let layout = sequences.attending(&**tape.backend(), sequences);
        self.normed(tape, self.decoder.forward(tape, &x, &layout, None, None))
    }

    /// The hidden states of the new tokens of each of `branches`, which go on from those of the last step: a whole prompt or one
    /// token. In f32 and bf16 they have the bits of [`Gpt2::decode`].
    pub fn step(&self, tape: &Tape, ids: &Tensor, branches: &[Branch], cache: &mut Cache) -> Var {
        let step = self.decoder.begin(tape, branches, cache);
        let x = self.embed(tape, ids, step.positions());
        self.normed(tape, self.decoder.step(tape, &x, &step, None, cache))
    }

    /// Hidden states through the norm behind the last layer, if there is one.
    fn normed(&self, tape: &Tape, x: Var) -> Var {
        tape.watch_state(self.norm.as_ref().map_or(x.clone(), |norm| norm.forward(tape, &x)))
    }

    /// Tokens with their positions, through dropout.
    fn embed(&self, tape: &Tape, ids: &Tensor, positions: &[i32]) -> Var {
        let x = self.positions.forward(tape, &self.tokens.forward(tape, ids), positions);
        tape.watch_state(tape.dropout(&x, self.config.embedding_dropout))
    }

    /// Hidden states to the logits of the next tokens, `[tokens, vocab_size]`.
    pub fn logits(&self, tape: &Tape, hidden: &Var) -> Var {
        self.head.logits(tape, hidden)
    }

    /// The best next tokens after hidden states with their logits, `count` for each, the logarithms of the sums of all exponentials
    /// if they are wanted, and the logits of the tokens in `apart`, which are in neither.
    pub fn find(&self, tape: &Tape, hidden: &Var, count: usize, sums: bool, apart: TokenLists) -> Found {
        self.head.best(tape, hidden, Wanted { count, sums, never: None }, apart)
    }

    /// The label-smoothed cross-entropy of the next tokens: the mean over all tokens of a batch in which each has a target.
    pub fn loss(&self, tape: &Tape, batch: &Batch, smoothing: f32) -> Var {
        self.partial_loss(tape, batch, smoothing, batch.sequences.tokens())
    }

    /// What a batch adds to the mean over the `of` predicted tokens of several batches: their gradients add up to the one that a
    /// single batch of all of them would have.
    pub fn partial_loss(&self, tape: &Tape, batch: &Batch, smoothing: f32, of: usize) -> Var {
        let hidden = self.decode(tape, &batch.input, &batch.sequences);
        self.head.partial_loss(tape, &hidden, &batch.target, smoothing, of)
    }
}
