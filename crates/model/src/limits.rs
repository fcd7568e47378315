//! What is larger than this is a mistake in a file, or an attempt to use up the memory. GPT-3 is below.

use crate::error::Error;

pub(crate) const MOST_TOKENS: usize = 1 << 24;
pub(crate) const WIDEST: usize = 1 << 18;
pub(crate) const MOST_LAYERS: usize = 1 << 10;
const MOST_PARAMETERS: u64 = 1 << 38;

/// Refuses a size of a configuration that is zero or more than `most`.
pub(crate) fn check_size(field: &'static str, size: usize, most: usize) -> Result<(), Error> {
    match size {
        0 => Err(Error::config(field, "must be at least 1, not 0")),
        size if size > most => Err(Error::config(field, format!("must be at most {most}, not {size}"))),
        _ => Ok(()),
    }
}

/// Refuses a probability with which nothing, or not everything, could come through.
pub(crate) fn check_dropout(field: &'static str, p: f32) -> Result<(), Error> {
    match (0.0..1.0).contains(&p) {
        true => Ok(()),
        false => Err(Error::config(field, format!("must be from 0 to below 1, not {p}"))),
    }
}

/// Refuses a model with too many parameters.
pub(crate) fn check_parameters(parameters: u64) -> Result<(), Error> {
    if parameters <= MOST_PARAMETERS {
        return Ok(());
    }
    let problem =
        format!("the model would have {parameters} parameters; at most {MOST_PARAMETERS} are supported");
    Err(Error::config("d_model", problem))
}
