//! The output projection together with its loss, some tokens at a time.
//!
//! Logits are `hidden · tableᵀ + bias`: for each slice of tokens they are computed, turned into losses and, in place, into
//! their own gradient, which goes into the hidden rows and into the table; then the next slice takes their memory.
//! The size of a slice cannot be seen in losses, hidden rows and the bias. In f32 on vectors the table's gradient goes on from
//! slice to slice as one chain of sums, so that it cannot be seen there either; on tiles and in bf16 each slice is a sum of its own,
//! added in f32.

use crate::Cpu;
use crate::elementwise::sum_rows;
use crate::gemm::{BothWays, Epilogue, Matrix, Operand, Weights};
use crate::loss::cross_entropy;
use crate::scratch::Scratch;

/// Bytes of the logits that exist at a time: few enough for memory, enough that reading the table, and its gradient again in order to
/// add to it, do not count.
const SLICE: usize = 1 << 27;
/// The tokens of a slice are a multiple of this, a block of rows of a product.
const ROWS: usize = 32;

/// The sizes and the rule of a projection with loss.
#[derive(Debug, Clone, Copy)]
pub struct Projection<'a> {
    /// The width of a hidden row and of a row of the table.
    pub d: usize,
    /// How many rows of the table, from the first, are classes.
    pub classes: usize,
    /// What is added to the logits, a number for each class at least.
    pub bias: Option<&'a [f32]>,
    /// ε of label smoothing.
    pub smoothing: f32,
    /// What the sum of all losses is multiplied by.
    pub scale: f32,
}

/// The memory for the gradients of a projection with loss.
#[derive(Debug)]
pub struct Gradients<'a, T> {
    /// Of the hidden rows, `[tokens, d]`.
    pub hidden: &'a mut [T],
    /// Of the table, `[rows, d]`.
    pub table: &'a mut [f32],
    /// Of the bias, `[rows]`, where it is learned.
    pub bias: Option<&'a mut [f32]>,
}

/// `scale · Σ` of the label-smoothed cross-entropy of each row of logits `hidden · tableᵀ + bias`.
///
/// `hidden: [tokens, d]`, `table: [rows, d]`, which may be packed as well, `targets: [tokens]` (negative: left out).
/// The memory for `gradients` is overwritten; rows of the table, and of the bias, that are no class get zeros.
pub fn projection_loss<T: Operand>(
    cpu: &Cpu,
    rule: &Projection,
    hidden: &[T],
    (table, packed): (&[f32], Option<&BothWays>),
    targets: &[i32],
    gradients: Option<Gradients<T>>,
) -> f32 {
    in_slices(cpu, rule, slice::<T>(rule.classes, targets.len()), hidden, (table, packed), targets, gradients)
}

/// How many tokens a slice has: slices are as equal as blocks of rows allow.
fn slice<T>(classes: usize, tokens: usize) -> usize {
    let most = (SLICE / size_of::<T>() / classes.max(1)).max(1);
    let slices = tokens.div_ceil(most).max(1);
    tokens.div_ceil(slices).next_multiple_of(ROWS).min(tokens).max(1)
}

