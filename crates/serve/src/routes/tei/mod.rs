//! The addresses of text-embeddings-inference, for clients that have them: `/embed`, `/predict`, `/info` and `/health`.

pub(super) mod embed;
pub(super) mod info;
pub(super) mod predict;
