//! A look into what a model did: the weights are computed here, not where they are waited for, because the backend computes them, and
//! only one thread computes.

use crate::job::{Inspect, Inspected, Views};
use crate::refusal::Refusal;
use attentive_generate::{Error, Inspection};

/// Tells whoever asked what is seen.
pub(super) fn tell(job: Inspect, inspection: &Inspection) {
    let Inspect { views, reply, places, .. } = job;
    let seen = see(&views, inspection);
    drop(places);
    let _ = reply.send(seen.map_err(Refusal::from));
}

fn see(views: &Views, inspection: &Inspection) -> Result<Inspected, Error> {
    let of_part = views.part.map(|part| inspection.of_part(part.into(), &views.selectors)).transpose()?;
    let weighed = of_part.as_ref().unwrap_or(inspection);
    Ok(Inspected {
        weights: views
            .selectors
            .iter()
            .map(|selector| weighed.weights(*selector))
            .collect::<Result<_, _>>()?,
        vectors: views.vectors.map(|selector| inspection.vectors(selector)).transpose()?,
        hidden: views.hidden.map(|step| inspection.hidden(step)).transpose()?,
    })
}
