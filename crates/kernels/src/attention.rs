//! Scaled dot-product attention over packed sequences, forward and backward, without a T×T matrix.
