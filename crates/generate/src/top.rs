//! The best tokens of a row of logits on the host, which filters may have changed.

use attentive_tensor::{Best, Isa, top_of_row_without};
use std::sync::LazyLock;

/// The instruction set: that of the backends, unless a program makes one for another set.
static ISA: LazyLock<Isa> = LazyLock::new(|| Isa::from_env().unwrap_or_else(|_| Isa::present()[0]));

/// Puts the `count` greatest numbers of a row into `best`, greatest first, and returns `log Σ e^x` over the whole row. Of equal numbers,
/// the lower token comes first. `-∞` and NaN are never among the best.
pub(crate) fn top(row: &[f32], count: usize, best: &mut Vec<Best>) -> f32 {
    top_without(row, None, count, best)
}

/// [`top`] of a row without the token `never`, with the same bits as [`Backend::top_logits`](attentive_tensor::LossOps::top_logits).
pub(crate) fn top_without(row: &[f32], never: Option<u32>, count: usize, best: &mut Vec<Best>) -> f32 {
    best.clear();
    best.resize(count, Best::NONE);
    let log_sum = top_of_row_without(*ISA, row, never.map(|never| never as usize), best);
    best.retain(|best| *best != Best::NONE);
    log_sum
}
