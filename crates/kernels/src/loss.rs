//! Label-smoothed cross-entropy over rows of logits.
