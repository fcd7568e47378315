//! Observers of a download: a bar in a terminal, a log, or none.

use crate::name::ModelName;

/// What is about to be downloaded.
#[derive(Debug)]
pub struct Plan<'a> {
    /// The model.
    pub name: &'a ModelName,
    /// The host that it comes from.
    pub host: &'a str,
    /// How many files.
    pub files: usize,
    /// How many bytes they have together.
    pub bytes: u64,
}

/// Gets the progress of a download, from several threads.
pub trait Watch: Sync {
    /// A download of files begins. It may be followed by another, of files that these name.
    fn begins(&self, plan: &Plan<'_>);
    /// So many bytes more are there.
    fn received(&self, bytes: u64);
    /// So many bytes were there and have to come again.
    fn lost(&self, bytes: u64);
    /// The download waits, and why.
    fn waits(&self, reason: &str);
    /// A model from the cache is used although something is not as it should be.
    fn warns(&self, what: &str);
}

/// Watches nothing.
#[derive(Debug, Clone, Copy)]
pub struct Silent;

impl Watch for Silent {
    fn begins(&self, _: &Plan<'_>) {}
    fn received(&self, _: u64) {}
    fn lost(&self, _: u64) {}
    fn waits(&self, _: &str) {}
    fn warns(&self, _: &str) {}
}
