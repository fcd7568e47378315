//! The operations of a [`Tape`](crate::Tape): one file each, with the forward pass and, beside it, the backward pass.

pub(crate) mod activation;
pub(crate) mod assemble;
pub(crate) mod attention;
pub(crate) mod elementwise;
pub(crate) mod embedding;
pub(crate) mod group_norm;
pub(crate) mod linear;
pub(crate) mod loss;
pub(crate) mod matmul;
pub(crate) mod mean;
pub(crate) mod norm;
pub(crate) mod relative;
pub(crate) mod window;