/// [`projection_loss`] with `slice` tokens at a time.
fn in_slices<T: Operand>(
    cpu: &Cpu,
    rule: &Projection,
    slice: usize,
    hidden: &[T],
    (table, packed): (&[f32], Option<&BothWays>),
    targets: &[i32],
    mut gradients: Option<Gradients<T>>,
) -> f32 {
    let &Projection { d, classes, bias, smoothing, scale } = rule;
    let tokens = targets.len();
    assert_eq!(hidden.len(), tokens * d, "projection_loss: {tokens} targets for {} numbers", hidden.len());
    assert!(table.len() >= classes * d, "projection_loss: {classes} classes in a table of {}", table.len());
    let table = Matrix::new(&table[..classes * d], classes, d);
    let forward = packed.and_then(BothWays::forward).map(|packed| packed.all().part(0..classes));
    let forward = forward.unwrap_or(Weights::F32(table.t()));
    // The backward pass sums over the classes.
    let back = packed.and_then(BothWays::back).map_or(Weights::F32(table), |packed| packed.first(classes));
    let shifted = Epilogue { bias: bias.map(|bias| &bias[..classes]), ..Epilogue::default() };
    if let Some(gradients) = &mut gradients {
        // The first slice overwrites the classes; what no slice reaches is zero.
        let reached = if tokens == 0 { 0 } else { classes };
        gradients.table[reached * d..].fill(0.0);
        if let Some(dbias) = &mut gradients.bias {
            dbias[reached..].fill(0.0);
        }
    }
    let mut logits = Scratch::<T>::take(slice * classes);
    let mut losses = Scratch::<f32>::take(tokens);
    for start in (0..tokens).step_by(slice) {
        let rows = slice.min(tokens - start);
        let here = start * d..(start + rows) * d;
        let hidden = Matrix::new(&hidden[here.clone()], rows, d);
        let logits = &mut logits[..rows * classes];
        T::times_weights(cpu, hidden, forward.clone(), logits, shifted);
        let (targets, losses) = (&targets[start..start + rows], &mut losses[start..start + rows]);
        cross_entropy(cpu, logits, classes, targets, smoothing, scale, losses, gradients.is_some());
        if let Some(Gradients { hidden: dhidden, table: dtable, bias: dbias }) = &mut gradients {
            if let Some(dbias) = dbias {
                sum_rows(cpu, logits, classes, &mut dbias[..classes], start > 0);
            }
            let dlogits = Matrix::new(logits, rows, classes);
            T::back_through_weights(cpu, dlogits, back.clone(), &mut dhidden[here], Epilogue::default());
            T::times_activations_in_f32(cpu, dlogits.t(), hidden, &mut dtable[..classes * d], start > 0);
        }
    }
    losses.iter().map(|&loss| loss as f64).sum::<f64>() as f32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{bits, normal, normals, rounding, wide};
    use crate::{Isa, Real, Threads};
    use half::bf16;

    /// Loss and gradients by their definitions, in double precision.
    fn reference(rule: &Projection, hidden: &[f64], table: &[f64], targets: &[i32]) -> (f64, [Vec<f64>; 3]) {
        let &Projection { d, classes, bias, smoothing, scale } = rule;
        let (smoothing, scale) = (smoothing as f64, scale as f64);
        let (mut loss, mut dhidden, mut dtable) = (0.0, vec![0.0; hidden.len()], vec![0.0; table.len()]);
        let mut dbias = vec![0.0; table.len() / d];
        for (t, &target) in targets.iter().enumerate().filter(|(_, target)| **target >= 0) {
            let at = |c: usize, j: usize| (t * d + j, c * d + j);
            let shift = |c: usize| bias.map_or(0.0, |bias| bias[c] as f64);
            let product = |c: usize| (0..d).map(|j| hidden[at(c, j).0] * table[at(c, j).1]).sum::<f64>();
            let logit = |c: usize| product(c) + shift(c);
            let logits: Vec<f64> = (0..classes).map(logit).collect();
            let denominator = logits.iter().map(|x| x.exp()).sum::<f64>().ln();
            for (c, logit) in logits.iter().enumerate() {
                let hit = if c as i32 == target { 1.0 - smoothing } else { 0.0 };
                let wanted = hit + smoothing / classes as f64;
                loss -= scale * wanted * (logit - denominator);
                let gradient = scale * ((logit - denominator).exp() - wanted);
                dbias[c] += gradient;
                for j in 0..d {
                    dhidden[at(c, j).0] += gradient * table[at(c, j).1];
                    dtable[at(c, j).1] += gradient * hidden[at(c, j).0];
                }
            }
        }
        (loss, [dhidden, dtable, dbias])
    }

    fn greatest_error<T: Real>(a: &[T], b: &[f64]) -> f64 {
        assert_eq!(a.len(), b.len());
        // Not `max`, which would lose a NaN.
        wide(a).iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, |a, b| if b <= a { a } else { b })
    }

    fn targets(tokens: usize, classes: usize) -> Vec<i32> {
        (0..tokens).map(|t| if t % 5 == 3 { -1 } else { (t % classes) as i32 }).collect()
    }

    #[test]
    fn loss_and_gradients_match_the_definition_on_every_instruction_set() {
        fn check<T: Operand>() {
            // Logits, their gradients and the operands are all rounded: some roundings of numbers around one.
            let tolerance = 2e-5 + 4.0 * rounding::<T>();
            for (tokens, d, rows, classes) in
                [(1, 1, 2, 1), (0, 4, 5, 5), (7, 33, 50, 49), (40, 8, 3, 3), (20, 32, 65, 64)]
            {
                let (hidden, table) = (normals::<T>(1, tokens * d), normal(2, rows * d));
                let targets = targets(tokens, classes);
                // With and without a bias, in turns.
                let bias = normal(3, rows);
                let bias = (d != 33).then_some(&bias[..]);
                let rule = Projection { d, classes, bias, smoothing: 0.1, scale: 0.3 };
                let (loss, [dhidden, dtable, dbias]) =
                    reference(&rule, &wide(&hidden), &wide(&table), &targets);
                for isa in Isa::present() {
                    let cpu = Cpu { isa, threads: Threads::new(2) };
                    let mut dh = vec![T::from_f32(f32::NAN); hidden.len()];
                    let (mut dt, mut db) = (vec![f32::NAN; table.len()], vec![f32::NAN; rows]);
                    let gradients = Some(Gradients { hidden: &mut dh, table: &mut dt, bias: Some(&mut db) });
                    let with = projection_loss(&cpu, &rule, &hidden, (&table, None), &targets, gradients);
                    let without = projection_loss(&cpu, &rule, &hidden, (&table, None), &targets, None);
                    assert_eq!(with, without, "{isa} {tokens}");
                    // To the bit, whether or not all rows are classes.
                    let (mut packed_dh, mut packed_dt) = (dh.clone(), dt.clone());
                    let gradients =
                        Some(Gradients { hidden: &mut packed_dh, table: &mut packed_dt, bias: None });
                    let packed = BothWays::new(&cpu, &table, rows, d);
                    let loss_packed =
                        projection_loss(&cpu, &rule, &hidden, (&table, Some(&packed)), &targets, gradients);
                    assert_eq!((with, bits(&dh)), (loss_packed, bits(&packed_dh)), "{isa} {tokens}");
                    assert_eq!(bits(&dt), bits(&packed_dt), "{isa} {tokens}");
                    let loss_error = (with as f64 - loss).abs() / (1.0 + loss.abs());
                    let errors = [
                        loss_error,
                        greatest_error(&dh, &dhidden),
                        greatest_error(&dt, &dtable),
                        greatest_error(&db, &dbias),
                    ];
                    assert!(errors.iter().all(|e| *e < tolerance), "{isa} {tokens} {d} {rows}: {errors:?}");
                }
            }
        }
        check::<f32>();
        check::<bf16>();
    }

    #[test]
    fn slices_are_equal_and_few() {
        assert_eq!(slice::<bf16>(8000, 1536), 1536);
        assert_eq!(slice::<bf16>(50_265, 1024), 1024);
        assert_eq!(slice::<bf16>(50_257, 4096), 1024);
        assert_eq!(slice::<f32>(50_257, 4096), 608);
        assert_eq!((slice::<f32>(usize::MAX, 70), slice::<f32>(5, 0), slice::<f32>(0, 3)), (32, 1, 3));
    }

    #[test]
    fn the_size_of_a_slice_cannot_be_seen() {
        fn check<T: Operand>() {
            let (tokens, d, classes) = (67, 40, 300);
            let (hidden, table) = (normals::<T>(1, tokens * d), normal(2, classes * d));
            let targets = targets(tokens, classes);
            let rule = Projection { d, classes, bias: None, smoothing: 0.1, scale: 1.0 };
            for isa in Isa::present() {
                let cpu = Cpu { isa, threads: Threads::new(2) };
                let run = |slice| {
                    let mut dh = vec![T::from_f32(f32::NAN); hidden.len()];
                    let (mut dt, mut db) = (vec![f32::NAN; table.len()], vec![f32::NAN; classes]);
                    let gradients = Some(Gradients { hidden: &mut dh, table: &mut dt, bias: Some(&mut db) });
                    let loss = in_slices(&cpu, &rule, slice, &hidden, (&table, None), &targets, gradients);
                    (loss.to_bits(), bits(&dh), dt, bits(&db))
                };
                let whole = run(tokens);
                for slice in [1, 2, 17, 33, 66] {
                    let (loss, dh, dt, db) = run(slice);
                    assert!(loss == whole.0 && dh == whole.1 && db == whole.3, "{isa}, slices of {slice}");
                    if T::EXACT && isa.amx().is_none() {
                        assert_eq!(bits(&dt), bits(&whole.2), "{isa}, slices of {slice}");
                    }
                    let error = greatest_error(&dt, &wide(&whole.2));
                    assert!(error < 1e-5, "{isa}, slices of {slice}: {error}");
                }
            }
        }
        check::<f32>();
        check::<bf16>();
    }
}
