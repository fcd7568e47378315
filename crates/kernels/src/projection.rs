//! The output projection together with its loss, some tokens at a time.
//!
//! Logits are `hidden · tableᵀ`: for each slice of tokens they are computed, turned into losses and, in place, into
//! their own gradient, which goes into the hidden rows and into the table; then the next slice takes their memory.
//! The table's gradient goes on from slice to slice as one chain of sums, so the size of a slice cannot be seen in it.

use crate::Cpu;
use crate::gemm::{Epilogue, Matrix, Packed, gemm, gemm_packed};
use crate::loss::cross_entropy;
use crate::scratch::Scratch;

/// Logits that exist at a time: 16 MiB, which the last cache holds.
const SLICE: usize = 1 << 22;

/// The sizes and the rule of a projection with loss.
#[derive(Debug, Clone, Copy)]
pub struct Projection {
    /// The width of a hidden row and of a row of the table.
    pub d: usize,
    /// How many rows of the table, from the first, are classes.
    pub classes: usize,
    /// ε of label smoothing.
    pub smoothing: f32,
    /// What the sum of all losses is multiplied by.
    pub scale: f32,
}

/// `scale · Σ` of the label-smoothed cross-entropy of each row of logits `hidden · tableᵀ`.
///
/// `hidden: [tokens, d]`, `table: [rows, d]`, `targets: [tokens]` (negative: left out). `gradients`, the memory for
/// `dhidden` and `dtable`, is overwritten; rows of the table that are no class get zeros.
pub fn projection_loss(
    cpu: &Cpu,
    rule: &Projection,
    hidden: &[f32],
    table: &[f32],
    targets: &[i32],
    mut gradients: Option<(&mut [f32], &mut [f32])>,
) -> f32 {
    let &Projection { d, classes, smoothing, scale } = rule;
    let tokens = targets.len();
    assert_eq!(hidden.len(), tokens * d, "projection_loss: {tokens} targets for {} numbers", hidden.len());
    assert!(table.len() >= classes * d, "projection_loss: {classes} classes in a table of {}", table.len());
    let table = Matrix::new(&table[..classes * d], classes, d);
    let forward = Packed::new(cpu, table.t());
    let backward = gradients.is_some().then(|| Packed::new(cpu, table));
    if let Some((_, dtable)) = &mut gradients {
        dtable.fill(0.0);
    }
    let slice = (SLICE / classes.max(1)).clamp(1, tokens.max(1));
    let mut logits = Scratch::take(slice * classes);
    let mut losses = Scratch::take(tokens);
    for start in (0..tokens).step_by(slice) {
        let rows = slice.min(tokens - start);
        let here = start * d..(start + rows) * d;
        let hidden = Matrix::new(&hidden[here.clone()], rows, d);
        let logits = &mut logits[..rows * classes];
        gemm_packed(cpu, hidden, &forward, logits, Epilogue::default());
        let (targets, losses) = (&targets[start..start + rows], &mut losses[start..start + rows]);
        cross_entropy(cpu, logits, classes, targets, smoothing, scale, losses, gradients.is_some());
        if let (Some((dhidden, dtable)), Some(backward)) = (&mut gradients, &backward) {
            let dlogits = Matrix::new(logits, rows, classes);
            gemm_packed(cpu, dlogits, backward, &mut dhidden[here], Epilogue::default());
            let on = Epilogue { accumulate: true, ..Epilogue::default() };
            gemm(cpu, dlogits.t(), hidden, &mut dtable[..classes * d], on);
        }
    }
    losses[..tokens].iter().map(|&loss| loss as f64).sum::<f64>() as f32
}
