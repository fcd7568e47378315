//! Which kinds of kernels the time went to.

use attentive_tensor::Backend;
use serde::Serializer;

/// The share of each kind of kernel in `wall` seconds; what remains is `other`. It counts from the last call.
pub(super) fn shares(backend: &dyn Backend, wall: f64) -> Vec<(&'static str, f64)> {
    let profile = backend.take_profile();
    let mut shares: Vec<_> = profile.iter().map(|(name, time)| (*name, time.as_secs_f64() / wall)).collect();
    shares.push(("other", 1.0 - shares.iter().map(|(_, share)| share).sum::<f64>()));
    shares
}

/// Shares as an object of JSON.
pub(super) fn as_object<S: Serializer>(
    shares: &[(&'static str, f64)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(shares.iter().copied())
}

/// Shares as rows of a table.
pub(super) fn rows(shares: &[(&'static str, f64)]) -> impl Iterator<Item = [String; 2]> {
    shares.iter().map(|(name, share)| [format!("in {name}"), format!("{:.1} %", share * 100.0)])
}
