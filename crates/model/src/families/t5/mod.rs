//! T5: an encoder and a decoder that turn any text into any other (Raffel et al. 2020), with the changes of T5 1.1, Flan-T5 and mT5.
//!
//! There are no positions beside the embeddings: each stack has a table of learned numbers for relative positions, which all of
//! its layers add to their scores. Scores are not scaled, norms are RMS norms before each sublayer, and no product has a bias. The
//! feed-forward network of T5 1.0 is the paper's; later ones have a gate.
//!
//! On disk it is a folder as transformers writes a `T5ForConditionalGeneration` or an `MT5ForConditionalGeneration`.

mod config;
mod folder;
mod names;

pub use super::encoder_decoder::Batch;
pub use config::T5Config;
pub(super) use folder::tensors;

use crate::builder::Builder;
use crate::error::Error;
use crate::families::encoder_decoder::{EncoderDecoder, Outline};
use crate::layers::{Branch, Cache, Decoder, Embedding, Encoder, Head, Norm, RelativePositions, StackConfig};
use crate::names::Unused;
use crate::sequences::Sequences;
use attentive_tensor::{Parameter, Tape, Tensor, Var};

/// The model.
#[derive(Debug, Clone)]
pub struct T5 {
    config: T5Config,
    tokens: Embedding,
    source_positions: RelativePositions,
    encoder: Encoder,
    encoder_norm: Norm,
    target_positions: RelativePositions,
    decoder: Decoder,
    decoder_norm: Norm,
    head: Head,
    parameters: Vec<Parameter>,
    unused: Unused,
}

impl T5 {
    /// A model with the parameters that `builder` gives it.
    pub fn new(builder: &Builder, config: &T5Config) -> Result<T5, Error> {
        config.check()?;
        let root = (config.d_model as f32).powf(-0.5);
        let builder = builder.with_deviation(root).with_deviations_of(&config.deviations());
        let embedding = config.embedding();
        let (encoder, decoder) = (builder.at("encoder"), builder.at("decoder"));
        let (encoder_stack, decoder_stack) =
            (config.stack(config.encoder_layers), config.stack(config.decoder_layers));
        let last = |stack: &StackConfig, builder: &Builder| {
            Ok::<_, Error>(stack.final_norm(builder)?.expect("norms come first"))
        };
        let tokens = Embedding::new(&builder.at("shared"), &embedding)?;
        let tokens = if config.tied_output { tokens.tied(&builder)? } else { tokens };
        Ok(T5 {
            source_positions: RelativePositions::new(&encoder.at("positions"), &config.relative(true))?,
            encoder: Encoder::new(&encoder, &encoder_stack)?,
            encoder_norm: last(&encoder_stack, &encoder)?,
            target_positions: RelativePositions::new(&decoder.at("positions"), &config.relative(false))?,
            decoder: Decoder::new(&decoder, &decoder_stack)?,
            decoder_norm: last(&decoder_stack, &decoder)?,
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
    pub fn config(&self) -> &T5Config {
        &self.config
    }

    /// The tensors of its folder that it did not take.
    pub fn unused(&self) -> &Unused {
        &self.unused
    }

    /// Embedded tokens, through dropout.
    fn embed(&self, tape: &Tape, ids: &Tensor) -> Var {
        tape.watch_state(tape.dropout(&self.tokens.forward(tape, ids), self.config.dropout))
    }

    /// What comes out of the decoder, on its way to the output.
    fn leave(&self, tape: &Tape, x: &Var) -> Var {
        let x = tape.dropout(&self.decoder_norm.forward(tape, x), self.config.dropout);
        let x = match self.config.scaled_output {
            true => tape.scale(&x, (self.config.d_model as f32).powf(-0.5)),
            false => x,
        };
        tape.watch_state(x)
    }
}

impl EncoderDecoder for T5 {
    fn outline(&self) -> Outline {
        self.config.outline()
    }

    fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    fn head(&self) -> &Head {
        &self.head
    }

    fn encode(&self, tape: &Tape, ids: &Tensor, sequences: &Sequences) -> Var {
        let x = self.embed(tape, ids);
        sequences.check("encoder", &x);
        let (layout, bias) =
            (sequences.attending(&**tape.backend(), sequences), self.source_positions.bias(tape));
        let x = self.encoder.forward(tape, &x, &layout, Some(&bias));
        tape.watch_state(tape.dropout(&self.encoder_norm.forward(tape, &x), self.config.dropout))
    }

    fn decode(
        &self,
        tape: &Tape,
        ids: &Tensor,
        sequences: &Sequences,
        memory: &Var,
        memory_sequences: &Sequences,
    ) -> Var {
        let x = self.embed(tape, ids);
        sequences.check("decoder", &x);
        memory_sequences.check("memory of the decoder", memory);
        let [own, cross] =
            [sequences, memory_sequences].map(|keys| sequences.attending(&**tape.backend(), keys));
        let bias = self.target_positions.bias(tape);
        self.leave(tape, &self.decoder.forward(tape, &x, &own, Some(&bias), Some((memory, &cross))))
    }

    fn admit(&self, tape: &Tape, ids: &Tensor, sequences: &Sequences, slots: &[usize], cache: &mut Cache) {
        let memory = self.encode(tape, ids, sequences);
        self.decoder.admit(tape, &memory, sequences, slots, cache);
    }

    fn step(&self, tape: &Tape, ids: &Tensor, branches: &[Branch], cache: &mut Cache) -> Var {
        let step = self.decoder.begin(tape, branches, cache);
        let bias = self.target_positions.bias(tape);
        self.leave(tape, &self.decoder.step(tape, &self.embed(tape, ids), &step, Some(&bias), cache))
    }
}
