//! The model of a folder, of any family that writes, ready to be decoded with.

use crate::error::Error;
use attentive_generate::{CausalSteps, EncoderDecoderSteps, Seq2Seq};
use attentive_model::families::Family;
use attentive_model::families::encoder_decoder::EncoderDecoder;
use attentive_model::families::gpt2::Gpt2;
use attentive_model::families::t5::T5;
use attentive_model::families::transformer::Transformer;
use attentive_tensor::Backend;
use std::path::Path;
use std::sync::Arc;

/// The families with an encoder and a decoder, which turn a text into another.
pub(crate) const TEXT_TO_TEXT: &[Family] = &[Family::Transformer, Family::T5];
/// All families that write.
pub(crate) const WRITING: &[Family] = &[Family::Gpt2, Family::T5, Family::Transformer];

/// A model: a copy for each backend, all with the same weights, and whether these are in int8.
pub(crate) type Copies = (Vec<Box<dyn Seq2Seq>>, bool);

/// Reads the model of a folder, which must be of one of `families`, once for backends whose memory, instruction set and precision
/// are the same. `int8` says whether weights are to be in int8; without a word they are if they are stored so.
///
/// # Panics
/// If there is no backend.
pub(crate) fn open(
    backends: &[Arc<dyn Backend>],
    int8: Option<bool>,
    folder: &Path,
    families: &[Family],
) -> Result<Copies, Error> {
    let family = Family::among(folder, families)?;
    let int8 = match (int8, family) {
        (Some(int8), _) => int8,
        (None, Family::Transformer) => Transformer::is_stored_in_int8(folder)?,
        (None, _) => false,
    };
    let backend = &backends[0];
    let copies = match family {
        Family::Transformer => {
            let load = if int8 { Transformer::load_in_int8 } else { Transformer::load_packed };
            copies(backends, &load(backend, folder)?)
        }
        Family::T5 => {
            let load = if int8 { T5::load_in_int8 } else { T5::load_packed };
            copies(backends, &load(backend, folder)?)
        }
        Family::Gpt2 => {
            let load = if int8 { Gpt2::load_in_int8 } else { Gpt2::load_packed };
            let model = load(backend, folder)?;
            let copy = |backend| Box::new(CausalSteps::new(backend, &model)) as Box<dyn Seq2Seq>;
            backends.iter().map(copy).collect()
        }
        Family::Bert | Family::Detr | Family::Vit => unreachable!("what does not write is in neither list"),
    };
    Ok((copies, int8))
}

fn copies<M: EncoderDecoder>(backends: &[Arc<dyn Backend>], model: &M) -> Vec<Box<dyn Seq2Seq>> {
    let copy = |backend| Box::new(EncoderDecoderSteps::new(backend, model)) as Box<dyn Seq2Seq>;
    backends.iter().map(copy).collect()
}
