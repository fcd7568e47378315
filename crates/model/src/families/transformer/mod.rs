//! The original Transformer of "Attention Is All You Need": an encoder, a decoder, one table for both and for the
//! output, or tables of their own.
//!
//! On disk it is a folder with `config.json` and `model.safetensors`, with the names that Hugging Face gives Marian
//! models: whatever Marian can express *is* a `MarianMTModel` folder. BART, mBART and M2M-100 are the same model with other choices
//! ([`TransformerConfig`]) and nearly the same names, so that their folders are read and written too.

mod config;
mod config_file;
mod convert;
mod dialect;
mod folder;
mod names;

pub use super::encoder_decoder::Batch;
pub use config::TransformerConfig;
pub use config_file::multi_sentence_share;
pub use convert::{Conversion, Layout, convert};

use crate::builder::Builder;
use crate::error::Error;
use crate::families::encoder_decoder::{EncoderDecoder, Outline};
use crate::layers::{Branch, Cache, Decoder, Embedding, Encoder, Head, LayerNorm, Norm, Positions};
use crate::names::Unused;
use crate::sequences::Sequences;
use attentive_tensor::{Parameter, Tape, Tensor, Var};

/// The model.
#[derive(Debug, Clone)]
pub struct Transformer {
    config: TransformerConfig,
    source: Embedding,
    target: Embedding,
    source_positions: Positions,
    /// Of embedded source tokens, if the model has such a norm.
    source_norm: Option<LayerNorm>,
    encoder: Encoder,
    /// Behind the encoder, if its layers have pre-norm.
    encoder_norm: Option<Norm>,
    target_positions: Positions,
    /// Of embedded target tokens.
    target_norm: Option<LayerNorm>,
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
        let target = if config.tied_output { target.tied(&model)? } else { target };
        let (encoder, decoder) = (model.at("encoder"), model.at("decoder"));
        let (encoder_stack, decoder_stack) = (config.encoder_stack()?, config.decoder_stack()?);
        // Random first values follow from the order in which parameters are asked for.
        Ok(Transformer {
            config: config.clone(),
            source_positions: config.positions(&encoder)?,
            source_norm: config.embedding_norm(&encoder)?,
            encoder: Encoder::new(&encoder, &encoder_stack)?,
            encoder_norm: encoder_stack.final_norm(&encoder)?,
            target_positions: config.positions(&decoder)?,
            target_norm: config.embedding_norm(&decoder)?,
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

    /// The tensors of its folder that it did not take.
    pub fn unused(&self) -> &Unused {
        &self.unused
    }

    /// Source tokens with their positions, through dropout.
    fn embed_source(&self, tape: &Tape, ids: &Tensor, positions: &[i32]) -> Var {
        let x = self.source_positions.forward(tape, &self.source.forward(tape, ids), positions);
        self.enter(tape, x, self.source_norm.as_ref())
    }

    /// The same of the target.
    fn embed_target(&self, tape: &Tape, ids: &Tensor, positions: &[i32]) -> Var {
        let x = self.target_positions.forward(tape, &self.target.forward(tape, ids), positions);
        self.enter(tape, x, self.target_norm.as_ref())
    }

    /// Embedded tokens, through their norm if there is one, and through dropout.
    fn enter(&self, tape: &Tape, x: Var, norm: Option<&LayerNorm>) -> Var {
        let x = norm.map_or(x.clone(), |norm| norm.forward(tape, &x));
        tape.watch_state(tape.dropout(&x, self.config.dropout))
    }
}

impl EncoderDecoder for Transformer {
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
        let x = self.embed_source(tape, ids, &sequences.positions());
        sequences.check("encoder", &x);
        let x = self.encoder.forward(tape, &x, &sequences.attending(&**tape.backend(), sequences), None);
        leave(tape, x, self.encoder_norm.as_ref())
    }

    fn decode(
        &self,
        tape: &Tape,
        ids: &Tensor,
        sequences: &Sequences,
        memory: &Var,
        memory_sequences: &Sequences,
    ) -> Var {
        let x = self.embed_target(tape, ids, &sequences.positions());
        sequences.check("decoder", &x);
        memory_sequences.check("memory of the decoder", memory);
        let [own, cross] =
            [sequences, memory_sequences].map(|keys| sequences.attending(&**tape.backend(), keys));
        let x = self.decoder.forward(tape, &x, &own, None, Some((memory, &cross)));
        leave(tape, x, self.decoder_norm.as_ref())
    }

    fn admit(&self, tape: &Tape, ids: &Tensor, sequences: &Sequences, slots: &[usize], cache: &mut Cache) {
        let memory = self.encode(tape, ids, sequences);
        self.decoder.admit(tape, &memory, sequences, slots, cache);
    }

    fn step(&self, tape: &Tape, ids: &Tensor, branches: &[Branch], cache: &mut Cache) -> Var {
        let step = self.decoder.begin(tape, branches, cache);
        let x = self.embed_target(tape, ids, step.positions());
        let x = self.decoder.step(tape, &x, &step, None, cache);
        leave(tape, x, self.decoder_norm.as_ref())
    }
}

/// What comes out of a stack, through its norm if there is one.
fn leave(tape: &Tape, x: Var, norm: Option<&Norm>) -> Var {
    tape.watch_state(norm.map_or(x.clone(), |norm| norm.forward(tape, &x)))
}
