//! A look into what a model did: the weights are computed here, not where they are waited for, because the backend computes them, and
//! only one thread computes.

use crate::job::{Inspect, Inspected};
use crate::refusal::Refusal;
use attentive_generate::Inspection;

/// Tells whoever asked what is seen.
pub(super) fn tell(job: Inspect, inspection: &Inspection) {
    let Inspect { looks, vectors, reply, places, .. } = job;
    let weights = looks.into_iter().map(|look| inspection.weights(look)).collect::<Result<Vec<_>, _>>();
    let vectors = vectors.map(|look| inspection.vectors(look)).transpose();
    let seen = weights.and_then(|weights| Ok(Inspected { weights, vectors: vectors? }));
    drop(places);
    let _ = reply.send(seen.map_err(Refusal::from));
}
