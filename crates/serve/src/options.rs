//! From what a request asks for to the options of a search, within the limits of the server.

use crate::refusal::Refusal;
use crate::settings::Limits;
use attentive_generate::{LengthPenalty, MaxLength, Options, Sampling};
use serde::Deserialize;

/// How to search, as a request may say it; what it does not say is as the model wants it.
#[derive(Debug, Default, Clone, Deserialize)]
pub(crate) struct SearchAsk {
    pub n_best: Option<usize>,
    pub beam: Option<usize>,
    pub alpha: Option<f32>,
    pub length_penalty: Option<f32>,
    pub min_length: Option<usize>,
    pub max_length: Option<usize>,
    pub sampling: Option<SamplingAsk>,
}

/// How to draw.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SamplingAsk {
    pub temperature: Option<f32>,
    pub top_k: Option<usize>,
    pub top_p: Option<f32>,
    pub min_p: Option<f32>,
    pub seed: Option<u64>,
}

impl SearchAsk {
    /// The options of a search.
    pub fn options(&self, model: &Options, limits: &Limits) -> Result<Options, Refusal> {
        let n_best = within("n_best", self.n_best.unwrap_or(1), limits.results)?;
        // What the model itself asks for is no client's fault.
        let beam = match self.beam {
            Some(beam) => within("beam", beam, limits.beam)?.max(n_best),
            None => model.beam.max(n_best),
        };
        if self.alpha.is_some() && self.length_penalty.is_some() {
            return Err(Refusal::field("alpha", "cannot be used together with `length_penalty`"));
        }
        let penalty = self.alpha.map(LengthPenalty::Paper).or(self.length_penalty.map(LengthPenalty::Power));
        if self.max_length == Some(0) {
            return Err(Refusal::field("max_length", "must be at least 1, not 0"));
        }
        let seed = self.sampling.as_ref().and_then(|sampling| sampling.seed).unwrap_or(0);
        Ok(Options {
            beam,
            n_best,
            penalty: penalty.unwrap_or(model.penalty),
            min_length: self.min_length.unwrap_or(model.min_length),
            max_length: self.max_length.map_or(model.max_length, MaxLength::Tokens),
            sampling: self.sampling.as_ref().map(SamplingAsk::sampling).transpose()?,
            seed,
            ..model.clone()
        })
    }
}

impl SamplingAsk {
    /// How to draw, within what makes sense.
    pub fn sampling(&self) -> Result<Sampling, Refusal> {
        let all = Sampling::default();
        let sampling = Sampling {
            temperature: self.temperature.unwrap_or(all.temperature),
            top_k: self.top_k.unwrap_or(all.top_k),
            top_p: self.top_p.unwrap_or(all.top_p),
            min_p: self.min_p.unwrap_or(all.min_p),
        };
        // So small a temperature that every exponential is 0 or infinite has no distribution left.
        if !(sampling.temperature >= 1e-3 && sampling.temperature <= 1e3) {
            return Err(Refusal::field("sampling.temperature", "must be from 0.001 to 1000"));
        }
        if !(sampling.top_p > 0.0 && sampling.top_p <= 1.0) {
            return Err(Refusal::field("sampling.top_p", "must be above 0 and at most 1"));
        }
        if !(0.0..=1.0).contains(&sampling.min_p) {
            return Err(Refusal::field("sampling.min_p", "must be from 0 to 1"));
        }
        Ok(sampling)
    }
}

/// A number from 1 to a limit.
pub(crate) fn within(field: &str, asked: usize, most: usize) -> Result<usize, Refusal> {
    match asked {
        0 => Err(Refusal::field(field, "must be at least 1, not 0")),
        _ if asked > most => Err(Refusal::field(field, format!("must be at most {most}, not {asked}"))),
        _ => Ok(asked),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(ask: SearchAsk) -> Result<Options, Refusal> {
        ask.options(&Options::default(), &Limits::default())
    }

    #[test]
    fn what_is_not_asked_for_is_as_the_model_wants_it() {
        assert_eq!(options(SearchAsk::default()), Ok(Options::default()));
        let model = Options { beam: 6, penalty: LengthPenalty::Power(1.0), ..Options::default() };
        assert_eq!(SearchAsk::default().options(&model, &Limits::default()), Ok(model));
    }

    #[test]
    fn who_wants_many_results_gets_a_beam_that_has_them() {
        let found = options(SearchAsk { n_best: Some(8), ..SearchAsk::default() }).unwrap();
        assert_eq!((found.beam, found.n_best), (8, 8));
        let found = options(SearchAsk { n_best: Some(3), beam: Some(2), ..SearchAsk::default() }).unwrap();
        assert_eq!((found.beam, found.n_best), (3, 3));
    }

    #[test]
    fn what_is_too_much_is_refused_by_name() {
        let sampling = |sampling| SearchAsk { sampling: Some(sampling), ..SearchAsk::default() };
        for (field, ask) in [
            ("beam", SearchAsk { beam: Some(17), ..SearchAsk::default() }),
            ("beam", SearchAsk { beam: Some(0), ..SearchAsk::default() }),
            ("n_best", SearchAsk { n_best: Some(0), ..SearchAsk::default() }),
            ("n_best", SearchAsk { n_best: Some(17), ..SearchAsk::default() }),
            ("max_length", SearchAsk { max_length: Some(0), ..SearchAsk::default() }),
            ("alpha", SearchAsk { alpha: Some(1.0), length_penalty: Some(1.0), ..SearchAsk::default() }),
            (
                "sampling.temperature",
                sampling(SamplingAsk { temperature: Some(0.0), ..SamplingAsk::default() }),
            ),
            (
                "sampling.temperature",
                sampling(SamplingAsk { temperature: Some(f32::NAN), ..SamplingAsk::default() }),
            ),
            ("sampling.top_p", sampling(SamplingAsk { top_p: Some(1.5), ..SamplingAsk::default() })),
            ("sampling.min_p", sampling(SamplingAsk { min_p: Some(-0.1), ..SamplingAsk::default() })),
        ] {
            let refused = options(ask).unwrap_err();
            assert!(refused.field.as_deref() == Some(field) || field == "beam", "{refused:?}");
            assert_eq!(refused.status.as_u16(), 400);
        }
    }
}
